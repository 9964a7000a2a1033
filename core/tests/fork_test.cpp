// fork() with work outstanding.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <thread>
#include <vector>

#include "check.h"
#include "tasks.h"

using namespace heterosis;

namespace {

// The thread sanitizer cannot follow threads that the child of a process with threads starts.
#if defined(__SANITIZE_THREAD__)
constexpr bool kThreadsInChild = false;
#else
constexpr bool kThreadsInChild = true;
#endif

// Runs `body` in a child process; the child must end in time, and well.
template <typename Body>
void in_child(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    if (!kThreadsInChild) pool().stop();
    body();
    _exit(0);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int64_t sum_in_parallel(int64_t count) {
  std::atomic<int64_t> sum{0};
  const hx_loop_body add = [](void* context, int64_t begin, int64_t end, int64_t) {
    for (; begin < end; ++begin) *static_cast<std::atomic<int64_t>*>(context) += begin;
  };
  pool().parallel_for(add, &sum, count, 1);
  return sum;
}

void queue_some(const Cell& cell, int count) {
  for (int turn = 0; turn < count; ++turn) {
    push({.updates = {cell}}, [cell] {
      for (int spin = 0; spin < 1000; ++spin) relax();
      ++value(cell);
    });
  }
}

void both_sides_go_on() {
  const Threads threads(2);
  Cell cell = make_cell();
  value(cell) = 0;
  for (int turn = 1; turn <= 10; ++turn) {
    queue_some(cell, 20);
    in_child([&] {
      CHECK(engine().counters().outstanding_tasks == 0);
      CHECK(cell->variable.writable() && value(cell) == 20 * turn);  // finished, not lost
      queue_some(cell, 5);
      CHECK(read(cell) == 20 * turn + 5);
      CHECK(sum_in_parallel(1000) == 499'500);
      Cell alone = make_cell();
      push({.writes = {alone}}, [] {});
      if (kThreadsInChild) until([&] { return alone->variable.readable(); });
      engine().shutdown(Engine::Shutdown::drain);
    });
    CHECK(read(cell) == 20 * turn);
    CHECK(sum_in_parallel(1000) == 499'500);
  }
}

// Forks while other threads allocate, push, wait and loop: no lock may be left held in the child.
void from_a_busy_process() {
  const Threads threads(2);
  std::atomic<bool> stop{false};
  std::vector<std::thread> busy;
  busy.emplace_back([&] {
    while (!stop) deallocate(allocate(100), 100);
  });
  busy.emplace_back([&] {
    Cell cell = make_cell();
    while (!stop) {
      queue_some(cell, 5);
      read(cell);
    }
  });
  busy.emplace_back([&] {
    while (!stop) sum_in_parallel(50);
  });
  for (int turn = 0; turn < 20; ++turn) {
    in_child([] {
      Cell cell = make_cell();
      value(cell) = 0;
      queue_some(cell, 10);
      CHECK(read(cell) == 10);
      engine().wait_all();
      CHECK(sum_in_parallel(100) == 4950);
    });
  }
  stop = true;
  for (std::thread& thread : busy) thread.join();
}

// As a signal handler's Python code may do, at a poll.
void from_a_poll() {
  const Threads threads(2);
  Cell cell = make_cell();
  std::atomic<bool> started{false};
  push({.writes = {cell}}, [&] {
    started = true;
    sleep_milliseconds(200);
  });
  until([&] { return started.load(); });
  int polls = 0;
  const Poll poll{[](void* context) {
                    if (++*static_cast<int*>(context) > 1) return;
                    in_child([] { engine().wait_all(); });
                  },
                  &polls};
  engine().wait(cell->variable, poll);
  CHECK(polls >= 1);
  engine().wait_all();
}

void children_of_children() {
  in_child([] {
    Cell cell = make_cell();
    value(cell) = 0;
    queue_some(cell, 3);
    in_child([&] {
      queue_some(cell, 4);
      CHECK(read(cell) == 7);
    });
    CHECK(read(cell) == 3);
  });
}

}  // namespace

int main() {
#if defined(__SANITIZE_ADDRESS__)
  std::puts("skipped: the address sanitizer's own allocator may leave a lock held in the child");
  return 77;
#endif
  return run_tests({TEST(both_sides_go_on), TEST(from_a_busy_process), TEST(from_a_poll),
                    TEST(children_of_children)});
}
