#include "dispatch.h"

#include <utility>

#include "engine.h"
#include "pool.h"

namespace heterosis {

namespace {

std::string describe(const Plan& plan, const std::vector<Array>& inputs) {
  std::string text = plan.operation + "(";
  for (size_t i = 0; i < inputs.size(); ++i) text += (i ? ", " : "") + inputs[i].describe();
  return text + ")";
}

std::vector<Array> copy(std::span<const Array* const> arrays) {
  std::vector<Array> copies;
  copies.reserve(arrays.size());
  for (const Array* array : arrays) copies.push_back(*array);
  return copies;
}

int64_t call(const Plan& plan, void* const* buffers, const int64_t* scalars) {
  Ref<Storage> workspace;
  hx_call arguments{buffers, plan.integers.data(), scalars, nullptr, runtime()};
  if (plan.workspace > 0) {
    workspace = Storage::make(plan.workspace);
    arguments.workspace = workspace->ensure();
  }
  return plan.function(&arguments);
}

[[noreturn]] void fail(const Plan& plan, int64_t status, const std::string& where) {
  const auto at = static_cast<size_t>(status - 1);
  if (at >= plan.failures.size()) {
    throw Failure(ErrorKind::internal, where + ": unknown status " + std::to_string(status) + ".");
  }
  throw Failure(plan.failures[at].kind, where + ": " + plan.failures[at].message);
}

// A queued call. The arrays keep their storages alive; the engine has allocated them.
class PlanTask final : public Task {
 public:
  PlanTask(const Invocation& invocation, const std::vector<Array>& outputs, std::string origin)
      : plan_(invocation.plan),
        inputs_(copy(invocation.inputs())),
        outputs_(outputs),
        scalars_(invocation.scalars, invocation.scalars + invocation.scalar_count),
        origin_(std::move(origin)) {
    for (const Array& input : inputs_) read(input.storage);
    for (const Array& output : outputs_) write(output.storage);
    charge(plan_->workspace);
  }

 protected:
  void run() override {
    std::vector<void*> buffers;
    buffers.reserve(inputs_.size() + outputs_.size());
    for (const Array& input : inputs_) buffers.push_back(input.data());
    for (const Array& output : outputs_) buffers.push_back(output.data());
    if (const int64_t status = call(*plan_, buffers.data(), scalars_.data())) {
      fail(*plan_, status, where());
    }
  }

  ErrorPointer explain(ErrorKind kind, const std::string& what) const override {
    return make_error(kind, where() + ": " + what);
  }

 private:
  std::string where() const {
    const std::string text = describe(*plan_, inputs_);
    return origin_.empty() ? text : text + ", issued at " + origin_;
  }

  Ref<const Plan> plan_;
  std::vector<Array> inputs_;
  std::vector<Array> outputs_;
  std::vector<int64_t> scalars_;
  std::string origin_;
};

bool ready(const Invocation& invocation, const std::vector<Array>& outputs) {
  for (const Array* input : invocation.inputs()) {
    if (!input->storage->variable.readable()) return false;
  }
  for (const Array& output : outputs) {
    if (!output.storage->variable.writable()) return false;
  }
  return true;
}

void run_inline(const Invocation& invocation, const std::vector<Array>& outputs) {
  constexpr size_t kMost = 16;
  void* few[kMost];
  std::vector<void*> many;
  const size_t count = invocation.inputs().size() + outputs.size();
  if (count > kMost) many.resize(count);
  void** buffers = count > kMost ? many.data() : few;
  size_t at = 0;
  for (const Array* input : invocation.inputs()) buffers[at++] = input->data();
  for (const Array& output : outputs) {
    output.storage->ensure();
    buffers[at++] = output.data();
  }
  engine().count_inline();
  if (const int64_t status = call(*invocation.plan, buffers, invocation.scalars)) {
    fail(*invocation.plan, status, describe(*invocation.plan, copy(invocation.inputs())));
  }
}

bool same_view(const Array& a, const Array& b) {
  return a.offset == b.offset && a.dtype == b.dtype && a.shape == b.shape && a.strides == b.strides;
}

}  // namespace

DispatchSettings& dispatch_settings() {
  static DispatchSettings settings;
  return settings;
}

bool must_wait() { return engine().must_wait(); }

bool overlaps(const Invocation& invocation, const Array& out) {
  for (const Array* input : invocation.inputs()) {
    if (input->storage != out.storage) continue;
    if (!(invocation.plan->elementwise && same_view(*input, out))) return true;
  }
  return false;
}

std::vector<Array> run(const Invocation& invocation, const Array* out, Origin origin) {
  const Plan& plan = *invocation.plan;
  std::vector<Array> results;
  std::vector<Array> outputs;
  results.reserve(plan.results.size());
  for (const ResultPlan& result : plan.results) {
    if (result.view_of >= 0) {
      const Array& base = *invocation.arrays[result.view_of];
      results.push_back(make_view(base, result.shape, result.strides, result.offset));
    } else {
      results.push_back(out ? *out : make_array(result.dtype, result.shape));
      outputs.push_back(results.back());
    }
  }
  if (!plan.function) return results;
  if (plan.nanoseconds <= dispatch_settings().inline_nanoseconds && ready(invocation, outputs)) {
    run_inline(invocation, outputs);
  } else {
    engine().push(std::make_unique<PlanTask>(invocation, outputs, origin()));
  }
  return results;
}

}  // namespace heterosis
