// The asynchronous engine: runs pushed tasks in an order that nobody can tell from the order of
// pushing, and side by side where they do not depend on each other.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "error.h"
#include "lane.h"
#include "lock.h"
#include "pool.h"
#include "task.h"
#include "variable.h"

namespace heterosis {

// Called about every 50 ms by a thread that waits; may throw (Ctrl-C), which ends the wait and
// leaves the engine as it was, the work still queued. A thread that waits also runs tasks, and
// polls between them.
struct Poll {
  void (*call)(void* context) = nullptr;
  void* context = nullptr;
};

// How a thread lets go of the front end's lock, which tasks in the lane may need, and takes it back.
struct FrontLock {
  void* (*release)() = nullptr;  // null from a thread that does not hold the lock
  void (*regain)(void* released) = nullptr;
};

struct EngineCounters {
  int64_t executed = 0;  // tasks run
  int64_t skipped = 0;   // tasks not run, because of an input's error
  int64_t inlined = 0;   // operations that the dispatcher ran without a task
  int64_t outstanding_tasks = 0;
  int64_t outstanding_bytes = 0;
  int64_t peak_tasks = 0;
  int64_t peak_bytes = 0;
};

// One lock guards the dependency graph. It makes the order of pushing total, so that tasks pushed
// by several threads can never wait for each other in a circle, and it is held for some tens of
// nanoseconds: once a push, once a completion (which also takes the thread's next task).
// While it is held no task, release callback or system call runs, but to wake a waiter.
//
// Waits must not be entered while holding a lock that a task, or a Storage's release callback,
// may need: the binding lets go of Python's first. push() never waits before shutdown(), and then
// only for tasks themselves, not for what they release.
class Engine final : private WorkSource {
 public:
  static constexpr int64_t kMostTasks = 4096;  // default bound: tens of ms of work, 2 MB of tasks

  // Queues a task. Never blocks; but after shutdown() it runs the task, and what this needs, before it
  // returns, unless it is called by a task.
  void push(std::unique_ptr<Task> task);

  // Around work that the calling thread runs itself, while others may issue work: it takes the place
  // in the order that pushing it would, which must be one where it can run at once, and whoever
  // depends on it waits for the end. The front end's lock is held at the beginning.
  void begin(Task& task);
  void end(Task& task);

  // Back-pressure: before a push, `if (must_wait()) wait_for_room(poll)`. One task may go over the
  // bound, so that a task larger than the bound can run at all.
  bool must_wait() const {
    constexpr auto relaxed = std::memory_order_relaxed;  // a bound, not an order
    return outstanding_tasks_.load(relaxed) >= task_bound_.load(relaxed) ||
           outstanding_bytes_.load(relaxed) >= byte_bound_.load(relaxed);
  }
  void wait_for_room(Poll poll = {});  // until a quarter of both bounds is free

  // Each at least 1. The bytes are those of written storages not allocated yet when their task is
  // pushed, and what tasks charge; by default an eighth of the memory limit may be outstanding.
  void set_bounds(int64_t tasks, int64_t bytes);

  // Until the writes pushed so far are done. Throws the variable's error, each time it is asked.
  void wait(Variable& variable, Poll poll = {});

  // Until nothing at all is pending on it: for writing to it from outside. Throws nothing.
  void wait_idle(Variable& variable, Poll poll = {});

  // Until nothing is outstanding and what finished tasks held is released. Throws the first error
  // not reported yet, and lets go of the others (Failure::others counts them; those who read the
  // variables concerned still get them). Not for tasks: refused with an error of kind internal.
  void wait_all(Poll poll = {});

  // Ends the threads. Queued tasks are run first: all of them (drain), or only those with effects
  // outside and what they need (leave). The others stay queued: who reads a result yet runs what
  // it needs, and what nobody reads is never run.
  enum class Shutdown { drain, leave };
  void shutdown(Shutdown how, Poll poll = {});

  // Called by the dispatcher, under the front end's lock, for work done without a task.
  void count_inline() {
    inlined_.store(inlined_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  EngineCounters counters() const;
  void reset_peaks();

  // Around fork(): finishes everything outstanding, so that the child finds all values computed,
  // and holds the lock. A fork from inside a task does not wait; its child inherits no tasks.
  // While tasks in the lane are outstanding, the front end's lock is let go of.
  void set_front_lock(FrontLock lock) { front_lock_ = lock; }
  void before_fork();
  void after_fork(bool child);

 private:
  friend Engine& engine();
  static constexpr std::size_t kMostUnreported = 16;
  using ReadyList = TaskList<0>;
  struct Outcome {
    ErrorPointer error;
    bool ran;
  };

  Engine();

  // WorkSource
  int64_t ready() const override {
    const int64_t count = ready_count_.load(std::memory_order_seq_cst);
    return leaving_.load(std::memory_order_relaxed) ? 0 : count;
  }
  bool run_some() override;

  // Their callers hold lock_.
  void link(Task& task);
  void link_accesses(Task& task);
  void link(Access& access, Task& task);
  void unlink(Task& task, const Outcome& outcome);
  bool hand_to_lane(Task& task);
  void close_lane();
  void account(const Outcome& outcome);
  void remember(const ErrorPointer& error);
  Task* take(Task* task);
  Task* take_oldest() { return take(ready_.first()); }
  Task* take_needed(Variable& variable);
  Task* take_for_effects();
  Task* take_for(const Waiter& waiter);
  void signal_watchers(Variable& variable);
  bool satisfied(const Waiter& waiter) const;
  bool could_wait_for_others(int64_t began) const;
  void enlist(Waiter& waiter);
  void delist(Waiter& waiter);
  void keep_own_waiters();

  // Theirs do not.
  void serve_lane();
  void wait_for_lane();
  void notify_of_ready() const;
  struct Ran {
    Task* next;   // null unless another one is to be run
    bool of_use;  // if another one was to be taken
  };
  void run_one(Task* task) { run_and_take(task, false); }
  Ran run_and_take(Task* task, bool take_next);
  Outcome execute(Task& task);
  void discharge(Task* task);
  void signal_outstanding();
  void await(Waiter& waiter, Poll poll);
  bool help(const Waiter& waiter);
  bool look_out(const Waiter& waiter, int64_t until);
  void doze(Waiter& waiter, int64_t until);
  void throw_first_unreported();

  alignas(64) std::atomic<int64_t> ready_count_{0};  // length of ready_, for those without the lock
  alignas(64) std::atomic<int64_t> outstanding_tasks_{0};
  std::atomic<int64_t> outstanding_bytes_{0};
  std::atomic<int> outstanding_waiters_{0};  // waiters for room, or for the end of everything
  alignas(64) std::atomic<int64_t> task_bound_{kMostTasks};
  std::atomic<int64_t> byte_bound_;
  std::atomic<int64_t> inlined_{0};
  std::atomic<bool> leaving_{false};  // the pool's threads run no more tasks
  std::atomic<bool> closed_{false};   // written under the lock

  alignas(64) mutable Lock lock_;  // guards all below, all variables, and tasks but running ones
  ReadyList ready_;                // newly unblocked ones in front: finish what was begun
  ReadyList lane_ready_;
  bool lane_serves_ = false;       // whether tasks that use the lane go there
  TaskList<1> lasting_;            // unfinished tasks with effects outside
  Waiter* waiters_ = nullptr;
  int64_t unfinished_ = 0;         // tasks pushed and not taken out of the graph yet
  std::vector<ErrorPointer> unreported_;  // the first few errors nobody may have been told of
  int64_t more_unreported_ = 0;           // how many came after those
  EngineCounters counters_;               // but for the fields kept in atomics above

  Lane lane_;
  FrontLock front_lock_;
};

// True while the calling thread runs a task.
bool inside_task();

// The process's engine. Never destroyed, like the pool.
Engine& engine();

}  // namespace heterosis
