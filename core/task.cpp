#include "task.h"

#include <algorithm>
#include <exception>
#include <new>

namespace heterosis {

void Task::add(Ref<Storage> storage, Mode mode) {
  if (count_ == capacity_) {  // not pushed yet, so that nothing points to the accesses
    capacity_ *= 2;
    auto grown = std::make_unique<Access[]>(static_cast<std::size_t>(capacity_));
    std::move(begin(), end(), grown.get());
    more_ = std::move(grown);
    accesses_ = more_.get();
  }
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

void TaskList::push_back(Task& task) {
  task.previous_ = last_;
  task.next_ = nullptr;
  (last_ ? last_->next_ : first_) = &task;
  last_ = &task;
}

void TaskList::push_front(TaskList& tasks) {
  if (!tasks.first_) return;
  tasks.last_->next_ = first_;
  (first_ ? first_->previous_ : last_) = tasks.last_;
  first_ = tasks.first_;
  tasks = {};
}

void TaskList::remove(Task& task) {
  (task.previous_ ? task.previous_->next_ : first_) = task.next_;
  (task.next_ ? task.next_->previous_ : last_) = task.previous_;
}

}  // namespace heterosis
