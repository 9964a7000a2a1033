// Processors lent to threads that wait for one, and left by those that were given the wrong one.
#include "processors.h"

#include <sched.h>

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <set>
#include <thread>

#include "check.h"

using namespace heterosis;

namespace {

std::set<int> usable_here() {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  CHECK(sched_getaffinity(0, sizeof usable, &usable) == 0);
  std::set<int> result;
  for (int number = 0; number < CPU_SETSIZE; ++number) {
    if (CPU_ISSET(number, &usable)) result.insert(number);
  }
  return result;
}

// Two processors that the process may use, negative where there are none.
struct Two {
  int first = -1;
  int second = -1;
};

Two two_processors() {
  const std::set<int> usable = usable_here();
  return usable.size() < 2 ? Two{} : Two{*usable.begin(), *std::next(usable.begin())};
}

void stay_on(std::initializer_list<int> processors) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int number : processors) CPU_SET(number, &set);
  CHECK(sched_setaffinity(0, sizeof set, &set) == 0);
}

// A thread that computes until it is destroyed, and tells on which processor.
class Busy {
 public:
  Busy(const void* work, std::initializer_list<int> at_first, std::initializer_list<int> then)
      : thread_([this, work, at_first, then] {
          stay_on(at_first);
          stay_on(then);
          const Participation participation(work);
          while (!over_) {
            at_ = sched_getcpu();
            ++turns_;
          }
        }) {
    until([&] { return turns_ > 0; });
  }
  ~Busy() {
    over_ = true;
    thread_.join();
  }

  int at() const { return at_; }

  // Where it computes next, while the calling thread does what is given.
  template <typename Wait>
  int next(Wait wait) const {
    const int64_t before = turns_;
    while (turns_ < before + 2) wait();
    return at_;
  }

 private:
  std::atomic<bool> over_{false};
  std::atomic<int> at_{-1};
  std::atomic<int64_t> turns_{0};
  std::thread thread_;
};

// Runs a test in a thread that stays on the first of two processors, where there are two.
template <typename Body>
void on_the_first(Body body) {
  const Two usable = two_processors();
  if (usable.second < 0) return;
  std::thread([&] {
    stay_on({usable.first});
    body(usable);
  }).join();
}

// Two threads on one processor, of which one takes part: where it waits for the other, it is lent
// the processor of this one, and is sent back. That it comes back at once is nothing to insist on.
void who_waits_for_a_processor_gets_one() {
  on_the_first([](const Two& usable) {
    const int work = 0;
    const Busy stranger(nullptr, {usable.second}, {usable.second});
    const Busy participant(&work, {usable.second}, {usable.first, usable.second});
    int came_back = 0;
    for (int turn = 0; turn < 20;) {
      {
        const Lending lending(&work);
        if (lending.guests() == 0) continue;
        CHECK(participant.next([] { sleep_milliseconds(1); }) == usable.first);
      }
      if (participant.next([] {}) == usable.second) ++came_back;
      ++turn;
    }
    CHECK(came_back > 10);
  });
}

void a_thread_that_stays_on_its_processor_is_lent_none() {
  on_the_first([](const Two& usable) {
    const int work = 0;
    const Busy stranger(nullptr, {usable.second}, {usable.second});
    const Busy participant(&work, {usable.second}, {usable.second});
    for (int turn = 0; turn < 1000; ++turn) CHECK(Lending(&work).guests() == 0);
    CHECK(participant.at() == usable.second);
  });
}

void others_are_lent_nothing() {
  on_the_first([](const Two& usable) {
    const int work = 0;
    const int other = 0;
    const Busy one(&other, {usable.second}, {usable.first, usable.second});
    const Busy two(nullptr, {usable.second}, {usable.first, usable.second});
    for (int turn = 0; turn < 1000; ++turn) CHECK(Lending(&work).guests() == 0);
  });
}

void participations_nest() {
  const int outer = 0;
  const int inner = 0;
  const Participation first(&outer);
  { const Participation second(&inner); }
  CHECK(Lending(&outer).guests() == 0);  // nobody lends himself anything
}

// A thread that leaves is elsewhere at once, and may come back: what it may use is the same.
void a_thread_can_leave() {
  on_the_first([](const Two& usable) {
    int left = 0;
    for (int turn = 0; turn < 20; ++turn) {
      stay_on({usable.first});
      stay_on({usable.first, usable.second});
      leave_processor();
      if (processor_here() == usable.second) ++left;
      CHECK(usable_here() == std::set<int>({usable.first, usable.second}));
    }
    CHECK(left > 10);
    stay_on({usable.first});
    leave_processor();
    CHECK(processor_here() == usable.first && usable_here() == std::set<int>({usable.first}));
  });
}

}  // namespace

int main() {
  return run_tests({
      TEST(who_waits_for_a_processor_gets_one),
      TEST(a_thread_that_stays_on_its_processor_is_lent_none),
      TEST(others_are_lent_nothing),
      TEST(participations_nest),
      TEST(a_thread_can_leave),
  });
}
