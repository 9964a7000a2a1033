#include "view_notes.h"

#include "origin.h"
#include "recording.h"

namespace heterosis::python {

namespace {

// The capture keeps every array that it has made: one reference is nobody's variable.
bool is_in_use(PyObject* array) {
  return array != Py_None && Py_REFCNT(array) > (is_capturing() ? 1 : 0);
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
    if (!is_in_use(PyWeakref_GetObject(PyTuple_GET_ITEM(bases, i)))) continue;
    checked(PyObject_CallFunction(hook("view_written"), "Os", array, user_line().c_str()));
    return;
  }
}

void tell_of_own_write(PyObject* array) {
  if (reinterpret_cast<ArrayObject*>(array)->made_from && called_by_user()) tell_of_write(array);
}

}  // namespace heterosis::python
