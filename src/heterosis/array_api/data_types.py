"""Element types, what may become what, and their limits."""

from __future__ import annotations

import builtins
import functools
from dataclasses import dataclass
from typing import Any

import numpy

from heterosis import np
from heterosis.ir import types
from heterosis.ir.types import FLOATS, INTEGERS, UNSIGNED, numpy_dtype
from heterosis.runtime.errors import ArgumentError, DTypeError
from heterosis.runtime.placing import placed

bool = numpy_dtype("bool")
int8, int16, int32, int64, uint8, uint16, uint32, uint64 = map(numpy_dtype, INTEGERS)
float16, bfloat16, float32, float64 = map(numpy_dtype, FLOATS)

# What the standard names; float16 and bfloat16 are there beside it.
STANDARD = {
    "bool": ("bool",),
    "signed integer": ("int8", "int16", "int32", "int64"),
    "unsigned integer": UNSIGNED,
    "real floating": ("float32", "float64"),
    "complex floating": (),
}
_MORE = {"real floating": ("float16", "bfloat16")}
_UNIONS = {
    "integral": ("signed integer", "unsigned integer"),
    "numeric": ("signed integer", "unsigned integer", "real floating", "complex floating"),
}


@dataclass(frozen=True)
class finfo_object:  # noqa: N801 - the standard's name
    """The limits of a type of floats, as Python's numbers."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: numpy.dtype


@dataclass(frozen=True)
class iinfo_object:  # noqa: N801 - the standard's name
    """The limits of a type of integers."""

    bits: int
    max: int
    min: int
    dtype: numpy.dtype


def kinds_named(name: str) -> tuple[str, ...]:
    """The kinds that a name of the standard's stands for, one by one."""
    if name in STANDARD:
        return (name,)
    if name not in _UNIONS:
        raise ArgumentError(
            f"{name!r} is no kind of element types; expected one of "
            f"{', '.join((*STANDARD, *_UNIONS))}."
        )
    return _UNIONS[name]


@placed
def astype(
    x: np.ndarray, dtype: Any, /, *, copy: builtins.bool = True, device: Any = None
) -> np.ndarray:
    """The elements converted to `dtype`; the array itself if nothing changes and not `copy`."""
    return x.astype(dtype, copy=copy)


def can_cast(from_: Any, to: Any, /) -> builtins.bool:
    """Whether NumPy counts a conversion of one type to the other as safe."""
    return builtins.bool(numpy.can_cast(_name_dtype(from_), _name_dtype(to)))


def _name_dtype(given: Any) -> numpy.dtype:
    return numpy_dtype(_name(given))


def finfo(type: Any, /) -> finfo_object:
    """The limits of a type of floats, or of the elements of an array."""
    name = _name(type)
    if name not in FLOATS:
        raise DTypeError(f"finfo: {name} is no type of floats; expected {', '.join(FLOATS)}.")
    found = _machine_limits(name)
    return finfo_object(
        bits=found.bits,
        eps=float(found.eps),
        max=float(found.max),
        min=float(found.min),
        smallest_normal=float(found.smallest_normal),
        dtype=numpy_dtype(name),
    )


def _machine_limits(name: str) -> Any:
    if name != "bfloat16":
        return numpy.finfo(name)
    import ml_dtypes

    return ml_dtypes.finfo(name)


def iinfo(type: Any, /) -> iinfo_object:
    """The limits of a type of integers, or of the elements of an array."""
    name = _name(type)
    if name not in INTEGERS:
        raise DTypeError(f"iinfo: {name} is no type of integers; expected {', '.join(INTEGERS)}.")
    bits = 8 * types.ITEMSIZE[name]
    return iinfo_object(bits, types.highest(name), types.lowest(name), numpy_dtype(name))


def isdtype(dtype: Any, kind: Any) -> builtins.bool:
    """Whether `dtype` is of a kind: a type, one of the standard's names, or a tuple of these."""
    if isinstance(kind, tuple):
        return builtins.any(isdtype(dtype, one) for one in kind)
    name = types.dtype_name(dtype)
    if isinstance(kind, str):
        return builtins.any(name in STANDARD[k] + _MORE.get(k, ()) for k in kinds_named(kind))
    return name == types.dtype_name(kind)


def result_type(*arrays_and_dtypes: Any) -> numpy.dtype:
    """The type that arrays and types have together; Python's numbers adapt to theirs."""
    named = [_name(given) for given in arrays_and_dtypes if not _is_number(given)]
    if not named:
        raise ArgumentError("result_type: expected an array or an element type among the numbers.")
    dtype = functools.reduce(_promoted, named)
    numbers = [given for given in arrays_and_dtypes if _is_number(given)]
    if dtype in INTEGERS and builtins.any(isinstance(number, float) for number in numbers):
        return numpy_dtype(types.DEFAULT_FLOAT)
    return numpy_dtype(dtype)


def _is_number(given: Any) -> builtins.bool:
    return isinstance(given, builtins.bool | int | float | complex)


def _name(given: Any) -> str:
    """The element type of an array, or the one that was given."""
    return types.dtype_name(given.dtype if isinstance(given, np.ndarray) else given)


def _promoted(a: str, b: str) -> str:
    """What both become, where the standard lets them: within a kind, and among integers."""
    kinds = [_kind(a), _kind(b)]
    if kinds[0] != kinds[1] and not {*kinds} <= {*_UNIONS["integral"]}:
        raise DTypeError(
            f"result_type: {a} and {b} are of different kinds, which the standard does not "
            "promote; convert one of them with astype."
        )
    return types.promote(a, b)


def _kind(name: str) -> str:
    return next(k for k in STANDARD if name in STANDARD[k] + _MORE.get(k, ()))


__all__ = [
    "astype",
    "bfloat16",
    "bool",
    "can_cast",
    "finfo",
    "float16",
    "float32",
    "float64",
    "iinfo",
    "int8",
    "int16",
    "int32",
    "int64",
    "isdtype",
    "result_type",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]
