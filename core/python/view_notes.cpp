#include "view_notes.h"

#include "front_lock.h"
#include "origin.h"
#include "recording.h"

namespace heterosis::python {

namespace {

// The array that a weak reference is to; null if it is gone.
Seen referred(PyObject* reference) {
#ifdef Py_GIL_DISABLED
  PyObject* array = nullptr;
  if (PyWeakref_GetRef(reference, &array) < 0) throw PythonError();
  return Seen(array);
#else
  PyObject* const array = PyWeakref_GetObject(reference);
  return Seen(array == Py_None ? nullptr : array);
#endif
}

// The capture keeps every array that it has made: one reference is nobody's variable.
bool is_in_use(PyObject* reference) {
  const Seen array = referred(reference);
  const Py_ssize_t ours = (is_capturing() ? 1 : 0) + (kFreeThreaded ? 1 : 0);
  return array && Py_REFCNT(array.get()) > ours;
}

}  // namespace

void note_view(PyObject* view, PyObject* base) {
  if (view == base || !is_array(view)) return;
  auto& noted = *reinterpret_cast<ArrayObject*>(view);
  PyObject* const before = reinterpret_cast<ArrayObject*>(base)->made_from;
  const Object own = checked(PyWeakref_NewRef(base, nullptr));
  const Object last = checked(PyTuple_Pack(1, own.get()));
  PyObject* const all = before ? PySequence_Concat(before, last.get()) : Py_NewRef(last.get());
  if (!all) throw PythonError();
  Py_XSETREF(noted.made_from, all);
}

void tell_of_write(PyObject* array) {
  PyObject* const bases = reinterpret_cast<ArrayObject*>(array)->made_from;
  if (!bases) return;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(bases); ++i) {
    if (!is_in_use(PyTuple_GET_ITEM(bases, i))) continue;
    const InPython others;
    checked(PyObject_CallFunction(hook("view_written"), "Os", array, user_line().c_str()));
    return;
  }
}

void tell_of_own_write(PyObject* array) {
  if (reinterpret_cast<ArrayObject*>(array)->made_from && called_by_user()) tell_of_write(array);
}

}  // namespace heterosis::python
