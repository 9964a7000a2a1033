"""The operations of `heterosis.np`."""

# Made by docs/make_stubs.py: change the record of an operation, and run it again.
# mypy: allow-any-generics

from collections.abc import Sequence
from heterosis._core import ndarray
from heterosis._stubs.combining import combining
from heterosis.runtime.context import Context
from heterosis.typing import ArrayLike, DTypeLike
from typing import Any

def abs(
    x: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """The distance from zero."""

def absolute(
    x: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """The distance from zero."""

def acos(
    x: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """The angle whose cosine is `x`."""

def acosh(
    x: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """The inverse of `cosh`."""

@combining
def add(
    x1: ArrayLike,
    x2: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """`x1 + x2`."""

def all(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """Whether all elements along `axis` are true."""

def amax(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """The largest element along `axis`; NaN if any is."""

def amin(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """The smallest element along `axis`; NaN if any is."""

def any(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """Whether an element along `axis` is true."""

def append(
    arr: ArrayLike,
    values: ArrayLike,
    axis: int | None = None,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """`values` behind `arr` along `axis`; without one, all elements in one dimension."""

def arccos(
    x: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """The angle whose cosine is `x`."""

def arccosh(
    x: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """The inverse of `cosh`."""

def arcsin(
    x: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """The angle whose sine is `x`."""

def arcsinh(
    x: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """The inverse of `sinh`."""

def arctan(
    x: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """The angle whose tangent is `x`."""

def arctan2(
    x1: ArrayLike,
    x2: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """The angle of the point `(x2, x1)`."""

def arctanh(
    x: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """The inverse of `tanh`."""

def argmax(
    a: ArrayLike,
    axis: int | None = None,
    keepdims: bool = False,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """The position of the first largest element along `axis`; of the first NaN if there is one."""

def argmin(
    a: ArrayLike,
    axis: int | None = None,
    keepdims: bool = False,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """The position of the first smallest element along `axis`; of the first NaN if there is one."""

def argsort(
    a: ArrayLike,
    axis: int | None = -1,
    kind: str | None = None,
    order: str | None = None,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """The places of elements in ascending order along `axis`; equal ones keep their order."""

def around(x: ArrayLike, decimals: int = 0, *, out: ndarray | None = None) -> ndarray:
    """The nearest number with `decimals` digits behind the point; the even one of two."""

def asin(
    x: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """The angle whose sine is `x`."""

def asinh(
    x: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """The inverse of `sinh`."""

def assign(a: ArrayLike, *, out: ndarray | None = None) -> ndarray:
    """The elements of `a`; with `out=`, written into an array that may be larger or of another
    element type.
    """

def astype(a: ArrayLike, dtype: DTypeLike, *, out: ndarray | None = None) -> ndarray:
    """A new array with elements converted to `dtype`."""

def atan(
    x: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """The angle whose tangent is `x`."""

def atan2(
    x1: ArrayLike,
    x2: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """The angle of the point `(x2, x1)`."""

def atanh(
    x: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """The inverse of `tanh`."""

def average(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    weights: ArrayLike | None = None,
    returned: bool = False,
    keepdims: bool = False,
) -> Any:
    """The mean along `axis`, weighted if there are `weights`; with their sum if `returned`."""

def bitwise_and(
    x1: ArrayLike,
    x2: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """Bits set in both."""

def bitwise_invert(
    x: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """Every bit turned over; `not` for bools."""

def bitwise_left_shift(
    x1: ArrayLike,
    x2: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """`x1 << x2`."""

def bitwise_not(
    x: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """Every bit turned over; `not` for bools."""

def bitwise_or(
    x1: ArrayLike,
    x2: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """Bits set in either."""

def bitwise_right_shift(
    x1: ArrayLike,
    x2: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """`x1 >> x2`."""

def bitwise_xor(
    x1: ArrayLike,
    x2: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """Bits set in just one."""

def blackman(
    M: int,
    dtype: DTypeLike | None = None,
    ctx: Context | None = None,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """The Blackman window of `M` points."""

def broadcast_to(array: ArrayLike, shape: Any, *, out: ndarray | None = None) -> ndarray:
    """A new array that repeats `array` along extents of 1 and new dimensions in front."""

def cbrt(
    x: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """The cube root."""

def ceil(
    x: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """The least integer not below `x`."""

def clip(
    a: ArrayLike,
    a_min: ArrayLike | None = None,
    a_max: ArrayLike | None = None,
    min: ArrayLike | None = None,
    max: ArrayLike | None = None,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """Elements of `a` no lower than `a_min` and no higher than `a_max`; None is no bound."""

def column_stack(
    arrays: ndarray | Sequence[ArrayLike],
    *,
    out: ndarray | None = None,
) -> ndarray:
    """One-dimensional arrays as columns of a matrix, matrices as they are."""

def concat(
    seq: ndarray | Sequence[ArrayLike],
    axis: int | None = 0,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """Arrays one behind the other along `axis`; without one, all their elements."""

def concatenate(
    seq: ndarray | Sequence[ArrayLike],
    axis: int | None = 0,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """Arrays one behind the other along `axis`; without one, all their elements."""

def copy(a: ArrayLike, *, out: ndarray | None = None) -> ndarray:
    """A new array with the same elements."""

def copysign(
    x1: ArrayLike,
    x2: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """The size of `x1` with the sign of `x2`."""

def cos(
    x: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """The cosine of an angle in radians."""

def cosh(
    x: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """The hyperbolic cosine."""

def count_nonzero(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """How many elements are not zero."""

def cross(
    a: ArrayLike,
    b: ArrayLike,
    axisa: int = -1,
    axisb: int = -1,
    axisc: int = -1,
    axis: int | None = None,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """The vector product of vectors of three elements along an axis."""

def cumprod(
    a: ArrayLike,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """The product of all elements so far along `axis`."""

def cumsum(
    a: ArrayLike,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """The sum of all elements so far along `axis`; of the flattened array, without one."""

def deg2rad(
    x: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """An angle in degrees, in radians."""

def degrees(
    x: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """An angle in radians, in degrees."""

def diag(v: ArrayLike, k: int = 0, *, out: ndarray | None = None) -> ndarray:
    """The `k`-th diagonal of a matrix, or a matrix with `v` on its `k`-th diagonal."""

def diagflat(v: ArrayLike, k: int = 0, *, out: ndarray | None = None) -> ndarray:
    """A matrix with all elements of `v` on its `k`-th diagonal."""

def diagonal(
    a: ArrayLike,
    offset: int = 0,
    axis1: int = 0,
    axis2: int = 1,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """The elements whose indices along two axes are `offset` apart, as the last dimension."""

def diff(
    a: ArrayLike,
    n: int = 1,
    axis: int = -1,
    prepend: ArrayLike | None = None,
    append: ArrayLike | None = None,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """Each element less the one before it along `axis`, `n` times over."""

def divide(
    x1: ArrayLike,
    x2: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """`x1 / x2`, always a float."""

def divmod(x1: ArrayLike, x2: ArrayLike) -> tuple[ndarray, ndarray]:
    """`(x1 // x2, x1 % x2)`."""

def dot(a: ArrayLike, b: ArrayLike, *, out: ndarray | None = None) -> ndarray:
    """The matrix product; for more dimensions, the sum over the last of `a` and the last but one of
    `b`. With a single number, the product.
    """

def dstack(arrays: ndarray | Sequence[ArrayLike], *, out: ndarray | None = None) -> ndarray:
    """Arrays behind each other, along the third dimension."""

def ediff1d(
    ary: ArrayLike,
    to_end: ArrayLike | None = None,
    to_begin: ArrayLike | None = None,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """Each element less the one before it, in one dimension, with more elements at the ends."""

def equal(
    x1: ArrayLike,
    x2: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """`x1 == x2`."""

def exp(
    x: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """e to the power `x`."""

def exp2(
    x: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """2 to the power `x`."""

def expand_dims(
    a: ArrayLike,
    axis: int | Sequence[int] | None,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """A new dimension of extent 1 at `axis`."""

def expm1(
    x: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """`exp(x) - 1`, accurate for small `x`."""

def eye(
    N: int,
    M: int | None = None,
    k: int = 0,
    dtype: DTypeLike | None = None,
    order: str = "C",
    ctx: Context | None = None,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """A matrix with ones on the `k`-th diagonal."""

def fabs(
    x: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """The distance from zero, a float."""

def fix(
    x: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """The integer part."""

def flip(
    m: ArrayLike,
    axis: int | Sequence[int] | None = None,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """The elements from last to first along `axis`."""

def fliplr(m: ArrayLike, *, out: ndarray | None = None) -> ndarray:
    """Left for right: from last to first along the second dimension."""

def flipud(m: ArrayLike, *, out: ndarray | None = None) -> ndarray:
    """Upside down: from last to first along the first dimension."""

def float_power(
    x1: ArrayLike,
    x2: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """`x1 ** x2` in float64."""

def floor(
    x: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """The greatest integer not above `x`."""

def floor_divide(
    x1: ArrayLike,
    x2: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """`x1 // x2`, rounded down. Integers divided by zero give 0."""

def fmax(
    x1: ArrayLike,
    x2: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """The larger element; NaN only if both are."""

def fmin(
    x1: ArrayLike,
    x2: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """The smaller element; NaN only if both are."""

def fmod(
    x1: ArrayLike,
    x2: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """The remainder of `x1 / x2` with the sign of `x1`."""

def frexp(x: ArrayLike) -> tuple[ndarray, ndarray]:
    """`(m, e)` with `x == m * 2**e` and `m` from 0.5 up to 1; `e` is int32."""

def full(
    shape: int | Sequence[int],
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    order: str = "C",
    ctx: Context | None = None,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """A new array that repeats a number, or an array that broadcasts to `shape`."""

def full_like(
    a: ArrayLike,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    order: str = "C",
    ctx: Context | None = None,
    shape: int | Sequence[int] | None = None,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """An array with the shape and element type of `a` that repeats a number."""

def gcd(
    x1: ArrayLike,
    x2: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """The greatest common divisor."""

def greater(
    x1: ArrayLike,
    x2: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """`x1 > x2`."""

def greater_equal(
    x1: ArrayLike,
    x2: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """`x1 >= x2`."""

def hamming(
    M: int,
    dtype: DTypeLike | None = None,
    ctx: Context | None = None,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """The Hamming window of `M` points."""

def hanning(
    M: int,
    dtype: DTypeLike | None = None,
    ctx: Context | None = None,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """The Hann window of `M` points."""

def heaviside(
    x1: ArrayLike,
    x2: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """0 for negative `x1`, 1 for positive, `x2` at 0."""

def hstack(arrays: ndarray | Sequence[ArrayLike], *, out: ndarray | None = None) -> ndarray:
    """Arrays beside each other."""

def hypot(
    x1: ArrayLike,
    x2: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """`sqrt(x1**2 + x2**2)` without overflow."""

def identity(
    n: int,
    dtype: DTypeLike | None = None,
    ctx: Context | None = None,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """A square matrix with ones on its diagonal."""

def indices(
    dimensions: int | Sequence[int],
    dtype: DTypeLike = "int32",
    ctx: Context | None = None,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """The index along each dimension, at every place of a grid."""

def inner(a: ArrayLike, b: ArrayLike, *, out: ndarray | None = None) -> ndarray:
    """The sum of products over the last dimensions."""

def invert(
    x: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """Every bit turned over; `not` for bools."""

def isfinite(
    x: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """True for all but NaN and infinities."""

def isinf(
    x: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """True for infinities."""

def isnan(
    x: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """True for NaN."""

def isneginf(x: ArrayLike, *, out: ndarray | None = None) -> ndarray:
    """True for negative infinity."""

def isposinf(x: ArrayLike, *, out: ndarray | None = None) -> ndarray:
    """True for positive infinity."""

def kron(a: ArrayLike, b: ArrayLike, *, out: ndarray | None = None) -> ndarray:
    """Every element of `a` replaced by its product with all of `b`."""

def lcm(
    x1: ArrayLike,
    x2: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """The least common multiple."""

def ldexp(x1: ArrayLike, x2: ArrayLike, *, out: ndarray | None = None) -> ndarray:
    """`x1 * 2**x2`, exact for integer `x2`."""

def left_shift(
    x1: ArrayLike,
    x2: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """`x1 << x2`."""

def less(
    x1: ArrayLike,
    x2: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """`x1 < x2`."""

def less_equal(
    x1: ArrayLike,
    x2: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """`x1 <= x2`."""

def log(
    x: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """The natural logarithm."""

def log10(
    x: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """The logarithm to base 10."""

def log1p(
    x: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """`log(1 + x)`, accurate for small `x`."""

def log2(
    x: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """The logarithm to base 2."""

def logaddexp(
    x1: ArrayLike,
    x2: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """`log(exp(x1) + exp(x2))` without overflow."""

def logical_and(
    x1: ArrayLike,
    x2: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """True where both are."""

def logical_not(
    x: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """True where `x` is zero or false."""

def logical_or(
    x1: ArrayLike,
    x2: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """True where one is."""

def logical_xor(
    x1: ArrayLike,
    x2: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """True where just one is."""

def logspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    base: ArrayLike = 10.0,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    ctx: Context | None = None,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """`num` numbers from `base ** start` to `base ** stop`, evenly spaced in their logarithm."""

def matmul(
    a: ArrayLike,
    b: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """The matrix product; stacks of matrices broadcast."""

def max(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """The largest element along `axis`; NaN if any is."""

@combining
def maximum(
    x1: ArrayLike,
    x2: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """The larger element; NaN if either is."""

def mean(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """The arithmetic mean along `axis`."""

def median(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """The middle one of the sorted elements along `axis`; the mean of the middle two."""

def min(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """The smallest element along `axis`; NaN if any is."""

@combining
def minimum(
    x1: ArrayLike,
    x2: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """The smaller element; NaN if either is."""

def mod(
    x1: ArrayLike,
    x2: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """`x1 % x2`, with the sign of `x2`. Integers modulo zero give 0."""

def modf(x: ArrayLike) -> tuple[ndarray, ndarray]:
    """The fraction and the integer part, both with the sign of `x`."""

def moveaxis(
    a: ArrayLike,
    source: Any,
    destination: Any,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """The dimensions `source` at the places `destination`; the others keep their order."""

@combining
def multiply(
    x1: ArrayLike,
    x2: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """`x1 * x2`."""

def nan_to_num(
    x: ArrayLike,
    copy: bool = True,
    nan: float = 0.0,
    posinf: float | None = None,
    neginf: float | None = None,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """A copy with numbers in place of NaN and infinities: the largest ones, if none are given."""

def nanprod(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    keepdims: bool = False,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """The product of elements that are not NaN."""

def nansum(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    keepdims: bool = False,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """The sum of elements that are not NaN."""

def negative(
    x: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """`-x`."""

def not_equal(
    x1: ArrayLike,
    x2: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """`x1 != x2`."""

def ones(
    shape: int | Sequence[int],
    dtype: DTypeLike | None = None,
    order: str = "C",
    ctx: Context | None = None,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """A new array of ones."""

def ones_like(
    a: ArrayLike,
    dtype: DTypeLike | None = None,
    order: str = "C",
    ctx: Context | None = None,
    shape: int | Sequence[int] | None = None,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """Ones with the shape and element type of `a`."""

def outer(a: ArrayLike, b: ArrayLike, *, out: ndarray | None = None) -> ndarray:
    """Every element of `a` times every element of `b`."""

def pad(
    x: ArrayLike,
    pad_width: Any,
    mode: str = "constant",
    constant_values: Any = 0,
    end_values: Any = 0,
    reflect_type: str = "even",
    *,
    out: ndarray | None = None,
) -> ndarray:
    """More elements before and behind along every dimension, made as `mode` says: constant, edge,
    reflect, symmetric, wrap, maximum, minimum, mean or linear_ramp.
    """

def percentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: int | Sequence[int] | None = None,
    interpolation: str = "linear",
    keepdims: bool = False,
    method: Any = None,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """The value below which `q` percent of elements along `axis` lie."""

def permute_dims(a: ArrayLike, axes: Any = None, *, out: ndarray | None = None) -> ndarray:
    """The dimensions in the order `axes`; reversed without one."""

def polyval(p: ArrayLike, x: ArrayLike, *, out: ndarray | None = None) -> ndarray:
    """The polynomial with coefficients `p`, the highest power first, at the places `x`."""

def positive(
    x: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """`+x`: a copy."""

def pow(
    x1: ArrayLike,
    x2: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """`x1 ** x2`. Integers stay integers: negative exponents give `1 / x1`, rounded to zero."""

def power(
    x1: ArrayLike,
    x2: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """`x1 ** x2`. Integers stay integers: negative exponents give `1 / x1`, rounded to zero."""

def prod(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """The product of elements along `axis`."""

def product(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """The product of elements along `axis`."""

def ptp(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """The distance from the smallest to the largest element."""

def quantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: int | Sequence[int] | None = None,
    interpolation: str = "linear",
    keepdims: bool = False,
    method: Any = None,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """The value below which the fraction `q` of elements along `axis` lies. Where that is an
    element, not a number between two, the slope with respect to `q` counts as 0.
    """

def rad2deg(
    x: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """An angle in radians, in degrees."""

def radians(
    x: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """An angle in degrees, in radians."""

def ravel(a: ArrayLike, order: str = "C", *, out: ndarray | None = None) -> ndarray:
    """All elements in one dimension; a copy only where they do not stand in that order."""

def ravel_multi_index(
    multi_index: ndarray | Sequence[ArrayLike],
    dims: Any,
    mode: str = "raise",
    *,
    out: ndarray | None = None,
) -> ndarray:
    """One index for each dimension of `dims` as an index of the flattened array."""

def reciprocal(
    x: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """`1 / x`."""

def remainder(
    x1: ArrayLike,
    x2: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """`x1 % x2`, with the sign of `x2`. Integers modulo zero give 0."""

def reshape(
    a: ArrayLike,
    newshape: Any,
    order: str = "C",
    *,
    out: ndarray | None = None,
) -> ndarray:
    """The same elements under another shape; one extent may be -1 and is inferred."""

def resize(a: ArrayLike, new_shape: Any, *, out: ndarray | None = None) -> ndarray:
    """The elements in their order, over and over again, under another shape."""

def right_shift(
    x1: ArrayLike,
    x2: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """`x1 >> x2`."""

def rint(
    x: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """The nearest integer; the even one of two."""

def roll(
    a: ArrayLike,
    shift: Any,
    axis: int | Sequence[int] | None = None,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """Elements moved by `shift` places along `axis`; those that leave come in again behind."""

def rollaxis(
    a: ArrayLike,
    axis: int,
    start: int = 0,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """Dimension `axis` moved to stand before dimension `start`."""

def rot90(
    m: ArrayLike,
    k: int = 1,
    axes: tuple[int, int] = ...,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """Turned by 90 degrees `k` times, from the first of `axes` towards the second."""

def round(x: ArrayLike, decimals: int = 0, *, out: ndarray | None = None) -> ndarray:
    """The nearest number with `decimals` digits behind the point; the even one of two."""

def round_(x: ArrayLike, decimals: int = 0, *, out: ndarray | None = None) -> ndarray:
    """The nearest number with `decimals` digits behind the point; the even one of two."""

def row_stack(
    arrays: ndarray | Sequence[ArrayLike],
    *,
    out: ndarray | None = None,
) -> ndarray:
    """Arrays one below the other."""

def sign(
    x: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """-1, 0 or 1."""

def signbit(
    x: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """True for negative numbers, -0.0 among them."""

def sin(
    x: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """The sine of an angle in radians."""

def sinh(
    x: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """The hyperbolic sine."""

def sometrue(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """Whether an element along `axis` is true."""

def sort(
    a: ArrayLike,
    axis: int | None = -1,
    kind: str | None = None,
    order: str | None = None,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """Elements in ascending order along `axis`, NaN last; all in one row if it is None."""

def spacing(x: ArrayLike, *, out: ndarray | None = None) -> ndarray:
    """The distance to the next number away from zero."""

def sqrt(
    x: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """The square root."""

def square(
    x: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """`x * x`."""

def squeeze(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """Without the dimensions of extent 1, or without those that `axis` names."""

def stack(
    arrays: ndarray | Sequence[ArrayLike],
    axis: int = 0,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """Arrays of one shape along a new dimension at `axis`."""

def std(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """The standard deviation: the square root of the variance."""

@combining
def subtract(
    x1: ArrayLike,
    x2: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """`x1 - x2`."""

def sum(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """The sum of elements along `axis`; of all, without one."""

def swapaxes(
    a: ArrayLike,
    axis1: int,
    axis2: int,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """Two dimensions exchanged."""

def take(
    a: ArrayLike,
    indices: ArrayLike,
    axis: int | None = None,
    mode: str = "raise",
    *,
    out: ndarray | None = None,
) -> ndarray:
    """The elements, or the rows along `axis`, at `indices`. `mode` says what becomes of an index
    outside: 'raise', 'clip' to the nearest end, or 'wrap' around.
    """

def take_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    axis: int | None = -1,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """For each position off `axis`, the elements that `indices` names along it."""

def tan(
    x: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """The tangent of an angle in radians."""

def tanh(
    x: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """The hyperbolic tangent."""

def tensordot(
    a: ArrayLike,
    b: ArrayLike,
    axes: Any = 2,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """The sum of products over the last `axes` of `a` and first of `b`, or over pairs of axes."""

def tile(A: ArrayLike, reps: Any, *, out: ndarray | None = None) -> ndarray:
    """The whole array, repeated `reps` times along each dimension."""

def trace(
    a: ArrayLike,
    offset: int = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: DTypeLike | None = None,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """The sum along a diagonal."""

def transpose(a: ArrayLike, axes: Any = None, *, out: ndarray | None = None) -> ndarray:
    """The dimensions in the order `axes`; reversed without one."""

def tri(
    N: int,
    M: int | None = None,
    k: int = 0,
    dtype: DTypeLike | None = None,
    ctx: Context | None = None,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """A matrix with ones on and below the `k`-th diagonal."""

def tril(m: ArrayLike, k: int = 0, *, out: ndarray | None = None) -> ndarray:
    """The elements on and below the `k`-th diagonal of matrices, the others zero."""

def triu(m: ArrayLike, k: int = 0, *, out: ndarray | None = None) -> ndarray:
    """The elements on and above the `k`-th diagonal of matrices, the others zero."""

def true_divide(
    x1: ArrayLike,
    x2: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """`x1 / x2`, always a float."""

def trunc(
    x: ArrayLike,
    *,
    out: ndarray | None = None,
    where: ArrayLike = True,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """The integer part."""

def var(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """The mean squared distance from the mean; `ddof` is subtracted from the number of elements."""

def vdot(a: ArrayLike, b: ArrayLike, *, out: ndarray | None = None) -> ndarray:
    """The sum of the products of all elements."""

def vstack(arrays: ndarray | Sequence[ArrayLike], *, out: ndarray | None = None) -> ndarray:
    """Arrays one below the other."""

def zeros(
    shape: int | Sequence[int],
    dtype: DTypeLike | None = None,
    order: str = "C",
    ctx: Context | None = None,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """A new array of zeros."""

def zeros_like(
    a: ArrayLike,
    dtype: DTypeLike | None = None,
    order: str = "C",
    ctx: Context | None = None,
    shape: int | Sequence[int] | None = None,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """Zeros with the shape and element type of `a`."""
