"""Saved programs, read. Every call in a file goes through its operation's own rules, once before
anything is returned: a file can say nothing that a user could not."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from heterosis import _core
from heterosis.capture import plain
from heterosis.capture.attempts import capture
from heterosis.capture.compiled import Call, Compiled
from heterosis.capture.saving import VERSION, typed
from heterosis.capture.signatures import Signature, arrays_of, bound, signature_of, type_of
from heterosis.capture.stored_calls import (
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
from heterosis.ir.program import ASSEMBLE
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

    It computes the same, bit for bit, for inputs of the types and shapes that were captured.
    """
    with opened(path, _KIND) as source:
        return _Reader(source.name).read(source.whole())


class Loaded(Compiled):
    """A saved function. `inputs` and `outputs` have the names, shapes and types of what its first
    program takes and gives; `signatures` has those of all."""

    def __init__(
        self, name: str, parameters: inspect.Signature, programs: Sequence[Program],
        arrays: dict[str, _core.ndarray],
    ):  # fmt: skip
        super().__init__(self._run)
        self.__name__ = self.__qualname__ = name
        self.__signature__ = parameters
        self._saved, self._arrays = programs, arrays
        self.signatures = tuple(program.signature for program in programs)
        self.examples.update({program.key: program.example for program in programs})

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
        key = _key(given)
        program = next((program for program in self._saved if program.key == key), None)
        if program is None:
            known = "".join(f"\n  {signature}" for signature in self.signatures)
            raise ArgumentError(
                f"{self.__name__}: called with {signature_of(given, ()).taken}; the file has "
                f"programs for{known}\nConvert the inputs, or call the network with such ones "
                "before it is saved."
            )
        arrays = program.arrays(arrays_of(given))
        run(program.calls, arrays)
        return program.returned(arrays)

    def __repr__(self) -> str:
        return f"<saved program {self.__name__}{self.signatures[0]}>"


def _key(given: Mapping[str, Any]) -> str:
    """Equal for arguments that one program serves."""

    def leaf(value: Any) -> Any:
        return str(type_of(value)) if isinstance(value, _core.ndarray) else {"object": id(value)}

    return repr({name: plain.encoded(tree, leaf) for name, tree in given.items()})


@dataclass
class Program:
    """The calls for one kind of arguments."""

    example: Call
    key: str
    order: list[int]  # the numbers of the arrays among the arguments
    held: list[_core.ndarray]
    calls: list[Operation | Control]
    result: Any
    signature: Signature

    def arrays(self, inputs: Sequence[Any]) -> list[Any]:
        """What the first call finds."""
        numbered = dict(zip(self.order, inputs, strict=True))
        return [numbered[i] for i in range(len(inputs))] + self.held

    def returned(self, arrays: list[Any]) -> Any:
        """What the last call has left to return."""
        return valued(self.result, arrays)


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
        if facts["version"] != VERSION:
            raise ValueError(f"version {facts['version']!r} of the format; expected {VERSION}")
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
        inputs = [_stand_in(*given) for given in facts["inputs"]]
        call = parameters.bind_partial()
        call.arguments.update({n: valued(given, inputs) for n, given in facts["arguments"].items()})
        given = bound(parameters, call.args, call.kwargs)
        places = [next(i for i, a in enumerate(inputs) if a is own) for own in arrays_of(given)]
        if sorted(places) != list(range(len(inputs))):
            raise ValueError(f"the arguments have the inputs {places}; expected each of them once")
        found = Program(
            (call.args, call.kwargs), _key(given), places,
            [self.held[name] for name in facts["held"]],
            [call_of(given) for given in facts["calls"]], facts["result"],
            signature_of(given, ()),
        )  # fmt: skip
        self._check(found, inputs)
        return found

    def _check(self, program: Program, inputs: list[Any]) -> None:
        """Go through all the calls, with no elements; find what the program gives."""
        where = self.where

        def followed(inputs: list[Any]) -> Any:
            self.where = where
            arrays = [*inputs, *program.held]
            run(program.calls, arrays, self)
            self.where = f"{where}, the result"
            returned = program.returned(arrays)
            outputs = signature_of({}, returned).outputs
            program.signature = replace(program.signature, outputs=outputs)
            return returned

        _check_assembled(capture(followed, (inputs,), {}).program)

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
        default = valued(facts["default"], [])
    return inspect.Parameter(facts["name"], _KINDS[facts["kind"]], default=default)


class _Absent:
    """Stands for a default that is no plain value: the program has what followed from it."""

    def __repr__(self) -> str:
        return "..."


_ABSENT = _Absent()


def _stand_in(dtype: str, shape: list[int]) -> Any:
    type_ = checked_type(dtype, shape)
    return _core.unreadable(type_.dtype, type_.shape, "an input has no elements yet")


def _check_results(results: tuple[Any, ...], stated: Any) -> None:
    found = [typed(type_of(array)) for array in results]
    if found != stated:
        raise ValueError(f"it gives {found}, and the file says {stated}")
