// Where in the user's program the interpreter stands.
#pragma once

#include <string>

namespace heterosis::python {

// "file:line" of the innermost Python frame outside this package; empty if there is none.
std::string user_line();

// Whether the innermost Python frame is outside this package.
bool called_by_user();

// Frames of files below `folder` are the package's own.
void set_package_folder(std::string folder);

}  // namespace heterosis::python
