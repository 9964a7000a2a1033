"""How often numbers occur, and where truth values are true: one pass, in order."""

from __future__ import annotations

from heterosis.backends.native.codegen.emit.builder import (
    I8,
    I64,
    PTR,
    Function,
    Module,
    Type,
    Value,
    constant,
)

TABLES = 4  # that neighbouring numbers are counted in: none waits for what was just counted
LONGEST = 4096  # numbers in each of several tables: together they fit into the nearest cache
_GROUP, _AT_ONCE = 64, 8  # truth values that are looked at, and placed, at once


def _entry(module: Module, name: str, first: str, second: str) -> Function:
    pointers = [(label, PTR) for label in ("call", first, second, "scratch")]
    return module.function(name, [*pointers, ("length", I64), ("count", I64)])


# -- numbers --------------------------------------------------------------------------------------


def emit_occurrences(module: Module, name: str, bits: int) -> None:
    """Define `@name(call, numbers, counts, scratch, length, count)`. The scratch memory has room
    for the tables, of one more number than is counted."""
    f = _entry(module, name, "numbers", "counts")
    _, numbers, counts, scratch, length, count = f.parameters
    short = f.compare("sle", count, constant(I64, LONGEST))
    size = f.add(count, f.i64(1))  # the last one is where numbers that are outside are counted
    # Without a step between them, all tables are one.
    step = f.select(short, size, f.i64(0))
    tables = f.select(short, f.mul(size, f.i64(TABLES)), size)
    with f.loop(0, tables) as loop:
        f.store(constant(I64, 0), f.offset(I64, scratch, loop.index))
    own = [f.offset(I64, scratch, f.mul(step, f.i64(i))) for i in range(TABLES)]
    whole = f.round_down(length, TABLES)
    for begin, end, used in ((0, whole, own), (whole, length, own[:1])):
        with f.loop(begin, end, len(used)) as loop:
            for i, table in enumerate(used):
                at = f.offset(Type(f"i{bits}"), numbers, f.add_size(loop.index, i))
                number = f.convert("sext", f.load(Type(f"i{bits}"), at), I64)
                place = f.offset(I64, table, f.intrinsic("umin", number, count))
                f.store(f.add(f.load(I64, place), f.i64(1)), place)
    with f.loop(0, count) as loop:
        with f.loop(0, tables, size, carried=[f.i64(0)]) as each:
            at = f.offset(I64, scratch, f.add(each.index, loop.index))
            each.next = [f.add(each.carried[0], f.load(I64, at))]
        f.store(each.results[0], f.offset(I64, counts, loop.index))
    f.ret()


# -- truth values ---------------------------------------------------------------------------------


def emit_true_places(module: Module, name: str) -> None:
    """Define `@name(call, truths, places, scratch, length, count)`."""
    f = _entry(module, name, "truths", "places")
    _, truths, places, _, length, count = f.parameters
    room = f.sub(count, f.i64(_GROUP))
    whole = f.round_down(length, _GROUP)

    def one_by_one(begin: Value, end: Value, found: Value) -> list[Value]:
        with f.loop(begin, end, carried=[found]) as loop:
            (so_far,) = loop.carried
            is_true = f.compare("ne", f.load(I8, f.offset(I8, truths, loop.index)), constant(I8, 0))
            fits = f.binary("and", is_true, f.compare("slt", so_far, count))

            def put(place: Value = loop.index, to: Value = so_far) -> None:
                f.store(place, f.offset(I64, places, to))

            f.if_else(fits, put)
            loop.next = [f.add(so_far, f.convert("zext", fits, I64))]
        return loop.results

    with f.loop(0, whole, _GROUP, carried=[f.i64(0)]) as loop:
        (so_far,), first = loop.carried, loop.index
        group = Type("i8", _GROUP)
        true = f.compare("ne", f.load(group, f.offset(I8, truths, first)), constant(group, 0))
        bits = f.convert("bitcast", true, I64)

        def together(first: Value = first, bits: Value = bits, to: Value = so_far) -> list[Value]:
            return [_placed_group(f, places, first, bits, to)]

        def apart(first: Value = first, to: Value = so_far) -> list[Value]:
            return one_by_one(first, f.add(first, f.i64(_GROUP)), to)

        def placed() -> list[Value]:
            return f.if_else(f.compare("sle", so_far, room), together, apart)

        def skipped(to: Value = so_far) -> list[Value]:
            return [to]

        loop.next = f.if_else(f.compare("ne", bits, constant(I64, 0)), placed, skipped)
    (found,) = one_by_one(f.i64(whole), length, loop.results[0])
    with f.loop(found, count) as loop:
        f.store(constant(I64, 0), f.offset(I64, places, loop.index))
    f.ret()


def _placed_group(f: Function, places: Value, first: Value, bits: Value, to: Value) -> Value:
    """The places of the bits that are set, of which there is room for as many as there are bits:
    of each eight, those that are set stand first in a row of a table."""
    bits_of = [[bit for bit in range(_AT_ONCE) if row >> bit & 1] for row in range(256)]
    rows = [found + [0] * (_AT_ONCE - len(found)) for found in bits_of]
    table = f.module.table("true_bits", I8, [bit for row in rows for bit in row])
    wide = Type("i64", _AT_ONCE)
    for begin in range(0, _GROUP, _AT_ONCE):
        own = f.binary("and", f.binary("lshr", bits, f.i64(begin)), f.i64(255))
        row = f.load(Type("i8", _AT_ONCE), f.offset(I8, table, f.mul(own, f.i64(_AT_ONCE))))
        base = f.splat(f.add(first, f.i64(begin)), _AT_ONCE)
        f.store(f.add(f.convert("zext", row, wide), base), f.offset(I64, places, to))
        to = f.add(to, f.intrinsic("ctpop", own))
    return to
