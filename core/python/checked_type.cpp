#include "checked_type.h"

#include <structmember.h>

namespace heterosis::python {

namespace {

// As good as the function itself while nothing goes wrong: a call adds a few nanoseconds.
struct CheckedObject {
  PyObject_HEAD
  vectorcallfunc vectorcall;
  PyObject* function;
  PyObject* refuse;      // (function, arguments, keywords, error) -> the error to raise
  PyObject* attributes;  // the function's name, documentation and so on
};

CheckedObject& as_checked(PyObject* self) { return *reinterpret_cast<CheckedObject*>(self); }

Object tuple_of(PyObject* const* items, Py_ssize_t count) {
  Object tuple = checked(PyTuple_New(count));
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyTuple_SET_ITEM(tuple.get(), i, Py_NewRef(items[i]));
  }
  return tuple;
}

Object keywords_of(PyObject* const* values, PyObject* names) {
  Object keywords = checked(PyDict_New());
  for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); ++i) {
    if (PyDict_SetItem(keywords.get(), PyTuple_GET_ITEM(names, i), values[i])) throw PythonError();
  }
  return keywords;
}

// The error that is set, taken away, with its traceback.
Object taken_error() {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (traceback) PyException_SetTraceback(value, traceback);
  Py_XDECREF(type);
  Py_XDECREF(traceback);
  return Object(value);
}

void set_error(PyObject* error) {
  PyErr_Restore(Py_NewRef(Py_TYPE(error)), Py_NewRef(error), PyException_GetTraceback(error));
}

// Raises what `refuse` makes of the error that is set.
PyObject* refuse(const CheckedObject& self, PyObject* const* given, Py_ssize_t count,
                 PyObject* names) {
  return guarded([&]() -> PyObject* {
    const Object error = taken_error();
    const Object arguments = tuple_of(given, count);
    const Object keywords = keywords_of(given + count, names);
    const Object other = checked(PyObject_CallFunctionObjArgs(
        self.refuse, self.function, arguments.get(), keywords.get(), error.get(), nullptr));
    set_error(other.get());
    throw PythonError();
  });
}

PyObject* call(PyObject* self, PyObject* const* given, size_t flags, PyObject* names) {
  const CheckedObject& object = as_checked(self);
  PyObject* result = PyObject_Vectorcall(object.function, given, flags, names);
  return result ? result : refuse(object, given, PyVectorcall_NARGS(flags), names);
}

// -- the type -------------------------------------------------------------------------------------

PyObject* new_checked(PyTypeObject* type, PyObject* arguments, PyObject*) {
  return guarded([&]() -> PyObject* {
    PyObject *function, *refuse;
    if (!PyArg_ParseTuple(arguments, "OO", &function, &refuse)) throw PythonError();
    Object self = checked(type->tp_alloc(type, 0));
    CheckedObject& object = as_checked(self.get());
    object.vectorcall = call;
    object.function = Py_NewRef(function);
    object.refuse = Py_NewRef(refuse);
    object.attributes = checked(PyDict_New()).release();
    return self.release();
  });
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(as_checked(self).function);
  Py_VISIT(as_checked(self).refuse);
  Py_VISIT(as_checked(self).attributes);
  return 0;
}

int clear(PyObject* self) {
  Py_CLEAR(as_checked(self).function);
  Py_CLEAR(as_checked(self).refuse);
  Py_CLEAR(as_checked(self).attributes);
  return 0;
}

void destroy(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  clear(self);
  type->tp_free(self);
  Py_DECREF(type);
}

// As a class attribute, it is a method whose first argument is the object.
PyObject* bind_method(PyObject* self, PyObject* object, PyObject*) {
  return object && object != Py_None ? PyMethod_New(self, object) : Py_NewRef(self);
}

PyObject* represent(PyObject* self) { return PyObject_Repr(as_checked(self).function); }

PyGetSetDef attributes[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(CheckedObject, vectorcall), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(CheckedObject, attributes), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(new_checked)},
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_descr_get, reinterpret_cast<void*>(bind_method)},
    {Py_tp_repr, reinterpret_cast<void*>(represent)},
    {Py_tp_getset, attributes},
    {Py_tp_members, members},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(clear)},
    {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
    {0, nullptr},
};

PyType_Spec specification = {
    "heterosis._core.Checked",
    sizeof(CheckedObject),
    0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
        Py_TPFLAGS_METHOD_DESCRIPTOR,
    slots,
};

}  // namespace

void add_checked_type(PyObject* module) {
  const Object type = checked(PyType_FromSpec(&specification));
  if (PyModule_AddObjectRef(module, "Checked", type.get())) throw PythonError();
}

}  // namespace heterosis::python
