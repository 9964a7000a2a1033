// The lane: tasks that wait for somebody outside, beside those that compute.
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "check.h"
#include "tasks.h"

using namespace heterosis;

namespace {

// What stands for others that send something: opened by the test.
struct Gate {
  std::atomic<bool> open{false};
  void pass() const {
    until([this] { return open.load(); });
  }
};

// The task of a lane: updates a cell, after those before it with the same order.
class Message final : public Task {
 public:
  Message(const Cell& cell, const Cell& order, std::function<void(const Error*)> body)
      : body_(std::move(body)) {
    update(cell);
    write(order);
    use_lane();
  }

 protected:
  void run() override { body_(nullptr); }
  void miss(const Error& error) noexcept override { body_(&error); }

 private:
  const std::function<void(const Error*)> body_;
};

void send(const Cell& cell, const Cell& order, std::function<void(const Error*)> body) {
  engine().push(std::make_unique<Message>(cell, order, std::move(body)));
}

void others_compute_meanwhile() {
  const Threads threads(1);
  const Cell order = Storage::make(0);
  const Cell sent = make_cell();
  value(sent) = 1;
  Gate gate;
  send(sent, order, [&](const Error*) {
    gate.pass();
    value(sent) += 10;
  });
  Cell other = make_cell();
  push({.writes = {other}}, [&] { value(other) = 5; });
  CHECK(read(other) == 5);  // the only seat is free for it
  Cell later = make_cell();
  push({.reads = {sent}, .writes = {later}}, [&] { value(later) = value(sent) * 2; });
  CHECK(!sent->variable.readable() && !later->variable.readable());
  gate.open = true;
  CHECK(read(later) == 22);
  engine().wait_all();
}

void messages_keep_their_order_on_one_thread() {
  const Threads threads(2);
  const Cell order = Storage::make(0);
  std::vector<Cell> cells;
  std::vector<int> sent;
  std::vector<std::thread::id> places;
  for (int turn = 0; turn < 20; ++turn) cells.push_back(make_cell());
  // What comes first is ready last.
  for (int turn = 0; turn < 20; ++turn) {
    push({.writes = {cells[static_cast<std::size_t>(turn)]}}, [turn] {
      if (turn % 5 == 0) sleep_milliseconds(5);
    });
    send(cells[static_cast<std::size_t>(turn)], order, [&, turn](const Error*) {
      sent.push_back(turn);
      places.push_back(std::this_thread::get_id());
    });
  }
  engine().wait_all();
  CHECK(sent.size() == 20);
  for (std::size_t turn = 0; turn < sent.size(); ++turn) {
    CHECK(sent[turn] == static_cast<int>(turn) && places[turn] == places[0]);
  }
  CHECK(places[0] != std::this_thread::get_id());
}

void nobody_who_waits_runs_them() {
  const Threads threads(1);
  const Cell order = Storage::make(0);
  const Cell cell = make_cell();
  const auto here = std::this_thread::get_id();
  for (int turn = 0; turn < 100; ++turn) {
    send(cell, order, [&](const Error*) { CHECK(std::this_thread::get_id() != here); });
    engine().wait(cell->variable);
  }
  engine().wait_all();
}

ErrorPointer error_of(const Cell& cell) {
  try {
    engine().wait(cell->variable);
  } catch (const Failure& failure) {
    return failure.error();
  }
  return nullptr;
}

void errors_go_on_to_those_who_read() {
  const Cell order = Storage::make(0);
  const Cell cell = make_cell();
  const Cell later = make_cell();
  send(cell, order, [](const Error*) { throw Failure(ErrorKind::communication, "nobody there"); });
  push({.reads = {cell}, .writes = {later}}, [] {});
  CHECK(error_of(later)->kind == ErrorKind::communication);
  const Cell other = make_cell();  // the next one is sent all the same
  bool sent = false;
  send(other, order, [&](const Error* error) { sent = error == nullptr; });
  CHECK(!error_of(other) && sent);
  CHECK_THROWS(Failure, engine().wait(cell->variable));
  engine().wait_all();
}

void an_error_before_is_told_to_others() {
  const Cell order = Storage::make(0);
  const Cell cell = make_cell();
  push({.writes = {cell}}, [] { throw Failure(ErrorKind::value, "mine"); });
  std::string told;
  send(cell, order, [&](const Error* error) { told = error ? error->message : "none"; });
  const ErrorPointer error = error_of(cell);
  CHECK(error && error->message == "mine" && told == "mine");
  engine().wait_all();
}

// What needs no new memory comes first: here the write into `kept`, which lets a message go before
// the chain goes on.
void messages_leave_before_a_chain_goes_on() {
  const Threads threads(1);
  const Cell order = Storage::make(0);
  const Cell kept = make_cell();
  const Cell first = make_cell();
  const Cell second = make_cell();
  value(kept) = 0;
  std::atomic<bool> sent{false};
  Gate gate;
  push({.writes = {first}}, [&] { gate.pass(); });
  push({.reads = {first}, .writes = {second}}, [&] { until([&] { return sent.load(); }); });
  push({.reads = {first}, .updates = {kept}}, [&] { value(kept) = 1; });
  send(kept, order, [&](const Error*) { sent = value(kept) == 1; });
  gate.open = true;
  until([&] { return second->variable.readable(); });  // never, if the message waited for the chain
  engine().wait_all();
}

// The parent has started no thread in these: children are as good as new.
template <typename Body>
void in_child(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    body();
    std::exit(0);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

void leaving_waits_for_messages() {
  in_child([] {
    const Cell order = Storage::make(0);
    const Cell cell = make_cell();
    std::atomic<int> sent{0};
    push({.writes = {cell}}, [&] { value(cell) = 1; });
    for (int turn = 0; turn < 10; ++turn) {
      send(cell, order, [&](const Error*) {
        sleep_milliseconds(1);
        ++sent;
      });
    }
    engine().shutdown(Engine::Shutdown::leave);
    CHECK(sent == 10);
    const auto here = std::this_thread::get_id();
    send(cell, order, [&](const Error*) { CHECK(std::this_thread::get_id() == here); });
    CHECK(cell->variable.writable() && value(cell) == 1);
  });
}

std::atomic<bool> held{true};  // the front end's lock

// A fork by who holds the front end's lock, which a message needs.
[[maybe_unused]] void forks_wait_for_messages() {
  const Cell order = Storage::make(0);
  const Cell cell = make_cell();
  value(cell) = 0;
  engine().set_front_lock({[]() -> void* {
                             held = false;
                             return &held;
                           },
                           [](void* lock) { *static_cast<std::atomic<bool>*>(lock) = true; }});
  send(cell, order, [&](const Error*) {
    until([] { return !held.load(); });
    value(cell) = 7;
  });
  const pid_t child = fork();
  if (child == 0) _exit(cell->variable.writable() && value(cell) == 7 ? 0 : 1);
  CHECK(held);
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  engine().set_front_lock({});
  send(cell, order, [&](const Error*) { ++value(cell); });
  CHECK(read(cell) == 8);
}

}  // namespace

int main() {
  return run_tests({TEST(leaving_waits_for_messages), TEST(others_compute_meanwhile),
                    TEST(messages_keep_their_order_on_one_thread), TEST(nobody_who_waits_runs_them),
                    TEST(errors_go_on_to_those_who_read), TEST(an_error_before_is_told_to_others),
                    TEST(messages_leave_before_a_chain_goes_on),
#if !defined(__SANITIZE_ADDRESS__)  // its allocator may leave a lock held in the child
                    TEST(forks_wait_for_messages),
#endif
  });
}
