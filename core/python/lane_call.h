// Python functions that run in the engine's lane, on the memory of an array.
#pragma once

#include <string>

#include "array_type.h"

namespace heterosis::python {

// Queues a call of `function(memory, error)` as a write of `array`, which lies in row-major order
// without gaps, and of `order`. Either memory is a buffer that can be written until the function
// returns, or it is None and error the text of that which the array holds. What the function raises
// is the array's error then.
void call_in_lane(std::string operation, PyObject* function, PyObject* array, PyObject* order);

// Lets forks wait for such calls.
void share_front_lock();

}  // namespace heterosis::python
