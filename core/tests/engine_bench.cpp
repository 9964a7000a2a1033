// What the engine costs by itself. Not a test.
#include <algorithm>
#include <cstdio>
#include <vector>

#include "lock.h"
#include "tasks.h"

using namespace heterosis;

namespace {

// Best and median of many short batches: with busy neighbours the best is what it costs.
template <typename Body>
void report(const char* what, int64_t batch, Body body, int64_t per_call = 1) {
  std::vector<double> times;
  const int64_t stop = nanoseconds() + 700'000'000;
  while (times.size() < 5 || nanoseconds() < stop) {
    const int64_t start = nanoseconds();
    for (int64_t at = 0; at < batch; ++at) body();
    times.push_back(static_cast<double>(nanoseconds() - start) /
                    static_cast<double>(batch * per_call));
  }
  std::sort(times.begin(), times.end());
  std::printf("%-62s best %9.1f ns, median %9.1f\n", what, times[0], times[times.size() / 2]);
}

void nothing(void*, int64_t, int64_t, int64_t) {}

void spin_5_microseconds(void*, int64_t, int64_t, int64_t) {
  for (const int64_t end = nanoseconds() + 5000; nanoseconds() < end;) relax();
}

class Empty final : public Task {
 protected:
  void run() override {}
};

void push_empty(const Cell& in, const Cell& out) {
  auto task = std::make_unique<Empty>();
  task->read(in);
  task->write(out);
  engine().push(std::move(task));
}

void memory() {
  report("allocate + deallocate 256 bytes", 2000, [] { deallocate(allocate(256), 256); });
  report("allocate + deallocate 4 MiB, cached", 2000,
         [] { deallocate(allocate(4 << 20), 4 << 20); });
  report("Storage: make, ensure 256 bytes, drop", 2000, [] { Storage::make(256)->ensure(); });
}

void tasks() {
  Cell a = make_cell();
  Cell b = make_cell();
  value(a) = value(b) = 0;
  report("inline check of two inputs and an output", 10'000, [&] {
    const bool ready = a->variable.readable() && b->variable.readable() && b->variable.writable();
    asm volatile("" ::"r"(ready) : "memory");
  });
  const auto chained = [&] {
    for (int at = 0; at < 1000; ++at) push_empty(a, b);
    engine().wait_all();
  };
  const auto independent = [&] {
    for (int at = 0; at < 1000; ++at) push_empty(a, make_cell());
    engine().wait_all();
  };
  report("push 1000 chained empty tasks, wait for all: a task", 1, chained, 1000);
  report("push 1000 independent empty tasks, wait for all: a task", 1, independent, 1000);
  report("push one and wait for it", 200, [&] {
    push_empty(a, b);
    engine().wait(b->variable);
  });
}

void loops() {
  report("parallel_for, 2 empty shares", 500,
         [] { pool().parallel_for(nothing, nullptr, 2, 1); });
  report("parallel_for, 2 shares of 5 us", 50,
         [] { pool().parallel_for(spin_5_microseconds, nullptr, 2, 1); });
  report("parallel_for, 20 shares of 5 us", 5,
         [] { pool().parallel_for(spin_5_microseconds, nullptr, 20, 1); });
  report("pause of 1 ms (threads fall asleep), then 2 shares of 5 us", 5, [] {
    timespec pause{0, 1'000'000};
    nanosleep(&pause, nullptr);
    pool().parallel_for(spin_5_microseconds, nullptr, 2, 1);
  });
  report("the pause alone", 5, [] {
    timespec pause{0, 1'000'000};
    nanosleep(&pause, nullptr);
  });
}

}  // namespace

int main() {
  memory();
  engine().set_bounds(1'000'000, int64_t{1} << 60);
  for (int threads : {1, 2}) {
    pool().set_threads(threads);
    std::printf("-- threads: %d\n", threads);
    tasks();
    loops();
  }
  return 0;
}
