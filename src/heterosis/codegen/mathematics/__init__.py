"""Vector mathematics: each function is `name(f, x, ...) -> value` on float or double, any lanes."""

from heterosis.codegen.mathematics import (
    error,
    exponential,
    hyperbolic,
    logarithm,
    powers,
    roots,
    trigonometric,
)
from heterosis.codegen.mathematics.number import emitted

exp = emitted(exponential.exp)
exp2 = emitted(exponential.exp2)
expm1 = emitted(exponential.expm1)
sigmoid = emitted(exponential.sigmoid)
log = emitted(logarithm.log)
log2 = emitted(logarithm.log2)
log10 = emitted(logarithm.log10)
log1p = emitted(logarithm.log1p)
tanh = emitted(hyperbolic.tanh)
sqrt = emitted(roots.sqrt)
rsqrt = emitted(roots.rsqrt)
erf = emitted(error.erf_single)
sin = emitted(trigonometric.sin)
cos = emitted(trigonometric.cos)
tan = emitted(trigonometric.tan)
power = emitted(powers.power)
