"""The functions of `heterosis.h`, which every exported library shows, as LLVM IR.

They read tables that are written beside them, and call the programs. Nothing here has a state: a
library may be used by any number of threads at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

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
from heterosis.backends.native.codegen.target import AVX2, AVX512, FALLBACK, NEON, Target
from heterosis.backends.native.export.pool import WORKERS, emit_pool
from heterosis.backends.native.export.weights import emit_map, emit_unmap

VERSION = 1  # of the interface: that of `heterosis.h`
WEIGHTS = "heterosis.weights"  # the symbol of the arrays that a library holds
GIVEN, HELD, MADE, UNUSED = range(4)  # what a buffer of a program is

# Codes that functions return; `heterosis.h` has the same.
_FOREIGN, _NO_ENTRY, _NULL, _WORKSPACE, _PROCESSOR, _OTHER_VERSION, _POOL, _WEIGHTS = range(
    -1, -9, -1
)
_MESSAGES = {
    0: "no error",
    _FOREIGN: "this is not the library that heterosis_open gave: pass on what it returned",
    _NO_ENTRY: "there is no such entry, array, or axis: ask heterosis_entries and the like first",
    _NULL: "an address is NULL: every input and output needs memory of its own",
    _WORKSPACE: "the workspace is NULL or not aligned to 64 bytes: use aligned_alloc(64, ...)",
    _PROCESSOR: "this processor lacks instructions that the library was made of: export it with "
    "another target, or use another machine",
    _OTHER_VERSION: "the program was compiled with another version of heterosis.h",
    _POOL: "the pool is not aligned to 64 bytes, has no function, or has other than 1 to "
    "heterosis_threads threads",
    _WEIGHTS: "the parameters are in a file, lib<name>.weights, which was not given, cannot be "
    "read, is cut short, or is of another export",
}
_FAILED = "the program failed"

_NOTHING = Value(PTR, "null")

# cpuid's bits: (leaf, register, bits). Registers are numbered as cpuid gives them: a, b, c, d.
_LEAF_1 = (1, 2, 1 << 12 | 1 << 27 | 1 << 29)  # FMA, OSXSAVE, F16C
_NEEDS = {
    NEON.name: ((), 0),
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


@dataclass(frozen=True)
class Level:
    """The entries as they are for one kind of processors."""

    name: str
    target: Target
    entries: tuple[EntryFacts, ...]


def least(levels: Sequence[Level]) -> Target:
    """What all processors of the family are: whether a library is for one is asked on any."""
    return NEON if levels[0].target == NEON else FALLBACK


def interface(
    levels: Sequence[Level], name: str, threads: int, weights: bytes | None = None
) -> tuple[str, list[str]]:
    """The LLVM IR of the functions, for the `least` processor, and their names.

    Of the levels, which are alike but for code, the first is taken that a processor can run. With
    `weights`, these are in a file of their own, as they stand here.
    """
    module = Module(target=least(levels))
    _Interface(module, levels, threads, weights).emit(name)
    shown = [f.name for f in module.functions if f.linkage == ""]
    outside = [f"@{WEIGHTS} = external hidden global i8"] if weights is None else []
    symbols = [entry.symbol for level in levels for entry in level.entries]
    outside += [f"declare hidden i64 @{symbol}(ptr)" for symbol in symbols]
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
    "level",
)
_ARRAY = ("name", "dtype", "rank", "bytes", "extents")


# What `heterosis_open` gives is the address of these pointers for the level that it has chosen.
_HANDLE = ("rows", "programs", "weights")


class _Interface:
    def __init__(
        self, module: Module, levels: Sequence[Level], threads: int, weights: bytes | None
    ):
        self.module, self.levels, self.threads, self.weights = module, levels, threads, weights
        self.count = len(levels[0].entries)
        self.texts = bytearray()
        self.known: dict[str, int] = {}
        self.most = max(len(entry.buffers) for level in levels for entry in level.entries)

    def emit(self, name: str) -> None:
        self._write_tables()
        self._emit_serial()
        self._emit_open()
        self._answer("name", lambda f: self._text_at(f, constant(I64, self.text(name))), PTR)
        self._answer("target", lambda f: self._text_at(f, self._of_first(f, "level")), PTR)
        self._answer("threads", lambda f: constant(I64, self.threads))
        self._answer("entries", lambda f: constant(I64, self.count))
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
        self._emit_pool()
        texts = [byte - 256 if byte > 127 else byte for byte in self.texts]
        self.module.table("heterosis.texts", I8, texts)

    # -- tables -------------------------------------------------------------------------------

    def text(self, text: str) -> int:
        """Where a text begins among all."""
        if text not in self.known:
            self.known[text] = len(self.texts)
            self.texts += text.encode() + b"\0"
        return self.known[text]

    def _write_tables(self) -> None:
        tables: dict[str, list[int]] = {
            "arrays": [], "extents": [0], "buffers": [], "failures": [0],
        }  # fmt: skip
        handles = []
        for number, level in enumerate(self.levels):
            rows = [field for e in level.entries for field in self._row(level.name, e, tables)]
            self.module.table(f"heterosis.rows{number}", I64, rows)
            programs = [f"@{entry.symbol}" for entry in level.entries]
            self.module.pointers(f"heterosis.programs{number}", programs)
            weights = "null" if self.weights is not None else f"@{WEIGHTS}"
            handles += [f"@heterosis.rows{number}", f"@heterosis.programs{number}", weights]
        for label, numbers in tables.items():
            self.module.table(f"heterosis.{label}", I64, numbers)
        self.module.pointers("heterosis.handles", handles)

    def _row(self, level: str, entry: EntryFacts, tables: dict[str, list[int]]) -> list[int]:
        """The fields of an entry, after what they point to has been appended to the tables."""
        arrays, extents, buffers, failures = tables.values()
        row = [
            self.text(entry.name), entry.workspace, len(entry.inputs), len(entry.outputs),
            len(arrays) // len(_ARRAY), len(buffers) // 2, len(entry.buffers),
            len(failures), len(entry.failures), self.text(level),
        ]  # fmt: skip
        buffers += [number for pair in entry.buffers for number in pair]
        failures += map(self.text, entry.failures)
        for one in (*entry.inputs, *entry.outputs):
            arrays += [self.text(one.name), one.dtype, len(one.shape), one.nbytes, len(extents)]
            extents += one.shape
        return row

    def _number(self, f: Function, table: str, index: Value) -> Value:
        return f.load(I64, f.offset(I64, Value(PTR, f"@heterosis.{table}"), index))

    def _text_at(self, f: Function, at: Value) -> Value:
        return f.offset(I8, Value(PTR, "@heterosis.texts"), at)

    def _of_entry(self, f: Function, entry: Value, field: str) -> Value:
        at = f.add_size(f.mul_size(entry, len(_ENTRY)), _ENTRY.index(field))
        return f.load(I64, f.offset(I64, self._of_handle(f, "rows"), at))

    def _of_first(self, f: Function, field: str) -> Value:
        return self._of_entry(f, constant(I64, 0), field)

    def _of_handle(self, f: Function, field: str) -> Value:
        """A pointer of what a function was given as its library."""
        return f.load(PTR, f.offset(PTR, f.parameters[0], _HANDLE.index(field)))

    def _handle(self, f: Function, level: int) -> Value:
        handles = Value(PTR, "@heterosis.handles")
        return f.offset(PTR, handles, level * len(_HANDLE))

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
        self._check(f, self._is_own(f), _FOREIGN, returns)

    def _is_own(self, f: Function) -> Value:
        """Whether a function was given what `heterosis_open` of this library gives.

        With a file of parameters that is an address in its memory, which has what is in the table.
        """
        given, null = f.parameters[0], Value(PTR, "null")
        if self.weights is None:
            return self._is_one_of(f, given, lambda level: self._handle(f, level))
        there = f.compare("ne", given, null)
        (rows,) = f.if_else(there, lambda: [f.load(PTR, given)], lambda: [null])
        return self._is_one_of(f, rows, lambda level: Value(PTR, f"@heterosis.rows{level}"))

    def _is_one_of(self, f: Function, given: Value, of_level: Callable[[int], Value]) -> Value:
        own = constant(I1, 0)
        for level in range(len(self.levels)):
            own = f.binary("or", own, f.compare("eq", given, of_level(level)))
        return own

    def _check_index(self, f: Function, index: Value, count: Value, returns: Type = I64) -> None:
        self._check(f, f.compare("ult", index, count), _NO_ENTRY, returns)

    def _check_entry(self, f: Function, entry: Value, returns: Type = I64) -> None:
        self._check_library(f, returns)
        self._check_index(f, entry, constant(I64, self.count), returns)

    # -- questions ----------------------------------------------------------------------------

    def _answer(self, name: str, found: Callable[[Function], Value], returns: Type = I64) -> None:
        f = self._function(name, [], returns)
        self._check_library(f, returns)
        f.ret(found(f))

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
        _, entry, code = f.parameters
        for number, text in _MESSAGES.items():
            self._tell_if(f, f.compare("eq", code, constant(I64, number)), text)
        foreign = f.binary("xor", self._is_own(f), constant(I1, 1))
        self._tell_if(f, foreign, _FAILED)
        self._tell_if(f, f.compare("uge", entry, constant(I64, self.count)), _FAILED)
        which = f.sub(f.binary("and", code, constant(I64, 0xFFFF)), constant(I64, 1))
        self._tell_if(f, f.compare("uge", which, self._of_entry(f, entry, "many")), _FAILED)
        at = self._number(f, "failures", f.add(self._of_entry(f, entry, "failures"), which))
        f.ret(self._text_at(f, at))

    def _tell_if(self, f: Function, condition: Value, text: str) -> None:
        at = self._text_at(f, constant(I64, self.text(text)))
        f.leave_if(condition, lambda: f.ret(at))

    # -- opening ------------------------------------------------------------------------------

    def _emit_open(self) -> None:
        """`heterosis_open(version, code)`: what all other functions take, or NULL and why."""
        self._emit_choose()
        parameters = [("version", I64), ("weights", PTR), ("code", PTR)]
        f = self.module.function("heterosis_open_with", parameters, PTR, linkage="")
        version, path, code = f.parameters
        other = f.compare("ne", version, constant(I64, VERSION))
        f.leave_if(other, lambda: _give(f, code, _OTHER_VERSION))
        chosen = f.call("heterosis.choose", [], PTR)
        none = f.compare("eq", chosen, Value(PTR, "null"))
        f.leave_if(none, lambda: _give(f, code, _PROCESSOR))
        if self.weights is not None:
            chosen = self._opened_file(f, path, chosen)
            none = f.compare("eq", chosen, Value(PTR, "null"))
            f.leave_if(none, lambda: _give(f, code, _WEIGHTS))
        _give(f, code, 0, chosen)
        f = self.module.function(
            "heterosis_open", [("version", I64), ("code", PTR)], PTR, linkage=""
        )
        version, code = f.parameters
        arguments = [version, Value(PTR, "null"), code]
        f.ret(f.call("heterosis_open_with", arguments, PTR))
        f = self._function("close", [], I64)
        self._check_library(f)
        if self.weights is not None:
            emit_unmap(f, f.parameters[0], len(self.weights))
        f.ret(constant(I64, 0))

    def _emit_choose(self) -> None:
        """The pointers of the best level that the processor runs, or NULL."""
        f = self.module.function("heterosis.choose", [], PTR)
        for number, level in enumerate(self.levels):
            runs = _runs_here(self.module, f, level.target)
            f.leave_if(runs, partial(self._ret_handle, f, number))
        f.ret(Value(PTR, "null"))

    def _ret_handle(self, f: Function, level: int) -> None:
        f.ret(self._handle(f, level))

    def _opened_file(self, f: Function, path: Value, chosen: Value) -> Value:
        """The memory of the file, which begins with the pointers of the level; NULL without."""
        assert self.weights is not None
        emit_map(self.module, self.weights)
        mapped = f.call("heterosis.map", [path], PTR)

        def fill() -> list[Value]:
            for i in range(len(_HANDLE)):
                own = i == _HANDLE.index("weights")
                pointer = mapped if own else f.load(PTR, f.offset(PTR, chosen, i))
                f.store(pointer, f.offset(PTR, mapped, i))
            return []

        f.if_else(f.compare("ne", mapped, Value(PTR, "null")), fill)
        return mapped

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
        """`heterosis_run`, which is `heterosis_run_with` without a pool."""
        parameters = [("number", I64), ("inputs", PTR), ("outputs", PTR), ("workspace", PTR)]
        self._emit_run_with([*parameters, ("pool", PTR)])
        f = self._function("run", parameters, I64)
        arguments = [*f.parameters, Value(PTR, "null")]
        f.ret(f.call("heterosis_run_with", arguments, I64))

    def _emit_run_with(self, parameters: Sequence[tuple[str, Type]]) -> None:
        f = self._function("run_with", parameters, I64)
        _, entry, inputs, outputs, workspace, pool = f.parameters
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
        for i, field in enumerate([*self._loops(f, pool), constant(I64, self.threads)]):
            f.store(field, f.offset(PTR, runtime, i))
        for i, field in enumerate([buffers, null, null, workspace, runtime]):
            f.store(field, f.offset(PTR, call, i))
        program = f.load(PTR, f.offset(PTR, self._of_handle(f, "programs"), entry))
        f.ret(f.call_pointer(program, [call], I64))

    def _loops(self, f: Function, pool: Value) -> list[Value]:
        """What runs parallel loops, and what it is given: that of a pool, or the calling thread.

        How many shares a loop has depends on the threads that a library was exported for, and not
        on those of the pool: so do results.
        """
        null = Value(PTR, "null")

        def given() -> list[Value]:
            state, run = f.load(PTR, pool), f.load(PTR, f.offset(PTR, pool, 1))
            many = f.load(I64, f.offset(PTR, pool, WORKERS))
            below = f.sub(many, constant(I64, 1))
            fits = f.compare("ult", below, constant(I64, self.threads))
            self._check(f, f.binary("and", fits, f.compare("ne", run, null)), _POOL)
            return [state, run]

        alone = [null, Value(PTR, "@heterosis.serial")]
        return f.if_else(f.compare("ne", pool, null), given, lambda: alone)

    def _emit_pool(self) -> None:
        def check(f: Function, *conditions: Value) -> None:
            self._check_library(f)
            for condition in conditions:
                self._check(f, condition, _POOL)

        emit_pool(self.module, self._function, check, self.threads)

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

        held = f.offset(I8, self._of_handle(f, "weights"), which)
        found = f.select(is_(HELD), held, Value(PTR, "null"))
        return listed(MADE, outputs, listed(GIVEN, inputs, found))


def _give(f: Function, code: Value, number: int, found: Value = _NOTHING) -> None:
    """Return what was found, and a code to whoever asks for it."""

    def store() -> list[Value]:
        f.store(constant(I64, number), code)
        return []

    f.if_else(f.compare("ne", code, _NOTHING), store)
    f.ret(found)


# -- the processor ------------------------------------------------------------------------------


def _runs_here(module: Module, caller: Function, target: Target) -> Value:
    """Whether the processor, and its system, have the instructions of a target."""
    leaves, states = _NEEDS[target.name]
    if not leaves:
        return constant(I1, 1)
    f = module.function(f"heterosis.runs.{target.name}", [], I1)
    no = constant(I1, 0)
    f.leave_if(f.compare("ult", _cpuid(f, 0)[0], constant(I32, 7)), lambda: f.ret(no))
    for leaf, register, bits in leaves:
        _leave_without(f, _cpuid(f, leaf)[register], bits)
    _leave_without(f, _saved_states(f), states)
    f.ret(constant(I1, 1))
    return caller.call(f.name, [], I1)


def _leave_without(f: Function, found: Value, bits: int) -> None:
    mask = constant(I32, bits - (1 << 32) if bits >> 31 else bits)
    have = f.binary("and", found, mask)
    f.leave_if(f.compare("ne", have, mask), lambda: f.ret(constant(I1, 0)))


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
