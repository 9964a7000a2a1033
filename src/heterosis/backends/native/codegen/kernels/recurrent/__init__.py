"""The loop over the steps of a recurrent layer, forwards and back.

Each step is a matrix product and one pass over its result, in which a `Cell` says what happens.
What does not depend on the step before (the product with the inputs, for one) is done outside,
for all steps at once; or both products are one, of the inputs and the last outputs side by side,
which writes down nothing that the next step would have to read again.
"""

from heterosis.backends.native.codegen.kernels.recurrent.cells import CELLS
from heterosis.backends.native.codegen.kernels.recurrent.loop import emit_recurrence
from heterosis.backends.native.codegen.kernels.recurrent.plan import FEW_ROWS, joins, numbers, plan

__all__ = ["CELLS", "FEW_ROWS", "emit_recurrence", "joins", "numbers", "plan"]
