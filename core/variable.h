// The place of one storage in the dependency order: who reads and writes it, in order of pushing.
#pragma once

#include <atomic>
#include <cstdint>

#include "error.h"
#include "ref.h"

namespace heterosis {

class Engine;
class Storage;
class Task;
struct Waiter;

// How a task uses a variable. `update` reads the old value and writes the new one.
enum class Mode : uint8_t { read = 1, write = 2, update = 3 };

inline bool reads(Mode mode) { return static_cast<uint8_t>(mode) & 1; }
inline bool writes(Mode mode) { return static_cast<uint8_t>(mode) & 2; }

// One use of one variable by one task: a link of the variable's queue, kept inside the task.
struct Access {
  Ref<Storage> storage;  // keeps the variable alive
  Task* task = nullptr;
  Access* previous = nullptr;
  Access* next = nullptr;
  Mode mode = Mode::read;
  bool granted = false;  // nothing earlier stands in the way
};

// Invariant: the queue holds the unfinished accesses in order of pushing. Its granted part is a
// prefix: either one writer or a run of readers, never empty while the queue is not.
// All but the queries below is guarded by the engine's lock; `state_` is written under it too.
class Variable {
 public:
  Variable() = default;
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

  // The questions of inline work: may the calling thread read, or overwrite, at once? One acquire
  // load, which orders what the finished tasks did before what the caller does next. The answer
  // "yes" holds for as long as nobody pushes a task that names this variable: callers hold the
  // front end's lock (Python's), without which nothing is pushed. Workers only finish tasks, and
  // so can turn "no" into "yes" but never "yes" into "no".
  bool readable() const { return (state_.load(std::memory_order_acquire) & ~kReaders) == 0; }
  bool writable() const { return state_.load(std::memory_order_acquire) == 0; }

  // An error of the last write. Like the two above, meaningful once no write is pending.
  // Makes what no work is queued for unreadable: every read raises the error. Readable again without.
  void fail(const ErrorPointer& error) { settle(error); }

  bool failed() const { return state_.load(std::memory_order_acquire) & kFailed; }
  const ErrorPointer& error() const { return error_; }

 private:
  friend class Engine;
  friend class Task;

  // state_: pending writes in the high half, then pending readers, then one bit for "holds an
  // error", so that each question above is one load and one comparison.
  static constexpr uint64_t kFailed = 1;
  static constexpr uint64_t kOneReader = 2;
  static constexpr uint64_t kOneWriter = uint64_t{1} << 32;
  static constexpr uint64_t kReaders = kOneWriter - kOneReader;

  struct Granted {  // accesses that may go ahead now: from first up to, not including, end
    Access* first = nullptr;
    Access* end = nullptr;
  };

  bool append(Access& access);
  Granted remove(Access& access);
  void settle(const ErrorPointer& error);
  void add_state(uint64_t amount);
  uint64_t pending_writes() const { return state_.load(std::memory_order_relaxed) >> 32; }

  std::atomic<uint64_t> state_{0};
  uint64_t writes_done_ = 0;  // since the variable was made; a wait aims at a value of it
  Access* first_ = nullptr;
  Access* last_ = nullptr;
  ErrorPointer error_;        // also read without the lock by tasks whose access is granted
  int32_t watchers_ = 0;      // waiters aiming at this variable
};

}  // namespace heterosis
