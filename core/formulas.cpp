#include "formulas.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <stdexcept>

namespace heterosis {

namespace {

constexpr size_t kFields = 3;  // of a row

double real(int64_t bits) { return std::bit_cast<double>(bits); }
int64_t bits(double number) { return std::bit_cast<int64_t>(number); }

// Rounded down. The divisor is positive where the quotient is asked for, which a row requires.
int64_t divided(int64_t a, int64_t b) {
  const int64_t divisor = std::max<int64_t>(b, 1);
  return a / divisor - (a % divisor < 0);
}

// The bits of a number in two halves.
int64_t joined(int64_t high, int64_t low) {
  return static_cast<int64_t>(static_cast<uint64_t>(high) << 32 | static_cast<uint64_t>(low));
}

// The result of a row in `found`; false if there is none.
bool evaluate_row(Operation operation, int64_t a, int64_t b, int64_t& found) {
  switch (operation) {
    case Operation::add: return !__builtin_add_overflow(a, b, &found);
    case Operation::subtract: return !__builtin_sub_overflow(a, b, &found);
    case Operation::multiply: return !__builtin_mul_overflow(a, b, &found);
    case Operation::divide: found = divided(a, b); return true;
    case Operation::max: found = std::max(a, b); return true;
    case Operation::min: found = std::min(a, b); return true;
    case Operation::less: found = a < b; return true;
    case Operation::less_equal: found = a <= b; return true;
    case Operation::equal: found = a == b; return true;
    case Operation::to_float: found = bits(static_cast<double>(a)); return true;
    case Operation::joined: found = joined(a, b); return true;
    case Operation::float_add: found = bits(real(a) + real(b)); return true;
    case Operation::float_subtract: found = bits(real(a) - real(b)); return true;
    case Operation::float_multiply: found = bits(real(a) * real(b)); return true;
    case Operation::float_divide: found = bits(real(a) / real(b)); return true;
    case Operation::float_less: found = real(a) < real(b); return true;
    case Operation::float_less_equal: found = real(a) <= real(b); return true;
    case Operation::float_equal: found = real(a) == real(b); return true;
    case Operation::floor:
      if (!(std::fabs(real(a)) < 0x1p62)) return false;  // nor what is not a number
      found = static_cast<int64_t>(std::floor(real(a)));
      return true;
    case Operation::require: found = a; return a != 0;
  }
  return false;
}

}  // namespace

Formulas::Formulas(size_t sizes, const std::vector<int64_t>& table) : sizes_(sizes) {
  if (table.size() % kFields) throw std::invalid_argument("formulas: part of a row is missing");
  rows_.reserve(table.size() / kFields);
  for (size_t i = 0; i < table.size(); i += kFields) {
    const Row row{static_cast<Operation>(table[i]), Word(table[i + 1]), Word(table[i + 2])};
    const bool known = table[i] >= 0 && row.operation <= Operation::require;
    if (!known || !row.a.is_among(slots()) || !row.b.is_among(slots())) {
      throw std::invalid_argument("formulas: a row that names no operation, or a later row");
    }
    rows_.push_back(row);
  }
}

bool Formulas::evaluate(size_t first, size_t end, int64_t* slots) const {
  for (size_t i = first; i < end; ++i) {
    const Row& row = rows_[i];
    if (!evaluate_row(row.operation, row.a.at(slots), row.b.at(slots), slots[sizes_ + i])) {
      return false;
    }
  }
  return true;
}

}  // namespace heterosis
