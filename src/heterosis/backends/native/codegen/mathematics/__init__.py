"""Vector mathematics: each function is `name(f, x, ...) -> value` on float or double, any lanes.

The formulas are in the modules, written with `Number`; here is how the code generator calls them.
They have no branches, but for rare cases that are too long to always compute, and call no library.
"""

from heterosis.backends.native.codegen.mathematics import (
    error,
    exponential,
    frequent_powers,
    gamma_functions,
    hyperbolic,
    inverse_hyperbolic,
    inverse_trigonometric,
    logarithm,
    roots,
    rounding,
    trigonometric,
)
from heterosis.backends.native.codegen.mathematics.number import emitted
from heterosis.backends.native.codegen.mathematics.ulps import ULPS as ULPS

exp = emitted(exponential.exp)
exp2 = emitted(exponential.exp2)
expm1 = emitted(exponential.expm1)
sigmoid = emitted(exponential.sigmoid)

log = emitted(logarithm.log)
log2 = emitted(logarithm.log2)
log10 = emitted(logarithm.log10)
log1p = emitted(logarithm.log1p)

power = emitted(frequent_powers.power)
sqrt = emitted(roots.sqrt)
rsqrt = emitted(roots.rsqrt)
cbrt = emitted(roots.cbrt)
hypot = emitted(roots.hypot)

sin = emitted(trigonometric.sin)
cos = emitted(trigonometric.cos)
tan = emitted(trigonometric.tan)
arcsin = emitted(inverse_trigonometric.arcsin)
arccos = emitted(inverse_trigonometric.arccos)
arctan = emitted(inverse_trigonometric.arctan)
arctan2 = emitted(inverse_trigonometric.arctan2)

sinh = emitted(hyperbolic.sinh)
cosh = emitted(hyperbolic.cosh)
tanh = emitted(hyperbolic.tanh)
arcsinh = emitted(inverse_hyperbolic.arcsinh)
arccosh = emitted(inverse_hyperbolic.arccosh)
arctanh = emitted(inverse_hyperbolic.arctanh)

erf = emitted(error.erf)
erfc = emitted(error.erfc)
erfinv = emitted(error.erfinv)
gamma = emitted(gamma_functions.gamma)
gammaln = emitted(gamma_functions.gammaln)
digamma = emitted(gamma_functions.digamma)

rint = emitted(rounding.rint)
floor = emitted(rounding.floor)
ceil = emitted(rounding.ceil)
trunc = emitted(rounding.trunc)
fmod = emitted(rounding.fmod)
mod = emitted(rounding.mod)
floor_divide = emitted(rounding.floor_divide)
ldexp = emitted(rounding.ldexp)
nextafter = emitted(rounding.nextafter)
spacing = emitted(rounding.spacing)
