"""Captured programs as files that need no Python: what they are given, hold and give."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Iterator, Sequence
from functools import partial
from importlib import resources
from operator import methodcaller
from typing import Any

from heterosis import _core, backends
from heterosis.capture import trees
from heterosis.capture.attempts import capture
from heterosis.capture.captured import (
    Argument,
    Captured,
    Computed,
    Made,
    OfSizes,
    Outside,
    RandomKey,
    RandomState,
    Source,
    Window,
)
from heterosis.capture.compiled import Compiled, example
from heterosis.capture.open_calls import OpenCall, open_call
from heterosis.capture.open_sizes import Dynamic, check_dynamic
from heterosis.capture.programs import Call
from heterosis.capture.signatures import bound, leaves, parameters_of
from heterosis.capture.unserved import Unserved
from heterosis.io.atomic import write_together
from heterosis.ir.program import INPUT, Program, Value, apply, substituted
from heterosis.ir.resizing import at, resized
from heterosis.ir.traced_sizes import written
from heterosis.ir.types import TensorType
from heterosis.ops.random import keys
from heterosis.runtime import modes
from heterosis.runtime.errors import ArgumentError, UninitializedError, UnsupportedError
from heterosis.runtime.placing import from_device, in_main_memory

_DEFAULT = backends.LibraryOptions()
_DRAWS = RandomKey | RandomState  # what follows from a seed
_COMMON = "heterosis"  # the header of all libraries
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def export(
    compiled: Compiled[..., Any],
    path: str | os.PathLike[str],
    inputs: Call,
    options: backends.LibraryOptions = _DEFAULT,
    parameters: inspect.Signature | None = None,
    name: str | None = None,
    dynamic: Dynamic | None = None,
) -> tuple[str, str]:
    """Write `lib<name>.so`, `<name>.h` and `heterosis.h` for a `path` that ends in a name.

    The library has an entry for each kind of arguments that `compiled` was captured for, and one
    for `inputs` unless there are none. What `dynamic` says stays open in these; unless it is given,
    what `hybridize` was told, extents being known where calls were to show which ones vary.
    """
    if dynamic is None:
        dynamic = compiled.dynamic_in_files
    check_dynamic(dynamic)
    folder, label = os.path.split(os.fspath(path))
    if label == _COMMON:
        raise ArgumentError(
            f"export: got the path {os.fspath(path)!r}; expected one that ends in another name: "
            f"{_COMMON}.h has the functions that every library shows."
        )
    if not _NAME.fullmatch(label):
        raise ArgumentError(
            f"export: got the path {os.fspath(path)!r}; expected one that ends in a name of "
            "letters, digits and underscores, as my_mlp: the library is called after it."
        )
    name = name or str(getattr(compiled, "__name__", "program"))
    calls = compiled.calls_with(inputs)
    entries = list(_entries(compiled, calls, parameters, name, dynamic))
    with in_main_memory():
        files = backends.named(compiled.backend).library(entries, label, options)
    files[f"{_COMMON}.h"] = (resources.files("heterosis.backends") / f"{_COMMON}.h").read_bytes()
    # The library last: it knows whether a file of parameters is its own.
    write_together(
        {
            os.path.join(folder, file_name): methodcaller("write", content)
            for file_name, content in reversed(files.items())
        }
    )
    return os.path.join(folder, f"lib{label}.so"), os.path.join(folder, f"{label}.h")


def options_of(
    target: str | Sequence[str] | None, threads: int, weights: str
) -> backends.LibraryOptions:
    """What `heterosis.export` was asked for."""
    targets = (target,) if isinstance(target, str) else tuple(target or ())
    return backends.LibraryOptions(targets, threads, weights)


def _entries(
    compiled: Compiled[..., Any],
    calls: Sequence[Call],
    parameters: inspect.Signature | None,
    name: str,
    dynamic: Dynamic,
) -> Iterator[backends.Entry]:
    if not calls:
        raise UninitializedError(
            f"{name} has no program yet: call it once, or give sample inputs behind the path."
        )
    named = parameters or parameters_of(compiled)
    seen: set[str] = set()
    known: list[OpenCall] = []
    with modes.switched(recording=False, training=False):
        for call in calls:
            kind = repr(trees.mapped(call, _described))
            if kind in seen or any(one.serves(call) for one in known):
                continue
            label = f"{name}_{len(seen)}" if seen else name
            seen.add(kind)
            found = open_call(compiled, dynamic, call)
            unserved = Unserved(label, _arrays(call, named))
            unserved.tell_of_closed(compiled, dynamic, call, found)
            if found is None:
                yield _entry(label, capture(compiled.function, *call), call, named)
            else:
                known.append(found)
                yield _open_entry(label, found, named, unserved)


def entry_of(
    compiled: Compiled[..., Any],
    inputs: Call,
    parameters: inspect.Signature | None = None,
    name: str | None = None,
    dynamic: Dynamic | None = None,
) -> backends.Entry:
    """The entry for `inputs`, or for what `compiled` was called with, which must be of one kind: of
    what is written to a file that has one program."""
    dynamic = compiled.dynamic_in_files if dynamic is None else dynamic
    check_dynamic(dynamic)
    name = name or str(getattr(compiled, "__name__", "program"))
    calls = [example(inputs)] if any(inputs) else list(compiled.examples.values())
    found = list(_entries(compiled, calls, parameters, name, dynamic))
    if len(found) > 1:
        raise ArgumentError(
            f"{name}: it was called with {len(found)} kinds of arguments, and the file has one "
            "program. Give sample inputs of the kind that is meant."
        )
    return found[0]


def _open_entry(
    name: str, found: OpenCall, parameters: inspect.Signature, unserved: Unserved
) -> backends.Entry:
    """The entry for all sizes that a call may have."""
    made = _sized(_entry(name, found.captured, found.call, parameters), found)
    special, programs = [], []
    for one in found.special(partial(unserved.tell_of_ones, found)):
        entry = _sized(_entry(name, one.captured, one.call, parameters), one)
        if _is_alike(made, entry):
            special.append(entry)
            programs.append(one)
        else:
            unserved.tell_of_ones(found, one.ones, "its results are others, or have other types.")
    unserved.tell_of_equal(found)
    unserved.tell_of_others(found, programs)
    return made._replace(special=tuple(special))


def _sized(entry: backends.Entry, found: OpenCall) -> backends.Entry:
    return entry._replace(values=found.values, conditions=found.conditions, ones=found.ones)


def _is_alike(one: backends.Entry, other: backends.Entry) -> bool:
    """Whether callers need not know which of two programs runs."""

    def known(entry: backends.Entry) -> tuple[Any, ...]:
        arrays = [value.type for _, value, _ in entry.inputs] + [
            value.type for value in entry.program.outputs
        ]
        return entry.outputs, [(type_.dtype, len(type_.shape)) for type_ in arrays]

    same: bool = known(one) == known(other)
    return same


def _described(leaf: Any) -> Any:
    return f"{leaf._dtype_name}{leaf.shape}" if isinstance(leaf, _core.ndarray) else leaf


def _entry(
    name: str, captured: Captured, call: Call, parameters: inspect.Signature
) -> backends.Entry:
    _check(name, captured)
    given = list(_arrays(call, parameters))
    nothing = captured.result is None and captured.writes
    results = [] if nothing else list(leaves(captured.result, "output"))
    results += [
        (f"{given[write.source.position][0]} after", Computed(write.position))
        for write in captured.writes
        if isinstance(write.source, Argument)
    ]
    outputs = tuple(_value(name, captured, leaf) for _, leaf in results)
    _check_nothing_else(name, captured, [leaf for _, leaf in results])
    made = captured.program
    program = Program(made.inputs, outputs, made.name, made.calls)
    sources: Sequence[Source | None] = captured.sources
    if any(isinstance(source, _DRAWS) for source in sources):
        program, sources = _seeded(program, captured.sources)
    positions = {s.position: i for i, s in enumerate(sources) if isinstance(s, Argument)}
    outside = {i: s.array for i, s in enumerate(sources) if isinstance(s, Outside)}
    held = {i: from_device(array) for i, array in outside.items()}
    floats = {i: written(s.number) for i, s in enumerate(sources) if isinstance(s, OfSizes)}
    inputs = [
        _input(label, array, positions.get(number, -1), number, captured)
        for number, (label, array) in enumerate(given)
    ]
    if None in sources:
        inputs.append(("seed", program.inputs[-1], len(sources) - 1))
    labels = tuple(label for label, _ in results)
    return backends.Entry(name, program, tuple(inputs), held, labels, floats)


def _seeded(program: Program, sources: Sequence[Source]) -> tuple[Program, Sequence[Source | None]]:
    """The program with a seed as its last input, which has no source: it draws what a run here
    draws that follows the setting of this seed."""
    seed = state = apply(INPUT, (), TensorType((), "int64"))
    drawn: dict[Value, Value] = {}
    given = list(zip(program.inputs, sources, strict=True))
    for value, source in given:
        if isinstance(source, RandomKey):
            state, drawn[value] = keys.drawn(state)
    drawn |= {value: state for value, source in given if isinstance(source, RandomState)}
    outputs = substituted(program.outputs, drawn)
    rest = [(value, source) for value, source in given if value not in drawn]
    inputs = (*(value for value, _ in rest), seed)
    return Program(inputs, outputs, program.name), (*(source for _, source in rest), None)


def _arrays(call: Call, parameters: inspect.Signature) -> list[tuple[str, Any]]:
    """The arrays of a call in the order in which programs count them, with their labels."""
    given = bound(parameters, *call)
    labels = {id(leaf): label for key in given for label, leaf in leaves(given[key], key)}
    return [(labels[id(array)], array) for array in trees.arrays_in(call)]


def _input(
    label: str, array: Any, position: int, number: int, captured: Captured
) -> tuple[str, Value, int]:
    """An input as callers see it: its open extents by their own names, also where conditions say
    that they equal others."""
    type_ = TensorType(array.shape, array._dtype_name)
    if position >= 0 and captured.conditions is not None:
        type_ = captured.conditions.named(number, type_)
    return label, apply(INPUT, (), type_), position


def _check(name: str, captured: Captured) -> None:
    """Refuse what no file can do: there is nothing behind it that remembers."""
    if captured.recorded:
        raise UnsupportedError(
            f"{name}: the program computes gradients. What is exported predicts: export the "
            "function that does."
        )
    if any(not isinstance(write.source, Argument) for write in captured.writes):
        raise UnsupportedError(
            f"{name}: the program writes to arrays that it found outside, and what is exported "
            "remembers nothing. Hand them in as arguments: what they are afterwards is a result."
        )
    if captured.printed:
        raise UnsupportedError(
            f"{name}: the program prints, by npx.print, and what is exported has no Python to do "
            "so. Return what is to be seen."
        )
    if captured.checks is not None:
        raise UnsupportedError(
            f"{name}: the program checks arrays while it runs, by an assert or a raise. What is "
            "exported has no Python to raise an error in; return what is to be checked."
        )
    if captured.supply:
        raise UnsupportedError(
            f"{name}: the program takes numbers that Python computes for every run, and what "
            "is exported has no Python. Give it the numbers as arguments."
        )


def _value(name: str, captured: Captured, leaf: Any) -> Value:
    """The value of a result in the program. An array that it writes to is what it is afterwards."""
    if isinstance(leaf, Computed):
        return captured.program.outputs[leaf.position]
    if isinstance(leaf, Argument | Outside):
        for write in captured.writes:
            if write.source == leaf:
                return captured.program.outputs[write.position]
        return captured.program.inputs[_position(captured, leaf)]
    if isinstance(leaf, Window):
        return _shown(leaf, _value(name, captured, leaf.base), captured)
    found = leaf.example if isinstance(leaf, Made) else leaf
    raise UnsupportedError(
        f"{name}: the result is, or holds, a {type(found).__name__}. What is exported gives "
        "arrays, and structures of arrays, one after another."
    )


def _shown(window: Window, base: Value, captured: Captured) -> Value:
    """What a window shows of the value of its base."""
    conditions = captured.conditions
    values = conditions.opening.values if conditions else {}
    known = {name: values[name] for name in (conditions.fixed if conditions else ())}
    program = resized(window.program(), at(known))
    (found,) = substituted(program.outputs, {program.inputs[0]: base})
    return found


def _position(captured: Captured, source: Source) -> int:
    return next(i for i, s in enumerate(captured.sources) if s is source or s == source)


def _check_nothing_else(name: str, captured: Captured, results: list[Any]) -> None:
    """Refuse programs that compute something besides their results."""
    known = {leaf.position for leaf in results if isinstance(leaf, Computed)}
    bases = (leaf.base for leaf in results if isinstance(leaf, Window))
    known |= {base.position for base in bases if isinstance(base, Computed)}
    known |= {captured.drawn.position} if isinstance(captured.drawn, Computed) else set()
    if len(known) < len(captured.program.outputs):
        raise UnsupportedError(
            f"{name}: the program does something besides what it returns, which no file does. "
            "Export a function that computes its results alone."
        )
