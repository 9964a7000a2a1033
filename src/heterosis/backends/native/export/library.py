"""From captured programs to the bytes of a shared library, and the header that goes with it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

from heterosis import _core
from heterosis.backends import Entry
from heterosis.backends.native.codegen.emit import abi
from heterosis.backends.native.codegen.emit.program import function_for_known_sizes
from heterosis.backends.native.codegen.kernel import Machine
from heterosis.backends.native.codegen.target import AVX2, AVX512, FALLBACK, Target
from heterosis.backends.native.compile import object_cache
from heterosis.backends.native.compile.compiler import (
    compile_object,
    host_target,
    usable_targets,
)
from heterosis.backends.native.compile.plans import plan_facts
from heterosis.backends.native.compile.whole import scheduled
from heterosis.backends.native.export.elf import shared_library
from heterosis.backends.native.export.interface import (
    GIVEN,
    HELD,
    MADE,
    UNUSED,
    VERSION,
    WEIGHTS,
    ArrayFacts,
    EntryFacts,
    interface,
)
from heterosis.backends.native.export.seal import sealed
from heterosis.backends.native.stages.pipeline import in_parts
from heterosis.ir.program import INPUT, Program, Value, reached
from heterosis.ir.strided import Strided
from heterosis.ir.types import DTYPES, TensorType
from heterosis.passes.preparation import Split
from heterosis.runtime.errors import ArgumentError, UnsupportedError

_ALIGNMENT = 64


LEVELS = {"x86-64": FALLBACK, "x86-64-v3": AVX2, "x86-64-v4": AVX512}


def library(entries: Sequence[Entry], name: str, level: str | None) -> bytes:
    """The shared library of these programs, with one thread, for processors of a level or better:
    this one's own unless one is named."""
    target = _target(level)
    writer = _Library(Machine(target, 1))
    objects = [writer.object(i, entry) for i, entry in enumerate(entries)]
    text, shown = interface(writer.facts, target, name)
    objects.append(compile_object(text, FALLBACK))
    weights = {WEIGHTS: bytes(writer.weights)}
    return sealed(shared_library(objects, shown, weights, f"lib{name}.so"), VERSION)


def _target(level: str | None) -> Target:
    if host_target() not in LEVELS.values():
        raise UnsupportedError(
            "export: native libraries are written for x86-64 so far, and this processor is "
            f"{host_target().name}. Export on an x86-64 processor."
        )
    if level is None:
        return host_target()
    here = [name for name, target in LEVELS.items() if target in usable_targets()]
    if level not in here:
        raise ArgumentError(
            f"export: got target={level!r}; expected one of {', '.join(here)}: parameters are "
            "packed by code for the library's own processor, which this one must be able to run."
        )
    return LEVELS[level]


class _Library:
    """The entries so far, and the arrays that they hold."""

    def __init__(self, machine: Machine):
        self.machine = machine
        self.facts: list[EntryFacts] = []
        self.weights = bytearray(_ALIGNMENT)  # an empty library has an address for them too

    def object(self, number: int, entry: Entry) -> bytes:
        """The machine code of an entry, which is added to the facts."""
        program, held = self._parts(entry)
        layouts = [Strided.contiguous(value.shape) for value in program.inputs]
        planned = scheduled(program, layouts, self.machine, views=False)
        code = function_for_known_sizes(planned)
        symbol = f"heterosis.program{number}"
        self.facts.append(
            EntryFacts(
                entry.name,
                symbol,
                tuple(_array(label, value.type) for label, value, _ in entry.inputs),
                tuple(map(_array, entry.outputs, _types(program.outputs))),
                self._buffers(entry, program, held),
                planned.workspace,
                tuple(message for _, message in code.failures),
            )
        )
        text = code.emit(self.machine.target, symbol, linkage="hidden")
        return compile_object(text, self.machine.target)

    def _parts(self, entry: Entry) -> tuple[Program, dict[Value, _core.ndarray]]:
        """The program that runs, and the arrays that its further inputs are: what depends on these
        alone has been computed."""
        program = entry.program
        held = {program.inputs[i]: array for i, array in entry.held.items()}
        found = in_parts(program, list(held), self.machine)
        if not isinstance(found, Split):
            return found, dict(zip(_at(found, entry.held), entry.held.values(), strict=True))
        arrays = self._computed(found.preparation, entry)
        own = dict(zip(_at(found.rest, entry.held), entry.held.values(), strict=True))
        further = found.rest.inputs[len(found.rest.inputs) - len(arrays) :]
        return found.rest, own | dict(zip(further, arrays, strict=True))

    def _computed(self, preparation: Program, entry: Entry) -> list[_core.ndarray]:
        """What a preparation gives for the arrays of an entry, by the library's own code: how
        parameters are packed depends on the processor."""
        needed = {node for node in reached(preparation.outputs) if node.primitive is INPUT}
        positions = [i for i, value in enumerate(preparation.inputs) if value.node in needed]
        inputs = tuple(preparation.inputs[i] for i in positions)
        program = Program(inputs, preparation.outputs, preparation.name)
        arrays = [entry.held[i] for i in positions]
        layouts = [Strided(a.shape, a._element_strides) for a in arrays]
        planned = scheduled(program, layouts, self.machine, views=False)
        code, target = function_for_known_sizes(planned), self.machine.target
        loaded = object_cache.load(code.key, lambda: code.emit(target), target)
        plan = plan_facts(program, planned, code).plan(loaded.address(abi.ENTRY))
        return list(_core.run_plan(plan, arrays))

    def _buffers(
        self, entry: Entry, program: Program, held: dict[Value, _core.ndarray]
    ) -> tuple[tuple[int, int], ...]:
        used = {node for node in reached(program.outputs) if node.primitive is INPUT}
        given = {program.inputs[at]: i for i, (_, _, at) in enumerate(entry.inputs) if at >= 0}
        found = []
        for value in program.inputs:
            if value.node not in used:
                found.append((UNUSED, 0))
            elif value in held:
                found.append((HELD, self._stored(held[value])))
            else:
                found.append((GIVEN, given[value]))
        return (*found, *((MADE, i) for i in range(len(program.outputs))))

    def _stored(self, array: _core.ndarray) -> int:
        """Where the elements of an array begin among all that the library holds."""
        at = len(self.weights)
        self.weights += _bytes_of(array)
        self.weights += bytes(-len(self.weights) % _ALIGNMENT)
        return at


def _at(program: Program, positions: Iterable[int]) -> list[Value]:
    return [program.inputs[i] for i in positions]


def _bytes_of(array: _core.ndarray) -> bytes:
    return bytes(array.asnumpy().tobytes())


def _types(values: Sequence[Value]) -> list[TensorType]:
    return [value.type for value in values]


def _array(name: str, type_: TensorType) -> ArrayFacts:
    return ArrayFacts(name, DTYPES.index(type_.dtype), type_.shape, type_.nbytes)


# -- the header ---------------------------------------------------------------------------------

_C_TYPES = {
    "bool": "uint8_t", "int8": "int8_t", "uint8": "uint8_t", "int32": "int32_t",
    "int64": "int64_t", "float16": "uint16_t", "bfloat16": "uint16_t", "float32": "float",
    "float64": "double",
}  # fmt: skip


def header(entries: Sequence[Entry], name: str) -> str:
    """A C header with a typed function for each entry."""
    word = _word(name)
    lines = [
        f"/* What lib{name}.so computes. Made by heterosis.export. */",
        f"#ifndef {word.upper()}_H", f"#define {word.upper()}_H", "", '#include "heterosis.h"', "",
    ]  # fmt: skip
    for i, entry in enumerate(entries):
        lines += _typed(word, i, entry)
    return "\n".join([*lines, f"#endif /* {word.upper()}_H */", ""])


def _word(name: str) -> str:
    return re.sub(r"\W", "_", name)


def _typed(word: str, number: int, entry: Entry) -> list[str]:
    function = f"{word}_{_word(entry.name)}"
    given = [(label, value.type) for label, value, _ in entry.inputs]
    made = list(zip(entry.outputs, _types(entry.program.outputs), strict=True))
    names = _identifiers([label for label, _ in (*given, *made)])
    inputs, outputs = names[: len(given)], names[len(given) :]
    parameters = ["const void* library"]
    parameters += [_parameter(n, t, "const ") for n, (_, t) in zip(inputs, given, strict=True)]
    parameters += [_parameter(n, t, "") for n, (_, t) in zip(outputs, made, strict=True)]
    lists = [
        f"  const void* const inputs[] = {{{', '.join(inputs) or '0'}}};",
        f"  void* const outputs[] = {{{', '.join(outputs) or '0'}}};",
    ]
    described = [f"/* {entry.name}: 0, or a code for heterosis_message."]
    described += [f"   {label}: {type_}" for label, type_ in (*given, *made)]
    return [
        "\n".join(described) + " */",
        f"static inline int64_t {function}({', '.join(parameters)}, void* workspace) {{",
        *lists,
        f"  return heterosis_run(library, {number}, inputs, outputs, workspace);",
        "}",
        "",
    ]


def _parameter(name: str, type_: TensorType, constant: str) -> str:
    size = max(1, math.prod(type_.shape))
    return f"{constant}{_C_TYPES[type_.dtype]} {name}[{size}]"


def _identifiers(labels: Sequence[str]) -> list[str]:
    """The labels as names in C, each another one."""
    found: list[str] = []
    for label in labels:
        name = re.sub(r"\W+", "_", label).strip("_") or "array"
        name = f"_{name}" if name[0].isdigit() else name
        while name in (*found, "library", "workspace", "inputs", "outputs"):
            name += "_"
        found.append(name)
    return found
