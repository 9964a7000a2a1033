"""The functions of `heterosis.h`, which every exported library shows, as LLVM IR.

They read tables that are written beside them, and call the programs. Nothing here has a state: a
library may be used by any number of threads at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
from heterosis.backends.native.export.evaluation import emit_evaluation, operand
from heterosis.backends.native.export.facts import GIVEN, HELD, MADE, UNUSED, Level
from heterosis.backends.native.export.pool import WORKERS, emit_pool
from heterosis.backends.native.export.tables import (
    ARRAY,
    CASE,
    ENTRY,
    EXTENT,
    HANDLE,
    HANDLE_WORDS,
    SIZE,
    UNKNOWN,
    WEIGHTS,
    Tables,
)
from heterosis.backends.native.export.weights import emit_map, emit_unmap

VERSION = 2  # of the interface: that of `heterosis.h`

# Codes that functions return; `heterosis.h` has the same.
_FOREIGN, _NO_ENTRY, _NULL, _WORKSPACE, _PROCESSOR, _OTHER_VERSION, _POOL, _WEIGHTS = range(
    -1, -9, -1
)
_MESSAGES = {
    0: "no error",
    _FOREIGN: "this is not the library that heterosis_open gave: pass on what it returned",
    _NO_ENTRY: "there is no such entry, array, or axis: ask heterosis_entries and the like first",
    _NULL: "an address is NULL: every input and output needs memory of its own",
    _WORKSPACE: "the workspace, or the memory for sizes, is NULL or not aligned to 64 bytes: use "
    "aligned_alloc(64, ...)",
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
    cases = (case for level in levels for entry in level.entries for case in entry.cases)
    symbols = dict.fromkeys(case.symbol for case in cases)
    outside += [f"declare hidden i64 @{symbol}(ptr)" for symbol in symbols]
    return "\n".join([*outside, module.text()]), shown


class _Interface:
    def __init__(
        self, module: Module, levels: Sequence[Level], threads: int, weights: bytes | None
    ):
        self.module, self.levels, self.threads, self.weights = module, levels, threads, weights
        self.count = len(levels[0].entries)
        self.tables = Tables()
        cases = (case for level in levels for entry in level.entries for case in entry.cases)
        self.most = max(len(case.buffers) for case in cases)
        self.sized = any(entry.sizes for entry in levels[0].entries)

    def emit(self, name: str) -> None:
        self.tables.write(self.module, self.levels, inside=self.weights is None)
        self._emit_serial()
        self._emit_open()
        self._answer("name", lambda f: self._text_at(f, constant(I64, self.tables.text(name))), PTR)
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
            self._ask_extent(f"{one}_extent", side, "number")
            self._ask_extent(f"{one}_extent_text", side, "text", PTR)
        self._ask_entry("sizes", "sizes")
        self._ask_size("size_name", "name", PTR)
        self._ask_size("size_least", "least")
        self._ask_size("size_most", "most")
        self._ask_entry("at_bytes", "at_bytes")
        self._emit_at()
        self._emit_run()
        self._emit_message()
        self._emit_pool()
        self.tables.write_texts(self.module)

    # -- tables -------------------------------------------------------------------------------

    def _number(self, f: Function, table: str, index: Value) -> Value:
        return f.load(I64, f.offset(I64, Value(PTR, f"@heterosis.{table}"), index))

    def _text_at(self, f: Function, at: Value) -> Value:
        return f.offset(I8, Value(PTR, "@heterosis.texts"), at)

    def _of_entry(self, f: Function, entry: Value, field: str) -> Value:
        at = f.add_size(f.mul_size(entry, len(ENTRY)), ENTRY.index(field))
        return f.load(I64, f.offset(I64, self._of_handle(f, "rows"), at))

    def _of_first(self, f: Function, field: str) -> Value:
        return self._of_entry(f, self._of_handle(f, "first", I64), field)

    def _of_handle(self, f: Function, field: str, type_: Type = PTR) -> Value:
        """A field of what a function was given as its library."""
        return f.load(type_, f.offset(PTR, f.parameters[0], HANDLE.index(field)))

    def _handle(self, f: Function, level: int) -> Value:
        handles = Value(PTR, "@heterosis.handles")
        return f.offset(PTR, handles, level * len(HANDLE))

    def _of_array(self, f: Function, array: Value, field: str) -> Value:
        at = f.add_size(f.mul_size(array, len(ARRAY)), ARRAY.index(field))
        return f.load(I64, f.offset(I64, self._of_handle(f, "arrays"), at))

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

        With a file of parameters, and for known sizes, that is an address in other memory.
        """
        given, null = f.parameters[0], Value(PTR, "null")
        if self.weights is None and not self.sized:
            return self._is_one_of(f, given)
        there = f.compare("ne", given, null)
        (own,) = f.if_else(there, lambda: [f.load(PTR, given)], lambda: [null])
        return self._is_one_of(f, own)

    def _is_one_of(self, f: Function, given: Value) -> Value:
        own = constant(I1, 0)
        for level in range(len(self.levels)):
            own = f.binary("or", own, f.compare("eq", given, self._handle(f, level)))
        return own

    def _check_index(self, f: Function, index: Value, count: Value, returns: Type = I64) -> None:
        self._check(f, f.compare("ult", index, count), _NO_ENTRY, returns)

    def _check_entry(self, f: Function, entry: Value, returns: Type = I64) -> None:
        self._check_library(f, returns)
        self._check(f, self._has_entry(f, entry), _NO_ENTRY, returns)

    def _has_entry(self, f: Function, entry: Value) -> Value:
        """Whether a library, or what it gave for some sizes, has the entry of a number."""
        at = f.sub(entry, self._of_handle(f, "first", I64))
        return f.compare("ult", at, self._of_handle(f, "count", I64))

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

    def _ask_extent(self, name: str, side: str, field: str, returns: Type = I64) -> None:
        parameters = [("number", I64), ("position", I64), ("axis", I64)]
        f = self._function(name, parameters, returns)
        array, axis = self._array(f, side, returns), f.parameters[3]
        self._check_index(f, axis, self._of_array(f, array, "rank"), returns)
        row = f.mul_size(f.add(self._of_array(f, array, "extents"), axis), len(EXTENT))
        at = f.add_size(row, EXTENT.index(field))
        found = f.load(I64, f.offset(I64, self._of_handle(f, "extents"), at))
        f.ret(self._text_at(f, found) if returns == PTR else found)

    def _ask_size(self, name: str, field: str, returns: Type = I64) -> None:
        f = self._function(name, [("number", I64), ("size", I64)], returns)
        entry, size = f.parameters[1:]
        self._check_entry(f, entry, returns)
        self._check_index(f, size, self._of_entry(f, entry, "sizes"), returns)
        found = self._of_size(f, entry, size, field)
        f.ret(self._text_at(f, found) if returns == PTR else found)

    def _of_size(self, f: Function, entry: Value, size: Value, field: str) -> Value:
        at = f.add(self._of_entry(f, entry, "first_size"), f.i64(f.mul_size(size, len(SIZE))))
        return self._number(f, "sizes", f.i64(f.add_size(at, SIZE.index(field))))

    def _emit_message(self) -> None:
        """`heterosis_message(library, entry, code)`: a text that stays, whatever is asked."""
        f = self._function("message", [("number", I64), ("code", I64)], PTR)
        _, entry, code = f.parameters
        for number, text in _MESSAGES.items():
            self._tell_if(f, f.compare("eq", code, constant(I64, number)), text)
        bad = f.compare("eq", code, constant(I64, UNKNOWN))
        foreign = f.binary("xor", self._is_own(f), constant(I1, 1))
        self._tell_if(f, foreign, _FAILED)
        self._tell_if(f, f.binary("xor", self._has_entry(f, entry), constant(I1, 1)), _FAILED)
        f.leave_if(bad, lambda: f.ret(self._text_at(f, self._of_entry(f, entry, "refused"))))
        which = f.sub(f.binary("and", code, constant(I64, 0xFFFF)), constant(I64, 1))
        self._tell_if(f, f.compare("uge", which, self._of_entry(f, entry, "many")), _FAILED)
        at = self._number(f, "failures", f.add(self._of_entry(f, entry, "failures"), which))
        f.ret(self._text_at(f, at))

    def _tell_if(self, f: Function, condition: Value, text: str) -> None:
        at = self._text_at(f, constant(I64, self.tables.text(text)))
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
            size = len(self.weights)
            at_sizes = f.compare("ne", self._of_handle(f, "integers"), Value(PTR, "null"))
            f.leave_if(at_sizes, lambda: f.ret(constant(I64, 0)))
            emit_unmap(f, f.parameters[0], size)
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
            for i in range(len(HANDLE)):
                own = i == HANDLE.index("weights")
                pointer = mapped if own else f.load(PTR, f.offset(PTR, chosen, i))
                f.store(pointer, f.offset(PTR, mapped, i))
            return []

        f.if_else(f.compare("ne", mapped, Value(PTR, "null")), fill)
        return mapped

    # -- sizes --------------------------------------------------------------------------------

    def _emit_at(self) -> None:
        """`heterosis_at(library, entry, sizes, memory, code)`: what stands for the library where
        the sizes of an entry are these."""
        parameters = [("number", I64), ("sizes", PTR), ("memory", PTR), ("code", PTR)]
        f = self._function("at", parameters, PTR)
        library, entry, sizes, memory, code = f.parameters

        def check(holds: Value, number: int) -> None:
            wrong = f.binary("xor", holds, constant(I1, 1))
            f.leave_if(wrong, lambda: _give(f, code, number))

        check(self._is_own(f), _FOREIGN)
        check(self._has_entry(f, entry), _NO_ENTRY)
        count = self._of_entry(f, entry, "sizes")
        none = f.compare("eq", count, constant(I64, 0))
        f.leave_if(none, lambda: _give(f, code, 0, library))
        if self.sized:
            check(f.compare("ne", sizes, _NOTHING), _NULL)
            check(
                f.binary("and", _is_aligned(f, memory), f.compare("ne", memory, _NOTHING)),
                _WORKSPACE,
            )
            self._check_bounds(f, entry, sizes, count, code)
            self._emit_cases(f, count)
        _give(f, code, UNKNOWN)

    def _check_bounds(
        self, f: Function, entry: Value, sizes: Value, count: Value, code: Value
    ) -> None:
        with f.loop(constant(I64, 0), count) as each:
            given = f.load(I64, f.offset(I64, sizes, each.index))
            least, most = (self._of_size(f, entry, each.index, n) for n in ("least", "most"))
            wrong = f.binary("or", f.compare("slt", given, least), f.compare("sgt", given, most))
            f.leave_if(wrong, lambda: _give(f, code, UNKNOWN))

    def _emit_cases(self, f: Function, count: Value) -> None:
        """Return the first case that holds, prepared."""
        _, entry, sizes, memory, _ = f.parameters
        emit_evaluation(self.module)
        first = self._of_entry(f, entry, "first_case")
        words = f.offset(I64, memory, HANDLE_WORDS)
        with f.loop(constant(I64, 0), self._of_entry(f, entry, "cases")) as each:
            row = f.add(first, f.i64(f.mul_size(each.index, len(CASE))))
            case = {
                name: self._number(f, "cases", f.i64(f.add_size(row, i)))
                for i, name in enumerate(CASE)
            }
            slots = f.offset(I64, words, case["many"])
            with f.loop(constant(I64, 0), count) as size:
                given = f.load(I64, f.offset(I64, sizes, size.index))
                f.store(given, f.offset(I64, slots, size.index))
            operations = f.offset(I64, Value(PTR, "@heterosis.operations"), case["operations"])
            arguments = [operations, case["count"], slots, count]
            holds = f.call("heterosis.evaluate", arguments, I1)
            at = f.binary("sdiv", row, constant(I64, len(CASE)))
            program = f.offset(PTR, Value(PTR, "@heterosis.case_programs"), at)
            f.leave_if(holds, partial(self._ret_case, f, case, words, slots, program))

    def _ret_case(
        self, f: Function, case: dict[str, Value], words: Value, slots: Value, program: Value
    ) -> None:
        """Fill the memory of a caller with what stands for the library."""
        _, entry, _, memory, code = f.parameters
        with f.loop(constant(I64, 0), case["many"]) as each:
            at = f.add(case["words"], each.index)
            found = operand(f, slots, self._number(f, "words", at))
            f.store(found, f.offset(I64, words, each.index))
        back = f.neg(entry)  # tables begin where the row of the first entry would be
        fields: dict[str, Value] = {
            "own": self._of_handle(f, "own"),
            "rows": f.offset(I64, words, f.mul_size(back, len(ENTRY))),
            "programs": f.offset(PTR, program, back),
            "weights": self._of_handle(f, "weights"),
            "arrays": f.offset(I64, words, len(ENTRY)),
            "extents": f.offset(I64, words, case["extents"]),
            "first": entry,
            "count": constant(I64, 1),
            "floats": f.offset(I64, words, case["floats"]),
            "integers": f.offset(I64, words, case["integers"]),
        }
        for i, name in enumerate(HANDLE):
            f.store(fields[name], f.offset(I64, memory, i))
        _give(f, code, 0, memory)

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
        if self.sized:
            none = f.compare("eq", self._of_entry(f, entry, "sizes"), constant(I64, 0))
            self._check(f, none, UNKNOWN)
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
        numbers = [self._of_handle(f, name) for name in ("integers", "floats")]
        for i, field in enumerate([buffers, *numbers, workspace, runtime]):
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
        there = f.compare("ne", workspace, Value(PTR, "null"))
        there = f.binary("and", _is_aligned(f, workspace), there)
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


def _is_aligned(f: Function, memory: Value) -> Value:
    number = f.convert("ptrtoint", memory, I64)
    return f.compare("eq", f.binary("and", number, constant(I64, 63)), constant(I64, 0))


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
