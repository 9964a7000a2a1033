"""Element types and tensor types: what is known of a value before there is one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy

from heterosis.runtime.errors import DTypeError, ShapeError

# The position is the number that the core and written programs use: new ones go to the end.
DTYPES = (
    "bool",
    "int8",
    "uint8",
    "int32",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "int16",
    "uint16",
    "uint32",
    "uint64",
)
ITEMSIZE = dict(zip(DTYPES, (1, 1, 1, 4, 8, 2, 2, 4, 8, 2, 2, 4, 8), strict=True))
_BITS = {name: 8 * size if name != "bool" else 0 for name, size in ITEMSIZE.items()}
HALVES = ("float16", "bfloat16")
FLOATS = ("float16", "bfloat16", "float32", "float64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = ("int8", "int16", "int32", "int64", *UNSIGNED)
DEFAULT_FLOAT = "float32"

_NUMPY = {name: numpy.dtype(name) for name in DTYPES if name != "bfloat16"}
_NUMPY["bfloat16"] = numpy.dtype(ml_dtypes.bfloat16)


def numpy_dtype(name: str) -> numpy.dtype:
    """NumPy's dtype object for one of `DTYPES`."""
    return _NUMPY[name]


def as_type(elements: Any, name: str) -> Any:
    """NumPy elements converted to one of `DTYPES`, and rounded once."""
    if name == "bfloat16" and elements.dtype.kind in "iuf" and elements.dtype.itemsize >= 4:
        elements = _rounded_to_odd(elements)  # ml_dtypes goes by way of float32
    return elements.astype(_NUMPY[name])


def _rounded_to_odd(elements: Any) -> Any:
    """float32 elements that round to fewer bits as these do: of two neighbours, the odd one."""
    with numpy.errstate(all="ignore"):  # infinities, where numbers leave the range
        return _odd_neighbour(numpy.asarray(elements))


def _odd_neighbour(wide: Any) -> Any:
    if wide.dtype.kind in "iu":  # as `backends.native.codegen.emit.conversion` does
        marked = wide & ~wide.dtype.type(0xFFF) | ((wide & 0xFFF) != 0).astype(wide.dtype) << 11
        wide = numpy.where(abs(wide.astype("float64")) < 2.0**40, wide, marked).astype("float64")
    single = wide.astype("float32")
    back, bits = single.astype(wide.dtype), single.view("int32")
    odd = bits - (abs(back) > abs(wide)) | 1
    return numpy.where((back != wide) & ~numpy.isnan(wide), odd, bits).view("float32")


class _Names(dict[Any, str]):
    """Names of element types by what users gave for them."""

    def __missing__(self, given: Any) -> str:
        try:
            name = str(numpy.dtype(given).name)
        except (SyntaxError, TypeError, ValueError):  # NumPy parses texts with commas
            name = str(given)
        if name not in DTYPES:
            raise _no_element_type(name)
        self[given] = name
        return name


_NAMES = _Names()


def dtype_name(given: Any) -> str:
    """The name of an element type that a user gave: a string, or NumPy's or Python's class."""
    try:
        return _NAMES[given]
    except DTypeError:
        raise
    except TypeError:  # it has no hash: an array, a list
        raise _no_element_type(f"an object of type {type(given).__name__}") from None


def _no_element_type(given: str) -> DTypeError:
    return DTypeError(f"{given} is no element type; expected one of {', '.join(DTYPES)}.")


def is_float(dtype: str) -> bool:
    return dtype in FLOATS


def is_half(dtype: str) -> bool:
    """Floats of 16 bits, which are computed with as float32."""
    return dtype in HALVES


def is_integer(dtype: str) -> bool:
    """Integers proper: `bool` is none."""
    return dtype in INTEGERS


def is_signed(dtype: str) -> bool:
    """Whether integers of the type may be negative."""
    return dtype in INTEGERS and dtype not in UNSIGNED


def lowest(dtype: str) -> float | int:
    """The value below every other of `dtype`."""
    if is_float(dtype):
        return -math.inf
    return -(1 << (8 * ITEMSIZE[dtype] - 1)) if is_signed(dtype) else 0


def highest(dtype: str) -> float | int:
    """The value above every other of `dtype`."""
    if is_float(dtype):
        return math.inf
    if dtype == "bool":
        return 1
    return (1 << (8 * ITEMSIZE[dtype] - is_signed(dtype))) - 1


def promote(a: str, b: str) -> str:
    """The type that holds both: the wider of one kind; a float wins over any integer.

    As in NumPy, no integer holds those of uint64 and of a signed type: they become float64.
    """
    if a == b:
        return a
    if is_float(a) != is_float(b):
        return a if is_float(a) else b
    if {a, b} == {"float16", "bfloat16"}:
        return "float32"
    return max(a, b, key=_BITS.__getitem__) if is_float(a) else _both_integers(a, b)


def _both_integers(a: str, b: str) -> str:
    if "bool" in (a, b) or is_signed(a) == is_signed(b):
        return max(a, b, key=_BITS.__getitem__)
    signed, unsigned = (a, b) if is_signed(a) else (b, a)
    bits = max(_BITS[signed], 2 * _BITS[unsigned])
    return f"int{bits}" if bits <= 64 else "float64"


@dataclass(frozen=True, slots=True)
class TensorType:
    """Shape and element type. `weak` marks a Python number, which adapts to its partner's type.

    In programs that are read, checked and evaluated, an extent may be a `Size`; what is compiled
    has numbers alone.
    """

    shape: tuple[int, ...]
    dtype: str
    weak: bool = False

    def __post_init__(self) -> None:
        """Refuse what no operation has looked at: two negative extents make a positive size."""
        try:
            valid = True not in [n < 0 for n in self.shape]
        except TypeError:  # sizes have no order
            valid = all(n >= 0 for n in self.shape if isinstance(n, int))
        if not valid:
            raise ShapeError(f"no array has the shape {self.shape}; expected extents from 0 on.")

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        total = 1
        for extent in self.shape:
            total *= extent
        return total

    @property
    def nbytes(self) -> int:
        return self.size * ITEMSIZE[self.dtype]

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"
