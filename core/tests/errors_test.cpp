// Errors of tasks: kept by what they should have written, passed on, raised where it is read.
#include <atomic>
#include <new>
#include <stdexcept>
#include <string>

#include "check.h"
#include "tasks.h"

using namespace heterosis;

namespace {

ErrorPointer error_of(const Cell& cell) {
  try {
    engine().wait(cell->variable);
  } catch (const Failure& failure) {
    return failure.error();
  }
  return nullptr;
}

ErrorPointer error_of_everything(int64_t* others = nullptr) {
  try {
    engine().wait_all();
  } catch (const Failure& failure) {
    if (others) *others = failure.others();
    return failure.error();
  }
  return nullptr;
}

void fail(const Cell& cell, const char* message) {
  push({.writes = {cell}}, [message] { throw Failure(ErrorKind::value, message); });
}

void errors_are_raised_at_each_read() {
  Cell cell = make_cell();
  fail(cell, "first");
  for (int turn = 0; turn < 2; ++turn) {
    const ErrorPointer error = error_of(cell);
    CHECK(error && error->kind == ErrorKind::value && error->message == "first");
  }
  CHECK(cell->variable.failed() && !cell->variable.readable() && !cell->variable.writable());
  CHECK(!error_of_everything());  // reported already
}

void errors_are_passed_on() {
  Cell a = make_cell();
  Cell b = make_cell();
  Cell c = make_cell();
  Cell other = make_cell();
  fail(a, "at the root");
  bool ran = false;
  push({.reads = {a}, .writes = {b}}, [&] { ran = true; });
  push({.reads = {b, other}, .updates = {c}}, [&] { ran = true; });
  push({.reads = {other}, .writes = {other}}, [&] { value(other) = 1; });
  CHECK(error_of(c) && error_of(c) == error_of(a) && error_of(b) == error_of(a));
  CHECK(read(other) == 1 && !ran);
  CHECK(!error_of_everything());
}

void overwriting_clears() {
  Cell cell = make_cell();
  fail(cell, "old");
  push({.updates = {cell}}, [&] { value(cell) += 1; });  // needs the old value: fails too
  CHECK(error_of(cell));
  push({.writes = {cell}}, [&] { value(cell) = 5; });
  CHECK(read(cell) == 5 && !cell->variable.failed());
  push({.updates = {cell}}, [&] { value(cell) += 1; });
  CHECK(read(cell) == 6);
  CHECK(!error_of_everything());
}

void a_newer_error_replaces() {
  Cell cell = make_cell();
  fail(cell, "old");
  fail(cell, "new");
  CHECK(error_of(cell)->message == "new");
  CHECK(error_of_everything()->message == "old");  // nobody was told
  CHECK(!error_of_everything());
}

void wait_all_tells_the_first_once() {
  const Threads threads(1);
  for (const char* name : {"one", "two", "three"}) fail(make_cell(), name);
  int64_t others = 0;
  const ErrorPointer error = error_of_everything(&others);
  CHECK(error && error->message == "one" && others == 2);
  CHECK(!error_of_everything());
  for (int turn = 0; turn < 100; ++turn) fail(make_cell(), "many");
  CHECK(error_of_everything(&others) && others == 99);
  Cell cell = make_cell();
  push({.writes = {cell}}, [&] { value(cell) = 1; });
  CHECK(read(cell) == 1);
}

void kinds_follow_what_was_thrown() {
  const auto kind_of = [](auto thrower) {
    Cell cell = make_cell();
    push({.writes = {cell}}, thrower);
    return error_of(cell)->kind;
  };
  CHECK(kind_of([] { throw Failure(ErrorKind::linear_algebra, "singular"); }) ==
        ErrorKind::linear_algebra);
  CHECK(kind_of([] { throw std::bad_alloc(); }) == ErrorKind::memory);
  CHECK(kind_of([] { throw std::runtime_error("other"); }) == ErrorKind::internal);
  CHECK(kind_of([] { throw 5; }) == ErrorKind::internal);
  engine().wait_all();
}

void memory_that_cannot_be_had() {
  Ref<Storage> huge = Storage::make(int64_t{1} << 45);
  bool ran = false;
  push({.writes = {huge}}, [&] { ran = true; });
  const ErrorPointer error = error_of(huge);
  CHECK(error && error->kind == ErrorKind::memory && !ran);
  CHECK(error->message.find("32.0 TiB") != std::string::npos);
  engine().wait_all();
}

struct Explaining final : Task {
  void run() override { throw std::runtime_error("what happened"); }
  ErrorPointer explain(ErrorKind kind, const std::string& what) const override {
    return make_error(kind, "operation: " + what);
  }
};

void tasks_explain() {
  Cell cell = make_cell();
  auto task = std::make_unique<Explaining>();
  task->write(cell);
  engine().push(std::move(task));
  CHECK(error_of(cell)->message == "operation: what happened");
}

void tasks_may_not_wait_for_all() {
  Cell cell = make_cell();
  push({.writes = {cell}}, [] { engine().wait_all(); });
  CHECK(error_of(cell) && error_of(cell)->kind == ErrorKind::internal);
}

void tasks_may_wait_for_others() {
  for (int count : {1, 2}) {
    const Threads threads(count);
    Cell failing = make_cell();
    Cell cell = make_cell();
    fail(failing, "inner");
    push({.writes = {cell}}, [&] { engine().wait(failing->variable); });
    CHECK(error_of(cell) && error_of(cell)->message == "inner");
    engine().wait_all();
  }
}

// More readers stand before the write than a search looks at, and the task that waits holds the
// only seat: it must find them all the same.
void tasks_may_wait_for_much() {
  const Threads threads(1);
  Cell cell = make_cell();
  Cell waiting = make_cell();
  std::atomic<int> readers{0};
  push({.writes = {waiting}}, [&] {
    for (int reader = 0; reader < 1000; ++reader) push({.reads = {cell}}, [&] { ++readers; });
    push({.writes = {cell}}, [&] { value(cell) = readers; });
    engine().wait(cell->variable);
  });
  engine().wait(waiting->variable);
  CHECK(read(cell) == 1000);
}

}  // namespace

int main() {
  return run_tests({TEST(errors_are_raised_at_each_read), TEST(errors_are_passed_on),
                    TEST(overwriting_clears), TEST(a_newer_error_replaces),
                    TEST(wait_all_tells_the_first_once), TEST(kinds_follow_what_was_thrown),
                    TEST(memory_that_cannot_be_had), TEST(tasks_explain),
                    TEST(tasks_may_not_wait_for_all), TEST(tasks_may_wait_for_others),
                    TEST(tasks_may_wait_for_much)});
}
