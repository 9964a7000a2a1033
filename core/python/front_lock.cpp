#include "front_lock.h"

#include "../lock.h"

#ifdef Py_GIL_DISABLED
#include <cxxabi.h>
#include <unistd.h>
#endif

namespace heterosis::python {

#ifdef Py_GIL_DISABLED

namespace {

PyObject* lock = nullptr;  // an object, whose own mutex it is

// Where the interpreter has ended, who waits for a lock of Python's is ended. As in Python 3.14, it
// stays where it is: the end must not go through frames that hold what they cannot let go of.
template <typename Enter>
void entered_or_stays(Enter enter) {
#ifdef __GLIBCXX__
  try {
    enter();
  } catch (const abi::__forced_unwind&) {
    for (;;) pause();
  }
#else
  enter();
#endif
}

// The innermost critical section of the calling thread, which is held; null unless it is ours.
PyCriticalSection* innermost() {
  constexpr uintptr_t kTags = 3;
  const uintptr_t tagged = PyThreadState_Get()->critical_section;
  auto* const section = reinterpret_cast<PyCriticalSection*>(tagged & ~kTags);
  return section && section->_cs_mutex == &lock->ob_mutex ? section : nullptr;
}

// Python's mutex goes to sleep almost at once, which costs several times as long as the lock is
// usually held: for a few microseconds. So whoever finds it held looks on for a while first.
constexpr int kLooks = 2000;  // some tens of microseconds: what sleeping and waking up costs

bool is_held() { return __atomic_load_n(&lock->ob_mutex._bits, __ATOMIC_RELAXED) & 1; }

void enter(PyCriticalSection& section) {
  for (int look = 0; look < kLooks && is_held(); ++look) relax();
  entered_or_stays([&] { PyCriticalSection_Begin(&section, lock); });
}

void* leave_front() {
  PyCriticalSection* const section = innermost();
  if (section) PyCriticalSection_End(section);
  return section;
}

void enter_front(void* left) { enter(*static_cast<PyCriticalSection*>(left)); }

PyCriticalSection around_fork;

}  // namespace

FrontLock::FrontLock() {
  if (innermost()) return;
  enter(section_);
  entered_ = true;
}

FrontLock::~FrontLock() noexcept(false) {
  if (entered_) PyCriticalSection_End(&section_);
}

void make_front_lock() {
  lock = checked(PyObject_CallNoArgs(reinterpret_cast<PyObject*>(&PyBaseObject_Type))).release();
  front = {leave_front, enter_front};
}

void hold_front_lock() { enter(around_fork); }
void release_front_lock() { PyCriticalSection_End(&around_fork); }

#else

void make_front_lock() {}
void hold_front_lock() {}
void release_front_lock() {}

#endif

}  // namespace heterosis::python
