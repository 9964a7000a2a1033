// What the tape of `heterosis.autograd` asks of many arrays at once: a call for each array takes
// longer than small operations do.
#pragma once

#include "common.h"

namespace heterosis::python {

// Creates the type `Entry` and adds it to `module`: a result of a node, as it was when `version`
// writes into its memory had been issued.
void add_entry_type(PyObject* module);

// What gradient recording keeps of each operand of the call `name`, None of what is no array. The
// hook "check_operand" raises where gradients could not follow to what an operand holds; it is
// asked of those of which this is in doubt. One that is the `result` has been written to once more.
Object followed(PyObject* name, PyObject* operands, PyObject* result);

// Lets gradients that reach the results at these positions go to `node`.
void attach(PyObject* node, PyObject* results, PyObject* positions);

// Each array as it is now, a pair of itself, as an object that no gradient flows through, and its
// version; other values as they are.
Object as_now(PyObject* values);

// A list of the arrays of such pairs, which a derivative of the call `name` needs as they were; the
// hook "changed_since" raises where one has been written to since.
Object unchanged(PyObject* name, PyObject* held);

// Strides in elements of each of some values; None of what is no array.
Object strides_of(PyObject* values);

}  // namespace heterosis::python
