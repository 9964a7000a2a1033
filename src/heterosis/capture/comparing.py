"""`hybridize(check=True)`: the first runs of a program, compared with Python's.

The function runs as it is written, and what it has done is undone: the arrays that the program
writes to get their elements back, and the random generator its state. Then the program runs, from
the same state, and its results have to be the same. If they are not, the operations of the program
are compared one by one with what they mean, to find the first that differs.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy

from heterosis import _core
from heterosis.autograd import tape
from heterosis.autograd.derivative import layout_of
from heterosis.backends import Backend
from heterosis.capture import trees
from heterosis.capture.captured import Captured, Computed
from heterosis.ir import program as ir
from heterosis.ir.calls import Call
from heterosis.ir.primitives.families import Leaf
from heterosis.ir.reference import evaluate
from heterosis.ir.types import is_float, numpy_dtype
from heterosis.np.convert import shared
from heterosis.ops.math.cast import assign, copy
from heterosis.ops.record import as_users_call
from heterosis.runtime import modes
from heterosis.runtime.errors import CheckError

if TYPE_CHECKING:
    from heterosis.capture.programs import Program

ndarray = _core.ndarray
_assign, _copy = as_users_call(assign), as_users_call(copy)

# How far floats may be apart, as a part of the largest: sums in another order differ in the last
# digits, and what is computed of them in more.
_TOLERANCES = {"float64": 1e-8, "float32": 1e-3, "float16": 2e-2, "bfloat16": 1e-1}

_PLAIN = bool | int | float | str | bytes | None

Pairs = Iterator[tuple[str, Any, Any]]  # what it is, what is expected and what has been found


def checked_run(
    name: str,
    program: Program,
    call: tuple[tuple[Any, ...], dict[str, Any]],
    function: Callable[[], Any],
) -> Any:
    """What a run of the program gives; raises if `function()` gives something else."""
    arguments = list(trees.arrays_in(call))
    before = _Before(program, arguments)
    expected = None if program.captured.supply else before.imperatively(function)
    operands = program.operands(arguments)
    found = program.run(arguments, operands, call)
    given = [before.kept.get(i, operand) for i, operand in enumerate(operands)]
    try:
        pairs = (
            before.of_meaning(given, found) if expected is None else before.of_run(expected, found)
        )
        for what, one, other in pairs:
            difference = _difference(one, other)
            if difference is not None:
                where = _located(program.captured.program, program.backend, given)
                raise CheckError(f"{name}: {what} {difference}. {where}")
    except CheckError:
        raise
    except Exception as error:
        if expected is None or expected.error is not None:
            raise
        raise CheckError(
            f"{name}: the program fails; imperatively the function does not."
        ) from error
    return found


class _Run:
    """What the function has given as Python runs it, or the error that it has raised."""

    result: Any = None
    error: Exception | None = None
    written: Sequence[Any] = ()
    drawn = 0  # random keys


class _Before:
    """What a program changes, as it is before a run."""

    def __init__(self, program: Program, arguments: Sequence[Any]):
        self._captured: Captured = program.captured
        self._targets = [program.target(write, arguments) for write in self._captured.writes]
        self._places = [tape.source_of(target) for target in self._targets]
        with modes.switched(recording=False):
            self._copies = [_copy(target) for target in self._targets]
        sources = [self._captured.position(write.source) for write in self._captured.writes]
        self.kept: Mapping[int, Any] = dict(zip(sources, self._copies, strict=True))

    def imperatively(self, function: Callable[[], Any]) -> _Run:
        """Run the function, and undo what it has done."""
        found, state = _Run(), _core.random_state()
        try:
            quiet = contextlib.redirect_stdout(io.StringIO())
            with modes.switched(recording=False, imperative=True), quiet:
                found.result = trees.mapped(function(), _on_host)
            found.written = [_on_host(target) for target in self._targets]
        except Exception as error:  # noqa: BLE001 - compared with what the program does
            found.error = error
        finally:
            found.drawn = _core.random_state()[1] - state[1]
            _core.restore_random_state(*state)
            self._restore()
        self._state = state
        return found

    def _restore(self) -> None:
        for target, kept, place in zip(self._targets, self._copies, self._places, strict=True):
            with modes.switched(recording=False):
                _assign(kept, out=target)
            target._autograd = tape.renewed(place, target)

    def of_run(self, expected: _Run, found: Any) -> Pairs:
        """What the function has given and written, and what the program has."""
        drawn = _core.random_state()[1] - self._state[1]
        if expected.error is not None:
            trees.mapped(found, _on_host)
            _core.wait_all()
            yield "a call", f"raising {expected.error!r}", "going well"
            return
        ones, others = (
            _leaves("what is returned", expected.result),
            dict(_leaves("what is returned", found)),
        )
        for what, one in ones:
            yield what, one, others.pop(what, None)
        for what, other in others.items():
            yield what, None, other
        for target, one in zip(self._targets, expected.written, strict=True):
            yield (
                f"an array {target._dtype_name}{list(target.shape)} that is written to",
                one,
                target,
            )
        yield "the number of random draws", expected.drawn, drawn

    def of_meaning(self, given: Sequence[Any], found: Any) -> Pairs:
        """The same, where what the program means takes the place of the function: one in which an
        optimizer steps would count two updates."""
        results = _meaning(self._captured.program, given)
        leaves = list(trees.leaves(found))
        for i, leaf in enumerate(trees.leaves(self._captured.result)):
            if isinstance(leaf, Computed):
                yield "what is returned", results[leaf.position], leaves[i]
        for target, write in zip(self._targets, self._captured.writes, strict=True):
            what = f"an array {target._dtype_name}{list(target.shape)} that is written to"
            yield what, results[write.position], target


def _on_host(leaf: Any) -> Any:
    """An array as one of NumPy's, which nobody writes to; anything else as it is."""
    return shared(leaf).copy() if isinstance(leaf, ndarray) else leaf


def _leaves(name: str, tree: Any) -> Iterator[tuple[str, Any]]:
    """The leaves of what a function returns, with the way to each."""
    if isinstance(tree, tuple | list):
        for i, item in enumerate(tree):
            yield from _leaves(f"{name}[{i}]", item)
    elif isinstance(tree, dict):
        for key, item in tree.items():
            yield from _leaves(f"{name}[{key!r}]", item)
    else:
        yield name, tree


# -- whether things are the same ------------------------------------------------------------------


def _difference(expected: Any, found: Any) -> str | None:
    """In what two leaves differ, if they do. A number may be an array as well."""
    one, other = _on_host(expected), _on_host(found)
    if not isinstance(one, numpy.ndarray) and not isinstance(other, numpy.ndarray):
        if type(one) is type(other) and (not isinstance(one, _PLAIN) or repr(one) == repr(other)):
            return None
        return f"is {other!r:.60}; imperatively it is {one!r:.60}"
    numbers = (bool, int, float, numpy.ndarray, numpy.generic)
    if not isinstance(one, numbers) or not isinstance(other, numbers):
        return f"is {_described(other)}; imperatively it is {_described(one)}"
    both_arrays = isinstance(one, numpy.ndarray) and isinstance(other, numpy.ndarray)
    one, other = numpy.asarray(one), numpy.asarray(other)
    if one.shape != other.shape or (both_arrays and one.dtype != other.dtype):
        return f"is {_described(other)}; imperatively it is {_described(one)}"
    return _of_elements(one, other)


def _described(value: Any) -> str:
    if isinstance(value, numpy.ndarray):
        return f"an array {value.dtype}{list(value.shape)}"
    return f"{value!r:.60}"


def _of_elements(one: numpy.ndarray, other: numpy.ndarray) -> str | None:
    """The element that differs most."""
    tolerance = _TOLERANCES.get(max(one.dtype.name, other.dtype.name, key=_coarseness), 0.0)
    ours, theirs = (a.astype("float64") if is_float(a.dtype.name) else a for a in (one, other))
    with numpy.errstate(all="ignore"):
        apart = numpy.abs(ours.astype("float64") - theirs.astype("float64"))
        finite = numpy.abs(ours[numpy.isfinite(ours)]) if tolerance else numpy.zeros(0)
        bound = tolerance * finite.max(initial=numpy.finfo("float32").tiny)
        alike = (ours == theirs) | (apart <= bound) | ((ours != ours) & (theirs != theirs))  # noqa: PLR0124
    if alike.all():
        return None
    apart = numpy.where(alike, -1.0, numpy.where(numpy.isnan(apart), numpy.inf, apart))
    place = numpy.unravel_index(int(apart.argmax()), apart.shape)
    at = f" at {tuple(map(int, place))}" if place else ""
    return f"is {other[place]}{at}; imperatively it is {one[place]}"


def _coarseness(dtype: str) -> float:
    return _TOLERANCES.get(dtype, 0.0)


# -- where they begin to differ -------------------------------------------------------------------


def _located(program: ir.Program, backend: Backend, operands: Sequence[Any]) -> str:
    """Which operation is the first that differs, as a sentence."""
    try:
        call = _first_difference(program, backend, operands)
    except Exception as error:  # noqa: BLE001 - the difference is to be told of, whatever comes
        return f"Where it begins is not known: {error}"
    if call is None:
        return (
            "Each operation of the program gives what it means, so the function did something else "
            "when it was captured: Python's random numbers, the time, files, and what libraries "
            "remember, are read once, at the capture. Hand them in as arguments."
        )
    return f"The first operation that differs is {call.operation} at {call.line}."


def _first_difference(
    program: ir.Program, backend: Backend, operands: Sequence[Any]
) -> Call | None:
    """The first call whose results are not what they mean: where all results are kept, or else
    where those of one call are, if the fault is in what is computed together."""
    made = {
        value: call
        for call in program.calls or ()
        for value in call.results
        if not isinstance(value.node.primitive, Leaf)
    }
    values = tuple(made)
    whole = ir.Program(program.inputs, (*values, *program.outputs), program.name)
    expected = _meaning(whole, operands)

    def differs(places: Sequence[int]) -> Iterator[int]:
        outputs = tuple(whole.outputs[i] for i in places)
        part = ir.Program(program.inputs, outputs, program.name)
        found = backend.compile(part, tuple(map(_layout, operands))).run(operands)
        return (
            i for i, one in zip(places, found, strict=True)
            if _difference(expected[i], one) is not None
        )  # fmt: skip

    first = next(differs(range(len(values))), None)
    if first is None:
        if next(differs(range(len(values), len(whole.outputs))), None) is None:
            return None
        low, high = 0, len(values) - 1
        while low < high:
            middle = (low + high) // 2
            is_there = next(differs([middle]), None) is not None
            low, high = (low, middle) if is_there else (middle + 1, high)
        first = low
    return made[values[first]]


def _layout(operand: Any) -> Any:
    return layout_of(operand if isinstance(operand, ndarray) else None)


def _meaning(program: ir.Program, operands: Sequence[Any]) -> tuple[Any, ...]:
    """The results of a program by the meaning of its primitives."""
    given = [
        numpy.asarray(_on_host(operand), dtype=numpy_dtype(value.dtype))
        for operand, value in zip(operands, program.inputs, strict=True)
    ]
    return evaluate(program, given)
