"""Operators of symbol files that are no operation here under a name of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from heterosis import np, npx
from heterosis.mxnet.operators.operator import OPERATORS
from heterosis.mxnet.symbols.spelling import OLDER, OLDER_TRUTHS, TURNED, WITH_NUMBER
from heterosis.ops.record import REGISTRY
from heterosis.ops.unsized import UNKNOWN, Unsized

Run = Callable[..., Any]  # on arrays, with attributes as keywords

TABLE: dict[str, Run] = {}


def _named(*names: str) -> Callable[[Run], Run]:
    def register(run: Run) -> Run:
        TABLE.update(dict.fromkeys(names, run))
        return run

    return register


# -- arithmetic with numbers ----------------------------------------------------------------------


def _number(scalar: float, is_int: bool) -> float:
    return int(scalar) if is_int else float(scalar)


def _with_number(name: str) -> Run:
    run = getattr(np, name, None) or REGISTRY[name].operation

    def combine(data: Any, scalar: float = 0, is_int: bool = True) -> Any:
        return run(data, _number(scalar, is_int))

    return combine


def _turned(name: str) -> Run:
    run = getattr(np, name, None) or REGISTRY[name].operation

    def combine(data: Any, scalar: float = 0, is_int: bool = True) -> Any:
        return run(_number(scalar, is_int), data)

    return combine


def _as_data(run: Run) -> Run:
    """A result in the element type of the array, which is what older operators give."""

    def combine(data: Any, *rest: Any, **keywords: Any) -> Any:
        return run(data, *rest, **keywords).astype(data.dtype)

    return combine


def _camel(name: str) -> str:
    return "".join(word.title() for word in name.split("_"))


def _older(name: str, older: str, keep: Callable[[Run], Run]) -> None:
    """Both spellings of an older operator: `_plus_scalar` and `_PlusScalar`."""
    number, turned = keep(_with_number(name)), keep(_turned(name))
    _named(f"_{older}_scalar", f"_{_camel(older)}Scalar")(number)
    _named(f"_r{older}_scalar", f"_R{_camel(older)}Scalar")(turned)
    _named(f"_{older}", f"_{older.title()}")(keep(lambda lhs, rhs: getattr(np, name)(lhs, rhs)))


for _name in WITH_NUMBER:
    TABLE[f"_npi_{_name}_scalar"] = _with_number(_name)
    if _name not in TURNED:
        TABLE[f"_npi_r{_name}_scalar"] = _turned(_name)
for _spelt, _name in OLDER.items():
    _older(_name, _spelt, lambda run: run)
for _spelt, _name in OLDER_TRUTHS.items():
    _older(_name, _spelt, _as_data)
for _spelt, _operator in (("add", "elemwise_add"), ("sub", "elemwise_sub")):
    TABLE[f"_{_spelt}"] = OPERATORS[_operator]
TABLE["_grad_add"] = TABLE["_add"]


@_named("_npi_where_lscalar")
def _where_left(condition: Any, x: Any, scalar: float) -> Any:
    return np.where(condition, scalar, x)


@_named("_npi_where_rscalar")
def _where_right(condition: Any, y: Any, scalar: float) -> Any:
    return np.where(condition, y, scalar)


@_named("_npi_where_scalar2")
def _where_numbers(condition: Any, x: float, y: float) -> Any:
    return np.where(condition, x, y)


# -- making arrays --------------------------------------------------------------------------------


def _filled(make: Callable[[tuple[int, ...], Any], Any]) -> Run:
    def fill(shape: Any = (), dtype: str | None = "float32") -> Any:
        extents = shape if isinstance(shape, tuple) else (shape,)
        if UNKNOWN not in extents:
            return make(extents, dtype)
        return Unsized("an array of the symbol", extents, lambda known: make(known, dtype))

    return fill


_named("_npi_zeros", "_zeros", "_zeros_without_dtype")(_filled(np.zeros))
_named("_npi_ones", "_ones")(_filled(np.ones))


@_named("_npi_full", "_full")
def _full(shape: Any, value: float, dtype: str | None = "float32") -> Any:
    return np.full(shape, value, dtype=dtype)


@_named("_npi_arange", "_arange")
def _arange(
    start: float = 0, stop: float | None = None, step: float = 1, repeat: int = 1,
    infer_range: bool = False, dtype: str = "float32",
) -> Any:  # fmt: skip
    made = np.arange(start, stop, step, dtype=dtype)
    return np.repeat(made, repeat) if repeat != 1 else made


@_named("_npi_uniform", "_npi_uniform_n")
def _uniform(low: float = 0, high: float = 1, size: Any = None, dtype: str = "float32") -> Any:
    return np.random.uniform(low, high, size, dtype=dtype)


@_named("_npi_normal", "_npi_normal_n")
def _normal(loc: float = 0, scale: float = 1, size: Any = None, dtype: str = "float32") -> Any:
    return np.random.normal(loc, scale, size, dtype=dtype)


# -- rearranging ----------------------------------------------------------------------------------


@_named("slice", "_npi_slice", "_npx_slice")
def _slice(data: Any, begin: Any, end: Any, step: Any = ()) -> Any:
    return OPERATORS["slice"](data, _tupled(begin), _tupled(end), _tupled(step))


def _tupled(given: Any) -> tuple[Any, ...]:
    return given if isinstance(given, tuple) else (given,)


TABLE["_npi_pinv_scalar_rcond"] = np.linalg.pinv
TABLE["_copy"] = TABLE["_np_copy"] = TABLE["_npi_copy"] = np.copy


@_named("_npi_concatenate")
def _concatenate(*data: Any, axis: int | None = 0, dim: int | None = None) -> Any:
    return np.concatenate(data, axis if dim is None else dim)


@_named("_rnn_param_concat", "_npi_rnn_param_concat")
def _joined(*data: Any, dim: int = 0) -> Any:
    return np.concatenate(data, dim)


@_named("_npi_split", "_npi_hsplit", "_npi_dsplit")
def _split(
    data: Any, indices: Any = (), axis: int = 0, squeeze_axis: bool = False, sections: int = 0
) -> Any:
    return np.split(data, sections or _starts(indices), axis)


def _starts(indices: Any) -> list[int]:
    """Where parts begin behind the first, which MXNet names too."""
    return [i for i in (indices if isinstance(indices, tuple) else (indices,)) if i != 0]


@_named("_split_v2")
def _split_v2(
    data: Any, indices: Any = (), axis: int = 0, squeeze_axis: bool = False, sections: int = 0
) -> Any:
    return OPERATORS["split_v2"](data, sections or _starts(indices), axis, squeeze_axis)


@_named("_slice_assign")
def _slice_assign(lhs: Any, rhs: Any, begin: Any, end: Any, step: Any = ()) -> Any:
    result = np.copy(lhs)
    result[_slices(begin, end, step)] = rhs
    return result


@_named("_slice_assign_scalar")
def _slice_assign_number(data: Any, begin: Any, end: Any, step: Any = (), scalar: float = 0) -> Any:
    return _slice_assign(data, scalar, begin, end, step)


def _slices(begin: Any, end: Any, step: Any) -> tuple[slice, ...]:
    steps = step or (None,) * len(begin)
    return tuple(slice(*ends) for ends in zip(begin, end, steps, strict=True))


TABLE["_npi_sort"], TABLE["_npi_argsort"] = OPERATORS["sort"], OPERATORS["argsort"]
TABLE["reshape_like"] = npx.reshape_like


@_named("_linspace", "_npi_linspace")
def _linspace(
    start: float, stop: float, num: int = 50, endpoint: bool = True, dtype: str = "float32",
    step: float | None = None, repeat: int = 1, infer_range: bool = False,
) -> Any:  # fmt: skip
    return np.linspace(start, stop, num, endpoint, dtype=dtype)


@_named("_npi_percentile")
def _percentile(
    a: Any, q: Any = None, axis: Any = None, interpolation: str = "linear", keepdims: bool = False,
    q_scalar: float | None = None,
) -> Any:  # fmt: skip
    q = q_scalar if q is None else q
    return np.percentile(a, q, axis, interpolation=interpolation, keepdims=keepdims)


@_named("_npi_average")
def _average(
    a: Any, weights: Any = None, axis: Any = None, returned: bool = False, weighted: bool = True
) -> Any:
    return np.average(a, axis, weights, returned)


@_named("_npi_norm")
def _norm(
    data: Any, ord: float = 2, axis: Any = None, keepdims: bool = False, flag: int = -1
) -> Any:
    return np.linalg.norm(data, None if flag in (-2, 1) else ord, axis, keepdims)


@_named("_histogram", "_npi_histogram")
def _histogram(data: Any, bins: Any = None, bin_cnt: int = 10, range: Any = None) -> Any:
    return np.histogram(data, bin_cnt if bins is None else bins, range)


@_named("_npi_tensordot")
def _tensordot(a: Any, b: Any, a_axes_summed: Any, b_axes_summed: Any) -> Any:
    return np.tensordot(a, b, (a_axes_summed, b_axes_summed))


@_named("_npi_tensordot_int_axes")
def _tensordot_number(a: Any, b: Any, axes: int) -> Any:
    return np.tensordot(a, b, axes)


# -- layers ---------------------------------------------------------------------------------------

for _name in ("BatchNorm", "Convolution", "Pooling"):
    TABLE[f"{_name}_v1"] = OPERATORS[_name]
TABLE["_contrib_SyncBatchNorm"] = lambda *arrays, key=None, ndev=1, **attributes: OPERATORS[
    "BatchNorm"
](*arrays, **attributes)
TABLE["_contrib_SparseEmbedding"] = OPERATORS["Embedding"]
TABLE["Softmax"] = OPERATORS["SoftmaxOutput"]  # its older name


@_named("_contrib_BatchNormWithReLU")
def _batch_norm_relu(*arrays: Any, **attributes: Any) -> Any:
    return npx.relu(npx.batch_norm(*arrays, **attributes))
