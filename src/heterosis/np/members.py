"""What `ndarray` does in Python: conversions, protocols, and methods whose arguments differ from
those of the operation they call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy

from heterosis import _core
from heterosis.ir.types import DTYPES, numpy_dtype
from heterosis.np import convert, indexing, interoperate, text
from heterosis.np.dtypes import dtype_name
from heterosis.ops import eager
from heterosis.ops.math.cast import astype as _astype
from heterosis.ops.math.cast import copy as _copy
from heterosis.ops.record import REGISTRY, public_names
from heterosis.runtime import elsewhere, modes
from heterosis.runtime.arguments import checked
from heterosis.runtime.context import Context, context_of_device, number_named
from heterosis.runtime.errors import ArgumentError, ArgumentTypeError, ShapeError, UnsupportedError

ndarray = _core.ndarray


def _call(name: str, *arguments: Any, **keywords: Any) -> Any:
    return REGISTRY[name].operation(*arguments, **keywords)


# -- to Python and NumPy --------------------------------------------------------------------------


def asnumpy(self) -> numpy.ndarray:
    """A NumPy array with a copy of the elements; waits until they are computed."""
    return convert.to_numpy(self)


def item(self, *index: Any) -> Any:
    """One element as a Python number; waits until it is computed."""
    if not index and (found := self._number()) is not None:
        return found
    if not index and self.size != 1:
        raise ArgumentError(
            f"item: an array of shape {self.shape} is no single number; index one of its elements."
        )
    return convert.shared(self).item(*index)


def tolist(self) -> Any:
    """Nested lists of Python numbers; waits until they are computed."""
    return convert.shared(self).tolist()


def to_dlpack_for_read(self) -> Any:
    """A DLPack capsule to read from."""
    return self.__dlpack__()


def to_dlpack_for_write(self) -> Any:
    """A DLPack capsule to write to; waits until all queued work has read the array."""
    if self._device >= _core.first_remote:
        raise UnsupportedError(
            f"to_dlpack_for_write: the array is on {self.ctx}, where nobody else can write. Write "
            "into a copy, and make an array of it."
        )
    self._address(True)
    return self.__dlpack__()


# -- copies ---------------------------------------------------------------------------------------


def astype(self, dtype: Any, order="K", casting="unsafe", subok=True, copy=True) -> ndarray:
    """The elements converted to `dtype`; the array itself if nothing changes and not `copy`."""
    name = dtype_name(dtype)
    if not numpy.can_cast(self.dtype, numpy_dtype(name), casting):
        raise ArgumentTypeError(
            f"astype: casting={casting!r} does not let {self.dtype} become {name}."
        )
    if not copy and name == self._dtype_name:
        return self
    return _astype(self, name)


def copy(self, order: str = "C") -> ndarray:
    """A new array with the same elements."""
    if order == "F":
        raise UnsupportedError("copy: order='F' is not supported; arrays are made row by row.")
    return _copy(self)


def copyto(self, other: Any) -> ndarray:
    """Write the elements into the array `other`, or into a new array on the context `other`."""
    if isinstance(other, Context):
        same = number_named(other) == self._device
        return _copy(self) if same else convert.moved(self, other)
    if not isinstance(other, ndarray):
        raise ArgumentTypeError(
            f"copyto: expected an array or a context, and got {type(other).__name__}."
        )
    other[...] = self
    return other


def as_in_context(self, context: Context) -> ndarray:
    """The array itself if it is on that context, else a copy there."""
    same = number_named(context) == self._device
    return self if same else convert.moved(self, context)


def itself(self) -> ndarray:
    """The array itself: there is one kind of array."""
    return self


def detach(self) -> ndarray:
    """The same memory as an array that no gradient flows through."""
    if not modes.is_capturing():
        alias = self._alias()
        alias._is_detached = True
        return alias
    with modes.switched(recording=False):
        return _call("stop_gradient", self)


def device(self) -> Context:
    """The context that the array is on."""
    return context_of_device(self._device)


def to_device(self, device: Context, /, *, stream: Any = None) -> ndarray:
    """The array itself if it is on that context, else a copy there; there are no streams."""
    if stream is not None:
        raise UnsupportedError("to_device: main memory has no streams; leave `stream` away.")
    return as_in_context(self, device)


def array_namespace(self, /, *, api_version: str | None = None) -> Any:
    """The array API standard's functions, as programs for any array library ask for them."""
    import heterosis

    namespace = heterosis.array_api
    if api_version not in (None, "2021.12", "2022.12", "2023.12", namespace.__array_api_version__):
        raise ArgumentError(
            f"__array_namespace__: api_version={api_version!r}; versions up to "
            f"{namespace.__array_api_version__!r} are there."
        )
    return namespace


def matrix_transpose(self) -> ndarray:
    """The last two dimensions swapped."""
    if self.ndim < 2:
        raise ShapeError(f"mT: expected matrices, and got an array of shape {self.shape}.")
    return _call("swapaxes", self, -1, -2)


def tostype(self, stype: str) -> ndarray:
    """The array itself; only dense storage, 'default', exists."""
    if stype != "default":
        raise UnsupportedError(f"tostype: {stype!r} storage does not exist; only 'default' does.")
    return self


# -- shapes ---------------------------------------------------------------------------------------


def reshape(self, *shape: Any, order: str = "C", **keywords: Any) -> ndarray:
    """The same elements under another shape, given as one tuple or as several numbers.

    Where NumPy sees an error, in a 0 for an array with elements or in -2 to -4, these are the codes
    of `reshape_view`, as in programs for MXNet's older arrays.
    """
    if not shape:
        shape = (keywords.pop("newshape", None) or keywords.pop("shape"),)
    wanted = tuple(shape[0]) if isinstance(shape[0], tuple | list) else shape
    if self.size and any(_is_number(n) and _is_code(n) for n in wanted):
        wanted = decoded_shape(self.shape, wanted)
    return _call("reshape", self, wanted, order=order, **keywords)


def transpose(self, *axes: Any) -> ndarray:
    """The dimensions in another order, reversed unless told; given as a tuple or as numbers."""
    if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], tuple | list)):
        (axes,) = axes
    return _call("transpose", self, tuple(axes) if axes else None)


def flatten(self, order: str = "C") -> ndarray:
    """A copy with one dimension."""
    return _copy(reshape(self, -1, order=order))


def sort(self, axis: int = -1, kind: str | None = None, order: Any = None) -> None:
    """Sort the elements in place."""
    self[...] = _call("sort", self, axis)


def clip(self, min: Any = None, max: Any = None, out: Any = None, **bounds: Any) -> ndarray:
    """The elements, kept between `min` and `max`."""
    low, high = bounds.pop("a_min", min), bounds.pop("a_max", max)
    if bounds:
        raise ArgumentTypeError(
            f"clip: unknown argument {next(iter(bounds))!r}; expected min, max, out."
        )
    return _call("clip", self, low, high, out=out)


def split_v2(self, indices_or_sections: Any, axis: int = 0, squeeze_axis: bool = False) -> list:
    """The parts between indices, or equal parts, along `axis`; without it if `squeeze_axis`."""
    from heterosis.np import split

    parts = split(self, indices_or_sections, axis)
    return [part.squeeze(axis) for part in parts] if squeeze_axis else parts


# The codes of `reshape_view`, which MXNet's programs use.
_KEEP, _INFER, _REST, _MERGE, _SPLIT = 0, -1, -2, -3, -4


def reshape_view(self, *shape: Any, **keywords: Any) -> ndarray:
    """A reshape with codes: 0 keeps an extent, -1 is inferred, -2 keeps all that follow, -3
    multiplies two, -4 splits one into the next two numbers."""
    wanted = keywords.pop("shape", shape[0] if shape and not _is_number(shape[0]) else shape)
    return self.reshape(decoded_shape(self.shape, tuple(wanted)))


def _is_number(given: Any) -> bool:
    return hasattr(given, "__index__")


def _is_code(extent: Any) -> bool:
    """Whether NumPy has no meaning for it as an extent of an array with elements."""
    return extent == _KEEP or extent < _INFER


def decoded_shape(old: tuple[int, ...], codes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that `reshape_view`'s codes mean for an array of shape `old`; may hold a -1."""
    rest, pending, new = list(old), list(codes), []
    try:
        while pending:
            code = pending.pop(0)
            if code == _REST:
                new += rest
                rest = []
            elif code == _MERGE:
                new.append(rest.pop(0) * rest.pop(0))
            elif code == _SPLIT:
                new += _split(rest.pop(0), pending.pop(0), pending.pop(0))
            else:
                extent = rest.pop(0) if rest else 1
                new.append(extent if code == _KEEP else code)
    except IndexError:
        raise ShapeError(
            f"reshape_view: the codes {codes} do not fit an array of shape {old}."
        ) from None
    return tuple(new)


def _split(extent: int, first: int, second: int) -> tuple[int, int]:
    if first == _INFER:
        return extent // second, second
    return first, extent // first if second == _INFER else second


# -- writing parts --------------------------------------------------------------------------------


def slice_assign(self, rhs: Any, begin: tuple, end: tuple, step: tuple) -> ndarray:
    """Write `rhs` into a slice, in place."""
    self[tuple(map(slice, begin, end, step))] = rhs
    return self


# -- Python's protocols ---------------------------------------------------------------------------


def contains(self, element: Any) -> bool:
    """`element in x`: whether an element equals it."""
    return bool((self == element).any())


def backwards(self) -> Iterator[ndarray]:
    """`reversed(x)`: the rows, each as it is when it is asked for."""
    if not self.ndim:
        raise ArgumentTypeError("reversed: an array without dimensions has no rows.")
    return (self[i] for i in range(len(self) - 1, -1, -1))


def reduce_(self) -> tuple:
    """What pickling and copying keep: the elements as a NumPy array."""
    return convert.array, (convert.to_numpy(self),)


def make_uninitialised(shape: Any, dtype: Any = None) -> ndarray:
    """`ndarray(shape, dtype)`."""
    from heterosis.np.creation import empty

    return empty(shape, dtype)


def to_complex(self) -> complex:
    """`complex(x)`: of an array with one element."""
    return complex(float(self))


def divide_and_remainder(self, other: Any) -> tuple[ndarray, ndarray]:
    """`divmod(x, y)`."""
    return self // other, self % other


def matrix_product_in_place(self, other: Any) -> Any:
    """`x @= y`: the array holds the product, which is of its shape."""
    product = _call("matmul", self, other)
    if product.shape != self.shape:
        raise ShapeError(
            f"matmul: a product of shape {product.shape} does not take the place of an array of "
            f"shape {self.shape}; write x = x @ y for a new array."
        )
    return _call("copy", product, out=self)


_METHODS = {
    "asnumpy": asnumpy,
    "item": item,
    "asscalar": item,
    "tolist": tolist,
    "to_dlpack_for_read": to_dlpack_for_read,
    "to_dlpack_for_write": to_dlpack_for_write,
    "astype": astype,
    "copy": copy,
    "copyto": copyto,
    "as_in_ctx": as_in_context,
    "as_in_context": as_in_context,
    "to_device": to_device,
    "as_np_ndarray": itself,
    "as_nd_ndarray": itself,
    "detach": detach,
    "tostype": tostype,
    "reshape": reshape,
    "transpose": transpose,
    "flatten": flatten,
    "sort": sort,
    "split_v2": split_v2,
    "clip": clip,
    "reshape_view": reshape_view,
    "slice_assign": slice_assign,
    "slice_assign_scalar": slice_assign,
    "__array_namespace__": array_namespace,
    "__complex__": to_complex,
    "__contains__": contains,
    "__copy__": copy,
    "__deepcopy__": lambda self, memo: _copy(self),
    "__reduce__": reduce_,
    "__format__": text.format_array,
    "__divmod__": divide_and_remainder,
    "__imatmul__": matrix_product_in_place,
    "__rdivmod__": lambda self, other: divide_and_remainder(other, self),
    "__round__": lambda self, digits=0: _call("round", self, digits),
    "__reversed__": backwards,
    "__floor__": lambda self: _call("floor", self),
    "__ceil__": lambda self: _call("ceil", self),
    "__trunc__": lambda self: _call("trunc", self),
}

_PROPERTIES = {
    "ctx": device,
    "context": device,
    "device": device,
    "mT": matrix_transpose,
    "stype": lambda self: "default",
    "writable": lambda self: True,
}

# Functions of `np` that are methods as they stand, with the array as their first argument.
_FUNCTIONS = [
    "abs",
    "all",
    "any",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctanh",
    "argmax",
    "argmin",
    "argsort",
    "broadcast_to",
    "cbrt",
    "ceil",
    "cos",
    "cosh",
    "cumprod",
    "cumsum",
    "degrees",
    "diag",
    "diagonal",
    "dot",
    "exp",
    "expand_dims",
    "expm1",
    "fix",
    "flip",
    "floor",
    "log",
    "log10",
    "log1p",
    "log2",
    "max",
    "mean",
    "min",
    "nanprod",
    "nansum",
    "nonzero",
    "ones_like",
    "pad",
    "prod",
    "ptp",
    "radians",
    "ravel",
    "reciprocal",
    "repeat",
    "resize",
    "rint",
    "round",
    "searchsorted",
    "sign",
    "sin",
    "sinh",
    "split",
    "sqrt",
    "square",
    "squeeze",
    "std",
    "sum",
    "swapaxes",
    "take",
    "tan",
    "tanh",
    "tile",
    "trace",
    "trunc",
    "var",
    "zeros_like",
]


def install_members(functions: Mapping[str, Any]) -> None:
    """Complete the type that the core defines; `functions` are those of `np`, by name."""
    members = {name: functions[name] for name in _FUNCTIONS if name in functions}
    members |= {**public_names("ndarray"), **interoperate.MEMBERS}
    members |= {name: checked(method) for name, method in _METHODS.items()}
    members |= {name: property(get) for name, get in _PROPERTIES.items()}
    for name, member in members.items():
        setattr(ndarray, name, member)
    elsewhere.explain("ndarray", ndarray)
    _core.set_hook("dtypes", tuple(numpy_dtype(name) for name in DTYPES))
    _core.set_hook("item", item)
    _core.set_hook("getitem", checked(indexing.getitem))
    _core.set_hook("setitem", checked(indexing.setitem))
    _core.set_hook("transpose", REGISTRY["transpose"].operation)
    _core.set_hook("repr", text.representation)
    _core.set_hook("str", text.to_text)
    _core.set_hook("new_array", checked(make_uninitialised))
    eager.set_converter(convert.operand)
