// The order of tasks, and waiting for them.
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include "check.h"
#include "tasks.h"

using namespace heterosis;

namespace {

// A task that runs until it is told to end.
struct Gate {
  std::atomic<bool> open{false};
  void pass() {
    until([&] { return open.load(); });
  }
};

void writes_keep_their_order() {
  Cell cell = make_cell();
  value(cell) = 0;
  for (int64_t turn = 0; turn < 1000; ++turn) {
    push({.updates = {cell}}, [&, turn] {
      CHECK(value(cell) == turn);
      value(cell) = turn + 1;
    });
  }
  CHECK(read(cell) == 1000);
}

void reads_come_between_writes() {
  Cell cell = make_cell();
  std::vector<Cell> copies;
  for (int64_t turn = 0; turn < 200; ++turn) {
    push({.writes = {cell}}, [&, turn] { value(cell) = turn; });
    for (int reader = 0; reader < 3; ++reader) {
      copies.push_back(make_cell());
      push({.reads = {cell}, .writes = {copies.back()}},
           [&cell, copy = copies.back()] { value(copy) = value(cell); });
    }
  }
  for (std::size_t index = 0; index < copies.size(); ++index) {
    CHECK(read(copies[index]) == static_cast<int64_t>(index / 3));
  }
}

// The data move to another storage between reads and writes of both, each of which finds its own.
void exchanges_keep_their_order() {
  const Threads threads(2);
  Cell cell = make_cell();
  value(cell) = 0;
  std::vector<Cell> copies;
  for (int64_t turn = 1; turn < 500; ++turn) {
    Cell next = make_cell();
    push({.reads = {cell}, .writes = {next}},
         [from = cell, to = next, turn] { value(to) = value(from) + turn; });
    copies.push_back(make_cell());
    push({.reads = {cell}, .writes = {copies.back()}},
         [from = cell, to = copies.back()] { value(to) = value(from); });
    push({.writes = {cell}, .updates = {next}}, [a = cell, b = next] { a->exchange(*b); });
  }
  for (std::size_t index = 0; index < copies.size(); ++index) {
    CHECK(read(copies[index]) == static_cast<int64_t>(index * (index + 1) / 2));
  }
  CHECK(read(cell) == 499 * 500 / 2);
}

void readers_run_together() {
  const Threads threads(2);
  Cell cell = make_cell();
  push({.writes = {cell}}, [] {});
  std::atomic<int> met{0};
  for (int reader = 0; reader < 2; ++reader) {
    push({.reads = {cell}}, [&] {
      ++met;
      until([&] { return met == 2; });
    });
  }
  engine().wait_all();
}

void states_are_told_without_a_lock() {
  const Threads threads(2);
  Cell cell = make_cell();
  const Variable& variable = cell->variable;
  CHECK(variable.readable() && variable.writable() && !variable.failed());
  Gate writing;
  push({.writes = {cell}}, [&] { writing.pass(); });
  CHECK(!variable.readable() && !variable.writable());
  writing.open = true;
  until([&] { return variable.readable(); });
  CHECK(variable.writable());
  Gate reading;
  push({.reads = {cell}}, [&] { reading.pass(); });
  CHECK(variable.readable() && !variable.writable());
  reading.open = true;
  until([&] { return variable.writable(); });
}

void independent_chains_overlap() {
  const Threads threads(2);
  Cell a = make_cell();
  Cell b = make_cell();
  std::atomic<int> steps_a{0};
  std::atomic<int> steps_b{0};
  for (int step = 1; step <= 20; ++step) {  // each step waits for the other chain's
    push({.updates = {a}}, [&, step] {
      ++steps_a;
      until([&] { return steps_b >= step; });
    });
    push({.updates = {b}}, [&, step] {
      ++steps_b;
      until([&] { return steps_a >= step; });
    });
  }
  engine().wait_all();
  CHECK(steps_a == 20 && steps_b == 20);
}

void a_name_may_come_twice() {
  Cell a = make_cell();
  Cell b = make_cell();
  value(a) = 1;
  for (int turn = 0; turn < 50; ++turn) {
    push({.reads = {a, b, a}, .writes = {b, a, b}, .updates = {a}}, [&] { value(a) += 1; });
    push({.reads = {a, a, a}}, [] {});
  }
  CHECK(read(a) == 51);
  engine().wait_all();
  CHECK(a->variable.writable() && b->variable.writable());
}

void many_names() {
  std::vector<Cell> cells;
  for (int index = 0; index < 500; ++index) cells.push_back(make_cell());
  for (int turn = 0; turn < 10; ++turn) {
    auto task = make_task([&] {
      for (const Cell& cell : cells) value(cell) = turn;
    });
    for (const Cell& cell : cells) task->write(cell);
    engine().push(std::move(task));
    engine().wait_all();
  }
  for (const Cell& cell : cells) CHECK(read(cell) == 9);
}

// wait() aims at what was pushed before it, not at what comes later.
void later_writes_are_not_waited_for() {
  const Threads threads(2);
  Cell cell = make_cell();
  Gate first;
  Gate second;
  push({.writes = {cell}}, [&] {
    first.pass();
    value(cell) = 1;
  });
  std::atomic<bool> waited{false};
  std::thread waiter([&] {
    engine().wait(cell->variable);
    waited = true;
  });
  sleep_milliseconds(20);
  push({.writes = {cell}}, [&] { second.pass(); });
  CHECK(!waited);
  first.open = true;
  until([&] { return waited.load(); });
  second.open = true;
  waiter.join();
  engine().wait_all();
}

void idle_means_no_readers() {
  const Threads threads(2);
  Cell cell = make_cell();
  value(cell) = 1;
  Gate gate;
  push({.reads = {cell}}, [&] { gate.pass(); });
  engine().wait(cell->variable);  // a reader does not keep readers waiting
  std::thread opener([&] {
    sleep_milliseconds(20);
    gate.open = true;
  });
  engine().wait_idle(cell->variable);
  CHECK(gate.open && cell->variable.writable());
  opener.join();
}

void a_waiting_thread_runs_what_it_needs() {
  const Threads threads(1);
  Gate gate;
  std::atomic<bool> started{false};
  push({.writes = {make_cell()}}, [&] {  // takes the only seat, on the worker
    started = true;
    gate.pass();
  });
  until([&] { return started.load(); });
  Cell cell = make_cell();
  push({.writes = {cell}}, [&] { value(cell) = 7; });
  std::thread opener([&] {
    sleep_milliseconds(20);
    gate.open = true;
  });
  CHECK(read(cell) == 7);
  opener.join();
  engine().wait_all();
}

void a_waiting_thread_helps_loops() {
  const Threads two(2);
  const std::thread::id waiting = std::this_thread::get_id();
  std::atomic<int> mine{0};
  auto share = [&](int64_t) {
    mine += std::this_thread::get_id() == waiting;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  };
  Cell cell = make_cell();
  push({.writes = {cell}}, [&] {
    auto body = [](void* context, int64_t begin, int64_t, int64_t) {
      (*static_cast<decltype(share)*>(context))(begin);
    };
    pool().parallel_for(body, &share, 20, 1);
  });
  engine().wait(cell->variable);
  CHECK(mine >= 5);  // of 20; it may have taken the task itself, or have come late to its loop
}

void polls_come_and_may_end_the_wait() {
  const Threads threads(2);
  Cell cell = make_cell();
  Gate gate;
  std::atomic<bool> started{false};
  push({.writes = {cell}}, [&] {
    started = true;
    gate.pass();
    value(cell) = 3;
  });
  until([&] { return started.load(); });
  int calls = 0;
  const Poll impatient{[](void* context) {
                         if (++*static_cast<int*>(context) == 3) throw std::runtime_error("enough");
                       },
                       &calls};
  CHECK_THROWS(std::runtime_error, engine().wait(cell->variable, impatient));
  CHECK(calls == 3);
  CHECK_THROWS(std::runtime_error, (calls = 0, engine().wait_all(impatient)));
  gate.open = true;
  CHECK(read(cell) == 3);
  engine().wait_all();
}

void what_tasks_hold_is_released() {
  struct Guest {
    std::shared_ptr<int> sign = std::make_shared<int>(1);
  } guest;
  const int64_t live = memory_counters().live;
  for (int turn = 0; turn < 100; ++turn) {
    push({.writes = {Storage::make(1 << 20)}}, [sign = guest.sign] { (void)sign; });
  }
  engine().wait_all();
  CHECK(guest.sign.use_count() == 1);
  CHECK(memory_counters().live == live);
}

// Written storages come into being when their task starts, so that a long queue of temporaries
// needs the memory of few.
void queued_temporaries_need_no_memory() {
  const Threads threads(1);
  constexpr int64_t kBytes = 1 << 20;
  engine().wait_all();
  reset_peak();
  const int64_t live = memory_counters().live;
  Cell last;
  for (int turn = 0; turn < 200; ++turn) {
    Ref<Storage> temporary = Storage::make(kBytes);
    Ref<Storage> result = Storage::make(kBytes);
    push({.writes = {temporary}}, [] {});
    push({.reads = {temporary}, .writes = {result}}, [] {});
  }
  engine().wait_all();
  CHECK(memory_counters().peak <= live + 8 * kBytes);
}

// Steps of a chain that has begun come before chains that have not.
void begun_chains_are_finished_first() {
  const Threads threads(1);
  Gate gate;
  push({.writes = {make_cell()}}, [&] { gate.pass(); });
  std::vector<int> order;
  for (int chain = 0; chain < 10; ++chain) {
    Cell cell = make_cell();
    for (int step = 0; step < 3; ++step) {
      push({.updates = {cell}}, [&order, chain] { order.push_back(chain); });
    }
  }
  gate.open = true;
  engine().wait_all();
  for (std::size_t at = 0; at < order.size(); ++at) CHECK(order[at] == static_cast<int>(at / 3));
}

void tasks_may_push_tasks() {
  Cell cell = make_cell();
  value(cell) = 0;
  Cell outer = make_cell();
  push({.writes = {outer}}, [&] {
    for (int turn = 0; turn < 10; ++turn) push({.updates = {cell}}, [&] { ++value(cell); });
  });
  engine().wait(outer->variable);
  CHECK(read(cell) == 10);
  engine().wait_all();
}

// Threads that run work themselves, each update at its place in the order, beside queued tasks.
void inline_work_has_a_place_in_the_order() {
  const Threads threads(2);
  Cell cell = make_cell();
  value(cell) = 0;
  std::mutex front;  // what the front end's lock is
  const auto add = [&] {
    for (int turn = 0; turn < 500; ++turn) {
      auto task = make_task([] {});
      front.lock();
      if (cell->variable.writable()) {
        task->update(cell);
        engine().begin(*task);
        front.unlock();
        ++value(cell);
        engine().end(*task);
      } else {
        push({.updates = {cell}}, [&] { ++value(cell); });
        front.unlock();
      }
    }
  };
  std::vector<std::thread> adding;
  for (int i = 0; i < 3; ++i) adding.emplace_back(add);
  for (std::thread& one : adding) one.join();
  CHECK(read(cell) == 1500);
}

// Who waits for an array that another thread computes is woken at the end.
void inline_work_is_waited_for() {
  Cell cell = make_cell();
  auto task = make_task([] {});
  task->update(cell);
  engine().begin(*task);
  CHECK(!cell->variable.readable());
  std::thread other([&] { CHECK(read(cell) == 7); });
  sleep_milliseconds(20);
  value(cell) = 7;
  engine().end(*task);
  other.join();
}

void counters_tell() {
  engine().wait_all();
  const EngineCounters before = engine().counters();
  CHECK(before.outstanding_tasks == 0 && before.outstanding_bytes == 0);
  for (int turn = 0; turn < 10; ++turn) push({.writes = {make_cell()}}, [] {});
  engine().count_inline();
  engine().wait_all();
  const EngineCounters after = engine().counters();
  CHECK(after.executed == before.executed + 10 && after.inlined == before.inlined + 1);
  CHECK(after.peak_tasks >= 1 && after.peak_bytes >= 8);
  engine().reset_peaks();
  CHECK(engine().counters().peak_tasks == 0);
}

}  // namespace

int main() {
  return run_tests(
      {TEST(writes_keep_their_order), TEST(reads_come_between_writes),
       TEST(exchanges_keep_their_order), TEST(readers_run_together),
       TEST(states_are_told_without_a_lock), TEST(independent_chains_overlap),
       TEST(a_name_may_come_twice), TEST(many_names), TEST(later_writes_are_not_waited_for),
       TEST(idle_means_no_readers), TEST(a_waiting_thread_runs_what_it_needs),
       TEST(a_waiting_thread_helps_loops),
       TEST(polls_come_and_may_end_the_wait), TEST(what_tasks_hold_is_released),
       TEST(queued_temporaries_need_no_memory), TEST(begun_chains_are_finished_first),
       TEST(tasks_may_push_tasks), TEST(inline_work_has_a_place_in_the_order),
       TEST(inline_work_is_waited_for), TEST(counters_tell)});
}
