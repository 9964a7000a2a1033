// The engine's waits: a thread that waits helps, by running what it waits for, and sleeps only
// when others already do that.
#include <algorithm>
#include <utility>

#include "engine.h"
#include "waiter.h"

namespace heterosis {
namespace {

constexpr int64_t kMillisecond = 1'000'000;
constexpr int64_t kPollInterval = 50 * kMillisecond;
constexpr int64_t kSpin = 50'000;    // ns; about what waking up costs
constexpr int kMostSearched = 256;   // accesses looked at for a task worth running, under the lock
constexpr int64_t kWorthWaking = 5'000;  // ns
constexpr int64_t kOverlap = 8;  // the part of a task's time that its issuer has to use meanwhile

// Three quarters of a bound: a thread that waited for room should not wait again at its next push.
int64_t low_water(const std::atomic<int64_t>& bound) {
  const int64_t value = bound.load(std::memory_order_relaxed);
  return value - (value + 3) / 4;
}

}  // namespace

void Engine::wait(Variable& variable, Poll poll) {
  if (variable.readable()) return;
  Waiter waiter(Waiter::Goal::written, &variable);
  await(waiter, poll);
  lock_.lock();
  const ErrorPointer error = variable.error_;
  lock_.unlock();
  if (!error) return;
  error->reported.store(true, std::memory_order_relaxed);
  throw Failure(error);
}

void Engine::wait_idle(Variable& variable, Poll poll) {
  Waiter waiter(Waiter::Goal::idle, &variable);
  await(waiter, poll);
}

void Engine::wait_all(Poll poll) {
  if (inside_task()) {
    throw Failure(ErrorKind::internal,
                  "wait_all was called by a task, which would wait for itself. Wait for the arrays "
                  "that the task needs, or name them as its inputs.");
  }
  Waiter waiter(Waiter::Goal::everything);
  await(waiter, poll);
  throw_first_unreported();
}

void Engine::wait_for_room(Poll poll) {
  // A task that pushes tasks may go over the bounds; after shutdown() each is run by its pusher.
  if (!must_wait() || inside_task() || closed_.load(std::memory_order_relaxed)) return;
  Waiter waiter(Waiter::Goal::room);
  await(waiter, poll);
}

void Engine::throw_first_unreported() {
  std::vector<ErrorPointer> errors;
  errors.reserve(kMostUnreported);  // nothing may fail under the lock
  lock_.lock();
  int64_t others = std::exchange(more_unreported_, 0);
  errors.assign(unreported_.begin(), unreported_.end());
  unreported_.clear();
  lock_.unlock();
  std::erase_if(errors, [](const ErrorPointer& error) { return error->reported.load(); });
  if (errors.empty()) return;
  others += static_cast<int64_t>(errors.size()) - 1;
  for (const ErrorPointer& error : errors) error->reported.store(true, std::memory_order_relaxed);
  throw Failure(errors.front(), others);
}

// The caller holds lock_.
bool Engine::satisfied(const Waiter& waiter) const {
  // Sequentially consistent: see discharge().
  const int64_t tasks = outstanding_tasks_.load(std::memory_order_seq_cst);
  switch (waiter.goal) {
    case Waiter::Goal::written:
      return waiter.variable->writes_done_ >= waiter.target;
    case Waiter::Goal::idle:
      return waiter.variable->first_ == nullptr;
    case Waiter::Goal::effects:
      return !lasting_.first();
    case Waiter::Goal::everything:
      return tasks == 0;
    case Waiter::Goal::room:
      return tasks <= low_water(task_bound_) &&
             outstanding_bytes_.load(std::memory_order_relaxed) <= low_water(byte_bound_);
  }
  return true;
}

// The caller holds lock_. The waiter is announced before its goal is looked at, so that whoever
// reaches the goal later signals it.
void Engine::enlist(Waiter& waiter) {
  if (waiter.variable) {
    ++waiter.variable->watchers_;
    waiter.target = waiter.variable->writes_done_ + waiter.variable->pending_writes();
  } else {
    outstanding_waiters_.fetch_add(1, std::memory_order_seq_cst);
  }
  waiter.next = waiters_;
  if (waiters_) waiters_->previous = &waiter;
  waiters_ = &waiter;
  if (satisfied(waiter)) waiter.signal();
}

// The caller holds lock_.
void Engine::delist(Waiter& waiter) {
  if (waiter.variable) --waiter.variable->watchers_;
  else outstanding_waiters_.fetch_sub(1, std::memory_order_relaxed);
  (waiter.previous ? waiter.previous->next : waiters_) = waiter.next;
  if (waiter.next) waiter.next->previous = waiter.previous;
}

// In the child of a fork: the waiters of threads that are not there are on no stack either.
void Engine::keep_own_waiters() {
  for (Waiter* waiter = waiters_; waiter;) {
    Waiter* const next = waiter->next;
    if (!pthread_equal(waiter->thread, pthread_self())) delist(*waiter);
    waiter = next;
  }
}

// Whether the task that began then and ended now was better left to others: it is shorter than a
// wake-up, or somebody has waited for it with nothing to do, nearly all that time, and could have run
// it where its operands are in the caches. The caller holds lock_.
bool Engine::could_wait_for_others(int64_t began) const {
  const int64_t took = nanoseconds() - began;
  if (took < kWorthWaking) return true;
  for (const Waiter* waiter = waiters_; waiter; waiter = waiter->next) {
    const bool for_it = !waiter->variable || waiter->signalled();
    if (for_it && waiter->idle_since() <= began + took / kOverlap) return true;
  }
  return false;
}

void Engine::signal_watchers(Variable& variable) {
  for (Waiter* waiter = waiters_; waiter; waiter = waiter->next) {
    if (waiter->variable == &variable && satisfied(*waiter)) waiter->signal();
  }
}

void Engine::signal_outstanding() {
  lock_.lock();
  for (Waiter* waiter = waiters_; waiter; waiter = waiter->next) {
    if (!waiter->variable && satisfied(*waiter)) waiter->signal();
  }
  lock_.unlock();
}

void Engine::await(Waiter& waiter, Poll poll) {
  struct Listed {
    Engine& engine;
    Waiter& waiter;
    Listed(Engine& engine_, Waiter& waiter_) : engine(engine_), waiter(waiter_) {
      engine.lock_.lock();
      engine.enlist(waiter);
      engine.lock_.unlock();
    }
    ~Listed() {
      engine.lock_.lock();
      engine.delist(waiter);
      engine.lock_.unlock();
    }
  };
  const Listed listed(*this, waiter);
  int64_t next_poll = nanoseconds() + kPollInterval;
  while (!waiter.signalled()) {
    if (help(waiter)) {
      waiter.note_busy();
    } else {
      waiter.note_idle();
      doze(waiter, next_poll);
    }
    if (nanoseconds() < next_poll) continue;
    if (poll.call) poll.call(poll.context);
    next_poll = nanoseconds() + kPollInterval;
  }
}

// Runs one thing that the waiter needs, if there is one and a seat. False if not.
bool Engine::help(const Waiter& waiter) {
  const bool seated_already = pool().seated();
  if (!seated_already && !pool().take_seat()) return false;
  bool helped = pool().help_loop();
  if (!helped) {
    lock_.lock();
    Task* const task = take_for(waiter);
    lock_.unlock();
    helped = task != nullptr;
    if (task) run_one(task);
  }
  if (!seated_already) pool().leave_seat();
  return helped;
}

// Spins while a processor is free for that. True as soon as the waiter is signalled or a loop wants help.
bool Engine::look_out(const Waiter& waiter, int64_t until) {
  const Pool::Onlooker onlooker(pool());
  const int64_t end = std::min(nanoseconds() + kSpin, until);
  while (pool().seat_free() && nanoseconds() < end) {
    for (int turn = 0; turn < 16; ++turn) {
      if (waiter.signalled() || pool().loop_open()) return true;
      relax();
    }
  }
  return false;
}

// Looks out, then sleeps until signalled or until that time. A task that waits leaves its seat to
// others meanwhile: perhaps to those it waits for.
void Engine::doze(Waiter& waiter, int64_t until) {
  if (look_out(waiter, until) || (pool().loop_open() && pool().seat_free())) return;
  const int64_t left = until - nanoseconds();
  if (left <= 0) return;
  const bool seated = pool().seated();
  if (seated) pool().leave_seat();
  waiter.sleep(left / kMillisecond + 1);
  if (seated) pool().enter_seat();
}

// The caller holds lock_.
Task* Engine::take_for(const Waiter& waiter) {
  if (waiter.variable) return take_needed(*waiter.variable);
  return waiter.goal == Waiter::Goal::effects ? take_for_effects() : take_oldest();
}

// A ready task that has effects outside, or is needed by one; null if others run all that is
// needed next. The caller holds lock_.
Task* Engine::take_for_effects() {
  for (Task* task = lasting_.first(); task; task = lasting_.after(*task)) {
    if (task->stage_ == Task::Stage::ready) return take(task);
    if (task->stage_ == Task::Stage::running) continue;
    if (Task* const needed = take_needed(*task->blocking_variable())) return needed;
  }
  return nullptr;
}

// A ready task that `variable` waits for, directly or not; null if others run all that is needed
// next. Tasks only wait for earlier ones, so that the way down ends; a long one is not followed to
// its end, and the oldest ready task, which is likely to be at it, is taken instead. Not by a task
// that waits: one which it does not need might wait for it, on top of its own stack.
// The caller holds lock_.
Task* Engine::take_needed(Variable& variable) {
  Variable* at = &variable;
  int searched = 0;
  while (at) {
    Variable* below = nullptr;
    for (Access* access = at->first_; access && access->granted; access = access->next) {
      if (++searched > kMostSearched && !inside_task()) return take_oldest();
      Task& task = *access->task;
      if (task.stage_ == Task::Stage::ready) return take(&task);
      if (task.stage_ == Task::Stage::waiting && !below) below = task.blocking_variable();
    }
    at = below;
  }
  return nullptr;
}

}  // namespace heterosis
