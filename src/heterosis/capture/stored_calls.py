"""Calls in saved programs: made of what a file says, and run as a user's are, so that a file can do
nothing that a user could not."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

from heterosis import _core
from heterosis.capture import control, plain
from heterosis.capture.inner import Filler
from heterosis.capture.states import Number
from heterosis.ir.expressions import evaluated
from heterosis.ir.traced_sizes import value_of
from heterosis.ir.types import DTYPES, ITEMSIZE, TensorType
from heterosis.ops.record import KEY, REGISTRY, Record

Facts = dict[str, Any]

_MOST_BYTES = 2**48  # of an array
_MOST_DIMENSIONS = 32
_MOST_ASKED = 8  # conditions within conditions, which a capture may go through twice each


class Arrays(list[Any]):
    """Arrays by their numbers, and the sizes of the run that they are of."""

    def __init__(self, arrays: Iterable[Any] = (), sizes: Mapping[str, int] | None = None):
        super().__init__(arrays)
        self.sizes = sizes or {}


def valued(data: Any, arrays: Arrays) -> Any:
    """A value that a file has, where arrays have these numbers."""
    return plain.decoded(
        data,
        lambda number: _numbered(arrays, number),
        lambda text: evaluated(text, arrays.sizes),
    )


def _numbered(arrays: Arrays, number: Any) -> Any:
    if type(number) is not int or not 0 <= number < len(arrays):
        raise ValueError(f"there is no array {number!r}; expected 0 to {len(arrays) - 1}")
    return arrays[number]


class Observer:
    """Is told what runs; does nothing."""

    def begins(self, name: str) -> None:
        """A part of the program begins."""

    def ends(self, results: tuple[Any, ...], stated: Any) -> None:
        """It has given these results, where the file states those."""


NOBODY = Observer()


def run(calls: Sequence[Operation | Control], arrays: Arrays, observer: Observer = NOBODY) -> None:
    """Run the calls, one after another; the arrays that they give are appended."""
    for i, call in enumerate(calls):
        observer.begins(f"call {i} ({call.name})")
        observer.ends(call.run(arrays, observer), valued(call.results, arrays))


@dataclass(frozen=True)
class Operation:
    """A call of an operation, with arrays by their numbers."""

    record: Record
    arguments: dict[str, Any]
    out: list[int] | None
    results: Any

    @property
    def name(self) -> str:
        return self.record.name

    def run(self, arrays: Arrays, observer: Observer) -> tuple[Any, ...]:
        """The results, which are appended to `arrays` unless some there are written to."""
        arguments = {name: valued(given, arrays) for name, given in self.arguments.items()}
        if self.out is not None:
            outs = tuple(_numbered(arrays, number) for number in self.out)
            arguments["out"] = outs if len(outs) > 1 else outs[0]
        found = self.record.operation(**arguments)
        results = found if isinstance(found, tuple) else (found,)
        if self.out is None:
            arrays.extend(results)
        return results


@dataclass(frozen=True)
class Region:
    """The calls of a branch, a body or a condition."""

    name: str
    calls: list[Operation | Control]
    result: list[Any]

    def run(self, arrays: Arrays, given: Sequence[Any], observer: Observer) -> list[Any]:
        """What it gives, where there are these arrays around it and it is given more."""
        observer.begins(self.name)
        own = Arrays([*arrays, *given], arrays.sizes)
        run(self.calls, own, observer)
        found = [_leaf(data, own) for data in self.result]
        observer.ends((), ())
        return found


@dataclass(frozen=True)
class Control:
    """A choice or a loop, which the capture makes as it does for users."""

    name: str
    given: dict[str, list[Any]]
    regions: dict[str, Region]
    results: Any

    def run(self, arrays: Arrays, observer: Observer) -> tuple[Any, ...]:
        """The results, which are appended to `arrays`."""

        def region(name: str) -> Callable[..., list[Any]]:
            return lambda *given: self.regions[name].run(arrays, given, observer)

        given = {
            name: [_leaf(data, arrays) for data in leaves] for name, leaves in self.given.items()
        }
        found = tuple(_CONTROLS[self.name](given, region))
        arrays.extend(found)
        return found


Given: TypeAlias = dict[str, list[Any]]
Functions: TypeAlias = Callable[[str], Callable[..., list[Any]]]  # the regions, by their names


def _cond(given: Given, region: Functions) -> Sequence[Any]:
    (pred,) = given["pred"]
    found: Sequence[Any] = control.Control().cond(pred, region("then"), region("otherwise"))
    return found


def _scan(given: Given, region: Functions) -> Sequence[Any]:
    (length,) = given["length"]
    if not _is_whole(length):
        raise ValueError(f"a loop of {length!r} turns; expected a number of them")

    def body(rows: Sequence[Any], states: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        found = region("body")(*rows, *states)
        outputs = len(found) - len(states)
        return found[:outputs], found[outputs:]

    outputs, states = control.Control().scan(body, given["rows"], given["states"], length)
    return [*outputs, *states]


def _while_loop(given: Given, region: Functions) -> Sequence[Any]:
    def body(*states: Any) -> tuple[list[Any], list[Any]]:
        return [], region("body")(*states)

    def condition(*states: Any) -> Any:
        (holds,) = region("condition")(*states)
        return holds

    return control.Control().while_loop(condition, body, given["states"], None)[1]


_CONTROLS = {"cond": _cond, "scan": _scan, "while_loop": _while_loop}


def _leaf(data: Any, arrays: Arrays) -> Any:
    """An array, a number, or what stands for one in a choice or a loop."""
    match valued(data, arrays):
        case {"zeros": (str(dtype), tuple(shape))}:
            return Filler(checked_type(dtype, shape))
        case {"number": bool() | int() | float() as number, "dtype": str(dtype)}:
            return Number(number, checked_type(dtype, ()).dtype)
        case _core.ndarray() | bool() | int() | float() as found:
            return found
    raise ValueError(f"{str(data)[:60]} is no array and no number")


# -- made of what a file says ----------------------------------------------------------------------


def checked_type(dtype: str, shape: Sequence[int]) -> TensorType:
    """A type that an input may have."""
    if dtype not in DTYPES:
        raise ValueError(f"an input of the unknown element type {dtype!r}")
    extents = [value_of(n) for n in shape]
    if len(shape) > _MOST_DIMENSIONS or not all(_is_whole(n) and n >= 0 for n in extents):
        raise ValueError(f"an input of the shape {shape!r}")
    if prod(extents) * ITEMSIZE[dtype] > _MOST_BYTES:
        raise ValueError(f"an input of the shape {shape}, larger than any memory")
    return TensorType(tuple(shape), dtype)


def _is_whole(number: Any) -> bool:
    """Whether it is an integer, or one that follows from sizes."""
    return type(value_of(number)) is int


def call_of(facts: Facts, asked: int = 0) -> Operation | Control:
    """A call, within so many conditions of loops."""
    return _control(facts, asked) if "control" in facts else _operation(facts)


_REGIONS = {"cond": {"then", "otherwise"}, "scan": {"body"}, "while_loop": {"condition", "body"}}
_GIVEN = {"cond": {"pred"}, "scan": {"rows", "states", "length"}, "while_loop": {"states"}}


def _control(facts: Facts, asked: int) -> Control:
    kind, given, regions = facts["control"], facts["given"], facts["regions"]
    if kind not in _CONTROLS:
        raise ValueError(f"there is no {kind!r}; expected one of {', '.join(_CONTROLS)}")
    if given.keys() != _GIVEN[kind] or regions.keys() != _REGIONS[kind]:
        raise ValueError(
            f"{kind} has {[*given, *regions]}; expected {sorted(_GIVEN[kind] | _REGIONS[kind])}"
        )
    made = {name: _region(name, region, asked) for name, region in regions.items()}
    return Control(kind, given, made, facts["results"])


def _region(name: str, facts: Facts, asked: int) -> Region:
    asked += name == "condition"
    if asked > _MOST_ASKED:
        raise ValueError(f"conditions within conditions, more than {_MOST_ASKED} deep")
    return Region(name, [call_of(one, asked) for one in facts["calls"]], facts["result"])


def _operation(facts: Facts) -> Operation:
    name, given = facts["operation"], facts["arguments"]
    record = REGISTRY.get(name)
    if record is None:
        raise ValueError(
            f"the operation {name!r} is not known here. Import the module that registers it, or "
            "use the version of Heterosis that wrote the file"
        )
    uses = {p.name: use for p, use in zip(record.parameters, record.uses, strict=True)}
    strange = [own for own in given if uses.get(own, KEY) == KEY]
    if strange:
        raise ValueError(f"the operation {name} has no arguments {strange}")
    arguments = {sys.intern(n): v for n, v in given.items()}
    return Operation(record, arguments, facts.get("out"), facts["results"])
