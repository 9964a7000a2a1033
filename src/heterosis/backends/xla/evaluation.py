"""Programs as functions of jax arrays, node by node, for `jax.jit` to trace.

XLA cannot raise. What a program checks as it runs comes out beside its results, as the number of
the first check that failed, from 1 on, or 0, and a number for its message.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from heterosis.backends.xla import tables
from heterosis.ir.program import INPUT, NUMBER, Node, Program, Value
from heterosis.ir.types import numpy_dtype

Status = tuple[Any, Any]  # of a check that failed: its number, and one for its message


class Failure(NamedTuple):
    """A way in which a node fails: as its primitive does for these small NumPy arrays, of which the
    first is the number of the status where the message `shows` it."""

    node: Node
    operands: tuple[Any, ...]
    shows: bool = False


class Turn:
    """One way through a program: what has failed on it so far, and all that may fail."""

    def __init__(self, failures: list[Failure], status: Status | None = None):
        self.failures = failures
        self.status = status or (_number(0), _number(0))

    @property
    def goes_on(self) -> Any:
        """Whether nothing has failed."""
        return self.status[0] == 0

    def check(self, failure: Failure, failed: Any, shown: Any = 0) -> None:
        """Note that `failure` has happened if `failed`, unless another one was first."""
        self.failures.append(failure)
        first = failed & self.goes_on
        new = _number(len(self.failures)), jnp.asarray(shown, "int64")
        self.status = (
            lax.select(first, new[0], self.status[0]),
            lax.select(first, new[1], self.status[1]),
        )

    def inner(self, status: Status) -> Turn:
        """The way through a branch or a body, begun with this status."""
        return Turn(self.failures, status)

    def results(self, program: Program, operands: Sequence[Any]) -> tuple[Any, ...]:
        """The results of `program`."""
        known: dict[Value, Any] = dict(zip(program.inputs, operands, strict=True))
        for node in program.nodes():
            if node.primitive in (INPUT, NUMBER):
                continue
            found = tables.results(node, self, [known[value] for value in node.inputs])
            for value, one in zip(node.outputs, found, strict=True):
                _check_type(node, value, one)
                known[value] = one
        return tuple(known[value] for value in program.outputs)


def _number(value: int) -> Any:
    return jnp.asarray(value, "int64")


def _check_type(node: Node, value: Value, found: Any) -> None:
    """Raise unless a row gives what the primitive says: JAX promotes in its own way."""
    if found.shape != value.shape or found.dtype != numpy_dtype(value.dtype):
        raise AssertionError(
            f"{node.primitive}: the row of the back end 'xla' gives {found.dtype}{found.shape}; "
            f"expected {value.type}."
        )
