// The bounds on what may be outstanding.
#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include "check.h"
#include "tasks.h"

using namespace heterosis;

namespace {

constexpr int64_t kNoBound = int64_t{1} << 60;

void push_within_bounds(Cell cell, int64_t charge = 0) {
  if (engine().must_wait()) engine().wait_for_room();
  auto task = make_task([cell] { sched_yield(); });
  task->write(cell);
  task->charge(charge);
  engine().push(std::move(task));
}

void tasks_are_bounded() {
  engine().set_bounds(8, kNoBound);
  engine().reset_peaks();
  for (int turn = 0; turn < 2000; ++turn) push_within_bounds(make_cell());
  CHECK(engine().counters().peak_tasks <= 8);
  engine().wait_all();
}

void bytes_are_bounded() {
  engine().set_bounds(100'000, 10'000);
  engine().reset_peaks();
  for (int turn = 0; turn < 2000; ++turn) push_within_bounds(make_cell(), 992);
  CHECK(engine().counters().peak_bytes <= 11'000);  // one task may go over
  engine().wait_all();
  CHECK(engine().counters().outstanding_bytes == 0);
}

void a_task_larger_than_the_bound_runs() {
  engine().set_bounds(1, 1);
  for (int turn = 0; turn < 20; ++turn) push_within_bounds(Storage::make(100'000));
  engine().wait_all();
}

void storages_count_until_they_exist() {
  engine().set_bounds(100'000, kNoBound);
  const Threads threads(1);
  std::atomic<bool> open{false};
  push({.writes = {make_cell()}}, [&] { until([&] { return open.load(); }); });
  const int64_t before = engine().counters().outstanding_bytes;
  Ref<Storage> storage = Storage::make(1000);
  push({.writes = {storage}}, [] {});
  push({.updates = {storage}}, [] {});  // the same bytes again
  push({.reads = {storage}, .writes = {storage}}, [] {});
  CHECK(engine().counters().outstanding_bytes == before + 1000);
  open = true;
  engine().wait_all();
  push({.updates = {storage}}, [&] {});
  CHECK(engine().counters().outstanding_bytes == 0);
  engine().wait_all();
}

// With the only worker held up, the thread that needs room runs tasks itself; with the only seat
// held up, it polls.
void waiting_for_room_helps_and_polls() {
  engine().set_bounds(4, kNoBound);
  const Threads threads(1);
  std::atomic<bool> open{false};
  std::atomic<bool> started{false};
  push({.writes = {make_cell()}}, [&] {
    started = true;
    until([&] { return open.load(); });
  });
  until([&] { return started.load(); });
  for (int turn = 0; turn < 3; ++turn) push({.writes = {make_cell()}}, [] {});
  CHECK(engine().must_wait());
  const Poll poll{[](void*) { throw std::runtime_error("interrupted"); }, nullptr};
  CHECK_THROWS(std::runtime_error, engine().wait_for_room(poll));
  pool().set_threads(2);
  engine().wait_for_room();
  CHECK(!engine().must_wait());
  open = true;
  engine().wait_all();
}

void a_raised_bound_lets_waiting_threads_go() {
  engine().set_bounds(1, kNoBound);
  const Threads threads(1);
  std::atomic<bool> open{false};
  std::atomic<bool> started{false};
  push({.writes = {make_cell()}}, [&] {
    started = true;
    until([&] { return open.load(); });
  });
  until([&] { return started.load(); });  // by the worker: the waiter must find nothing to run
  std::thread waiter([] { engine().wait_for_room(); });
  sleep_milliseconds(20);
  engine().set_bounds(100, kNoBound);
  waiter.join();
  open = true;
  engine().wait_all();
}

void several_threads_wait_for_room() {
  engine().set_bounds(16, kNoBound);
  engine().reset_peaks();
  std::vector<std::thread> pushers;
  for (int pusher = 0; pusher < 4; ++pusher) {
    pushers.emplace_back([] {
      for (int turn = 0; turn < 1000; ++turn) push_within_bounds(make_cell());
    });
  }
  for (std::thread& pusher : pushers) pusher.join();
  CHECK(engine().counters().peak_tasks < 16 + 4);  // the look and the push are not one step
  engine().wait_all();
}

}  // namespace

int main() {
  CHECK(!engine().must_wait());
  return run_tests({TEST(tasks_are_bounded), TEST(bytes_are_bounded),
                    TEST(a_task_larger_than_the_bound_runs), TEST(storages_count_until_they_exist),
                    TEST(waiting_for_room_helps_and_polls),
                    TEST(a_raised_bound_lets_waiting_threads_go),
                    TEST(several_threads_wait_for_room)});
}
