// The Python type `ndarray`: its object, and making and unwrapping one.
#pragma once

#include <optional>

#include "common.h"

namespace heterosis::python {

struct ArrayObject {
  PyObject_HEAD
  Array array;
  PyObject* autograd;  // what gradient recording attaches; null without
  PyObject* weak_references;
  PyObject* made_from;  // weak references to arrays, if this is a view that is noted; null without
  PyObject* extents;    // a tuple, of an array without elements whose shape is not all known
};

extern PyTypeObject* array_type;

inline bool is_array(PyObject* object) { return PyObject_TypeCheck(object, array_type); }
inline Array& as_array(PyObject* object) { return reinterpret_cast<ArrayObject*>(object)->array; }

PyObject* wrap(Array array);

// The same array as an object that no gradient flows through.
PyObject* alias_of(PyObject* array);

// While this lives, the calling thread makes arrays where the first array among arguments is: what
// Python makes besides, of lists say, is for operations on these.
class BesideArguments {
 public:
  BesideArguments(PyObject* const* given, Py_ssize_t count);

 private:
  std::optional<OnDevice> there_;
};

// Before the core takes the shape of an array for known. False with an error set.
bool fix_extents(PyObject* array);

// Creates the type and adds it to `module`.
void add_array_type(PyObject* module);

// `x[key]` and `x[key] = value` where the key is integers, slices, None and Ellipsis; the hook
// "getitem" or "setitem" for every other key.
PyObject* get_item(PyObject* self, PyObject* key);
PyObject* get_view(PyObject* self, PyObject* key);  // raises for other keys
int set_item(PyObject* self, PyObject* key, PyObject* value);

// The buffer protocol and DLPack.
int get_buffer(PyObject* self, Py_buffer* view, int flags);
void release_buffer(PyObject* self, Py_buffer* view);
PyObject* to_dlpack(PyObject* self, PyObject* arguments, PyObject* keywords);
PyObject* from_dlpack(PyObject* capsule);

// A tuple of Python integers.
PyObject* to_tuple(const Dims& dims);
// Throws if there are more of them than an array has dimensions.
Dims to_dims(PyObject* sequence);

}  // namespace heterosis::python
