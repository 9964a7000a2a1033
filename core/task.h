// A piece of queued work, with the variables it reads and writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "recycle.h"
#include "storage.h"

namespace heterosis {

// Derive, name the storages, hand it to Engine::push, which owns it from then on. The engine
// allocates the storages before run(), drops the Refs and destroys the task on the thread that ran
// it. A task one of whose inputs holds an error is not run; what it writes gets that error.
class Task : public Recycled {
 public:
  Task() = default;
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;
  virtual ~Task() = default;

  // Naming a storage twice is allowed: read and write make an update.
  void read(Ref<Storage> storage) { add(std::move(storage), Mode::read); }
  void write(Ref<Storage> storage) { add(std::move(storage), Mode::write); }
  void update(Ref<Storage> storage) { add(std::move(storage), Mode::update); }

  // Makes room for so many storages; without, as they come.
  void expect(std::size_t count);

  // Counts `nbytes` (scratch memory, a batch copied for this task) against the engine's bound on
  // outstanding bytes. Written storages that are not allocated yet are counted by themselves.
  void charge(int64_t nbytes) { bytes_ += nbytes; }

  // Lets the lane's thread run the task, and no other: it waits for somebody outside. Tasks that are
  // to come one after the other there name a storage that all of them write.
  void use_lane() { in_lane_ = true; }

 protected:
  // Throws Failure to choose the kind of the error; anything else becomes memory or internal.
  virtual void run() = 0;

  // Called instead of run() where an input holds an error: for others who wait for the task, too.
  virtual void miss(const Error&) noexcept {}

  // Makes the error from what was thrown, other than Failure: a place to add the operation, the
  // shapes and the user's line. Called on the thread that ran the task.
  virtual ErrorPointer explain(ErrorKind kind, const std::string& what) const {
    return make_error(kind, what);
  }

 private:
  friend class Engine;
  template <int>
  friend class TaskList;
  enum class Stage : uint8_t { waiting, ready, running };
  static constexpr int32_t kInline = 6;  // accesses that need no allocation of their own

  void add(Ref<Storage> storage, Mode mode);
  Access* begin() { return accesses_; }
  Access* end() { return accesses_ + count_; }
  ErrorPointer inherited_error();
  Variable* blocking_variable();
  ErrorPointer explain_current() const noexcept;

  struct Links {
    Task* previous = nullptr;
    Task* next = nullptr;
  };

  bool has_effects() const;
  Ref<Storage> touched();

  Links links_[2];  // of the lists that it is in, by TaskList's number
  Access* accesses_ = inline_;
  int32_t count_ = 0;
  int32_t capacity_ = kInline;
  int32_t ungranted_ = 0;  // accesses not granted yet; ready at zero
  Stage stage_ = Stage::waiting;
  bool in_lane_ = false;
  bool lasting_ = false;   // somebody outside can see what it does, whether or not it is waited for
  int64_t bytes_ = 0;
  std::unique_ptr<Access[]> more_;
  Access inline_[kInline];
};

// A doubly linked list of tasks through the tasks themselves. A task can be in two: in the one of
// number 0, and in the one of number 1.
template <int kNumber>
class TaskList {
 public:
  Task* first() const { return first_; }  // null if empty
  static Task* after(const Task& task) { return task.links_[kNumber].next; }
  void push_back(Task& task);
  void push_front(TaskList& tasks);  // all of them, in their order; leaves `tasks` empty
  void remove(Task& task);

 private:
  Task* first_ = nullptr;
  Task* last_ = nullptr;
};

// A task from any callable, for work that is not hot.
template <typename Body>
class BodyTask final : public Task {
 public:
  explicit BodyTask(Body body) : body_(std::move(body)) {}

 protected:
  void run() override { body_(); }

 private:
  Body body_;
};

template <typename Body>
std::unique_ptr<Task> make_task(Body body) {
  return std::make_unique<BodyTask<Body>>(std::move(body));
}

}  // namespace heterosis
