// The front end's lock, where Python has none: it guards all that the binding and the dispatcher
// share between threads. With the interpreter's lock, which guards the same, nothing here costs
// anything.
#pragma once

#include "../front.h"
#include "common.h"

namespace heterosis::python {

#ifdef Py_GIL_DISABLED
static_assert(kFreeThreaded, "the core must know what Python it is built for");

// A critical section of Python's, which is let go of wherever the thread waits: for another lock,
// for the engine, for the collection of garbage. So it cannot take part in a deadlock, and Python
// that runs under it finds what it would with the interpreter's lock. Entering again is free while
// the section is the innermost one, which is the one that is surely held.
class FrontLock {
 public:
  FrontLock();
  ~FrontLock() noexcept(false);
  FrontLock(const FrontLock&) = delete;
  FrontLock& operator=(const FrontLock&) = delete;

 private:
  bool entered_ = false;
  PyCriticalSection section_;
};

// While this lives, no other thread changes a list or a dictionary.
class Unchanging {
 public:
  explicit Unchanging(PyObject* container) { PyCriticalSection_Begin(&section_, container); }
  ~Unchanging() noexcept(false) { PyCriticalSection_End(&section_); }
  Unchanging(const Unchanging&) = delete;
  Unchanging& operator=(const Unchanging&) = delete;

 private:
  PyCriticalSection section_;
};

// What was found where others may replace it: a reference of its own.
using Seen = Object;

inline Seen found_in(PyObject* dict, PyObject* name) {
  PyObject* found = nullptr;
  if (PyDict_GetItemRef(dict, name, &found) < 0) throw PythonError();
  return Seen(found);
}
inline Seen attribute_of(PyTypeObject* type, PyObject* name) {
  return Seen(_PyType_LookupRef(type, name));
}
inline Seen content_of(PyObject* cell) { return Seen(PyCell_Get(cell)); }

// A copy of a list or dictionary that no other thread has; the object itself, if it is neither.
inline Object own_copy(PyObject* object) {
  if (PyList_CheckExact(object)) return checked(PyList_AsTuple(object));
  if (PyDict_CheckExact(object)) return checked(PyDict_Copy(object));
  return Object::borrowed(object);
}
#else
static_assert(!kFreeThreaded, "the core must know what Python it is built for");

class FrontLock {
 public:
  FrontLock() {}
  ~FrontLock() {}
};

class Unchanging {
 public:
  explicit Unchanging(PyObject*) {}
  ~Unchanging() {}
};

class Seen {
 public:
  explicit Seen(PyObject* found) : found_(found) {}
  PyObject* get() const { return found_; }
  explicit operator bool() const { return found_ != nullptr; }

 private:
  PyObject* found_;  // borrowed
};

inline Seen found_in(PyObject* dict, PyObject* name) {
  PyObject* const found = PyDict_GetItemWithError(dict, name);
  if (!found && PyErr_Occurred()) throw PythonError();
  return Seen(found);
}
inline Seen attribute_of(PyTypeObject* type, PyObject* name) {
  return Seen(_PyType_Lookup(type, name));
}
inline Seen content_of(PyObject* cell) { return Seen(PyCell_GET(cell)); }
#endif

// While this lives, the thread runs Python that takes long, or takes the lock again.
#ifdef Py_GIL_DISABLED
using InPython = OutsideFront;
#else
class InPython {
 public:
  InPython() {}
  ~InPython() {}
};
#endif

// Makes the lock.
void make_front_lock();

// Around fork(): the child must find the lock free, and what it guards whole.
void hold_front_lock();
void release_front_lock();

}  // namespace heterosis::python
