// The end of the process with work outstanding. Each case needs a process of its own.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <stdexcept>
#include <vector>

#include "check.h"
#include "tasks.h"

using namespace heterosis;

namespace {

// The parent never starts a thread, so that children are as good as new.
template <typename Body>
void in_new_process(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    pool().set_threads(2);
    body();
    std::exit(0);  // as a program ends: with static objects destroyed, and leaks looked for
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

void draining_runs_everything() {
  in_new_process([] {
    std::atomic<int> done{0};
    Cell cell = make_cell();
    for (int turn = 0; turn < 100; ++turn) {
      push({.updates = {cell}}, [&] {
        sched_yield();
        ++done;
      });
    }
    engine().shutdown(Engine::Shutdown::drain);
    CHECK(done == 100);
  });
}

void dropping_runs_no_more() {
  in_new_process([] {
    const int64_t live = memory_counters().live;
    std::atomic<int> done{0};
    std::atomic<bool> open{false};
    std::vector<Cell> cells;
    for (int index = 0; index < 100; ++index) {
      cells.push_back(make_cell());
      push({.writes = {cells.back()}}, [&] {
        ++done;
        until([&] { return open.load(); });
      });
    }
    until([&] { return done >= 1; });
    std::thread opener([&] {
      sleep_milliseconds(50);
      open = true;
    });
    engine().shutdown(Engine::Shutdown::drop);
    opener.join();
    CHECK(done <= 3);
    CHECK_THROWS(Failure, engine().wait(cells.back()->variable));
    CHECK(engine().counters().outstanding_tasks == 0);
    cells.clear();
    CHECK(memory_counters().live == live);
  });
}

void later_work_runs_at_once() {
  in_new_process([] {
    engine().shutdown(Engine::Shutdown::drain);
    Cell cell = make_cell();
    value(cell) = 0;
    const auto here = std::this_thread::get_id();
    push({.updates = {cell}}, [&] {
      CHECK(std::this_thread::get_id() == here);
      value(cell) = 1;
    });
    CHECK(value(cell) == 1 && cell->variable.writable());
    const hx_loop_body body = [](void* context, int64_t begin, int64_t end, int64_t) {
      *static_cast<int64_t*>(context) += end - begin;
    };
    int64_t count = 0;
    pool().parallel_for(body, &count, 100, 3);
    CHECK(count == 100);
    push({.writes = {cell}}, [] { throw Failure(ErrorKind::value, "late"); });
    CHECK_THROWS(Failure, engine().wait(cell->variable));
    engine().wait_all();
    engine().shutdown(Engine::Shutdown::drain);  // twice does no harm
  });
}

void an_interrupted_shutdown_can_be_resumed() {
  in_new_process([] {
    std::atomic<bool> open{false};
    std::atomic<bool> started{false};
    push({.writes = {make_cell()}}, [&] {
      started = true;
      until([&] { return open.load(); });
    });
    until([&] { return started.load(); });
    const Poll poll{[](void*) { throw std::runtime_error("interrupted"); }, nullptr};
    CHECK_THROWS(std::runtime_error, engine().shutdown(Engine::Shutdown::drain, poll));
    open = true;
    engine().shutdown(Engine::Shutdown::drain);
  });
}

void exit_without_shutdown() {
  in_new_process([] {
    for (int turn = 0; turn < 1000; ++turn) {
      push({.writes = {make_cell()}}, [] {
        for (int spin = 0; spin < 1000; ++spin) relax();
      });
    }
  });
}

void pushing_goes_on_during_shutdown() {
  in_new_process([] {
    std::atomic<int> done{0};
    std::vector<std::thread> pushers;
    for (int pusher = 0; pusher < 3; ++pusher) {
      pushers.emplace_back([&] {
        for (int turn = 0; turn < 2000; ++turn) push({.writes = {make_cell()}}, [&] { ++done; });
      });
    }
    engine().shutdown(Engine::Shutdown::drain);
    for (std::thread& pusher : pushers) pusher.join();
    engine().wait_all();
    CHECK(done == 6000);
  });
}

}  // namespace

int main() {
  return run_tests({TEST(draining_runs_everything), TEST(dropping_runs_no_more),
                    TEST(later_work_runs_at_once), TEST(an_interrupted_shutdown_can_be_resumed),
                    TEST(exit_without_shutdown), TEST(pushing_goes_on_during_shutdown)});
}
