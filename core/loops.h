// Parallel loops in progress: a table of slots where threads find shares to run, without a lock.
#pragma once

#include <atomic>
#include <cstdint>

#include "abi.h"

namespace heterosis {

struct LoopBody {
  hx_loop_body body;
  void* context;
  int64_t count;
  int64_t grain;

  int64_t shares() const { return (count - 1) / grain + 1; }
  void run_share(int64_t share, int64_t worker) const;
};

struct LoopHook {
  void (*call)(void* context) = nullptr;
  void* context = nullptr;
};

// A loop is in one slot from open() to finish(). Slots are never freed, so that a thread which was
// about to join a loop that has ended, however late it is, only finds the slot empty, or joins the
// loop that is there by then. That is why nobody waits for a thread that holds no share.
//
// `ticket` holds both what a thread needs to join: worker numbers left and shares left. A
// participant claims its next share before it reports the last one, so that from joining to its
// final report the loop cannot end: during that time, and only then, it may look at the slot.
class LoopTable {
 public:
  struct Slot;

  // Puts a loop up for at most `workers` participants. The caller is one of them, its worker
  // number and its first share are 0. Null if all slots are taken.
  Slot* open(const LoopBody& loop, int workers);

  // Runs the caller's shares, then waits for those that others hold, and frees the slot.
  // `after_first` is called when the caller's first share is done, before the others. Returns how
  // many have helped.
  int64_t finish(Slot& slot, LoopHook after_first = {});

  // A participant's first share. Once claimed, it must be worked on.
  struct Claim {
    Slot* slot = nullptr;  // null if no loop wants help
    int64_t share = 0;
    int64_t worker = 0;
  };
  Claim claim();

  // Runs the claimed share, then further ones of the same loop until none is left.
  void work(const Claim& claim, LoopHook after_first = {});

  bool open() const { return open_.load(std::memory_order_seq_cst) != 0; }

  // In the child of a fork: forgets loops whose owners are not there.
  void clear();

  LoopTable();
  ~LoopTable();

 private:
  Claim join(Slot& slot);
  void close(Slot& slot);
  void report(Slot& slot);
  void wait_for_others(Slot& slot);
  static bool spin_for_others(const Slot& slot, int64_t end);
  void sleep_for_others(Slot& slot);

  static constexpr int kSlots = 64;  // one bit each below

  alignas(64) std::atomic<uint64_t> open_{0};  // slots whose loop wants helpers
  alignas(64) std::atomic<uint64_t> used_{0};  // slots that have an owner
  std::atomic<uint32_t> ends_{0};              // counts ends of loops that an owner slept for
  std::atomic<int> sleeping_owners_{0};
  Slot* const slots_;
};

// What the calling thread is doing: whether inside a share, and with which worker number.
bool inside_share();
int64_t current_worker();

}  // namespace heterosis
