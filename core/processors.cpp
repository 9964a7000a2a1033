#include "processors.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <mutex>
#include <utility>

#include "lock.h"

namespace heterosis {
namespace {

constexpr int64_t kLook = 3'000;  // ns; a thread that computes meanwhile shows on its clock

// A thread that has taken part in a loop, until it ends.
struct Thread {
  std::atomic<const void*> work{nullptr};  // what it takes part in
  std::atomic<bool> moves{false};          // somebody is at its mask of processors
  pthread_t handle{};
  pid_t id = 0;
  clockid_t clock{};
  Thread* next = nullptr;

  Thread();
  ~Thread();
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;
  void identify() {
    handle = pthread_self();
    id = gettid();
    pthread_getcpuclockid(handle, &clock);
  }
};

// Never destroyed: threads may outlive static objects at exit. While it is locked no thread of the
// list ends, so that the system has given no other thread its number.
struct Registry {
  std::mutex mutex;
  Thread* first = nullptr;
};

Registry& registry() {
  static Registry* const instance = new Registry;
  return *instance;
}

Thread::Thread() {
  identify();
  const std::lock_guard<std::mutex> guard(registry().mutex);
  next = std::exchange(registry().first, this);
}

Thread::~Thread() {
  const std::lock_guard<std::mutex> guard(registry().mutex);
  Thread** link = &registry().first;
  while (*link != this) link = &(*link)->next;
  *link = next;
}

Thread& this_thread() {
  [[gnu::tls_model("initial-exec")]] thread_local Thread instance;
  return instance;
}

int64_t computed(const Thread& thread) {
  timespec time{};
  clock_gettime(thread.clock, &time);
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

bool computes(const Thread& thread) {
  const int64_t before = computed(thread);
  const int64_t end = nanoseconds() + kLook;
  while (nanoseconds() < end) relax();
  return computed(thread) != before;
}

// Moves a thread to one of the `wanted` processors that it may use. False if there is none, or it is
// being moved: who read what it may use meanwhile would leave it that for good.
bool move(Thread& thread, const cpu_set_t& wanted) {
  if (thread.moves.exchange(true, std::memory_order_acquire)) return false;
  cpu_set_t usable;
  cpu_set_t both;
  bool moved = sched_getaffinity(thread.id, sizeof usable, &usable) == 0;
  if (moved) {
    CPU_AND(&both, &usable, &wanted);
    moved = CPU_COUNT(&both) > 0 && sched_setaffinity(thread.id, sizeof both, &both) == 0;
  }
  if (moved) sched_setaffinity(thread.id, sizeof usable, &usable);
  thread.moves.store(false, std::memory_order_release);
  return moved;
}

cpu_set_t this_processor() {
  cpu_set_t result;
  CPU_ZERO(&result);
  if (const int number = processor_here(); number >= 0) CPU_SET(number, &result);
  return result;
}

cpu_set_t other_processors() {
  cpu_set_t result;
  std::memset(&result, 0xff, sizeof result);
  if (const int number = processor_here(); number >= 0) CPU_CLR(number, &result);
  return result;
}

}  // namespace

Participation::Participation(const void* work) : current_(&this_thread().work) {
  before_ = current_->load(std::memory_order_relaxed);
  current_->store(work, std::memory_order_relaxed);
}

Lending::Lending(const void* work) {
  const cpu_set_t here = this_processor();
  const Thread* const self = &this_thread();
  const std::lock_guard<std::mutex> guard(registry().mutex);
  for (Thread* at = registry().first; at && count_ < kMostGuests; at = at->next) {
    if (at == self || at->work.load(std::memory_order_acquire) != work || computes(*at)) continue;
    if (move(*at, here)) guests_[count_++] = at;
  }
}

Lending::~Lending() {
  if (count_ == 0) return;
  const cpu_set_t others = other_processors();
  const std::lock_guard<std::mutex> guard(registry().mutex);
  for (Thread* at = registry().first; at; at = at->next) {
    const auto end = guests_.begin() + count_;
    if (std::find(guests_.begin(), end, at) != end) move(*at, others);
  }
}

int processor_here() { return sched_getcpu(); }

void leave_processor() { move(this_thread(), other_processors()); }

void processors_before_fork() { registry().mutex.lock(); }

void processors_after_fork(bool child) {
  if (child) {
    Thread* self = registry().first;
    while (self && !pthread_equal(self->handle, pthread_self())) self = self->next;
    registry().first = self;
    if (self) {
      self->next = nullptr;
      self->identify();
    }
  }
  registry().mutex.unlock();
}

}  // namespace heterosis
