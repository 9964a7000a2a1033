"""erf: in pieces, or a polynomial near zero and 1 - exp(-q(x)) away from it.

The polynomials are reweighted least-squares fits in 200-bit arithmetic, rounded one coefficient
at a time with the rest fitted again; `2^-n` is the relative error of erf.
"""

from __future__ import annotations

from heterosis.backends.native.codegen.emit.builder import Value
from heterosis.backends.native.codegen.mathematics.compensated import exact_product
from heterosis.backends.native.codegen.mathematics.exponential import (
    OFFSET,
    double_bias,
    exp2_tail,
    exp_reduced,
    magic,
    power_of_two,
    scaled,
)
from heterosis.backends.native.codegen.mathematics.logarithm import log
from heterosis.backends.native.codegen.mathematics.number import (
    Number,
    at_most,
    fma,
    polynomial,
    split_polynomial,
    where,
)
from heterosis.backends.native.codegen.mathematics.pieces import ERF
from heterosis.backends.native.codegen.mathematics.registers import looks_up

# erf(x) / x - 1 in powers of x^2, for |x| <= 0.93 and 1: 2^-25.8 and 2^-56.
NEAR_SINGLE = (0.12837915, -0.3761249, 0.11281731, -0.026762966, 0.004987352, -0.00059595786)
NEAR_DOUBLE = (
    0.12837916709551256, -0.37612638903183376, 0.11283791670939433, -0.026866170642465055,
    0.005223977601457736, -0.0008548325728926056, 0.00012055288122594884,
    -1.4924615885247188e-05, 1.6446027388179385e-06, -1.6198409919997727e-07,
    1.3678840594441494e-08, -7.722792520587311e-10,
)  # fmt: skip
# -log2(1 - erf(x)) / x on 0.92 .. 4 and 0.99 .. 6: 2^-30.3 and 2^-61.3.
FAR_SINGLE = (
    1.6282963, 0.91632676, 0.15327245, -0.034285963, 0.005257212, -0.00046628664, 1.6263577e-05,
)  # fmt: skip
FAR_DOUBLE = (
    1.6279070791083734, 0.9184475862026051, 0.14827290201683888, -0.027608351549696517,
    -0.0002727107629669983, 0.002393795073118589, -0.0007758249008834094,
    -4.734101783717942e-05, 0.00016909892190936448, -9.787918777756313e-05,
    3.675087716957068e-05, -1.0322859921856052e-05, 2.2529087594041797e-06,
    -3.8374845919528477e-07, 5.028542863255505e-08, -4.907088274181811e-09,
    3.361620733029882e-10, -1.4426177488840544e-11, 2.9171942639076755e-13,
)  # fmt: skip
CENTRE = 2.5
# erfc(x) * exp(x^2) * (x + CENTRE) in powers of (x - CENTRE) / (x + CENTRE), from 1/2 up: 2^-25.1
# and 2^-54.
TAIL_SINGLE = (
    1.0540318, -0.80465186, 0.45391235, -0.17124975, 0.028379094, 0.008377719, -0.004866602,
    -0.00038791314, 0.0006971205,
)  # fmt: skip
TAIL_DOUBLE = (
    1.054031820305718, -0.8046518494391489, 0.45391411664807524, -0.17125114524602608,
    0.028361550133458802, 0.008393044300842725, -0.004818785563283638, -0.00043920821694272264,
    0.000702694277010742, 5.830702586325096e-05, -0.00011260916258635121,
    -1.952536190262287e-05, 1.826452125347411e-05, 6.718226919330263e-06,
    -2.3875274521080438e-06, -1.8464421168823003e-06, 7.460346779289054e-08,
    2.2296871891811452e-07, 1.0283878444769677e-07, 1.706373964878425e-07,
    -1.0189496234533451e-07, -1.0402395766389787e-07, 5.997000548009436e-08,
)  # fmt: skip
# With w = -log(1 - x^2): (erfinv(x) / x - erfinv'(0)) / w in powers of w - 2.5 up to 5, then
# erfinv(x) / x - sqrt(w) in powers of sqrt(w) - 3: 2^-26.2 and 2^-23.4. In double the first up to
# 6, the second around 3.2 up to 16 and around 5 beyond: 2^-56.5, 2^-54.6 and 2^-53.8.
INVERSE_SLOPE = 0.886226925452758
INVERSE_SINGLE = (
    (
        0.24607298, 0.00022692034, -0.0017617356, 0.0002036053, 5.904079e-06, -4.3515497e-06,
        3.536026e-07, 4.5998114e-08, -8.96184e-09,
    ),
    (
        -0.16702296, 0.0016744141, 0.009433626, -0.0076292227, 0.005774257, -0.00364594,
        0.0012736728, 7.23646e-05, -0.0001463412,
    ),
)  # fmt: skip
INVERSE_DOUBLE = (
    (
        0.24577169367069063, -0.001380429834844114, -0.0014525684620538106,
        0.0002054622283815146, -3.4669679897562177e-06, -3.0831515497115296e-06,
        4.450498184069708e-07, 1.6452024326104804e-09, -8.444643488469123e-09,
        9.924881035098826e-10, 3.9436721689887025e-11, -2.3620727291878555e-11,
        2.0973107654967923e-12, 2.005424028806812e-13, -6.476704916080713e-14,
        3.947548192557247e-15, 7.95004457471796e-16, -1.7387285336647156e-16,
        3.946388651618704e-18, 2.9938197383823682e-18, -3.2531817185017724e-19,
        -2.290326892616166e-20, 4.3838309742154246e-21,
    ),
    (
        -0.16636342559076775, 0.004692441868963121, 0.005973169515031983, -0.004294165030414674,
        0.0029508202872816076, -0.0019930124556566905, 0.0010784539458102594,
        -0.0003577698581825163, -1.2268020678170697e-05, 9.356171565562028e-05,
        -5.353832328592006e-05, 9.862365864241806e-06, 5.8495593398720465e-06,
        -5.014702114725143e-06, 1.4386582594557666e-06, 2.2144214918097467e-07,
        -3.933582240627165e-07, 1.3732645567623474e-07, 2.0593224361952084e-08,
        -2.0987723196843694e-08,
    ),
    (
        -0.15009359859141597, 0.010300464864543196, -0.00013871931833639233,
        -0.0002150301197130175, 7.599527704232083e-05, -1.9681772416018628e-05,
        4.526062427516546e-06, -9.930181344851864e-07, 2.2900580454048893e-07,
        -6.759472344203213e-08, 2.914511646560833e-08, -1.518102071301906e-08,
        7.619986527950225e-09, -3.551761910790378e-09, 1.5044266154483005e-09,
        -3.9145984993283476e-10, -2.6152090791380174e-11, 3.203187669869842e-11,
    ),
)  # fmt: skip


def erf(x: Number) -> Number:
    """The error function."""
    if looks_up(x):
        return ERF(x)
    magnitude = at_most(abs(x), 6.0 if x.double else 4.0)
    square = magnitude * magnitude
    near = polynomial(square, NEAR_DOUBLE if x.double else NEAR_SINGLE)
    p = split_polynomial(magnitude, square, FAR_DOUBLE if x.double else FAR_SINGLE)
    shift = magic(x, 1023 if x.double else 127)
    shifted = fma(magnitude, -p, -OFFSET) + shift
    r = fma(magnitude, -p, shift - shifted)
    scale = power_of_two(shifted)
    far = (1.0 - fma(scale, exp2_tail(r), scale)).with_sign_of(x)
    return where(magnitude < (1.0 if x.double else 0.925), fma(near, x, x), far)


def erfc(x: Number) -> Number:
    """1 - erf(x), accurate where it is small."""
    magnitude = at_most(abs(x), 27.5 if x.double else 10.5)
    near = polynomial(magnitude * magnitude, NEAR_DOUBLE if x.double else NEAR_SINGLE)
    near = 1.0 - fma(near, x, x)
    # exp(-x^2) / (x + c) * a polynomial in (x - c) / (x + c)
    inverse = 1.0 / (magnitude + CENTRE)
    u = (magnitude - CENTRE) * inverse
    scale = inverse * split_polynomial(u, u * u, TAIL_DOUBLE if x.double else TAIL_SINGLE)
    square, lost = exact_product(magnitude, magnitude)
    shifted, t = exp_reduced(-square, double_bias(x))
    t = t - fma(lost, t, lost)
    far = scaled(fma(t, scale, scale), shifted)
    far = where(x < 0.0, 2.0 - far, far)
    return where(magnitude < 0.5, near, far)


def erfinv(x: Number) -> Number:
    """The inverse of erf: x times a function of -log(1 - x^2)."""
    magnitude = abs(x)
    w = -log((1.0 - magnitude) * (1.0 + magnitude))
    u = w - (3.0 if x.double else 2.5)
    near = split_polynomial(u, u * u, (INVERSE_DOUBLE if x.double else INVERSE_SINGLE)[0])
    near = fma(near, w, INVERSE_SLOPE)
    outer = w > (5.98 if x.double else 5.0)

    def with_ends() -> list[Value]:
        root = w.sqrt()
        far = _far_double(w, root) if x.double else _around(root, 3.0, INVERSE_SINGLE[1])
        return [where(outer, root + far, near).value]

    result = x.made(*x.f.if_else(outer.any().value, with_ends, lambda: [near.value]))
    return where(magnitude == 1.0, float("inf"), result * magnitude).with_sign_of(x)


def _far_double(w: Number, root: Number) -> Number:
    middle = _around(root, 3.2, INVERSE_DOUBLE[1])
    return where(w > 16.0, _around(root, 5.0, INVERSE_DOUBLE[2]), middle)


def _around(x: Number, centre: float, coefficients: tuple[float, ...]) -> Number:
    offset = x - centre
    return split_polynomial(offset, offset * offset, coefficients)
