// A thread that waits for the engine. Private to the engine's own files.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <limits>

#include "lock.h"

namespace heterosis {

class Variable;

// Lives on the stack of the waiting thread, listed with the engine meanwhile. The engine's lock
// guards all but `state_`; signals come under that lock, and the waiting thread takes it once more
// to leave the list, so that no signal can come too late for this object.
struct Waiter {
  enum class Goal { written, idle, effects, everything, room };

  explicit Waiter(Goal goal_, Variable* variable_ = nullptr) : goal(goal_), variable(variable_) {}

  bool signalled() const { return state_.load(std::memory_order_acquire) == kSignalled; }

  void signal() {
    if (state_.exchange(kSignalled, std::memory_order_acq_rel) == kAsleep) {
      wake_sleepers(state_, 1);
    }
  }

  // Since when it has had nothing to do but wait, by the clock; of interest to those who compute.
  void note_idle() {
    if (idle_since() == kBusy) idle_since_.store(nanoseconds(), std::memory_order_relaxed);
  }
  void note_busy() { idle_since_.store(kBusy, std::memory_order_relaxed); }
  int64_t idle_since() const { return idle_since_.load(std::memory_order_relaxed); }

  // Sleeps at most so long; may return early.
  void sleep(int64_t milliseconds) {
    uint32_t state = kAwake;
    if (!state_.compare_exchange_strong(state, kAsleep, std::memory_order_acq_rel)) return;
    sleep_while(state_, kAsleep, milliseconds);
    state = kAsleep;
    state_.compare_exchange_strong(state, kAwake, std::memory_order_acq_rel);
  }

  const pthread_t thread = pthread_self();
  const Goal goal;
  Variable* const variable;  // of goals written and idle
  uint64_t target = 0;       // of goal written: the variable's writes_done_ to reach
  Waiter* previous = nullptr;
  Waiter* next = nullptr;

 private:
  static constexpr int64_t kBusy = std::numeric_limits<int64_t>::max();
  static constexpr uint32_t kAwake = 0;
  static constexpr uint32_t kAsleep = 1;
  static constexpr uint32_t kSignalled = 2;
  std::atomic<uint32_t> state_{kAwake};
  std::atomic<int64_t> idle_since_{kBusy};
};

}  // namespace heterosis
