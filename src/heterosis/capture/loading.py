"""Saved programs, read. Every call in a file goes through its operation's own rules, once before
anything is returned: a file can say nothing that a user could not."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from heterosis import _core
from heterosis.capture import plain, trees
from heterosis.capture.attempts import capture
from heterosis.capture.captured import Captured
from heterosis.capture.compiled import Compiled
from heterosis.capture.open_sizes import AUTO, Dynamic, Opening
from heterosis.capture.programs import Call
from heterosis.capture.saving import SIZED, VERSION
from heterosis.capture.signatures import (
    Signature,
    array_leaves,
    arrays_of,
    bound,
    signature_of,
    type_of,
)
from heterosis.capture.stored_calls import (
    Arrays,
    Control,
    Facts,
    Observer,
    Operation,
    call_of,
    checked_type,
    run,
    valued,
)
from heterosis.io.files import opened, wrong
from heterosis.io.packing import unpack
from heterosis.ir import program as ir
from heterosis.ir.expressions import evaluated
from heterosis.ir.program import ASSEMBLE
from heterosis.ir.resizing import at, resized_type
from heterosis.ir.sizes import Size, named
from heterosis.ir.traced_sizes import LEAST, fixed_number
from heterosis.ir.types import TensorType
from heterosis.runtime import modes
from heterosis.runtime.errors import ArgumentError, HeterosisError

_KIND = "a program that heterosis.save wrote"
_KINDS = {
    kind.name: kind
    for kind in (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        inspect.Parameter.VAR_POSITIONAL,
        inspect.Parameter.KEYWORD_ONLY,
        inspect.Parameter.VAR_KEYWORD,
    )
}


def load(path: str | os.PathLike[str]) -> Loaded:
    """What `heterosis.save` wrote, to be called as the function or the block was.

    It computes the same, bit for bit, for inputs of the types and shapes that were captured. Where
    extents were left open, it takes all that its description names bounds for.
    """
    with opened(path, _KIND) as source:
        return _Reader(source.name).read(source.whole())


class Loaded(Compiled[..., Any]):
    """A saved function. `inputs` and `outputs` have the names, shapes and types of what its first
    program takes and gives; `signatures` has those of all."""

    _is_written_in_python = False

    def __init__(
        self, name: str, parameters: inspect.Signature, programs: Sequence[Program],
        arrays: dict[str, _core.ndarray],
    ):  # fmt: skip
        is_open = any(program.sizes for program in programs)
        super().__init__(self._run, dynamic=AUTO if is_open else False)
        self.__name__ = self.__qualname__ = name
        self.__signature__ = parameters
        self._saved, self._arrays = programs, arrays
        self.signatures = tuple(program.signature for program in programs)
        self.examples.update({i: program.example for i, program in enumerate(programs)})

    @property
    def dynamic_in_files(self) -> Dynamic:
        """What the file has left open, and nothing else."""
        return bool(self.dynamic)

    @property
    def inputs(self) -> Mapping[str, TensorType]:
        """The arrays that the first program takes."""
        return self.signatures[0].inputs

    @property
    def outputs(self) -> Mapping[str, TensorType]:
        """The arrays that the first program gives."""
        return self.signatures[0].outputs

    def held(self) -> dict[str, Any]:
        """The arrays that were saved with the programs."""
        return dict(self._arrays)

    def _run(self, *arguments: Any, **keywords: Any) -> Any:
        try:
            given = bound(self.__signature__, arguments, keywords)
        except TypeError as error:
            raise ArgumentError(f"{self.__name__}{self.__signature__}: {error}.") from None
        arrays = arrays_of(given)
        kind = _kind(given)
        alike = (program for program in self._saved if program.kind == kind)
        found = ((program, program.sizes_at(arrays)) for program in alike)
        program, sizes = next((pair for pair in found if pair[1] is not None), (None, None))
        if program is None:
            known = "".join(f"\n  {signature}" for signature in self.signatures)
            raise ArgumentError(
                f"{self.__name__}: called with {signature_of(given, ()).taken}; the file has "
                f"programs for{known}\nConvert the inputs, or call the network with such ones "
                "before it is saved."
            )
        numbered = program.arrays(arrays, sizes)
        run(program.calls, numbered)
        return valued(program.result, numbered)

    def __repr__(self) -> str:
        return f"<saved program {self.__name__}{self.signatures[0]}>"


def _kind(given: Mapping[str, Any]) -> str:
    """Equal for arguments that one program serves, if their extents are such."""

    def leaf(value: Any) -> Any:
        if isinstance(value, _core.ndarray):
            return f"{value._dtype_name} {value.ndim}"
        return {"object": id(value)}

    def encoded(tree: Any) -> Any:
        return plain.encoded(trees.mapped(tree, fixed_number), leaf)

    return repr({name: encoded(tree) for name, tree in given.items()})


@dataclass
class Program:
    """The calls for one kind of arguments."""

    example: Call
    kind: str
    types: list[TensorType]  # of the arrays, by their numbers
    order: list[int]  # the numbers of the arrays among the arguments
    sizes: Mapping[str, int]  # in the example
    conditions: Sequence[str]  # under which it holds for others
    held: list[_core.ndarray]
    calls: list[Operation | Control]
    result: Any
    signature: Signature

    def arrays(self, inputs: Sequence[Any], sizes: Mapping[str, int] | None) -> Arrays:
        """What the first call finds."""
        numbered = dict(zip(self.order, inputs, strict=True))
        return Arrays([*(numbered[i] for i in range(len(inputs))), *self.held], sizes)

    def opening(self) -> Opening | None:
        """The extents of its arrays, by their numbers, that are open; None if none is."""
        shapes = tuple(resized_type(type_, at(self.sizes)).shape for type_ in self.types)
        names = {
            (i, axis): str(extent)
            for i, type_ in enumerate(self.types)
            for axis, extent in enumerate(type_.shape)
            if isinstance(extent, Size)
        }
        return Opening(names, shapes) if names else None

    def sizes_of(self, arrays: Sequence[Any]) -> Mapping[str, int]:
        """The sizes, where these are its arrays by their numbers."""
        opening = self.opening()
        axes = opening.names if opening else {}
        return {**self.sizes, **{name: arrays[i].shape[axis] for (i, axis), name in axes.items()}}

    def sizes_at(self, inputs: Sequence[Any]) -> Mapping[str, int] | None:
        """What the sizes are for inputs of its kind; None if it does not serve them."""
        found: dict[str, int] = {}
        for i, array in zip(self.order, inputs, strict=True):
            for own, extent in zip(self.types[i].shape, array.shape, strict=True):
                if isinstance(own, int):
                    if extent != own:
                        return None
                elif extent < LEAST or found.setdefault(str(own), extent) != extent:
                    return None
        known = {**self.sizes, **found}
        holds = all(evaluated(condition, known) for condition in self.conditions)
        return known if holds else None


class _Reader(Observer):
    """Makes programs of facts. Whatever goes wrong, the error says where."""

    def __init__(self, path: str):
        self.path, self.where = path, "the head"
        self.held: dict[str, _core.ndarray] = {}

    def read(self, data: bytes) -> Loaded:
        """The function in the bytes of a file."""
        try:
            with modes.switched(recording=False, training=False, capturing=False):
                self.held, found = unpack(data)
                return self._function(found["heterosis"])
        except Exception as error:
            raise wrong(self.path, _KIND, f"{self.where}: {_told(error)}") from error

    def _function(self, facts: Facts) -> Loaded:
        if facts["version"] not in (VERSION, SIZED):
            raise ValueError(
                f"version {facts['version']!r} of the format; expected {VERSION} or {SIZED}"
            )
        parameters = inspect.Signature([_parameter(given) for given in facts["parameters"]])
        programs = []
        for i, given in enumerate(facts["programs"]):
            self.where = f"program {i}"
            programs.append(self._program(given, parameters))
        self.where = "the programs"
        if not programs:
            raise ValueError("there are none; expected one at least")
        return Loaded(str(facts["name"]), parameters, programs, self.held)

    def _program(self, facts: Facts, parameters: inspect.Signature) -> Program:
        sizes, conditions = _sizes(facts.get("sizes", {"values": {}, "conditions": []}))
        types = [_input_type(given, sizes) for given in facts["inputs"]]
        inputs = [_stand_in(resized_type(type_, at(sizes))) for type_ in types]
        arrays = Arrays(inputs, sizes)
        call = parameters.bind_partial()
        call.arguments.update({n: valued(given, arrays) for n, given in facts["arguments"].items()})
        given = bound(parameters, call.args, call.kwargs)
        places = [next(i for i, a in enumerate(inputs) if a is own) for own in arrays_of(given)]
        if sorted(places) != list(range(len(inputs))):
            raise ValueError(f"the arguments have the inputs {places}; expected each of them once")
        found = Program(
            (call.args, call.kwargs), _kind(given), types, places, sizes, conditions,
            [self.held[name] for name in facts["held"]],
            [call_of(given) for given in facts["calls"]], facts["result"],
            signature_of(given, ()),
        )  # fmt: skip
        if found.sizes_at(arrays_of(given)) is None:
            raise ValueError(f"the conditions {conditions} do not hold for its own sizes, {sizes}")
        labels = (label for name in given for label, _ in array_leaves(given[name], name))
        named_types = {label: types[i] for label, i in zip(labels, places, strict=True)}
        found.signature = replace(found.signature, inputs=named_types, bounds=_bounds(found))
        self._check(found, inputs)
        return found

    def _check(self, program: Program, inputs: list[Any]) -> None:
        """Go through all the calls, with no elements; find what the program gives."""
        where = self.where
        outputs: dict[str, TensorType] = {}

        def followed(inputs: list[Any]) -> Any:
            self.where = where
            arrays = Arrays([*inputs, *program.held], program.sizes_of(inputs))
            run(program.calls, arrays, self)
            self.where = f"{where}, the result"
            returned = valued(program.result, arrays)
            outputs.update(signature_of({}, returned).outputs)
            return returned

        captured = capture(followed, (inputs,), {}, opening=program.opening())
        _check_assembled(captured.program)
        shown = {name: _without_fixed(type_, captured) for name, type_ in outputs.items()}
        program.signature = replace(program.signature, outputs=shown)

    def begins(self, name: str) -> None:
        """Say where, if something is wrong there."""
        self.where += f", {name}"

    def ends(self, results: tuple[Any, ...], stated: Any) -> None:
        """Compare the results with what the file says."""
        _check_results(results, stated)
        self.where = self.where.rpartition(", ")[0]


def _check_assembled(program: ir.Program) -> None:
    """Go through what writes into parts have made, here and within branches and loops."""
    for node in program.nodes():
        types = node.primitive.types
        if node.primitive is ASSEMBLE and types is not None:
            types(node)
        for attribute in node.attributes.values():
            if isinstance(attribute, ir.Program):
                _check_assembled(attribute)


def _told(error: Exception) -> str:
    """What an error says, with its kind where that means little alone."""
    if isinstance(error, KeyError):
        return f"there is no {error}"
    ours = isinstance(error, HeterosisError | ValueError | TypeError)
    return str(error) if ours else f"{type(error).__name__}: {error}"


def _parameter(facts: Facts) -> inspect.Parameter:
    default: Any = inspect.Parameter.empty
    if facts.get("optional"):
        default = _ABSENT
    elif "default" in facts:
        default = valued(facts["default"], Arrays())
    return inspect.Parameter(facts["name"], _KINDS[facts["kind"]], default=default)


class _Absent:
    """Stands for a default that is no plain value: the program has what followed from it."""

    def __repr__(self) -> str:
        return "..."


_ABSENT = _Absent()


def _sizes(facts: Facts) -> tuple[dict[str, int], list[str]]:
    """The sizes of a program, with values, and the conditions under which it holds for others."""
    values, conditions = facts["values"], facts["conditions"]
    for name, value in values.items():
        if not name.isidentifier() or type(value) is not int or value < LEAST:
            raise ValueError(f"the size {name!r} is {value!r}; expected a number from {LEAST} on")
    return dict(values), list(conditions)


def _input_type(given: Any, sizes: Mapping[str, int]) -> TensorType:
    """The type of an input, whose extents are numbers or sizes by their names."""
    dtype, extents = given
    names = [extent["size"] if isinstance(extent, dict) else None for extent in extents]
    strange = [name for name in names if name is not None and name not in sizes]
    if strange:
        raise ValueError(f"an input of the shape {extents}; the sizes are {list(sizes)}")
    pairs = list(zip(extents, names, strict=True))
    checked_type(dtype, [extent if name is None else sizes[name] for extent, name in pairs])
    shape: tuple[Any, ...] = tuple(
        extent if name is None else named(name) for extent, name in pairs
    )
    return TensorType(shape, dtype)


def _bounds(program: Program) -> tuple[str, ...]:
    """What has to hold of the sizes that its inputs name."""
    open_ = {str(n) for type_ in program.types for n in type_.shape if isinstance(n, Size)}
    least = [f"{name} >= {LEAST}" for name in program.sizes if name in open_]
    words = {text: set(re.findall(r"[A-Za-z_]\w*", text)) for text in program.conditions}
    return (*least, *(text for text, used in words.items() if used & open_))


def _without_fixed(type_: TensorType, captured: Captured) -> TensorType:
    """A type whose extents are numbers where conditions leave one."""
    if captured.conditions is None:
        return type_
    values = captured.conditions.opening.values
    fixed = {name: values[name] for name in captured.conditions.fixed}
    return resized_type(type_, at(fixed))


def _stand_in(type_: TensorType) -> Any:
    return _core.unreadable(type_.dtype, type_.shape, "an input has no elements yet")


def _check_results(results: tuple[Any, ...], stated: Any) -> None:
    found = tuple((type_.dtype, type_.shape) for type_ in map(type_of, results))
    if found != stated:
        raise ValueError(f"it gives {list(found)}, and the file says {stated}")
