// The Python type `Checked`: a function whose foreign errors become the framework's.
#pragma once

#include "common.h"

namespace heterosis::python {

// Creates the type and adds it to `module`.
void add_checked_type(PyObject* module);

}  // namespace heterosis::python
