#include "lane.h"

#include <csignal>

namespace heterosis {

bool Lane::open() {
  if (running_.load(std::memory_order_acquire)) return true;
  lock_.lock();
  if (!running_.load(std::memory_order_relaxed) && !closed_.load(std::memory_order_relaxed)) {
    sigset_t all;  // signals are the front end's
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const bool made = pthread_create(&thread_, nullptr, entry, this) == 0;
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    running_.store(made, std::memory_order_release);
  }
  const bool running = running_.load(std::memory_order_relaxed);
  lock_.unlock();
  return running;
}

void Lane::call() {
  calls_.fetch_add(1, std::memory_order_release);
  wake_sleepers(calls_, 1);
}

void Lane::close() {
  lock_.lock();
  closed_.store(true, std::memory_order_release);
  const bool runs = running_.exchange(false, std::memory_order_acq_rel);
  const pthread_t thread = thread_;
  lock_.unlock();
  if (!runs) return;
  call();
  pthread_join(thread, nullptr);
}

void Lane::after_fork(bool child) {
  if (child) running_.store(false, std::memory_order_relaxed);
  lock_.unlock();
}

void* Lane::entry(void* lane) {
  pthread_setname_np(pthread_self(), "heterosis lane");
  static_cast<Lane*>(lane)->serve();
  return nullptr;
}

// Looks at the calls before it looks for work: a call in between ends the sleep at once.
void Lane::serve() {
  for (;;) {
    const uint32_t seen = calls_.load(std::memory_order_acquire);
    work_(context_);
    if (closed_.load(std::memory_order_acquire)) return;
    sleep_while(calls_, seen, -1);
  }
}

}  // namespace heterosis
