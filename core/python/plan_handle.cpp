#include "plan_handle.h"

#include "../front.h"
#include "origin.h"

namespace heterosis::python {

bool Preparation::is_current(const Invocation& invocation) const {
  if (results_.empty()) return false;  // also where there is no array that could have changed
  for (size_t i = 0; i < fixed_.size(); ++i) {
    const Array& array = *invocation.arrays[fixed_[i]];
    const Seen& seen = seen_[i];
    const Storage& storage = *seen.storage;  // known without waiting for the array's line of memory
    if (storage.version != seen.version || storage.released != seen.released ||
        !storage.is_ours() || !(array.storage == seen.storage) || array.offset != seen.offset) {
      return false;
    }
  }
  return true;
}

// What is seen is noted before the run: other threads may write meanwhile, and prepare, too.
const std::vector<Array>& Preparation::results(const Invocation& invocation) {
  if (is_current(invocation)) return results_;
  std::vector<Seen> seen;
  for (const size_t fixed : fixed_) {
    const Array& array = *invocation.arrays[fixed];
    seen.push_back({array.storage, array.storage->version, array.storage->released, array.offset});
  }
  Invocation own = invocation;
  own.plan = plan_.get();
  Results made = run(own, {}, user_line);
  std::vector<Array> results(std::make_move_iterator(made.begin()),
                             std::make_move_iterator(made.end()));
  results_ = std::move(results);  // with what was seen, or not at all
  seen_ = std::move(seen);
  return results_;
}

// What only the preparation takes is no operand of the plan: the engine need not keep an order among
// its readers, of which a network has hundreds, and whoever writes it need not wait for the run.
Results PlanHandle::run(const std::vector<const Array*>& arrays,
                        const std::vector<int64_t>& scalars,
                        const std::vector<bool>* taken_over,
                        const Refusal* refusal) const {
  Invocation invocation{plan.get(), arrays.data(), static_cast<int>(arrays.size()), scalars.data(),
                        static_cast<int>(scalars.size())};
  std::vector<Array> kept;  // while this computes, another thread may prepare anew
  std::vector<const Array*> taken;
  if (preparation) {
    const std::vector<Array>& ahead = preparation->results(invocation);
    if constexpr (kFreeThreaded) kept = ahead;
    taken.reserve(own.size() + ahead.size());
    for (const size_t position : own) taken.push_back(arrays[position]);
    for (const Array& prepared : kFreeThreaded ? kept : ahead) taken.push_back(&prepared);
    invocation.arrays = taken.data();
    invocation.array_count = static_cast<int>(taken.size());
  }
  invocation.taken_over = taken_over;
  invocation.refusal = refusal;
  return heterosis::run(invocation, {}, user_line);
}

}  // namespace heterosis::python
