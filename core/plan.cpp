#include "plan.h"

#include <algorithm>
#include <atomic>
#include <utility>

namespace heterosis {

uint64_t next_serial() {
  static std::atomic<uint64_t> made{0};
  return made.fetch_add(1, std::memory_order_relaxed) + 1;
}

// Multiply-and-fold over words.
uint64_t hash_words(const uint64_t* words, int count) {
  uint64_t hash = 0x9E3779B97F4A7C15ull ^ static_cast<uint64_t>(count);
  for (int i = 0; i < count; ++i) {
    const auto wide = static_cast<unsigned __int128>(hash ^ words[i]) * 0xD6E8FEB86659FD93ull;
    hash = static_cast<uint64_t>(wide) ^ static_cast<uint64_t>(wide >> 64);
  }
  return hash | 1;  // zero marks an empty entry
}

const Plan* PlanCache::find(const uint64_t* words, int count) const {
  if (entries_.empty()) return nullptr;
  const uint64_t hash = hash_words(words, count);
  const size_t mask = entries_.size() - 1;
  for (size_t i = hash & mask; entries_[i].hash; i = (i + 1) & mask) {
    const Entry& entry = entries_[i];
    if (entry.hash == hash && entry.words.size() == static_cast<size_t>(count) &&
        std::equal(words, words + count, entry.words.data())) {
      return entry.plan.get();
    }
  }
  return nullptr;
}

const Plan* PlanCache::insert(const uint64_t* words, int count, Ref<const Plan> plan) {
  if (used_ >= kMost) clear();
  if (entries_.size() < 2 * (used_ + 1)) grow();
  const uint64_t hash = hash_words(words, count);
  const size_t mask = entries_.size() - 1;
  size_t i = hash & mask;
  while (entries_[i].hash) i = (i + 1) & mask;
  entries_[i] = {hash, {words, words + count}, std::move(plan)};
  ++used_;
  return entries_[i].plan.get();
}

void PlanCache::grow() {
  std::vector<Entry> old = std::exchange(entries_, {});
  entries_.resize(std::max<size_t>(8, 2 * old.size()));
  const size_t mask = entries_.size() - 1;
  for (Entry& entry : old) {
    if (!entry.hash) continue;
    size_t i = entry.hash & mask;
    while (entries_[i].hash) i = (i + 1) & mask;
    entries_[i] = std::move(entry);
  }
}

void PlanCache::clear() {
  dropped_ = std::exchange(entries_, {});
  used_ = 0;
}

}  // namespace heterosis
