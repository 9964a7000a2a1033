// Names that Python has for what plans are made of.
#pragma once

#include <string>

#include "../dtype.h"
#include "../error.h"

namespace heterosis::python {

// Throws std::invalid_argument for an unknown one.
DType dtype_named(const std::string& name);

// Of the error that a failure raises.
ErrorKind kind_named(const std::string& name);

}  // namespace heterosis::python
