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

// Memory that is not ours: who writes it is heard outside.
Cell lent_cell(int64_t& number) {
  return Storage::adopt(&number, sizeof number, nullptr, nullptr);
}

// Both threads of the pool are at tasks until `open`.
void keep_busy(std::atomic<bool>& open) {
  std::atomic<int> started{0};
  for (int turn = 0; turn < 2; ++turn) {
    push({.writes = {make_cell()}}, [&open, &started] {
      ++started;
      until([&] { return open.load(); });
    });
  }
  until([&] { return started == 2; });
}

void leaving_runs_what_has_effects() {
  in_new_process([] {
    std::atomic<int> needed{0};
    std::atomic<int> others{0};
    std::atomic<bool> open{false};
    int64_t number = 0;
    const Cell lent = lent_cell(number);
    Cell shown = make_cell();
    Cell bare = Storage::make(0);
    shown->hold();
    keep_busy(open);
    Cell at = make_cell();
    push({.writes = {at}}, [&] { value(at) = 1; });
    for (int turn = 0; turn < 50; ++turn) {
      push({.updates = {at}}, [&] { ++value(at), ++needed; });
      push({.updates = {make_cell()}}, [&] { ++others; });
    }
    push({.reads = {at}, .writes = {lent}}, [&] { number = value(at); });
    push({.reads = {lent}, .writes = {shown}}, [&] { value(shown) = number + 1; });
    push({.writes = {bare}}, [&] { ++needed; });
    push({.updates = {at}}, [&] { ++others; });
    push({}, [&] { ++needed; });
    push({.reads = {at}}, [&] { ++others, ++needed; });
    std::thread opener([&] {
      sleep_milliseconds(20);
      open = true;
    });
    engine().shutdown(Engine::Shutdown::leave);
    opener.join();
    CHECK(number == 51 && value(shown) == 52);
    CHECK(needed == 53 && others <= 4);  // the task that only reads comes after one that writes
  });
}

void what_was_left_runs_when_it_is_read() {
  in_new_process([] {
    std::atomic<int> others{0};
    std::atomic<bool> open{false};
    keep_busy(open);
    Cell one = make_cell();
    Cell other = make_cell();
    push({.writes = {one}}, [&] { value(one) = 7; });
    push({.writes = {other}}, [&] { ++others; });
    std::thread opener([&] {
      sleep_milliseconds(20);
      open = true;
    });
    engine().shutdown(Engine::Shutdown::leave);
    opener.join();
    CHECK(others == 0 && engine().counters().outstanding_tasks == 2);
    CHECK(read(one) == 7 && others == 0);
    Cell later = make_cell();
    push({.reads = {one}, .writes = {later}}, [&] { value(later) = value(one) + 1; });
    CHECK(later->variable.writable() && value(later) == 8 && others == 0);
    push({.updates = {other}}, [&] { ++others; });  // runs what it needs first
    CHECK(others == 2);
    push({.writes = {one}}, [] { throw Failure(ErrorKind::value, "late"); });
    CHECK_THROWS(Failure, engine().wait(one->variable));
    engine().wait_all();
    CHECK(engine().counters().outstanding_tasks == 0);
  });
}

void what_nobody_reads_is_left_at_the_end() {
  in_new_process([] {
    Cell cell = make_cell();
    for (int turn = 0; turn < 1000; ++turn) {
      push({.updates = {cell}}, [] { sleep_milliseconds(100); });
    }
    engine().shutdown(Engine::Shutdown::leave);  // in_new_process() waits for a minute at most
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
  return run_tests({TEST(draining_runs_everything), TEST(leaving_runs_what_has_effects),
                    TEST(what_was_left_runs_when_it_is_read),
                    TEST(what_nobody_reads_is_left_at_the_end),
                    TEST(later_work_runs_at_once), TEST(an_interrupted_shutdown_can_be_resumed),
                    TEST(exit_without_shutdown), TEST(pushing_goes_on_during_shutdown)});
}
