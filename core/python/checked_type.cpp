#include "checked_type.h"

#include <structmember.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <vector>

#include "array_type.h"

namespace heterosis::python {

namespace {

// Integers from `least` on, or none.
struct Integers {
  bool any = false;
  long long least = 0;
};

// What a parameter surely admits: objects of exactly these types, integers, and tuples of integers.
// Of all other arguments `look` decides.
struct Admitted {
  Object name;
  Object types;  // None: anything
  Integers integers;
  Integers items;
};

constexpr long long kMostQuick = 1LL << 48;

// As good as the function itself while nothing goes wrong: a call adds a few nanoseconds.
struct CheckedObject {
  PyObject_HEAD
  vectorcallfunc vectorcall;
  PyObject* function;
  PyObject* refuse;      // (function, arguments, keywords, error) -> the error to raise
  PyObject* attributes;  // the function's name, documentation and so on
  PyObject* expect;      // (function) -> what the parameters admit; null if no call is looked at
  PyObject* look;        // (function, arguments, keywords): raises where an argument does not fit
  std::atomic<std::vector<Admitted>*> admitted;  // null before the first call
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

// -- a look before the call -----------------------------------------------------------------------

Integers integers(PyObject* least) {
  if (least == Py_None) return {};
  const long long number = PyLong_AsLongLong(least);
  if (PyErr_Occurred()) throw PythonError();
  return {true, number};
}

Admitted admitted(PyObject* description) {
  PyObject *name, *types, *least, *least_item;
  if (!PyArg_ParseTuple(description, "UOOO", &name, &types, &least, &least_item)) {
    throw PythonError();
  }
  Py_INCREF(name);
  PyUnicode_InternInPlace(&name);
  return {Object(name), Object::borrowed(types), integers(least), integers(least_item)};
}

void prepare(CheckedObject& self) {
  const Object found = checked(PyObject_CallOneArg(self.expect, self.function));
  const Object items = checked(PySequence_Fast(found.get(), "expected a sequence"));
  auto made = std::make_unique<std::vector<Admitted>>();
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
    made->push_back(admitted(PySequence_Fast_GET_ITEM(items.get(), i)));
  }
  std::vector<Admitted>* none = nullptr;  // another thread may be first
  if (self.admitted.compare_exchange_strong(none, made.get())) made.release();
}

bool admits(const Integers& integers, PyObject* given) {
  if (!integers.any || !PyLong_CheckExact(given)) return false;
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(given, &overflow);
  return !overflow && integers.least <= number && number <= kMostQuick;
}

bool admits(const Admitted& parameter, PyObject* given) {
  PyObject* const types = parameter.types.get();
  if (types == Py_None || admits(parameter.integers, given)) return true;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(types); ++i) {
    if (reinterpret_cast<PyObject*>(Py_TYPE(given)) == PyTuple_GET_ITEM(types, i)) return true;
  }
  if (!parameter.items.any || !PyTuple_CheckExact(given)) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(given); ++i) {
    if (!admits(parameter.items, PyTuple_GET_ITEM(given, i))) return false;
  }
  return true;
}

bool all_fit(const std::vector<Admitted>& parameters, PyObject* const* given, Py_ssize_t count,
             PyObject* names) {
  for (size_t i = 0; i < parameters.size() && i < static_cast<size_t>(count); ++i) {
    if (!admits(parameters[i], given[i])) return false;
  }
  const Py_ssize_t named = names ? PyTuple_GET_SIZE(names) : 0;
  for (Py_ssize_t i = 0; i < named; ++i) {
    PyObject* const name = PyTuple_GET_ITEM(names, i);
    const auto found = std::find_if(parameters.begin(), parameters.end(),
                                    [&](const Admitted& one) { return one.name.get() == name; });
    if (found != parameters.end() && !admits(*found, given[count + i])) return false;
  }
  return true;
}

void examine(CheckedObject& self, PyObject* const* given, Py_ssize_t count, PyObject* names) {
  if (!self.admitted) prepare(self);
  if (all_fit(*self.admitted, given, count, names)) return;
  const Object arguments = tuple_of(given, count);
  const Object keywords = keywords_of(given + count, names);
  checked(PyObject_CallFunctionObjArgs(self.look, self.function, arguments.get(), keywords.get(),
                                       nullptr));
}

// -- the call -------------------------------------------------------------------------------------

PyObject* call(PyObject* self, PyObject* const* given, size_t flags, PyObject* names) {
  CheckedObject& object = as_checked(self);
  const Py_ssize_t count = PyVectorcall_NARGS(flags);
  if (object.expect && guarded_status([&] { examine(object, given, count, names); })) return nullptr;
  const BesideArguments there(given, count + (names ? PyTuple_GET_SIZE(names) : 0));
  PyObject* result = PyObject_Vectorcall(object.function, given, flags, names);
  return result ? result : refuse(object, given, count, names);
}

// -- the type -------------------------------------------------------------------------------------

PyObject* new_checked(PyTypeObject* type, PyObject* arguments, PyObject*) {
  return guarded([&]() -> PyObject* {
    PyObject *function, *refuse, *expect = nullptr, *look = nullptr;
    if (!PyArg_ParseTuple(arguments, "OO|OO", &function, &refuse, &expect, &look)) {
      throw PythonError();
    }
    Object self = checked(type->tp_alloc(type, 0));
    CheckedObject& object = as_checked(self.get());
    object.vectorcall = call;
    object.function = Py_NewRef(function);
    object.refuse = Py_NewRef(refuse);
    object.expect = look ? Py_NewRef(expect) : nullptr;
    object.look = Py_XNewRef(look);
    object.attributes = checked(PyDict_New()).release();
    return self.release();
  });
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(as_checked(self).function);
  Py_VISIT(as_checked(self).refuse);
  Py_VISIT(as_checked(self).attributes);
  Py_VISIT(as_checked(self).expect);
  Py_VISIT(as_checked(self).look);
  return 0;
}

int clear(PyObject* self) {
  Py_CLEAR(as_checked(self).function);
  Py_CLEAR(as_checked(self).refuse);
  Py_CLEAR(as_checked(self).attributes);
  Py_CLEAR(as_checked(self).expect);
  Py_CLEAR(as_checked(self).look);
  return 0;
}

void destroy(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  clear(self);
  delete as_checked(self).admitted.load();
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
