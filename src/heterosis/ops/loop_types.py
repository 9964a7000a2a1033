"""`dtype=` of functions on elements: the type that they compute in, not one to convert results to.

As NumPy's ufuncs do, they take their operands converted to that type, where nothing but precision
or range is lost by it; a sum of uint8 in int32 does not wrap around, an exponential of float16 in
float32 does not overflow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from heterosis import _core
from heterosis.ir.types import UNSIGNED, highest, is_float, is_integer, lowest
from heterosis.runtime.arguments import described
from heterosis.runtime.errors import ArgumentError, DTypeError


def computes_in_type(name: str) -> bool:
    """Whether it is a function whose `dtype=` NumPy reads so: a ufunc, or `clip`, which is one
    inside."""
    return name == "clip" or isinstance(getattr(numpy, name, None), numpy.ufunc)


def operands_in(name: str, operands: Sequence[Any], dtype: str) -> list[Any]:
    """The operands as a function that computes in `dtype` takes them."""
    if dtype == "bool":  # the type of answers, which are about operands of any type
        return list(operands)
    arrays = any(isinstance(operand, _core.ndarray) for operand in operands)
    return [_operand_in(name, operand, dtype, arrays) for operand in operands]


def _operand_in(name: str, operand: Any, dtype: str, beside_arrays: bool) -> Any:
    from heterosis.ops.math.cast import astype

    if isinstance(operand, _core.ndarray):
        if operand._dtype_name == dtype:
            return operand
        if not keeps_kind(operand._dtype_name, dtype):
            raise _no_loop(name, f"an operand of {operand._dtype_name}", dtype)
    elif operand is None or beside_arrays:  # a number adapts to the arrays
        return operand
    elif isinstance(operand, float) and not is_float(dtype):
        raise _no_loop(name, f"the number {operand}", dtype)
    elif is_integer(dtype) and not lowest(dtype) <= operand <= highest(dtype):
        raise ArgumentError(f"{name}: {described(operand)} does not fit into {dtype}.")
    return astype(operand, dtype)


def keeps_kind(dtype: str, to: str) -> bool:
    """Whether elements of `dtype` become those of `to` unasked: NumPy's rule `same_kind`. Width
    does not matter; a sign or a fraction must have a place."""
    return _kind(dtype) <= _kind(to)


def _kind(dtype: str) -> int:
    return 3 if is_float(dtype) else 0 if dtype == "bool" else 1 if dtype in UNSIGNED else 2


def _no_loop(name: str, given: str, dtype: str) -> DTypeError:
    return DTypeError(
        f"{name}: {given} and dtype='{dtype}', the type to compute in; convert what you give, or "
        f"what you get, with .astype('{dtype}')."
    )


def checked(name: str, result: Any, dtype: str) -> Any:
    """The result of a function that was to compute in `dtype`, and did."""
    if result._dtype_name == dtype:
        return result
    raise _no_loop(name, f"a result of {result._dtype_name}", dtype)
