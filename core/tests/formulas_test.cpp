// Tables of formulas: what they compute at the edges of 64 bits, and that no table reads or computes
// what is not there.
#include "formulas.h"

#include <bit>
#include <cstdint>
#include <limits>
#include <random>
#include <stdexcept>
#include <vector>

#include "check.h"

using namespace heterosis;

namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
constexpr int kOperations = static_cast<int>(Operation::require) + 1;

int64_t number(int64_t value) { return 2 * value + 1; }
int64_t slot(int64_t which) { return 2 * which; }
int64_t bits(double value) { return std::bit_cast<int64_t>(value); }

struct Found {
  bool holds;
  int64_t result;
};

// One operation on two sizes.
Found computed(Operation operation, int64_t a, int64_t b) {
  const Formulas formulas(2, {static_cast<int64_t>(operation), slot(0), slot(1)});
  int64_t slots[] = {a, b, 0};
  const bool holds = formulas.evaluate(0, formulas.rows(), slots);
  return {holds, slots[2]};
}

void gives(Operation operation, int64_t a, int64_t b, int64_t wanted) {
  const Found found = computed(operation, a, b);
  CHECK(found.holds);
  CHECK(found.result == wanted);
}

void refuses(Operation operation, int64_t a, int64_t b) { CHECK(!computed(operation, a, b).holds); }

void whole_numbers() {
  gives(Operation::add, 3, 4, 7);
  gives(Operation::divide, 7, 2, 3);
  gives(Operation::divide, -7, 2, -4);
  gives(Operation::divide, kLeast, 1, kLeast);
  gives(Operation::max, -1, kMost, kMost);
  gives(Operation::less_equal, 4, 4, 1);
  gives(Operation::joined, -1, 0xFFFFFFFF, -1);
  refuses(Operation::add, kMost, 1);
  refuses(Operation::subtract, kLeast, 1);
  refuses(Operation::multiply, kMost, 2);
  refuses(Operation::require, 0, 0);
}

void floats() {
  gives(Operation::to_float, 3, 0, bits(3.0));
  gives(Operation::float_divide, bits(1.0), bits(4.0), bits(0.25));
  gives(Operation::floor, bits(-0.5), 0, -1);
  gives(Operation::float_equal, bits(0.0), bits(-0.0), 1);
  refuses(Operation::floor, bits(1e300), 0);
  refuses(Operation::floor, bits(std::numeric_limits<double>::infinity()), 0);
  refuses(Operation::floor, bits(std::numeric_limits<double>::quiet_NaN()), 0);
}

// A table that names what comes later, or no operation, is refused.
void bad_tables_are_refused() {
  const std::vector<std::vector<int64_t>> tables = {
      {0, slot(2), slot(0)},          {0, slot(0), slot(1) + 2},
      {0, -2, slot(0)},               {kOperations, slot(0), slot(0)},
      {-1, slot(0), slot(0)},         {0, slot(0)},
      {kMost, slot(0), slot(0)},      {0, kLeast, slot(0)},
      {0, slot(0), slot(kMost / 2)},
  };
  for (const std::vector<int64_t>& table : tables) {
    CHECK_THROWS(std::invalid_argument, Formulas(2, table));
  }
}

// Whatever table is taken, all that it does is defined: the sanitizers look on.
void random_tables_do_what_is_defined() {
  std::mt19937_64 random(1);
  const int64_t edges[] = {0, 1, -1, 2, kMost, kLeast, kMost / 2, bits(0.5), bits(-1e300)};
  const auto some = [&](int64_t count) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(count));
  };
  for (int round = 0; round < 20000; ++round) {
    std::vector<int64_t> table;
    for (int64_t row = 0; row < 8; ++row) {
      const auto operand = [&] {
        return some(3) ? slot(some(2 + row)) : number(edges[some(std::size(edges))] / 2);
      };
      table.push_back(some(kOperations));
      table.push_back(operand());
      table.push_back(operand());
    }
    const Formulas formulas(2, table);
    std::vector<int64_t> slots(formulas.slots());
    slots[0] = edges[some(std::size(edges))];
    slots[1] = edges[some(std::size(edges))];
    const bool all = formulas.evaluate(0, formulas.rows(), slots.data());
    const bool parts = formulas.evaluate(0, 4, slots.data()) &&
                       formulas.evaluate(4, formulas.rows(), slots.data());
    CHECK(all == parts);
  }
}

}  // namespace

int main() {
  return run_tests({TEST(whole_numbers), TEST(floats), TEST(bad_tables_are_refused),
                    TEST(random_tables_do_what_is_defined)});
}
