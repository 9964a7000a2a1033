"""Instructions on whole vectors of single precision that only some processors have.

Each has a condition beside it; where that fails, a formula must do without.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from heterosis.backends.native.codegen.emit.builder import FLOAT, I16, I32, I64, Type, Value
from heterosis.backends.native.codegen.emit.builder import constant as literal
from heterosis.backends.native.codegen.mathematics.number import Number, fma
from heterosis.backends.native.codegen.target import Target

_LANES = 16
ENTRIES = 2 * _LANES  # of a table: two registers
_EVERY_LANE, _AS_USUAL = literal(I16, -1), literal(I32, 4)  # a mask, and how to round


def _target_of(x: Number) -> Target | None:
    """The processor, if whole registers of numbers like `x` are at hand: LLVM cannot split these
    instructions where it is told to use shorter vectors."""
    target = x.f.module.target
    if x.double or target is None or x.f.attributes == target.attributes_for_memory:
        return None
    return target


def looks_up(x: Number) -> bool:
    """Whether `entry` serves numbers like `x`."""
    target = _target_of(x)
    return target is not None and target.looks_up


def entry(name: str, table: Sequence[float], index: Number) -> Number:
    """`table[index % ENTRIES]` for integers of 32 bits. No two tables have the same name."""
    assert len(table) == ENTRIES
    f = index.f
    start = f.module.table(name, FLOAT, table)
    if not index.type.lanes:
        place = f.convert("zext", (index & (ENTRIES - 1)).value, I64)
        return index.made(f.load(FLOAT, f.offset(FLOAT, start, place)))
    register = Type("float", _LANES)
    low, high = (f.load(register, f.offset(FLOAT, start, n), align=64) for n in (0, _LANES))

    def look_up(indices: Value) -> Value:
        return f.call("llvm.x86.avx512.vpermi2var.ps.512", [low, indices, high], register)

    return _by_registers(look_up, index)


def scales(x: Number) -> bool:
    """Whether `scaled_by` serves numbers like `x`."""
    target = _target_of(x)
    return target is not None and bool(x.type.lanes) and target.scales


def scaled_by(y: Number, n: Number) -> Number:
    """`y * 2^n`, rounded once, for whole numbers `n` that are floats."""
    f = y.f

    def scale(y: Value, n: Value) -> Value:
        unused = literal(y.type, 0.0)
        arguments = [y, n, unused, _EVERY_LANE, _AS_USUAL]
        return f.call("llvm.x86.avx512.mask.scalef.ps.512", arguments, y.type)

    return _by_registers(scale, y, n)


def estimates(x: Number) -> bool:
    """Whether `estimated_reciprocal` serves numbers like `x`."""
    target = _target_of(x)
    return target is not None and bool(x.type.lanes) and target.estimates


def estimated_reciprocal(x: Number) -> Number:
    """`1 / x` within 2^-14 of it; only where `estimates`."""
    return _estimated(x, "rcp14")


def reciprocal(x: Number) -> Number:
    """`1 / x` within some units of the last place; only where `estimates`."""
    estimate = estimated_reciprocal(x)
    return fma(estimate, fma(-estimate, x, 1.0), estimate)


def estimated_inverse_root(x: Number) -> Number:
    """`1 / sqrt(x)` within 2^-14 of it; only where `estimates`."""
    return _estimated(x, "rsqrt14")


def _estimated(x: Number, instruction: str) -> Number:
    f = x.f

    def estimate(x: Value) -> Value:
        arguments = [x, literal(x.type, 0.0), _EVERY_LANE]
        return f.call(f"llvm.x86.avx512.{instruction}.ps.512", arguments, x.type)

    return _by_registers(estimate, x)


def normalises(x: Number) -> bool:
    """Whether `exponent`, `fraction` and `nearest_step` serve numbers like `x`."""
    target = _target_of(x)
    return target is not None and target.normalises


def exponent(x: Number) -> Number:
    """The whole number n for which `|x|` lies between 2^n and 2^(n+1), infinite where x is zero or
    infinite."""
    f = x.f

    def extract(x: Value) -> Value:
        arguments = [x, literal(x.type, 0.0), _EVERY_LANE, _AS_USUAL]
        return f.call("llvm.x86.avx512.mask.getexp.ps.512", arguments, x.type)

    return _by_registers(extract, x)


def fraction(x: Number, *, of_magnitude: bool = False) -> Number:
    """`|x|` times the power of two that brings it to 3/4 or more and below 3/2; 1 or -1 where x is
    zero or infinite. Below zero it is NaN, unless `of_magnitude`."""
    f, three_quarters_on = x.f, 3
    choice = literal(I32, three_quarters_on | (1 if of_magnitude else 2) << 2)

    def extract(x: Value) -> Value:
        arguments = [x, choice, literal(x.type, 0.0), _EVERY_LANE, _AS_USUAL]
        return f.call("llvm.x86.avx512.mask.getmant.ps.512", arguments, x.type)

    return _by_registers(extract, x)


def nearest_step(x: Number, steps: int) -> Number:
    """`x` rounded to a multiple of 1 / 2^steps, ties to even; infinities and NaN stay."""
    f, choice = x.f, literal(I32, steps << 4)

    def extract(x: Value) -> Value:
        arguments = [x, choice, literal(x.type, 0.0), _EVERY_LANE, _AS_USUAL]
        return f.call("llvm.x86.avx512.mask.rndscale.ps.512", arguments, x.type)

    return _by_registers(extract, x)


def on_vectors(formula: Callable[..., Number]) -> Callable[..., Number]:
    """`formula`, which takes vectors, for single numbers too: one in every lane."""

    def compute(*operands: Number) -> Number:
        f, lanes = operands[0].f, operands[0].type.lanes
        if lanes:
            return formula(*operands)
        vectors = (x.made(f.splat(x.value, _LANES)) for x in operands)
        result = formula(*vectors)
        return result.made(f.extract(result.value, 0))

    return compute


def _by_registers(compute: Callable[..., Value], *vectors: Number) -> Number:
    """What `compute` makes of vectors of as many lanes as a register has, for those of any."""
    first = vectors[0]
    f, lanes = first.f, first.type.lanes
    assert _target_of(first) is not None, "LLVM could not split it"
    parts = []
    for start in range(0, lanes, _LANES):
        # Where a vector is shorter than a register, nobody reads what is in the other lanes.
        picked = [n if n < lanes else -1 for n in range(start, start + _LANES)]
        parts.append(compute(*(f.shuffle(v.value, v.value, picked) for v in vectors)))
    while len(parts) > 1:
        wide = range(2 * parts[0].type.lanes)
        parts = [f.shuffle(a, b, wide) for a, b in zip(parts[::2], parts[1::2], strict=True)]
    return first.made(parts[0] if lanes >= _LANES else f.shuffle(parts[0], parts[0], range(lanes)))
