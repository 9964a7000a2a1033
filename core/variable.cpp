#include "variable.h"

namespace heterosis {

// Only the engine's lock holder writes state_, so that a load and a store will do. Release: the
// thread that reads "nothing pending" must see what the finished tasks wrote.
void Variable::add_state(uint64_t amount) {
  state_.store(state_.load(std::memory_order_relaxed) + amount, std::memory_order_release);
}

// Adds an access at the end of the queue; true if it is granted at once.
bool Variable::append(Access& access) {
  const bool writer = writes(access.mode);
  const bool reader_run = last_ && last_->granted && !writes(last_->mode);
  access.granted = !last_ || (!writer && reader_run);
  access.previous = last_;
  access.next = nullptr;
  (last_ ? last_->next : first_) = &access;
  last_ = &access;
  add_state(writer ? kOneWriter : kOneReader);
  return access.granted;
}

// Takes a finished access out, and grants what it held up: one writer, or a run of readers. While
// other readers of its run go on, the front is granted already and nothing new is.
Variable::Granted Variable::remove(Access& access) {
  (access.previous ? access.previous->next : first_) = access.next;
  (access.next ? access.next->previous : last_) = access.previous;
  add_state(writes(access.mode) ? -kOneWriter : -kOneReader);
  if (!first_ || first_->granted) return {};
  Access* end = first_;
  do {
    end->granted = true;
    end = end->next;
  } while (end && !writes(first_->mode) && !writes(end->mode));
  return {first_, end};
}

// The end of a write: the variable now holds its error, or none.
void Variable::settle(const ErrorPointer& error) {
  ++writes_done_;
  const bool failed = state_.load(std::memory_order_relaxed) & kFailed;
  if (failed || error) error_ = error;
  if (failed != static_cast<bool>(error)) add_state(failed ? -kFailed : kFailed);
}

}  // namespace heterosis
