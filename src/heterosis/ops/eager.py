"""The imperative path: an operation on arrays as a program of one node, planned and compiled.

The core calls `plan` once for each new signature and keeps what it returns.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy

from heterosis import _core, backends
from heterosis.ir import views as view
from heterosis.ir.primitives.conversions import conversion
from heterosis.ir.program import Program, Value, apply
from heterosis.ir.strided import Strided
from heterosis.ir.traced_sizes import fixed_number, is_traced
from heterosis.ir.types import TensorType, dtype_name, is_float
from heterosis.ops import loop_types
from heterosis.runtime import forks, garbage, modes  # noqa: F401 - forks wait for what a first call imports
from heterosis.runtime.arguments import described
from heterosis.runtime.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError

OutDescription = tuple[str, tuple[int, ...], tuple[int, ...]]


def plan(
    program: Program,
    layouts: Sequence[Strided],
    outs: Sequence[OutDescription] | None,
    *,
    views: bool,
    freely: bool,
    in_place: bool = False,
    device: int = 0,
) -> Any:
    """How to run `program` on operands on a device that lie as `layouts` say: a plan for the core.

    With `outs`, they are written instead of new arrays. With `in_place`, the one of them is the
    first operand, and keeps what the program leaves as it is.
    """
    targets = None
    if outs is not None:
        program, targets = _into(program, outs, freely)
    backend = backends.eager(device)
    with garbage.not_searched():
        return backend.plan(program, layouts, targets, views=views, in_place=in_place)


def _into(
    program: Program, outs: Sequence[OutDescription], freely: bool
) -> tuple[Program, list[Strided]]:
    """`program` with its results converted and repeated as the arrays to be written need them."""
    if len(outs) != len(program.outputs):
        raise ArgumentError(
            f"{program.name}: {len(outs)} arrays in `out` for {len(program.outputs)} results; give "
            "one for each."
        )
    pairs = zip(program.outputs, outs, strict=True)
    results = tuple(fitting(program.name, value, out, freely) for value, out in pairs)
    return Program(program.inputs, results, program.name), [Strided(o[1], o[2]) for o in outs]


def fitting(name: str, value: Value, out: OutDescription, freely: bool) -> Value:
    """A result as the array that it is written into needs it."""
    dtype, shape, _ = out
    if not _broadcasts(value.shape, shape):
        wanted = "a value that broadcasts to it" if freely else f"an array of shape {value.shape}"
        raise ShapeError(
            f"{name}: a result of shape {value.shape} does not fit into an array of shape "
            f"{shape}; give {wanted}."
        )
    if not freely and not loop_types.keeps_kind(value.dtype, dtype):
        raise DTypeError(
            f"{name}: a {value.dtype} result does not fit into an array of {dtype}; "
            f"convert the array with .astype('{value.dtype}') first."
        )
    surplus = max(len(value.shape) - len(shape), 0)  # dimensions of extent 1
    return view.broadcast(view.reshape(_cast(value, dtype), value.shape[surplus:]), shape)


def _broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    if len(shape) > len(to):
        return all(n == 1 for n in shape[: len(shape) - len(to)]) and _broadcasts(
            shape[len(shape) - len(to) :], to
        )
    pairs = zip(reversed(shape), reversed(to), strict=False)
    return all(a in (1, b) for a, b in pairs)


def _cast(value: Value, dtype: str) -> Value:
    if value.dtype == dtype:
        return value
    return apply(conversion(dtype), (value,), TensorType(value.shape, dtype))


# -- arguments that the fast path does not take -------------------------------------------------

_converters: list[Callable[[Any], Any]] = []


def set_converter(convert: Callable[[Any], Any]) -> None:
    """`convert` turns another library's array, a list or a scalar into an array or a number."""
    _converters[:] = [convert]


def call_again(
    record: Any, bound: inspect.BoundArguments, *, out: Any, where: Any, dtype: Any
) -> Any:
    """Call a record's operation once more, with arguments that the fast path takes."""
    from heterosis.ops.record import ARRAY, ATTRIBUTE, SEQUENCE

    (convert,) = _converters
    arguments: list[Any] = []
    run = record.operation
    for parameter, use in zip(record.parameters, record.uses, strict=True):
        given = bound.arguments.get(parameter.name, parameter.default)
        if use == ARRAY:
            arguments.append(convert(given))
        elif use == SEQUENCE:
            arguments.append(tuple(convert(item) for item in given))
            run = _runner(record, len(arguments[-1]))
        elif use == ATTRIBUTE:
            arguments.append(_attribute(record.name, parameter.name, given))
    _check_out(record.name, out)
    if where is not True and any(parameter.name == "axis" for parameter in record.parameters):
        # Only functions of elements write their results where it says so.
        raise ArgumentTypeError(
            f"{record.name}: takes no `where`, which would say what elements count; select them "
            "first, or combine np.sum and np.mean, which take it."
        )
    if dtype is not None:
        run, arguments = _in_type(record.name, run, arguments, dtype_name(dtype))
    names = (parameter.name for parameter in record.parameters)
    beside = partner(record, (*zip(names, arguments, strict=False), ("out", out)))
    ready = fitting_numbers(record, arguments, beside, lambda n: convert(numpy.array(n, "uint64")))
    return _finish(run, ready, out, where, dtype is not None)


def _in_type(
    name: str, run: Callable[..., Any], arguments: list[Any], dtype: str
) -> tuple[Callable[..., Any], list[Any]]:
    """What to call, and with what, for results of `dtype`."""
    if not loop_types.computes_in_type(name):
        return lambda *given: run(*given).astype(dtype), arguments

    def in_type(*given: Any) -> Any:
        result = run(*given)
        if not isinstance(result, tuple):
            return loop_types.checked(name, result, dtype)
        return tuple(loop_types.checked(name, one, dtype) for one in result)

    return in_type, loop_types.operands_in(name, arguments, dtype)


def _check_out(name: str, out: Any) -> None:
    """Results are written into arrays; the core takes them alone or in a tuple."""
    for one in out if isinstance(out, tuple) else (out,):
        if one is not None and not isinstance(one, _core.ndarray):
            raise ArgumentTypeError(f"{name}: out is {described(one)}; expected an array.")


def is_huge(given: Any) -> bool:
    """Whether it is an integer that 64 bits do not hold."""
    return type(given) is int and not -(2**63) <= given < 2**63


def check_range(name: str, given: int) -> None:
    """Integers fit into 64 bits, of which one is for a sign."""
    if is_huge(given):
        bits, more = "64 bits", ""
        if _is_unsigned(given):
            bits, more = "64 bits with a sign", ", or to elements of uint64"
        raise ArgumentError(
            f"{name}: {described(given)} does not fit into {bits}; give it as a float{more}."
        )


def _is_unsigned(given: int) -> bool:
    return 0 <= given < 2**64


def partner(record: Any, named: Iterable[tuple[str, Any]]) -> str | None:
    """The type that integers beyond int64 adapt to: of the arguments of a call with their names, a
    float if there is one, or uint64."""
    found = {
        getattr(one, "_dtype_name", getattr(one, "dtype", one if name == "dtype" else None))
        for name, given in named
        if (record.name, name) != ("where", "condition")  # which is no part of the result
        for one in (given if isinstance(given, list | tuple) else (given,))
    }
    types = {str(one) for one in found if one is not None}
    return next((one for one in types if is_float(one)), "uint64" if "uint64" in types else None)


def fitting_numbers(
    record: Any, arguments: Sequence[Any], beside: str | None, unsigned: Callable[[int], Any]
) -> list[Any]:
    """The arguments, with others in place of integers that int64 does not hold: see
    `fitting_number`."""
    return [fitting_number(record, a, beside, unsigned) for a in arguments]


def fitting_number(
    record: Any, given: Any, beside: str | None, unsigned: Callable[[int], Any]
) -> Any:
    """A huge integer as what it is `beside`: a float, or what `unsigned` makes of it for uint64 and
    for comparisons with integers, where one that no integer reaches is as far from each as
    infinity."""
    if isinstance(given, tuple):  # of a sequence of operands
        return tuple(fitting_number(record, item, beside, unsigned) for item in given)
    if not is_huge(given):
        return given
    if beside is not None and is_float(beside):
        return float(given)
    if _is_unsigned(given) and (beside or record.compares):
        return unsigned(given)
    if not record.compares:
        check_range(record.name, given)
    return math.copysign(math.inf, given)


_MOST_ARRAYS = 12  # in a sequence that the core takes: see add_sequence in operation_type.cpp


def _runner(record: Any, count: int) -> Callable[..., Any]:
    """What to call with a sequence of `count` arrays."""
    many: Callable[..., Any] | None = record.operation if count <= _MOST_ARRAYS else record.many
    if many is None:
        raise ArgumentError(
            f"{record.name}: {count} arrays at once, and it takes {_MOST_ARRAYS} at most; "
            "combine them step by step."
        )
    return many


def _finish(
    run: Callable[..., Any], arguments: list[Any], out: Any, where: Any, in_type: bool
) -> Any:
    """Results of `run`, or `out` with them in it; with `in_type`, it takes no `out` itself."""
    if isinstance(out, tuple) and len(out) == 1:
        (out,) = out
    if where is True and (out is None or not in_type):
        return run(*arguments, out=out) if out is not None else run(*arguments)
    result = run(*arguments)
    if not isinstance(result, tuple):
        return _written(result, out, where)
    outs = out if isinstance(out, tuple) else (out,) * len(result)
    if len(outs) != len(result) or (out is not None and out is not outs):
        raise ArgumentError(
            f"`out` is {described(out)} for {len(result)} results; give a tuple with one for each."
        )
    return tuple(_written(one, into, where) for one, into in zip(result, outs, strict=True))


def _written(result: Any, out: Any, where: Any) -> Any:
    """`out` with a result in it, or a new array, where `where` says so."""
    from heterosis.ops.math import cast, elementwise

    if where is True:
        copy: Callable[..., Any] = cast.copy
        return result if out is None else copy(result, out=out)
    choose: Callable[..., Any] = elementwise.where
    if out is None:
        return choose(where, result, _core.empty(result._dtype_name, result.shape))
    return choose(where, result, out, out=out)


def _attribute(operation_name: str, name: str, given: Any) -> Any:
    """An attribute as plans are found by: numbers and tuples, compared by value."""
    try:
        attribute = _hashable(given)
        hash(attribute)
    except TypeError:
        raise ArgumentError(
            f"{operation_name}: {name} cannot be {given!r}; expected a number, a name, or a tuple "
            "of them."
        ) from None
    return attribute


def _hashable(attribute: Any) -> Any:
    if isinstance(attribute, list | tuple):
        return tuple(_hashable(item) for item in attribute)
    if isinstance(attribute, _core.ndarray):
        return attribute.tolist() if attribute.ndim == 0 else tuple(attribute.tolist())
    if hasattr(attribute, "item") and not hasattr(attribute, "__array_function__"):
        return attribute.item()
    if is_traced(attribute) and not modes.is_capturing():
        return fixed_number(attribute)
    return attribute if isinstance(attribute, _PLAIN) else _number(attribute)


_PLAIN = (int, float, str, type)


def _number(attribute: Any) -> Any:
    """A fraction or a decimal number as one of Python's that the core knows; else as it is."""
    if isinstance(attribute, complex):
        raise TypeError("nothing here is complex")
    for special, convert in (("__index__", int), ("__float__", float), ("__int__", int)):
        if hasattr(type(attribute), special):
            return convert(attribute)
    return attribute
