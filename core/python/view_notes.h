// Views that a program may take for copies. A front end that stands in for MXNet asks for them: each
// then knows the arrays that it was made from, and the first write into one of them is told of.
// Used under the front end's lock.
#pragma once

#include <atomic>

#include "array_type.h"

namespace heterosis::python {

// Whether views are noted at all: nothing below need be called otherwise.
inline std::atomic<bool> noting_views = false;

// `view` shares the memory of `base`.
void note_view(PyObject* view, PyObject* base);

// Calls the hook "view_written" with the array and the user's line if it is a noted view, and somebody
// still has an array that it was made from. Throws PythonError if the hook raises.
void tell_of_write(PyObject* array);

// The same for a write that the interpreter has just come upon: none if the line is the package's own.
void tell_of_own_write(PyObject* array);

}  // namespace heterosis::python
