"""Networks and functions as ONNX files."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from heterosis import _core, backends, capture
from heterosis.io.atomic import write_together
from heterosis.ir.program import INPUT, Program, Value, apply
from heterosis.ir.resizing import at, resized, resized_type
from heterosis.ir.sizes import Size, named
from heterosis.ir.traced_sizes import untraced
from heterosis.models.onnx import format as onnx_format
from heterosis.models.onnx import wire
from heterosis.models.onnx.format import Graph, Input, Model
from heterosis.models.onnx.writing import tables
from heterosis.models.onnx.writing.graphs import VERSION, GraphWriter, described
from heterosis.models.onnx.writing.programs import ProgramWriter
from heterosis.models.onnx.writing.sizes import Sizes
from heterosis.passes.pipeline import optimized
from heterosis.runtime.errors import ArgumentError

# As `hybridize` takes it; or names for the axes of parameters.
Dynamic: TypeAlias = "capture.Dynamic | Mapping[str, Mapping[int, str]]"

_PLACES = (backends.INSIDE, backends.FILE)
# How conditions end that always hold: sizes beyond 62 bits no machine has.
_ALWAYS = (f" >= {-(2**62)}", f" <= {2**62}")
_LEAST = re.compile(r"\w+ >= 2|\w+ == 1")  # what chooses between programs for extents of 1
_HELD = "the program holds for"  # under which a file says so


def to_onnx(
    net: Any,
    path: str | os.PathLike[str],
    /,
    *inputs: Any,
    dynamic: Dynamic | None = None,
    weights: str = backends.INSIDE,
) -> str:
    """Write what `net`, a function or a block, predicts as an ONNX file, whose name is returned.

    It is written for `inputs`, whose elements do not matter, or for those that a hybridized `net`
    was called with, if these are of one kind. Extents are those of the inputs, unless `dynamic`,
    here or of `hybridize`, is True, or axes by the names of parameters, as {"x": (0,)}, or with
    names of their own, as {"x": {0: "rows"}}. With `weights="file"`, large arrays are in a file
    beside it, `<path>.data`.

    Layers that ONNX has are its operators, under the names of blocks; all else is written by what
    it is made of. What ONNX cannot compute is refused.
    """
    if weights not in _PLACES:
        raise ArgumentError(f"to_onnx: weights={weights!r}; expected one of {', '.join(_PLACES)}.")
    name = os.fspath(path)
    entry = capture.entry_of(net, *inputs, dynamic=_axes(dynamic))
    entry = _untraced(entry, _called(entry, dynamic))
    model = _Modelled(entry, _names_of(net)).model()
    beside = f"{os.path.basename(name)}.data" if weights == backends.FILE else None
    pieces, outside = onnx_format.written(model, beside)
    files = {f"{name}.data": outside} if beside else {}
    write_together({file: _writing(parts) for file, parts in (files | {name: pieces}).items()})
    return name


def _writing(parts: wire.Pieces) -> Any:
    return lambda file: file.writelines(parts)


def _names_of(net: Any) -> dict[int, str]:
    """The names of parameters by the ids of their arrays."""
    collect = getattr(net, "collect_params", None)
    if collect is None:
        return {}
    parameters = (p for p in collect().values() if p._data is not None)
    return {id(array): p.name for p in parameters for array in p.list_data()}


# -- open extents ---------------------------------------------------------------------------------


def _axes(dynamic: Dynamic | None) -> capture.Dynamic | None:
    """Which axes are open, without the names of their extents."""
    if isinstance(dynamic, Mapping):
        return {parameter: tuple(axes) for parameter, axes in dynamic.items()}
    return dynamic


def _called(entry: backends.Entry, dynamic: Dynamic | None) -> dict[str, str]:
    """The names that users have given to sizes, by those of the program."""
    found: dict[str, str] = {}
    for parameter, axes in dynamic.items() if isinstance(dynamic, Mapping) else ():
        if not isinstance(axes, Mapping):
            continue
        for label, value, _ in entry.inputs:
            if re.fullmatch(rf"{re.escape(parameter)}([.\[].*)?", label):
                for axis, name in axes.items():
                    size = str(untraced(value.shape[axis]))
                    if size in entry.values:
                        found.setdefault(size, name)
    _check_names(entry, found)
    return found


def _check_names(entry: backends.Entry, called: Mapping[str, str]) -> None:
    all_names = [called.get(name, name) for name in entry.values]
    for name in called.values():
        if not isinstance(name, str) or not name.isidentifier():
            raise ArgumentError(
                f"to_onnx: an extent is called {name!r}; expected letters, digits and underscores."
            )
        if all_names.count(name) > 1:
            raise ArgumentError(
                f"to_onnx: two extents are called {name!r}, and they need not be equal. Give each "
                "a name of its own."
            )


def _untraced(entry: backends.Entry, called: Mapping[str, str]) -> backends.Entry:
    """The entry with sizes in place of the numbers that were traced, under other names."""
    sizes = {old: named(new) for old, new in called.items()}

    def change(number: Any) -> Any:
        size = untraced(number)
        return size.at(sizes) if isinstance(size, Size) else size

    def text(of: str) -> str:
        return re.sub(r"\b[^\W\d]\w*", lambda word: called.get(word[0], word[0]), of)

    inputs = tuple(
        (label, apply(INPUT, (), resized_type(value.type, change)), position)
        for label, value, position in entry.inputs
    )
    return entry._replace(
        program=resized(entry.program, change),
        inputs=inputs,
        floats={position: text(number) for position, number in entry.floats.items()},
        values={text(name): value for name, value in entry.values.items()},
        conditions=tuple(map(text, entry.conditions)),
        ones=tuple(map(text, entry.ones)),
        special=tuple(_untraced(one, called) for one in entry.special),
    )


class _Modelled:
    """The model of an entry."""

    def __init__(self, entry: backends.Entry, names: Mapping[int, str]):
        tables.load()
        self._entry = entry
        self._graph = GraphWriter()
        self._sizes = Sizes(self._graph)
        self._inputs = [self._described(label, v) for label, v, _ in entry.inputs]
        for given in self._inputs:
            self._graph.names.fresh(given.name)
        for (_, value, _), given in zip(entry.inputs, self._inputs, strict=True):
            self._sizes.know(given.name, value.shape)
        self._names = names  # of parameters
        self._arrays: dict[int, str] = {}  # where those that the programs hold are, by their ids

    def _described(self, label: str, value: Value) -> Input:
        return described(label, value.dtype, value.shape)

    def _held(self, array: _core.ndarray) -> str:
        """Where an array is that programs hold, each once."""
        if id(array) not in self._arrays:
            name = self._names.get(id(array), "held")
            self._arrays[id(array)] = self._graph.outermost.held(name, array.asnumpy())
        return self._arrays[id(array)]

    def model(self) -> Model:
        entry = self._entry
        results = self._chosen([entry, *_different(entry)])
        conditions = _conditions([entry, *entry.special])
        results = [self._guarded(name, conditions) for name in results]
        outputs = [
            (name, self._described(self._graph.names.fresh(label), value))
            for name, label, value in zip(
                results, entry.outputs, entry.program.outputs, strict=True
            )
        ]
        graph = self._graph.graph(entry.name, self._inputs, outputs)
        facts = {_HELD: ", ".join(conditions)} if conditions else {}
        return Model(graph, {"": VERSION}, facts=facts)

    # -- programs -------------------------------------------------------------------------------

    def _chosen(self, entries: Sequence[backends.Entry]) -> list[str]:
        """The results of the first entry, or of a later one whose sizes are 1."""
        first, *others = entries
        if not others:
            writer = ProgramWriter(self._graph, self._sizes)
            self._write(writer, first)
            return list(map(writer.name, first.program.outputs))
        *rest, one = others
        conditions = [self._sizes.condition(f"{name} == 1") for name in one.ones]
        holds = conditions[0]
        for condition in conditions[1:]:
            holds = self._graph.node("And", holds, condition)
        branches = [self._branch(one, [one]), self._branch(first, [first, *rest])]
        return list(
            self._graph.nodes_of(
                "If", [holds], len(first.outputs), then_branch=branches[0], else_branch=branches[1]
            )
        )

    def _branch(self, entry: backends.Entry, entries: Sequence[backends.Entry]) -> Graph:
        outermost = self._graph
        self._graph = GraphWriter(outermost)
        try:
            found = self._chosen(entries)
            outputs = [
                (name, self._described(self._graph.names.fresh("branch_output"), value))
                for name, value in zip(found, entry.program.outputs, strict=True)
            ]
            return self._graph.graph("branch", (), outputs)
        finally:
            self._graph = outermost

    def _write(self, writer: ProgramWriter, entry: backends.Entry) -> None:
        program = entry.program
        for position, value in enumerate(program.inputs):
            if position in entry.held:
                writer.know(value, self._held(entry.held[position]))
            elif position in entry.floats:
                number = self._sizes.number(entry.floats[position], value.dtype)
                writer.know(value, writer.node("Squeeze", number, writer.graph.whole(0)))
        for (_, _, position), given in zip(entry.inputs, self._inputs, strict=True):
            if position >= 0:
                writer.know(program.inputs[position], given.name)
        writer.write(program)

    def _guarded(self, name: str, conditions: Sequence[str]) -> str:
        """A result that is there only for sizes for which the program holds."""
        graph = self._graph
        for text in conditions:
            fails = graph.node("Not", self._sizes.condition(text))
            name = graph.guarded(name, graph.cast(fails, "int64"), text)
        return name


def _conditions(entries: Sequence[backends.Entry]) -> list[str]:
    """What must hold for one of the programs to be there: what all of them ask for, and one of what
    is left of each."""
    each = [[c for c in entry.conditions if not c.endswith(_ALWAYS)] for entry in entries]
    common = [text for text in each[0] if all(text in texts for texts in each)]
    rests = [[text for text in texts if text not in common] for texts in each]
    names = len(entries[0].values)
    plain = all(_LEAST.fullmatch(text) for rest in rests for text in rest)
    if plain and len(entries) == 1 << names:  # for each combination of ones there is a program
        return common
    return [*common, " or ".join(f"({' and '.join(rest) or True})" for rest in rests)]


def _different(entry: backends.Entry) -> list[backends.Entry]:
    """The programs for extents of 1 that are others than the one for all sizes."""
    return [one for one in entry.special if not _is_the_same(entry, one)]


def _is_the_same(entry: backends.Entry, one: backends.Entry) -> bool:
    """Whether the program for all sizes computes what the one for extents of 1 does there.

    Programs are compared in the form that different ones of one meaning mostly have, which sizes
    have at numbers alone: at two numbers for each.
    """
    if entry.floats != one.floats or _ids(entry) != _ids(one):
        return False
    for more in (0, 2):
        values = {name: value + more for name, value in entry.values.items()}
        values |= dict.fromkeys(one.ones, 1)
        if _cleaned(entry.program, values) != _cleaned(one.program, values):
            return False
    return True


def _ids(entry: backends.Entry) -> dict[int, int]:
    """Which arrays a program holds, by position."""
    return {position: id(array) for position, array in entry.held.items()}


def _cleaned(program: Program, values: Mapping[str, int]) -> str:
    fixed = resized(program, at(values), calls=False)
    return str(optimized(Program(fixed.inputs, fixed.outputs)))
