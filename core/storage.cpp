#include "storage.h"

#include <cassert>
#include <utility>

#include "error.h"

namespace heterosis {
namespace {

// What data() of an empty storage points to: not null, aligned, never read or written.
alignas(64) char no_bytes[64];

}  // namespace

Ref<Storage> Storage::make(int64_t nbytes) {
  return Ref(new Storage(nbytes == 0 ? no_bytes : nullptr, nbytes, nullptr, nullptr));
}

Ref<Storage> Storage::adopt(void* data, int64_t nbytes, Release release, void* context) {
  if (!release) release = [](void*) noexcept {};  // lent for ever; must still count as foreign
  return Ref(new Storage(data ? data : no_bytes, nbytes, release, context));
}

Storage::~Storage() {
  void* data = data_.load(std::memory_order_relaxed);
  if (elements_) release_elements_(elements_);
  if (release_) release_(context_);
  else if (data && data != no_bytes) deallocate(data, nbytes_);
}

// Two readers of a storage that nobody wrote may come here together: the first one's block stays.
void* Storage::allocate_data() {
  if (is_remote()) throw Failure(ErrorKind::internal, "an array that is not in main memory has no address there.");
  void* block = allocate(nbytes_);
  void* present = nullptr;
  if (data_.compare_exchange_strong(present, block, std::memory_order_acq_rel)) return block;
  deallocate(block, nbytes_);
  return present;
}

void Storage::set_elements(void* elements, Release release) {
  void* const before = std::exchange(elements_, elements);
  const Release release_before = std::exchange(release_elements_, release);
  if (before) release_before(before);
}

void Storage::exchange(Storage& other) {
  assert(nbytes_ == other.nbytes_ && is_ours() && other.is_ours() && device == other.device);
  std::swap(elements_, other.elements_);
  std::swap(release_elements_, other.release_elements_);
  void* const own = data_.load(std::memory_order_relaxed);
  data_.store(other.data_.load(std::memory_order_relaxed), std::memory_order_release);
  other.data_.store(own, std::memory_order_release);
}

}  // namespace heterosis
