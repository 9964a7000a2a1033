// The threads that compute: one set, for parallel loops and for the engine's tasks.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "abi.h"
#include "lock.h"
#include "loops.h"

namespace heterosis {

// Where an idle thread looks for tasks: implemented by the engine.
class WorkSource {
 public:
  virtual int64_t ready() const = 0;  // how many tasks: one atomic load, sequentially consistent
  // Runs ready tasks until there is none, or a loop wants help. False if who waited for them had
  // nothing else to do all the time: it could have run them itself.
  virtual bool run_some() = 0;

 protected:
  ~WorkSource() = default;
};

// Invariant: at most threads() threads hold a seat, and a thread computes only while it holds one.
// A front-end thread that starts a loop of its own takes a seat without asking: it must not wait
// for a long task, and its loop gets so many helpers fewer.
//
// Threads are started when there is work for them and none is idle, never before. An idle thread
// spins for a moment, then sleeps; the lengths adapt to how soon work used to come. Where the thread
// that issues tasks runs them, too, since it waits for them, idle ones nap, and are not woken.
class Pool {
 public:
  static constexpr int kMostThreads = 1024;

  // Threads that may compute at once, at least 1. The first value is what the process may use:
  // its affinity mask and the CPU quota of its cgroup. A change counts for work that starts later.
  int threads() const { return threads_.load(std::memory_order_relaxed); }
  void set_threads(int count);

  // Of these, how many may share the loops of one caller, at least 1: all of them, unless less is
  // set. Fewer leave the others to those who call at the same time.
  int intra_op_threads() const { return static_cast<int>(runtime()->workers); }
  void set_intra_op_threads(int count);

  // The table that compiled code is given. A table is never changed or freed: after set_threads()
  // there is another one, so that a function sees the same number of workers until it returns.
  const hx_runtime* runtime() const { return runtime_.load(std::memory_order_acquire); }

  // The contract of hx_runtime::parallel_for. From inside a loop body it runs on the calling
  // thread, with the worker number of the enclosing share.
  void parallel_for(hx_loop_body body, void* context, int64_t count, int64_t grain);

  // --- for the engine ---

  void attach(WorkSource* source) { source_.store(source, std::memory_order_release); }

  // There is work for `work` threads, and that of `count` is new: wakes sleeping ones, starts missing
  // ones. Those that look for work already are enough for as much as they are. Call it after the
  // work can be seen by ready(). Cheap when nobody sleeps and none is missing.
  void notify(int64_t count, int64_t work);
  void notify_of_task();  // one more, which the calling thread may be about to wait for

  bool take_seat();   // true if the calling thread may compute now; then leave_seat() later
  void enter_seat();  // takes a seat, free or not
  void leave_seat();  // wakes somebody else if work is left
  bool seated() const;  // the calling thread holds a seat
  bool seat_free() const { return seats_.load(std::memory_order_seq_cst) < threads(); }

  bool loop_open() const { return loops_.open(); }
  bool help_loop();  // takes part in one open loop; false if there was none to help

  // While a thread holds one, it looks at loop_open() all the time and helps: loops wake a thread
  // fewer. Look once more after letting go of it, before a sleep.
  class Onlooker {
   public:
    explicit Onlooker(Pool& pool) : pool_(pool) { pool_.onlookers_.fetch_add(1); }
    ~Onlooker() { pool_.onlookers_.fetch_sub(1); }
    Onlooker(const Onlooker&) = delete;
    Onlooker& operator=(const Onlooker&) = delete;

   private:
    Pool& pool_;
  };

  // Ends and joins all threads. Loops run on their caller from then on.
  void stop();

  // Around fork(). The child has no threads until it has work. A fork from inside a loop body is
  // not supported: the child would wait for shares that only the parent has.
  void before_fork();
  void after_fork(bool child);

 private:
  friend Pool& pool();
  class Helpers;
  struct Team;
  struct Worker;

  Pool();
  static void* worker_entry(void* worker);
  void share_among(int threads, int most_shared);
  static void run_team(void* team, hx_loop_body, void* context, int64_t count, int64_t grain);
  void run_loop(const LoopBody& loop, int workers);
  void finish_loop(LoopTable::Slot& slot, int64_t most, int64_t shares);
  void notify_of_loop(int64_t helpers);
  bool helpers_sleep(int64_t helpers) const;
  bool waking_pays();
  void ask_for_help();
  void serve(Worker& worker);
  enum class Turn { idle, in_vain, of_use };
  Turn work();
  static void learn(Worker& worker, Turn turn);
  bool naps(const Worker& worker) const;
  bool tasks_wait() const;
  bool work_waits() const { return loops_.open() || tasks_wait(); }
  bool may_start() const { return work_waits() && seat_free(); }
  bool stays() const;
  bool crowded() const;
  bool spin(Worker& worker);
  bool look_for_work(int64_t end) const;
  void park(Worker& worker);
  bool nap(Worker& worker);
  bool unlist(Worker& worker);
  int wake(int count);
  void start(int count);
  bool start_one();

  // What different threads write often lies on cache lines of its own.
  LoopTable loops_;
  alignas(64) std::atomic<int> seats_{0};     // threads computing
  alignas(64) std::atomic<int> sleepers_{0};  // length of the list at sleeping_
  std::atomic<int> spinners_{0};              // idle threads that still look for work
  std::atomic<int> onlookers_{0};             // waiting threads that look for loops to help
  std::atomic<int> nappers_{0};               // sleepers that look for tasks now and then
  std::atomic<int> unaided_{0};               // loops that wake nobody after the last futile one
  std::atomic<int> unaided_left_{0};          // and how many of them are to come
  alignas(64) std::atomic<int64_t> put_off_{0};  // counts tasks that are left to nappers
  alignas(64) std::atomic<int> threads_{1};
  std::atomic<int> most_shared_{kMostThreads};
  std::atomic<int> started_{0};
  std::atomic<bool> stopped_{false};
  std::atomic<bool> several_processors_{true};
  std::atomic<const hx_runtime*> runtime_{nullptr};
  std::atomic<WorkSource*> source_{nullptr};

  Lock sleep_lock_;  // guards sleeping_ and the links of its workers
  Worker* sleeping_ = nullptr;
  Lock start_lock_;  // guards workers_ and teams_; taken before sleep_lock_
  Worker* workers_ = nullptr;
  Team* teams_ = nullptr;
};

// The process's pool. Never destroyed: threads may outlive static objects at exit.
Pool& pool();

inline const hx_runtime* runtime() { return pool().runtime(); }

}  // namespace heterosis
