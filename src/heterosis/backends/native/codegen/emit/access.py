"""Between an element as it is stored and the value that is computed with.

float16 and bfloat16 are computed with as float32; bool is stored as a byte and computed with as
`i1`. Every other type is the same in both places.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from heterosis.backends.native.codegen.emit.builder import (
    BFLOAT,
    FLOAT,
    HALF,
    I32,
    Function,
    Size,
    Type,
    Value,
    constant,
)

STORED = {
    "bool": Type("i8"),
    "int8": Type("i8"),
    "uint8": Type("i8"),
    "int32": Type("i32"),
    "int64": Type("i64"),
    "float16": Type("half"),
    "bfloat16": Type("bfloat"),
    "float32": Type("float"),
    "float64": Type("double"),
    "int16": Type("i16"),
    "uint16": Type("i16"),
    "uint32": Type("i32"),
    "uint64": Type("i64"),
}
SPREAD = (2, 3, 4)  # distances of elements that are loaded without gaps, as all between them
COMPUTED = STORED | {"bool": Type("i1"), "float16": FLOAT, "bfloat16": FLOAT}


def computed(f: Function, dtype: str, stored: Value) -> Value:
    """A stored element, or vector of them, as the value to compute with."""
    if dtype == "bool":
        return f.compare("ne", stored, constant(stored.type, 0))
    if dtype == "float16":
        return widen_half(f, stored)
    if dtype == "bfloat16":
        return widen_bfloat(f, stored)
    return stored


def stored(f: Function, dtype: str, value: Value) -> Value:
    """A computed value as it is stored, rounded to nearest."""
    value = f.unrounded.get((dtype, value), value)
    if dtype == "bool":
        return f.convert("zext", value, value.type.of("i8"))
    if dtype == "float16":
        return narrow_half(f, value)
    if dtype == "bfloat16":
        return narrow_bfloat(f, value)
    return value


def nearest(f: Function, dtype: str, value: Value) -> Value:
    """A computed value as one that `dtype` can hold: what is loaded after it has been stored."""
    if dtype == "bfloat16":
        rounded = _nearest_bfloat(f, value)
    elif dtype != "float16":
        return value
    elif _has_half_instructions(f):
        rounded = widen_half(f, narrow_half(f, value))
    else:
        rounded = _nearest_half(f, value)
    f.unrounded[dtype, rounded] = value
    return rounded


def _nearest_bfloat(f: Function, x: Value) -> Value:
    bits = f.bits(x)
    odd = f.binary("and", f.binary("lshr", bits, constant(bits.type, 16)), constant(bits.type, 1))
    rounded = f.add(bits, f.add(odd, constant(bits.type, 0x7FFF)))
    rounded = f.binary("and", rounded, constant(bits.type, -(1 << 16)))
    return f.select(f.compare("uno", x, x), x, f.convert("bitcast", rounded, x.type))


def _nearest_half(f: Function, x: Value) -> Value:
    """Adding 2**13 times its power of two to a number leaves the 11 bits of a half; adding 0.5, the
    multiples of the least subnormal one."""
    size = f.intrinsic("fabs", x)
    exponent = f.binary("and", f.bits(size), constant(x.type.of("i32"), 0xFF << 23))
    power = f.convert("bitcast", exponent, x.type)
    unit = f.mul(power, constant(x.type, 2.0**13))
    unit = f.select(f.compare("olt", unit, constant(x.type, 0.5)), constant(x.type, 0.5), unit)
    rounded = f.sub(f.add(size, unit), unit)
    overflow = f.compare("oge", size, constant(x.type, 65520.0))
    rounded = f.select(overflow, constant(x.type, math.inf), rounded)
    return f.intrinsic("copysign", rounded, x)


def widen_bfloat(f: Function, x: Value) -> Value:
    """bfloat16 is the upper half of a float32."""
    bits = f.convert("zext", f.bits(x), x.type.of("i32"))
    shifted = f.binary("shl", bits, constant(bits.type, 16))
    if not x.type.lanes:  # LLVM fails an assertion where it looks through this for the sign
        shifted = f.emit(shifted.type, f"freeze {shifted}")
    return f.convert("bitcast", shifted, x.type.of("float"))


def narrow_bfloat(f: Function, x: Value) -> Value:
    """Round to nearest, ties to even, in integer arithmetic; NaN stays a quiet NaN."""
    bits = f.bits(x)
    upper = f.binary("lshr", bits, constant(bits.type, 16))
    odd = f.binary("and", upper, constant(bits.type, 1))
    rounded = f.add(bits, f.add(odd, constant(bits.type, 0x7FFF)))
    rounded = f.binary("lshr", rounded, constant(bits.type, 16))
    quiet = f.binary("or", upper, constant(bits.type, 0x40))
    chosen = f.select(f.compare("uno", x, x), quiet, rounded)
    narrow = f.convert("trunc", chosen, x.type.of("i16"))
    return f.convert("bitcast", narrow, x.type.of(BFLOAT.element))


def _has_half_instructions(f: Function) -> bool:
    target = f.module.target
    return target is None or "+f16c" in target.features or "neon" in target.features


def widen_half(f: Function, x: Value) -> Value:
    """float16 to float32, exactly."""
    if _has_half_instructions(f):
        return f.convert("fpext", x, x.type.of("float"))
    i32 = x.type.of("i32")
    bits = f.convert("zext", f.bits(x), i32)
    sign = f.binary("shl", f.binary("and", bits, constant(i32, 0x8000)), constant(i32, 16))
    magnitude = f.binary("shl", f.binary("and", bits, constant(i32, 0x7FFF)), constant(i32, 13))
    # Rebias by a multiplication, which also makes subnormals normal; then mend inf and NaN.
    scaled = f.mul(
        f.convert("bitcast", magnitude, x.type.of("float")), constant(x.type.of("float"), 2.0**112)
    )
    special = f.compare("uge", magnitude, constant(i32, 0x7C00 << 13))
    wide = f.select(special, f.binary("or", magnitude, constant(i32, 0xFF << 23)), f.bits(scaled))
    return f.convert("bitcast", f.binary("or", wide, sign), x.type.of("float"))


def narrow_half(f: Function, x: Value) -> Value:
    """float32 to float16, rounded to nearest even; overflow to infinity, NaN to a quiet NaN."""
    if _has_half_instructions(f):
        return f.convert("fptrunc", x, x.type.of("half"))
    i32, real = x.type.of("i32"), x.type
    bits = f.bits(x)
    sign = f.binary("and", bits, constant(i32, -(1 << 31)))
    size = f.binary("xor", bits, sign)
    absolute = f.convert("bitcast", size, real)
    # Normal results: add half a unit in the last place that stays, ties to even, and rebias.
    odd = f.binary("and", f.binary("lshr", size, constant(i32, 13)), constant(i32, 1))
    rebased = f.add(size, f.add(odd, constant(i32, 0xFFF - (112 << 23))))
    normal = f.binary("lshr", rebased, constant(i32, 13))
    # Subnormal results: the addition of 0.5 rounds at just the right bit.
    shifted = f.bits(f.add(absolute, constant(real, 0.5)))
    subnormal = f.sub(shifted, constant(i32, 0x3F000000))
    result = f.select(f.compare("slt", size, constant(i32, 113 << 23)), subnormal, normal)
    overflow = f.compare("sge", size, constant(i32, 0x477FF000))
    result = f.select(overflow, constant(i32, 0x7C00), result)
    result = f.select(f.compare("uno", x, x), constant(i32, 0x7E00), result)
    result = f.binary("or", result, f.binary("lshr", sign, constant(i32, 16)))
    return f.convert(
        "bitcast", f.convert("trunc", result, x.type.of("i16")), x.type.of(HALF.element)
    )


def lane_numbers(f: Function, lanes: int, type_: Type = I32) -> Value:
    """The vector <0, 1, 2, ...>."""
    items = ", ".join(f"{type_.element} {i}" for i in range(lanes))
    return Value(Type(type_.element, lanes), f"<{items}>")


def first_lanes(f: Function, count: Size, lanes: int) -> Value:
    """The mask of the first `count` lanes, or of all."""
    most = f.i64(f.min_size(count, lanes))  # so that 32 bits hold it
    limit = f.splat(f.convert("trunc", most, I32), lanes)
    return f.compare("slt", lane_numbers(f, lanes), limit)


def load_vector(
    f: Function, dtype: str, base: Value, step: Value | int, lanes: int, mask: Value | None
) -> Value:
    """`lanes` elements from `base` on, `step` elements apart; those outside `mask` read as 0."""
    element = STORED[dtype]
    type_ = Type(element.element, lanes)
    pays = mask is None or _masks_pay(f, element)
    if step == 1:
        raw = _neighbours(f, type_, base, mask)
    elif step == -1 and pays:
        first = f.offset(element, base, 1 - lanes)
        raw = _reversed(f, _neighbours(f, type_, first, mask and _reversed(f, mask)))
    elif isinstance(step, int) and step in SPREAD and pays:
        raw = _spread(f, type_, base, step, mask)
    else:
        raw = f.masked_gather(type_, _addresses(f, element, base, step, lanes), mask)
    return computed(f, dtype, raw)


def _neighbours(f: Function, type_: Type, base: Value, mask: Value | None) -> Value:
    return f.load(type_, base) if mask is None else f.masked_load(type_, base, mask)


def _reversed(f: Function, vector: Value) -> Value:
    """The last lane first."""
    return f.shuffle(vector, vector, range(vector.type.lanes)[::-1])


def _masks_pay(f: Function, element: Type) -> bool:
    """Whether the processor loads parts of vectors."""
    target = f.module.target
    return target is not None and target.has_masks() and element.bits >= 32


def _spread(f: Function, type_: Type, base: Value, step: int, mask: Value | None) -> Value:
    """Every `step`-th element, from as many vectors without gaps; the last of them overlaps the one
    before, so that none reaches behind the last element."""
    lanes = type_.lanes
    starts = [*range(0, (step - 1) * lanes, lanes), (step - 1) * (lanes - 1)]
    vectors = []
    for start in starts:
        at, there = f.offset(type_, base, start), None
        if mask is not None:
            wanted = range(start, start + lanes)
            chosen = [place // step if place % step == 0 else lanes for place in wanted]
            there = f.shuffle(mask, constant(mask.type, 0), chosen)
        vectors.append(_neighbours(f, type_, at, there))
    found = vectors[0]
    places = range(0, step * lanes, step)
    for number in range(1, step):
        before = starts[number - 1] + lanes  # what is found before this place
        lane = [
            -1 if place >= starts[number] + lanes
            else lanes + place - starts[number] if place >= before
            else place if number == 1
            else i
            for i, place in enumerate(places)
        ]  # fmt: skip
        found = f.shuffle(found, vectors[number], lane)
    return found


def load_at(f: Function, dtype: str, base: Value, at: Value, mask: Value | None) -> Value:
    """One element a lane, at the `i64` element positions `at` behind `base`."""
    element = STORED[dtype]
    raw = f.masked_gather(Type(element.element, at.type.lanes), f.offsets(element, base, at), mask)
    return computed(f, dtype, raw)


def store_vector(
    f: Function, dtype: str, value: Value, base: Value, step: Value | int, mask: Value | None
) -> None:
    """The counterpart of `load_vector`; lanes outside `mask` are left as they are in memory."""
    raw, lanes = stored(f, dtype, value), value.type.lanes
    if step == -1 and (mask is None or _masks_pay(f, STORED[dtype])):
        raw, mask = _reversed(f, raw), mask and _reversed(f, mask)
        base, step = f.offset(STORED[dtype], base, 1 - lanes), 1
    if step != 1:
        f.masked_scatter(raw, _addresses(f, STORED[dtype], base, step, lanes), mask)
    elif mask is None:
        f.store(raw, base)
    else:
        f.masked_store(raw, base, mask)


def store_between(
    f: Function, dtype: str, values: Sequence[Value], bases: Sequence[Value], mask: Value | None
) -> None:
    """Vectors of whose elements, from its base on, each takes one place of as many as there are
    vectors, behind that of the vector before."""
    apart = len(values)
    if mask is not None and not _masks_pay(f, STORED[dtype]):
        for value, base in zip(values, bases, strict=True):
            store_vector(f, dtype, value, base, apart, mask)
        return
    vectors = [stored(f, dtype, value) for value in values]
    lanes = vectors[0].type.lanes
    for begin in range(0, apart * lanes, lanes):
        part = range(begin, begin + lanes)
        mixed = _mixed(f, vectors, part)
        at = f.offset(STORED[dtype], bases[0], begin)
        if mask is None:
            f.store(mixed, at)
        else:
            f.masked_store(mixed, at, f.shuffle(mask, mask, [i // apart for i in part]))


def _mixed(f: Function, vectors: Sequence[Value], places: Sequence[int]) -> Value:
    """One vector of what stands at `places`, where the vectors' elements stand in turn."""
    apart, lanes = len(vectors), len(places)

    def lane(i: int, place: int, added: int) -> int:
        """Where the element is found, of the vectors before number `added` mixed, and of that."""
        number, own = place % apart, place // apart
        if number == added:
            return lanes + own
        return -1 if number > added else own if added == 1 else i

    mixed = vectors[0]
    for added in range(1, apart):
        chosen = [lane(i, place, added) for i, place in enumerate(places)]
        mixed = f.shuffle(mixed, vectors[added], chosen)
    return mixed


def _addresses(f: Function, element: Type, base: Value, step: Value | int, lanes: int) -> Value:
    stride = f.splat(f.i64(step), lanes)
    at = f.mul(lane_numbers(f, lanes, Type("i64")), stride)
    return f.offsets(element, base, at)
