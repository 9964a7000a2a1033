"""Operators by the names in symbol files: the function of each, and how many results it has."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from heterosis import np, npx
from heterosis.mxnet.attributes import decoded
from heterosis.mxnet.graph import Node
from heterosis.mxnet.operators.table import IDLE, RECORDS, Run, renamed, row_of
from heterosis.ops.record import ARRAY, ATTRIBUTE, SEQUENCE, Record
from heterosis.runtime.errors import ArgumentError, ArgumentTypeError, HeterosisError

_MISUSE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
MOST_RESULTS = 10_000  # of one operator: a file can ask for any number
_LISTS = {"adj", "dilate", "kernel", "newshape", "pad", "reps", "shape", "stride"}


@cache
def found(name: str) -> Run | None:
    """The function of the operator `name`; None if there is none."""
    run = row_of(name).run
    if run is not None:
        return run
    if name in RECORDS:
        return _by_record(RECORDS[name])
    return _by_prefix(name)


def _by_prefix(name: str) -> Run | None:
    """Functions of `np` and `npx`, which MXNet's names tell by how they begin."""
    for prefix, module in _MODULES:
        run = vars(module).get(name.removeprefix(prefix)) if name.startswith(prefix) else None
        if callable(run) and not _is_of_files(run):
            return run
    return None


def _is_of_files(run: Any) -> bool:
    """Whether a function reads or writes files: what a file says must not."""
    return str(getattr(run, "__module__", "")).startswith("heterosis.io")


_MODULES = (
    ("_npx_", npx), ("_npi_", np), ("_npi_", np.linalg), ("_np_", np), ("_image_", npx.image),
)  # fmt: skip


def call(name: str, run: Run, arrays: Sequence[Any], attributes: Mapping[str, Any]) -> Any:
    """The results of an operator; `attributes` are values, no longer texts."""
    known = _keywords(run)
    attributes = {k: v for k, v in attributes.items() if k not in IDLE}
    given = {k: v for k, v in attributes.items() if known is None or k in known}
    strange = [k for k, v in attributes.items() if k not in given and v is not None]
    if strange:
        raise ArgumentError(f"operator {name}: attribute {strange[0]!r} is not known here.")
    try:
        return run(*arrays, **given)
    except _MISUSE as error:  # attributes from a file: they are missing, or of any kind and size
        if isinstance(error, HeterosisError) and not isinstance(error, ArgumentTypeError):
            raise
        raise ArgumentError(f"operator {name}: {error}") from error


@cache
def _keywords(run: Run) -> frozenset[str] | None:
    """The keywords that a function takes; None for all."""
    record = getattr(run, "record", None)
    signature = record.signature if isinstance(record, Record) else inspect.signature(run)
    parameters = signature.parameters.values()
    if any(p.kind == p.VAR_KEYWORD for p in parameters):
        return None
    return frozenset(p.name for p in parameters)


def values_of(texts: Mapping[str, str]) -> dict[str, Any]:
    """The attributes of a node, as values."""
    return {name: _value(name, decoded(text)) for name, text in texts.items()}


def _value(name: str, value: Any) -> Any:
    """Where MXNet reads a list, one number is a list of one."""
    alone = name in _LISTS and isinstance(value, int) and not isinstance(value, bool)
    return (value,) if alone else value


# -- records --------------------------------------------------------------------------------------


def _by_record(record: Record) -> Run:
    """Arrays go to the parameters that take arrays, in order; attributes go by name."""
    ours = {theirs: name for name, theirs in renamed(record).items() if theirs}
    pairs = list(zip(record.parameters, record.uses, strict=True))
    accepted = {p.name for p, use in pairs if use in (ARRAY, ATTRIBUTE)}

    def run(*arrays: Any, **attributes: Any) -> Any:
        keywords = {ours.get(name, name): value for name, value in attributes.items()}
        for name in [n for n in keywords if n not in accepted]:
            if name not in IDLE and keywords[name] is not None:
                raise ArgumentError(f"{record.name}: attribute {name!r} is not known here.")
            del keywords[name]
        waiting = list(arrays)
        for parameter, use in pairs:
            if use == SEQUENCE:
                keywords[parameter.name], waiting = waiting, []
            elif use == ARRAY and waiting and parameter.name not in keywords:
                keywords[parameter.name] = waiting.pop(0)
        if waiting:
            raise ArgumentError(f"{record.name}: {len(arrays)} arrays are too many.")
        return record.operation(**keywords)

    return run


# -- how many results -----------------------------------------------------------------------------


def output_count(name: str, texts: Mapping[str, str]) -> int:
    """How many results users see of an operator."""
    results = row_of(name).results
    count = int(results(values_of(texts))) if callable(results) else results
    if not 1 <= count <= MOST_RESULTS:
        raise ArgumentError(f"operator {name}: {count} results; expected 1 to {MOST_RESULTS}.")
    return count


# -- states ---------------------------------------------------------------------------------------


def states(nodes: Iterable[Node]) -> set[Node]:
    """The variables that operators write to."""
    return {
        node.inputs[place].node
        for node in nodes
        for place in row_of(node.operator).states
        if place < len(node.inputs) and node.inputs[place].node.is_variable
    }
