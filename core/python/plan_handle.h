// A plan as Python holds it, with what is computed ahead of it.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "../dispatch.h"
#include "../plan.h"

namespace heterosis::python {

// Results of a plan of their own, made from arrays that seldom change, and made anew when one has.
// Used under the front end's lock.
class Preparation {
 public:
  Preparation(Ref<const Plan> plan, std::vector<size_t> fixed)
      : plan_(std::move(plan)), fixed_(std::move(fixed)), seen_(fixed_.size()) {}

  // The results for these operands, to be appended to them.
  const std::vector<Array>& results(const Invocation& invocation);

 private:
  struct Seen {  // an array as it was; the reference keeps its memory from serving another
    Ref<Storage> storage;
    uint64_t version = 0;
    int64_t released = 0;
    int64_t offset = 0;
  };
  bool is_current(const Invocation& invocation) const;

  Ref<const Plan> plan_;
  std::vector<size_t> fixed_;  // positions among the arrays
  std::vector<Seen> seen_;
  std::vector<Array> results_;
};

struct PlanHandle {
  Ref<const Plan> plan;
  std::shared_ptr<Preparation> preparation;  // null for most
  std::vector<size_t> own = {};  // with one, the arrays that the plan takes before its results

  // `run` for all operands but what is prepared. `taken_over` and `refusal` are as an invocation has
  // them.
  Results run(const std::vector<const Array*>& arrays, const std::vector<int64_t>& scalars,
              const std::vector<bool>* taken_over = nullptr,
              const Refusal* refusal = nullptr) const;
};

}  // namespace heterosis::python
