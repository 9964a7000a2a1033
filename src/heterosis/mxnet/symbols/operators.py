"""What the operators of symbol files do: the operations of `np`, `npx` and `ndarray`, found by
MXNet's names, with attributes as texts."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from heterosis import np, npx
from heterosis.mxnet.attributes import decoded
from heterosis.mxnet.operators.operator import OPERATORS
from heterosis.mxnet.symbols.functions import TABLE, Run
from heterosis.mxnet.symbols.spelling import IDLE, PARAMETERS
from heterosis.ops.record import ARRAY, ATTRIBUTE, REGISTRY, SEQUENCE, Record
from heterosis.runtime.errors import ArgumentError, ArgumentTypeError, HeterosisError

_MISUSE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
MOST_RESULTS = 10_000  # of one operator: a file can ask for any number
_LISTS = {"adj", "dilate", "kernel", "newshape", "pad", "reps", "shape", "stride"}


@cache
def found(name: str) -> Run | None:
    """The function of the operator `name`; None if there is none."""
    if name in TABLE:
        return TABLE[name]
    record = _RECORDS.get(name)
    if record is not None and name not in OPERATORS:
        return _by_record(record)
    plain = name.removeprefix("_contrib_") if name.startswith("_contrib_") else name[1:]
    for candidate in (name, plain if name.startswith("_") else name):
        if candidate in OPERATORS:
            return OPERATORS[candidate]
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

_RECORDS = {r.names["mxnet"]: r for r in REGISTRY.values() if "mxnet" in r.names}


def _by_record(record: Record) -> Run:
    """Arrays go to the parameters that take arrays, in order; attributes go by name."""
    ours = {theirs: name for name, theirs in PARAMETERS.get(record.name, {}).items() if theirs}
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
    rule = _COUNTS.get(name)
    count = int(rule(values_of(texts))) if rule else 1
    if not 1 <= count <= MOST_RESULTS:
        raise ArgumentError(f"operator {name}: {count} results; expected 1 to {MOST_RESULTS}.")
    return count


def _parts(attributes: dict[str, Any]) -> int:
    sections = attributes.get("sections") or 0
    indices = attributes.get("indices") or ()
    return sections or (len(indices) if isinstance(indices, tuple) else 1) or 1


def _states(attributes: dict[str, Any]) -> int:
    if not attributes.get("state_outputs"):
        return 1
    return 3 if attributes.get("mode") == "lstm" else 2


def _statistics(attributes: dict[str, Any]) -> int:
    return 3 if attributes.get("output_mean_var") else 1


_COUNTS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "RNN": _states,
    "SliceChannel": lambda a: a.get("num_outputs") or 1,
    "split": lambda a: a.get("num_outputs") or 1,
    "topk": lambda a: 2 if a.get("ret_typ") == "both" else 1,
    **dict.fromkeys(("_npi_split", "_npi_hsplit", "_npi_dsplit", "_split_v2"), _parts),
    **dict.fromkeys(("BatchNorm", "LayerNorm", "GroupNorm"), _statistics),
    **dict.fromkeys(
        ("moments", "_npi_slogdet", "_npi_eigh", "_npi_eig", "_histogram"), lambda a: 2
    ),
    "_npi_svd": lambda a: 3,
    "_npi_average": lambda a: 2 if a.get("returned") else 1,
    "_contrib_MultiBoxTarget": lambda a: 3,
}
