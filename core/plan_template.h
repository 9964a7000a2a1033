// A plan of a program whose sizes are open: with words of formulas in place of numbers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "abi.h"
#include "dtype.h"
#include "error.h"
#include "formulas.h"
#include "plan.h"
#include "ref.h"

namespace heterosis {

struct ResultTemplate {
  DType dtype;
  std::vector<Word> shape;
  int view_of;
  std::vector<Word> strides;
  Word offset;
};

// A message in which numbers stand: texts, and the number that follows each of them but the last.
struct FailureTemplate {
  ErrorKind kind;
  std::vector<std::string> texts;
  std::vector<Word> numbers;
};

struct PlanTemplate : Counted {
  std::string operation;
  hx_function function = nullptr;
  std::shared_ptr<const void> code;  // as a plan has it
  std::vector<Word> integers;
  Word workspace{1};
  Word nanoseconds{1};  // the bits of a double
  bool elementwise = false;
  bool in_place = false;
  std::vector<int> over;  // as results' plans have it; empty if no result is over an array
  std::vector<ResultTemplate> results;
  std::vector<FailureTemplate> failures;

  // Whether all its words are among so many slots.
  bool is_among(size_t slots) const;

  // The plan where the slots have these numbers; null if a result is larger than all memory.
  Ref<const Plan> at(const int64_t* slots) const;
};

}  // namespace heterosis
