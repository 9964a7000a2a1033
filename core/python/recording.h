// Gradient recording: which calls the tape in `heterosis.autograd` is told of.
#pragma once

#include "array_type.h"

namespace heterosis::python {

// Of the calling thread.
bool is_recording();
void set_recording(bool on);

// Whether a gradient may flow from `value`.
inline bool is_tracked(PyObject* value) {
  return is_array(value) && reinterpret_cast<ArrayObject*>(value)->autograd;
}

// Before a call writes into `out`: throws PythonError if the tape could not follow.
void check_write(PyObject* out);

// After a call: `operands` in the order of parameters, arrays, numbers and None.
void record_call(PyObject* record, uint64_t plan, const Object& operands, const Object& attributes,
                 PyObject* result);

}  // namespace heterosis::python
