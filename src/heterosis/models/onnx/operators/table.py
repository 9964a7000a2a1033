"""The table of operators: how each is computed, by its name and the version it holds from.

An operator is a function of its inputs, in their order, and of its attributes, by name:

    @operator("Gemm")
    def gemm(a, b, c=None, *, alpha=1.0, beta=1.0, transA=0, transB=0): ...

Inputs that are left out are None. An input whose annotation is `Host` comes as a NumPy array: it
decides about shapes, and must not depend on what is computed at run time. All others come as arrays
of ours. Further keywords tell what else an operator may need: `_outputs`, how many results are
asked for; `_version`, of the operator set; `_run`, which runs a graph among the attributes.

Where all inputs are known ahead, `on_host` computes in its place, with NumPy. With `keeps`, inputs
come as they are.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy

Host: TypeAlias = numpy.ndarray
Run: TypeAlias = Callable[..., list[Any]]  # a graph, and arrays for its inputs: its outputs

STANDARD = ""
LATEST = 28  # the version of the standard operators that the table has been looked through for


@dataclass(frozen=True)
class Operator:
    """One row of the table."""

    name: str
    since: int
    compute: Callable[..., Any]
    on_host: Callable[..., Any] | None  # the same with NumPy, where all inputs are there
    inputs: tuple[str, ...] = ()
    hosted: frozenset[str] = frozenset()  # the inputs that come as NumPy arrays
    rest: str | None = None  # what takes any number of further inputs
    attributes: frozenset[str] = frozenset()
    asks: frozenset[str] = frozenset()
    required: int = 0
    keeps: bool = False
    wanted: frozenset[str] = field(default=frozenset())  # attributes without defaults


_TABLE: dict[tuple[str, str], list[Operator]] = {}
_ASKED = frozenset({"_outputs", "_version", "_run"})


def operator(
    *names: str,
    since: int = 1,
    domain: str = STANDARD,
    on_host: Callable[..., Any] | None = None,
    keeps: bool = False,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter a function as what computes an operator, from a version of its set on."""

    def enter(compute: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            rows = _TABLE.setdefault((domain, name), [])
            assert all(row.since != since for row in rows), f"{name} {since} is there twice"
            rows.append(_row(name, since, compute, on_host, keeps=keeps))
            rows.sort(key=lambda row: -row.since)
        return compute

    return enter


def _row(
    name: str,
    since: int,
    compute: Callable[..., Any],
    on_host: Callable[..., Any] | None,
    *,
    keeps: bool,
) -> Operator:
    parameters = inspect.signature(compute).parameters.values()
    own = (p for p in parameters if not p.name.startswith("_"))  # not what a lambda holds
    inputs = [p for p in own if p.kind is p.POSITIONAL_OR_KEYWORD]
    keywords = [p for p in parameters if p.kind is p.KEYWORD_ONLY]
    rest = [p.name for p in parameters if p.kind is p.VAR_POSITIONAL]
    return Operator(
        name,
        since,
        compute,
        on_host,
        tuple(p.name for p in inputs),
        frozenset(p.name for p in parameters if str(p.annotation).startswith("Host")),
        rest[0] if rest else None,
        frozenset(p.name for p in keywords) - _ASKED,
        frozenset(p.name for p in keywords) & _ASKED,
        sum(p.default is p.empty for p in inputs),
        keeps,
        frozenset(p.name for p in keywords if p.default is p.empty) - _ASKED,
    )


def found(domain: str, name: str, version: int) -> Operator | None:
    """The row for an operator of this version of its set."""
    rows = _TABLE.get((domain, name), [])
    return next((row for row in rows if row.since <= version), None)


def names() -> list[tuple[str, str]]:
    """All operators, as domains and names."""
    return sorted(_TABLE)
