#include "taping.h"

#include <structmember.h>

#include "array_type.h"
#include "front_lock.h"

namespace heterosis::python {

namespace {

// `each(value)` of each of some values.
template <typename Each>
Object mapped(PyObject* values, Each each) {
  const Object items = checked(PySequence_Fast(values, "expected a list or a tuple"));
  const Unchanging still(items.get());
  const Py_ssize_t count = PySequence_Fast_GET_SIZE(items.get());
  Object found = checked(PyTuple_New(count));
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyTuple_SET_ITEM(found.get(), i, each(PySequence_Fast_GET_ITEM(items.get(), i)).release());
  }
  return found;
}

Object none() { return Object::borrowed(Py_None); }

struct EntryObject {
  PyObject_HEAD
  PyObject* node;
  Py_ssize_t index;
  unsigned long long version;
};

PyTypeObject* entry_type = nullptr;

EntryObject& as_entry(PyObject* self) { return *reinterpret_cast<EntryObject*>(self); }

Object new_entry(PyObject* node, Py_ssize_t index, unsigned long long version) {
  Object entry = checked(entry_type->tp_alloc(entry_type, 0));
  as_entry(entry.get()).node = Py_NewRef(node);
  as_entry(entry.get()).index = index;
  as_entry(entry.get()).version = version;
  return entry;
}

PyObject* new_entry_of(PyTypeObject*, PyObject* arguments, PyObject*) {
  return guarded([&] {
    PyObject* node = nullptr;
    Py_ssize_t index = 0;
    unsigned long long version = 0;
    if (!PyArg_ParseTuple(arguments, "OnK", &node, &index, &version)) throw PythonError();
    return new_entry(node, index, version).release();
  });
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(as_entry(self).node);
  return 0;
}

int clear(PyObject* self) {
  Py_CLEAR(as_entry(self).node);
  return 0;
}

// Chains of nodes and entries may be long: nodes, which are Python's, end the recursion.
void destroy(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  clear(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyMemberDef members[] = {
    {"node", T_OBJECT_EX, offsetof(EntryObject, node), READONLY, "What has computed it."},
    {"index", T_PYSSIZET, offsetof(EntryObject, index), READONLY, "Which of the node's results."},
    {"version", T_ULONGLONG, offsetof(EntryObject, version), READONLY,
     "How many writes into its memory had been issued."},
    {nullptr, 0, 0, 0, nullptr},
};

PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(new_entry_of)},
    {Py_tp_members, members},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(clear)},
    {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
    {0, nullptr},
};

PyType_Spec specification = {
    "heterosis._core.Entry",
    sizeof(EntryObject),
    0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    slots,
};

// Whether an operand may hold something else than what its place in the record was made for.
bool is_in_doubt(PyObject* operand, PyObject* source, bool written) {
  const Storage& storage = *as_array(operand).storage;
  if (source == Py_None) return storage.is_followed;
  return Py_TYPE(source) == entry_type && storage.version - written != as_entry(source).version;
}

}  // namespace

void add_entry_type(PyObject* module) {
  Object type = checked(PyType_FromSpec(&specification));
  entry_type = reinterpret_cast<PyTypeObject*>(Py_NewRef(type.get()));
  if (PyModule_AddObjectRef(module, "Entry", type.get())) throw PythonError();
}

Object followed(PyObject* name, PyObject* operands, PyObject* result) {
  return mapped(operands, [=](PyObject* operand) {
    if (!is_array(operand)) return none();
    Object source = Object::borrowed(reinterpret_cast<ArrayObject*>(operand)->autograd);
    if (!source) source = none();
    if (is_in_doubt(operand, source.get(), operand == result)) {
      const InPython others;
      checked(PyObject_CallFunctionObjArgs(hook("check_operand"), name, operand, source.get(),
                                           operand == result ? Py_True : Py_False, nullptr));
    }
    return source;
  });
}

void attach(PyObject* node, PyObject* results, PyObject* positions) {
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(positions); ++i) {
    const Py_ssize_t at = PyLong_AsSsize_t(PyList_GET_ITEM(positions, i));
    const Object result = checked(PySequence_GetItem(results, at));
    const uint64_t version = as_array(result.get()).storage->version;
    Object entry = new_entry(node, at, version);
    Py_XSETREF(reinterpret_cast<ArrayObject*>(result.get())->autograd, entry.release());
  }
}

Object as_now(PyObject* values) {
  return mapped(values, [](PyObject* value) {
    if (!is_array(value)) return Object::borrowed(value);
    const Object alias = checked(alias_of(value));
    const Object version = checked(PyLong_FromUnsignedLongLong(as_array(value).storage->version));
    return checked(PyTuple_Pack(2, alias.get(), version.get()));
  });
}

Object unchanged(PyObject* name, PyObject* held) {
  const Object pairs = mapped(held, [name](PyObject* one) {
    if (!PyTuple_CheckExact(one)) return Object::borrowed(one);
    PyObject* const array = PyTuple_GET_ITEM(one, 0);
    const uint64_t version = PyLong_AsUnsignedLongLong(PyTuple_GET_ITEM(one, 1));
    if (as_array(array).storage->version != version) {
      const InPython others;
      checked(PyObject_CallFunctionObjArgs(hook("changed_since"), name, array, nullptr));
    }
    return Object::borrowed(array);
  });
  return checked(PySequence_List(pairs.get()));
}

Object strides_of(PyObject* values) {
  return mapped(values, [](PyObject* value) {
    return is_array(value) ? checked(to_tuple(as_array(value).strides)) : none();
  });
}

}  // namespace heterosis::python
