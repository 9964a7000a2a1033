// Runs a plan: at once where the work is small and its inputs are ready, else through the engine.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "array.h"
#include "plan.h"
#include "resources.h"

namespace heterosis {

// The error of a run that was refused, once it has ended; null if it was not.
using Refusal = std::shared_ptr<ErrorPointer>;

// One call of an operation, its arguments sorted out. Borrows all that it names.
struct Invocation {
  const Plan* plan;
  const Array* const* arrays;  // arrays only, in order
  int array_count;
  const int64_t* scalars;      // numbers only, in order: int64, or the bits of a double
  int scalar_count;
  bool crosses = false;        // whether operands may be on any device: results are on the current one
  // Which results, from the first on, the caller lets operands take over and needs for nothing else;
  // none without. Where the plan names the operand, that becomes the result where it stands: it shares
  // its memory with no other operand.
  const std::vector<bool>* taken_over = nullptr;
  // Where a plan that refuses elements says so, if its caller waits for the run and looks there;
  // none without. What it would have written over is then as it was, and new results are nobody's.
  const Refusal* refusal = nullptr;

  std::span<const Array* const> inputs() const {
    return {arrays, static_cast<size_t>(array_count)};
  }
};

// Work estimated above the limit is queued. Handing it over costs both threads about 3 us; where
// they share one processor, up to 15 us for switches of threads, and nothing runs side by side for it.
struct DispatchSettings {
  double inline_nanoseconds = usable_processors() > 1 ? 20'000 : 1'000'000;
};
DispatchSettings& dispatch_settings();

// Where the user's program issued the work; asked only when work is queued.
using Origin = std::string (*)();

// The arrays that a call returns. One or two, nearly always, and then without an allocation.
class Results {
 public:
  explicit Results(size_t count) : count_(count) {
    if (count > kFew) more_.resize(count);
  }
  size_t size() const { return count_; }
  Array* begin() { return count_ > kFew ? more_.data() : few_; }
  Array* end() { return begin() + count_; }
  const Array* begin() const { return count_ > kFew ? more_.data() : few_; }
  const Array* end() const { return begin() + count_; }
  Array& operator[](size_t i) { return begin()[i]; }

 private:
  static constexpr size_t kFew = 2;
  size_t count_;
  Array few_[kFew];
  std::vector<Array> more_;
};

// Runs the plan: results are new arrays or views; or, if there are `outs`, one for each result, these.
// Throws Failure if the work was done at once and failed. The caller holds the front end's lock.
Results run(const Invocation& invocation, std::span<const Array* const> outs, Origin origin);

// The device of arrays; the current one if there are none. Throws Failure unless they agree.
int device_of(const std::string& operation, std::span<const Array* const> arrays);

// Whether the engine must be waited for before more work is queued.
bool must_wait();

// Whether writing `out` could destroy an element of an input before it has been read.
bool overlaps(const Invocation& invocation, const Array& out);

// An array that takes over the elements of a new one, which nobody else knows and nobody reads later.
struct Takeover {
  const Array* array;
  const Array* from;
};

// Whether that can be done by exchanging their memory: no other has the address of either.
bool can_take_over(const Takeover& takeover);

// Does so, at once or through the engine: writes of the arrays.
void take_over(std::span<const Takeover> takeovers);

// Gives the elements of `from` to `array`, at once or through the engine, and leaves `from` without a
// storage: by exchanging their memory if nobody else has that of `from` when its turn comes. False,
// and nothing happens, if that cannot be.
bool hand_over(const Array& array, Array& from);

// Throws Failure if the plan changes its first input in place and `out` is another array.
void check_in_place(const Invocation& invocation, const Array& out);

}  // namespace heterosis
