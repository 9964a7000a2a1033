#include "array_type.h"

#include <structmember.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "front_lock.h"
#include "operation_type.h"
#include "recording.h"
#include "remote.h"
#include "view_notes.h"

namespace heterosis::python {

PyTypeObject* array_type = nullptr;

namespace {

void deallocate(PyObject* self) {
  auto* object = reinterpret_cast<ArrayObject*>(self);
  PyTypeObject* type = Py_TYPE(self);
  if (object->weak_references) PyObject_ClearWeakRefs(self);
  Py_XDECREF(object->autograd);
  Py_XDECREF(object->made_from);
  Py_XDECREF(object->extents);
  object->array.~Array();
  type->tp_free(self);
  Py_DECREF(type);
}

// ndarray(shape, dtype): uninitialised memory, as in NumPy.
PyObject* new_array(PyTypeObject*, PyObject* arguments, PyObject* keywords) {
  return PyObject_Call(hook("new_array"), arguments, keywords);
}

// -- operators: each is an operation, found in the table that Python fills ------------------------

template <Operator which>
PyObject* binary(PyObject* a, PyObject* b) {
  PyObject* const arguments[] = {a, b};
  return call_operator(which, arguments, 2);
}

template <Operator which>
PyObject* unary(PyObject* a) {
  return call_operator(which, &a, 1);
}

template <Operator which>
PyObject* in_place(PyObject* a, PyObject* b) {
  PyObject* const arguments[] = {a, b};
  return call_operator_into(which, arguments, a);
}

PyObject* power(PyObject* a, PyObject* b, PyObject* modulus) {
  if (modulus != Py_None) Py_RETURN_NOTIMPLEMENTED;
  return binary<Operator::power>(a, b);
}

PyObject* power_in_place(PyObject* a, PyObject* b, PyObject*) {
  return in_place<Operator::power>(a, b);
}

PyObject* compare(PyObject* a, PyObject* b, int how) {
  static constexpr Operator table[] = {Operator::less,      Operator::less_equal,
                                       Operator::equal,     Operator::not_equal,
                                       Operator::greater,   Operator::greater_equal};
  PyObject* const arguments[] = {a, b};
  return call_operator(table[how], arguments, 2);
}

// -- single values --------------------------------------------------------------------------------

PyObject* extents_of(PyObject* self) { return reinterpret_cast<ArrayObject*>(self)->extents; }

template <typename Element>
Element element_at(const std::byte* place) {
  Element element;
  std::memcpy(&element, place, sizeof element);
  return element;
}

// An element as a Python number; None of types that NumPy converts.
PyObject* number_at(DType dtype, const std::byte* place) {
  switch (dtype) {
    case DType::boolean: return PyBool_FromLong(element_at<uint8_t>(place));
    case DType::int8: return PyLong_FromLong(element_at<int8_t>(place));
    case DType::uint8: return PyLong_FromLong(element_at<uint8_t>(place));
    case DType::int16: return PyLong_FromLong(element_at<int16_t>(place));
    case DType::uint16: return PyLong_FromLong(element_at<uint16_t>(place));
    case DType::int32: return PyLong_FromLong(element_at<int32_t>(place));
    case DType::uint32: return PyLong_FromUnsignedLong(element_at<uint32_t>(place));
    case DType::int64: return PyLong_FromLongLong(element_at<int64_t>(place));
    case DType::uint64: return PyLong_FromUnsignedLongLong(element_at<uint64_t>(place));
    case DType::float32: return PyFloat_FromDouble(element_at<float>(place));
    case DType::float64: return PyFloat_FromDouble(element_at<double>(place));
    case DType::float16:
    case DType::bfloat16: break;
  }
  Py_RETURN_NONE;
}

// The only element as a Python number; None where it is read through NumPy.
PyObject* number(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    const Array& array = as_array(self);
    // What a capture refuses says where the number was asked for: by frames of Python.
    if (is_capturing() || extents_of(self) || is_remote(self)) Py_RETURN_NONE;
    if (array.size() != 1) Py_RETURN_NONE;
    const FrontLock lock;
    wait_for(array.storage->variable);
    array.storage->ensure();
    return number_at(array.dtype, array.data());
  });
}

PyObject* item_of(PyObject* self, const char* use) {
  if (!fix_extents(self)) return nullptr;
  const Array& array = as_array(self);
  if (array.size() != 1) {
    PyErr_Format(PyExc_ValueError,
                 "%s needs exactly one element, and this array is %s. Use .any() or .all(), or "
                 "index a single element.",
                 use, array.describe().c_str());
    return nullptr;
  }
  Object found(number(self, nullptr));
  if (!found || found.get() != Py_None) return found.release();
  return PyObject_CallFunctionObjArgs(hook("item"), self, nullptr);
}

int truth(PyObject* self) {
  if (!fix_extents(self)) return -1;
  if (as_array(self).size() == 0) return 0;
  const Object item(item_of(self, "the truth value of an array"));
  return item ? PyObject_IsTrue(item.get()) : -1;
}

PyObject* to_int(PyObject* self) {
  const Object item(item_of(self, "int()"));
  return item ? PyNumber_Long(item.get()) : nullptr;
}

PyObject* to_float(PyObject* self) {
  const Object item(item_of(self, "float()"));
  return item ? PyNumber_Float(item.get()) : nullptr;
}

PyObject* to_index(PyObject* self) {
  const Object item(item_of(self, "an index"));
  return item ? PyNumber_Index(item.get()) : nullptr;
}

Py_ssize_t length(PyObject* self) {
  if (PyObject* extents = extents_of(self); extents && PyTuple_GET_SIZE(extents)) {
    const Object first(PyNumber_Index(PyTuple_GET_ITEM(extents, 0)));
    if (!first) return -1;
  }
  const Array& array = as_array(self);
  if (array.rank()) return array.shape[0];
  PyErr_SetString(PyExc_TypeError, "len() of an array without dimensions");
  return -1;
}

PyObject* row(PyObject* self, Py_ssize_t index) {
  if (length(self) < 0) PyErr_Clear();  // of an array without dimensions, as below
  const Array& array = as_array(self);
  if (array.rank() && index >= array.shape[0]) {
    PyErr_SetNone(PyExc_IndexError);  // ends an iteration
    return nullptr;
  }
  const Object key(PyLong_FromSsize_t(index));
  return key ? get_item(self, key.get()) : nullptr;
}

PyObject* iterate(PyObject* self) {
  if (as_array(self).rank()) return PySeqIter_New(self);
  PyErr_SetString(PyExc_TypeError, "iteration over an array without dimensions");
  return nullptr;
}

PyObject* represent(PyObject* self) {
  return PyObject_CallFunctionObjArgs(hook("repr"), self, nullptr);
}

PyObject* to_text(PyObject* self) {
  return PyObject_CallFunctionObjArgs(hook("str"), self, nullptr);
}

// -- attributes -----------------------------------------------------------------------------------

// What is made of the extents by the hook of that name.
PyObject* by_extents(const char* name, PyObject* self) {
  return PyObject_CallFunctionObjArgs(hook(name), extents_of(self), nullptr);
}

PyObject* get_shape(PyObject* self, void*) {
  return extents_of(self) ? Py_NewRef(extents_of(self)) : to_tuple(as_array(self).shape);
}

PyObject* get_ndim(PyObject* self, void*) { return PyLong_FromLong(as_array(self).rank()); }

PyObject* get_size(PyObject* self, void*) {
  if (extents_of(self)) return by_extents("count_of", self);
  return PyLong_FromLongLong(as_array(self).size());
}

PyObject* get_nbytes(PyObject* self, void*) {
  if (!fix_extents(self)) return nullptr;
  return PyLong_FromLongLong(as_array(self).nbytes());
}

PyObject* get_itemsize(PyObject* self, void*) {
  return PyLong_FromLongLong(itemsize(as_array(self).dtype));
}

PyObject* get_dtype(PyObject* self, void*) {
  PyObject* dtypes = hook("dtypes");  // a sequence of NumPy dtypes, in our order
  return PySequence_GetItem(dtypes, static_cast<Py_ssize_t>(as_array(self).dtype));
}

PyObject* get_dtype_name(PyObject* self, void*) {
  const std::string_view name = facts(as_array(self).dtype).name;
  return PyUnicode_FromStringAndSize(name.data(), static_cast<Py_ssize_t>(name.size()));
}

PyObject* get_strides(PyObject* self, void*) {
  if (!fix_extents(self)) return nullptr;
  const Array& array = as_array(self);
  Dims bytes = array.strides;
  for (int i = 0; i < bytes.size(); ++i) bytes[i] *= itemsize(array.dtype);
  return to_tuple(bytes);
}

PyObject* get_element_strides(PyObject* self, void*) {
  if (extents_of(self)) return by_extents("strides_of", self);
  return to_tuple(as_array(self).strides);
}

PyObject* get_transposed(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    const auto noted = [self](Object view) {
      const FrontLock lock;
      if (noting_views) note_view(view.get(), self);
      return view.release();
    };
    if (is_followed(self)) {
      return noted(checked(PyObject_CallFunctionObjArgs(hook("transpose"), self, nullptr)));
    }
    const Array& array = as_array(self);
    const int rank = array.rank();
    Dims shape(rank);
    Dims strides(rank);
    for (int i = 0; i < rank; ++i) {
      shape[i] = array.shape[rank - 1 - i];
      strides[i] = array.strides[rank - 1 - i];
    }
    return noted(checked(wrap(make_view(array, std::move(shape), std::move(strides), 0))));
  });
}

PyObject* get_contiguous(PyObject* self, void*) {
  return PyBool_FromLong(as_array(self).contiguous);
}

PyObject* get_ready(PyObject* self, void*) {
  return PyBool_FromLong(as_array(self).storage->variable.readable());
}

PyObject* get_storage_id(PyObject* self, void*) {
  return PyLong_FromVoidPtr(as_array(self).storage.get());
}

PyObject* get_device(PyObject* self, void*) {
  return PyLong_FromLong(as_array(self).storage->device);
}

PyObject* get_offset(PyObject* self, void*) {
  return PyLong_FromLongLong(as_array(self).offset);
}

// None where others hold the address, and may write unseen.
PyObject* get_state(PyObject* self, void*) {
  const FrontLock lock;
  const Array& array = as_array(self);
  const Storage& storage = *array.storage;
  if (!storage.is_ours()) Py_RETURN_NONE;
  return Py_BuildValue("(KKLL)", reinterpret_cast<unsigned long long>(&storage),
                       static_cast<unsigned long long>(storage.version),
                       static_cast<long long>(storage.released.load()),
                       static_cast<long long>(array.offset));
}

PyObject* get_version(PyObject* self, void*) {
  const FrontLock lock;
  return PyLong_FromUnsignedLongLong(as_array(self).storage->version);
}

PyObject* get_has_variable(PyObject* self, void*) {
  return PyBool_FromLong(as_array(self).storage->has_variable);
}

int set_has_variable(PyObject* self, PyObject* value, void*) {
  const FrontLock lock;
  as_array(self).storage->has_variable = value == Py_True;
  return 0;
}

PyObject* get_is_followed(PyObject* self, void*) {
  return PyBool_FromLong(as_array(self).storage->is_followed);
}

int set_is_followed(PyObject* self, PyObject* value, void*) {
  const FrontLock lock;
  as_array(self).storage->is_followed = value == Py_True;
  return 0;
}

// DLPack's kind of device and number there; those of main memory are 1 and 0.
PyObject* get_dlpack_device(PyObject* self, void*) {
  if (!is_remote(self)) return Py_BuildValue("(ii)", 1, 0);
  return PyObject_CallFunctionObjArgs(hook("remote_dlpack_device"), self, nullptr);
}

PyObject* get_storage_nbytes(PyObject* self, void*) {
  return PyLong_FromLongLong(as_array(self).storage->nbytes());
}

PyObject* get_covers_storage(PyObject* self, void*) {
  const Array& array = as_array(self);
  return PyBool_FromLong(array.contiguous && array.nbytes() == array.storage->nbytes());
}

PyGetSetDef attributes[] = {
    {"shape", get_shape, nullptr, "Extents, outermost first.", nullptr},
    {"ndim", get_ndim, nullptr, "Number of dimensions.", nullptr},
    {"size", get_size, nullptr, "Number of elements.", nullptr},
    {"nbytes", get_nbytes, nullptr, "Bytes of all elements.", nullptr},
    {"itemsize", get_itemsize, nullptr, "Bytes of one element.", nullptr},
    {"dtype", get_dtype, nullptr, "Element type, a NumPy dtype.", nullptr},
    {"strides", get_strides, nullptr, "Bytes from one index to the next, a dimension.", nullptr},
    {"T", get_transposed, nullptr, "A view with the dimensions reversed.", nullptr},
    {"_dtype_name", get_dtype_name, nullptr, "Element type by name.", nullptr},
    {"_element_strides", get_element_strides, nullptr, "Strides in elements.", nullptr},
    {"_contiguous", get_contiguous, nullptr, "Row-major without gaps.", nullptr},
    {"_ready", get_ready, nullptr, "Whether all queued writes are done.", nullptr},
    {"_storage_id", get_storage_id, nullptr, "Equal for views of one memory.", nullptr},
    {"_device", get_device, nullptr, "The number of its context.", nullptr},
    {"_elements", get_elements, set_elements, "What has its memory's elements, on a device.", nullptr},
    {"_dlpack_device", get_dlpack_device, nullptr, "DLPack's numbers for its device.", nullptr},
    {"_storage_nbytes", get_storage_nbytes, nullptr, "Bytes of its memory.", nullptr},
    {"_offset", get_offset, nullptr, "Bytes from the start of its memory.", nullptr},
    {"_version", get_version, nullptr, "How many writes into its memory were issued.", nullptr},
    {"_state", get_state, nullptr, "What differs once its elements may be others.", nullptr},
    {"_has_variable", get_has_variable, set_has_variable,
     "Whether its memory is that of a variable.", nullptr},
    {"_is_followed", get_is_followed, set_is_followed,
     "Whether a recorded call has written into its memory.", nullptr},
    {"_covers_storage", get_covers_storage, nullptr, "Whether it is no part of more.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

// -- methods --------------------------------------------------------------------------------------

PyObject* wait_to_read(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    check_read(self);
    wait_for(as_array(self).storage->variable);
    if (is_remote(self)) checked(PyObject_CallFunctionObjArgs(hook("wait_remote"), self, nullptr));
    Py_RETURN_NONE;
  });
}

PyObject* alias(PyObject* self, PyObject*) { return alias_of(self); }

PyObject* view(PyObject* self, PyObject* key) { return get_view(self, key); }

PyObject* count_write(PyObject* self, PyObject*) {
  const FrontLock lock;
  ++as_array(self).storage->version;
  Py_RETURN_NONE;
}

// The address of the first element, once it can be read; `writable` waits for readers too.
PyObject* address(PyObject* self, PyObject* writable) {
  return guarded([&]() -> PyObject* {
    check_read(self);
    const FrontLock lock;
    Storage& storage = *as_array(self).storage;
    PyObject_IsTrue(writable) ? wait_until_ours(storage.variable) : wait_for(storage.variable);
    storage.ensure();
    return PyLong_FromVoidPtr(as_array(self).data());
  });
}

template <typename Function>
PyCFunction as_method(Function* function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

PyMethodDef methods[] = {
    {"wait_to_read", wait_to_read, METH_NOARGS, "Wait until all queued writes are done."},
    {"_alias", alias, METH_NOARGS, "The same array as an object that no gradient flows through."},
    {"_view", view, METH_O, "The view that a basic key selects, which no gradient flows through."},
    {"_count_write", count_write, METH_NOARGS, "Note a write that the core has not made."},
    {"_number", number, METH_NOARGS, "The only element, or None where NumPy has to read it."},
    {"_address", address, METH_O, "Address of the first element, ready to be read or written."},
    {"__dlpack__", as_method(to_dlpack), METH_VARARGS | METH_KEYWORDS, "Export without a copy."},
    {nullptr, nullptr, 0, nullptr},
};

PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(ArrayObject, weak_references), READONLY, nullptr},
    {"_autograd", T_OBJECT, offsetof(ArrayObject, autograd), 0, "What gradient recording keeps."},
    {"_is_detached", T_BOOL, offsetof(ArrayObject, array.is_detached), 0,
     "Whether what recorded calls write to its memory is not its own."},
    {nullptr, 0, 0, 0, nullptr},
};

PyType_Slot slots[] = {
    {Py_tp_doc, const_cast<char*>("An n-dimensional array, computed asynchronously.")},
    {Py_tp_new, reinterpret_cast<void*>(new_array)},
    {Py_tp_dealloc, reinterpret_cast<void*>(deallocate)},
    {Py_tp_repr, reinterpret_cast<void*>(represent)},
    {Py_tp_str, reinterpret_cast<void*>(to_text)},
    {Py_tp_hash, reinterpret_cast<void*>(PyObject_HashNotImplemented)},
    {Py_tp_richcompare, reinterpret_cast<void*>(compare)},
    {Py_tp_iter, reinterpret_cast<void*>(iterate)},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {Py_tp_getset, attributes},
    {Py_nb_add, reinterpret_cast<void*>(binary<Operator::add>)},
    {Py_nb_subtract, reinterpret_cast<void*>(binary<Operator::subtract>)},
    {Py_nb_multiply, reinterpret_cast<void*>(binary<Operator::multiply>)},
    {Py_nb_true_divide, reinterpret_cast<void*>(binary<Operator::true_divide>)},
    {Py_nb_floor_divide, reinterpret_cast<void*>(binary<Operator::floor_divide>)},
    {Py_nb_remainder, reinterpret_cast<void*>(binary<Operator::mod>)},
    {Py_nb_power, reinterpret_cast<void*>(power)},
    {Py_nb_matrix_multiply, reinterpret_cast<void*>(binary<Operator::matmul>)},
    {Py_nb_and, reinterpret_cast<void*>(binary<Operator::bitwise_and>)},
    {Py_nb_or, reinterpret_cast<void*>(binary<Operator::bitwise_or>)},
    {Py_nb_xor, reinterpret_cast<void*>(binary<Operator::bitwise_xor>)},
    {Py_nb_lshift, reinterpret_cast<void*>(binary<Operator::left_shift>)},
    {Py_nb_rshift, reinterpret_cast<void*>(binary<Operator::right_shift>)},
    {Py_nb_negative, reinterpret_cast<void*>(unary<Operator::negative>)},
    {Py_nb_positive, reinterpret_cast<void*>(unary<Operator::positive>)},
    {Py_nb_absolute, reinterpret_cast<void*>(unary<Operator::absolute>)},
    {Py_nb_invert, reinterpret_cast<void*>(unary<Operator::invert>)},
    {Py_nb_inplace_add, reinterpret_cast<void*>(in_place<Operator::add>)},
    {Py_nb_inplace_subtract, reinterpret_cast<void*>(in_place<Operator::subtract>)},
    {Py_nb_inplace_multiply, reinterpret_cast<void*>(in_place<Operator::multiply>)},
    {Py_nb_inplace_true_divide, reinterpret_cast<void*>(in_place<Operator::true_divide>)},
    {Py_nb_inplace_floor_divide, reinterpret_cast<void*>(in_place<Operator::floor_divide>)},
    {Py_nb_inplace_remainder, reinterpret_cast<void*>(in_place<Operator::mod>)},
    {Py_nb_inplace_power, reinterpret_cast<void*>(power_in_place)},
    {Py_nb_inplace_and, reinterpret_cast<void*>(in_place<Operator::bitwise_and>)},
    {Py_nb_inplace_or, reinterpret_cast<void*>(in_place<Operator::bitwise_or>)},
    {Py_nb_inplace_xor, reinterpret_cast<void*>(in_place<Operator::bitwise_xor>)},
    {Py_nb_inplace_lshift, reinterpret_cast<void*>(in_place<Operator::left_shift>)},
    {Py_nb_inplace_rshift, reinterpret_cast<void*>(in_place<Operator::right_shift>)},
    {Py_nb_bool, reinterpret_cast<void*>(truth)},
    {Py_nb_int, reinterpret_cast<void*>(to_int)},
    {Py_nb_float, reinterpret_cast<void*>(to_float)},
    {Py_nb_index, reinterpret_cast<void*>(to_index)},
    {Py_mp_length, reinterpret_cast<void*>(length)},
    {Py_mp_subscript, reinterpret_cast<void*>(get_item)},
    {Py_mp_ass_subscript, reinterpret_cast<void*>(set_item)},
    {Py_sq_item, reinterpret_cast<void*>(row)},
    {Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
    {Py_bf_releasebuffer, reinterpret_cast<void*>(release_buffer)},
    {0, nullptr},
};

PyType_Spec specification = {
    "heterosis.np.ndarray",
    sizeof(ArrayObject),
    0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    slots,
};

}  // namespace

namespace {

constexpr Py_ssize_t kLookedAt = 8;  // items of a list among arguments

// Where the first array is among some arguments, or in a list or tuple there; -1 if there is none.
int device_of(PyObject* const* given, Py_ssize_t count, bool inside = true) {
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (is_array(given[i])) return as_array(given[i]).storage->device;
    if (!inside || (!PyTuple_CheckExact(given[i]) && !PyList_CheckExact(given[i]))) continue;
    const Unchanging still(given[i]);
    const Py_ssize_t items = std::min(PySequence_Fast_GET_SIZE(given[i]), kLookedAt);
    const int found = device_of(PySequence_Fast_ITEMS(given[i]), items, false);
    if (found >= 0) return found;
  }
  return -1;
}

}  // namespace

BesideArguments::BesideArguments(PyObject* const* given, Py_ssize_t count) {
  const int device = device_of(given, count);
  if (device >= 0 && device != current_device()) there_.emplace(device);
}

PyObject* wrap(Array array) {
  PyObject* object = array_type->tp_alloc(array_type, 0);
  if (object) new (&as_array(object)) Array(std::move(array));
  return object;
}

PyObject* alias_of(PyObject* array) {
  PyObject* const other = wrap(as_array(array));
  if (other) reinterpret_cast<ArrayObject*>(other)->extents = Py_XNewRef(extents_of(array));
  return other;
}

bool fix_extents(PyObject* array) {
  PyObject* const extents = extents_of(array);
  for (Py_ssize_t i = 0; extents && i < PyTuple_GET_SIZE(extents); ++i) {
    const Object extent(PyNumber_Index(PyTuple_GET_ITEM(extents, i)));
    if (!extent) return false;
  }
  return true;
}

void add_array_type(PyObject* module) {
  Object type = checked(PyType_FromSpec(&specification));
  array_type = reinterpret_cast<PyTypeObject*>(Py_NewRef(type.get()));
  if (PyModule_AddObjectRef(module, "ndarray", type.get())) throw PythonError();
}

PyObject* to_tuple(const Dims& dims) {
  Object tuple(PyTuple_New(dims.size()));
  for (int i = 0; tuple && i < dims.size(); ++i) {
    PyTuple_SET_ITEM(tuple.get(), i, PyLong_FromLongLong(dims[i]));
  }
  return tuple.release();
}

Dims to_dims(PyObject* sequence) {
  const Object items = checked(PySequence_Fast(sequence, "expected a tuple of integers"));
  const Py_ssize_t count = PySequence_Fast_GET_SIZE(items.get());
  if (count > kMaxRank) {  // what describes a call has room for so many
    throw Failure(ErrorKind::shape, "an array cannot have " + std::to_string(count) +
                                        " dimensions; expected at most " +
                                        std::to_string(kMaxRank) + ".");
  }
  Dims dims(static_cast<int>(count));
  for (int i = 0; i < dims.size(); ++i) {
    dims[i] = PyLong_AsLongLong(PySequence_Fast_GET_ITEM(items.get(), i));
    if (dims[i] == -1 && PyErr_Occurred()) throw PythonError();
  }
  return dims;
}

}  // namespace heterosis::python
