// What the tape of `heterosis.autograd` asks of many arrays at once: a call for each array takes
// longer than small operations do.
#pragma once

#include "common.h"

namespace heterosis::python {

// What gradient recording keeps of each of some values; None of what is no array.
Object sources_of(PyObject* values);

// Each array as it is now, a pair of itself, as an object that no gradient flows through, and its
// version; other values as they are.
Object as_now(PyObject* values);

// A list of the arrays of such pairs, which a derivative of the call `name` needs as they were; the
// hook "changed_since" raises where one has been written to since.
Object unchanged(PyObject* name, PyObject* held);

// Strides in elements of each of some values; None of what is no array.
Object strides_of(PyObject* values);

}  // namespace heterosis::python
