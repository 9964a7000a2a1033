// Which processor a thread computes on, where the system's own choice costs milliseconds: beside
// other busy processes, whose time slices are that long.
//
// The system takes a thread's processor away now and then in the middle of a share of a loop. Who
// waits for that share then has a processor and nothing to compute: it lends its own, which the
// system would take longer to think of than the share takes. And it gives a thread that is woken
// the processor of the one that wakes it, if no other is free: two threads at one loop then take
// turns on one processor, while a stranger keeps the other.
#pragma once

#include <array>
#include <atomic>

namespace heterosis {

// While it lives, the calling thread is known to take part in what `work` names.
class Participation {
 public:
  explicit Participation(const void* work);
  ~Participation() { current_->store(before_, std::memory_order_release); }
  Participation(const Participation&) = delete;
  Participation& operator=(const Participation&) = delete;

 private:
  std::atomic<const void*>* current_;
  const void* before_;  // what it takes part in besides: loops run inside tasks
};

// While it lives, other participants of `work` that wait for a processor may use the calling
// thread's, which is about to sleep. Afterwards they wait for another one again. Where the system
// does not allow it, nothing is lent.
class Lending {
 public:
  explicit Lending(const void* work);
  ~Lending();
  Lending(const Lending&) = delete;
  Lending& operator=(const Lending&) = delete;

  int guests() const { return count_; }

 private:
  static constexpr int kMostGuests = 8;
  std::array<const void*, kMostGuests> guests_;
  int count_ = 0;
};

// The number of the processor that the calling thread is on, negative where that is not known.
int processor_here();

// Moves the calling thread to another processor that it may use, if there is one: it may have to
// wait there.
void leave_processor();

// Around fork(). In the child there is only the calling thread.
void processors_before_fork();
void processors_after_fork(bool child);

}  // namespace heterosis
