"""What the generated code may use of a processor."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True)
class Target:
    """A processor family as the lowerings see it: how wide a vector is and how many there are."""

    name: str
    triple: str
    cpu: str
    features: str
    vector_bytes: int
    vector_registers: int

    def lanes(self, itemsize: int) -> int:
        """Elements of `itemsize` bytes in one vector register."""
        return self.vector_bytes // itemsize

    def has_masks(self, bits: int = 32) -> bool:
        """Whether it loads and stores parts of vectors whose elements are so wide."""
        return self._has("avx512bw") or (self._has("avx2") and bits >= 32)

    @property
    def has_mask_registers(self) -> bool:
        """Whether a mask is a register of its own, a bit for each lane, and no vector."""
        return self._has("avx512bw")

    @property
    def stores_parts(self) -> bool:
        """Whether to store a part of a vector takes no longer than to store all of it."""
        return self._has("avx512f")

    def multiplies(self, bits: int) -> bool:
        """Whether it multiplies vectors of such integers in one instruction."""
        widest = 64 if self._has("avx512dq") else 32 if self._has("avx2", "neon") else 16
        return bits <= widest

    @property
    def multiplies_by_lanes(self) -> bool:
        """Whether one lane of a vector can be multiplied with all of another one."""
        return self._has("neon")

    @property
    def adds_in_addresses(self) -> bool:
        """Whether a load's address may be the sum of two registers and a number."""
        return not self._has("neon")

    def picks_lanes(self, bits: int) -> bool:
        """Whether it picks, for every lane of such numbers, any lane of the same vector."""
        return self._has("avx512f") or (self._has("avx2") and bits == 32)

    @property
    def looks_up(self) -> bool:
        """Whether it picks, for every lane of single precision, one of the lanes of two others."""
        return self._has("avx512f")

    @property
    def scales(self) -> bool:
        """Whether it multiplies vectors of single precision by powers of two, rounding once."""
        return self._has("avx512f")

    @property
    def normalises(self) -> bool:
        """Whether it takes vectors of single precision apart into exponents and fractions."""
        return self._has("avx512f")

    @property
    def estimates(self) -> bool:
        """Whether it estimates reciprocals of single precision within 2^-14."""
        return self._has("avx512f")

    def _has(self, *features: str) -> bool:
        return not _features(self.features).isdisjoint(features)

    @property
    def function_attributes(self) -> str:
        """Keeps LLVM from splitting wide vectors on processors that prefer narrow ones."""
        return _vectors_of(self.vector_bytes)

    @property
    def attributes_for_memory(self) -> str:
        """Those of functions that wait for memory, and call no instruction by its name: they move
        32 bytes at a time. Two large arrays are added in 6% less then (Zen 4), small ones in
        the same time."""
        return _vectors_of(min(self.vector_bytes, 32))


def _vectors_of(size: int) -> str:
    return f'"prefer-vector-width"="{size * 8}" "min-legal-vector-width"="{size * 8}"'


@cache
def _features(text: str) -> frozenset[str]:
    return frozenset(text.replace("+", "").split(","))


_LINUX = "x86_64-unknown-linux-gnu"

AVX512 = Target(
    "avx512",
    _LINUX,
    "skylake-avx512",
    "+avx512f,+avx512dq,+avx512bw,+avx512vl,+avx512cd,+avx2,+fma,+f16c,+bmi,+bmi2",
    64,
    32,
)
AVX2 = Target("avx2", _LINUX, "haswell", "+avx2,+fma,+f16c,+bmi,+bmi2", 32, 16)
FALLBACK = Target("fallback", _LINUX, "x86-64", "+sse2", 16, 16)
NEON = Target("neon", "aarch64-unknown-linux-gnu", "generic", "+neon", 16, 32)

TARGETS = {target.name: target for target in (AVX512, AVX2, FALLBACK, NEON)}
