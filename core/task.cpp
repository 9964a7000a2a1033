#include "task.h"

#include <algorithm>
#include <exception>
#include <new>

namespace heterosis {

void Task::expect(std::size_t count) {
  if (count <= static_cast<std::size_t>(capacity_)) return;
  capacity_ = static_cast<int32_t>(count);
  auto grown = std::make_unique<Access[]>(count);
  std::move(begin(), end(), grown.get());  // not pushed yet, so that nothing points to them
  more_ = std::move(grown);
  accesses_ = more_.get();
}

void Task::add(Ref<Storage> storage, Mode mode) {
  if (count_ == capacity_) expect(2 * static_cast<std::size_t>(capacity_));
  accesses_[count_].storage = std::move(storage);
  accesses_[count_++].mode = mode;
}

// The error of the first input that holds one. Its variable cannot change: the access is granted.
ErrorPointer Task::inherited_error() {
  for (Access& access : *this) {
    Variable& variable = access.storage->variable;
    if (reads(access.mode) && variable.failed()) return variable.error_;
  }
  return nullptr;
}

// What a waiting task waits for; the first of several.
Variable* Task::blocking_variable() {
  for (Access& access : *this) {
    if (access.task && !access.granted) return &access.storage->variable;
  }
  return nullptr;
}

// The error that stands for the exception being handled.
ErrorPointer Task::explain_current() const noexcept {
  static const ErrorPointer& no_memory = *new ErrorPointer(
      make_error(ErrorKind::memory, "out of memory, while the error of a task was written down"));
  try {
    try {
      throw;
    } catch (const Failure& failure) {
      return failure.error();
    } catch (const OutOfMemory& error) {
      return explain(ErrorKind::memory, error.what());
    } catch (const std::bad_alloc&) {
      return explain(ErrorKind::memory, "out of memory");
    } catch (const std::exception& error) {
      return explain(ErrorKind::internal, error.what());
    } catch (...) {
      return explain(ErrorKind::internal, "an exception of unknown type");
    }
  } catch (...) {
    return no_memory;
  }
}

// Memory of others is seen by them; what writes nothing, or a storage without data, is run for
// something else than its results.
bool Task::has_effects() const {
  bool writes_data = false;
  for (int32_t index = 0; index < count_; ++index) {
    if (!writes(accesses_[index].mode)) continue;
    const Storage& storage = *accesses_[index].storage;
    if (!storage.is_ours() || storage.nbytes() == 0) return true;
    writes_data = true;
  }
  return !writes_data;
}

// A storage on which nothing is pending once the task is done; null if it names none.
Ref<Storage> Task::touched() { return count_ > 0 ? accesses_[0].storage : Ref<Storage>(); }

template <int kNumber>
void TaskList<kNumber>::push_back(Task& task) {
  task.links_[kNumber] = {last_, nullptr};
  (last_ ? last_->links_[kNumber].next : first_) = &task;
  last_ = &task;
}

template <int kNumber>
void TaskList<kNumber>::push_front(TaskList& tasks) {
  if (!tasks.first_) return;
  tasks.last_->links_[kNumber].next = first_;
  (first_ ? first_->links_[kNumber].previous : last_) = tasks.last_;
  first_ = tasks.first_;
  tasks = {};
}

template <int kNumber>
void TaskList<kNumber>::remove(Task& task) {
  const Task::Links& links = task.links_[kNumber];
  (links.previous ? links.previous->links_[kNumber].next : first_) = links.next;
  (links.next ? links.next->links_[kNumber].previous : last_) = links.previous;
}

template class TaskList<0>;
template class TaskList<1>;

}  // namespace heterosis
