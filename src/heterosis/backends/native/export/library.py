"""From captured programs to the bytes of a shared library, and the header that goes with it."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from heterosis import _core
from heterosis.backends import FILE, INSIDE, Entry, LibraryOptions
from heterosis.backends.native.codegen.emit import abi
from heterosis.backends.native.codegen.emit.program import function_for_known_sizes
from heterosis.backends.native.codegen.kernel import Machine
from heterosis.backends.native.codegen.target import AVX2, AVX512, FALLBACK, NEON, Target
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
    Level,
    interface,
    least,
)
from heterosis.backends.native.export.seal import sealed
from heterosis.backends.native.stages.pipeline import in_parts
from heterosis.ir.program import INPUT, Program, Value, reached
from heterosis.ir.strided import Strided
from heterosis.ir.types import DTYPES, TensorType
from heterosis.passes.preparation import Split
from heterosis.runtime.errors import ArgumentError
from heterosis.runtime.settings import settings

_ALIGNMENT = 64


# Kinds of processors, the best first.
_AARCH64 = "aarch64-linux"
LEVELS = {"x86-64-v4": AVX512, "x86-64-v3": AVX2, "x86-64": FALLBACK, _AARCH64: NEON}
_MOST_THREADS = 256


def library(entries: Sequence[Entry], name: str, options: LibraryOptions) -> dict[str, bytes]:
    """The shared library of these programs, and its file of parameters if it has one, by name. It
    holds code, and parameters as this code wants them, for each kind of processors that is asked
    for: this one's own unless some are named."""
    if options.weights not in (INSIDE, FILE):
        raise ArgumentError(
            f"export: got weights={options.weights!r}; expected {INSIDE!r}, in the library, or "
            f"{FILE!r}, in a file beside it that is mapped into memory."
        )
    if not 1 <= options.threads <= _MOST_THREADS:
        raise ArgumentError(
            f"export: got threads={options.threads}; expected 1 to {_MOST_THREADS}: how many may "
            "share a run."
        )
    weights, levels, objects = _Weights(), [], []
    for label in _levels(options.targets):
        writer = _Level(Machine(LEVELS[label], options.threads), weights)
        objects += [writer.object(i, entry) for i, entry in enumerate(entries)]
        levels.append(Level(label, writer.machine.target, tuple(writer.facts)))
    arrays = bytes(weights.bytes)
    outside = sealed(arrays, VERSION) if options.weights == FILE else None
    text, shown = interface(levels, name, options.threads, outside)
    objects.append(compile_object(text, least(levels)))
    data = {} if outside else {WEIGHTS: arrays}
    files = {
        f"lib{name}.so": sealed(shared_library(objects, shown, data, f"lib{name}.so"), VERSION)
    }
    return files | ({f"lib{name}.weights": outside} if outside else {})


def _levels(wanted: Sequence[str]) -> list[str]:
    """The levels that are written, the best first."""
    if not wanted:
        return [name for name, target in LEVELS.items() if target == host_target()]
    usable = usable_targets()
    here = [name for name, target in LEVELS.items() if target in usable or target == NEON]
    for level in wanted:
        if level not in here:
            raise ArgumentError(
                f"export: got target={level!r}; expected some of {', '.join(here)}. Code for other "
                "processors of this one's family, which packs parameters for them, cannot run here."
            )
    if _AARCH64 in wanted and len(set(wanted)) > 1:
        raise ArgumentError(
            f"export: got target={tuple(wanted)}; a library is for one family of processors. "
            f"Export a second one for {_AARCH64!r}."
        )
    return [name for name in here if name in wanted]


class _Weights:
    """The arrays that a library holds, each once however many programs and levels have it."""

    def __init__(self) -> None:
        # Room for what opening writes at the beginning of a file; so none is empty.
        self.bytes = bytearray(_ALIGNMENT)
        self._known: dict[bytes, int] = {}

    def place(self, array: _core.ndarray) -> int:
        """Where the elements of an array begin."""
        content = _bytes_of(array)
        key = hashlib.blake2b(content).digest()
        if key not in self._known:
            self._known[key] = len(self.bytes)
            self.bytes += content
            self.bytes += bytes(-len(self.bytes) % _ALIGNMENT)
        return self._known[key]


class _Level:
    """The entries so far for one kind of processors."""

    def __init__(self, machine: Machine, weights: _Weights):
        self.machine, self.weights = machine, weights
        self.facts: list[EntryFacts] = []

    def object(self, number: int, entry: Entry) -> bytes:
        """The machine code of an entry, which is added to the facts."""
        program, held = self._parts(entry)
        layouts = [Strided.contiguous(value.shape) for value in program.inputs]
        planned = scheduled(program, layouts, self.machine, views=False)
        code = function_for_known_sizes(planned)
        symbol = f"heterosis.{self.machine.target.name}.program{number}"
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
        """What a preparation gives for the arrays of an entry, by code that packs as the library's
        own: how parameters are packed depends on the processor."""
        needed = {node for node in reached(preparation.outputs) if node.primitive is INPUT}
        positions = [i for i, value in enumerate(preparation.inputs) if value.node in needed]
        inputs = tuple(preparation.inputs[i] for i in positions)
        program = Program(inputs, preparation.outputs, preparation.name)
        arrays = [entry.held[i] for i in positions]
        layouts = [Strided(a.shape, a._element_strides) for a in arrays]
        target = _packing_here_for(self.machine.target)
        planned = scheduled(program, layouts, Machine(target, self.machine.workers), views=False)
        code = function_for_known_sizes(planned)
        loaded = object_cache.load(code.key, lambda: code.emit(target), target)
        plan = plan_facts(program, planned, code).plan(loaded.address(abi.ENTRY))
        with _threads(self.machine.workers):  # as many as it has scratch memory for
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
                found.append((HELD, self.weights.place(held[value])))
            else:
                found.append((GIVEN, given[value]))
        return (*found, *((MADE, i) for i in range(len(program.outputs))))


def _packing_here_for(target: Target) -> Target:
    """The target, or one with its tiles and vectors and this processor's instructions."""
    if target in usable_targets():
        return target
    here = host_target()
    return replace(target, triple=here.triple, cpu=here.cpu, features=here.features)


@contextmanager
def _threads(count: int) -> Iterator[None]:
    before, settings.threads = settings.threads, count
    try:
        yield
    finally:
        settings.threads = before


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
