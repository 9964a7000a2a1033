// The thread for tasks that wait for somebody outside: messages of other processes.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>

#include "lock.h"

namespace heterosis {

// Not one of the pool's: it takes no seat, since it hardly computes, and nobody else runs its tasks,
// who could then compute nothing. The thread is started when there is a first task for it.
class Lane {
 public:
  using Work = void (*)(void* context);

  // `work(context)` runs what there is for the lane, and returns when there is nothing.
  Lane(Work work, void* context) : work_(work), context_(context) {}

  // Starts the thread if it does not run. False after close(), or if the system refuses a thread.
  bool open();

  // There is work. Cheap enough for a caller that holds the engine's lock.
  void call();

  // Ends and joins the thread, once it has nothing to run.
  void close();

  // Around fork(): the child has no thread until there is work.
  void before_fork() { lock_.lock(); }
  void after_fork(bool child);

 private:
  static void* entry(void* lane);
  void serve();

  const Work work_;
  void* const context_;
  std::atomic<uint32_t> calls_{0};   // what the thread sleeps on
  std::atomic<bool> running_{false};
  std::atomic<bool> closed_{false};
  Lock lock_;                        // guards the start and the end of the thread
  pthread_t thread_{};
};

}  // namespace heterosis
