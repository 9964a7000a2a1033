#include "sized_plans.h"

#include "front_lock.h"

#include <algorithm>

namespace heterosis::python {

namespace {

// What is computed ahead of the plans of a range; null if it has no room.
std::shared_ptr<Preparation> preparation_at(const PlanRange& range, const int64_t* slots) {
  if (range.prepared && range.prepared->made) return range.prepared->made;
  const Ref<const Plan> plan = range.preparation->at(slots);
  if (!plan) return nullptr;
  auto made = std::make_shared<Preparation>(plan, range.ahead);
  if (range.prepared) range.prepared->made = made;
  return made;
}

// The plan for the sizes that stand first in the slots; without one if it has no room.
PlanHandle plan_at(const PlanRange& range, int64_t* slots) {
  const Formulas& formulas = range.formulas;
  if (!formulas.evaluate(range.conditions, formulas.rows(), slots)) return {};
  const Ref<const Plan> plan = range.plan->at(slots);
  if (!plan || !range.preparation) return {plan, nullptr, {}};
  auto ahead = preparation_at(range, slots);
  return ahead ? PlanHandle{plan, std::move(ahead), range.own} : PlanHandle{};
}

}  // namespace

void SizedPlans::add(PlanRange range) {
  const FrontLock lock;
  ranges_.push_front(std::move(range));
  if (ranges_.size() > most_) ranges_.pop_back();
}

SizedPlans::Found SizedPlans::at(const std::vector<int64_t>& sizes) const {
  const FrontLock lock;
  std::vector<int64_t> slots;
  for (size_t i = 0; i < ranges_.size(); ++i) {
    const PlanRange& range = ranges_[i];
    if (range.formulas.sizes() != sizes.size()) continue;
    slots.resize(range.formulas.slots());
    std::copy(sizes.begin(), sizes.end(), slots.begin());
    if (!range.formulas.evaluate(0, range.conditions, slots.data())) continue;
    Found found{plan_at(range, slots.data()), static_cast<int>(i)};
    prove(i, sizes);  // last: another thread may add a range meanwhile
    return found;
  }
  return {};
}

void SizedPlans::prove(size_t range, const std::vector<int64_t>& sizes) const {
  if (!prove_) return;
  Object numbers = checked(PyTuple_New(static_cast<Py_ssize_t>(sizes.size())));
  for (size_t i = 0; i < sizes.size(); ++i) {
    PyObject* const number = PyLong_FromLongLong(sizes[i]);
    if (!number) throw PythonError();
    PyTuple_SET_ITEM(numbers.get(), static_cast<Py_ssize_t>(i), number);
  }
  const Object number = checked(PyLong_FromSize_t(range));
  const InPython others;
  checked(PyObject_CallFunctionObjArgs(prove_.get(), number.get(), numbers.get(), nullptr));
}

}  // namespace heterosis::python
