"""The functions of `heterosis.h`, which every exported library shows, as LLVM IR.

They read tables that are written beside them, and call the programs. Nothing here has a state: a
library may be used by any number of threads at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from heterosis.backends.native.codegen.emit.builder import (
    I1,
    I8,
    I32,
    I64,
    PTR,
    Function,
    Module,
    Type,
    Value,
    constant,
)
from heterosis.backends.native.codegen.target import AVX2, AVX512, FALLBACK, Target

VERSION = 1  # of the interface: that of `heterosis.h`
WEIGHTS = "heterosis.weights"  # the symbol of the arrays that a library holds
GIVEN, HELD, MADE, UNUSED = range(4)  # what a buffer of a program is

# Codes that functions return; `heterosis.h` has the same.
_FOREIGN, _NO_ENTRY, _NULL, _WORKSPACE, _PROCESSOR, _OTHER_VERSION = range(-1, -7, -1)
_MESSAGES = {
    0: "no error",
    _FOREIGN: "this is not the library that heterosis_open gave: pass on what it returned",
    _NO_ENTRY: "there is no such entry, array, or axis: ask heterosis_entries and the like first",
    _NULL: "an address is NULL: every input and output needs memory of its own",
    _WORKSPACE: "the workspace is NULL or not aligned to 64 bytes: use aligned_alloc(64, ...)",
    _PROCESSOR: "this processor lacks instructions that the library was made of: export it with "
    "another target, or use another machine",
    _OTHER_VERSION: "the program was compiled with another version of heterosis.h",
}
_FAILED = "the program failed"

# cpuid's bits: (leaf, register, bits). Registers are numbered as cpuid gives them: a, b, c, d.
_LEAF_1 = (1, 2, 1 << 12 | 1 << 27 | 1 << 29)  # FMA, OSXSAVE, F16C
_NEEDS = {
    FALLBACK.name: ((), 0),
    AVX2.name: ((_LEAF_1, (7, 1, 1 << 3 | 1 << 5 | 1 << 8)), 0x6),  # BMI, AVX2, BMI2
    AVX512.name: (
        (_LEAF_1, (7, 1, 1 << 3 | 1 << 5 | 1 << 8 | 0xD003_0000)),  # and F, DQ, CD, BW, VL
        0xE6,
    ),
}


@dataclass(frozen=True)
class ArrayFacts:
    """An array that callers give or get."""

    name: str
    dtype: int  # the position among the element types, which is the number of `heterosis.h`
    shape: tuple[int, ...]
    nbytes: int


@dataclass(frozen=True)
class EntryFacts:
    """A program, and what its buffers are: (GIVEN, HELD, MADE or UNUSED, position or offset)."""

    name: str
    symbol: str
    inputs: tuple[ArrayFacts, ...]
    outputs: tuple[ArrayFacts, ...]
    buffers: tuple[tuple[int, int], ...]
    workspace: int
    failures: tuple[str, ...]


def interface(entries: Sequence[EntryFacts], target: Target, name: str) -> tuple[str, list[str]]:
    """The LLVM IR of the functions, and their names."""
    module = Module(target=FALLBACK)
    writer = _Interface(module, entries)
    writer.emit(target, name)
    shown = [f.name for f in module.functions if f.linkage == ""]
    outside = [f"@{WEIGHTS} = external hidden global i8"]
    outside += [f"declare hidden i64 @{entry.symbol}(ptr)" for entry in entries]
    return "\n".join([*outside, module.text()]), shown


# Fields of a row of the table of entries, of which each has the fields of an array behind it.
_ENTRY = (
    "name",
    "workspace",
    "inputs",
    "outputs",
    "arrays",
    "buffers",
    "count",
    "failures",
    "many",
)
_ARRAY = ("name", "dtype", "rank", "bytes", "extents")


class _Interface:
    def __init__(self, module: Module, entries: Sequence[EntryFacts]):
        self.module, self.entries = module, entries
        self.texts = bytearray()
        self.known: dict[str, int] = {}
        self.most = max(len(entry.buffers) for entry in entries)

    def emit(self, target: Target, name: str) -> None:
        self._write_tables(name)
        self._emit_serial()
        self._emit_open(target)
        self._answer("name", lambda f, _: self._text_at(f, constant(I64, self.text(name))), PTR)
        self._answer("entries", lambda f, _: constant(I64, len(self.entries)))
        self._ask_entry("entry_name", "name", PTR)
        self._ask_entry("workspace_bytes", "workspace")
        for side in ("inputs", "outputs"):
            self._ask_entry(side, side)
            one = side[:-1]
            self._ask_array(f"{one}_name", side, "name", PTR)
            self._ask_array(f"{one}_dtype", side, "dtype")
            self._ask_array(f"{one}_rank", side, "rank")
            self._ask_array(f"{one}_bytes", side, "bytes")
            self._ask_extent(f"{one}_extent", side)
        self._emit_run()
        self._emit_message()
        texts = [byte - 256 if byte > 127 else byte for byte in self.texts]
        self.module.table("heterosis.texts", I8, texts)

    # -- tables -------------------------------------------------------------------------------

    def text(self, text: str) -> int:
        """Where a text begins among all."""
        if text not in self.known:
            self.known[text] = len(self.texts)
            self.texts += text.encode() + b"\0"
        return self.known[text]

    def _write_tables(self, name: str) -> None:
        rows: list[int] = []
        arrays: list[int] = []
        extents: list[int] = [0]
        buffers: list[int] = []
        failures: list[int] = [0]
        for entry in self.entries:
            rows += [
                self.text(entry.name), entry.workspace, len(entry.inputs), len(entry.outputs),
                len(arrays) // len(_ARRAY), len(buffers) // 2, len(entry.buffers),
                len(failures), len(entry.failures),
            ]  # fmt: skip
            buffers += [number for pair in entry.buffers for number in pair]
            failures += map(self.text, entry.failures)
            for one in (*entry.inputs, *entry.outputs):
                rank = len(one.shape)
                arrays += [self.text(one.name), one.dtype, rank, one.nbytes, len(extents)]
                extents += one.shape
        for label, numbers in (
            ("rows", rows), ("arrays", arrays), ("extents", extents), ("buffers", buffers),
            ("failures", failures),
        ):  # fmt: skip
            self.module.table(f"heterosis.{label}", I64, numbers)
        self.module.pointers("heterosis.programs", [f"@{entry.symbol}" for entry in self.entries])

    def _number(self, f: Function, table: str, index: Value) -> Value:
        return f.load(I64, f.offset(I64, Value(PTR, f"@heterosis.{table}"), index))

    def _text_at(self, f: Function, at: Value) -> Value:
        return f.offset(I8, Value(PTR, "@heterosis.texts"), at)

    def _of_entry(self, f: Function, entry: Value, field: str) -> Value:
        at = f.add_size(f.mul_size(entry, len(_ENTRY)), _ENTRY.index(field))
        return self._number(f, "rows", f.i64(at))

    def _of_array(self, f: Function, array: Value, field: str) -> Value:
        at = f.add_size(f.mul_size(array, len(_ARRAY)), _ARRAY.index(field))
        return self._number(f, "arrays", f.i64(at))

    # -- checks -------------------------------------------------------------------------------

    def _function(
        self, name: str, parameters: Sequence[tuple[str, Type]], returns: Type
    ) -> Function:
        return self.module.function(
            f"heterosis_{name}", [("library", PTR), *parameters], returns, linkage=""
        )

    def _check(self, f: Function, holds: Value, code: int, otherwise: Type = I64) -> None:
        """Return the code, or NULL, unless the condition holds."""
        wrong = f.binary("xor", holds, constant(I1, 1))
        refused = constant(I64, code) if otherwise == I64 else Value(PTR, "null")
        f.leave_if(wrong, lambda: f.ret(refused))

    def _check_library(self, f: Function, returns: Type = I64) -> None:
        given = f.parameters[0]
        own = f.compare("eq", given, Value(PTR, "@heterosis.rows"))
        self._check(f, own, _FOREIGN, returns)

    def _check_index(self, f: Function, index: Value, count: Value, returns: Type = I64) -> None:
        self._check(f, f.compare("ult", index, count), _NO_ENTRY, returns)

    def _check_entry(self, f: Function, entry: Value, returns: Type = I64) -> None:
        self._check_library(f, returns)
        self._check_index(f, entry, constant(I64, len(self.entries)), returns)

    # -- questions ----------------------------------------------------------------------------

    def _answer(
        self, name: str, found: Callable[[Function, Value], Value], returns: Type = I64
    ) -> None:
        f = self._function(name, [], returns)
        self._check_library(f, returns)
        f.ret(found(f, f.parameters[0]))

    def _ask_entry(self, name: str, field: str, returns: Type = I64) -> None:
        f = self._function(name, [("number", I64)], returns)
        entry = f.parameters[1]
        self._check_entry(f, entry, returns)
        found = self._of_entry(f, entry, field)
        f.ret(self._text_at(f, found) if returns == PTR else found)

    def _array(self, f: Function, side: str, returns: Type) -> Value:
        """The row of the array that a function asks for by its entry and position."""
        entry, position = f.parameters[1:3]
        self._check_entry(f, entry, returns)
        self._check_index(f, position, self._of_entry(f, entry, side), returns)
        first = self._of_entry(f, entry, "arrays")
        if side == "outputs":
            first = f.add(first, self._of_entry(f, entry, "inputs"))
        return f.add(first, position)

    def _ask_array(self, name: str, side: str, field: str, returns: Type = I64) -> None:
        f = self._function(name, [("number", I64), ("position", I64)], returns)
        found = self._of_array(f, self._array(f, side, returns), field)
        f.ret(self._text_at(f, found) if returns == PTR else found)

    def _ask_extent(self, name: str, side: str) -> None:
        f = self._function(name, [("number", I64), ("position", I64), ("axis", I64)], I64)
        array, axis = self._array(f, side, I64), f.parameters[3]
        self._check_index(f, axis, self._of_array(f, array, "rank"))
        f.ret(self._number(f, "extents", f.add(self._of_array(f, array, "extents"), axis)))

    def _emit_message(self) -> None:
        """`heterosis_message(library, entry, code)`: a text that stays, whatever is asked."""
        f = self._function("message", [("number", I64), ("code", I64)], PTR)
        library, entry, code = f.parameters
        for number, text in _MESSAGES.items():
            self._tell_if(f, f.compare("eq", code, constant(I64, number)), text)
        self._tell_if(f, f.compare("ne", library, Value(PTR, "@heterosis.rows")), _FAILED)
        self._tell_if(f, f.compare("uge", entry, constant(I64, len(self.entries))), _FAILED)
        which = f.sub(f.binary("and", code, constant(I64, 0xFFFF)), constant(I64, 1))
        self._tell_if(f, f.compare("uge", which, self._of_entry(f, entry, "many")), _FAILED)
        at = self._number(f, "failures", f.add(self._of_entry(f, entry, "failures"), which))
        f.ret(self._text_at(f, at))

    def _tell_if(self, f: Function, condition: Value, text: str) -> None:
        at = self._text_at(f, constant(I64, self.text(text)))
        f.leave_if(condition, lambda: f.ret(at))

    # -- opening ------------------------------------------------------------------------------

    def _emit_open(self, target: Target) -> None:
        """`heterosis_open(version, code)`: what all other functions take, or NULL and why."""
        f = self.module.function(
            "heterosis_open", [("version", I64), ("code", PTR)], PTR, linkage=""
        )
        version, code = f.parameters

        def tell(number: int) -> None:
            def store() -> Sequence[Value]:
                f.store(constant(I64, number), code)
                return ()

            f.if_else(f.compare("ne", code, Value(PTR, "null")), store)

        def refuse(number: int) -> Callable[[], None]:
            def leave() -> None:
                tell(number)
                f.ret(Value(PTR, "null"))

            return leave

        f.leave_if(f.compare("ne", version, constant(I64, VERSION)), refuse(_OTHER_VERSION))
        leaves, states = _NEEDS[target.name]
        if leaves:
            highest = _cpuid(f, 0)[0]
            f.leave_if(f.compare("ult", highest, constant(I32, 7)), refuse(_PROCESSOR))
        for leaf, register, bits in leaves:
            mask = constant(I32, bits - (1 << 32) if bits >> 31 else bits)
            have = f.binary("and", _cpuid(f, leaf)[register], mask)
            f.leave_if(f.compare("ne", have, mask), refuse(_PROCESSOR))
        if states:
            mask = constant(I32, states)
            have = f.binary("and", _saved_states(f), mask)
            f.leave_if(f.compare("ne", have, mask), refuse(_PROCESSOR))
        tell(0)
        f.ret(Value(PTR, "@heterosis.rows"))

    # -- running ------------------------------------------------------------------------------

    def _emit_serial(self) -> None:
        """A parallel loop on the calling thread, share by share as threads would take them."""
        parameters = [("pool", PTR), ("body", PTR), ("context", PTR)]
        f = self.module.function("heterosis.serial", [*parameters, ("count", I64), ("grain", I64)])
        _, body, context, count, grain = f.parameters
        with f.loop(constant(I64, 0), count, grain) as share:
            end = f.min_size(count, f.add(share.index, grain))
            f.call_pointer(body, [context, share.index, f.i64(end), constant(I64, 0)])
        f.ret()

    def _emit_run(self) -> None:
        """`heterosis_run(library, entry, inputs, outputs, workspace)`."""
        f = self._function(
            "run", [("number", I64), ("inputs", PTR), ("outputs", PTR), ("workspace", PTR)], I64
        )
        _, entry, inputs, outputs, workspace = f.parameters
        buffers = f.allocate(PTR, self.most)
        runtime, call = f.allocate(PTR, 3), f.allocate(PTR, 5)
        null = Value(PTR, "null")
        self._check_entry(f, entry)
        for given, side in ((inputs, "inputs"), (outputs, "outputs")):
            none = f.compare("eq", self._of_entry(f, entry, side), constant(I64, 0))
            there = f.compare("ne", given, null)
            self._check(f, f.binary("or", none, there), _NULL)
        self._check_workspace(f, entry, workspace)
        with f.loop(constant(I64, 0), self._of_entry(f, entry, "count")) as each:
            at = f.mul_size(f.add(self._of_entry(f, entry, "buffers"), each.index), 2)
            kind = self._number(f, "buffers", f.i64(at))
            which = self._number(f, "buffers", f.i64(f.add_size(at, 1)))
            address = self._address(f, kind, which, inputs, outputs)
            unused = f.compare("eq", kind, constant(I64, UNUSED))
            self._check(f, f.binary("or", unused, f.compare("ne", address, null)), _NULL)
            f.store(address, f.offset(PTR, buffers, each.index))
        fields = [null, Value(PTR, "@heterosis.serial"), constant(I64, 1)]
        for i, field in enumerate(fields):
            f.store(field, f.offset(PTR, runtime, i))
        for i, field in enumerate([buffers, null, null, workspace, runtime]):
            f.store(field, f.offset(PTR, call, i))
        program = f.load(PTR, f.offset(PTR, Value(PTR, "@heterosis.programs"), entry))
        f.ret(f.call_pointer(program, [call], I64))

    def _check_workspace(self, f: Function, entry: Value, workspace: Value) -> None:
        none = f.compare("eq", self._of_entry(f, entry, "workspace"), constant(I64, 0))
        number = f.convert("ptrtoint", workspace, I64)
        rest = f.binary("and", number, constant(I64, 63))
        aligned = f.compare("eq", rest, constant(I64, 0))
        there = f.binary("and", aligned, f.compare("ne", workspace, Value(PTR, "null")))
        self._check(f, f.binary("or", none, there), _WORKSPACE)

    def _address(
        self, f: Function, kind: Value, which: Value, inputs: Value, outputs: Value
    ) -> Value:
        def is_(number: int) -> Value:
            return f.compare("eq", kind, constant(I64, number))

        def listed(number: int, given: Value, otherwise: Value) -> Value:
            found = f.if_else(
                is_(number), lambda: [f.load(PTR, f.offset(PTR, given, which))], lambda: [otherwise]
            )
            return found[0]

        held = f.offset(I8, Value(PTR, f"@{WEIGHTS}"), which)
        found = f.select(is_(HELD), held, Value(PTR, "null"))
        return listed(MADE, outputs, listed(GIVEN, inputs, found))


# -- the processor ------------------------------------------------------------------------------


def _cpuid(f: Function, leaf: int) -> list[Value]:
    """What the instruction says of a leaf: registers a, b, c and d."""
    kind = "{ i32, i32, i32, i32 }"
    constraints = "={ax},={bx},={cx},={dx},{ax},{cx},~{dirflag},~{fpsr},~{flags}"
    asm = f'call {kind} asm sideeffect "cpuid", "{constraints}"(i32 {leaf}, i32 0)'
    found = f.emit(Type(kind), asm)
    return [f.emit(I32, f"extractvalue {kind} {found.text}, {i}") for i in range(4)]


def _saved_states(f: Function) -> Value:
    """Which registers the system saves when it turns to another program."""
    kind = "{ i32, i32 }"
    asm = f'call {kind} asm sideeffect "xgetbv", "={{ax}},={{dx}},{{cx}}"(i32 0)'
    found = f.emit(Type(kind), asm)
    return f.emit(I32, f"extractvalue {kind} {found.text}, 0")
