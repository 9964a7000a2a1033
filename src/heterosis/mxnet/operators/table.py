"""The table of MXNet's operators: a row says everything that is known of one.

An operator that is a record of ours under the name `names["mxnet"]`, or a function of `np` or `npx`
behind a prefix such as `_npi_`, and nothing else, needs no row; `lookup` finds it.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from heterosis import _core
from heterosis.ops.record import REGISTRY, Record
from heterosis.runtime.arguments import checked, described
from heterosis.runtime.errors import ArgumentTypeError
from heterosis.runtime.placing import placed

Run = Callable[..., Any]  # on arrays, with attributes as keywords
Attributes = Mapping[str, Any]


@dataclass(frozen=True, eq=False, kw_only=True)
class Operator:
    """One operator of MXNet's."""

    names: tuple[str, ...] = ()  # in `F`, in symbols and in files; messages have the first
    stored: tuple[str, ...] = ()  # further names, of files alone
    run: Run | None = None  # None: the record with that name computes it
    results: int | Callable[[Attributes], int] = 1
    # How many results files count; of some, nobody sees all. From the attributes as texts.
    counted: int | Callable[[Mapping[str, str]], int] = 1
    states: tuple[int, ...] = ()  # the places of inputs that it writes to
    is_layer: bool = False  # symbols make variables for inputs that are not given, if `wanted`
    wanted: Mapping[str, Callable[[Attributes], bool]] = field(default_factory=dict)
    zero_is_unknown: bool = False  # an extent of 0 in the `shape` of older files
    method: str | bool = False  # of symbols: its name, or True for the operator's first one
    symbol: str = (
        ""  # the function of `sym` that composes it, where `F` has one of another operator
    )
    creates: bool = False  # it has no inputs: with none, it is a symbol, too
    # The record's parameters under MXNet's names; None: MXNet has no such attribute.
    renamed: Mapping[str, str | None] = field(default_factory=dict)


ROWS: dict[str, Operator] = {}  # by every name
OPERATORS: dict[str, Run] = {}  # what is in `F`
RECORDS: dict[str, Record] = {r.names["mxnet"]: r for r in REGISTRY.values() if "mxnet" in r.names}

# Attributes that say nothing about what is computed.
IDLE = {
    "ctx", "cudnn_off", "cudnn_tune", "forward_stype", "init_output", "lazy_update",
    "max_calib_range", "min_calib_range", "num_args", "optimize", "workspace",
}  # fmt: skip


def _add(row: Operator) -> None:
    for name in (*row.names, *row.stored):
        if name in ROWS:
            raise ValueError(f"two rows of the table of operators have the name {name!r}")
        ROWS[name] = row


def operator(*names: str, **facts: Any) -> Callable[[Run], Run]:
    """Let a function run an operator that is in `F`; `facts` are the row's.

    It takes `out`, an array to write to, and `name`, unused.
    """

    def register(function: Run) -> Run:
        titles = names or (function.__name__.rstrip("_"),)
        function.__name__ = function.__qualname__ = titles[0]  # as messages call it
        compute = checked(function)
        if "ctx" in inspect.signature(function).parameters:
            compute = placed(compute)

        @functools.wraps(function)
        def run(*arguments: Any, name: str | None = None, out: Any = None, **keywords: Any) -> Any:
            result = compute(*arguments, **keywords)
            return result if out is None else _written(out, result)

        made = checked(run)
        _add(Operator(names=titles, run=made, **facts))
        OPERATORS.update(dict.fromkeys(titles, made))
        return made

    return register


def stored(*names: str, **facts: Any) -> Callable[[Run], Run]:
    """Let a function run an operator that only symbols and files have."""

    def register(function: Run) -> Run:
        _add(Operator(stored=names, run=function, **facts))
        return function

    return register


def of_record(name: str, **facts: Any) -> None:
    """More to say of the operator that is a record under this name."""
    _add(Operator(stored=(name,), **facts))


def row_of(name: str) -> Operator:
    """The row of an operator, also without the start of its name; else what holds for all."""
    row = ROWS.get(name)
    if row is None and name.startswith("_") and name not in RECORDS:
        plain = name.removeprefix("_contrib_") if name.startswith("_contrib_") else name[1:]
        row = ROWS[plain] if plain in OPERATORS else None
    return row or _PLAIN


_PLAIN = Operator()


def renamed(record: Record) -> Mapping[str, str | None]:
    """A record's parameters that are attributes of another name in MXNet, or none."""
    return row_of(record.names.get("mxnet", "")).renamed


def _written(out: Any, result: Any) -> Any:
    """`out`, with the result in it."""
    if not isinstance(out, _core.ndarray):
        raise ArgumentTypeError(f"out is {described(out)}; expected an array to write to.")
    out[...] = result
    return out


# -- arguments ------------------------------------------------------------------------------------


def axes_of(axis: Any, ndim: int, exclude: bool = False) -> tuple[int, ...] | None:
    """The axes that an operator's `axis` means: None and () mean all; `exclude` the others."""
    if axis is None or axis == ():
        return None if not exclude else ()
    chosen = [a % ndim for a in (axis if isinstance(axis, Iterable) else (axis,))]
    if exclude:
        chosen = [a for a in range(ndim) if a not in chosen]
    return tuple(chosen)


def as_sequence(given: Any) -> tuple[Any, ...]:
    """A sequence, for which a number alone stands too."""
    return tuple(given) if isinstance(given, Iterable) else (given,)


def one_or_list(parts: Iterable[Any]) -> Any:
    """An operator with one result gives it alone."""
    parts = list(parts)
    return parts[0] if len(parts) == 1 else parts
