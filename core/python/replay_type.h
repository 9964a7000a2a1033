// The Python type `Replay`: calls of a hybridized function that a captured program serves.
#pragma once

#include "common.h"

namespace heterosis::python {

// Creates the type and adds it to `module`.
void add_replay_type(PyObject* module);

}  // namespace heterosis::python
