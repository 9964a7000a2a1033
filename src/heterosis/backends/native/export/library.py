"""From captured programs to the bytes of a shared library, and the header that goes with it."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator, Sequence
from itertools import starmap

from heterosis import _core
from heterosis.backends import FILE, INSIDE, Entry, LibraryOptions
from heterosis.backends.native.codegen.kernel import Machine
from heterosis.backends.native.codegen.kernels import lapack
from heterosis.backends.native.codegen.target import AVX2, AVX512, FALLBACK, NEON
from heterosis.backends.native.compile.compiler import compile_object, host_target
from heterosis.backends.native.export.cases import MOST, Case, cases
from heterosis.backends.native.export.elf import shared_library
from heterosis.backends.native.export.facts import (
    GIVEN,
    HELD,
    MADE,
    UNUSED,
    ArrayFacts,
    CaseFacts,
    EntryFacts,
    Level,
    SizeFacts,
)
from heterosis.backends.native.export.interface import VERSION, interface, least
from heterosis.backends.native.export.seal import sealed
from heterosis.backends.native.export.tables import HANDLE_BYTES, WEIGHTS
from heterosis.ir.formulas import Formulas
from heterosis.ir.primitives import factorizations
from heterosis.ir.primitives.families import Primitive
from heterosis.ir.program import INPUT, NUMBER, Program, Value, reached
from heterosis.ir.traced_sizes import LEAST, written
from heterosis.ir.types import DTYPES, ITEMSIZE, TensorType
from heterosis.runtime.errors import ArgumentError, UnsupportedError

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
        for entry in entries:
            writer.add(entry)
        objects += writer.objects
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
    family = host_target().triple
    here = [name for name, target in LEVELS.items() if target.triple == family or target == NEON]
    for level in wanted:
        if level not in here:
            raise ArgumentError(
                f"export: got target={level!r}; expected some of {', '.join(here)}. Code for "
                "x86-64 is written on x86-64 alone: parameters are packed by code like it."
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
        self.bytes = bytearray(HANDLE_BYTES)
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
    """The entries so far for one kind of processors, and the machine code of each."""

    def __init__(self, machine: Machine, weights: _Weights):
        self.machine, self.weights = machine, weights
        self.facts: list[EntryFacts] = []
        self.objects: list[bytes] = []
        self._symbols: dict[str, str] = {}  # by what the code of a program is

    def add(self, entry: Entry) -> None:
        """One more entry."""
        names = tuple(entry.values)
        arrays = [(label, value.type) for label, value, _ in entry.inputs]
        made = zip(entry.outputs, _types(entry.program.outputs), strict=True)
        planned = [self._case(case, names) for case in cases(entry, self.machine)]
        self.facts.append(
            EntryFacts(
                entry.name,
                tuple(starmap(_array, arrays)),
                tuple(starmap(_array, made)),
                tuple(_sizes(entry)),
                tuple(planned),
            )
        )

    def _case(self, case: Case, names: tuple[str, ...]) -> CaseFacts:
        entry = case.entry
        formulas = Formulas(names)
        for condition in case.conditions:
            formulas.require(condition)
        inputs = [value.type for _, value, _ in entry.inputs]
        return CaseFacts(
            self._symbol(case),
            self._buffers(case),
            tuple(_failure(message) for _, message in case.code.failures),
            formulas.whole(written(case.workspace)),
            tuple(_extents(formulas, t) for t in (*inputs, *_types(entry.program.outputs))),
            tuple(formulas.fraction(entry.floats[i]) for i in sorted(entry.floats)),
            tuple(formulas.whole(written(n)) for n in case.code.integers),
            tuple(formulas.table),
        )

    def _symbol(self, case: Case) -> str:
        """The name of the machine code of a program, which is compiled if it is new."""
        key = case.code.key
        if key not in self._symbols:
            name = f"heterosis.{self.machine.target.name}.program{len(self.objects)}"
            self._symbols[key] = name
            text = case.code.emit(self.machine.target, name, linkage="hidden")
            _refuse_lapack(case, text)
            self.objects.append(compile_object(text, self.machine.target))
        return self._symbols[key]

    def _buffers(self, case: Case) -> tuple[tuple[int, int], ...]:
        program = case.program
        used = {node for node in reached(program.outputs) if node.primitive is INPUT}
        found = []
        for value in program.inputs:
            if value.node.primitive is NUMBER:
                continue
            if value.node not in used:
                found.append((UNUSED, 0))
            elif value in case.held:
                found.append((HELD, self.weights.place(case.held[value])))
            else:
                found.append((GIVEN, case.given[value]))
        return (*found, *((MADE, i) for i in range(len(program.outputs))))


def _refuse_lapack(case: Case, text: str) -> None:
    """Raise an error where the code of a program calls LAPACK, which is in this package alone."""
    if lapack.PREFIX in text:
        used = sorted({str(primitive) for primitive in _factorizations(case.program)})
        raise UnsupportedError(
            f"{case.entry.name}: the program computes {', '.join(used)}, which is linear algebra "
            "(LAPACK) and cannot be exported so far. What depends on parameters alone is computed "
            "at export; export the part before and behind the rest, and compute that in between."
        )


def _factorizations(program: Program) -> Iterator[Primitive]:
    for node in reached(program.outputs):
        if node.primitive in vars(factorizations).values():
            yield node.primitive
        for inner in node.attributes.values():
            if isinstance(inner, Program):
                yield from _factorizations(inner)


def _sizes(entry: Entry) -> Iterator[SizeFacts]:
    for name in entry.values:
        has_one = any(name not in special.values for special in entry.special)
        yield SizeFacts(name, 1 if has_one else LEAST, MOST)


def _extents(formulas: Formulas, type_: TensorType) -> tuple[int, tuple[int, ...]]:
    """The words for the bytes and the extents of an array."""
    texts = [str(extent) for extent in type_.shape]
    size = "*".join(f"({text})" for text in (str(ITEMSIZE[type_.dtype]), *texts))
    return formulas.whole(size), tuple(map(formulas.whole, texts))


def _failure(message: str) -> str:
    """What a program fails with; expressions of sizes in it stay as they are, and a number that is
    known in a run only is left out: the text is the same for all of them."""
    return message.replace("\0", "").replace("index {}", "an index")


def _bytes_of(array: _core.ndarray) -> bytes:
    return bytes(array.asnumpy().tobytes())


def _types(values: Sequence[Value]) -> list[TensorType]:
    return [value.type for value in values]


def _array(name: str, type_: TensorType) -> ArrayFacts:
    return ArrayFacts(name, DTYPES.index(type_.dtype), tuple(map(str, type_.shape)))


# -- the header ---------------------------------------------------------------------------------

_C_TYPES = {
    "bool": "uint8_t", "int8": "int8_t", "uint8": "uint8_t", "int32": "int32_t",
    "int64": "int64_t", "float16": "uint16_t", "bfloat16": "uint16_t", "float32": "float",
    "float64": "double", "int16": "int16_t", "uint16": "uint16_t", "uint32": "uint32_t",
    "uint64": "uint64_t",
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
    sizes = list(entry.values)
    names = _identifiers([*sizes, *(label for label, _ in (*given, *made))])
    sizes, names = names[: len(sizes)], names[len(sizes) :]
    inputs, outputs = names[: len(given)], names[len(given) :]
    parameters = ["const void* library"]
    parameters += [_parameter(n, t, "const ") for n, (_, t) in zip(inputs, given, strict=True)]
    parameters += [_parameter(n, t, "") for n, (_, t) in zip(outputs, made, strict=True)]
    lists = [
        f"  const void* const inputs[] = {{{', '.join(inputs) or '0'}}};",
        f"  void* const outputs[] = {{{', '.join(outputs) or '0'}}};",
    ]
    described = [f"/* {entry.name}: 0, or a code for heterosis_message."]
    if sizes:
        described.append(f"   library: what {function}_at has given")
    described += [f"   {_in_comment(label)}: {type_}" for label, type_ in (*given, *made)]
    return [
        *(_at_sizes(function, number, sizes) if sizes else []),
        "\n".join(described) + " */",
        f"static inline int64_t {function}({', '.join(parameters)}, void* workspace) {{",
        *lists,
        f"  return heterosis_run(library, {number}, inputs, outputs, workspace);",
        "}",
        "",
    ]


def _in_comment(label: str) -> str:
    return label.replace("*/", "* /").replace("/*", "/ *")


def _at_sizes(function: str, number: int, sizes: Sequence[str]) -> list[str]:
    """What prepares an entry for some sizes."""
    parameters = ", ".join(f"int64_t {size}" for size in sizes)
    return [
        f"/* What {function} takes in place of the library, for some sizes: it is written to",
        f"   memory, heterosis_at_bytes(library, {number}) of it. */",
        f"static inline const void* {function}_at(const void* library, {parameters},",
        "    void* memory, int64_t* code) {",
        f"  const int64_t sizes[] = {{{', '.join(sizes)}}};",
        f"  return heterosis_at(library, {number}, sizes, memory, code);",
        "}",
        "",
    ]


def _parameter(name: str, type_: TensorType, constant: str) -> str:
    """An array, whose length C is told if it is known."""
    if not all(type(extent) is int for extent in type_.shape):
        return f"{constant}{_C_TYPES[type_.dtype]}* {name}"
    size = max(1, math.prod(type_.shape))
    return f"{constant}{_C_TYPES[type_.dtype]} {name}[{size}]"


def _identifiers(labels: Sequence[str]) -> list[str]:
    """The labels as names in C and C++, each another one. What is written in capitals may be a
    macro of the C library."""
    found: list[str] = []
    for label in labels:
        name = re.sub(r"\W+", "_", label).strip("_") or "array"
        name = f"_{name}" if name[0].isdigit() else name
        if (len(name) > 1 and name.isupper()) or name.startswith("heterosis_"):
            name += "_"
        while name in found or name in _TAKEN_NAMES:
            name += "_"
        found.append(name)
    return found


_OWN_NAMES = ("library", "workspace", "inputs", "outputs", "sizes", "memory", "code")
_KEYWORDS = """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t
    char8_t class co_await co_return co_yield compl concept const const_cast consteval constexpr
    constinit continue decltype default delete do double dynamic_cast else enum explicit export
    extern false final float for friend goto if import inline int long module mutable namespace new
    noexcept not not_eq nullptr operator or or_eq override private protected public register
    reinterpret_cast requires restrict return short signed sizeof static static_assert static_cast
    struct switch template this thread_local throw true try typedef typeid typename typeof
    typeof_unqual union unsigned using virtual void volatile wchar_t while xor xor_eq
    linux unix stdin stdout stderr
"""
_TAKEN_NAMES = frozenset((*_OWN_NAMES, *_KEYWORDS.split()))
