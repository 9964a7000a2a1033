#include "common.h"

#include <cxxabi.h>
#include <unistd.h>

#include <map>
#include <string>

#include "front_lock.h"

namespace heterosis::python {

namespace {

std::map<std::string, PyObject*, std::less<>>& table() {
  static auto* made = new std::map<std::string, PyObject*, std::less<>>();  // outlives Python
  return *made;
}

Lock table_lock;

// What Python has set under a name, borrowed; null if nothing.
PyObject* found_in_table(std::string_view name) {
  if (kFreeThreaded) table_lock.lock();
  const auto found = table().find(name);
  PyObject* const object = found == table().end() ? nullptr : found->second;
  if (kFreeThreaded) table_lock.unlock();
  return object;
}

const char* class_name(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::shape: return "error:ShapeError";
    case ErrorKind::value: return "error:ArgumentError";
    case ErrorKind::memory: return "error:OutOfMemoryError";
    case ErrorKind::index: return "error:IndexingError";
    case ErrorKind::linear_algebra: return "error:LinearAlgebraError";
    case ErrorKind::capture: return "error:CaptureError";
    case ErrorKind::communication: return "error:CommunicationError";
    case ErrorKind::raised:
    case ErrorKind::internal: break;
  }
  return "error:HeterosisError";
}

void raise_named(const char* name, const char* message) {
  PyObject* const found = found_in_table(name);
  PyErr_SetString(found ? found : PyExc_RuntimeError, message);
}

// The exception that the hook makes of a message.
void raise_of_user(const char* message) {
  PyObject* const found = found_in_table("raised");
  if (!found) return raise_named("", message);
  PyObject* const made = PyObject_CallFunction(found, "s", message);
  if (!made) return;  // with an error of its own
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(made)), made);
  Py_DECREF(made);
}

// A signal's Python handler runs here; what it raises ends the wait.
void poll_signals(void*) {
  PyGILState_STATE state = PyGILState_Ensure();
  const int raised = PyErr_CheckSignals();
  PyGILState_Release(state);
  if (raised) throw PythonError();
}

constexpr Poll kPoll{poll_signals, nullptr};

// For a thread that asked for the interpreter's lock while the process leaves. The interpreter ends it,
// and that must not go through frames that let no exception out. As in Python 3.14, it stays here.
[[noreturn]] void stay() {
  for (;;) pause();
}

template <typename Wait>
void without_lock(Wait wait) {
  // No destructor takes the lock back: where the interpreter has ended, that ends the thread.
  PyThreadState* const state = PyEval_SaveThread();
  try {
    wait();
#ifdef __GLIBCXX__
  } catch (const abi::__forced_unwind&) {  // of a poll
    stay();
#endif
  } catch (...) {
    PyEval_RestoreThread(state);
    throw;
  }
  PyEval_RestoreThread(state);
}

}  // namespace

void raise_current() {
  try {
    throw;
#ifdef __GLIBCXX__
  } catch (const abi::__forced_unwind&) {
    stay();
#endif
  } catch (const PythonError&) {
  } catch (const Failure& failure) {
    std::string message = failure.what();
    if (failure.others() > 0) {
      message += " (and " + std::to_string(failure.others()) + " more errors in queued work)";
    }
    if (failure.kind() == ErrorKind::raised) return raise_of_user(message.c_str());
    raise_named(class_name(failure.kind()), message.c_str());
  } catch (const OutOfMemory& error) {
    raise_named("error:OutOfMemoryError", error.what());
  } catch (const std::exception& error) {
    raise_named("error:HeterosisError", error.what());
  }
}

void wait_for(Variable& variable) {
  if (variable.readable()) return;
  without_lock([&] { engine().wait(variable, kPoll); });
}

void wait_until_idle(Variable& variable) {
  if (variable.writable()) return;
  without_lock([&] { engine().wait_idle(variable, kPoll); });
}

// Other threads may go on with it while this one waits.
void wait_until_ours(Variable& variable) {
  do {
    wait_until_idle(variable);
    wait_for(variable);
  } while (!variable.writable());
}

void wait_for_all() {
  without_lock([] { engine().wait_all(kPoll); });
}

void wait_for_room() {
  without_lock([] { engine().wait_for_room(kPoll); });
}

void set_hook(const char* name, PyObject* function) {
  Py_INCREF(function);
  if (kFreeThreaded) table_lock.lock();
  PyObject*& place = table()[name];
  PyObject* const before = std::exchange(place, function);
  if (kFreeThreaded) table_lock.unlock();
  if (!kFreeThreaded) Py_XDECREF(before);  // else others may be calling it: few are ever replaced
}

void set_error_class(const char* kind, PyObject* error_class) {
  set_hook((std::string("error:") + kind).c_str(), error_class);
}

PyObject* hook(const char* name) {
  if (PyObject* const found = found_in_table(name)) return found;
  PyErr_Format(PyExc_RuntimeError, "heterosis._core is used without heterosis: no '%s'", name);
  throw PythonError();
}

}  // namespace heterosis::python
