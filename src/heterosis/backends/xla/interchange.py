"""Arrays in and out of JAX. Both share their memory wherever XLA can use it as it lies."""

from __future__ import annotations

from typing import Any

import jax

from heterosis import _core
from heterosis.ir.program import Value
from heterosis.ir.strided import Strided


class Operand:
    """What a program is given at one position. If it `is_kept`, memory that is met again, as that
    of weights, is the same array of JAX's: it sees what is written there meanwhile."""

    def __init__(self, value: Value, *, is_kept: bool):
        self.is_kept = is_kept
        self._strides = Strided.contiguous(value.shape).strides
        # An address of ours, and an array of JAX's over the memory there: one object, for threads.
        self._shared: tuple[int, Any] = (0, None)

    def given(self, operand: Any) -> Any:
        """`operand`, an array or a Python number, for JAX."""
        if not isinstance(operand, _core.ndarray):
            return operand
        if operand._element_strides != self._strides:
            operand = operand.copy()  # row by row
        address = operand._address(False)  # waits for what is written there
        known, found = self._shared
        if address == known:
            return found
        found = jax.dlpack.from_dlpack(operand)
        if self.is_kept:
            shares = operand.nbytes > 0 and found.unsafe_buffer_pointer() == address
            self._shared = (address, found) if shares else (0, None)
        return found


def own(found: Any) -> _core.ndarray:
    """An array of ours over the memory of one of JAX's, which nobody else has."""
    return _core.from_dlpack(found.__dlpack__())
