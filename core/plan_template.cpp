#include "plan_template.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "allocator.h"
#include "pool.h"

namespace heterosis {

namespace {

Dims dims_at(const std::vector<Word>& words, const int64_t* slots) {
  Dims found(static_cast<int>(words.size()));
  for (size_t i = 0; i < words.size(); ++i) found[static_cast<int>(i)] = words[i].at(slots);
  return found;
}

// Bytes of an array; none if they are more than all arrays together may take.
std::optional<int64_t> nbytes_of(DType dtype, const Dims& shape) {
  int64_t found = itemsize(dtype);
  for (int64_t extent : shape) {
    if (__builtin_mul_overflow(found, extent, &found)) return std::nullopt;
  }
  return found <= memory_counters().limit ? std::optional(found) : std::nullopt;
}

// A result; false if there is no room for it.
bool result_at(const ResultTemplate& result, const int64_t* slots, ResultPlan& found) {
  found.dtype = result.dtype;
  found.shape = dims_at(result.shape, slots);
  found.strides = dims_at(result.strides, slots);
  found.view_of = result.view_of;
  found.offset = result.offset.at(slots);
  if (found.view_of >= 0) return true;
  const std::optional<int64_t> nbytes = nbytes_of(found.dtype, found.shape);
  found.nbytes = nbytes.value_or(0);
  return nbytes.has_value();
}

FailurePlan failure_at(const FailureTemplate& failure, const int64_t* slots) {
  std::string message = failure.texts.front();
  for (size_t i = 0; i < failure.numbers.size(); ++i) {
    message += std::to_string(failure.numbers[i].at(slots)) + failure.texts[i + 1];
  }
  return {failure.kind, std::move(message)};
}

}  // namespace

bool PlanTemplate::is_among(size_t slots) const {
  const auto known = [&](const Word& word) { return word.is_among(slots); };
  const auto all = [&](const std::vector<Word>& words) {
    return std::all_of(words.begin(), words.end(), known);
  };
  return all(integers) && known(workspace) && known(nanoseconds) && over.size() <= results.size() &&
         std::all_of(results.begin(), results.end(), [&](const ResultTemplate& result) {
           return all(result.shape) && all(result.strides) && known(result.offset);
         }) &&
         std::all_of(failures.begin(), failures.end(), [&](const FailureTemplate& failure) {
           return all(failure.numbers) && failure.texts.size() == failure.numbers.size() + 1;
         });
}

Ref<const Plan> PlanTemplate::at(const int64_t* slots) const {
  auto* const plan = new Plan;
  const Ref<const Plan> owned(plan);
  plan->operation = operation;
  plan->serial = next_serial();
  plan->function = function;
  plan->code = code;
  plan->runtime = runtime();
  plan->integers.reserve(integers.size());
  for (const Word& word : integers) plan->integers.push_back(word.at(slots));
  plan->workspace = workspace.at(slots);
  plan->nanoseconds = std::bit_cast<double>(nanoseconds.at(slots));
  plan->elementwise = elementwise;
  plan->in_place = in_place;
  plan->results.resize(results.size());
  for (size_t i = 0; i < results.size(); ++i) {
    if (!result_at(results[i], slots, plan->results[i])) return {};
  }
  for (size_t i = 0; i < over.size(); ++i) plan->results[i].over = over[i];
  for (const FailureTemplate& one : failures) plan->failures.push_back(failure_at(one, slots));
  return owned;
}

}  // namespace heterosis
