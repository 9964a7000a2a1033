// What the files of the binding share: owned references, and errors on their way to Python.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <exception>
#include <utility>

#include "../array.h"
#include "../engine.h"

namespace heterosis::python {

// An owned reference to a Python object.
class Object {
 public:
  Object() = default;
  explicit Object(PyObject* owned) : object_(owned) {}
  static Object borrowed(PyObject* object) {
    Py_XINCREF(object);
    return Object(object);
  }
  Object(Object&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Object& operator=(Object&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Object() { Py_XDECREF(object_); }

  PyObject* get() const { return object_; }
  PyObject* release() { return std::exchange(object_, nullptr); }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  PyObject* object_ = nullptr;
};

// Thrown when a Python error is set and C++ frames stand between it and the interpreter.
struct PythonError : std::exception {
  const char* what() const noexcept override { return "a Python error is set"; }
};

// `object`, or PythonError where a call of Python's API returned null.
inline Object checked(PyObject* object) {
  if (!object) throw PythonError();
  return Object(object);
}

// Sets the Python error for the C++ exception in flight.
void raise_current();

// Runs `body` and turns what it throws into a Python error and a null result.
template <typename Body>
auto guarded(Body body) noexcept -> decltype(body()) {
  try {
    return body();
  } catch (...) {
    raise_current();
    return decltype(body()){};
  }
}

// The same for slots that return 0 or -1.
template <typename Body>
int guarded_status(Body body) noexcept {
  try {
    body();
    return 0;
  } catch (...) {
    raise_current();
    return -1;
  }
}

// Waits without the interpreter lock; Ctrl-C ends the wait.
void wait_for(Variable& variable);
void wait_until_idle(Variable& variable);
void wait_until_ours(Variable& variable);  // both: readable, and nobody reads or writes it
void wait_for_all();
void wait_for_room();

// The Python classes of errors, given by `heterosis.runtime.errors` at import.
void set_error_class(const char* kind, PyObject* error_class);

// Python functions that the binding calls for what it does not do itself, by name.
void set_hook(const char* name, PyObject* function);
PyObject* hook(const char* name);  // borrowed; throws PythonError if there is none

}  // namespace heterosis::python
