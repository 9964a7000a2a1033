// The plans of a program whose sizes are open: for ranges of these, and from them for any size.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "../formulas.h"
#include "../plan_template.h"
#include "../ref.h"
#include "common.h"
#include "plan_handle.h"

namespace heterosis::python {

// A preparation that plans share, when the first of them has made it.
struct Prepared {
  std::shared_ptr<Preparation> made;
};

// Plans for all sizes of which some conditions hold.
struct PlanRange {
  Formulas formulas;
  size_t conditions;  // rows that say whether sizes are in the range; the others are for its plans
  Ref<const PlanTemplate> plan;
  Ref<const PlanTemplate> preparation;  // null where nothing is computed ahead
  std::shared_ptr<Prepared> prepared;   // null where each plan has its own preparation
  std::vector<size_t> ahead;            // the arrays that it depends on
  std::vector<size_t> own;              // those that the plan takes
};

// Used under the front end's lock.
class SizedPlans {
 public:
  // `prove` is called for each plan, (range, sizes), and raises if it is wrong; null without.
  SizedPlans(size_t most, Object prove) : most_(most), prove_(std::move(prove)) {}

  // The newest is asked first; the oldest is dropped where there are too many.
  void add(PlanRange range);

  // The plan for sizes, if it has room, and the number of the range that they are in; -1 if they
  // are in none.
  struct Found {
    PlanHandle plan;
    int range = -1;
  };
  Found at(const std::vector<int64_t>& sizes) const;

 private:
  void prove(size_t range, const std::vector<int64_t>& sizes) const;

  size_t most_;
  Object prove_;
  std::deque<PlanRange> ranges_;
};

}  // namespace heterosis::python
