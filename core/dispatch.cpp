#include "dispatch.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "allocator.h"
#include "engine.h"
#include "front.h"
#include "profile.h"

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

// `queued` says when the call was issued, if that was before now; 0 if it is issued now.
int64_t call(const Plan& plan, void* const* buffers, const int64_t* scalars, int64_t queued) {
  if (!plan.function) return 0;
  std::optional<Scratch> workspace;  // to the end of the call, also when it fails
  hx_call arguments{buffers, plan.integers.data(), scalars, nullptr, plan.runtime};
  if (plan.workspace > 0) {
    workspace.emplace(plan.workspace);
    arguments.workspace = workspace->data();
  }
  if (!profile().on()) return plan.function(&arguments);
  const int64_t started = Profile::now();
  const int64_t status = plan.function(&arguments);
  profile().add(plan.operation, queued ? queued : started, started);
  return status;
}

// The low 16 bits of a status say which failure; its message may show the number above them.
[[noreturn]] void fail(const Plan& plan, int64_t status, const std::string& where) {
  const auto at = static_cast<size_t>((status & 0xFFFF) - 1);
  if (at >= plan.failures.size()) {
    throw Failure(ErrorKind::internal, where + ": unknown status " + std::to_string(status) + ".");
  }
  std::string message = plan.failures[at].message;
  const size_t gap = message.find("{}");
  if (gap != std::string::npos) message.replace(gap, 2, std::to_string(status >> 16));
  throw Failure(plan.failures[at].kind, where + ": " + message);
}

// The results that the function writes, views left out.
std::vector<Array> written(const Plan& plan, const Results& results) {
  std::vector<Array> outputs;
  outputs.reserve(results.size());
  for (size_t i = 0; i < results.size(); ++i) {
    if (plan.results[i].view_of < 0) outputs.push_back(results.begin()[i]);
  }
  return outputs;
}

// Writing part of a storage leaves the rest, and any error in it, as it was.
bool covers_storage(const Array& array) {
  return array.contiguous && array.nbytes() == array.storage->nbytes();
}

// A queued call. The arrays keep their storages alive; the engine has allocated them.
class PlanTask final : public Task {
 public:
  PlanTask(const Invocation& invocation, const Results& results, std::string origin)
      : plan_(invocation.plan),
        inputs_(copy(invocation.inputs())),
        outputs_(written(*plan_, results)),
        scalars_(invocation.scalars, invocation.scalars + invocation.scalar_count),
        refusal_(invocation.refusal ? *invocation.refusal : nullptr),
        origin_(std::move(origin)) {
    expect(inputs_.size() + outputs_.size());
    for (const Array& input : inputs_) read(input.storage);
    for (const Array& output : outputs_) {
      covers_storage(output) ? write(output.storage) : update(output.storage);
    }
    charge(plan_->workspace);
  }

 protected:
  void run() override {
    std::vector<void*> buffers;
    buffers.reserve(inputs_.size() + outputs_.size());
    for (const Array& input : inputs_) buffers.push_back(input.data());
    for (const Array& output : outputs_) buffers.push_back(output.data());
    if (const int64_t status = call(*plan_, buffers.data(), scalars_.data(), queued_)) {
      refuse(status);
    }
  }

  ErrorPointer explain(ErrorKind kind, const std::string& what) const override {
    return make_error(kind, where() + ": " + what);
  }

 private:
  void refuse(int64_t status) const {
    try {
      fail(*plan_, status, where());
    } catch (const Failure& failure) {
      if (!refusal_) throw;
      *refusal_ = failure.error();
    }
  }

  std::string where() const {
    const std::string text = describe(*plan_, inputs_);
    return origin_.empty() ? text : text + ", issued at " + origin_;
  }

  Ref<const Plan> plan_;
  std::vector<Array> inputs_;
  std::vector<Array> outputs_;
  std::vector<int64_t> scalars_;
  Refusal refusal_;
  std::string origin_;
  int64_t queued_ = profile().on() ? Profile::now() : 0;
};

bool ready(const Invocation& invocation, const Results& results) {
  for (const Array* input : invocation.inputs()) {
    if (!input->storage->variable.readable()) return false;
  }
  size_t i = 0;
  for (const Array& result : results) {
    const bool is_view = invocation.plan->results[i++].view_of >= 0;
    if (!is_view && !result.storage->variable.writable()) return false;
  }
  return true;
}

// If not, a plan without a function has results without elements. There is nothing to compute, but
// they depend on their operands, and so on what failed before, as all results do.
bool results_are_views(const Plan& plan) {
  return std::all_of(plan.results.begin(), plan.results.end(),
                     [](const ResultPlan& result) { return result.view_of >= 0; });
}

int64_t compute(const Invocation& invocation, const Results& results) {
  constexpr size_t kMost = 16;
  void* few[kMost];
  std::vector<void*> many;
  const size_t count = invocation.inputs().size() + results.size();
  if (count > kMost) many.resize(count);
  void** buffers = count > kMost ? many.data() : few;
  size_t at = 0;
  for (const Array* input : invocation.inputs()) {
    input->storage->ensure();  // an array that nobody has written yet
    buffers[at++] = input->data();
  }
  size_t i = 0;
  for (const Array& result : results) {
    if (invocation.plan->results[i++].view_of >= 0) continue;
    result.storage->ensure();
    buffers[at++] = result.data();
  }
  return call(*invocation.plan, buffers, invocation.scalars, 0);
}

// What other threads must not do while the calling thread computes. New results nobody else knows.
class InlineTask final : public Task {
 public:
  InlineTask(const Invocation& invocation, const Results& results) {
    for (const Array* input : invocation.inputs()) read(input->storage);
    size_t i = 0;
    for (const Array& result : results) {
      if (invocation.plan->results[i++].view_of < 0) update(result.storage);
    }
  }

 protected:
  void run() override {}  // its maker does
};

// Computes while other threads use the front end.
int64_t compute_beside_others(const Invocation& invocation, const Results& results) {
  InlineTask task(invocation, results);
  engine().begin(task);
  const OutsideFront others;
  struct Ended {  // before the lock is taken back: a fork waits for this, and holds the lock
    Task& task;
    ~Ended() { engine().end(task); }
  } const ended{task};
  return compute(invocation, results);
}

// Below this, to let go of the lock and take it back would cost more than it lets others do.
constexpr double kWorthLettingGo = 2'000;  // nanoseconds

void run_inline(const Invocation& invocation, const Results& results) {
  engine().count_inline();
  const bool beside = kFreeThreaded && invocation.plan->nanoseconds > kWorthLettingGo;
  const int64_t status = beside ? compute_beside_others(invocation, results)
                                : compute(invocation, results);
  if (status) fail(*invocation.plan, status, describe(*invocation.plan, copy(invocation.inputs())));
}

// The operand that a result is written over; null if it gets memory of its own.
const Array* overwritten(const Invocation& invocation, size_t result) {
  const ResultPlan& plan = invocation.plan->results[result];
  const std::vector<bool>* taken_over = invocation.taken_over;
  if (plan.over < 0 || !taken_over || result >= taken_over->size()) return nullptr;
  const Array& array = *invocation.arrays[plan.over];
  const bool fits = array.dtype == plan.dtype && array.shape == plan.shape && covers_storage(array);
  return (*taken_over)[result] && fits && array.storage->is_ours() ? &array : nullptr;
}

void make_result(const Invocation& invocation, const ResultPlan& plan, int device, Array& result) {
  if (plan.view_of >= 0) {
    result = make_view(*invocation.arrays[plan.view_of], plan.shape, plan.strides, plan.offset);
    return;
  }
  result.dtype = plan.dtype;
  result.shape = plan.shape;
  result.strides = plan.strides;
  result.storage = Storage::make(plan.nbytes);
  result.storage->device = device;
}

// Arrays that take over the elements of others, queued.
class TakeoverTask final : public Task {
 public:
  explicit TakeoverTask(std::span<const Takeover> takeovers) {
    pairs_.reserve(takeovers.size());
    for (const auto& [array, from] : takeovers) {
      pairs_.emplace_back(array->storage, from->storage);
      write(array->storage);
      update(from->storage);
    }
  }

 protected:
  void run() override {
    for (const auto& [storage, from] : pairs_) storage->exchange(*from);
  }

 private:
  std::vector<std::pair<Ref<Storage>, Ref<Storage>>> pairs_;
};

// An array that is handed the elements of another one, queued.
class HandoverTask final : public Task {
 public:
  HandoverTask(Ref<Storage> array, Ref<Storage> from) : array_(*array), from_(*from) {
    write(std::move(array));
    update(std::move(from));
  }

 protected:
  // Invariant: the only Ref to `from_` is the task's own, and no thread can make another, or there
  // are more, and what they see stays.
  void run() override {
    if (from_.use_count() == 1) return array_.exchange(from_);
    std::memcpy(array_.data(), from_.data(), static_cast<size_t>(array_.nbytes()));
  }

 private:
  Storage& array_;
  Storage& from_;
};

// Whether nothing is queued for both, and there is memory to exchange.
bool is_idle(const Takeover& takeover) {
  const Storage &array = *takeover.array->storage, &from = *takeover.from->storage;
  return array.variable.writable() && from.variable.writable() && array.allocated() && from.allocated();
}

[[noreturn]] void refuse_devices(const std::string& operation, int one, int other) {
  const auto name = [](int device) {
    if (device == kOfProcesses) return std::string("processes(0)");
    return device < kFirstRemote ? "cpu(" + std::to_string(device) + ")"
                                 : "gpu(" + std::to_string(device - kFirstRemote) + ")";
  };
  throw Failure(ErrorKind::value, operation + ": one array is on " + name(one) + ", another on " +
                                      name(other) + "; expected all on one device. Copy with " +
                                      "x.as_in_ctx(ctx), and split batches with " +
                                      "gluon.utils.split_and_load.");
}

// At once: whoever has the elements computes in its own order. An operand's error is that of all
// results, as everywhere.
void run_remote(const Invocation& invocation, const Results& results) {
  const Array* failed = nullptr;
  for (const Array* input : invocation.inputs()) {
    if (!failed && input->storage->variable.failed()) failed = input;
  }
  if (!failed) return invocation.plan->remote->run(invocation, results);
  size_t i = 0;
  for (const Array& result : results) {
    if (invocation.plan->results[i++].view_of >= 0) continue;
    result.storage->variable.fail(failed->storage->variable.error());
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

int device_of(const std::string& operation, std::span<const Array* const> arrays) {
  if (arrays.empty()) return current_device();
  const int device = arrays.front()->storage->device;
  for (const Array* array : arrays) {
    if (array->storage->device != device) {
      refuse_devices(operation, device, array->storage->device);
    }
  }
  return device;
}

bool must_wait() { return engine().must_wait(); }

bool overlaps(const Invocation& invocation, const Array& out) {
  const Plan& plan = *invocation.plan;
  for (size_t i = 0; i < invocation.inputs().size(); ++i) {
    const Array& input = *invocation.arrays[i];
    if (input.storage != out.storage) continue;
    const bool may = plan.remote || plan.elementwise || (plan.in_place && i == 0);
    if (!(may && same_view(input, out))) return true;
  }
  return false;
}

void check_in_place(const Invocation& invocation, const Array& out) {
  if (!invocation.plan->in_place) return;
  const Array& first = *invocation.arrays[0];
  if (first.storage == out.storage && same_view(first, out)) return;
  throw Failure(ErrorKind::value, invocation.plan->operation +
                                      ": out must be the first operand, which is changed in place.");
}

Results run(const Invocation& invocation, std::span<const Array* const> outs, Origin origin) {
  const Plan& plan = *invocation.plan;
  const int device = invocation.crosses ? current_device() : device_of(plan.operation, invocation.inputs());
  Results results(plan.results.size());
  size_t i = 0;
  for (Array& result : results) {
    if (const Array* const array = outs.empty() ? overwritten(invocation, i) : nullptr) {
      result = *array;
      ++result.storage->version;
    } else if (outs.empty()) {
      make_result(invocation, plan.results[i], device, result);
    } else {
      result = *outs[i];
      if (!invocation.crosses && result.storage->device != device) {
        refuse_devices(plan.operation, device, result.storage->device);
      }
      ++result.storage->version;
    }
    ++i;
  }
  if (!plan.function && results_are_views(plan)) return results;
  if (plan.remote) {
    run_remote(invocation, results);
    return results;
  }
  if (plan.nanoseconds <= dispatch_settings().inline_nanoseconds && ready(invocation, results)) {
    run_inline(invocation, results);
  } else {
    engine().push(std::make_unique<PlanTask>(invocation, results, origin()));
  }
  return results;
}

bool can_take_over(const Takeover& takeover) {
  const auto& [array, from] = takeover;
  return array->storage != from->storage && same_view(*array, *from) && covers_storage(*array) &&
         covers_storage(*from) && array->storage->is_ours() && from->storage->is_ours() &&
         array->storage->device == from->storage->device;
}

bool hand_over(const Array& array, Array& from) {
  const Takeover takeover{&array, &from};
  if (!can_take_over(takeover)) return false;
  if (array.storage->is_remote() || is_idle(takeover)) {
    if (from.storage->use_count() > 1) return false;
    take_over({&takeover, 1});
    from.storage = {};
    return true;
  }
  ++array.storage->version;
  engine().push(std::make_unique<HandoverTask>(array.storage, std::move(from.storage)));
  return true;
}

void take_over(std::span<const Takeover> takeovers) {
  if (takeovers.empty()) return;
  bool idle = true;
  for (const auto& [array, from] : takeovers) {
    ++array->storage->version;
    if (array->storage->is_remote()) {  // all are: nothing is queued there
      array->storage->variable.fail(from->storage->variable.error());
      continue;
    }
    idle = idle && is_idle({array, from});
  }
  if (!idle) return engine().push(std::make_unique<TakeoverTask>(takeovers));
  for (const auto& [array, from] : takeovers) array->storage->exchange(*from->storage);
}

}  // namespace heterosis
