#include "lock.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>

namespace heterosis {

// The only place that knows how this system sleeps on a word.
static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));

void sleep_while(std::atomic<uint32_t>& word, uint32_t value, int64_t milliseconds) {
  timespec limit{milliseconds / 1000, (milliseconds % 1000) * 1000000};
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, milliseconds < 0 ? nullptr : &limit,
          nullptr, 0);
}

void wake_sleepers(std::atomic<uint32_t>& word, int count) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

}  // namespace heterosis
