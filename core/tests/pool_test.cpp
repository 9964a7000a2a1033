// How many threads there are, and how many compute at once.
#include <atomic>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <thread>
#include <vector>

#include "check.h"
#include "resources.h"
#include "tasks.h"

using namespace heterosis;

namespace {

int threads_of_process() {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    (void)entry;
    ++count;
  }
  return count;
}

// Counts how many run inside it at once.
struct Crowd {
  std::atomic<int> inside{0};
  std::atomic<int> most{0};
  void visit() {
    const int now = ++inside;
    for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
    }
    for (int spin = 0; spin < 2000; ++spin) relax();
    --inside;
  }
};

int threads_at_start = 0;

void nothing_starts_before_there_is_work() {
  CHECK(runtime()->workers >= 1);
  Cell cell = make_cell();
  value(cell) = 5;
  CHECK(engine().counters().executed == 0);
  engine().wait(cell->variable);
  engine().wait_all();
  CHECK(threads_of_process() == threads_at_start);
  push({.writes = {cell}}, [] {});
  until([&] { return cell->variable.readable(); });  // nobody waits: a thread must do it
  CHECK(threads_of_process() == threads_at_start + 1);
}

void tables_stay_as_they_were() {
  const hx_runtime* before = runtime();
  const int64_t workers = before->workers;
  pool().set_threads(3);
  CHECK(runtime() != before && runtime()->workers == 3 && before->workers == workers);
  pool().set_threads(static_cast<int>(workers));
  CHECK(runtime() == before);
  pool().set_threads(-5);
  CHECK(pool().threads() == 1);
  pool().set_threads(static_cast<int>(workers));
}

void tasks_run_side_by_side() {
  const Threads threads(2);
  for (int turn = 0; turn < 50; ++turn) {
    std::atomic<int> met{0};
    for (int chain = 0; chain < 2; ++chain) {
      push({.writes = {make_cell()}}, [&] {
        ++met;
        until([&] { return met == 2; });
      });
    }
    engine().wait_all();
  }
}

void one_thread_means_one_at_a_time() {
  const Threads threads(1);
  Crowd crowd;
  std::vector<Cell> cells;
  for (int index = 0; index < 300; ++index) {
    cells.push_back(make_cell());
    push({.writes = {cells.back()}}, [&] { crowd.visit(); });
  }
  for (const Cell& cell : cells) engine().wait(cell->variable);  // helps, in turn with the worker
  engine().wait_all();
  CHECK(crowd.most == 1);
}

void waiting_threads_count_too() {
  const Threads threads(2);
  Crowd crowd;
  std::vector<std::thread> waiters;
  std::vector<Cell> cells;
  for (int index = 0; index < 400; ++index) {
    cells.push_back(make_cell());
    push({.writes = {cells.back()}}, [&] { crowd.visit(); });
  }
  for (int waiter = 0; waiter < 4; ++waiter) {
    waiters.emplace_back([&] {
      for (const Cell& cell : cells) engine().wait(cell->variable);
    });
  }
  for (std::thread& waiter : waiters) waiter.join();
  CHECK(crowd.most <= 2);
}

// What one caller leaves to others is not taken from them: loops keep to themselves, tasks do not.
void callers_share_threads() {
  const Threads threads(2);
  pool().set_intra_op_threads(1);
  CHECK(pool().threads() == 2 && pool().intra_op_threads() == 1);
  std::atomic<int> met{0};
  for (int chain = 0; chain < 2; ++chain) {
    push({.writes = {make_cell()}}, [&] {
      std::atomic<bool> alone{true};
      const hx_loop_body look = [](void* context, int64_t, int64_t, int64_t worker) {
        if (worker != 0) *static_cast<std::atomic<bool>*>(context) = false;
      };
      pool().parallel_for(look, &alone, 100, 1);
      CHECK(alone);
      ++met;
      until([&] { return met == 2; });
    });
  }
  engine().wait_all();
  pool().set_threads(4);
  CHECK(pool().intra_op_threads() == 1);
  pool().set_intra_op_threads(3);
  CHECK(pool().intra_op_threads() == 3);
  pool().set_threads(2);
  CHECK(pool().intra_op_threads() == 2);
  pool().set_intra_op_threads(Pool::kMostThreads);
}

void tasks_start_loops() {
  const Threads threads(2);
  std::vector<Cell> cells;
  for (int64_t index = 0; index < 100; ++index) {
    cells.push_back(make_cell());
    const Cell& cell = cells.back();
    push({.writes = {cell}}, [data = cell.get()] {
      std::atomic<int64_t> sum{0};
      const hx_loop_body add = [](void* context, int64_t begin, int64_t end, int64_t) {
        for (; begin < end; ++begin) *static_cast<std::atomic<int64_t>*>(context) += begin;
      };
      pool().parallel_for(add, &sum, 1000, 10);
      *static_cast<int64_t*>(data->data()) = sum;
    });
  }
  for (const Cell& cell : cells) CHECK(read(cell) == 499'500);
}

// Also where some of them look for work when it comes: so many tasks are no more than theirs.
void more_threads_than_processors() {
  const Threads threads(8);
  for (int turn = 0; turn < 50; ++turn) {
    std::atomic<int> met{0};
    for (int index = 0; index < 8; ++index) {
      push({.writes = {make_cell()}}, [&] {
        ++met;
        until([&] { return met == 8; });
      });
    }
    engine().wait_all();
  }
}

// The number changes under load, in both directions, and nothing is lost.
void threads_come_and_go() {
  const Threads threads(2);
  std::atomic<int> done{0};
  for (int turn = 0; turn < 200; ++turn) {
    pool().set_threads(1 + turn % 4);
    for (int index = 0; index < 10; ++index) {
      push({.writes = {make_cell()}}, [&] { ++done; });
    }
  }
  engine().wait_all();
  CHECK(done == 2000);
}

// Work pushed while every thread sleeps wakes one, each time.
void sleeping_threads_wake() {
  const Threads threads(2);
  for (int turn = 0; turn < 100; ++turn) {
    Cell cell = make_cell();
    sleep_milliseconds(1);
    push({.writes = {cell}}, [] {});
    until([&] { return cell->variable.readable(); });
  }
}

// A thread that is woken in vain again and again, since those who issue tasks run them, is not woken
// for each; but a task that nobody waits for is run all the same, whatever the thread is at.
void tasks_left_to_naps_are_run() {
  for (int threads = 1; threads <= 2; ++threads) {
    const Threads limit(threads);
    for (int turn = 0; turn < 60; ++turn) {
      for (int index = 0; index < 12; ++index) {
        Cell cell = make_cell();
        push({.writes = {cell}}, [] {});
        engine().wait(cell->variable);
        if (turn % 2 == 0) std::this_thread::sleep_for(std::chrono::microseconds(100));
      }
      if (turn % 20 == 19) sleep_milliseconds(60);  // until it does not nap any more
      else if (turn % 3 == 0) sleep_milliseconds(turn % 12);
      Cell cell = make_cell();
      push({.writes = {cell}}, [] {});
      until([&] { return cell->variable.readable(); });
    }
  }
}

void compute_for(int64_t microseconds) {
  for (const int64_t end = nanoseconds() + microseconds * 1000; nanoseconds() < end;) relax();
}

// Issues tasks that take so many microseconds, and waits for each after so many others. Gives how many
// of the last 50 were run by the thread that issued them.
int run_by_their_issuer(int64_t task, int64_t meanwhile) {
  int own = 0;
  for (int turn = 0; turn < 100; ++turn) {
    pthread_t ran{};
    Cell cell = make_cell();
    push({.writes = {cell}}, [&] {
      ran = pthread_self();
      compute_for(task);
    });
    compute_for(meanwhile);
    engine().wait(cell->variable);
    if (turn >= 50 && pthread_equal(ran, pthread_self())) ++own;
  }
  return own;
}

// A thread of the pool finds a task first, but who issued it waits idly: it has what the task reads
// in its caches, and is to run the next ones itself. One that has something else to do is helped.
void tasks_that_are_waited_for_idly_stay_where_they_were_issued() {
  const Threads threads(1);
  CHECK(run_by_their_issuer(2000, 150) > 25);
  if (usable_processors() > 1) CHECK(run_by_their_issuer(8000, 6000) < 25);
}

// Short loops that get no help in time stop waking sleepers; long ones are helped all the same: of
// three shares here, the last two end when both have begun.
void long_loops_wake_sleepers() {
  const Threads threads(2);
  const auto nothing = [](void*, int64_t, int64_t, int64_t) {};
  const auto meet = [](void* met, int64_t begin, int64_t, int64_t) {
    if (begin == 0) return sleep_milliseconds(1);  // which makes the loop a long one
    auto& count = *static_cast<std::atomic<int>*>(met);
    ++count;
    until([&] { return count == 2; });
  };
  for (int turn = 0; turn < 100; ++turn) {
    if (turn % 4 == 0) sleep_milliseconds(1);
    pool().parallel_for(nothing, nullptr, 2, 1);
    if (turn % 10 != 9) continue;
    std::atomic<int> met{0};
    pool().parallel_for(meet, &met, 3, 1);
    CHECK(met == 2);
  }
}

// Threads without work sleep: they spin for microseconds, not for as long as nothing comes.
void idle_threads_use_no_time() {
  const Threads threads(4);
  std::atomic<int> met{0};
  for (int index = 0; index < 4; ++index) {
    push({.writes = {make_cell()}}, [&] {
      ++met;
      until([&] { return met == 4; });
    });
  }
  engine().wait_all();
  sleep_milliseconds(10);
  const std::clock_t before = std::clock();  // of all threads
  sleep_milliseconds(200);
  CHECK(std::clock() - before < CLOCKS_PER_SEC / 20);
}

}  // namespace

int main() {
  std::thread([] {}).join();  // a sanitizer starts a thread of its own with the first one
  threads_at_start = threads_of_process();
  return run_tests({TEST(nothing_starts_before_there_is_work),
                    // While there is one thread, which has not learnt anything yet.
                    TEST(tasks_that_are_waited_for_idly_stay_where_they_were_issued),
                    TEST(tables_stay_as_they_were),
                    TEST(tasks_run_side_by_side), TEST(one_thread_means_one_at_a_time),
                    TEST(waiting_threads_count_too), TEST(callers_share_threads),
                    TEST(tasks_start_loops), TEST(more_threads_than_processors),
                    TEST(threads_come_and_go), TEST(sleeping_threads_wake),
                    TEST(tasks_left_to_naps_are_run), TEST(long_loops_wake_sleepers),
                    TEST(idle_threads_use_no_time)});
}
