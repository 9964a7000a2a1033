"""Random choices: orders, samples, and distributions of vectors."""

from __future__ import annotations

from math import prod

import numpy

from heterosis.ir import views
from heterosis.ir.primitives.shuffling import SHUFFLED_PLACES
from heterosis.ir.program import ASSEMBLE, GATHER, IOTA, Value, apply, constant, extent
from heterosis.ir.types import TensorType, is_float, numpy_dtype
from heterosis.ops.bounds import required, within
from heterosis.ops.linalg.factorizations import eigh, real_type, transposed
from heterosis.ops.linalg.matmul import product
from heterosis.ops.math import elementwise as e
from heterosis.ops.math import real as r
from heterosis.ops.math import reductions as rd
from heterosis.ops.random.draws import (
    Size,
    counting_operation,
    counts_binomial,
    log_gamma,
    open_unit,
    random_operation,
    standard_exponential,
    standard_normal,
    whole_below,
)
from heterosis.ops.record import Key
from heterosis.ops.rules import broadcast_shapes, cast
from heterosis.runtime.errors import ArgumentError, ShapeError

# -- orders ---------------------------------------------------------------------------------------


def _places(key: Value, count: int, wanted: int) -> Value:
    """`wanted` different ones of the numbers below `count`, in random order."""
    type_ = TensorType((count,), "int64")
    found = apply(SHUFFLED_PLACES, (cast(key, "int64"),), type_, wanted=wanted)
    return views.slice_(found, (0,), (1,), (wanted,)) if wanted < count else found


def _rows(x: Value, places: Value) -> Value:
    return apply(GATHER, (x, places), TensorType((*places.shape, *x.shape[1:]), x.dtype))


@random_operation(name="random_shuffled")
def shuffled(x: Value, key: Key = None) -> Value:
    """The rows of `x` in random order."""
    if x.ndim == 0:
        raise ShapeError("permutation: a 0-d array has no rows to put in order; give an integer.")
    return _rows(x, _places(key, x.shape[0], x.shape[0]))


# -- choices by probability -----------------------------------------------------------------------


@random_operation(name="random_race")
def race(p: Value, wanted: int = 0, key: Key = None) -> Value:
    """Arrival times at rates `p`: in their order, places are drawn without replacement. The program
    fails unless at least `wanted` arrive."""
    times = standard_exponential(key, p.shape, "float64")
    rates = _probabilities("choice", p)
    enough = e.greater_equal(rd.count_nonzero(rates), constant(wanted, "int64"))
    failure = f"choice: fewer than {wanted} probabilities are not 0; expected one for each draw."
    return e.true_divide(times, required(rates, enough, failure))


@random_operation(name="random_choice")
def choice(
    items: Value | None = None,
    p: Value | None = None,
    count: int = 1,
    size: Size = None,
    replace: bool = True,
    key: Key = None,
) -> Value:
    """Rows of `items`, or without them numbers below `count`; with probabilities `p` if given."""
    shape = size or ()
    count = items.shape[0] if items is not None and items.ndim else count
    _check_choices(count, p, prod(shape))
    if p is not None:
        places = _categories(key, p, shape)
    elif replace:
        places = whole_below(key, shape, extent(count))
    else:
        places = views.reshape(_places(key, count, prod(shape)), shape)
    return places if items is None else _rows(items, places)


def _check_choices(count: int, p: Value | None, wanted: int) -> None:
    if count < 1 and wanted:
        raise ArgumentError(f"choice: {count} items to choose from; expected at least one.")
    if p is not None and p.shape != (count,):
        raise ShapeError(
            f"choice: probabilities of shape {p.shape} for {count} items; expected ({count},)."
        )


def _categories(key: Value, p: Value, shape: tuple[int, ...]) -> Value:
    """Places in `p`, each with its probability there."""
    sums = rd.cumsum(_probabilities("choice", p))
    total = views.reshape(views.slice_(sums, (p.size - 1,), (1,), (1,)), ())
    return _first_above(sums, e.multiply(open_unit(key, shape, "float64"), total))


def _first_above(sums: Value, target: Value) -> Value:
    """The place of the first of the rising numbers `sums` that is above `target`: by halving."""
    count = sums.size
    place = views.broadcast(constant(0, "int64"), target.shape)
    step = 1 << max(count - 1, 1).bit_length() - 1
    while step:
        tried = e.add(place, constant(step, "int64"))
        inside = e.less(tried, extent(count))
        probe = e.minimum(tried, extent(count))
        probe = e.subtract(probe, constant(1, "int64"))
        value = apply(GATHER, (sums, probe), TensorType(target.shape, "float64"))
        place = e.select(e.logical_and(inside, e.less_equal(value, target)), tried, place)
        step >>= 1
    return place


@counting_operation(name="random_multinomial")
def multinomial(n: Value, pvals: Value, size: Size = None, key: Key = None) -> Value:
    """How often each outcome occurs in `n` trials; the last one has what is left of 1.

    Halves of the outcomes share the trials by a binomial distribution, and so on down.
    """
    if pvals.ndim != 1 or n.ndim:
        raise ShapeError(
            f"multinomial: n of shape {n.shape} and pvals of shape {pvals.shape}; "
            "expected a number of trials and a list of probabilities."
        )
    others = views.slice_(pvals, (0,), (1,), (max(pvals.size - 1, 0),))
    room = _room(pvals.dtype)
    enough = e.less_equal(rd.sum(cast(others, "float64")), constant(1.0 + room, "float64"))
    pvals = required(pvals, enough, "multinomial: the sum of pvals[:-1] is more than 1.")
    levels = _levels(_completed(_shares("multinomial", pvals)))
    lead = size or ()
    counts = views.broadcast(views.reshape(cast(n, "float64"), (1,)), (*lead, 1))
    for depth, (left, whole) in enumerate(levels):
        counts = _divided(key, depth, counts, left, whole)
    shape = (*lead, pvals.size)
    counts = views.slice_(counts, (0,) * counts.ndim, (1,) * counts.ndim, shape)
    return cast(counts, "int64")


def _probabilities(name: str, p: Value) -> Value:
    """`p` in float64; the program fails unless these are probabilities that add up to 1."""
    shares = _shares(name, p)
    away = e.absolute(e.subtract(rd.sum(shares), constant(1.0, "float64")))
    near = e.less_equal(away, constant(_room(p.dtype), "float64"))
    return required(shares, near, f"{name}: the probabilities p do not add up to 1.")


def _shares(name: str, p: Value) -> Value:
    return within(cast(p, "float64"), 0.0, 1.0 + _room(p.dtype), _NO_SHARES.format(name))


_NO_SHARES = "{}: an element of the probabilities is not from 0 to 1; expected that of all."


def _room(dtype: str) -> float:
    """How far from 1 rounding may take a sum, as in NumPy."""
    return float(numpy.finfo(numpy_dtype(dtype)).eps) ** 0.5 if is_float(dtype) else 1e-8


def _completed(p: Value) -> Value:
    """The probabilities with the last one replaced by what is left of 1."""
    place = apply(IOTA, (), TensorType(p.shape, "int64"))
    one, zero = constant(1.0, "float64"), constant(0.0, "float64")
    is_last = e.equal(place, constant(p.size - 1, "int64"))
    others = e.select(is_last, zero, p)
    rest = e.maximum(e.subtract(one, rd.sum(others)), zero)
    return e.select(is_last, rest, p)


def _levels(p: Value) -> list[tuple[Value, Value]]:
    """From the coarsest on: the probabilities of first halves, and of the wholes."""
    size = 1 << (p.size - 1).bit_length()
    if size > p.size:
        zero = constant(0.0, "float64")
        places_ = (((0,), (1,)),)
        p = apply(ASSEMBLE, (zero, p), TensorType((size,), "float64"), places=places_, filled=True)
    levels = []
    while size > 1:
        size //= 2
        pairs = views.reshape(p, (size, 2))
        left = views.reshape(views.slice_(pairs, (0, 0), (1, 1), (size, 1)), (size,))
        p = rd.sum(pairs, 1)
        levels.append((left, p))
    return levels[::-1]


def _divided(key: Value, depth: int, counts: Value, left: Value, whole: Value) -> Value:
    """Counts of the halves, side by side."""
    certain = e.greater(whole, constant(0.0, "float64"))
    share = e.select(certain, e.true_divide(left, whole), constant(0.0, "float64"))
    first = counts_binomial(key, counts.shape, depth, counts, share)
    shape = (*counts.shape[:-1], 2 * counts.shape[-1])
    steps = (*(1 for _ in shape[:-1]), 2)
    starts = (0,) * len(shape)
    places = ((starts, steps), ((*starts[:-1], 1), steps))
    pair = (first, e.subtract(counts, first))
    return apply(ASSEMBLE, pair, TensorType(shape, "float64"), places=places, filled=False)


# -- vectors --------------------------------------------------------------------------------------


@random_operation(name="random_multivariate_normal")
def multivariate_normal(mean: Value, cov: Value, size: Size = None, key: Key = None) -> Value:
    """Normal vectors of `mean` and covariance `cov`, which may be singular."""
    if not mean.ndim or cov.ndim < 2 or cov.shape[-2:] != (mean.shape[-1],) * 2:
        raise ShapeError(
            f"multivariate_normal: mean of shape {mean.shape} and cov of shape {cov.shape}; "
            "expected (..., N) and (..., N, N)."
        )
    dtype = real_type("multivariate_normal", mean, cov)
    lead = broadcast_shapes("multivariate_normal", (mean.shape[:-1], cov.shape[:-2]))
    shape = (*(size or ()), *lead, mean.shape[-1])
    values, vectors = eigh(cast(cov, dtype))
    spread = r.sqrt(e.maximum(values, constant(0.0, dtype)))
    spread = views.reshape(spread, (*spread.shape[:-1], 1, spread.shape[-1]))
    factor = transposed(e.multiply(vectors, spread))
    standard = standard_normal(key, shape, dtype)
    rows = (prod(shape[:-1]), shape[-1]) if cov.ndim == 2 else (*shape[:-1], 1, shape[-1])
    found = product("multivariate_normal", views.reshape(standard, rows), factor)
    return e.add(cast(mean, dtype), views.reshape(found, shape))


@random_operation(name="random_dirichlet")
def dirichlet(alpha: Value, size: Size = None, dtype: str = "float32", key: Key = None) -> Value:
    """Shares that add up to 1, spread as gamma variates of shapes `alpha` are."""
    logs = log_gamma(key, (*(size or ()), *alpha.shape), alpha)
    largest = rd.max(logs, -1, keepdims=True)
    weights = r.exp(e.subtract(logs, largest))
    return cast(e.true_divide(weights, rd.sum(weights, -1, keepdims=True)), dtype)
