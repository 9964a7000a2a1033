#include "allocator.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <random>
#include <thread>
#include <vector>

#include "check.h"
#include "error.h"
#include "size_class.h"
#include "storage.h"

using namespace heterosis;

namespace {

constexpr int64_t kMega = int64_t{1} << 20;

long page_faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

void sizes_are_covered_closely() {
  for (int index = 0; index < kClasses; ++index) {
    const int64_t size = class_size(index);
    CHECK(size % 64 == 0);
    CHECK(class_of(size) == index);
    CHECK(index == 0 || class_of(class_size(index - 1) + 1) == index);
  }
  std::mt19937_64 random(1);
  for (int turn = 0; turn < 100'000; ++turn) {
    const int64_t nbytes = 1 + static_cast<int64_t>(random() >> (17 + random() % 46));
    const int64_t size = class_size(class_of(nbytes));
    CHECK(size >= nbytes);
    CHECK(size - nbytes < 64 || size - nbytes <= nbytes / 8);
  }
}

void blocks_are_aligned_and_apart() {
  std::vector<std::pair<unsigned char*, int64_t>> blocks;
  for (int64_t nbytes : {0, 1, 63, 64, 65, 1000, 4097, 100'000, 1 << 20, (1 << 20) + 1, 5 << 20}) {
    for (int copy = 0; copy < 3; ++copy) {
      auto* block = static_cast<unsigned char*>(allocate(nbytes));
      CHECK(reinterpret_cast<uintptr_t>(block) % 64 == 0);
      std::memset(block, static_cast<int>(blocks.size()), static_cast<std::size_t>(nbytes));
      blocks.emplace_back(block, nbytes);
    }
  }
  for (std::size_t index = 0; index < blocks.size(); ++index) {
    const auto [block, nbytes] = blocks[index];
    for (int64_t at = 0; at < nbytes; ++at) CHECK(block[at] == index);
    deallocate(block, nbytes);
  }
}

void freed_blocks_come_back() {
  for (int64_t nbytes : {int64_t{100}, int64_t{50'000}, 2 * kMega, 4 * kMega}) {
    void* first = allocate(nbytes);
    deallocate(first, nbytes);
    const int64_t calls = memory_counters().system_calls;
    void* second = allocate(nbytes - nbytes / 100);
    CHECK(first == second);
    CHECK(memory_counters().system_calls == calls);
    deallocate(second, nbytes - nbytes / 100);
  }
}

// The point of the cache: a temporary of a loop costs its page faults once.
void a_loop_of_temporaries_faults_once() {
  const int64_t nbytes = 4 * kMega;
  std::memset(allocate(nbytes), 1, static_cast<std::size_t>(nbytes));  // kept: others may be cached
  void* block = allocate(nbytes);
  std::memset(block, 1, static_cast<std::size_t>(nbytes));
  deallocate(block, nbytes);
  const long before = page_faults();
  for (int turn = 0; turn < 100; ++turn) {
    block = allocate(nbytes);
    std::memset(block, turn, static_cast<std::size_t>(nbytes));
    deallocate(block, nbytes);
  }
  CHECK(page_faults() - before < 50);  // a hundred turns from the system are 100 x 2 to 1024
}

int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  int64_t pages = 0;
  file >> pages >> pages;
  return pages * sysconf(_SC_PAGESIZE);
}

// Blocks that share pages are given back one by one, and their neighbours stay as they are.
void shared_pages_are_given_back() {
  empty_cache();
  constexpr int64_t kBytes = 300'000;
  constexpr std::size_t kCount = 400;
  std::vector<unsigned char*> blocks;
  for (std::size_t index = 0; index < kCount; ++index) {
    blocks.push_back(static_cast<unsigned char*>(allocate(kBytes)));
    CHECK(reinterpret_cast<uintptr_t>(blocks.back()) % 4096 == 0);
    std::memset(blocks.back(), static_cast<int>(index % 251), kBytes);
  }
  const int64_t full = resident_bytes();
  for (std::size_t index = 0; index < kCount; index += 2) deallocate(blocks[index], kBytes);
  empty_cache();
  CHECK(resident_bytes() < full - static_cast<int64_t>(kCount) * kBytes / 4);
  for (std::size_t index = 1; index < kCount; index += 2) {
    for (int64_t at = 0; at < kBytes; ++at) CHECK(blocks[index][at] == index % 251);
    deallocate(blocks[index], kBytes);
  }
  empty_cache();
  CHECK(resident_bytes() < full - static_cast<int64_t>(kCount) * kBytes * 3 / 4);
}

void counters_add_up() {
  empty_cache();
  const MemoryCounters before = memory_counters();
  CHECK(before.cached == 0);
  void* a = allocate(1000);     // 1024 with its class
  void* b = allocate(3 * kMega);
  CHECK(memory_counters().live == before.live + 1024 + 3 * kMega);
  deallocate(b, 3 * kMega);
  CHECK(memory_counters().live == before.live + 1024);
  CHECK(memory_counters().cached == 3 * kMega);
  CHECK(memory_counters().peak >= before.live + 1024 + 3 * kMega);
  reset_peak();
  CHECK(memory_counters().peak == before.live + 1024);
  deallocate(a, 1000);
  empty_cache();
  CHECK(memory_counters().cached == 0);
  CHECK(memory_counters().live == before.live);
}

void the_cache_is_bounded() {
  empty_cache();
  const int64_t limit = memory_counters().cache_limit;
  set_cache_limit(10 * kMega);
  std::vector<void*> blocks;
  for (int count = 0; count < 20; ++count) blocks.push_back(allocate(2 * kMega));
  for (void* block : blocks) deallocate(block, 2 * kMega);
  CHECK(memory_counters().cached <= 10 * kMega);
  CHECK(memory_counters().cached >= 8 * kMega);
  void* other = allocate(3 * kMega);  // sizes that are in use push out sizes that are not
  deallocate(other, 3 * kMega);
  CHECK(memory_counters().cached <= 10 * kMega);
  const int64_t calls = memory_counters().system_calls;
  deallocate(allocate(3 * kMega), 3 * kMega);
  CHECK(memory_counters().system_calls == calls);
  set_cache_limit(kMega);
  CHECK(memory_counters().cached <= kMega);
  set_cache_limit(limit);
}

void too_much_is_refused() {
  const MemoryCounters before = memory_counters();
  CHECK(before.limit > 0);
  for (int64_t nbytes : {before.limit + 1, int64_t{1} << 46, INT64_MAX, int64_t{-1}}) {
    try {
      allocate(nbytes);
      CHECK(!"refused");
    } catch (const OutOfMemory& error) {
      CHECK(error.asked == nbytes);
      CHECK(error.live == before.live);
      CHECK(error.limit == before.limit);
    }
  }
  CHECK(memory_counters().live == before.live);
  deallocate(allocate(100), 100);  // and goes on working
}

void a_lower_limit_counts() {
  empty_cache();
  const MemoryCounters before = memory_counters();
  set_memory_limit(before.live + 10 * kMega);
  void* a = allocate(6 * kMega);
  CHECK_THROWS(OutOfMemory, allocate(6 * kMega));
  deallocate(a, 6 * kMega);
  void* b = allocate(8 * kMega);  // needs the cached block given back first
  set_memory_limit(before.live + kMega);
  deallocate(b, 8 * kMega);
  CHECK_THROWS(OutOfMemory, allocate(8 * kMega));  // cached, but over the limit by now
  set_memory_limit(before.limit);
}

void threads_share_the_lists() {
  const int64_t live = memory_counters().live;
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 4; ++seed) {
    threads.emplace_back([seed] {
      std::mt19937 random(seed);
      std::vector<std::pair<unsigned char*, int64_t>> mine;
      for (int turn = 0; turn < 5000; ++turn) {
        const int64_t nbytes = 1 + static_cast<int64_t>(random() % 3000);
        auto* block = static_cast<unsigned char*>(allocate(nbytes));
        block[0] = block[nbytes - 1] = static_cast<unsigned char>(nbytes);
        mine.emplace_back(block, nbytes);
        if (mine.size() < 50) continue;
        const std::size_t at = random() % mine.size();
        const auto [old, size] = mine[at];
        CHECK(old[0] == static_cast<unsigned char>(size) && old[size - 1] == old[0]);
        deallocate(old, size);
        mine[at] = mine.back();
        mine.pop_back();
      }
      for (const auto& [block, size] : mine) deallocate(block, size);
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(memory_counters().live == live);
}

// -- scratch --------------------------------------------------------------------------------------

constexpr int64_t kSizes[] = {5 * kMega, 200'000, 17 * kMega, 70'000, 3 * kMega, 90 * kMega, 64, 1};

void scratch_is_aligned_and_apart() {
  const int64_t live = memory_counters().live;
  for (int64_t outer : kSizes) {
    for (int64_t inner : kSizes) {
      Scratch one(outer), other(inner);
      CHECK(reinterpret_cast<uintptr_t>(one.data()) % 64 == 0);
      std::memset(one.data(), 1, static_cast<std::size_t>(outer));
      std::memset(other.data(), 2, static_cast<std::size_t>(inner));
      auto* bytes = static_cast<unsigned char*>(one.data());
      for (int64_t at = 0; at < outer; at += 997) CHECK(bytes[at] == 1);
      CHECK(bytes[outer - 1] == 1);
    }
  }
  CHECK(memory_counters().live == live);
}

// The point of it: a size that was never seen costs no page faults if a larger one was.
void scratch_of_another_size_faults_not_again() {
  empty_cache();
  { Scratch largest(90 * kMega); std::memset(largest.data(), 1, std::size_t{90} << 20); }
  const int64_t calls = memory_counters().system_calls;
  const long before = page_faults();
  for (int64_t nbytes = 90'000; nbytes <= 90 * kMega; nbytes += 1'000'003) {
    Scratch scratch(nbytes);
    std::memset(scratch.data(), 1, static_cast<std::size_t>(nbytes));
  }
  CHECK(page_faults() - before < 50);
  CHECK(memory_counters().system_calls == calls);
}

void scratch_keeps_its_pages_when_it_grows() {
  empty_cache();
  { Scratch scratch(2 * kMega); std::memset(scratch.data(), 7, std::size_t{2} << 20); }
  const long before = page_faults();
  for (int64_t nbytes : {3 * kMega, 4 * kMega, 12 * kMega}) {  // from small pages to huge ones
    Scratch scratch(nbytes);
    auto* bytes = static_cast<unsigned char*>(scratch.data());
    for (int64_t at = 4096; at < 2 * kMega; at += 4096) CHECK(bytes[at] == 7);
  }
#if !defined(__SANITIZE_THREAD__)  // whose notes about a new address are pages, too
  CHECK(page_faults() - before < 100);  // 2 MiB are 512 small pages
#else
  CHECK(before > 0);
#endif
  CHECK(memory_counters().cached == 12 * kMega);
}

void scratch_counts() {
  empty_cache();
  const MemoryCounters before = memory_counters();
  {
    Scratch first(5 * kMega);
    CHECK(memory_counters().live == before.live + 5 * kMega);
    Scratch second(2 * kMega);
    CHECK(memory_counters().live == before.live + 7 * kMega);
  }
  CHECK(memory_counters().live == before.live);
  CHECK(memory_counters().cached == 7 * kMega);
  { Scratch again(kMega); }  // the smallest that is large enough
  CHECK(memory_counters().peak >= before.live + 7 * kMega);
  { Scratch again(6 * kMega); }  // the largest grows
  CHECK(memory_counters().cached == 8 * kMega);
  empty_cache();
  CHECK(memory_counters().cached == 0);
}

void scratch_is_bounded() {
  empty_cache();
  const MemoryCounters before = memory_counters();
  set_memory_limit(before.live + 10 * kMega);
  { Scratch all(10 * kMega); }
  {
    void* array = allocate(6 * kMega);  // what is cached makes room
    Scratch rest(4 * kMega);
    CHECK_THROWS(OutOfMemory, Scratch{kMega});
    deallocate(array, 6 * kMega);
  }
  { Scratch large(8 * kMega); }
  {
    void* array = allocate(2 * kMega);
    Scratch large(8 * kMega);
    CHECK_THROWS(OutOfMemory, Scratch{int64_t{100} << 10});
    deallocate(array, 2 * kMega);
  }
  {
    void* array = allocate(2 * kMega);
    set_memory_limit(before.live + 4 * kMega);  // no room for the block of 8 that is cached
    Scratch small(kMega);
    deallocate(array, 2 * kMega);
  }
  for (int64_t nbytes : {before.limit + 1, int64_t{1} << 46, INT64_MAX}) {
    CHECK_THROWS(OutOfMemory, Scratch{nbytes});
  }
  set_memory_limit(before.limit);
  set_cache_limit(0);
  { Scratch uncached(2 * kMega); }
  CHECK(memory_counters().cached == 0);
  set_cache_limit(before.cache_limit);
  CHECK(memory_counters().live == before.live);
}

void use_scratch(std::mt19937& random, unsigned char mark, int depth) {
  const int64_t nbytes = 1 + static_cast<int64_t>(random() % 3'000'000) / (1 + random() % 30);
  Scratch scratch(nbytes);
  auto* bytes = static_cast<unsigned char*>(scratch.data());
  for (int64_t at = 0; at < nbytes; at += 509) bytes[at] = mark;
  if (depth > 0) use_scratch(random, static_cast<unsigned char>(mark + 1), depth - 1);
  for (int64_t at = 0; at < nbytes; at += 509) CHECK(bytes[at] == mark);
}

void a_block_is_lent_once_at_a_time() {
  const int64_t live = memory_counters().live;
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 4; ++seed) {
    threads.emplace_back([seed] {
      std::mt19937 random(seed);
      const auto mark = static_cast<unsigned char>(50 * seed);
      for (int turn = 0; turn < 500; ++turn) use_scratch(random, mark, turn % 3);
    });
  }
  threads.emplace_back([] {
    for (int turn = 0; turn < 100; ++turn) empty_cache();  // takes what is not lent alone
  });
  for (std::thread& thread : threads) thread.join();
  CHECK(memory_counters().live == live);
  empty_cache();
  CHECK(memory_counters().cached == 0);
}

void storages_allocate_late() {
  const int64_t live = memory_counters().live;
  {
    Ref<Storage> storage = Storage::make(5000);
    CHECK(storage->data() == nullptr && !storage->allocated());
    CHECK(memory_counters().live == live);
    void* data = storage->ensure();
    CHECK(data && data == storage->data() && data == storage->ensure());
    CHECK(storage->nbytes() == 5000 && !storage->foreign());
    Ref<Storage> copy = storage;
    CHECK(copy == storage && storage->use_count() == 2);
  }
  CHECK(memory_counters().live == live);
  CHECK(Storage::make(0)->ensure() != nullptr);
  CHECK_THROWS(OutOfMemory, Storage::make(int64_t{1} << 46)->ensure());
}

void foreign_memory_is_handed_back_once() {
  static char theirs[100];
  static int released = 0;
  {
    Ref<Storage> storage = Storage::adopt(
        theirs, sizeof theirs, [](void* context) noexcept { ++*static_cast<int*>(context); },
        &released);
    Ref<Storage> copy = storage;
    CHECK(copy->data() == theirs && copy->foreign() && copy->ensure() == theirs);
    CHECK(released == 0);
  }
  CHECK(released == 1);
  Ref<Storage> lent = Storage::adopt(theirs, sizeof theirs, nullptr, nullptr);
  CHECK(lent->foreign() && lent->data() == theirs);
}

void readers_may_ensure_together() {
  for (int turn = 0; turn < 200; ++turn) {
    Ref<Storage> storage = Storage::make(100);
    void* seen = nullptr;
    std::thread other([&] { seen = storage->ensure(); });
    void* data = storage->ensure();
    other.join();
    CHECK(data == seen);
  }
}

}  // namespace

int main() {
  return run_tests({TEST(sizes_are_covered_closely), TEST(blocks_are_aligned_and_apart),
                    TEST(freed_blocks_come_back), TEST(a_loop_of_temporaries_faults_once),
                    TEST(shared_pages_are_given_back), TEST(counters_add_up),
                    TEST(the_cache_is_bounded), TEST(too_much_is_refused),
                    TEST(a_lower_limit_counts), TEST(threads_share_the_lists),
                    TEST(scratch_is_aligned_and_apart),
                    TEST(scratch_of_another_size_faults_not_again),
                    TEST(scratch_keeps_its_pages_when_it_grows), TEST(scratch_counts),
                    TEST(scratch_is_bounded), TEST(a_block_is_lent_once_at_a_time),
                    TEST(storages_allocate_late), TEST(foreign_memory_is_handed_back_once),
                    TEST(readers_may_ensure_together)});
}
