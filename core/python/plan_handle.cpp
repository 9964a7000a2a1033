#include "plan_handle.h"

#include "origin.h"

namespace heterosis::python {

bool Preparation::is_current(const Invocation& invocation) const {
  if (results_.empty()) return false;  // also where there is no array that could have changed
  for (size_t i = 0; i < fixed_.size(); ++i) {
    const Array& array = *invocation.arrays[fixed_[i]];
    const Seen& seen = seen_[i];
    if (!(seen.storage == array.storage) || !array.storage->is_ours() ||
        seen.version != array.storage->version || seen.released != array.storage->released ||
        seen.offset != array.offset) {
      return false;
    }
  }
  return true;
}

const std::vector<Array>& Preparation::results(const Invocation& invocation) {
  if (is_current(invocation)) return results_;
  Invocation own = invocation;
  own.plan = plan_.get();
  Results made = run(own, {}, user_line);
  results_.assign(std::make_move_iterator(made.begin()), std::make_move_iterator(made.end()));
  for (size_t i = 0; i < fixed_.size(); ++i) {
    const Array& array = *invocation.arrays[fixed_[i]];
    seen_[i] = {array.storage, array.storage->version, array.storage->released, array.offset};
  }
  return results_;
}

Results PlanHandle::run(std::vector<const Array*> arrays, const std::vector<int64_t>& scalars) const {
  Invocation invocation{plan.get(), arrays.data(), static_cast<int>(arrays.size()), scalars.data(),
                        static_cast<int>(scalars.size())};
  if (preparation) {
    for (const Array& prepared : preparation->results(invocation)) arrays.push_back(&prepared);
    invocation.arrays = arrays.data();
    invocation.array_count = static_cast<int>(arrays.size());
  }
  return heterosis::run(invocation, {}, user_line);
}

}  // namespace heterosis::python
