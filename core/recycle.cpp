#include "recycle.h"

#include <new>

#include "lock.h"

namespace heterosis {
namespace {

constexpr std::size_t kStep = 64;
constexpr std::size_t kLists = 16;  // sizes up to 1024 bytes; larger objects are not recycled

struct Block {
  Block* next;
};

struct alignas(64) List {
  Lock lock;
  Block* first = nullptr;
};

// Constant-initialised and trivially destroyed: usable before and after every other static.
constinit List lists[kLists];

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kRecycle = false;  // so that the sanitizer sees every object's end
#else
constexpr bool kRecycle = true;
#endif

List* list_of(std::size_t size) {
  const std::size_t index = (size - 1) / kStep;
  return kRecycle && index < kLists ? &lists[index] : nullptr;
}

}  // namespace

void* recycled_new(std::size_t size) {
  List* list = list_of(size);
  if (!list) return ::operator new(size);
  list->lock.lock();
  Block* block = list->first;
  if (block) list->first = block->next;
  list->lock.unlock();
  return block ? block : ::operator new((size + kStep - 1) / kStep * kStep);
}

void recycled_delete(void* memory, std::size_t size) noexcept {
  List* list = list_of(size);
  if (!list) return ::operator delete(memory);
  Block* block = new (memory) Block;
  list->lock.lock();
  block->next = list->first;
  list->first = block;
  list->lock.unlock();
}

void recycling_lock() {
  for (List& list : lists) list.lock.lock();
}

void recycling_unlock() {
  for (List& list : lists) list.lock.unlock();
}

}  // namespace heterosis
