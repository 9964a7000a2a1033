// Errors that travel: born in a task, kept by the variables it should have written, raised where
// somebody reads one of them.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>

namespace heterosis {

// `raised`: an exception of the user's program; a hook makes it of the message.
enum class ErrorKind : uint8_t {
  shape, value, memory, index, linear_algebra, capture, communication, raised, internal
};

// One fault. Immutable but for the note that somebody has been told of it.
struct Error {
  Error(ErrorKind kind_, std::string message_) : kind(kind_), message(std::move(message_)) {}

  const ErrorKind kind;
  const std::string message;
  mutable std::atomic<bool> reported{false};  // raised by a wait: wait_all need not repeat it
};

using ErrorPointer = std::shared_ptr<const Error>;

inline ErrorPointer make_error(ErrorKind kind, std::string message) {
  return std::make_shared<const Error>(kind, std::move(message));
}

// What a task throws to choose the kind of its error, and what the waits throw.
class Failure : public std::exception {
 public:
  explicit Failure(ErrorPointer error, int64_t others = 0)
      : error_(std::move(error)), others_(others) {}
  Failure(ErrorKind kind, std::string message) : Failure(make_error(kind, std::move(message))) {}

  const char* what() const noexcept override { return error_->message.c_str(); }
  ErrorKind kind() const { return error_->kind; }
  const ErrorPointer& error() const { return error_; }

  // Unreported errors of other tasks that wait_all let go together with this one.
  int64_t others() const { return others_; }

 private:
  ErrorPointer error_;
  int64_t others_;
};

class OutOfMemory : public std::runtime_error {
 public:
  OutOfMemory(int64_t asked, int64_t live, int64_t limit);

  const int64_t asked;  // bytes of the request that failed
  const int64_t live;   // bytes in use by storages at that moment
  const int64_t limit;  // the bound on live bytes in force
};

}  // namespace heterosis
