"""Programs that XLA has compiled, and how they are run: on arrays of ours, waiting for results.

JAX's settings are the user's. What runs here has 64 bits where a program says so, and runs on the
processor; nothing of that is seen outside.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import numpy

from heterosis import _core
from heterosis.backends.xla import failing
from heterosis.backends.xla.evaluation import Failure, Turn
from heterosis.backends.xla.interchange import Operand, own
from heterosis.backends.xla.stages import prepared
from heterosis.ir.primitives.rearranging import TRANSPOSE
from heterosis.ir.program import NUMBER, Program, Value
from heterosis.ir.types import TensorType, numpy_dtype
from heterosis.passes.preparation import Split, is_free, split
from heterosis.runtime.errors import UnsupportedError

# Floats of 16 bits are rounded wherever a program rounds them.
OPTIONS: dict[str, str | bool | int] = {"xla_allow_excess_precision": False}


@contextlib.contextmanager
def own_settings() -> Iterator[None]:
    """What rows are written for, whatever the user's programs in JAX are."""
    with (
        jax.enable_x64(True),
        jax.numpy_dtype_promotion("standard"),
        jax.numpy_rank_promotion("allow"),
    ):
        yield


class Failed(NamedTuple):
    """What has failed in a run, and the number that its message shows."""

    failure: Failure
    shown: int


class Places(NamedTuple):
    """Where a program runs: how inputs are divided, those at the positions `split` as `rows` and
    the others not at all, as results are; and what puts an array of numbers there."""

    whole: Any
    rows: Any = None
    split: Collection[int] = ()
    put: Callable[[numpy.ndarray], Any] = lambda numbers: numbers  # XLA takes it itself

    def of(self, i: int) -> Any:
        """The sharding of an input."""
        return self.rows if i in self.split else self.whole


class Compiled:
    """A program that XLA has compiled, of the inputs that its results depend on: `used`.

    It runs on one device, or where it is told. Inputs that are numbers are one array for each
    element type, behind the others: they take as long as arrays to hand over.
    """

    def __init__(self, program: Program, places: Places | None = None):
        self.failures: list[Failure] = []
        nodes = set(program.nodes())
        self.used = [i for i, value in enumerate(program.inputs) if value.node in nodes]
        inputs = tuple(program.inputs[i] for i in self.used)
        needed = Program(inputs, program.outputs, program.name)
        if places is None:
            device = jax.local_devices(backend="cpu")[0]
            places = Places(jax.sharding.SingleDeviceSharding(device))
        self._put = places.put
        self._arrays = [k for k, v in enumerate(inputs) if v.node.primitive is not NUMBER]
        self._numbers: dict[str, list[int]] = {}
        for k, value in enumerate(inputs):
            if value.node.primitive is NUMBER:
                self._numbers.setdefault(value.dtype, []).append(k)

        def results(*packed: Any) -> tuple[Any, ...]:
            turn = Turn(self.failures)
            found = turn.results(needed, self._unpacked(packed))
            return (*found, *turn.status) if self.failures else found

        results.__name__ = program.name.replace(" ", "_")
        given = [
            *(_described(inputs[k].type, places.of(self.used[k])) for k in self._arrays),
            *(
                _described(TensorType((len(positions),), dtype), places.whole)
                for dtype, positions in self._numbers.items()
            ),
        ]
        with own_settings():
            jitted = jax.jit(results, keep_unused=True, out_shardings=places.whole)
            self._run = jitted.lower(*given).compile(compiler_options=OPTIONS)

    def _packed(self, operands: Sequence[Any]) -> list[Any]:
        """What XLA is given: arrays, and then numbers by their element types."""
        return [
            *(operands[k] for k in self._arrays),
            *(
                self._put(numpy.array([operands[k] for k in positions], numpy_dtype(dtype)))
                for dtype, positions in self._numbers.items()
            ),
        ]

    def _unpacked(self, packed: Sequence[Any]) -> list[Any]:
        """The operands in their order, of what XLA is given."""
        found = dict(zip(self._arrays, packed, strict=False))
        vectors = zip(self._numbers.values(), packed[len(self._arrays) :], strict=True)
        for positions, vector in vectors:
            found |= {k: vector[n] for n, k in enumerate(positions)}
        return [found[k] for k in range(len(self.used))]

    @property
    def text(self) -> str:
        """What XLA has made of the program, in its own language, HLO."""
        return str(self._run.as_text())

    def __call__(self, operands: Sequence[Any]) -> Sequence[Any] | Failed:
        """The results, which are there."""
        found = self._run(*self._packed(operands))
        if self.failures:
            *found, number, shown = found
            if int(number):
                return Failed(self.failures[int(number) - 1], int(shown))
        jax.block_until_ready(found)
        return found  # type: ignore[no-any-return]


class Runner:
    """Runs one program. What depends on parameters alone is computed anew once one has changed."""

    def __init__(self, program: Program, fixed: Collection[int]):
        self.program = program = prepared(program)
        parts = _parts(program, fixed)
        self._preparation = Compiled(parts.preparation) if parts else None
        self._rest = Compiled(parts.rest if parts else program)
        self._fixed = parts.fixed if parts else ()
        self._all = range(len(program.inputs))
        self._own = parts.own if parts else self._all
        # JAX's arrays over memory that a preparation depends on are not kept: nobody could tell
        # then whether something is written there.
        self._operands = [
            Operand(value, is_kept=i not in self._fixed) for i, value in enumerate(program.inputs)
        ]
        # The state of parameters, and what was prepared of them: one object, for threads.
        self._prepared: tuple[list[Any] | None, Sequence[Any]] = (None, ())
        self._process = os.getpid()

    def run(self, operands: Sequence[Any]) -> tuple[Any, ...]:
        """The results. Where a check fails, they are arrays that raise when they are read."""
        check_call(self.program.name, self._process, operands)
        with jax.enable_x64(True):
            found = self._results(operands)
        if isinstance(found, Failed):
            return failing.results(self.program, operands, *found)
        return tuple(map(own, found))

    def _results(self, operands: Sequence[Any]) -> Sequence[Any] | Failed:
        prepared = self._prepared_for(operands)
        if isinstance(prepared, Failed):
            return prepared
        return self._rest([*self._given(self._rest, self._own, operands), *prepared])

    def _given(
        self, compiled: Compiled, positions: Sequence[int], operands: Sequence[Any]
    ) -> list[Any]:
        """What a part takes of the operands, of which those at `positions` are its first inputs;
        behind these it takes what was prepared."""
        taken = (positions[i] for i in compiled.used if i < len(positions))
        return [self._operands[i].given(operands[i]) for i in taken]

    def _prepared_for(self, operands: Sequence[Any]) -> Sequence[Any] | Failed:
        """What is computed from parameters alone."""
        if self._preparation is None:
            return ()
        state = [operands[i]._state for i in self._fixed]
        known, prepared = self._prepared
        if None not in state and state == known:
            return prepared
        given = self._given(self._preparation, self._all, operands)
        found = self._preparation(given)
        if isinstance(found, Failed):
            return found
        del given  # JAX lets go of the memory, which the state tells
        self._prepared = [operands[i]._state for i in self._fixed], found
        return found


def _described(type_: TensorType, sharding: Any) -> Any:
    return jax.ShapeDtypeStruct(type_.shape, numpy_dtype(type_.dtype), sharding=sharding)


def check_call(name: str, process: int, operands: Sequence[Any]) -> None:
    """Raise in a process that was forked from the one that has made what is to run, and where
    operands are on several contexts."""
    _core.device_of(name, [one for one in operands if isinstance(one, _core.ndarray)])
    check_process(name, process)


def check_process(name: str, process: int) -> None:
    """Raise in a process that was forked from the one that has made what is to run."""
    if os.getpid() != process:
        raise UnsupportedError(
            f"{name}: this process was forked from one that has used XLA, whose threads are not "
            "here. Start processes by 'spawn' (multiprocessing.set_start_method), or hybridize "
            "with backend='native'."
        )


def _parts(program: Program, fixed: Collection[int]) -> Split | None:
    """What is computed ahead from the inputs at the positions `fixed`, and the rest."""
    return split(program, [program.inputs[i] for i in fixed], _is_free) if fixed else None


def _is_free(value: Value) -> bool:
    """Of views, XLA's products have a price for those that turn matrices."""
    return is_free(value) and value.node.primitive is not TRANSPOSE
