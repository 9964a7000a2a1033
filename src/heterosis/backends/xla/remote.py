"""Programs on arrays in a GPU's memory, or in that of several processes: single operations and
whole programs, as plans that the core keeps, and XLA runs.

XLA computes in the order of its calls, and nobody waits for it before elements are read. What may
fail is waited for.
"""

from __future__ import annotations

import contextlib
import os
import sys
import zlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from heterosis import _core
from heterosis.backends import EagerBackend, Executable
from heterosis.backends.room import check_room_for
from heterosis.backends.xla import Xla, failing, gpus
from heterosis.backends.xla.evaluation import Failure, Turn
from heterosis.backends.xla.executable import OPTIONS, check_process, own_settings
from heterosis.backends.xla.flat import read, written
from heterosis.backends.xla.stages import prepared
from heterosis.ir import views as view
from heterosis.ir.program import INPUT, NUMBER, Program, Value
from heterosis.ir.strided import Strided, moved
from heterosis.ir.text import printed
from heterosis.ir.types import is_float, numpy_dtype
from heterosis.runtime.context import context_of_device
from heterosis.runtime.errors import ArgumentError, HeterosisError, OutOfMemoryError
from heterosis.runtime.settings import settings


class Remote(Xla, EagerBackend):
    """Compiles for one device that has memory of its own."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self._number, self._memory = number, gpus.memory_of(number)

    def compile(
        self, program: Program, layouts: Sequence[Strided], fixed: Collection[int] = ()
    ) -> Executable:
        """A plan for the core, in which results that only rearrange an input are views of it."""
        return self.compile_writing(program, layouts, fixed, {})

    def compile_writing(
        self,
        program: Program,
        layouts: Sequence[Strided],
        fixed: Collection[int],
        written: Mapping[int, int],
    ) -> Executable:
        plan = self.plan(program, layouts, None, views=True, written=written)
        return Executable(partial(_core.run_plan, plan), plan)

    def plan(
        self,
        program: Program,
        layouts: Sequence[Strided],
        targets: Sequence[Strided] | None,
        *,
        views: bool,
        in_place: bool = False,
        written: Mapping[int, int] | None = None,
    ) -> _core.Plan:
        """What XLA runs. It writes to nothing that is read, so that `in_place` says nothing new;
        `written` is as `compile_writing` has it."""
        shown = _views(program, layouts) if views and targets is None else {}
        described, computed = [], {}
        for i, value in enumerate(program.outputs):
            base, strided = shown.get(i, (-1, Strided.contiguous(value.shape)))
            described.append((value.dtype, strided.shape, base, strided.strides, strided.offset))
            if base < 0:
                computed[i] = value
        if targets is None:
            types = (value.type for value in computed.values())
            check_room_for(program.name, types, self._memory.limit)
        order, seen = list(computed), {base for base, _ in shown.values()}
        arrays = [i for i, value in enumerate(program.inputs) if not _is_number(value)]
        overwritten = {
            arrays.index(i): order.index(k)
            for i, k in (written or {}).items()
            if k in computed and arrays.index(i) not in seen  # by views, which are results
        }
        program = prepared(Program(program.inputs, tuple(computed.values()), program.name))
        run = _Run(program, layouts, targets, self._number, overwritten)
        reals = [is_float(value.dtype) for value in program.inputs if _is_number(value)]
        return _core.make_remote_plan(program.name, run, reals, described)


def _is_number(value: Value) -> bool:
    return value.node.primitive is NUMBER


def _views(program: Program, layouts: Sequence[Strided]) -> dict[int, tuple[int, Strided]]:
    """The results that only rearrange an input, by position: which of the arrays, and where."""
    pairs = zip(program.inputs, layouts, strict=True)
    arrays = [(value, layout) for value, layout in pairs if not _is_number(value)]
    known = {value: (i, layout) for i, (value, layout) in enumerate(arrays)}
    found = {}
    for i, value in enumerate(program.outputs):
        base, moves = view.unviewed(value)
        if base.node.primitive is INPUT and base in known:
            position, layout = known[base]
            if strided := moved(layout, moves):
                found[i] = position, strided
    return found


class _Run:
    """One program on a device, run on arrays that lie as `layouts` say, into `targets` if given.

    `written` has the arrays that results are written over afterwards, and these results, by
    position.
    """

    def __init__(
        self,
        program: Program,
        layouts: Sequence[Strided],
        targets: Sequence[Strided] | None,
        device: int,
        written: Mapping[int, int],
    ):
        self._program, self._targets, self._device = program, targets, device
        self._memory = gpus.memory_of(device)
        pairs = zip(program.inputs, layouts, strict=True)
        self._layouts = [None if _is_number(value) else layout for value, layout in pairs]
        self._written, self._overwrites = written, {k: i for i, k in written.items()}
        self._numbers = [numpy_dtype(v.dtype).type for v in program.inputs if _is_number(v)]
        self._failures: list[Failure] = []
        self._jitted: dict[tuple[Any, ...], Any] = {}  # by how results lie
        self._process = os.getpid()

    @cached_property
    def _digest(self) -> int:
        return zlib.crc32(printed(self._program, calls=False).text.encode())

    @cached_property
    def _may_fail(self) -> bool:
        """Whether something is checked. What a run that fails would have written is then still as
        it was, so that XLA must not have overwritten it."""
        turn = Turn([])
        inputs = [jax.ShapeDtypeStruct(v.shape, numpy_dtype(v.dtype)) for v in self._program.inputs]
        jax.eval_shape(lambda *given: turn.results(self._program, given), *inputs)
        return bool(turn.failures)

    def _run_giving(self, shardings: tuple[Any, ...]) -> Any:
        """What computes results that lie so, and the status."""
        if shardings not in self._jitted:

            def results(
                spent: Any, bases: Any, places: Any, given: Any, numbers: Any
            ) -> tuple[Any, Any]:
                given = [(spent.get(i, one), place) for i, (one, place) in enumerate(given)]
                return self._traced(bases, places, given, numbers)

            results.__name__ = self._program.name.replace(" ", "_")
            self._jitted[shardings] = jax.jit(
                results,
                out_shardings=(shardings, self._memory.sharding),
                compiler_options=OPTIONS,
                donate_argnums=(0, 1),
            )
        return self._jitted[shardings]

    def __call__(
        self, arrays: Sequence[Any], numbers: Sequence[Any], results: Sequence[Any]
    ) -> None:
        """Give the `results` their elements."""
        check_process(self._program.name, self._process)
        self._check_devices(arrays)
        typed = [make(one) for make, one in zip(self._numbers, numbers, strict=True)]
        places = [self._place(result) for result in results]
        memory, name = self._memory, self._program.name
        running = memory.running(name, lambda: self._digest, typed)
        with gpus.lock, own_settings(), _errors_told_of(name), running:
            parts = self._parts(arrays, results, places)
            left = [p if part is None else None for p, part in zip(places, parts, strict=True)]
            run = self._run_giving(self._shardings(arrays, results, left))
            spent = self._spent(arrays)
            given = [
                (None if i in spent else gpus.elements_of(array), _first(array))
                for i, array in enumerate(arrays)
            ]
            found, status = run(spent, parts, places, given, typed)
            self._settle(results, left, memory.settled(found), status)

    def _check_devices(self, arrays: Sequence[Any]) -> None:
        """Raise where what a function has found outside is not where its program runs."""
        for array in arrays:
            if array._device != self._device:
                raise ArgumentError(
                    f"{self._program.name}: one array is on {array.ctx}, and the program runs on "
                    f"{context_of_device(self._device)}; expected all on one device. Copy with "
                    "x.as_in_ctx(ctx)."
                )

    def _shardings(
        self, arrays: Sequence[Any], results: Sequence[Any], left: Sequence[int | None]
    ) -> tuple[Any, ...]:
        """How the elements of each result lie: as what it is written over or into does; a new one
        as an operand of its shape, if such a one is divided. Those to be written at a place that is
        left are whole."""

        def likes(i: int) -> Iterator[Any]:
            if left[i] is not None:
                return
            if self._targets is not None:
                yield results[i]
            elif i in self._overwrites:
                yield arrays[self._overwrites[i]]
            else:
                shape = results[i].shape
                yield from (a for a in arrays if a.shape == shape and a._covers_storage)

        return tuple(
            self._memory.sharding_of(map(gpus.elements_of, likes(i))) for i in range(len(results))
        )

    def _parts(
        self, arrays: Sequence[Any], results: Sequence[Any], places: Sequence[int | None]
    ) -> list[Any]:
        """The elements that results are written into, for XLA to overwrite; None where a result is
        all there is, or others are written into the same memory."""
        read = {array._storage_id for array in arrays}
        of_results = Counter(result._storage_id for result in results)
        return [
            None
            if place is None or of_results[result._storage_id] > 1
            else _own(result, result._storage_id not in read and not self._may_fail)
            for result, place in zip(results, places, strict=True)
        ]

    def _spent(self, arrays: Sequence[Any]) -> dict[int, Any]:
        """By position, the elements of arrays that results are written over afterwards, where
        nobody else has them: XLA may overwrite them."""
        read = Counter(array._storage_id for array in arrays)
        return {
            i: gpus.elements_of(arrays[i])
            for i in self._written
            if read[arrays[i]._storage_id] == 1
            and arrays[i]._covers_storage
            and _is_free(arrays[i])
            and not self._may_fail
        }

    def _settle(
        self,
        results: Sequence[Any],
        places: Sequence[int | None],
        found: Sequence[Any],
        status: Sequence[Any],
    ) -> None:
        """Give the results what a run has found: all elements of their memory, or those to be
        written at a place there."""
        if status:
            number, shown = status
            if failed := int(number):
                self._fail(self._failures[failed - 1], int(shown), results)
                return
        for i, (result, elements) in enumerate(zip(results, found, strict=True)):
            if places[i] is not None:
                assert self._targets is not None, "there are places"
                before = gpus.elements_of(result)
                elements = _update(before, places[i], elements, self._targets[i])
                elements = self._memory.laid_as(before, elements)
            result._elements = elements

    def _place(self, result: Any) -> int | None:
        """From which element on a result stands in its memory; None if it is the whole."""
        if self._targets is None or result._covers_storage:
            return None
        return _first(result)

    def _traced(
        self,
        bases: Sequence[Any],
        places: Sequence[Any],
        given: Sequence[Any],
        numbers: Sequence[Any],
    ) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """All elements of the results' memory, and the status where something is checked."""
        turn = Turn([])
        arrays, left, operands = iter(given), iter(numbers), []
        for value, layout in zip(self._program.inputs, self._layouts, strict=True):
            if layout is None:
                operands.append(jnp.asarray(next(left), value.dtype))
            else:
                elements, offset = next(arrays)
                operands.append(read(elements, offset, value.dtype, layout))
        found = turn.results(self._program, operands)
        whole = [lax.reshape(one, (one.size,)) for one in found]
        for i, target in enumerate(self._targets or ()):
            if bases[i] is not None:
                whole[i] = written(bases[i], places[i], target, found[i])
        self._failures = turn.failures
        return tuple(whole), turn.status if turn.failures else ()

    def _fail(self, failure: Failure, shown: int, results: Sequence[Any]) -> None:
        """Let reads of the results raise."""
        nothing = Program((), self._program.outputs, self._program.name)
        with context_of_device(0), _nothing_at_once():
            here = failing.results(nothing, (), failure, shown)
        for result, failed in zip(results, here, strict=True):
            with contextlib.suppress(HeterosisError):
                failed.wait_to_read()
            _core.fail_as(result, failed)


@partial(jax.jit, static_argnums=3)
def _update(elements: Any, place: Any, part: Any, layout: Strided) -> Any:
    return written(elements, place, layout, part.reshape(layout.shape))


def _first(array: Any) -> int:
    """Where the first element of an array is among those of its memory."""
    first: int = array._offset // array.itemsize
    return first


def _is_free(array: Any) -> bool:
    """Whether nobody but its memory, and this question, refers to the elements of an array."""
    return sys.getrefcount(array._elements) <= 2


def _own(array: Any, may_be_free: bool) -> Any:
    """The elements of an array's memory, or a copy where others have them too."""
    if may_be_free and _is_free(array):
        return gpus.elements_of(array)
    return jnp.copy(gpus.elements_of(array))


@contextlib.contextmanager
def _nothing_at_once() -> Iterator[None]:
    """Queue what is run inside: its errors are then those of its results."""
    before = settings.inline_nanoseconds
    settings.inline_nanoseconds = 0
    try:
        yield
    finally:
        settings.inline_nanoseconds = before


@contextlib.contextmanager
def _errors_told_of(name: str) -> Iterator[None]:
    """Say what it means that XLA gives up."""
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        said = str(error).splitlines()[0]
        if "RESOURCE_EXHAUSTED" in said:
            raise OutOfMemoryError(
                f"{name}: the device has too little memory. Use smaller batches, or let go of "
                f"arrays that are not needed. XLA says: {said}"
            ) from error
        raise HeterosisError(f"{name}: XLA has failed on the device: {said}") from error
