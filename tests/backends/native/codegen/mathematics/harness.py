"""Runs one function of `codegen.mathematics` over arrays, and measures errors in ulps."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache

import numpy
from scipy import special

from heterosis import _core
from heterosis.backends.native.codegen import mathematics
from heterosis.backends.native.codegen.emit.builder import DOUBLE, FLOAT, I64, PTR, Module, Type
from heterosis.backends.native.codegen.mathematics import gates
from heterosis.backends.native.codegen.mathematics.number import emitted
from heterosis.backends.native.codegen.target import TARGETS, Target
from heterosis.backends.native.compile.compiler import compile_object

LONG = numpy.longdouble
ELEMENTS = {"float32": FLOAT, "float64": DOUBLE}
WIDE = {"float32": numpy.float64, "float64": LONG}
BITS = {"float32": numpy.uint32, "float64": numpy.uint64}


def write_kernel(module: Module, name: str, dtype: str, arity: int, lanes: int = 0) -> None:
    """`name(n, inputs..., output)`: vectors as long as they fit, then single elements."""
    target = module.target
    element = ELEMENTS[dtype]
    lanes = lanes or target.lanes(element.bits // 8)
    parameters = [("n", I64), *((f"in{i}", PTR) for i in range(arity)), ("out", PTR)]
    f = module.function(
        f"{name}_{dtype}", parameters, linkage="", attributes=target.function_attributes
    )
    n, *inputs, out = f.parameters

    def body(index, type_: Type) -> None:
        loaded = [f.load(type_, f.offset(element, pointer, index)) for pointer in inputs]
        f.store(_emitter(name)(f, *loaded), f.offset(element, out, index))

    whole = f.round_down(n, lanes)
    with f.loop(0, whole, lanes) as loop:
        body(loop.index, Type(element.element, lanes))
    with f.loop(whole, n) as loop:
        body(loop.index, element)
    f.ret()


_GATES = {"gate_sigmoid": emitted(gates.sigmoid), "gate_tanh": emitted(gates.tanh)}


def _emitter(name: str) -> Callable:
    return _GATES.get(name) or getattr(mathematics, name)


class Kernel:
    """A compiled function, called with arrays that broadcast."""

    def __init__(self, name: str, dtype: str, arity: int, target: Target, lanes: int = 0):
        module = Module(target=target)
        write_kernel(module, name, dtype, arity, lanes)
        self.loaded = _core.load_object(compile_object(module.text(), target))
        pointers = [ctypes.c_void_p] * (arity + 1)
        prototype = ctypes.CFUNCTYPE(None, ctypes.c_int64, *pointers)
        self.entry = prototype(self.loaded.address(f"{name}_{dtype}"))
        self.dtype = dtype

    def __call__(self, *arrays: numpy.ndarray) -> numpy.ndarray:
        arrays = numpy.broadcast_arrays(*(numpy.asarray(a, self.dtype) for a in arrays))
        arrays = [numpy.ascontiguousarray(a) for a in arrays]
        out = numpy.empty_like(arrays[0])
        self.entry(out.size, *(a.ctypes.data for a in arrays), out.ctypes.data)
        return out


@cache
def kernel(name: str, dtype: str, arity: int, target: str) -> Kernel:
    return Kernel(name, dtype, arity, TARGETS[target])


# -- errors ---------------------------------------------------------------------------------------


def ulps(result: numpy.ndarray, exact: numpy.ndarray) -> numpy.ndarray:
    """Errors in units of the last place of the exact value; infinite where only one is NaN.

    Infinity counts as the power of two behind the greatest float.
    """
    limits = numpy.finfo(result.dtype)
    wide = exact.dtype.type
    beyond = numpy.ldexp(wide(1), int(limits.maxexp))

    def finite(values):
        values = values.astype(wide)
        return numpy.where(numpy.isinf(values), numpy.copysign(beyond, values), values)

    with numpy.errstate(all="ignore"):
        exact = numpy.clip(exact, -beyond, beyond)
        exponent = numpy.frexp(exact)[1] - 1
        exponent = numpy.where(exact == 0, limits.minexp, exponent)
        exponent = numpy.clip(exponent, int(limits.minexp), int(limits.maxexp) - 1)
        unit = numpy.ldexp(wide(1), exponent - limits.nmant)
        error = numpy.abs(finite(result) - finite(exact)) / unit
    either, both = (
        numpy.isnan(result) | numpy.isnan(exact),
        numpy.isnan(result) & numpy.isnan(exact),
    )
    return numpy.where(both, 0, numpy.where(either, numpy.inf, error))


def same(a: numpy.ndarray, b: numpy.ndarray) -> numpy.ndarray:
    """Equal with equal signs of zeros, or both NaN."""
    equal = (a == b) & (numpy.signbit(a) == numpy.signbit(b))
    return equal | (numpy.isnan(a) & numpy.isnan(b))


# -- samples --------------------------------------------------------------------------------------

SPECIAL = (
    0.0, 1.0, 2.0, 3.0, 0.5, 0.25, 1.5, 2.5, 0.1, 0.9999999, 1.0000001, 7.0, 100.0, 1e5, 1e10, 1e22,
    1e30, 3.4e38, 1e-5, 1e-10, 1e-30, 1.2e-38, 1e-40, 1e-45, numpy.pi, numpy.pi / 2, numpy.e,
    88.7, 89.0, 104.0, 709.7, 710.5, 746.0, 127.0, 128.0, 149.0, 150.0, 1023.0, 1024.0, 1074.0,
    16777215.0, 16777216.0, 16777217.0, 9007199254740991.0, 9007199254740992.0, 1e300, 1.79e308,
    2.3e-308, 1e-310, 5e-324, numpy.inf, numpy.nan,
)  # fmt: skip


def special_values(dtype: str) -> numpy.ndarray:
    with numpy.errstate(over="ignore"):
        positive = numpy.array(SPECIAL).astype(dtype)
    return numpy.concatenate([positive, -positive])


def samples(dtype: str, domains: tuple[tuple[float, float], ...], count: int) -> numpy.ndarray:
    """Special values, every so-manieth bit pattern, random bits, and `count` in each domain."""
    random = numpy.random.default_rng(7)
    width = BITS[dtype]().itemsize * 8
    patterns = numpy.arange(0, 1 << width, (1 << width) // count, dtype=object).astype(BITS[dtype])
    noise = random.integers(0, (1 << width) - 1, count, numpy.uint64, endpoint=True)
    dense = [random.uniform(low, high, count).astype(dtype) for low, high in domains]
    return numpy.concatenate(
        [
            special_values(dtype),
            patterns.view(dtype),
            noise.astype(BITS[dtype]).view(dtype),
            *dense,
        ]
    )


# -- references -----------------------------------------------------------------------------------


def wide(function: Callable) -> Callable:
    """A NumPy function, evaluated in the next precision."""

    def reference(dtype: str, *arrays: numpy.ndarray) -> numpy.ndarray:
        with numpy.errstate(all="ignore"):
            return function(*(a.astype(WIDE[dtype]) for a in arrays))

    return reference


def from_scipy(single: Callable, exact: Callable) -> Callable:
    """SciPy in double precision for floats, mpmath for doubles."""

    def reference(dtype: str, x: numpy.ndarray) -> numpy.ndarray:
        with numpy.errstate(all="ignore"):
            if dtype == "float32":
                return single(x.astype(numpy.float64))
            return numpy.array([extended(exact, float(value)) for value in x], LONG)

    return reference


def extended(exact: Callable, value: float) -> LONG:
    """An mpmath function's value as a long double."""
    import mpmath

    with mpmath.workprec(200):
        number = mpmath.mpf(exact(mpmath, value))
        if not mpmath.isfinite(number):
            return LONG(float(number))
        fraction, exponent = mpmath.frexp(number)
        high = float(fraction)
        return numpy.ldexp(LONG(high) + LONG(float(fraction - high)), int(exponent))


def _erfinv(mpmath, x):
    if not abs(x) < 1:
        return numpy.copysign(numpy.inf, x) if abs(x) == 1 else numpy.nan
    return mpmath.erfinv(x)


def _gamma(mpmath, x):
    if numpy.isnan(x) or x == -numpy.inf or (x < 0 and x == numpy.floor(x)):
        return numpy.nan
    if x == 0 or x > 200:
        return numpy.copysign(numpy.inf, x)
    return mpmath.gamma(x) if x > -200 else 0


def _gammaln(mpmath, x):
    if numpy.isnan(x):
        return x
    if numpy.isinf(x) or (x <= 0 and x == numpy.floor(x)) or x > 1e306:
        return numpy.inf
    if x > 0:
        return mpmath.loggamma(x)
    turn = abs(mpmath.sinpi(mpmath.mpf(x)) * x)
    return mpmath.log(mpmath.pi) - mpmath.log(turn) - mpmath.loggamma(-mpmath.mpf(x))


def _gammaln_single(x):
    return numpy.where(numpy.isneginf(x), numpy.inf, special.gammaln(x))


def _limited(function):
    """mpmath is slow where the result is zero or one anyway."""

    def limited(mpmath, x):
        if numpy.isnan(x):
            return x
        return getattr(mpmath, function)(max(-40.0, min(40.0, x)))

    return limited


def _sigmoid(x):
    return 1 / (1 + numpy.exp(-x))


WIDER = (
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "cbrt", "hypot", "power"),
    *("sin", "cos", "tan", "arcsin", "arccos", "arctan", "arctan2"),
    *("sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh"),
)
REFERENCES = {name: wide(getattr(numpy, name)) for name in WIDER} | {
    "sigmoid": wide(_sigmoid),
    "rsqrt": wide(lambda x: 1 / numpy.sqrt(x)),
    "erf": from_scipy(special.erf, _limited("erf")),
    "erfc": from_scipy(special.erfc, _limited("erfc")),
    "erfinv": from_scipy(special.erfinv, _erfinv),
    "gamma": from_scipy(special.gamma, _gamma),
    "gammaln": from_scipy(_gammaln_single, _gammaln),
    "digamma": from_scipy(special.digamma, lambda mpmath, x: mpmath.digamma(x)),
}  # fmt: skip
