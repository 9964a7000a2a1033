#include "taping.h"

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

}  // namespace

Object sources_of(PyObject* values) {
  return mapped(values, [](PyObject* value) {
    if (!is_array(value)) return none();
    PyObject* const source = reinterpret_cast<ArrayObject*>(value)->autograd;
    return source ? Object::borrowed(source) : none();
  });
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
