#include "allocator.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>

#include "error.h"
#include "lock.h"
#include "resources.h"
#include "size_class.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#endif

namespace heterosis {
namespace {

constexpr int64_t kPage = int64_t{4} << 10;
constexpr int64_t kHugePage = int64_t{2} << 20;
constexpr int64_t kSmall = int64_t{32} << 10;    // up to here, blocks come from the C library
constexpr int64_t kRegion = int64_t{128} << 20;  // of huge pages, which larger blocks share
constexpr int64_t kLarge = int64_t{16} << 20;    // from here on, blocks are whole huge pages
static_assert(class_size(class_of(kSmall + 1)) % kPage == 0, "shared pages: whole small ones");
static_assert(class_size(class_of(kLarge + 1)) % kHugePage == 0, "whole huge pages");
constexpr int64_t kScratch = 2 * kSmall;  // from here on, page faults of scratch matter
constexpr int64_t kLargeScratch = int64_t{4} << 20;  // and it grows by whole huge pages that move

struct Block {
  Block* next;
  int64_t size;
};

struct alignas(64) BlockList {
  Lock lock;
  Block* first = nullptr;
  std::atomic<int64_t> count{0};  // written under the lock
  int64_t used = 0;               // value of `age` when a block last came or went
};

// Where the next block of a middle size is cut from. Blocks are given back to the system one by
// one, in any order: nothing needs to remember which regions there were.
struct Region {
  Lock lock;  // taken last; whoever holds it may ask the system for memory
  char* next = nullptr;
  char* end = nullptr;
};

// Invariants: reserved = live + cached, in bytes of whole blocks; reserved <= the memory limit.
// The fast path (a block from the list of its class) touches `live` alone; `cached` is the
// difference, and `reserved` changes only where the system is asked.
struct Memory {
  BlockList classes[kClasses];
  BlockList scratch;  // of any size from `kScratch` on
  alignas(64) std::atomic<int64_t> live{0};
  std::atomic<int64_t> peak{0};
  alignas(64) std::atomic<int64_t> reserved{0};
  std::atomic<int64_t> limit{0};
  std::atomic<int64_t> cache_limit{0};
  std::atomic<int64_t> age{0};  // blocks asked from the system so far: a clock for `used`
  Lock trim_lock;               // one thread at a time gives blocks back; before class locks
  Region region;

  Memory() {
    limit = available_memory();
    cache_limit = limit / 4;
  }
};

Memory& memory() {
  static Memory* const instance = new Memory;  // never destroyed: threads may outlive statics
  return *instance;
}

Block* pop(BlockList& list, int64_t age) {
  list.lock.lock();
  Block* block = list.first;
  if (block) {
    list.first = block->next;
    list.count.store(list.count.load(std::memory_order_relaxed) - 1,
                           std::memory_order_relaxed);
  }
  list.used = age;
  list.lock.unlock();
  return block;
}

void push(BlockList& list, Block* block, int64_t age) {
  list.lock.lock();
  block->next = list.first;
  list.first = block;
  list.count.store(list.count.load(std::memory_order_relaxed) + 1,
                         std::memory_order_relaxed);
  list.used = age;
  list.lock.unlock();
}

void* map_anonymous(int64_t size) {
  void* block = mmap(nullptr, static_cast<std::size_t>(size), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return block == MAP_FAILED ? nullptr : block;
}

void unmap(char* begin, char* end) {
  if (begin < end) munmap(begin, static_cast<std::size_t>(end - begin));
}

// Aligned to a huge page: map one more than needed, and cut off both ends.
void* map_huge(int64_t size) {
  char* const begin = static_cast<char*>(map_anonymous(size + kHugePage));
  if (!begin) return nullptr;
  const auto address = reinterpret_cast<uintptr_t>(begin);
  char* const block = begin + (-address & (kHugePage - 1));
  unmap(begin, block);
  unmap(block + size, begin + size + kHugePage);
  madvise(block, static_cast<std::size_t>(size), MADV_HUGEPAGE);  // advice: may be refused
  return block;
}

// Parameters are often a few hundred KB, or a few MB. In huge pages they need few entries of the
// processor's table of addresses, and they fill a cache evenly, which scattered small pages do not.
void* cut_from_region(Region& region, int64_t size) {
  region.lock.lock();
  if (region.end - region.next < size) {
    unmap(region.next, region.end);
    region.next = static_cast<char*>(map_huge(kRegion));
    region.end = region.next ? region.next + kRegion : nullptr;
  }
  char* const block = region.next;
  if (block) region.next += size;
  region.lock.unlock();
  return block;
}

// A block of the system's; from `large` on, it shares no huge page with others.
void* system_allocate(int64_t size, int64_t large = kLarge) {
  if (size >= large) return map_huge(size);
  if (size > kSmall) return cut_from_region(memory().region, size);
  return std::aligned_alloc(64, static_cast<std::size_t>(size));
}

// A mapping of another size in place of one. Pages of the old one that were touched are not touched
// for the first time again. Null where the system refuses: then the old one is as it was.
void* map_larger(void* block, int64_t size, int64_t larger) {
  void* const place = system_allocate(larger, kLargeScratch);  // where huge pages are aligned
  if (!place) return nullptr;
  ASAN_UNPOISON_MEMORY_REGION(block, static_cast<std::size_t>(size));
  void* const moved = mremap(block, static_cast<std::size_t>(size), static_cast<std::size_t>(larger),
                             MREMAP_MAYMOVE | MREMAP_FIXED, place);
  if (moved == MAP_FAILED) {
    munmap(place, static_cast<std::size_t>(larger));
    return nullptr;
  }
  if (larger >= kLargeScratch) madvise(moved, static_cast<std::size_t>(larger), MADV_HUGEPAGE);
  return moved;
}

void system_free(void* block, int64_t size) {
  ASAN_UNPOISON_MEMORY_REGION(block, static_cast<std::size_t>(size));
  if (size > kSmall) munmap(block, static_cast<std::size_t>(size));
  else std::free(block);
}

void free_block(Memory& memory, Block* block) {
  const int64_t size = block->size;
  system_free(block, size);
  memory.reserved.fetch_sub(size, std::memory_order_relaxed);
}

struct Stale {
  BlockList* list = nullptr;
  int64_t used = 0;
};

void choose_stalest(Stale& stalest, BlockList& candidate) {
  if (candidate.count.load(std::memory_order_relaxed) == 0) return;
  candidate.lock.lock();
  const int64_t used = candidate.used;
  candidate.lock.unlock();
  if (!stalest.list || used < stalest.used) stalest = {&candidate, used};
}

// The non-empty list whose blocks came or went longest ago; of several, that of the largest.
Stale stalest_list(Memory& memory) {
  Stale stalest;
  for (int index = kClasses; index-- > 0;) choose_stalest(stalest, memory.classes[index]);
  choose_stalest(stalest, memory.scratch);
  return stalest;
}

// Gives `bytes` or more of the cache back to the system, or all there is. Returns how many.
int64_t trim(Memory& memory, int64_t bytes) {
  int64_t freed = 0;
  memory.trim_lock.lock();
  while (freed < bytes) {
    const Stale stale = stalest_list(memory);
    if (!stale.list) break;
    while (freed < bytes) {
      Block* block = pop(*stale.list, stale.used);  // keeps its age: this is no use of it
      if (!block) break;
      freed += block->size;
      free_block(memory, block);
    }
  }
  memory.trim_lock.unlock();
  return freed;
}

void trim_to_cache_limit(Memory& memory) {
  const int64_t cached = memory.reserved.load(std::memory_order_relaxed) -
                         memory.live.load(std::memory_order_relaxed);
  const int64_t excess = cached - memory.cache_limit.load(std::memory_order_relaxed);
  if (excess > 0) trim(memory, excess);
}

[[noreturn]] void throw_out_of_memory(Memory& memory, int64_t asked) {
  throw OutOfMemory(asked, memory.live.load(std::memory_order_relaxed),
                    memory.limit.load(std::memory_order_relaxed));
}

// Takes `size` bytes of the limit before they are asked for, so that threads side by side cannot
// pass it together. What could not be had with an empty cache leaves the cache alone.
bool reserve(Memory& memory, int64_t size) {
  const int64_t limit = memory.limit.load(std::memory_order_relaxed);
  int64_t reserved = memory.reserved.load(std::memory_order_relaxed);
  while (memory.live.load(std::memory_order_relaxed) + size <= limit) {
    if (reserved + size > limit) {
      const int64_t freed = trim(memory, reserved + size - limit);
      const int64_t before = reserved;
      reserved = memory.reserved.load(std::memory_order_relaxed);
      if (freed == 0 && reserved >= before) return false;  // nor did anybody else free anything
    } else if (memory.reserved.compare_exchange_weak(reserved, reserved + size,
                                                     std::memory_order_relaxed)) {
      return true;
    }
  }
  return false;
}

void* allocate_from_system(Memory& memory, int64_t size, int64_t asked, int64_t large = kLarge) {
  memory.age.fetch_add(1, std::memory_order_relaxed);
  if (!reserve(memory, size)) throw_out_of_memory(memory, asked);
  void* block = system_allocate(size, large);
  if (!block) {
    trim(memory, kLargestBlock);
    block = system_allocate(size, large);
  }
  if (block) return block;
  memory.reserved.fetch_sub(size, std::memory_order_relaxed);
  throw_out_of_memory(memory, asked);
}

void raise_peak(Memory& memory, int64_t live) {
  int64_t peak = memory.peak.load(std::memory_order_relaxed);
  while (live > peak &&
         !memory.peak.compare_exchange_weak(peak, live, std::memory_order_relaxed)) {
  }
}

// Counts a block as lent, unless that passes the limit.
bool lend(Memory& memory, int64_t size) {
  const int64_t live = memory.live.fetch_add(size, std::memory_order_relaxed) + size;
  if (live > memory.limit.load(std::memory_order_relaxed)) {
    memory.live.fetch_sub(size, std::memory_order_relaxed);
    return false;
  }
  raise_peak(memory, live);
  return true;
}

void put_back(Memory& memory, BlockList& list, void* block, int64_t size) {
  ASAN_POISON_MEMORY_REGION(static_cast<char*>(block) + sizeof(Block),
                            static_cast<std::size_t>(size) - sizeof(Block));
  ASAN_UNPOISON_MEMORY_REGION(block, sizeof(Block));
  push(list, new (block) Block{nullptr, size}, memory.age.load(std::memory_order_relaxed));
}

// -- scratch: few blocks, each as large as the largest call that had it ---------------------------

// Where the block is linked that serves best: the smallest that is large enough, else the largest.
// There are as many as calls at one time at most. Under the lock.
Block** best_of(BlockList& list, int64_t size) {
  Block** best = &list.first;
  for (Block** at = &list.first; *at; at = &(*at)->next) {
    const int64_t one = (*at)->size, found = (*best)->size;
    const bool better = found < size ? one > found : one >= size && one < found;
    if (better) best = at;
  }
  return best;
}

Block* pop_best(BlockList& list, int64_t size, int64_t age) {
  list.lock.lock();
  Block** const place = best_of(list, size);
  Block* const block = *place;
  if (block) {
    *place = block->next;
    list.count.store(list.count.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
  }
  list.used = age;
  list.lock.unlock();
  return block;
}

// A larger block, of the pages of one that is too small if there is such.
void* larger_scratch(Memory& memory, Block* small, int64_t size, int64_t asked) {
  if (small) {
    const int64_t had = small->size;
    if (had < size && reserve(memory, size - had)) {
      memory.age.fetch_add(1, std::memory_order_relaxed);
      if (void* larger = map_larger(small, had, size)) return larger;
      memory.reserved.fetch_sub(size - had, std::memory_order_relaxed);
    }
    free_block(memory, small);
  }
  return allocate_from_system(memory, size, asked, kLargeScratch);
}

std::string readable(int64_t bytes) {
  static constexpr const char* kUnits[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  for (; value >= 1024 && unit < 6; ++unit) value /= 1024;
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", value, kUnits[unit]);
  return text;
}

}  // namespace

OutOfMemory::OutOfMemory(int64_t asked_, int64_t live_, int64_t limit_)
    : std::runtime_error("out of memory: asked for " + readable(asked_) + " with " +
                         readable(live_) + " in use, of " + readable(limit_) +
                         " that may be used. Use smaller pieces, drop arrays that are no longer "
                         "needed, or raise the memory limit."),
      asked(asked_),
      live(live_),
      limit(limit_) {}

void* allocate(int64_t nbytes) {
  Memory& all = memory();
  if (nbytes < 0 || nbytes > kLargestBlock) throw_out_of_memory(all, nbytes);
  const int index = class_of(std::max<int64_t>(nbytes, 1));
  const int64_t size = class_size(index);
  void* block = pop(all.classes[index], all.age.load(std::memory_order_relaxed));
  if (!block) block = allocate_from_system(all, size, nbytes);
  if (!lend(all, size)) {  // the limit was lowered since the block was cached
    put_back(all, all.classes[index], block, size);
    throw_out_of_memory(all, nbytes);
  }
  ASAN_UNPOISON_MEMORY_REGION(block, static_cast<std::size_t>(nbytes));
  return block;
}

void deallocate(void* block, int64_t nbytes) noexcept {
  Memory& all = memory();
  const int index = class_of(std::max<int64_t>(nbytes, 1));
  const int64_t size = class_size(index);
  put_back(all, all.classes[index], block, size);
  all.live.fetch_sub(size, std::memory_order_relaxed);
  trim_to_cache_limit(all);
}

Scratch::Scratch(int64_t nbytes) : size_(nbytes) {
  if (nbytes < kScratch) {
    data_ = allocate(nbytes);
    return;
  }
  Memory& all = memory();
  if (nbytes > kLargestBlock) throw_out_of_memory(all, nbytes);
  const int64_t least = class_size(class_of(nbytes));
  Block* block = pop_best(all.scratch, least, all.age.load(std::memory_order_relaxed));
  if (block && block->size >= least && lend(all, block->size)) {
    data_ = block;
    size_ = block->size;
  } else {  // also where the limit has room for a smaller one alone
    data_ = larger_scratch(all, block, least, nbytes);
    size_ = least;
    if (!lend(all, size_)) {
      put_back(all, all.scratch, data_, size_);
      throw_out_of_memory(all, nbytes);
    }
  }
  ASAN_UNPOISON_MEMORY_REGION(data_, static_cast<std::size_t>(nbytes));
}

Scratch::~Scratch() {
  if (size_ < kScratch) {
    deallocate(data_, size_);
    return;
  }
  Memory& all = memory();
  put_back(all, all.scratch, data_, size_);
  all.live.fetch_sub(size_, std::memory_order_relaxed);
  trim_to_cache_limit(all);
}

MemoryCounters memory_counters() {
  Memory& all = memory();
  MemoryCounters counters;
  counters.live = all.live.load(std::memory_order_relaxed);
  counters.peak = all.peak.load(std::memory_order_relaxed);
  counters.cached =
      std::max<int64_t>(0, all.reserved.load(std::memory_order_relaxed) - counters.live);
  counters.limit = all.limit.load(std::memory_order_relaxed);
  counters.cache_limit = all.cache_limit.load(std::memory_order_relaxed);
  counters.system_calls = all.age.load(std::memory_order_relaxed);
  return counters;
}

void reset_peak() {
  Memory& all = memory();
  all.peak.store(all.live.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

void set_memory_limit(int64_t bytes) {
  memory().limit.store(std::max<int64_t>(bytes, 0), std::memory_order_relaxed);
}

void set_cache_limit(int64_t bytes) {
  memory().cache_limit.store(std::max<int64_t>(bytes, 0), std::memory_order_relaxed);
  trim_to_cache_limit(memory());
}

void empty_cache() { trim(memory(), kLargestBlock); }

void allocator_lock() {
  memory().trim_lock.lock();
  for (BlockList& list : memory().classes) list.lock.lock();
  memory().scratch.lock.lock();
  memory().region.lock.lock();
}

void allocator_unlock() {
  memory().region.lock.unlock();
  memory().scratch.lock.unlock();
  for (BlockList& list : memory().classes) list.lock.unlock();
  memory().trim_lock.unlock();
}

}  // namespace heterosis
