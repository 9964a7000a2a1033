"""What a matrix holds in memory, what it is computed in, and the way between the two."""

from __future__ import annotations

from dataclasses import dataclass

from heterosis.backends.native.codegen.emit.builder import (
    DOUBLE,
    FLOAT,
    HALF,
    I8,
    I16,
    I32,
    I64,
    Function,
    Type,
    Value,
    constant,
    literal_bits,
)
from heterosis.backends.native.codegen.target import Target


@dataclass(frozen=True)
class Element:
    """Narrow types are widened when they are read and narrowed when a result is stored.

    Integers wrap, so that sums in 32 bits leave the same low 8 or 16 bits as sums in 8 or 16.
    """

    dtype: str
    storage: Type
    compute: Type
    native_half: bool

    @property
    def converts(self) -> bool:
        return self.storage != self.compute or self.dtype == "bool"

    @property
    def software_half(self) -> bool:
        """Whether widening takes a dozen instructions: then it should be done once, in packing."""
        return self.dtype == "float16" and not self.native_half

    @property
    def splits_depth(self) -> bool:
        """Whether partial sums may rest in the result: a half would round them."""
        return self.dtype not in ("float16", "bfloat16")

    @property
    def widened(self) -> Element:
        """The type as it is computed in, at rest: what scratch tiles hold."""
        names = {FLOAT: "float32", DOUBLE: "float64", I32: "int32", I64: "int64"}
        return Element(names[self.compute], self.compute, self.compute, self.native_half)

    @property
    def size(self) -> int:
        """Bytes of one number as it is computed with."""
        return self.compute.bits // 8

    def load(self, f: Function, pointer: Value, lanes: int = 0, mask: Value | None = None) -> Value:
        """`lanes` neighbours in memory (one number if 0), widened; 0 for those outside `mask`."""
        type_ = Type(self.storage.element, lanes)
        read = f.load(type_, pointer) if mask is None else f.masked_load(type_, pointer, mask)
        return self._widen(f, read)

    def store(self, f: Function, a: Value, pointer: Value, mask: Value | None = None) -> None:
        """Narrowed; of the lanes outside `mask` nothing is written."""
        narrowed = self._narrow(f, a)
        if mask is None:
            f.store(narrowed, pointer)
        else:
            f.masked_store(narrowed, pointer, mask)

    def _widen(self, f: Function, a: Value) -> Value:
        to = Type(self.compute.element, a.type.lanes)
        if self.dtype == "bfloat16":
            wide = f.convert("zext", a, to.as_integer)
            bits = f.binary("shl", wide, constant(wide.type, 16))
            return f.convert("bitcast", bits, to)
        if self.dtype == "float16":
            return f.convert("fpext", a, to) if self.native_half else _half_to_float(f, a)
        return f.convert("sext", a, to)

    def _narrow(self, f: Function, a: Value) -> Value:
        to = Type(self.storage.element, a.type.lanes)
        if self.dtype == "bfloat16":
            return _float_to_bfloat(f, a)
        if self.dtype == "float16":
            return f.convert("fptrunc", a, to) if self.native_half else _float_to_half(f, a)
        if self.dtype == "bool":
            return f.convert("zext", f.compare("ne", a, constant(a.type, 0)), to)
        return f.convert("trunc", a, to)


_TYPES = {
    "float16": (HALF, FLOAT),
    "bfloat16": (I16, FLOAT),
    "float32": (FLOAT, FLOAT),
    "float64": (DOUBLE, DOUBLE),
    "bool": (I8, I32),
    "int8": (I8, I32),
    "uint8": (I8, I32),
    "int16": (I16, I32),
    "uint16": (I16, I32),
    "int32": (I32, I32),
    "uint32": (I32, I32),
    "int64": (I64, I64),
    "uint64": (I64, I64),
}


def element(dtype: str, target: Target) -> Element:
    storage, compute = _TYPES[dtype]
    native = "f16c" in target.features or "neon" in target.features
    if dtype == "float16" and not native:
        storage = I16  # without the instruction LLVM would call a library
    return Element(dtype, storage, compute, native)


def _float_to_bfloat(f: Function, a: Value) -> Value:
    """Round to nearest even; a NaN stays one even where its payload was all in the low bits."""
    bits = f.bits(a)
    number = bits.type
    high = f.binary("lshr", bits, constant(number, 16))
    odd = f.binary("and", high, constant(number, 1))
    rounded = f.add(f.add(bits, odd), constant(number, 0x7FFF))
    quiet = f.binary("or", high, constant(number, 0x40))
    nan = f.compare("uno", a, a)
    chosen = f.select(nan, quiet, f.binary("lshr", rounded, constant(number, 16)))
    return f.convert("trunc", chosen, number.of("i16"))


def _half_to_float(f: Function, a: Value) -> Value:
    """Shift into place and multiply by 2**112, which is exact for subnormals too."""
    wide = f.convert("zext", a, a.type.of("i32"))
    number = wide.type
    magnitude = f.binary(
        "shl", f.binary("and", wide, constant(number, 0x7FFF)), constant(number, 13)
    )
    sign = f.binary("shl", f.binary("and", wide, constant(number, 0x8000)), constant(number, 16))
    small = f.convert("bitcast", magnitude, number.of("float"))
    scaled = f.bits(f.mul(small, constant(small.type, 2.0**112)))
    special = f.compare("uge", magnitude, constant(number, 0x0F800000))
    infinite = f.binary("or", magnitude, constant(number, 0x7F800000))
    bits = f.binary("or", f.select(special, infinite, scaled), sign)
    return f.convert("bitcast", bits, small.type)


def _float_to_half(f: Function, a: Value) -> Value:
    """Round to nearest even; subnormals are rounded by the addition of 0.5."""
    bits = f.bits(a)
    number = bits.type
    magnitude = f.binary("and", bits, constant(number, 0x7FFFFFFF))
    sign = f.binary("lshr", f.sub(bits, magnitude), constant(number, 16))
    odd = f.binary("and", f.binary("lshr", magnitude, constant(number, 13)), constant(number, 1))
    rebased = f.add(f.add(magnitude, odd), literal_bits(number, 0xC8000FFF))
    normal = f.binary("lshr", rebased, constant(number, 13))
    shifted = f.add(f.convert("bitcast", magnitude, a.type), constant(a.type, 0.5))
    subnormal = f.sub(f.bits(shifted), constant(number, 0x3F000000))
    tiny = f.compare("ult", magnitude, constant(number, 0x38800000))
    finite = f.select(tiny, subnormal, normal)
    nan = f.compare("ugt", magnitude, constant(number, 0x7F800000))
    special = f.select(nan, constant(number, 0x7E00), constant(number, 0x7C00))
    huge = f.compare("uge", magnitude, constant(number, 0x47800000))
    chosen = f.binary("or", f.select(huge, special, finite), sign)
    return f.convert("trunc", chosen, number.of("i16"))
