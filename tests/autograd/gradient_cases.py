"""Cases for the gradients of operations whose samples do not tell: operands that fit together,
results that random numbers choose, kinds of operands that samples leave out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy

from heterosis import np
from heterosis.ops.samples import Case


@dataclass(frozen=True)
class Point:
    """Where gradients are compared: operands by name, those of floats being differentiated, and
    attributes. `ready` makes operands of what is varied, where not all values will do."""

    operands: dict[str, Any]
    attributes: dict[str, Any]
    ready: Callable[..., dict[str, Any]] | None = None


def _uniform(*shape: int, low: float = -1.0, high: float = 1.0, seed: int = 0) -> numpy.ndarray:
    return numpy.asarray(numpy.random.default_rng((seed, *shape)).uniform(low, high, shape))


def _shares(p: Any, **others: Any) -> dict[str, Any]:
    """Probabilities: the numbers in the proportions that they have."""
    return others | {"p": p / p.sum()}


def _positive(*shape: int) -> numpy.ndarray:
    return _uniform(*shape, low=0.3, high=2.0)


def _with_zeros(*places: int) -> numpy.ndarray:
    found = _positive(3, 5)
    found.reshape(-1)[list(places)] = 0.0
    return found


def _definite(a: Any) -> dict[str, Any]:
    return {"a": np.matmul(a, np.swapaxes(a, -1, -2)) + np.eye(a.shape[-1], dtype="float64")}


def _symmetric(a: Any) -> dict[str, Any]:
    return {"a": a + np.swapaxes(a, -1, -2)}


def _normalized(axes: tuple[int, ...], repeated: tuple[int, ...], *, scaled: bool = True) -> Point:
    """Numbers that are moved and scaled by their own mean and variance."""

    def ready(x: Any, **others: Any) -> dict[str, Any]:
        mean = x.mean(axes, keepdims=True)
        variance = ((x - mean) ** 2).mean(axes, keepdims=True)
        return others | {"x": x, "mean": mean, "variance": variance}

    shape = (4, 3, 5)
    along = tuple(1 if axis in repeated else n for axis, n in enumerate(shape))
    scale = {"gamma": _positive(*along)} if scaled else {}
    operands = {"x": _uniform(*shape), "beta": _uniform(*along)} | scale
    return Point(operands, {"axes": axes, "repeated": repeated, "eps": 0.1}, ready)


def _matrix(*shape: int) -> dict[str, Any]:
    return {"a": _uniform(*shape)}


_HEADS = {"query": _uniform(2, 5, 4), "key": _uniform(2, 6, 4), "value": _uniform(2, 6, 3)}


def _random(name: str, *parameters: str, **attributes: Any) -> tuple[str, list[Point]]:
    """A distribution with parameters that are arrays, and with some that are broadcast."""
    operands = {p: _positive(4) + i for i, p in enumerate(parameters)}
    again = {p: _positive(*((3, 1) if i else (2,))) + i for i, p in enumerate(parameters)}
    facts = {"dtype": "float64"} | attributes
    return f"random_{name}", [Point(operands, facts), Point(again, facts)]


def _image(**more: float) -> list[Point]:
    return [Point({"data": _uniform(5, 4, 3, low=0.1, high=0.9)} | more, {})]


_BETWEEN = {"min_factor": 0.5, "max_factor": 1.5}

_CELL = {
    "data": _uniform(3, 2, 4),
    "input_bias": _uniform(20),
    "state_bias": _uniform(20, seed=1),
    "of_input": _uniform(20, 4),
    "hidden": _uniform(1, 2, 5),
}
_LSTM = _CELL | {"of_state": _uniform(20, 5), "memory": _uniform(1, 2, 5, seed=1)}
_PROJECTED = _LSTM | {
    "of_state": _uniform(20, 3),
    "hidden": _uniform(1, 2, 3),
    "projection": _uniform(3, 5),
}
_BOXES = numpy.array([[[0.1, 0.1, 0.4, 0.5], [0.3, 0.35, 0.8, 0.9], [0.5, 0.1, 0.9, 0.45]]])
_LABELS = numpy.array([[[1, 0.12, 0.14, 0.45, 0.52], [0, 0.5, 0.2, 0.95, 0.5]]])

POINTS: dict[str, list[Point]] = {
    "assign": [Point({"a": _uniform(3, 4)}, {})],
    "copy": [Point({"a": _uniform(3, 4)}, {})],
    "astype": [Point({"a": _uniform(3, 4)}, {"dtype": "float64"})],
    "stop_gradient": [Point({"a": _uniform(3, 4)}, {})],
    "sort": [Point({"a": _uniform(3, 4, 5)}, {"axis": axis}) for axis in (None, 0, 1, -1)],
    "prod": [
        Point({"a": _with_zeros(*zeros)}, {"axis": axis})
        for zeros in ((2,), (2, 7), (2, 3), ())
        for axis in (None, 1)
    ],
    "cumprod": [Point({"a": _with_zeros(2, 3, 5)}, {"axis": axis}) for axis in (None, 0, 1)],
    "power": [
        Point({"x1": numpy.array([0.0, 2.0, -1.5, 0.0]), "x2": exponent}, {})
        for exponent in (2, 3.0, numpy.array([2, 3, 4, 5]))
    ],
    "log_sum": [
        Point(
            {"a": numpy.array([0.0, 2.0, -1.5, 0.5]), "b": numpy.array([0.0, 2.0, 3.0, -9.0])}, {}
        )
    ],
    "digamma": [Point({"x": numpy.array([1.0, 2.0, 3.0, 0.25])}, {})],
    "gammaln": [Point({"x": numpy.array([1.0, 2.0, 3.0, 0.25])}, {})],
    "cholesky": [
        Point(_matrix(*shape), {"upper": upper}, _definite)
        for shape in ((3, 3), (2, 4, 4))
        for upper in (False, True)
    ],
    "eigh": [
        Point(_matrix(*shape), {"UPLO": uplo}, _symmetric)
        for shape in ((3, 3), (2, 4, 4))
        for uplo in "LU"
    ],
    "eigvalsh": [
        Point(_matrix(*shape), {"UPLO": uplo}, _symmetric)
        for shape in ((3, 3), (2, 4, 4))
        for uplo in "LU"
    ],
    "eig": [Point(_matrix(2, 3, 3), {}, _symmetric)],
    "eigvals": [Point(_matrix(2, 3, 3), {}, _symmetric)],
    "svd": [
        *(Point(_matrix(*shape), {}) for shape in ((3, 3), (4, 2), (2, 2, 4))),
        Point(_matrix(3, 2), {"compute_uv": False}),
        Point(_matrix(3, 3), {"full_matrices": True}),
    ],
    "qr": [Point(_matrix(*shape), {}) for shape in ((3, 3), (4, 2), (2, 3, 3))],
    "least_squares": [
        Point({"a": _uniform(5, 3), "b": _uniform(5)}, {}),
        Point({"a": _uniform(3, 3), "b": _uniform(3, 2)}, {}),
        Point({"a": _uniform(2, 4), "b": _uniform(2, 2)}, {}),
    ],
    "dropout": [
        Point({"data": _uniform(6, 7)}, {}),
        Point({"data": _uniform(6, 7)}, {"axes": (0,)}),
    ],
    "attention_with_dropout": [
        Point(_HEADS | {"dropout_p": 0.3}, {"is_causal": True}),
        Point(_HEADS | {"attn_mask": _uniform(5, 6), "dropout_p": 0.3}, {"scale": 0.7}),
    ],
    "normalized": [
        _normalized((0, 2), (0, 2)),
        _normalized((0, 2), (0, 2), scaled=False),
        _normalized((2,), (0, 1)),
        _normalized((2,), (0, 1), scaled=False),
        _normalized((2,), (0, 2)),
    ],
    "multibox_detection": [
        Point(
            {"cls_prob": _positive(1, 3, 3) / 6, "loc_pred": _uniform(1, 12), "anchor": _BOXES},
            {"clip": False, "threshold": 0.01, "nms_threshold": 0.9},
        )
    ],
    "multibox_target": [
        Point({"anchor": _BOXES, "label": _LABELS, "cls_pred": _uniform(1, 3, 3)}, {}),
        Point(
            {"anchor": _BOXES, "label": _LABELS, "cls_pred": _uniform(1, 3, 3)},
            {"negative_mining_ratio": 1.0},
        ),
    ],
    "random_brightness": _image(**_BETWEEN),
    "random_contrast": _image(**_BETWEEN),
    "random_saturation": _image(**_BETWEEN),
    "random_hue": _image(min_factor=-0.3, max_factor=0.4),
    "random_lighting": _image(),
    "random_flip_left_right": _image(),
    "random_flip_top_bottom": _image(),
    "random_leaky_relu": [Point({"data": _uniform(5, 4)}, {})],
    "random_shuffled": [Point({"x": _uniform(6, 3)}, {})],
    "heaviside": [Point({"x1": numpy.array([0, 1, 0, -1]), "x2": _uniform(4)}, {})],
    "full_like": [Point({"a": _uniform(3, 4), "fill_value": _uniform()}, {})],
    "arange_like": [Point({"data": _uniform(6), "start": _uniform(), "step": _uniform()}, {})],
    "sgld_update": [
        Point({"weight": _uniform(3, 4), "grad": _uniform(3, 4), "lr": 0.1, "wd": 0.01}, {}),
    ],
    "random_binomial": [
        Point({"n": numpy.array([9, 40, 3, 7]), "p": _positive(4) / 3}, {"dtype": "float64"})
    ],
    "random_negative_binomial": [
        Point({"n": _positive(4), "p": _positive(4) / 3}, {"dtype": "float64"})
    ],
    "random_geometric": [Point({"p": _positive(4) / 3}, {"dtype": "float64"})],
    "random_race": [Point({"p": _positive(5)}, {}, _shares)],
    "random_choice": [
        Point({"items": _uniform(6, 3)}, {"size": (4,)}),
        Point({"items": _uniform(6, 3), "p": _positive(6)}, {"size": (9,)}, _shares),
        Point({"items": _uniform(6, 3)}, {"size": (4,), "replace": False}),
    ],
    "random_multinomial": [Point({"n": 9, "pvals": _positive(4) / 9}, {})],
    "random_multivariate_normal": [
        Point(
            {"mean": _uniform(3), "a": _uniform(3, 3)},
            {"size": (5,)},
            lambda mean, a: {"mean": mean, "cov": _definite(a)["a"]},
        )
    ],
    "random_triangular": [
        Point(
            {"left": _uniform(4), "mode": 2 + _uniform(4), "right": 4 + _uniform(4)},
            {"dtype": "float64"},
        )
    ],
    "random_bernoulli": [
        Point({"prob": _positive(40) / 3}, {"dtype": "float64"}),
        Point({"logit": _uniform(40)}, {"dtype": "float64"}),
    ],
    "random_dirichlet": [Point({"alpha": _positive(4)}, {"dtype": "float64"})],
    "rnn": [
        Point(
            {"data": _uniform(3, 2, 4), "parameters": _uniform(count), "state": _uniform(1, 2, 5)}
            | ({"state_cell": _uniform(1, 2, 5, seed=1)} if mode == "lstm" else {}),
            {"state_size": 5, "mode": mode, "state_outputs": True},
        )
        for mode, count in (("lstm", 220), ("gru", 165), ("rnn_tanh", 55), ("rnn_relu", 55))
    ],
    "rnn_layer": [
        Point(_LSTM, {"mode": "lstm"}),
        Point(_LSTM, {"mode": "lstm", "reverse": True}),
        Point(_PROJECTED, {"mode": "lstm"}),
        Point(
            {
                "data": _uniform(3, 2, 4),
                "of_input": _uniform(15, 4),
                "of_state": _uniform(15, 5),
                "input_bias": _uniform(15),
                "state_bias": _uniform(15, seed=1),
                "hidden": _uniform(1, 2, 5),
            },
            {"mode": "gru"},
        ),
    ],
    **dict(
        (
            _random("uniform", "low", "high"),
            _random("normal", "loc", "scale"),
            _random("lognormal", "mean", "sigma"),
            _random("exponential", "scale"),
            _random("logistic", "loc", "scale"),
            _random("gumbel", "loc", "scale"),
            _random("laplace", "loc", "scale"),
            _random("rayleigh", "scale"),
            _random("weibull", "a"),
            _random("pareto", "a"),
            _random("power", "a"),
            _random("gamma", "alpha", "scale"),
            _random("chisquare", "df"),
            _random("beta", "a", "b"),
            _random("f", "dfnum", "dfden"),
            _random("t", "df"),
            _random("integers", "low", "high"),
            _random("poisson", "lam"),
        )
    ),
}
POINTS["random_gamma"].append(Point({"alpha": 2.0, "scale": _positive(3)}, {"dtype": "float64"}))

# Further cases of operations that have samples: what those leave out.
MORE: dict[str, list[Case]] = {
    "max": [Case(((3, 4),), {"axis": None})],
}
