// The Python type `Operation`: calls an operation with arrays, without entering Python on a hit.
#pragma once

#include "common.h"
#include "plan_handle.h"

namespace heterosis::python {

// Operations that C code calls: behind `ndarray`'s operators, and copying into an array.
enum class Operator : uint8_t {
  add, subtract, multiply, true_divide, floor_divide, mod, power, matmul,
  bitwise_and, bitwise_or, bitwise_xor, left_shift, right_shift,
  negative, positive, absolute, invert,
  less, less_equal, equal, not_equal, greater, greater_equal,
  assign,
};
inline constexpr int kOperators = static_cast<int>(Operator::assign) + 1;

// Creates the type and adds it to `module`.
void add_operation_type(PyObject* module);

// Makes `operation`, an Operation, the one behind the operator called `name`.
void set_operator(const char* name, PyObject* operation);

// Notes the views that these operations make from now on, or with none of them no views at all.
void note_views_of(PyObject* operations);

// Runs a plan that no operation keeps on arrays and numbers; a tuple of its results.
PyObject* run_plan(const PlanHandle& plan, PyObject* operands);

PyObject* call_operator(Operator which, PyObject* const* arguments, int count);

// Writes the result into `out`; returns a new reference to it.
PyObject* call_operator_into(Operator which, PyObject* const* arguments, PyObject* out);

}  // namespace heterosis::python
