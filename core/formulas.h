// Numbers that follow from sizes, as a table of operations. `heterosis/ir/formulas.py` makes such
// tables of expressions, and says what they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace heterosis {

// A number, or the slot that it is in: the sizes come first, and then the result of each row.
class Word {
 public:
  explicit Word(int64_t bits) : bits_(bits) {}

  int64_t at(const int64_t* slots) const { return bits_ & 1 ? bits_ >> 1 : slots[bits_ >> 1]; }
  // Whether it is the number, or the number of the slot, of a table with so many slots.
  bool is_among(size_t slots) const {
    return bits_ & 1 || (bits_ >= 0 && static_cast<size_t>(bits_ >> 1) < slots);
  }

 private:
  int64_t bits_;
};

// The numbers of the operations are those of `OPERATIONS` in Python.
enum class Operation : int64_t {
  add, subtract, multiply, divide, max, min, less, less_equal, equal,
  to_float, joined,
  float_add, float_subtract, float_multiply, float_divide, float_less, float_less_equal, float_equal,
  floor, require,
};

struct Row {
  Operation operation;
  Word a, b;
};

class Formulas {
 public:
  // Throws std::invalid_argument for a table in which a row names a later one, or none.
  Formulas(size_t sizes, const std::vector<int64_t>& table);

  size_t sizes() const { return sizes_; }
  size_t slots() const { return sizes_ + rows_.size(); }
  size_t rows() const { return rows_.size(); }

  // Does the rows from `first` to before `end`. False if something is required that does not hold,
  // or a number needs more than 64 bits.
  bool evaluate(size_t first, size_t end, int64_t* slots) const;

 private:
  size_t sizes_;
  std::vector<Row> rows_;
};

}  // namespace heterosis
