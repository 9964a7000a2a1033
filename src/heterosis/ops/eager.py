"""The imperative path: an operation on arrays as a program of one node, planned and compiled.

The core calls `plan` once for each new signature and keeps what it returns. The scheduler and the
code generator are imported by the first call: it takes as long as a third of all other imports.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from heterosis import _core
from heterosis.codegen.compiler import host_target
from heterosis.codegen.kernel import Machine, Schedule
from heterosis.codegen.target import Target
from heterosis.ir import views as view
from heterosis.ir.primitives.conversions import conversion
from heterosis.ir.program import NUMBER, Program, Value, apply
from heterosis.ir.strided import Strided, row_major
from heterosis.ir.types import TensorType, is_float
from heterosis.runtime.arguments import described
from heterosis.runtime.errors import (
    ArgumentError,
    ArgumentTypeError,
    DTypeError,
    OutOfMemoryError,
    ShapeError,
)

if TYPE_CHECKING:
    from heterosis.codegen.function import FunctionCode
    from heterosis.codegen.nest import Buffer, Operand
    from heterosis.codegen.program import ProgramCode

OutDescription = tuple[str, tuple[int, ...], tuple[int, ...]]

_loaded: dict[tuple, Any] = {}  # plans hold plain addresses: what they point into stays


def plan(
    program: Program,
    layouts: Sequence[Strided],
    outs: Sequence[OutDescription] | None,
    *,
    views: bool,
    freely: bool,
    in_place: bool = False,
) -> Any:
    """How to run `program` on operands that lie as `layouts` say: a plan for the core.

    With `outs`, they are written instead of new arrays. With `in_place`, the one of them is the
    first operand, and keeps what the program leaves as it is.
    """
    from heterosis.codegen.function import function_for_any_size
    from heterosis.passes.halves import widened
    from heterosis.passes.materialize import compared_sums
    from heterosis.passes.schedule import schedule

    targets: list[Strided | None] = [None] * len(program.outputs)
    if outs is not None:
        program, targets = _into(program, outs, freely)
    program = widened(program)
    planned = schedule(
        program, layouts, targets, machine(),
        views=views, in_place=in_place, kept=compared_sums(program),
    )  # fmt: skip
    elementwise = _is_elementwise(planned, program, layouts, targets)
    code = function_for_any_size(planned)
    facts = plan_facts(program, planned, code, in_place=in_place, elementwise=elementwise)
    if outs is None:
        check_room(facts)
    return facts.plan(address(code))


class PlanFacts(NamedTuple):
    """What the core is told of a plan, but where its code is."""

    name: str
    integers: Sequence[int]
    workspace: int
    nanoseconds: float
    elementwise: bool
    results: Sequence[
        Any
    ]  # (element type, shape, the input it is a view of or -1, strides, offset)
    failures: Sequence[Any]  # (error class, message)
    in_place: bool

    def plan(self, address: int) -> Any:
        """The plan whose code begins at `address`; 0 if there is nothing to run."""
        name, integers, *numbers, results, failures, in_place = self
        given = [tuple(fields) for fields in results], list(map(tuple, failures))
        return _core.make_plan(name, address, integers, *numbers, *given, in_place)


def plan_facts(
    program: Program,
    planned: Schedule,
    code: FunctionCode | ProgramCode,
    *,
    in_place: bool = False,
    elementwise: bool = False,
) -> PlanFacts:
    """The facts of the plan for `program` that `code` was made for."""
    return PlanFacts(
        program.name,
        list(code.integers),
        planned.workspace,
        code.nanoseconds,
        elementwise,
        [_result(i, value, planned) for i, value in enumerate(program.outputs)],
        list(code.failures),
        in_place,
    )


def check_room(facts: PlanFacts) -> None:
    """Refuse at the call what no waiting will make room for."""
    limit = _core.memory_counters()["limit"]
    for dtype, shape, base, *_ in facts.results:
        type_ = TensorType(tuple(shape), dtype)
        if base < 0 and type_.nbytes > limit:
            raise OutOfMemoryError(
                f"{facts.name}: a result {type_} takes {type_.nbytes:,} bytes, and "
                f"all arrays together may take {limit:,}. Use smaller pieces, or raise "
                "npx.settings.memory_limit."
            )


def address(code: FunctionCode | ProgramCode) -> int:
    """Where the machine code of `code` is, compiled or loaded if this is its first use; 0 if there
    is nothing to run."""
    from heterosis.codegen import object_cache
    from heterosis.codegen.abi import ENTRY

    if not code.parts:
        return 0
    target = machine().target
    key = (code.parts, target)
    if key not in _loaded:
        _loaded[key] = object_cache.load(code.key, lambda: code.emit(target), target)
    return _loaded[key].address(ENTRY)


@cache
def _machine(target: Target, threads: int) -> Machine:
    return Machine(target, threads)


def machine() -> Machine:
    """What eager kernels are planned for; the core asks anew when the number of threads changes."""
    return _machine(host_target(), _core.threads())


def _into(
    program: Program, outs: Sequence[OutDescription], freely: bool
) -> tuple[Program, list[Strided | None]]:
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
        raise ShapeError(
            f"{name}: a result of shape {value.shape} does not fit into an array of shape "
            f"{shape}; give an array of shape {value.shape}."
        )
    if is_float(value.dtype) and not is_float(dtype) and not freely:
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


def _result(i: int, value: Value, planned: Schedule) -> tuple:
    if i in planned.views:
        base, strided = planned.views[i]
        return (value.dtype, strided.shape, base, strided.strides, strided.offset)
    return (value.dtype, value.shape, -1, row_major(value.shape), 0)


def _is_elementwise(
    planned: Schedule,
    program: Program,
    layouts: Sequence[Strided],
    targets: Sequence[Strided | None],
) -> bool:
    """Whether each element is written after it has been read and nothing else reads it, where a
    result is written over an input that lies as it does."""
    from heterosis.codegen.nest import Load, Nest

    if len(planned.kernels) != 1 or not isinstance(planned.kernels[0], Nest):
        return False
    nest = planned.kernels[0]
    loads = [step for step in nest.steps if isinstance(step, Load)]
    if nest.reduced or nest.scatters or any(load.indices for load in loads):
        return False
    pairs = zip(program.inputs, layouts, strict=True)
    inputs = [layout for value, layout in pairs if value.node.primitive is not NUMBER]
    rooms = zip(program.outputs, targets, strict=True)
    lying = [room or Strided.contiguous(value.shape) for value, room in rooms]
    alike = {i for i, layout in enumerate(inputs) if layout in lying}
    read = {_spot(load.operand) for load in loads if load.operand.buffer in _calls(alike)}
    return not read or read == {_spot(store.operand) for store in nest.stores}


def _calls(indices: Iterable[int]) -> set[Buffer]:
    from heterosis.codegen.nest import Buffer

    return {Buffer("call", i) for i in indices}


def _spot(operand: Operand) -> tuple[Any, Any]:
    """Where in a buffer an operand's elements are."""
    return operand.offset, operand.strides


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
    arguments = fitting_numbers(record.name, arguments)
    _check_out(record.name, out)
    result = _finish(run, arguments, out, where)
    return result if dtype is None else result.astype(dtype)


def _check_out(name: str, out: Any) -> None:
    """Results are written into arrays; the core takes them alone or in a tuple."""
    for one in out if isinstance(out, tuple) else (out,):
        if one is not None and not isinstance(one, _core.ndarray):
            raise ArgumentTypeError(f"{name}: out is {described(one)}; expected an array.")


def is_huge(given: Any) -> bool:
    """Whether it is an integer that 64 bits do not hold."""
    return type(given) is int and not -(2**63) <= given < 2**63


def check_range(name: str, given: int) -> None:
    """Integers fit into 64 bits."""
    if is_huge(given):
        raise ArgumentError(
            f"{name}: {described(given)} does not fit into 64 bits; give it as a float."
        )


def fitting_numbers(name: str, arguments: Sequence[Any]) -> list[Any]:
    """Integers beyond 64 bits beside an array of floats become floats too."""
    floats = any(isinstance(a, _core.ndarray) and is_float(a._dtype_name) for a in arguments)
    return [_fitting_number(name, a, floats) for a in arguments]


def _fitting_number(name: str, given: Any, floats: bool) -> Any:
    if isinstance(given, tuple):  # of a sequence of operands
        return tuple(_fitting_number(name, item, floats) for item in given)
    if not is_huge(given):
        return given
    if not floats:
        check_range(name, given)
    return float(given)


_MOST_ARRAYS = 12  # in a sequence that the core takes: see add_sequence in operation_type.cpp


def _runner(record: Any, count: int) -> Callable[..., Any]:
    """What to call with a sequence of `count` arrays."""
    if count <= _MOST_ARRAYS:
        return record.operation
    if record.many is None:
        raise ArgumentError(
            f"{record.name}: {count} arrays at once, and it takes {_MOST_ARRAYS} at most; "
            "combine them step by step."
        )
    return record.many


def _finish(run: Callable[..., Any], arguments: list[Any], out: Any, where: Any) -> Any:
    if isinstance(out, tuple) and len(out) == 1:
        (out,) = out
    if where is True:
        return run(*arguments, out=out) if out is not None else run(*arguments)
    from heterosis.ops.elementwise import where as choose

    result = run(*arguments)
    base = out if out is not None else _core.empty(result._dtype_name, result.shape)
    return choose(where, result, base, out=out) if out is not None else choose(where, result, base)


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
