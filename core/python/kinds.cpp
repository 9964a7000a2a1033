#include "kinds.h"

#include <stdexcept>

namespace heterosis::python {

DType dtype_named(const std::string& name) {
  for (int i = 0; i < kDTypes; ++i) {
    if (kDTypeFacts[static_cast<size_t>(i)].name == name) return static_cast<DType>(i);
  }
  throw std::invalid_argument("unknown element type: " + name);
}

ErrorKind kind_named(const std::string& name) {
  if (name == "LinearAlgebraError") return ErrorKind::linear_algebra;
  if (name == "IndexingError") return ErrorKind::index;
  if (name == "ShapeError") return ErrorKind::shape;
  if (name == "raised") return ErrorKind::raised;
  return name == "ArgumentError" ? ErrorKind::value : ErrorKind::internal;
}

}  // namespace heterosis::python
