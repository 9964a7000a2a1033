// Machine code as Python holds it, and a function in it: whoever may call that keeps the code.
#pragma once

#include <memory>

#include "../abi.h"
#include "../object_loader.h"

namespace heterosis::python {

struct FunctionHandle {
  std::shared_ptr<const LoadedObject> object;
  hx_function function;
};

struct ObjectHandle {
  std::shared_ptr<const LoadedObject> object;

  // Whether a function of it is held, by a plan or by Python. Plans hold it from the front end and
  // from queued work, so that it may be the engine that drops the code.
  bool is_used() const { return object.use_count() > 1; }
};

}  // namespace heterosis::python
