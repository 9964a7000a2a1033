// Parallel loops as compiled code starts them.
#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "check.h"
#include "pool.h"

using namespace heterosis;

namespace {

using Body = std::function<void(int64_t begin, int64_t end, int64_t worker)>;

void call(void* context, int64_t begin, int64_t end, int64_t worker) {
  (*static_cast<Body*>(context))(begin, end, worker);
}

void loop(int64_t count, int64_t grain, Body body) {
  const hx_runtime* table = runtime();
  table->parallel_for(table->pool, call, &body, count, grain);
}

void every_index_once() {
  for (int64_t count : {0, 1, 2, 7, 64, 1000, 4097}) {
    for (int64_t grain : {-1, 0, 1, 3, 64, 5000}) {
      std::vector<std::atomic<int>> seen(static_cast<std::size_t>(count));
      loop(count, grain, [&](int64_t begin, int64_t end, int64_t worker) {
        CHECK(begin < end && end <= count);
        CHECK(end - begin == std::max<int64_t>(grain, 1) || end == count);
        CHECK(worker >= 0 && worker < runtime()->workers);
        for (int64_t at = begin; at < end; ++at) ++seen[static_cast<std::size_t>(at)];
      });
      for (const auto& times : seen) CHECK(times == 1);
    }
  }
}

void small_loops_stay_on_the_caller() {
  const auto caller = std::this_thread::get_id();
  loop(10, 10, [&](int64_t begin, int64_t end, int64_t) {
    CHECK(begin == 0 && end == 10);
    CHECK(std::this_thread::get_id() == caller);
  });
}

// Loops that take long are helped by sleeping threads, too: a first share that takes long shows that
// a loop does. Only then may the next two wait for each other, as shares elsewhere never may.
void shares_run_side_by_side() {
  if (runtime()->workers < 2) return;
  for (int turn = 0; turn < 100; ++turn) {
    std::atomic<int> met{0};
    loop(3, 1, [&](int64_t begin, int64_t, int64_t) {
      if (begin == 0) return sleep_milliseconds(1);
      ++met;
      until([&] { return met == 2; });
    });
  }
}

void worker_numbers_are_not_shared() {
  std::vector<std::atomic<int>> busy(static_cast<std::size_t>(runtime()->workers));
  for (int turn = 0; turn < 500; ++turn) {
    loop(50, 1, [&](int64_t, int64_t, int64_t worker) {
      CHECK(busy[static_cast<std::size_t>(worker)].fetch_add(1) == 0);
      for (int spin = 0; spin < 50; ++spin) relax();
      busy[static_cast<std::size_t>(worker)].fetch_sub(1);
    });
  }
}

void nested_loops_run_inline() {
  std::atomic<int64_t> sum{0};
  loop(20, 1, [&](int64_t outer, int64_t, int64_t outer_worker) {
    const auto thread = std::this_thread::get_id();
    loop(30, 7, [&](int64_t begin, int64_t end, int64_t worker) {
      CHECK(std::this_thread::get_id() == thread);
      CHECK(worker == outer_worker);
      CHECK(end - begin <= 7);
      for (int64_t inner = begin; inner < end; ++inner) sum += outer * 30 + inner;
    });
  });
  CHECK(sum == 600 * 599 / 2);
}

void threads_start_loops_side_by_side() {
  std::vector<std::thread> threads;
  for (int64_t offset = 0; offset < 4; ++offset) {
    threads.emplace_back([offset] {
      for (int64_t turn = 0; turn < 300; ++turn) {
        std::atomic<int64_t> sum{0};
        loop(100, 3, [&](int64_t begin, int64_t end, int64_t) {
          for (int64_t at = begin; at < end; ++at) sum += at + offset * turn;
        });
        CHECK(sum == 4950 + 100 * offset * turn);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// More loops at once than the table has slots: the rest run on their callers.
void more_loops_than_slots() {
  constexpr int kThreads = 80;
  std::atomic<int> inside{0};
  std::vector<std::thread> threads;
  for (int index = 0; index < kThreads; ++index) {
    threads.emplace_back([&] {
      std::atomic<int> shares{0};
      loop(2, 1, [&](int64_t begin, int64_t, int64_t worker) {
        ++shares;
        if (begin > 0 || worker != 0) return;
        ++inside;
        until([&] { return inside == kThreads; });
      });
      CHECK(shares == 2);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// A thread that loses its core keeps the loop waiting for its one share; all others go on. The
// first share takes long, as above.
void a_slow_thread_holds_up_one_share() {
  if (runtime()->workers < 2) return;
  std::atomic<int> others{0};
  std::atomic<bool> slow_taken{false};
  loop(101, 1, [&](int64_t begin, int64_t, int64_t) {
    if (begin == 0) {
      sleep_milliseconds(1);
    } else if (!slow_taken.exchange(true)) {
      until([&] { return others == 99; });  // done by the other participant meanwhile
    } else {
      ++others;
    }
  });
  CHECK(others == 99);
}

void with_busy_neighbours() {
  std::atomic<bool> stop{false};
  std::vector<std::thread> neighbours;
  for (int index = 0; index < 3; ++index) {
    neighbours.emplace_back([&] {
      while (!stop) relax();
    });
  }
  for (int turn = 0; turn < 100; ++turn) {
    std::atomic<int64_t> sum{0};
    loop(64, 1, [&](int64_t begin, int64_t, int64_t) { sum += begin; });
    CHECK(sum == 64 * 63 / 2);
  }
  stop = true;
  for (std::thread& neighbour : neighbours) neighbour.join();
}

// The owner sleeps while another thread is at the last share.
void owners_sleep_through_long_shares() {
  if (runtime()->workers < 2) return;
  const auto owner = std::this_thread::get_id();
  for (int turn = 0; turn < 5; ++turn) {
    std::atomic<bool> late{false};
    std::atomic<bool> late_done{false};
    loop(3, 1, [&](int64_t begin, int64_t, int64_t) {
      if (begin == 0) return sleep_milliseconds(1);
      if (std::this_thread::get_id() == owner) return until([&] { return late.load(); });
      late = true;
      sleep_milliseconds(5);
      late_done = true;
    });
    CHECK(late_done);
  }
}

void results_are_seen_by_the_caller() {
  std::vector<int64_t> values(10'000);
  for (int64_t turn = 1; turn < 200; ++turn) {
    loop(10'000, 100, [&](int64_t begin, int64_t end, int64_t) {
      for (int64_t at = begin; at < end; ++at) values[static_cast<std::size_t>(at)] += turn;
    });
    CHECK(values.front() == turn * (turn + 1) / 2 && values.back() == values.front());
  }
}

}  // namespace

int main() {
  if (pool().threads() < 2) pool().set_threads(2);
  return run_tests({TEST(every_index_once), TEST(small_loops_stay_on_the_caller),
                    TEST(shares_run_side_by_side), TEST(worker_numbers_are_not_shared),
                    TEST(nested_loops_run_inline), TEST(threads_start_loops_side_by_side),
                    TEST(more_loops_than_slots), TEST(a_slow_thread_holds_up_one_share),
                    TEST(with_busy_neighbours), TEST(owners_sleep_through_long_shares),
                    TEST(results_are_seen_by_the_caller)});
}
