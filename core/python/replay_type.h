// The Python type `Replay`: calls of a hybridized function that a captured program serves.
#pragma once

#include "common.h"

namespace heterosis::python {

// Creates the type and adds it to `module`.
void add_replay_type(PyObject* module);

// How often anything has changed that captured programs depend on and that arrays do not show:
// which arrays a block's parameters are, the attributes of blocks. Front end only.
uint64_t changes();
void count_change();

}  // namespace heterosis::python
