// Arrays that are not in main memory: their elements are Python objects, and Python computes with them.
#pragma once

#include <vector>

#include "array_type.h"
#include "plan_handle.h"

namespace heterosis::python {

inline bool is_remote(PyObject* object) {
  return is_array(object) && as_array(object).storage->is_remote();
}

// A plan that `function(arrays, numbers, results)` runs: it sets the `_elements` of the results that
// are no views. `reals` says which of the numbers are floats; `results` is as `make_plan` has it.
PlanHandle make_remote_plan(std::string operation, PyObject* function, std::vector<bool> reals,
                            std::vector<ResultPlan> results);

// What has the elements of an array's memory; None if it is new, and may be anything. Reads succeed
// after it is set.
PyObject* get_elements(PyObject* array, void*);
int set_elements(PyObject* array, PyObject* elements, void*);

// Makes all reads of an array raise what reads of `other` do.
void fail_as(PyObject* array, PyObject* other);

// The array itself, or a copy in main memory.
Object in_main_memory(PyObject* array);

// A copy on another device, of which one of the two has memory of its own.
Object brought(PyObject* array, int device);

}  // namespace heterosis::python
