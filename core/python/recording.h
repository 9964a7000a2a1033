// What becomes of calls besides, or instead of, running: the tape in `heterosis.autograd` is told of
// them while gradients are recorded; they become part of a program while one is captured.
#pragma once

#include <optional>
#include <tuple>

#include "array_type.h"

namespace heterosis::python {

// Of the calling thread.
bool is_recording();
void set_recording(bool on);
bool is_training();
void set_training(bool on);
bool is_capturing();
void set_capturing(bool on);
// Whether no program serves calls of hybridized functions: they run as Python runs them.
bool is_imperative();
void set_imperative(bool on);

// Sets what is given of whether calls are recorded, train, are captured and are imperative; returns
// how all four were before.
using Modes = std::tuple<bool, bool, bool, bool>;
Modes switch_modes(std::optional<bool> recorded, std::optional<bool> trains,
                   std::optional<bool> captured, std::optional<bool> as_python);

// Whether a gradient may flow from `value`, or should and cannot: the tape decides.
inline bool is_tracked(PyObject* value) {
  if (!is_array(value)) return false;
  const ArrayObject* const array = reinterpret_cast<ArrayObject*>(value);
  return __atomic_load_n(&array->autograd, __ATOMIC_RELAXED) || (!array->array.is_detached && array->array.storage->is_followed);
}

// Whether what is done with `value` must be operations, and not views that nobody is told of.
inline bool is_followed(PyObject* value) {
  return is_capturing() || (is_recording() && is_tracked(value));
}

// Before elements are read by anything but an operation: throws PythonError where they must not.
inline void check_read(PyObject* array) {
  if (is_capturing()) checked(PyObject_CallFunctionObjArgs(hook("capture_read"), array, nullptr));
}

// Before a call writes into `out`: throws PythonError if the tape could not follow.
void check_write(PyObject* out);

// After a call: `operands` in the order of parameters, arrays, numbers and None.
void record_call(PyObject* record, uint64_t plan, const Object& operands, const Object& attributes,
                 PyObject* result);

// Instead of a call: the operands as above, with None for random keys, and `out` or null.
PyObject* capture_call(PyObject* record, const Object& operands, const Object& attributes,
                       PyObject* out);

}  // namespace heterosis::python
