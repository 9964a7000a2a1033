"""Steps made of the registry's records: every operation that has samples and a reference."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy

from heterosis.ir.types import is_float
from heterosis.ops import REGISTRY
from heterosis.ops.record import ARRAY, ATTRIBUTE, KEY, SEQUENCE, Record
from heterosis.ops.samples import Case, elementwise_cases
from tests.programs.draft import Draft
from tests.programs.kinds import kind
from tests.programs.program import ACCUMULATES, EXACT, ROUNDS

_MODULES = {"np": "np", "npx": "npx", "linalg": "np.linalg", "npx.image": "npx.image"}
# What rounds nothing, in the files whose operations otherwise do.
_EXACT = {
    "absolute", "argmax", "argmax_channel", "argmin", "argsort", "ceil", "clip", "copysign", "fabs",
    "floor", "fmax", "fmin", "heaviside", "max", "maximum", "median", "min", "minimum", "negative",
    "positive", "relu", "rint", "sign", "signbit", "sort", "spacing", "topk", "trunc", "nextafter",
    "count_nonzero", "all", "any", "pick", "where", "fmod", "mod", "floor_divide", "isnan", "isinf",
    "isfinite", "isposinf", "isneginf", "equal", "not_equal", "less", "less_equal", "greater",
    "greater_equal", "logical_and", "logical_or", "logical_xor", "logical_not", "gcd", "lcm",
    "modf", "frexp", "ptp",
}  # fmt: skip
_MOVING = {"shape", "indexing", "join", "split", "diagonals", "creation", "pad", "grids", "cast"}
_ELEMENTWISE = {"elementwise", "real"}
_FACTORIZING = {"factorizations", "matrix_functions"}


@cache
def sampled() -> tuple[Record, ...]:
    """The records that a program can be made of."""
    return tuple(
        r
        for _, r in sorted(REGISTRY.items())
        if r.samples
        and r.numpy
        and KEY not in r.uses
        # The last one gives the largest number of its type; references compute in float64.
        and r.name not in ("shape_array", "assign_part", "distribution_parameter", "nan_to_num")
    )


@kind(5)
def operation(draft: Draft) -> None:
    """One of all operations, in one of its sample cases or on what is there."""
    record = draft.in_turn(sampled())
    if record.samples.rising_arrays:  # in a row that is out of order nothing has a place
        return
    if draft.special and (_is_algorithmic(record) or record.name == "attention"):
        # A weight below the range of its type is 0, but not in float64: times an infinity, they
        # are no number and an infinity.
        return
    dtypes = [d for d in draft.dtypes if d in record.samples.dtypes]
    dtype = draft.among(dtypes or record.samples.dtypes)
    given = _there(draft, record, dtype) or _sampled(draft, record, dtype)
    if given:
        _add(draft, record, *given)


def _is_algorithmic(record: Record) -> bool:
    """Whether what an infinite element becomes is the algorithm's; see WINDOWED in layers.py."""
    return "convolution" in record.name or _family(record) in _FACTORIZING


def _add(draft: Draft, record: Record, operands: list[Any], attributes: dict[str, Any]) -> None:
    """`operands` are names, lists of names, and numbers."""
    types = _result_types(draft, record, operands, attributes)
    names = [n for o in operands for n in (o if isinstance(o, list) else [o]) if isinstance(n, str)]
    if types is None or (_family(record) in _FACTORIZING and not _is_regular(draft, names)):
        return
    arguments, meaning = _written(record, operands, attributes)
    for item, dtype in enumerate(types) if len(types) > 1 else ((None, types[0]),):
        if item is not None and draft.chance(0.5):
            continue
        part = "" if item is None else f"[{item}]"
        draft.step(
            "view" if record.views else "operation",
            f"{_public(record)}({arguments}){part}",
            *names,
            dtype=dtype,
            rounding=rounding(record),
            ulps=record.samples.ulps,
            absolute=record.samples.absolute if record.samples.absolute > 4 else 0.0,
            meaning=f"reference({record.name!r})({meaning}){part}",
            whole=tuple(
                names.index(operands[i])
                for i in record.samples.integer_arrays
                if i < len(operands) and isinstance(operands[i], str)
            ),
        )


def rounding(record: Record) -> str:
    """How an operation rounds."""
    family = _family(record)
    if record.views or record.name in _EXACT or family in _MOVING:
        return EXACT
    return ROUNDS if family in _ELEMENTWISE else ACCUMULATES


def _is_regular(draft: Draft, names: list[str]) -> bool:
    """Whether matrices are far from ones that lack a rank: near those, results are rounding."""
    for name in names:
        matrices = draft.values[name].astype("float64")
        if matrices.ndim > 1 and matrices.size:
            with numpy.errstate(all="ignore"):
                values = numpy.linalg.svd(matrices, compute_uv=False)
            if not (values[..., -1] > 1e-4 * values[..., 0]).all():
                return False
    return all(map(draft.is_known, names))


def _family(record: Record) -> str:
    return record.function.__module__.rpartition(".")[2]


def _public(record: Record) -> str:
    for module in record.public:
        if module in _MODULES:
            return f"{_MODULES[module]}.{record.name}"
    return f"operation({record.name!r})"


def _written(record: Record, operands: list[Any], attributes: dict[str, Any]) -> tuple[str, str]:
    """The arguments as our operation takes them, and as its reference does."""
    places, texts = iter(range(100)), []
    for given in operands:
        if isinstance(given, list):
            texts.append("[" + ", ".join(f"{{{next(places)}}}" for _ in given) + "]")
        else:
            texts.append(f"{{{next(places)}}}" if isinstance(given, str) else repr(given))
    arrays = [p.name for p, use in _arrays(record)]
    first = [p.name for p in record.parameters[: len(texts)]]
    keywords = [f"{k}={_literal(v)}" for k, v in attributes.items()]
    ours = texts
    if first != arrays[: len(texts)]:  # an attribute stands between the arrays
        ours = [f"{name}={text}" for name, text in zip(arrays, texts, strict=False)]
    return ", ".join(ours + keywords), ", ".join(texts + keywords)


def _literal(value: Any) -> str:
    text = re.sub(r"\b(inf|nan)\b", r"numpy.\1", repr(value))
    return text.replace("{", "{{").replace("}", "}}")


def _arrays(record: Record) -> list[tuple[Any, int]]:
    pairs = zip(record.parameters, record.uses, strict=True)
    return [(p, use) for p, use in pairs if use in (ARRAY, SEQUENCE)]


def _result_types(
    draft: Draft, record: Record, operands: list[Any], attributes: dict[str, Any]
) -> list[str] | None:
    """The element types of the results: None if the operation refuses."""
    waiting, given, flat = iter(operands), [], []
    for parameter, use in zip(record.parameters, record.uses, strict=True):
        if use == ATTRIBUTE:
            given.append(attributes.get(parameter.name, parameter.default))
            continue
        operand = next(waiting, None)
        given.append(len(operand) if use == SEQUENCE else None)
        flat += operand if use == SEQUENCE else [operand]
    try:
        program = record.program([_described(draft, o) for o in flat], given)[2]
    except Exception:  # noqa: BLE001 - refused: another test's matter
        return None
    return [output.type.dtype for output in program.outputs]


def _described(draft: Draft, operand: Any) -> Any:
    if operand is None:
        return None
    if not isinstance(operand, str):
        return "float64" if isinstance(operand, float) else "int64"
    value = draft.values[operand]
    strides = tuple(s // value.itemsize for s in value.strides)
    return value.dtype.name, value.shape, strides


# -- operands --------------------------------------------------------------------------------------


def _there(draft: Draft, record: Record, dtype: str) -> tuple[list[Any], dict[str, Any]] | None:
    """For an operation on single elements: arrays as they are."""
    for arity in (1, 2):
        if record.samples.cases == elementwise_cases(arity) and not record.samples.integer_arrays:
            break
    else:
        return None
    first = draft.pick(lambda a: a.dtype.name in record.samples.dtypes)
    if first is None or draft.chance(0.2):
        return None
    operands: list[Any] = [_bounded(draft, record, 0, first)]
    if arity == 2:
        second = draft.pick(
            lambda a: (
                a.dtype.name in record.samples.dtypes and _meets(draft.shape_of(first), a.shape)
            )
        )
        operands.append(_bounded(draft, record, 1, second))
    return None if None in operands else (operands, {})


def _meets(a: Sequence[int], b: Sequence[int]) -> bool:
    return all(m == n or 1 in (m, n) for m, n in zip(reversed(a), reversed(b), strict=False))


def _sampled(draft: Draft, record: Record, dtype: str) -> tuple[list[Any], dict[str, Any]] | None:
    """A sample case: its arrays fitted from what is there."""
    case: Case = draft.among(record.samples.cases)
    operands: list[Any] = []
    for position, shape in enumerate(case.shapes):
        if shape is None:
            number = draft.among((0.5, 2.0, -1.5)) if is_float(dtype) else draft.whole(1, 3)
            operands.append(number)
        elif isinstance(shape, list):
            operands.append([_fitted(draft, record, position, s, dtype) for s in shape])
        else:
            operands.append(_fitted(draft, record, position, shape, dtype))
    return operands, dict(case.attributes)


def _fitted(draft: Draft, record: Record, position: int, shape: tuple[int, ...], dtype: str) -> str:
    low, high = record.samples.bounds(position)
    if position in record.samples.integer_arrays:
        add = draft.constant if draft.chance(0.5) else draft.argument
        return add(shape, "int64", low, high - 1)
    same = draft.pick(lambda a: a.shape == shape and a.dtype.name == dtype)
    size = int(numpy.prod(shape))
    if same is None or draft.chance(0.2):
        larger = draft.pick(lambda a: a.size >= size and a.dtype.name == dtype and a.ndim > 0)
        if larger is not None and draft.chance(0.8):
            text = f"{{0}}.reshape(-1)[:{size}].reshape({shape})"
            same = draft.step("view", text, larger) if size > 0 else None
    if same is not None:
        return _bounded(draft, record, position, same)
    add = draft.constant if draft.chance(0.3) else draft.argument
    return add(shape, dtype, low, high)


def _bounded(draft: Draft, record: Record, position: int, name: str | None) -> str | None:
    """The array, or one whose elements the operation is made for."""
    if name is None or not draft.is_float(name) or (draft.chance(0.1) and draft.is_known(name)):
        return name
    low, high = record.samples.bounds(position)
    values = draft.values[name].astype("float64")
    fits = (values >= low) & (values <= high) | numpy.isnan(values)
    if fits.all() and draft.is_known(name):
        return name
    return draft.step("bound", f"np.clip({{0}}, {low}, {high})", name, dtype=draft.dtype_of(name))
