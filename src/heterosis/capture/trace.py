"""The capture of a program: a function runs once on arrays that hold no elements.

While it runs, the core hands every operation to `Trace.call` instead of computing it. What the
function uses from outside, a parameter or an array it closes over, becomes an input too; what it
writes in place is written back after each run of the program.
"""

from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import reduce
from types import CodeType
from typing import Any

from heterosis import _core
from heterosis.autograd import tape
from heterosis.autograd.conditional import Condition
from heterosis.autograd.derivative import Differentiable, layout_of
from heterosis.capture import numbers, taping, trees
from heterosis.capture.active import current, rewrite
from heterosis.capture.blockers import hash_error, is_operator, leaked_message, read_error
from heterosis.capture.captured import (
    Argument,
    ControlStep,
    Enclosing,
    GivenContainer,
    OfSizes,
    Outside,
    OutsideContainer,
    RandomKey,
    RandomState,
    Source,
    Step,
    Supplied,
    Supply,
    take_back,
)
from heterosis.capture.guards import Guards
from heterosis.capture.memory import Cell, window
from heterosis.capture.numbers import OPERATORS
from heterosis.capture.open_sizes import OpenExtents
from heterosis.capture.printing import Prints
from heterosis.capture.reports import Once, Trial
from heterosis.capture.same_views import are_same_view, is_same_view, overlap, shows
from heterosis.capture.tries import Try
from heterosis.ir.calls import Call, collected, moved, note
from heterosis.ir.program import (
    INPUT,
    NUMBER,
    Program,
    Value,
    apply,
    constant,
)
from heterosis.ir.resizing import resized_type
from heterosis.ir.strided import Strided
from heterosis.ir.traced_sizes import TracedFloat, is_traced, value_of
from heterosis.ir.types import TensorType, is_float
from heterosis.ops.array.join import stack
from heterosis.ops.bounds import required
from heterosis.ops.control.flow import asserted
from heterosis.ops.eager import fitting, fitting_numbers, is_huge, partner
from heterosis.ops.math.cast import copy, stop_gradient
from heterosis.ops.math.elementwise import logical_or
from heterosis.ops.random import keys
from heterosis.ops.record import KEY, Record, as_users_call, as_value
from heterosis.ops.rules import cast
from heterosis.runtime import modes
from heterosis.runtime.errors import CaptureError
from heterosis.runtime.lines import user_line

ndarray = _core.ndarray
_ASSERTED: Any = asserted.record
_STACKED: Any = stack.record


class NeedsTape(CaptureError):
    """Operations are recorded outside of the function, and it goes back through them by itself."""


def inside(trace: Trace, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """What a function returns that is captured as a part of what is being captured."""
    with collected(trace.calls):
        return run(trace, function, arguments, {})


def run(
    trace: Trace,
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    keywords: dict[str, Any],
) -> Any:
    """What the function returns, its operations being captured."""
    outer = current.trace, modes.refusals.first
    current.trace, modes.refusals.first = trace, None
    result = None
    try:
        with modes.switched(capturing=True):
            result = function(*arguments, **keywords)
    except CaptureError:
        raise
    except Exception as error:  # noqa: BLE001 - raised again, when its writes are done
        trace.error = trace.explained(error)
    finally:
        refusal = modes.refusals.first
        current.trace, modes.refusals.first = outer
        if refusal is not None:  # also where the function caught it and went on
            raise refusal
    return result


class Trace:
    """What has been captured so far."""

    def __init__(
        self,
        name: str,
        guards: Guards,
        *,
        merged: bool = False,
        taped: bool = False,
        extents: OpenExtents | None = None,
    ):
        self.name, self.guards = name, guards
        self.extents = extents  # those of the arguments that stay open, if any do
        self.of_sizes: dict[str, Any] = {}  # arrays for floats that follow from these
        if extents is not None:
            extents.decisions.operand = self.number_of_sizes
        self.merged = merged  # whether arrays that share memory become one
        self.taped = taped  # whether the tape is told of what is recorded outside, too
        self.error: Exception | None = None  # what the function raised
        self.arguments: list[tuple[Any, Any]] = []  # each with its stand-in
        # Lists and dictionaries among the arguments, with their items.
        self.given_containers: list[tuple[Any, list[Any]]] = []
        self.entangled: set[int] = set()  # storages of arguments that are known from outside too
        self.recorded = modes.is_recording() and not taped
        self.records = False  # whether the function does so by itself
        self.before: dict[int, tuple[Any, Any]] = {}  # written outside arrays, and their sources
        self.inputs: list[tuple[Value, Source]] = []
        self.cells: dict[int, Cell] = {}  # by the storage of the array
        self.rewritten: set[int] = set()  # storages of variables that are used after a write
        self.followed: set[Cell] = set()  # written to while operations are recorded
        self.recorded_writes: dict[
            Cell, int
        ] = {}  # written to by recorded calls: `tape.sweeps()` then
        self.variables: set[int] = set()  # storages of arguments that gradients flow to
        self.held: list[Any] = []  # arrays, so that no other gets the same storage
        # By the memory that they show, which of those: the core counts who else has an array.
        self._showing: dict[Cell, list[int]] = {}
        self.supply = Supply()
        self.calls: list[Call] = []
        self.differentiable: dict[str, Differentiable] = {}  # of recorded operations, as written
        self.steps: list[Step] = []
        self.controls: list[ControlStep] = []
        self.scope = ""
        self.rewriting = False  # whether what users have written is rewritten
        self.unset: dict[str, str] = {}  # variables without a value, and why
        self.as_they_are: dict[CodeType, str] = {}  # what could not be rewritten, and why
        self.has_stepped = False  # whether an optimizer has, where it must not
        self.once = Once()
        self.prints = Prints()  # at every run
        self.trial: Trial | None = None  # what may have to be undone
        self.tries: list[Try] = []  # those that are open
        self.checks: Any = None  # an array that is written to by all that the program checks
        # Writes under a condition, by storage: the version before, the one behind, the condition.
        self.doubtful: dict[int, list[tuple[int, int, Condition]]] = {}
        self.made_here: dict[int, Any] = {}  # containers, by their ids, which stay theirs so
        self.chosen: list[tuple[Cell, Cell]] = []  # what may be one array, and may be two
        # Containers, by their ids, that a choice or a loop has given in place of others, and these.
        self.chosen_objects: dict[int, Any] = {}
        self.numbers: dict[int, Any] = {}  # by storage: they stand for Python's
        self.listed: dict[int, Any] = {}  # by storage: operands of operators that were no arrays
        self.mixed: dict[int, Any] = {}  # by storage: what may be an array, and may be a number
        self.random_state: Any = None  # an array that keys follow from, once a branch draws some
        self.drawn: int | None = 0  # keys from there; None if arrays decide how many

    def opened(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A user's function, rewritten where arrays may decide what it does; others as they are."""
        return rewrite(function) if self.rewriting else function

    @property
    def outermost(self) -> Trace:
        """The capture that is no part of another one."""
        return self

    def explained(self, error: Exception) -> Exception:
        """What a function raised; for a variable that has no value, why it has none, and for an
        array that is to be a key, why it cannot be."""
        if isinstance(error, TypeError) and f"unhashable type: '{ndarray.__module__}." in str(
            error
        ):
            return hash_error(error)
        name = re.search(r"variable '(\w+)'", str(error)) if isinstance(error, NameError) else None
        why = self.outermost.unset.get(name[1]) if name else None
        return error if why is None else CaptureError(why).with_traceback(error.__traceback__)

    # -- arrays -----------------------------------------------------------------------------------

    def argument(self, array: Any) -> Any:
        """A stand-in for an array among the arguments."""
        source = Argument(len(self.arguments))
        made = self.merged_with(array)
        if made is None:
            made = self._stand_in(array, source)
        self.arguments.append((array, made))
        return made

    def note_given(self, stand_ins: Any) -> None:
        """Know the lists and dictionaries among the arguments, as they are before the function
        runs."""
        self.given_containers = [(one, _items(one)) for one in trees.containers_in(stand_ins)]
        self.guards.add_outside(one for one, _ in self.given_containers)

    def known_container(self, container: Any) -> GivenContainer | OutsideContainer | None:
        """A list or dictionary that was there before; None if it is new, or holds something that it
        did not."""
        for position, (one, _) in enumerate(self.given_containers):
            if one is container:
                return GivenContainer(position) if self._is_as_given(container) else None
        is_whole = not any(map(self.computes, trees.arrays_in(container)))
        is_known = is_whole and self.guards.is_outside(container)
        return OutsideContainer(container) if is_known else None

    def _is_as_given(self, container: Any) -> bool:
        known = {id(one): items for one, items in self.given_containers}
        found = ((known.get(id(one)), _items(one)) for one in trees.containers_in(container))
        return all(
            before is not None
            and len(before) == len(now)
            and all(a is b for a, b in zip(before, now, strict=True))
            for before, now in found
        )

    def _stand_in(self, array: Any, source: Source) -> Any:
        shape, layout = array.shape, layout_of(array)
        if self.extents is not None and array._contiguous:
            shape = self.extents.shape(len(self.arguments), shape)
            layout = Strided.contiguous(shape)
        value = self._input(source, TensorType(shape, array._dtype_name))
        made = self.array(Cell(value, source=source, layout=layout))
        if tape.source_of(array) is not None:
            self.variables.add(made._storage_id)
        return made

    def merged_with(self, array: Any) -> Any:
        """The stand-in of an argument that an array is, if arrays that share memory are one."""
        for other, made in self.arguments if self.merged else ():
            if other._storage_id == array._storage_id:
                if not are_same_view(other, array):
                    raise overlap(other, array)
                return made
        return None

    def writes_shared(self) -> bool:
        """Whether the program writes to an array that it also knows as another argument, or that
        Python has read outside."""
        outside = self._outside() | self.guards.read_storages
        known = Counter([*(array._storage_id for array, _ in self.arguments), *outside])
        return any(known[self._storage(cell.source)] > 1 for cell in self.written_cells())

    def _outside(self) -> set[int]:
        sources = (source for _, source in self.inputs if isinstance(source, Outside))
        return {source.array._storage_id for source in sources}

    def _storage(self, source: Source) -> int:
        return int(self.original(source)._storage_id)

    def written_cells(self) -> list[Cell]:
        """Arrays from outside that the program writes to."""
        cells = dict.fromkeys(self.cells.values())
        return [cell for cell in cells if cell.source is not None and cell.writes]

    def _input(self, source: Source, type_: TensorType) -> Value:
        value = apply(INPUT, (), type_)
        self.inputs.append((value, source))
        return value

    def array(self, cell: Cell, line: str = "") -> Any:
        """A new array that holds what `cell` does, made at the user's line."""
        value = cell.value()
        extents = value.shape if any(map(is_traced, value.shape)) else None
        type_ = resized_type(value.type, value_of) if extents else value.type
        message = leaked_message(type_, self.outermost.name, line or user_line())
        made = _core.unreadable(value.dtype, type_.shape, message, extents)
        self._hold(made, cell)
        return made

    def _hold(self, array: Any, cell: Cell) -> None:
        """Remember where the value of an array is."""
        self.cells[array._storage_id] = cell
        self._showing.setdefault(cell.base or cell, []).append(len(self.held))
        self.held.append(array)

    def cell(self, array: Any) -> Cell:
        """Where the value of an array is; arrays from outside become inputs."""
        key = array._storage_id
        found = self.cells.get(key)
        stand_in = self.merged_with(array) if found is None else None
        if stand_in is not None:
            self.entangled.add(key)
            return self.cells[stand_in._storage_id]
        if found is None:
            value = self._input(Outside(array), TensorType(array.shape, array._dtype_name))
            source = self.inputs[-1][1]
            found = Cell(value, source=source, layout=layout_of(array))
            self._hold(array, found)
        elif not is_same_view(array, found):
            return self._other_view(array, found)
        return found

    def _other_view(self, array: Any, cell: Cell) -> Cell:
        """An outside array that shares the memory of another one."""
        if cell.writes or not isinstance(cell.source, Outside):
            raise overlap(cell.value(), array)
        for value, source in self.inputs:
            if isinstance(source, Outside) and shows(source, array):
                return Cell(value, source=source, layout=layout_of(array))
        source = Outside(array)
        value = self._input(source, TensorType(array.shape, array._dtype_name))
        return Cell(value, source=source, layout=layout_of(array))

    def shown(self, cell: Cell) -> Any:
        """The array whose value `cell` has."""
        return next(a for a in self.held if self.cells.get(a._storage_id) is cell)

    # -- objects of Python's ----------------------------------------------------------------------

    def note_chosen_object(self, *containers: Any) -> None:
        """Remember that containers may be one object, or may not."""
        self.chosen_objects |= {id(container): container for container in containers}

    # -- numbers of Python's ----------------------------------------------------------------------

    def stands_for_number(self, leaf: Any) -> bool:
        """Whether it is a number of Python's, or an array that stands for one."""
        if isinstance(leaf, ndarray):
            return leaf._storage_id in self.outermost.numbers
        return isinstance(leaf, bool | int | float)

    def note_number(self, array: Any) -> Any:
        """Remember that an array stands for a number of Python's."""
        self.outermost.numbers[array._storage_id] = array
        return array

    def returned(self, result: Any) -> Any:
        """What the function returns: a fraction of Python's as an array that has the element type
        of the others."""
        if not self.numbers:
            return result
        return trees.mapped(
            result, self._as_array, lambda one: self.known_container(one) and one, {}
        )

    def _as_array(self, array: Any) -> Any:
        if not isinstance(array, ndarray):
            return array
        if not (self.stands_for_number(array) and is_float(array._dtype_name)):
            return array
        return array.astype(self.float_of_arrays())

    def float_of_arrays(self) -> str:
        """The element type of a fraction that becomes an array: one of those that there are."""
        return numbers.float_of(a for a in self.held if not self.stands_for_number(a))

    # -- what the core calls ----------------------------------------------------------------------

    def call(
        self, record: Record, operands: Sequence[Any], attributes: tuple[Any, ...], out: Any
    ) -> Any:
        """A call of an operation: its results, as arrays."""
        if self.outermost.of_sizes and self._records_inside() and numbers.adapts(record):
            operands = self._with_floats_of_sizes(operands)
        if self.outermost.numbers:
            result = self._call_with_numbers(record, operands, attributes, out)
            return self._noted_if_listed(result) if record is _STACKED else result
        return self._called(record, operands, attributes, out)

    def _noted_if_listed(self, array: Any) -> Any:
        """Remember an array that stands for a list or a tuple beside an operator of Python's."""
        if is_operator():
            self.outermost.listed[array._storage_id] = array
        return array

    def _with_floats_of_sizes(self, operands: Sequence[Any]) -> Sequence[Any]:
        """Operands, with the floats that follow from sizes as the tape knows numbers."""
        own = {array._storage_id for array in self.outermost.of_sizes.values()}
        are_own = [getattr(operand, "_storage_id", None) in own for operand in operands]
        if not any(are_own):
            return operands
        pairs = zip(operands, are_own, strict=True)
        return self._beside_arrays(operands, [o or isinstance(a, int | float) for a, o in pairs])

    def _call_with_numbers(
        self, record: Record, operands: Sequence[Any], attributes: tuple[Any, ...], out: Any
    ) -> Any:
        """The same where arrays may stand for numbers of Python's: operators of these give others,
        also in place."""
        if out is not None and self.stands_for_number(out):
            if record.name not in OPERATORS:
                raise numbers.written_to()
            out = None
        known = [*map(self.stands_for_number, operands)]
        arrays = [isinstance(operand, ndarray) for operand in operands]
        are_numbers = any(map(operator.and_, known, arrays))
        if are_numbers and not all(known) and self._records_inside() and numbers.adapts(record):
            operands = self._beside_arrays(operands, known)
        if not (are_numbers and numbers.is_number(record.name, attributes)):
            return self._called(record, operands, attributes, out)
        if any(getattr(one, "_storage_id", None) in self.outermost.listed for one in operands):
            raise numbers.beside_list(record.name)
        if not all(known):
            return self._called(record, operands, attributes, out)
        return self.note_number(self._called(record, operands, attributes, out, as_numbers=True))

    def _beside_arrays(self, operands: Sequence[Any], known: Sequence[bool]) -> list[Any]:
        """Operands, with the numbers among them as arrays of the types that they adapt to: the
        tape knows arrays alone."""
        pairs = list(zip(operands, known, strict=True))
        others = [self.cell(o).value() for o, is_number in pairs if not is_number and o is not None]
        return [
            self.array(Cell(numbers.beside(self.cell(operand).value(), others)))
            if is_number and isinstance(operand, ndarray)
            else operand
            for operand, is_number in pairs
        ]

    def _records_inside(self) -> bool:
        """Whether operations are recorded by the function itself."""
        return modes.is_recording() and not self.recorded

    def _called(
        self,
        record: Record,
        operands: Sequence[Any],
        attributes: tuple[Any, ...],
        out: Any,
        *,
        as_numbers: bool = False,
    ) -> Any:
        values, cells = self._values(record, operands, attributes, out)
        if self.outermost.numbers:
            values = self._adapted(record, operands, values, as_numbers=as_numbers)
        inside = self._records_inside()
        self.records |= inside
        given = taping.stopped(self, operands, values) if modes.is_recording() else values
        line = user_line()
        call = record.called(values, attributes, on=given, scope=self.scope, line=line)
        note(call)
        results = call.results
        if self.recorded and not modes.is_recording():
            results = tuple(map(stop_gradient, results))
        if self.outermost.numbers:
            results = tuple(map(numbers.settled, results))
        if out is None:
            shares = {c.value(): c for c in cells if c} if record.views else {}
            outs = tuple(
                self.array(window(value, shares) or Cell(value), line) for value in results
            )
            result = outs if len(outs) > 1 else outs[0]
        else:
            outs = out if isinstance(out, tuple) else (out,)
            if inside and any(map(tape.source_of, operands)):
                taping.check_views(self, outs)
            result = self._write(record, results, out)
        written = tuple(map(self.cell, outs))
        self.steps.append(Step(call, cells, written, out is not None))
        if record.name == _ASSERTED.name:
            assert values[0] is not None, "it is an array"
            self._require(cast(values[0], "bool"), attributes[1])
        if inside:
            self._record(record, operands, values, attributes, result)
            if out is not None:
                taping.note_writes(self, outs)
        if self.records and out is not None:
            for array in outs:
                self._count_shared(array)
        return result

    def _values(
        self, record: Record, operands: Sequence[Any], attributes: tuple[Any, ...], out: Any = None
    ) -> tuple[tuple[Value | None, ...], tuple[Cell | None, ...]]:
        """The operands' values, and the cells of those that are arrays."""
        if any(map(is_huge, operands)):
            named = ((p.name, given) for p, _, given in record.arguments(operands, attributes))
            beside = partner(record, (*named, ("out", out)))
            operands = fitting_numbers(record, operands, beside, lambda n: constant(n, "uint64"))
        cells = tuple(self.cell(o) if isinstance(o, ndarray) else None for o in operands)
        values = (
            self.key()
            if use == KEY
            else as_value(record.name, operand)
            if cell is None
            else cell.value()
            for use, operand, cell in zip(
                record.operand_uses(attributes), operands, cells, strict=True
            )
        )
        return tuple(values), cells

    def _adapted(
        self,
        record: Record,
        operands: Sequence[Any],
        values: tuple[Value | None, ...],
        *,
        as_numbers: bool,
    ) -> tuple[Value | None, ...]:
        """The operands' values, where arrays that stand for numbers adapt to the others; or
        compute as numbers do."""
        if as_numbers:
            return numbers.converted(record.name, values)
        if not numbers.adapts(record):
            return values
        return tuple(
            numbers.adapting(value)
            if value and isinstance(operand, ndarray) and self.stands_for_number(operand)
            else value
            for operand, value in zip(operands, values, strict=True)
        )

    def original(self, source: Source) -> Any:
        """The array that an input stands for."""
        if isinstance(source, Argument):
            return self.arguments[source.position][0]
        assert isinstance(source, Outside | Enclosing), f"{source} is no array"
        return source.array

    def _number(self, dtype: str, source: Source) -> Value:
        value = apply(NUMBER, (), TensorType((), dtype, weak=True))
        self.inputs.append((value, source))
        return value

    # -- random keys ------------------------------------------------------------------------------

    def key(self) -> Value:
        """A new random key. Those of branches and loops, and all behind them, the program draws by
        itself: how many there are before one is known when it runs."""
        if self.random_state is None:
            return self._number("int64", RandomKey())
        return self.drawn_key(self.random_state)

    def drawn_key(self, random_state: Any) -> Value:
        """A key that follows from a state, which goes on."""
        cell = self.cell(random_state)
        state, key = keys.drawn(cell.value())
        cell.write(state)
        self.count_drawn(1)
        return key

    def count_drawn(self, count: int | None) -> None:
        """Note that so many keys have been drawn from the state; None, if arrays decide."""
        self.drawn = None if count is None or self.drawn is None else self.drawn + count

    def needed_random_state(self) -> Any:
        """The state that a branch or a loop draws from."""
        if self.random_state is None:
            number = self._number("int64", RandomState())
            self.random_state = self.array(Cell(cast(number, "int64")))
        return self.random_state

    def supplied(self, make: Callable[[], Sequence[float]], first: Sequence[float]) -> list[Any]:
        """Numbers that Python computes before every run, as arrays."""
        positions = self.supply.add(make, first)
        numbers = (self._number("float64", Supplied(i)) for i in positions)
        return [self.array(Cell(number)) for number in numbers]

    def number_of_sizes(self, number: TracedFloat) -> Any:
        """A float that follows from open extents, as an array."""
        if number.text not in self.of_sizes:
            source = OfSizes(number)
            value = self._number("float64", source)
            self.of_sizes[number.text] = self.array(Cell(value, source=source))
        return self.of_sizes[number.text]

    def _record(
        self,
        record: Record,
        operands: Sequence[Any],
        values: Sequence[Value | None],
        attributes: tuple[Any, ...],
        result: Any,
    ) -> None:
        """Tell the tape, if gradients are recorded inside of the captured function."""
        arrays = [operand for operand in operands if isinstance(operand, ndarray)]
        self.check_reached(record.name, arrays)
        for array in arrays:
            if tape.source_of(array) is None and taping.is_lost(self, array):
                raise tape.changed(record.name, array)
            if tape.source_of(array) is None and self.chosen:
                taping.check_no_variable(self, record.name, array)
        taping.depend_on_places(self, arrays)
        if not any(tape.source_of(array) for array in arrays):
            return
        pairs = list(zip(operands, values, strict=True))
        meant = tuple(o if isinstance(o, ndarray) else value for o, value in pairs)
        results = result if isinstance(result, tuple) else (result,)
        of = tape.traced_once(self.differentiable, record, meant, attributes, results)
        given = tuple(value if operand is None else operand for operand, value in pairs)
        tape.record_run(record.name, of, given, result)

    def may_be(self, array: Any) -> list[Cell]:
        """The memory that an array may have: choices and loops may hand on one as it is."""
        cell = self.cell(array)
        found = [cell.base or cell]
        for one in found:
            pairs = (pair for pair in self.chosen if one in pair)
            found += [other for pair in pairs for other in pair if other not in found]
        return found

    def need_tape(self) -> None:
        """Go back to the start, if gradients are asked for and the tape was told of nothing."""
        if self.recorded:
            raise NeedsTape("the function is captured again, with the tape")

    def check_marked(self, array: Any) -> None:
        """Raise where the function makes an array a variable whose gradient nobody could read."""
        self.need_tape()
        cell = self.cells.get(array._storage_id)
        if cell is None or isinstance(cell.source, Outside):
            raise CaptureError(
                "attach_grad: an array from outside of the hybridized function would become a "
                "variable anew in every run. Call attach_grad() on it before, outside."
            )
        if isinstance(cell.source, Argument):
            self.outermost.once.note(
                "an argument is made a variable, by attach_grad,",
                cure=" The caller's array does not become one: its grad stays as it is. Call "
                "attach_grad() on it before, outside, or on a copy, and return the gradient.",
            )

    def note_asked(self, array: Any) -> None:
        """Let the program depend on which gradient an array from outside has. That of an argument
        is another one at each call."""
        if not self.computes(array):
            self.guards.depend_on_place(array, self.place_before(array))
        elif isinstance(self.cell(array).source, Argument) and tape.source_of(array) is None:
            raise CaptureError(
                "The gradient of an argument is asked for, which is no argument of the hybridized "
                "function itself. Hand it in, as f(x, x.grad); or use a variable that is no "
                "argument."
            )

    def check_reached(self, name: str, operands: Sequence[Any]) -> None:
        """Raise where operations are recorded inside, and a gradient should go outside."""
        arrays = (operand for operand in operands if isinstance(operand, ndarray))
        if any(array._storage_id in self.variables for array in arrays):
            raise CaptureError(
                f"{name}: an argument of the captured function has a gradient, attach_grad, "
                "and the function records operations itself: the gradient would not reach it. "
                "Record outside of the function, or use a variable that is no argument."
            )

    def inline(self, program: Program, arguments: Sequence[Any]) -> tuple[Any, ...]:
        """The results of a whole program, as arrays."""
        values = (
            self.cell(argument).value()
            if isinstance(argument, ndarray)
            else argument
            if isinstance(argument, Value)
            else as_value(program.name, argument)
            for argument in arguments
        )
        mapping: dict[Value, Any] = dict(zip(program.inputs, values, strict=True))
        results, calls = moved(program.outputs, program.calls or (), mapping)
        self.calls += calls
        return tuple(self.array(Cell(v)) for v in results)

    def _write(self, record: Record, results: tuple[Value, ...], out: Any) -> Any:
        outs = out if isinstance(out, tuple) else (out,)
        for array, value in zip(outs, results, strict=True):
            if modes.is_recording() and tape.source_of(array) is not None:
                tape.check_write(array)
            description = array._dtype_name, array.shape, array._element_strides
            cell = self.cell(array)
            taping.check_variable(self, (cell.base or cell).source)
            self._check_chosen(cell.base or cell)
            is_other_view = self.cells.get(array._storage_id, cell) is not cell
            if cell.source is not None and is_other_view:
                raise overlap(self.cells[array._storage_id].value(), array)
            cell.write(fitting(record.name, value, description, record.casts_freely))
            if modes.is_recording():
                self.followed.add(cell.base or cell)
            if isinstance(cell.source, Outside):
                self.before.setdefault(id(array), (array, tape.source_of(array)))
            array._count_write()
        return out

    def _check_chosen(self, cell: Cell) -> None:
        """Raise before a write that may change another array, or may not."""
        if any(cell in pair for pair in self.chosen):
            raise CaptureError(
                f"an array {cell.value().type} is written to that may be another one as well, "
                "since a branch or a loop hands on an array as it is. Let it hand on a copy, "
                "np.copy(x), or write to none of the two."
            )

    def _count_shared(self, array: Any) -> None:
        """Tell the tape of a write for the other arrays that share the memory."""
        cell = self.cell(array)
        for position in self._showing.get(cell.base or cell, ()):
            other = self.held[position]
            if self.cells[other._storage_id] is not cell:
                other._count_write()

    def check(self, holds: Any, failure: str) -> None:
        """Let every run fail with a message where a truth does not hold."""
        self.call(_ASSERTED, (holds,), (None, failure), None)

    def note_written(self, array: Any, version: int, condition: Condition) -> None:
        """An array, which had this version, has been written to where a condition holds."""
        known = self.doubtful.setdefault(array._storage_id, [])
        known.append((version, array._version, condition))

    def written_where(self, array: Any, version: int) -> Any | None:
        """What says whether the program writes to an array after it has this version; None if it
        does in any case."""
        known = self.doubtful.get(array._storage_id, [])
        if known and self.cell(array).writes == len(known):
            version = known[0][0]  # others have written before: in later runs they may not have
        holding = []
        for before, behind, condition in known:
            if before == version:
                holding.append(condition)
                version = behind
        if not holding or version != array._version:
            return None
        either = as_users_call(logical_or)
        return reduce(either, (condition.as_truth() for condition in holding))

    def _require(self, holds: Value, failure: str) -> None:
        """Let the program fail where a truth does not hold, unless it has failed before."""
        outermost = self.outermost
        if outermost.checks is None:
            outermost.checks = outermost.array(Cell(constant(1, "bool")))
        cell = self.cell(outermost.checks)
        cell.write(required(cell.value(), holds, failure))

    def print(self, values: Sequence[Any], ends: dict[str, Any]) -> None:
        """Print values, at every run."""
        self.prints.add_line(values, ends, lambda array: stop_gradient(self.cell(array).value()))

    def made(self, array: Any) -> Any:
        """An array that the function makes of what Python has: every run gets its own."""
        found: Any = as_users_call(copy)(array)
        return self._noted_if_listed(found) if self.outermost.numbers else found

    def read(self, array: Any) -> None:
        """The elements of an array are about to be read by Python."""
        argument = self.merged_with(array)
        cell = self.cells.get((array if argument is None else argument)._storage_id)
        if cell is not None and not (isinstance(cell.source, Outside) and not cell.writes):
            raise read_error(cell.value().type)
        self.guards.read(array)

    # -- the end ----------------------------------------------------------------------------------

    def computes(self, array: Any) -> bool:
        """Whether an array is a value of the program, and never holds elements."""
        cell = self.cells.get(array._storage_id)
        return cell is not None and not isinstance(cell.source, Outside)

    def place_before(self, array: Any) -> tape.Source | None:
        """The place in the tape that an array from outside had when the capture began."""
        place: tape.Source | None = self.before.get(id(array), (array, tape.source_of(array)))[1]
        return place

    def take_back(self) -> bool:
        """Let optimizers forget the updates that they have counted; whether all of them do."""
        undo = self.supply.undo
        undone = None not in undo and bool(undo) == bool(self.supply)
        if undone:
            take_back(undo)
        return undone

    def restore(self) -> None:
        """Give arrays from outside their places in the tape back: nothing has run yet."""
        if self.extents is not None:
            self.extents.decisions.operand = None  # which would keep what was captured
        self.once.end()
        for array, source in self.before.values():
            array._autograd = tape.renewed(source, array)


def _items(container: Any) -> list[Any]:
    """What a list or a dictionary holds, with its keys."""
    return [*container, *(container.values() if isinstance(container, dict) else ())]
