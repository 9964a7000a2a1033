// The Python type `Guards`: what a captured program was made of, and whether it still is so.
#pragma once

#include "common.h"

namespace heterosis::python {

// Creates the type and adds it to `module`.
void add_guards_type(PyObject* module);

bool is_guards(PyObject* object);

// Whether everything that `guards` watches is as it was. Runs no Python code of the user.
bool hold(PyObject* guards);

// Whether `guards` watches the elements of an array in this memory.
bool watches(PyObject* guards, const Storage& storage);

}  // namespace heterosis::python
