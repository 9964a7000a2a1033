#include "pool.h"

#include <csignal>

#include <algorithm>
#include <new>
#include <utility>

#include "processors.h"
#include "resources.h"

namespace heterosis {
namespace {

[[gnu::tls_model("initial-exec")]] thread_local bool holds_seat = false;
[[gnu::tls_model("initial-exec")]] thread_local bool in_pool = false;  // the thread is a Worker's

constexpr int kWakes = 2;  // threads woken at a time; each wakes more while there is work

// A thread that is woken on a busy machine takes the processor of the one that woke it, and finds
// the loop where that left it. So after a wake-up that brought a short loop no help, the next one
// wakes nobody, after another one the next three, and so on up to this.
constexpr int kMostUnaided = 127;
constexpr int64_t kShortLoop = 20'000;  // ns; longer ones are worth waking somebody

// How long an idle thread spins, in ns. Work is likely to follow work: the operations of one
// compiled function come microseconds apart, those of a program tens. A sleeping thread costs the
// one that wakes it about 2 us, and itself 5 to 50.
constexpr int64_t kSpin = 50'000;
constexpr int64_t kLeastPatience = 16;  // the spin shrinks to a sixteenth while it proves futile
constexpr int64_t kGrace = 2'000;  // ns; how long a task is left to the thread that issued it

// To wake a thread costs the one that does it as much as a small task, and what it runs it has to
// fetch from the other's caches. After so many turns in a row that were of no use, since those who
// issue tasks wait for them and then run them, or could have, a thread naps: it looks for tasks now
// and then, and nobody wakes it for a single one. When it is of use after a nap, it takes twice as
// many before the next ones.
constexpr int kFutileTurns = 8;
constexpr int kMostFutileTurns = 1024;
constexpr int64_t kNap = 1;         // milliseconds; twice as long each time that nothing is found
constexpr int64_t kLongestNap = 8;
constexpr int kIdleNaps = 6;        // so many without a new task, and the thread sleeps on

}  // namespace

struct Pool::Team {
  hx_runtime table;
  Pool* pool;
  int workers;
  Team* next;
};

struct Pool::Worker {
  Pool* pool = nullptr;
  pthread_t thread{};
  Worker* next = nullptr;           // in workers_
  Worker* next_sleeping = nullptr;  // in sleeping_
  std::atomic<uint32_t> awake{1};
  int woken_from = -1;              // the processor of who woke it last
  int64_t patience = 1;             // divides the time to spin
  int futile_turns = 0;             // in a row
  int most_futile = kFutileTurns;   // before it naps
  bool naps_ended = false;          // since there was a task
};

Pool& pool() {
  static Pool* const instance = new Pool;
  return *instance;
}

Pool::Pool() {
  const int processors = usable_processors();
  several_processors_ = processors > 1;
  set_threads(processors);
}

void Pool::set_threads(int count) {
  share_among(std::clamp(count, 1, kMostThreads), most_shared_);
  if (work_waits()) notify(threads(), threads());  // seats may have been added
}

void Pool::set_intra_op_threads(int count) {
  share_among(threads(), std::clamp(count, 1, kMostThreads));
}

void Pool::share_among(int threads, int most_shared) {
  const int workers = std::min(threads, most_shared);
  auto fresh = std::make_unique<Team>();  // before the lock: it may fail
  start_lock_.lock();
  Team* team = teams_;
  while (team && team->workers != workers) team = team->next;
  if (!team) {
    team = fresh.release();
    *team = {{team, run_team, workers}, this, workers, teams_};
    teams_ = team;
  }
  threads_.store(threads, std::memory_order_seq_cst);
  most_shared_.store(most_shared, std::memory_order_relaxed);
  runtime_.store(&team->table, std::memory_order_release);
  start_lock_.unlock();
}

void Pool::run_team(void* team, hx_loop_body body, void* context, int64_t count, int64_t grain) {
  if (count <= 0) return;
  const Team& self = *static_cast<Team*>(team);
  self.pool->run_loop({body, context, count, std::max<int64_t>(grain, 1)}, self.workers);
}

void Pool::parallel_for(hx_loop_body body, void* context, int64_t count, int64_t grain) {
  const hx_runtime* table = runtime();
  table->parallel_for(table->pool, body, context, count, grain);
}

void Pool::run_loop(const LoopBody& loop, int workers) {
  const int64_t shares = loop.shares();
  const bool alone = shares == 1 || workers == 1 || inside_share() ||
                     stopped_.load(std::memory_order_relaxed);
  LoopTable::Slot* slot = alone ? nullptr : loops_.open(loop, workers);
  if (!slot) {
    for (int64_t share = 0; share < shares; ++share) loop.run_share(share, current_worker());
    return;
  }
  const bool seated_already = holds_seat;
  if (!seated_already) enter_seat();
  finish_loop(*slot, std::min<int64_t>(workers, shares) - 1, shares);
  if (!seated_already) leave_seat();
}

bool Pool::help_loop() {
  const LoopTable::Claim claim = loops_.claim();
  if (!claim.slot) return false;
  ask_for_help();
  loops_.work(claim);
  return true;
}

// What a loop's owner does about helpers that sleep, and learns from what comes of it.
class Pool::Helpers {
 public:
  Helpers(Pool& pool, int64_t most, int64_t shares) : pool_(pool), most_(most), shares_(shares) {}

  // A thread that issues work often waits for it a microsecond later, and then helps: it would meet
  // a thread woken meanwhile, one too many for the processors. So a loop of queued work wakes
  // nobody before its first share is done.
  LoopHook ask() {
    const bool asleep = pool_.helpers_sleep(most_);
    if (asleep) began_ = nanoseconds();
    if (asleep && !pool_.waking_pays()) put_off_ = true;
    else if (!in_pool) wake(asleep);
    if (!in_pool && !put_off_) return {};
    return {[](void* self) { static_cast<Helpers*>(self)->after_first(); }, this};
  }

  void learn(int64_t came) const {
    if (!woke_) return;
    constexpr auto relaxed = std::memory_order_relaxed;
    int unaided = 0;
    if (came == 0) {
      if (nanoseconds() - began_ > kShortLoop) return;
      unaided = std::min(2 * pool_.unaided_.load(relaxed) + 1, kMostUnaided);
    }
    pool_.unaided_.store(unaided, relaxed);
    pool_.unaided_left_.store(unaided, relaxed);
  }

 private:
  void after_first() {
    if (!pool_.loops_.open()) return;
    if (!put_off_ || (nanoseconds() - began_) * (shares_ - 1) > kShortLoop) {
      wake(began_ != 0 && pool_.helpers_sleep(most_));
    }
  }

  void wake(bool asleep) {
    pool_.notify_of_loop(most_);
    woke_ = asleep;
  }

  Pool& pool_;
  const int64_t most_;  // helpers that the loop can use
  const int64_t shares_;
  int64_t began_ = 0;  // if helpers slept
  bool put_off_ = false;
  bool woke_ = false;
};

void Pool::finish_loop(LoopTable::Slot& slot, int64_t most, int64_t shares) {
  Helpers helpers(*this, most, shares);
  helpers.learn(loops_.finish(slot, helpers.ask()));
}

void Pool::ask_for_help() {
  if (loops_.open()) notify_of_loop(kWakes);
}

void Pool::notify_of_loop(int64_t helpers) {
  const int64_t most =
      std::min<int64_t>(helpers, kWakes) - onlookers_.load(std::memory_order_seq_cst);
  notify(most, most);
}

// Whether so much help takes a wake-up.
bool Pool::helpers_sleep(int64_t helpers) const {
  constexpr auto relaxed = std::memory_order_relaxed;
  const int awake = onlookers_.load(relaxed) + spinners_.load(relaxed);
  return sleepers_.load(relaxed) > 0 && std::min<int64_t>(helpers, kWakes) > awake;
}

// Threads that count at once may count a loop twice, which does no harm.
bool Pool::waking_pays() {
  const int left = unaided_left_.load(std::memory_order_relaxed);
  if (left > 0) unaided_left_.store(left - 1, std::memory_order_relaxed);
  return left == 0;
}

bool Pool::tasks_wait() const {
  const WorkSource* source = source_.load(std::memory_order_acquire);
  return source && source->ready() > 0;
}

bool Pool::seated() const { return holds_seat; }

bool Pool::take_seat() {
  int taken = seats_.load(std::memory_order_relaxed);
  while (taken < threads()) {
    if (seats_.compare_exchange_weak(taken, taken + 1, std::memory_order_seq_cst)) {
      holds_seat = true;
      return true;
    }
  }
  return false;
}

void Pool::enter_seat() {
  seats_.fetch_add(1, std::memory_order_seq_cst);
  holds_seat = true;
}

// Sequentially consistent, as is the look at seats_ of a thread about to sleep: either that thread
// sees the free seat, or this one sees that it sleeps.
void Pool::leave_seat() {
  holds_seat = false;
  seats_.fetch_sub(1, std::memory_order_seq_cst);
  if (loops_.open()) notify(1, 1);
  else if (tasks_wait()) notify_of_task();
}

// Who finds no free seat wakes nobody: leave_seat() will.
void Pool::notify(int64_t count, int64_t work) {
  if (!seat_free() || stopped_.load(std::memory_order_relaxed)) return;
  int missing = static_cast<int>(
      std::min<int64_t>(count, work - spinners_.load(std::memory_order_seq_cst)));
  if (missing > 0 && sleepers_.load(std::memory_order_seq_cst) > 0) missing -= wake(missing);
  if (missing > 0 && started_.load(std::memory_order_relaxed) < threads()) start(missing);
}

void Pool::notify_of_task() {
  const WorkSource* source = source_.load(std::memory_order_acquire);
  const int64_t ready = source->ready();
  if (nappers_.load(std::memory_order_seq_cst) == 0 || ready > 1) return notify(1, ready);
  constexpr auto relaxed = std::memory_order_relaxed;
  put_off_.store(put_off_.load(relaxed) + 1, relaxed);  // may miss one of two at once
}

// The thread that went to sleep last is woken first: its caches are the warmest.
int Pool::wake(int count) {
  int woken = 0;
  for (; woken < count; ++woken) {
    sleep_lock_.lock();
    Worker* worker = sleeping_;
    if (worker) {
      sleeping_ = worker->next_sleeping;
      sleepers_.fetch_sub(1, std::memory_order_seq_cst);
    }
    sleep_lock_.unlock();
    if (!worker) break;
    worker->woken_from = processor_here();
    worker->awake.store(1, std::memory_order_release);
    wake_sleepers(worker->awake, 1);
  }
  return woken;
}

// Without threads (the system refuses them) work still gets done, by those who wait for it.
void Pool::start(int count) {
  start_lock_.lock();
  while (count-- > 0 && started_.load(std::memory_order_relaxed) < threads() &&
         !stopped_.load(std::memory_order_relaxed) && start_one()) {
  }
  start_lock_.unlock();
}

// Signals are the front end's: they stay blocked in the threads made here.
bool Pool::start_one() {
  std::unique_ptr<Worker> worker(new (std::nothrow) Worker);
  if (!worker) return false;
  worker->pool = this;
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const bool made = pthread_create(&worker->thread, nullptr, worker_entry, worker.get()) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!made) return false;
  worker->next = workers_;
  workers_ = worker.release();
  started_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

void* Pool::worker_entry(void* worker) {
  pthread_setname_np(pthread_self(), "heterosis");
  auto& self = *static_cast<Worker*>(worker);
  in_pool = true;
  self.pool->serve(self);
  return nullptr;
}

void Pool::serve(Worker& worker) {
  while (!stopped_.load(std::memory_order_acquire)) {
    Turn turn = Turn::idle;
    if (take_seat()) {
      turn = work();
      leave_seat();
    }
    // On the only processor, who issued a task had to stop for it.
    if (turn == Turn::of_use && !several_processors_.load(std::memory_order_relaxed)) {
      turn = Turn::in_vain;
    }
    learn(worker, turn);
    const bool leaves_tasks = turn == Turn::in_vain && naps(worker);
    if (leaves_tasks || !spin(worker)) park(worker);
  }
}

void Pool::learn(Worker& worker, Turn turn) {
  const bool after_naps = std::exchange(worker.naps_ended, false);
  if (turn == Turn::in_vain) ++worker.futile_turns;
  if (turn != Turn::of_use) return;
  worker.futile_turns = 0;
  if (after_naps) worker.most_futile = std::min(worker.most_futile * 2, kMostFutileTurns);
}

// Loops before tasks: somebody waits for a loop's end.
Pool::Turn Pool::work() {
  Turn turn = Turn::idle;
  while (!stopped_.load(std::memory_order_relaxed)) {
    if (help_loop()) {
      turn = Turn::of_use;
      continue;
    }
    WorkSource* source = source_.load(std::memory_order_acquire);
    if (!source || source->ready() == 0) break;
    turn = std::max(turn, source->run_some() ? Turn::of_use : Turn::in_vain);
  }
  return turn;
}

bool Pool::naps(const Worker& worker) const { return worker.futile_turns >= worker.most_futile; }

// Whether so many of the pool's threads are awake that the front end's has no processor left.
bool Pool::crowded() const {
  constexpr auto relaxed = std::memory_order_relaxed;
  return started_.load(relaxed) - sleepers_.load(relaxed) > std::max(threads() - 1, 1);
}

// True if there is something to do. Futile spins make the next ones shorter, useful ones longer.
bool Pool::spin(Worker& worker) {
  if (!several_processors_.load(std::memory_order_relaxed)) return false;
  spinners_.fetch_add(1, std::memory_order_seq_cst);
  const bool found = look_for_work(nanoseconds() + kSpin / worker.patience);
  spinners_.fetch_sub(1, std::memory_order_seq_cst);
  if (found) worker.patience = std::max<int64_t>(worker.patience / 2, 1);
  else if (!crowded()) worker.patience = std::min(worker.patience * 2, kLeastPatience);
  return found;
}

bool Pool::look_for_work(int64_t end) const {
  do {
    for (int turn = 0; turn < 16; ++turn) {
      if (stopped_.load(std::memory_order_relaxed) || (may_start() && stays())) return true;
      relax();
    }
  } while (!crowded() && nanoseconds() < end);
  return false;
}

// False if somebody else takes the only task there is. Whoever issues a task often waits for it a
// microsecond later, and runs it then, with all that it reads in its caches.
bool Pool::stays() const {
  const WorkSource* source = source_.load(std::memory_order_acquire);
  const int64_t end = nanoseconds() + kGrace;
  do {
    for (int turn = 0; turn < 16; ++turn) {
      if (loops_.open() || (source && source->ready() > 1)) return true;
      if (!may_start() || stopped_.load(std::memory_order_relaxed)) return false;
      relax();
    }
  } while (nanoseconds() < end);
  return true;
}

// Announce, look once more, sleep: whoever brings work after the look sees the announcement.
void Pool::park(Worker& worker) {
  const int64_t slept_from = nanoseconds();
  worker.awake.store(0, std::memory_order_relaxed);
  sleep_lock_.lock();
  worker.next_sleeping = sleeping_;
  sleeping_ = &worker;
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  sleep_lock_.unlock();
  if (naps(worker) && nap(worker)) return;
  if ((may_start() || stopped_.load(std::memory_order_seq_cst)) && unlist(worker)) return;
  while (worker.awake.load(std::memory_order_acquire) == 0) sleep_while(worker.awake, 0, -1);
  // Where all processors are busy, the system takes the one of who wakes, and of who has work.
  if (worker.woken_from == processor_here()) leave_processor();
  ++worker.futile_turns;  // until there is something to do
  if (nanoseconds() - slept_from < kSpin) worker.patience = 1;  // too early to sleep
}

// True if the worker is off the list, and a task has lain there for a whole nap. Sequentially
// consistent: either who brings a task sees that nobody naps any more, or the look after the naps
// sees the task.
bool Pool::nap(Worker& worker) {
  nappers_.fetch_add(1, std::memory_order_seq_cst);
  int64_t put_off = put_off_.load(std::memory_order_relaxed);
  int64_t length = kNap;
  for (int idle = 0; idle < kIdleNaps && !worker.naps_ended; ++idle) {
    sleep_while(worker.awake, 0, length);
    if (worker.awake.load(std::memory_order_acquire) != 0) break;
    const int64_t before = std::exchange(put_off, put_off_.load(std::memory_order_relaxed));
    const bool is_new = put_off != before;
    if (is_new) idle = 0;
    else worker.naps_ended = may_start() && stays() && unlist(worker);
    length = is_new && may_start() ? kNap : std::min(2 * length, kLongestNap);
  }
  nappers_.fetch_sub(1, std::memory_order_seq_cst);
  return worker.naps_ended;
}

// False if somebody has taken the worker from the list to wake it, or is about to.
bool Pool::unlist(Worker& worker) {
  sleep_lock_.lock();
  Worker** link = &sleeping_;
  while (*link && *link != &worker) link = &(*link)->next_sleeping;
  const bool listed = *link != nullptr;
  if (listed) {
    *link = worker.next_sleeping;
    sleepers_.fetch_sub(1, std::memory_order_seq_cst);
  }
  sleep_lock_.unlock();
  return listed;
}

void Pool::stop() {
  start_lock_.lock();  // from here on, start() starts nothing
  stopped_.store(true, std::memory_order_seq_cst);
  Worker* workers = workers_;
  workers_ = nullptr;
  started_.store(0, std::memory_order_relaxed);
  start_lock_.unlock();
  wake(kMostThreads);
  while (workers) {
    std::unique_ptr<Worker> worker(workers);
    workers = worker->next;
    pthread_join(worker->thread, nullptr);
  }
}

void Pool::before_fork() {
  start_lock_.lock();
  sleep_lock_.lock();
}

void Pool::after_fork(bool child) {
  if (child) {
    loops_.clear();
    seats_.store(holds_seat ? 1 : 0);
    sleepers_.store(0);
    nappers_.store(0);
    spinners_.store(0);
    started_.store(0);
    sleeping_ = nullptr;
    while (workers_) delete std::exchange(workers_, workers_->next);  // their threads are not here
  }
  sleep_lock_.unlock();
  start_lock_.unlock();
}

}  // namespace heterosis
