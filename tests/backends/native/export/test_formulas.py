"""Formulas of sizes: what the core, a library and Python make of them is the same."""

from __future__ import annotations

import ctypes
import functools
import math
import random
import struct

import pytest

from heterosis import _core
from heterosis.backends.native.codegen.emit.builder import I64, PTR, Module, constant
from heterosis.backends.native.compile.compiler import compile_object, host_target
from heterosis.backends.native.export import evaluation
from heterosis.ir.formulas import FIELDS, OPERATIONS, Formulas
from heterosis.runtime.errors import UnsupportedError

NAMES = ("n", "m", "k")


@functools.cache
def library():
    """The evaluation that libraries have, to be called with addresses and lengths."""
    module = Module()
    parameters = [("rows", PTR), ("count", I64), ("slots", PTR), ("first", I64)]
    asked = module.function("asked", parameters, I64, linkage="")
    found = asked.call("heterosis.evaluate", asked.parameters, evaluation.I1)
    asked.ret(asked.select(found, constant(I64, 1), constant(I64, 0)))
    evaluation.emit_evaluation(module)
    return _core.load_object(compile_object(module.text(), host_target()))


def by_library(sizes, table):
    call = ctypes.CFUNCTYPE(
        ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64
    )(library().address("asked"))
    count = len(table) // FIELDS
    rows = (ctypes.c_int64 * len(table))(*table)
    slots = (ctypes.c_int64 * (len(sizes) + count))(*sizes)
    holds = call(ctypes.addressof(rows), count, ctypes.addressof(slots), len(sizes))
    return list(slots[len(sizes) :]) if holds else None


def both(sizes, formulas):
    """What the core makes of a table, which is what a library makes of it."""
    found = _core.evaluated(sizes, formulas.table)
    assert found == by_library(sizes, formulas.table)
    return found


def value(word, sizes, results):
    return word >> 1 if word & 1 else [*sizes, *results][word >> 1]


def python(text, sizes):
    known = {"floor": math.floor, "max": max, "min": min}
    return eval(text, known, dict(zip(NAMES, sizes, strict=True)))


def bits(number):
    return struct.unpack("<q", struct.pack("<d", number))[0]


def whole(chance, depth):
    """The text of a random whole number."""
    if depth == 0 or chance.random() < 0.1:
        return chance.choice([*NAMES, *NAMES, str(chance.randint(0, 9))])
    a, b = whole(chance, depth - 1), whole(chance, depth - 1)
    match chance.randrange(9):
        case 0:
            return f"max({a}, {b})"
        case 1:
            return f"min({a}, {b})"
        case 2:
            return f"({a})//{chance.randint(1, 5)}"
        case 3:
            return f"({a})//max(1, {b})"
        case 4:
            return f"-({a})"
        case 5:
            return f"floor({fraction(chance, depth - 1)})"
        case _:
            return f"({a}) {chance.choice('+-*')} ({b})"


def fraction(chance, depth):
    """The text of a random float."""
    if depth == 0 or chance.random() < 0.2:
        return chance.choice(["0.5", "-1.75", "3.0", "1.0*n"])
    a, b = fraction(chance, depth - 1), whole(chance, depth - 1)
    if chance.random() < 0.3:
        return f"({a}) / (1.0 + max(0, {b}))"
    return f"({a}) {chance.choice('+-*')} ({chance.choice([b, '0.25'])})"


@pytest.mark.parametrize("seed", range(20))
def test_all_find_the_same_numbers(seed):
    chance = random.Random(seed)
    for _ in range(50):
        text, formulas = whole(chance, 4), Formulas(NAMES)
        real, word = fraction(chance, 3), formulas.whole(text)
        real_word = formulas.fraction(real)
        for _ in range(4):
            sizes = [chance.randint(2, 60) for _ in NAMES]
            found = both(sizes, formulas)
            if abs(python(text, sizes)) > 2**50:  # floor of what has more bits
                continue
            assert found is not None, text
            assert value(word, sizes, found) == python(text, sizes), text
            assert value(real_word, sizes, found) == bits(float(python(real, sizes))), real


@pytest.mark.parametrize("relation", ["<", "<=", ">", ">=", "==", "!="])
@pytest.mark.parametrize("left, right", [("n", "m"), ("n*0.5", "m"), ("n//3", "m - 1")])
def test_all_decide_the_same(relation, left, right):
    formulas = Formulas(NAMES)
    formulas.require(f"{left} {relation} {right}")
    for sizes in ([2, 2, 2], [2, 3, 2], [9, 3, 2], [4, 2, 2], [3, 2, 2]):
        assert (both(sizes, formulas) is not None) == python(f"{left} {relation} {right}", sizes)


@pytest.mark.parametrize(
    "text, sizes",
    [
        ("n*m", (2**40, 2**40, 2)),
        ("n*m*k", (2**30, 2**30, 2**30)),
        ("n + m", (2**62, 2**62, 2)),
        ("-n - m", (2**62, 2**62 + 1, 2)),
        ("floor(1.0*n*m)", (2**40, 2**40, 2)),
        ("n//(m - k)", (5, 3, 3)),
        ("n//(m - k)", (5, 3, 4)),
        ("floor(n / (m - k))", (5, 3, 3)),
    ],
)
def test_what_has_no_number_of_64_bits_is_refused(text, sizes):
    formulas = Formulas(NAMES)
    formulas.whole(text)
    assert both(list(sizes), formulas) is None


@pytest.mark.parametrize("number", [0, -1, 2**62 - 1, 2**62, -(2**62) - 1, 2**63 - 1, -(2**63)])
def test_numbers_of_64_bits(number):
    formulas = Formulas(NAMES)
    word = formulas.whole(number)
    assert value(word, [2, 2, 2], both([2, 2, 2], formulas)) == number


@pytest.mark.parametrize(
    "text", ["2**63", "n**2", "n % 2", "f(n)", "q", "0.5", "(0.5*n)//2", "n ?"]
)
def test_others_are_refused(text):
    with pytest.raises(UnsupportedError, match="sizes"):
        Formulas(NAMES).whole(text)


def test_libraries_have_the_operations_of_the_core():
    assert tuple(evaluation._OPERATIONS) == OPERATIONS


@pytest.mark.parametrize(
    "table", [[0, 1], [99, 1, 1], [-1, 1, 1], [0, 2 * 3, 1], [0, 1, -2], [0, 2 * 2**40, 1]]
)
def test_the_core_refuses_tables_that_name_nothing(table):
    with pytest.raises(ValueError, match="row"):
        _core.evaluated([2, 2, 2], table)
