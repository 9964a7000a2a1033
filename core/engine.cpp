#include "engine.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <thread>
#include <utility>

#include "waiter.h"

namespace heterosis {
namespace {

[[gnu::tls_model("initial-exec")]] thread_local int depth = 0;

struct InsideTask {
  InsideTask() { ++depth; }
  ~InsideTask() { --depth; }
};

}  // namespace

bool inside_task() { return depth > 0; }

Engine& engine() {
  static Engine* const instance = new Engine;
  return *instance;
}

Engine::Engine()
    : byte_bound_(std::max<int64_t>(memory_counters().limit / 8, 1)),
      lane_([](void* engine) { static_cast<Engine*>(engine)->serve_lane(); }, this) {
  unreported_.reserve(kMostUnreported);  // remember() must not fail
  pool().attach(this);
}

void Engine::push(std::unique_ptr<Task> owned) {
  Task* const task = owned.release();
  for (Access& access : *task) {  // a storage written several times before it exists counts once
    const Storage& storage = *access.storage;
    if (writes(access.mode) && !storage.allocated() && !storage.variable.pending_writes()) {
      task->bytes_ += storage.nbytes();
    }
  }
  task->lasting_ = task->has_effects();
  const bool lane_runs = task->in_lane_ && lane_.open();
  const int64_t tasks = outstanding_tasks_.fetch_add(1, std::memory_order_relaxed) + 1;
  const int64_t bytes =
      outstanding_bytes_.fetch_add(task->bytes_, std::memory_order_relaxed) + task->bytes_;
  lock_.lock();
  if (task->in_lane_ && !closed_) lane_serves_ = lane_runs;
  link(*task);
  const bool ready = task->stage_ == Task::Stage::ready;
  const bool alone = closed_ && !inside_task();
  const Ref<Storage> touched = alone ? task->touched() : Ref<Storage>();
  if (alone && !touched) take(task);
  counters_.peak_tasks = std::max(counters_.peak_tasks, tasks);
  counters_.peak_bytes = std::max(counters_.peak_bytes, bytes);
  lock_.unlock();
  if (touched) wait_idle(touched->variable);
  else if (alone) run_one(task);
  else if (ready) pool().notify_of_task();
}

void Engine::begin(Task& task) {
  lock_.lock();
  link_accesses(task);
  assert(task.ungranted_ == 0);
  task.stage_ = Task::Stage::running;
  lock_.unlock();
}

void Engine::end(Task& task) {
  lock_.lock();
  unlink(task, {nullptr, true});
  lock_.unlock();
  notify_of_ready();
}

void Engine::notify_of_ready() const {
  const int64_t left = ready_count_.load(std::memory_order_seq_cst);
  if (left > 1) pool().notify(2, left);
  else if (left > 0) pool().notify_of_task();
}

void Engine::link(Task& task) {
  if (task.lasting_) lasting_.push_back(task);
  link_accesses(task);
  if (task.ungranted_ > 0 || hand_to_lane(task)) return;
  task.stage_ = Task::Stage::ready;
  ready_.push_back(task);
  ready_count_.fetch_add(1, std::memory_order_seq_cst);
}

// Writes first: a later access of the same variable by the same task then finds itself at the end
// of the queue, and only has to add its mode.
void Engine::link_accesses(Task& task) {
  ++unfinished_;
  for (Access& access : task) {
    if (writes(access.mode)) link(access, task);
  }
  for (Access& access : task) {
    if (!writes(access.mode)) link(access, task);
  }
}

// True if the lane has taken a task that may run now: for all others it runs already.
bool Engine::hand_to_lane(Task& task) {
  if (!task.in_lane_ || !lane_serves_) return false;
  task.stage_ = Task::Stage::running;
  lane_ready_.push_back(task);
  lane_.call();
  return true;
}

void Engine::serve_lane() {
  for (;;) {
    lock_.lock();
    Task* const task = lane_ready_.first();
    if (task) lane_ready_.remove(*task);
    lock_.unlock();
    if (!task) return;
    run_one(task);
  }
}

void Engine::link(Access& access, Task& task) {
  Variable& variable = access.storage->variable;
  Access* const last = variable.last_;
  if (last && last->task == &task) {
    last->mode = static_cast<Mode>(static_cast<uint8_t>(last->mode) |
                                   static_cast<uint8_t>(access.mode));
    return;  // its own task stays null: not in any queue
  }
  access.task = &task;
  if (!variable.append(access)) ++task.ungranted_;
}

Task* Engine::take(Task* task) {
  if (!task) return nullptr;
  ready_.remove(*task);
  ready_count_.fetch_sub(1, std::memory_order_seq_cst);
  task->stage_ = Task::Stage::running;
  return task;
}

bool Engine::run_some() {
  lock_.lock();
  Task* task = leaving_ ? nullptr : take_oldest();
  lock_.unlock();
  bool of_use = false;
  while (task) {
    const Ran ran = run_and_take(task, true);
    of_use = of_use || ran.of_use;
    task = ran.next;
  }
  return of_use;
}

// Runs a task and takes it out of the graph. The next task is taken under the same lock, unless a
// loop wants help: somebody waits for that.
Engine::Ran Engine::run_and_take(Task* task, bool take_next) {
  const int64_t began = take_next ? nanoseconds() : 0;
  const Outcome outcome = execute(*task);
  lock_.lock();
  unlink(*task, outcome);
  Task* const next = take_next && !leaving_ && !pool().loop_open() ? take_oldest() : nullptr;
  const bool of_use = take_next && !could_wait_for_others(began);
  account(outcome);
  lock_.unlock();
  // Also passes on a wake-up that was saved because this thread was about to look for work.
  notify_of_ready();
  discharge(task);
  return {next, of_use};
}

Engine::Outcome Engine::execute(Task& task) {
  const InsideTask inside;
  if (ErrorPointer error = task.inherited_error()) {
    task.miss(*error);
    return {std::move(error), false};
  }
  try {
    for (Access& access : task) access.storage->ensure();
    task.run();
    return {nullptr, true};
  } catch (...) {
    return {task.explain_current(), true};
  }
}

// Of the tasks that it unblocks, those that need no new memory come first. They free what they read:
// gradients are written into their arrays, and can be sent, before the way back goes on.
void Engine::unlink(Task& task, const Outcome& outcome) {
  ReadyList unblocked;
  ReadyList taking;
  --unfinished_;
  if (task.lasting_) lasting_.remove(task);
  for (Access& access : task) {
    if (!access.task) continue;
    Variable& variable = access.storage->variable;
    if (writes(access.mode)) variable.settle(outcome.error);
    const Variable::Granted granted = variable.remove(access);
    for (Access* other = granted.first; other != granted.end; other = other->next) {
      Task& next = *other->task;
      if (--next.ungranted_ > 0 || hand_to_lane(next)) continue;
      next.stage_ = Task::Stage::ready;
      (next.bytes_ > 0 ? taking : unblocked).push_back(next);
      ready_count_.fetch_add(1, std::memory_order_seq_cst);
    }
    if (variable.watchers_ > 0) signal_watchers(variable);
  }
  ready_.push_front(taking);
  ready_.push_front(unblocked);
}

void Engine::account(const Outcome& outcome) {
  ++(outcome.ran ? counters_.executed : counters_.skipped);
  if (outcome.ran && outcome.error) remember(outcome.error);
}

void Engine::remember(const ErrorPointer& error) {
  if (unreported_.size() == kMostUnreported) {
    std::erase_if(unreported_, [](const ErrorPointer& old) { return old->reported.load(); });
  }
  if (unreported_.size() < kMostUnreported) unreported_.push_back(error);
  else ++more_unreported_;
}

// Storages are released before the task stops counting: after wait_all() they are gone.
void Engine::discharge(Task* task) {
  const int64_t bytes = task->bytes_;
  delete task;
  outstanding_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  // Either a waiter that announces itself sees the new number, or this thread sees the waiter.
  outstanding_tasks_.fetch_sub(1, std::memory_order_seq_cst);
  if (outstanding_waiters_.load(std::memory_order_seq_cst) > 0) signal_outstanding();
}

void Engine::set_bounds(int64_t tasks, int64_t bytes) {
  task_bound_.store(std::max<int64_t>(tasks, 1), std::memory_order_relaxed);
  byte_bound_.store(std::max<int64_t>(bytes, 1), std::memory_order_relaxed);
  signal_outstanding();
}

EngineCounters Engine::counters() const {
  lock_.lock();
  EngineCounters counters = counters_;
  lock_.unlock();
  counters.inlined = inlined_.load(std::memory_order_relaxed);
  counters.outstanding_tasks = outstanding_tasks_.load(std::memory_order_relaxed);
  counters.outstanding_bytes = outstanding_bytes_.load(std::memory_order_relaxed);
  return counters;
}

void Engine::reset_peaks() {
  lock_.lock();
  counters_.peak_tasks = outstanding_tasks_.load(std::memory_order_relaxed);
  counters_.peak_bytes = outstanding_bytes_.load(std::memory_order_relaxed);
  lock_.unlock();
}

void Engine::shutdown(Shutdown how, Poll poll) {
  lock_.lock();
  closed_ = true;
  leaving_ = leaving_ || how == Shutdown::leave;
  lock_.unlock();
  Waiter waiter(how == Shutdown::leave ? Waiter::Goal::effects : Waiter::Goal::everything);
  await(waiter, poll);
  close_lane();
  pool().stop();
}

// What comes later, and what is left, is like all other tasks.
void Engine::close_lane() {
  lock_.lock();
  lane_serves_ = false;
  while (Task* const task = lane_ready_.first()) {
    lane_ready_.remove(*task);
    task->stage_ = Task::Stage::ready;
    ready_.push_back(*task);
    ready_count_.fetch_add(1, std::memory_order_seq_cst);
  }
  lock_.unlock();
  lane_.close();
}

void Engine::before_fork() {
  lane_.before_fork();
  for (;;) {
    lock_.lock();
    if (unfinished_ == 0 || inside_task()) return;  // holding the lock
    Task* const task = take_oldest();
    const bool lane_serves = lane_serves_;
    lock_.unlock();
    if (task) run_one(task);
    else if (lane_serves) wait_for_lane();
    else std::this_thread::sleep_for(std::chrono::microseconds(50));  // others run the rest
  }
}

// A moment, without the front end's lock.
void Engine::wait_for_lane() {
  void* const released = front_lock_.release ? front_lock_.release() : nullptr;
  std::this_thread::sleep_for(std::chrono::microseconds(50));
  if (released) front_lock_.regain(released);
}

// Of other threads nothing is left in the child but what they had listed. If there are tasks (a
// fork from inside a task), they are given up, and so are their storages.
void Engine::after_fork(bool child) {
  if (child) {
    ready_ = {};
    lane_ready_ = {};
    lane_serves_ = false;
    lasting_ = {};
    ready_count_.store(0);
    outstanding_tasks_.store(0);
    outstanding_bytes_.store(0);
    unfinished_ = 0;
    keep_own_waiters();
  }
  lock_.unlock();
  lane_.after_fork(child);
}

}  // namespace heterosis
