// Memory of arrays: size classes over the operating system, with a cache of freed blocks, so that
// temporaries of a loop come back without page faults.
#pragma once

#include <cstddef>
#include <cstdint>

namespace heterosis {

struct MemoryCounters {
  int64_t live = 0;         // bytes handed out, rounded up to size classes
  int64_t peak = 0;         // largest `live` since the start or reset_peak()
  int64_t cached = 0;       // bytes kept for reuse
  int64_t limit = 0;        // bound on `live`
  int64_t cache_limit = 0;  // bound on `cached`
  int64_t system_calls = 0; // blocks asked from the system, in total: what the cache did not have
};

// All functions may be called from any thread at any time.

// `nbytes` bytes, 64-byte aligned, not cleared. Throws OutOfMemory rather than exceed the limit.
void* allocate(int64_t nbytes);

// `nbytes` must be the size asked for.
void deallocate(void* block, int64_t nbytes) noexcept;

// Memory for the time of one call: what a compiled function computes in. 64-byte aligned, not
// cleared; throws OutOfMemory.
//
// Calls of all programs at all sizes share a few blocks, which grow: a size never seen touches no
// fresh pages, unless it is the largest so far. Invariant: a block is lent to one Scratch at most.
// Calls at the same time, and one inside another, have different blocks, and there are never more
// blocks than there were of these at one time.
class Scratch {
 public:
  explicit Scratch(int64_t nbytes);
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  void* data() const { return data_; }

 private:
  void* data_;
  int64_t size_;  // of the block; what was asked for, if that is little
};

MemoryCounters memory_counters();
void reset_peak();

// Limits in bytes. By default live bytes may fill the memory that was available to the process
// (of the machine, or of its cgroup where that is less) at the first allocation, and the cache a
// quarter of it. A lower cache limit is obeyed at once, a lower limit by new requests.
void set_memory_limit(int64_t bytes);
void set_cache_limit(int64_t bytes);

// Returns all cached blocks to the system.
void empty_cache();

// Around fork(), like recycling_lock().
void allocator_lock();
void allocator_unlock();

}  // namespace heterosis
