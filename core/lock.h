// The lock of very short sections, and the sleep of long waits.
#pragma once

#include <sched.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace heterosis {

// Tells the core that this is a spin loop.
inline void relax() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");  // unlike `yield`, long enough to leave the line to others
#endif
}

inline int64_t nanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Spins, then yields. For sections of a few dozen instructions that call nothing: releasing is one
// plain store. A holder that loses its core is rare, and the waiting threads then give it theirs.
class Lock {
 public:
  void lock() {
    if (held_.exchange(true, std::memory_order_acquire)) lock_contended();
  }
  void unlock() { held_.store(false, std::memory_order_release); }

 private:
  void lock_contended() {
    for (int round = 0; held_.exchange(true, std::memory_order_acquire);) {
      while (held_.load(std::memory_order_relaxed)) {
        if (++round < kSpins) relax();
        else sched_yield();
      }
    }
  }

  static constexpr int kSpins = 200;
  std::atomic<bool> held_{false};
};

// Sleeps while `word` is `value`, at most `milliseconds` (negative: for any time). May return
// early, as on a signal; callers look again.
void sleep_while(std::atomic<uint32_t>& word, uint32_t value, int64_t milliseconds);

// Wakes up to `count` of the threads that sleep on `word`.
void wake_sleepers(std::atomic<uint32_t>& word, int count);

}  // namespace heterosis
