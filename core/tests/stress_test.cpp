// Random graphs of tasks, on the engine and in plain order: the results must be the same.
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "check.h"
#include "tasks.h"

using namespace heterosis;

namespace {

struct Step {
  std::vector<std::size_t> reads;
  std::vector<std::size_t> writes;
  std::vector<std::size_t> updates;
  int64_t seed = 0;
  bool fails = false;
  bool loops = false;
};

Step random_step(std::mt19937_64& random, std::size_t cells) {
  const auto some = [&](std::size_t most) {
    std::vector<std::size_t> chosen(random() % (most + 1));
    for (std::size_t& cell : chosen) cell = random() % cells;
    return chosen;
  };
  Step step{some(4), some(2), some(1), static_cast<int64_t>(random() >> 8)};
  step.fails = random() % 50 == 0;
  step.loops = random() % 20 == 0;
  return step;
}

int64_t mix(int64_t a, int64_t b) {
  uint64_t value = static_cast<uint64_t>(a) * 0x9E3779B97F4A7C15u ^ static_cast<uint64_t>(b);
  value ^= value >> 29;
  return static_cast<int64_t>(value * 0xBF58476D1CE4E5B9u);
}

// What a step computes. A cell named as read or update counts with its old value; every written
// cell gets a value that depends on all of them.
template <typename Value>  // int64_t& (index)
void compute(const Step& step, Value value) {
  int64_t sum = step.seed;
  for (std::size_t cell : step.reads) sum = mix(sum, value(cell));
  for (std::size_t cell : step.updates) sum = mix(sum, value(cell));
  for (std::size_t cell : step.writes) value(cell) = mix(sum, 1);
  for (std::size_t cell : step.updates) value(cell) = mix(sum, 2);
}

// The same, one after the other, with errors as the engine keeps them: zero stands for none.
struct Sequential {
  std::vector<int64_t> values;
  std::vector<int64_t> errors;

  void run(const Step& step) {
    int64_t error = 0;
    const auto inherit = [&](const std::vector<std::size_t>& cells) {
      for (std::size_t cell : cells) {
        if (error == 0) error = errors[cell];
      }
    };
    inherit(step.reads);
    inherit(step.updates);
    const bool inherited = error != 0;
    if (!inherited && step.fails) error = step.seed;
    if (!error) compute(step, [&](std::size_t cell) -> int64_t& { return values[cell]; });
    for (std::size_t cell : step.writes) errors[cell] = error;
    for (std::size_t cell : step.updates) errors[cell] = error;
  }
};

void work_in_a_loop(const Step& step) {
  std::atomic<int64_t> sum{0};
  const hx_loop_body add = [](void* context, int64_t begin, int64_t end, int64_t) {
    for (; begin < end; ++begin) static_cast<std::atomic<int64_t>*>(context)->fetch_add(begin);
  };
  const int64_t count = 1 + step.seed % 200;
  pool().parallel_for(add, &sum, count, 3);
  CHECK(sum == count * (count - 1) / 2);
}

class StepTask final : public Task {
 public:
  StepTask(const Step& step, const std::vector<Cell>& cells) : step_(step), cells_(cells) {
    for (std::size_t cell : step.reads) read(cells[cell]);
    for (std::size_t cell : step.updates) update(cells[cell]);
    for (std::size_t cell : step.writes) write(cells[cell]);
  }

 protected:
  void run() override {
    if (step_.loops) work_in_a_loop(step_);
    if (step_.fails) throw Failure(ErrorKind::value, std::to_string(step_.seed));
    compute(step_, [&](std::size_t cell) -> int64_t& { return value(cells_[cell]); });
  }

 private:
  const Step& step_;
  const std::vector<Cell>& cells_;
};

int64_t error_number(const Cell& cell) {
  try {
    engine().wait(cell->variable);
    return 0;
  } catch (const Failure& failure) {
    return std::stoll(failure.what());
  }
}

// One graph, pushed by several threads. The order of pushing, written down under the lock that
// stands for Python's, is the order of the sequential run.
void compare(uint64_t seed, std::size_t cells, int steps, int pushers) {
  std::vector<Cell> real;
  Sequential expected{std::vector<int64_t>(cells), std::vector<int64_t>(cells)};
  for (std::size_t cell = 0; cell < cells; ++cell) {
    real.push_back(make_cell());
    value(real[cell]) = expected.values[cell] = static_cast<int64_t>(cell);
  }
  std::mutex front_end;
  std::vector<const Step*> order;
  std::vector<std::vector<Step>> scripts(static_cast<std::size_t>(pushers));
  std::vector<std::thread> threads;
  for (std::size_t pusher = 0; pusher < scripts.size(); ++pusher) {
    threads.emplace_back([&, pusher] {
      std::mt19937_64 random(seed * 100 + pusher);
      std::vector<Step>& script = scripts[pusher];
      script.reserve(static_cast<std::size_t>(steps));
      for (int turn = 0; turn < steps; ++turn) {
        const Step& step = script.emplace_back(random_step(random, cells));
        if (engine().must_wait()) engine().wait_for_room();
        {
          const std::lock_guard<std::mutex> hold(front_end);
          order.push_back(&step);
          engine().push(std::make_unique<StepTask>(step, real));
        }
        if (random() % 64 == 0) error_number(real[random() % cells]);
        if (random() % 256 == 0) engine().wait_idle(real[random() % cells]->variable);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Step* step : order) expected.run(*step);
  for (std::size_t cell = 0; cell < cells; ++cell) {
    const int64_t error = error_number(real[cell]);
    CHECK((error != 0) == (expected.errors[cell] != 0));
    if (!error) CHECK(value(real[cell]) == expected.values[cell]);
  }
  try {
    engine().wait_all();
  } catch (const Failure&) {
  }
  CHECK(engine().counters().outstanding_tasks == 0);
  for (const Cell& cell : real) CHECK(cell->use_count() == 1);
}

// Inherited errors: a task with several failed inputs may pass on any of them, so that only their
// presence is compared above.
void random_graphs() {
  const char* turns = std::getenv("HETEROSIS_STRESS");
  const uint64_t graphs = turns ? std::strtoull(turns, nullptr, 10) : 20;
  for (uint64_t seed = 1; seed <= graphs; ++seed) {
    const Threads threads(1 + static_cast<int>(seed % 4));
    engine().set_bounds(seed % 2 ? 4096 : 32, int64_t{1} << 40);
    const std::size_t cells = seed % 3 == 0 ? 3 : seed % 3 == 1 ? 12 : 200;
    compare(seed, cells, 400, 1 + static_cast<int>(seed % 4));
  }
}

}  // namespace

int main() { return run_tests({TEST(random_graphs)}); }
