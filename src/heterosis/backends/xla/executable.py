"""Programs that XLA has compiled, and how they are run: on arrays of ours, waiting for results.

JAX's settings are the user's. What runs here has 64 bits where a program says so, and runs on the
processor; nothing of that is seen outside.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

import jax

from heterosis.backends.xla import failing
from heterosis.backends.xla.evaluation import Failure, Turn
from heterosis.backends.xla.interchange import Operand, own
from heterosis.ir.primitives.rearranging import TRANSPOSE
from heterosis.ir.program import Program, Value
from heterosis.ir.types import numpy_dtype
from heterosis.passes.pipeline import optimized
from heterosis.passes.preparation import Split, is_free, split
from heterosis.runtime.errors import UnsupportedError

# Floats of 16 bits are rounded wherever a program rounds them.
_OPTIONS: dict[str, str | bool | int] = {"xla_allow_excess_precision": False}


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


class Compiled:
    """A program that XLA has compiled, of the inputs that its results depend on: `used`.

    It runs on one device; or, where it is told the `shardings` of all inputs, over all devices of
    these, and its results are whole on each.
    """

    def __init__(self, program: Program, shardings: Sequence[Any] = (), whole: Any = None):
        self.failures: list[Failure] = []
        nodes = set(program.nodes())
        self.used = [i for i, value in enumerate(program.inputs) if value.node in nodes]
        inputs = tuple(program.inputs[i] for i in self.used)
        needed = Program(inputs, program.outputs, program.name)
        if not shardings:
            processor = jax.sharding.SingleDeviceSharding(jax.local_devices(backend="cpu")[0])
            shardings = [processor] * len(program.inputs)

        def results(*operands: Any) -> tuple[Any, ...]:
            turn = Turn(self.failures)
            found = turn.results(needed, operands)
            return (*found, *turn.status) if self.failures else found

        results.__name__ = program.name.replace(" ", "_")
        given = [
            jax.ShapeDtypeStruct(v.shape, numpy_dtype(v.dtype), sharding=shardings[i])
            for i, v in zip(self.used, inputs, strict=True)
        ]
        with own_settings():
            jitted = jax.jit(results, keep_unused=True, out_shardings=whole)
            self._run = jitted.lower(*given).compile(compiler_options=_OPTIONS)

    @property
    def text(self) -> str:
        """What XLA has made of the program, in its own language, HLO."""
        return str(self._run.as_text())

    def __call__(self, operands: Sequence[Any]) -> Sequence[Any] | Failed:
        """The results, which are there."""
        found = self._run(*operands)
        if self.failures:
            *found, number, shown = found
            if int(number):
                return Failed(self.failures[int(number) - 1], int(shown))
        jax.block_until_ready(found)
        return found  # type: ignore[no-any-return]


class Runner:
    """Runs one program. What depends on parameters alone is computed anew once one has changed."""

    def __init__(self, program: Program, fixed: Collection[int]):
        self.program = program = optimized(program)
        parts = _parts(program, fixed)
        self._preparation = Compiled(parts.preparation) if parts else None
        self._rest = Compiled(parts.rest if parts else program)
        self._fixed = parts.fixed if parts else ()
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
        check_process(self.program.name, self._process)
        with jax.enable_x64(True):
            found = self._results(operands)
        if isinstance(found, Failed):
            return failing.results(self.program, operands, *found)
        return tuple(map(own, found))

    def _results(self, operands: Sequence[Any]) -> Sequence[Any] | Failed:
        prepared = self._prepared_for(operands)
        if isinstance(prepared, Failed):
            return prepared
        return self._rest([*self._given(self._rest, operands), *prepared])

    def _given(self, compiled: Compiled, operands: Sequence[Any]) -> list[Any]:
        """What a part takes of the operands; behind these it takes what was prepared."""
        own = (i for i in compiled.used if i < len(self._operands))
        return [self._operands[i].given(operands[i]) for i in own]

    def _prepared_for(self, operands: Sequence[Any]) -> Sequence[Any] | Failed:
        """What is computed from parameters alone."""
        if self._preparation is None:
            return ()
        state = [operands[i]._state for i in self._fixed]
        known, prepared = self._prepared
        if None not in state and state == known:
            return prepared
        given = self._given(self._preparation, operands)
        found = self._preparation(given)
        if isinstance(found, Failed):
            return found
        del given  # JAX lets go of the memory, which the state tells
        self._prepared = [operands[i]._state for i in self._fixed], found
        return found


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
