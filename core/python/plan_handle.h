// A plan on its way from Python, where it is made, to the cache of its operation.
#pragma once

#include "../plan.h"

namespace heterosis::python {

struct PlanHandle {
  Ref<const Plan> plan;
};

}  // namespace heterosis::python
