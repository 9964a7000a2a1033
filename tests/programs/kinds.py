"""The kinds of steps: each adds to a draft what suits the values that are there."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy

from heterosis.ir.types import is_float
from tests.programs.draft import LARGEST, Draft
from tests.programs.program import ACCUMULATES, EXACT, ROUNDS

Kind = Callable[[Draft], Any]
KINDS: dict[str, tuple[float, Kind]] = {}


def kind(weight: float) -> Callable[[Kind], Kind]:
    """Register a kind of step, chosen as often as `weight` says."""

    def register(function: Kind) -> Kind:
        KINDS[function.__name__] = (weight, function)
        return function

    return register


# -- single elements -------------------------------------------------------------------------------

# Each a step, or some in a row, that are defined and tame for all numbers.
_SMOOTH = (
    ("np.minimum({0}, 3)", "np.exp({0})"), ("np.tanh({0})",), ("npx.sigmoid({0})",),
    ("np.sin({0})",), ("np.square({0})",), ("np.abs({0})", "np.sqrt({0})"),
    ("np.abs({0})", "{0} + 1", "np.log({0})"),
    ("{0} * 0.5",), ("{0} + 1.5",), ("2 - {0}",), ("np.abs({0})", "{0} + 1", "1 / {0}"),
    ("np.tanh({0})", "np.cosh({0})"), ("np.arctan({0})",), ("{0} / 3",), ("{0} ** 2", "{0} / 2"),
)  # fmt: skip
_PLAIN = (
    "-{0}", "np.abs({0})", "npx.relu({0})", "np.clip({0}, -0.5, 0.5)", "{0} ** 1", "{0}.copy()",
    "{0} * 1",
    "{0} + 0", "np.maximum({0}, 0)", "np.where({0} > 0, {0}, 0)",
)  # fmt: skip


@kind(3)
def unary(draft: Draft) -> None:
    """A function of one array's elements."""
    name = draft.pick(lambda a: is_float(a.dtype.name))
    if name and draft.chance(0.25):
        draft.step("unary", draft.among(_PLAIN), name, dtype=draft.dtype_of(name))
    elif name:
        for text in draft.among(_SMOOTH):
            name = name and draft.step("unary", text, name, rounding=ROUNDS)


_SIZED = (
    "{0} * {0}.shape[0] / 8", "{0}.shape[0] / ({0} ** 2 + 1)", "{0}.size - {0}", "{0} - {0}.size",
    "{0} * ({0}.shape[-1] // 2 + 1)", "{0} * ({0}.shape[0] / 4)", "{0} / ({0}.shape[-1] + 0.5)",
    "np.minimum({0}, {0}.shape[0] / 2)", "np.where({0} > 0, {0}.shape[-1], {0})",
    "{0} / ({0}.shape[0] + 1) ** 0.5", "{0} + 1 if {0}.shape[0] > 3 else -{0}",
    "{0} * 2 if {0}.shape[-1] % 2 else {0} * 3", "{0} * len({0}.shape) / max({0}.shape[0], 2)",
)  # fmt: skip
_SIZED_VIEWS = (
    "{0}[: ({0}.shape[0] + 1) // 2]", "{0}[{0}.shape[0] // 3 :]", "{0}.reshape({0}.size)",
    "{0}.reshape({0}.shape[0], -1)",
)  # fmt: skip


@kind(0.7)
def sized(draft: Draft) -> None:
    """Numbers and shapes that follow from the extents of an array."""
    name = draft.pick(lambda a: a.ndim > 0 and a.size > 0 and is_float(a.dtype.name))
    if name and draft.chance(0.7):
        draft.step("sized", draft.among(_SIZED), name, rounding=ROUNDS)
    elif name and draft.chance(0.8):
        draft.view(draft.among(_SIZED_VIEWS), name)
    elif name:
        draft.step("sized", "np.broadcast_to({0}, (2, *{0}.shape))", name)


_BINARY = (
    "{0} + {1}", "{0} - {1}", "{0} * {1}", "np.maximum({0}, {1})", "np.minimum({0}, {1})",
    "np.where({0} > {1}, {0}, {1})", "np.hypot({0}, {1})", "{1} * {0}",
    "np.arctan2({0}, {1})",
)  # fmt: skip
# Of zeros, the larger one has either sign, in NumPy too, and arctan2 would be half a turn apart. A
# step of its own: rounded to the type of the array, not to that of the angle.
_ABOVE_ZERO = "np.abs({0}) + 0.5"


@kind(3)
def binary(draft: Draft) -> None:
    """Two arrays' elements."""
    first = draft.pick(lambda a: a.dtype != bool)
    if first:
        second = draft.pick(lambda a: a.dtype != bool and _broadcast(draft, first, a))
        if second and (draft.is_float(first) or draft.is_float(second)):
            text = draft.among(_BINARY)
            if "arctan2" in text:
                second = draft.step("binary", _ABOVE_ZERO, second, rounding=ROUNDS)
            if second:
                draft.step("binary", text, first, second, rounding=ROUNDS)


_UPDATES = (
    ("{0} * 0.9", "{0} - {1}"), ("np.square({0})", "{0} / 3", "{0} + {1}"), ("np.tanh({0})",),
    ("{0} * {1}", "{0}.sum()"), ("np.sqrt({0} * {0} + 1)", "{1} / {0}"),
    ("{0}[::-1] * 2", "{0} + {1}"),
)  # fmt: skip


def updates(draft: Draft) -> None:
    """The same for each of many arrays, as optimizers do for parameters; perhaps with something of
    all of them."""
    dtype, shape = draft.dtype(), draft.among(((4,), (3, 4), (7, 9), (5, 2), (64, 200)))
    if not is_float(dtype):
        return
    names = [draft.argument(shape, dtype) for _ in range(draft.whole(5, 14))]
    shared, texts = draft.argument(shape, dtype), draft.among(_UPDATES)
    own_rates = draft.chance(0.4)
    total = None
    if draft.chance(0.3):
        for name in names:
            own = draft.step("updates", "np.square({0}).mean()", name, rounding=ACCUMULATES)
            total = (
                draft.step("updates", "{0} + {1}", total, own, rounding=ROUNDS) if total else own
            )
    for name in names:
        found: str | None = name
        for text in texts:
            rounding = ACCUMULATES if "sum" in text else ROUNDS
            operands = [found, shared] if "{1}" in text else [found]
            found = found and draft.step("updates", text, *operands, rounding=rounding)
        if found and total:
            found = draft.step("updates", "{0} / ({1} + 1)", found, total, rounding=ROUNDS)
        if found and own_rates:
            rate = draft.changing(draft.whole(1, 9) / 4, draft.whole(1, 9) / 8)
            draft.step("updates", "{0} * {1}", found, rate, rounding=ROUNDS)


def _broadcast(draft: Draft, first: str, other: Any) -> bool:
    """Whether two arrays give one that is not too large, which two columns of many may."""
    try:
        return math.prod(numpy.broadcast_shapes(draft.shape_of(first), other.shape)) <= LARGEST
    except ValueError:
        return False


# -- views -----------------------------------------------------------------------------------------


def index(draft: Draft, shape: tuple[int, ...]) -> str:
    """A basic index in Python: slices, numbers, an ellipsis, new axes."""
    items = [_item(draft, extent) for extent in shape[: draft.whole(1, max(1, len(shape)))]]
    if draft.chance(0.2):
        items.insert(draft.whole(0, len(items)), "None")
    if draft.chance(0.2) and len(items) < len(shape):
        items.append("...")
    return ", ".join(items) or "..."


def _item(draft: Draft, extent: int) -> str:
    if extent and draft.chance(0.3):
        return str(draft.whole(-extent, extent - 1))
    start = draft.whole(-extent, extent) if draft.chance(0.5) else ""
    stop = draft.whole(-extent, extent) if draft.chance(0.3) else ""
    step = draft.among((-1, -1, 2, -2, 3)) if draft.chance(0.5) else ""
    return f"{start}:{stop}:{step}" if step else f"{start}:{stop}"


@kind(3)
def view(draft: Draft) -> str | None:
    """Another look at an array's memory."""
    name = draft.pick()
    if name is None:
        return None
    shape = draft.shape_of(name)
    texts = ["{0}[None]", "{0}[...]", "np.expand_dims({0}, -1)"]
    if shape:
        texts += ["{0}[" + index(draft, shape) + "]"] * 5 + [
            "{0}[::-1]",
            "{0}.T",
            "{0}.reshape(-1)",
        ]
        texts += [f"{{0}}.reshape{_reshaped(draft, shape)}"]
    if len(shape) > 1:
        texts += ["np.swapaxes({0}, 0, -1)", "np.diagonal({0})", "np.moveaxis({0}, 0, -1)"]
    return draft.view(draft.among(texts), name)


def _reshaped(draft: Draft, shape: tuple[int, ...]) -> str:
    size = 1
    for extent in shape:
        size *= extent
    divisors = [d for d in range(1, min(size, 40) + 1) if size % d == 0] or [1]
    first = draft.among(divisors)
    return f"({first}, {size // first})"


# -- writes ----------------------------------------------------------------------------------------


@kind(4)
def write(draft: Draft) -> None:
    """Change an array in place: all of it or a part, by a number or by an array."""
    name = draft.writable()
    if name is None:
        return
    target = draft.among(_TARGETS)(draft, draft.shape_of(name))
    sign = "=" if draft.dtype_of(name) == "bool" else draft.among(("=", "=", "=", "+=", "*=", "-="))
    source = draft.pick(lambda a: draft.is_float(name) or a.dtype == draft.dtype_of(name))
    if source is None or draft.chance(0.3):
        draft.step(
            "write",
            f"{target} {sign} {_number(draft, name)}",
            name,
            writes=True,
            rounding=_rounding(sign),
        )
    elif sign == "=" or draft.dtype_of(source) == draft.dtype_of(name):
        fitted = source if draft.chance(0.5) else _fitting(draft, name, target) or source
        draft.step(
            "write", f"{target} {sign} {{1}}", name, fitted, writes=True, rounding=_rounding(sign)
        )


def _rounding(sign: str) -> str:
    return EXACT if sign == "=" else ROUNDS


def _fitting(draft: Draft, name: str, target: str) -> str | None:
    """An array of the shape that is written."""
    try:
        shape = eval(target.format("_"), {"_": draft.values[name], "np": numpy}).shape
    except IndexError:
        return None
    return draft.pick(lambda a: a.shape == shape and a.dtype == draft.dtype_of(name))


def _part(draft: Draft, shape: tuple[int, ...]) -> str:
    return "{0}[" + index(draft, shape) + "]" if shape else "{0}[...]"


def _whole(draft: Draft, shape: tuple[int, ...]) -> str:
    return draft.among(("{0}[...]", "{0}[:]" if shape else "{0}[...]"))


def _row(draft: Draft, shape: tuple[int, ...]) -> str:
    return f"{{0}}[{draft.whole(-shape[0], shape[0] - 1)}]" if shape else "{0}[()]"


def _list(draft: Draft, shape: tuple[int, ...]) -> str:
    """Rows by a list of indices, each once."""
    if not shape:
        return "{0}[...]"
    rows = draft.rng.permutation(shape[0])[: draft.whole(1, min(3, shape[0]))].tolist()
    return f"{{0}}[{rows}]" if draft.chance(0.7) or len(shape) < 2 else f"{{0}}[:, {rows[:1]}]"


_TARGETS = (_part, _part, _part, _whole, _whole, _row, _list)


@kind(1.5)
def mask(draft: Draft) -> None:
    """Change an array where a condition holds."""
    name = draft.writable(lambda a: a.ndim > 0)
    if name is None:
        return
    target = "{0}[{0}]" if draft.dtype_of(name) == "bool" else "{0}[{0} > 0.25]"
    other = draft.pick(lambda a: a.shape == draft.shape_of(name) and a.dtype != bool)
    if other and draft.chance(0.5):
        target = "{0}[{1} < 0]"
    operands = [name, other] if other else [name]
    draft.step("mask", f"{target} = {_number(draft, name)}", *operands, writes=True)


def _number(draft: Draft, name: str) -> str:
    if draft.dtype_of(name) == "bool":
        return draft.among(("True", "False"))
    return str(draft.among((0.5, 2, -1, 3.0))) if draft.is_float(name) else str(draft.whole(0, 3))


_INTO = ("np.add({0}, {1}", "np.exp({1}", "np.multiply({1}, {1}", "np.negative({1}",
         "np.maximum({1}, {0}",
         "np.subtract({1}, {0}", "np.tanh({1}", "np.add({1}, 1")  # fmt: skip


@kind(1.5)
def into(draft: Draft) -> None:
    """An operation that writes its result into an array, and the augmented assignments."""
    name = draft.writable(lambda a: is_float(a.dtype.name))
    if name is None:
        return
    other = draft.pick(
        lambda a: a.shape == draft.shape_of(name) and a.dtype == draft.dtype_of(name)
    )
    if draft.chance(0.3):
        operand = draft.among(("{1}", "2", "0.5"))
        text = f"{{0}} {draft.among(('+=', '-=', '*='))} {operand}"
        draft.step("into", text, name, other or name, writes=True, rounding=ROUNDS)
        return
    call = draft.among(_INTO)
    meaning = f"{{0}}[...] = {call})"
    draft.step(
        "into",
        f"{call}, out={{0}})",
        name,
        other or name,
        writes=True,
        meaning=meaning,
        rounding=ROUNDS,
    )


_TYPED = (
    "np.add({0}, {1}", "np.multiply({0}, {1}", "np.subtract({0}, 1.5", "np.maximum({0}, {1}",
    "np.square({0}", "np.negative({0}", "np.tanh({0}", "np.abs({0}", "np.minimum({0}, 2",
)  # fmt: skip


@kind(1)
def typed(draft: Draft) -> None:
    """An operation that computes in a type that is given, which is another one mostly."""
    first = draft.pick(lambda a: a.dtype != bool)
    if first is None:
        return
    # Differences of what is rounded to a narrow type are no gradients.
    narrow = ("float32", "float16", "bfloat16") if draft.mode == "plain" else ()
    dtype = draft.among(("float64", *narrow))
    second = draft.pick(lambda a: a.dtype != bool and _broadcast(draft, first, a))
    call = draft.among(_TYPED)
    operands = (first, second or first) if "{1}" in call else (first,)
    cast = (f"rounded({{{i}}}, {dtype!r})" for i in range(2))  # operands come in the type
    draft.step("typed", f"{call}, dtype={dtype!r})", *operands,
               dtype=dtype, meaning=call.format(*cast) + ")", rounding=ROUNDS)  # fmt: skip


# What is written into a part of an array, which may be what is read, or another type's.
_OUT_PARTS = (
    ("{0}[1:]", "np.add({0}[1:], {0}[:-1]"), ("{0}[:-1]", "np.multiply({0}[1:], 0.5"),
    ("{0}[::-1]", "np.tanh({0}"), ("{0}[...]", "np.subtract(2, {0}[::-1]"),
    ("{0}[:1]", "np.min({0}, axis=0, keepdims=True"), ("{0}[0]", "np.max({0}, axis=0"),
    ("{0}[...]", "np.flip({0}, axis=0"), ("{0}[::2]", "np.square({0}[::2]"),
)  # fmt: skip
_OUT_TYPES = (
    "np.add({1}, {1}", "np.tanh({1}", "np.multiply({1}, 0.5", "np.maximum({1}, 0.25",
    "np.add({1}, {0}", "np.clip({1}, -1, 1",
)  # fmt: skip


@kind(1)
def out(draft: Draft) -> None:
    """`out=` a part of what is read, or an array of another type."""
    if draft.chance(0.5):
        name = draft.writable(lambda a: is_float(a.dtype.name) and a.ndim > 0 and a.shape[0] > 1)
        if name is not None:
            target, call = draft.among(_OUT_PARTS)
            if target == "{0}[0]" and len(draft.shape_of(name)) == 1:
                target = "{0}[0, ...]"
            meaning = f"{target}[...] = {call})"
            draft.step("out", f"{call}, out={target})", name,
                       writes=True, meaning=meaning, rounding=ROUNDS)  # fmt: skip
        return
    name = draft.writable(lambda a: is_float(a.dtype.name))
    if name is None:
        return
    shape = draft.shape_of(name)
    other = draft.pick(lambda a: a.shape == shape and a.dtype != bool)
    call = draft.among(_OUT_TYPES)
    if other is not None:
        draft.step("out", f"{call}, out={{0}})", name, other,
                   writes=True, meaning=f"{{0}}[...] = {call})", rounding=ROUNDS)  # fmt: skip


@kind(1)
def gather(draft: Draft) -> None:
    """Elements by arrays of indices, which is no view."""
    name = draft.pick(lambda a: a.ndim > 0 and a.shape[0] > 0 and a.size > 0)
    if name is None:
        return
    rows = [draft.whole(-draft.shape_of(name)[0], draft.shape_of(name)[0] - 1) for _ in range(3)]
    if draft.chance(0.5):
        draft.step("gather", f"{{0}}[{rows}]", name, dtype=draft.dtype_of(name))
    else:
        size = draft.shape_of(name)[0]
        indices = draft.constant((draft.whole(1, 4),), "int64", -size, size - 1)
        draft.step("gather", "{0}[{1}]", name, indices, dtype=draft.dtype_of(name), whole=(1,))


@kind(1)
def cast(draft: Draft) -> None:
    """Elements of another type."""
    name = draft.pick()
    if name is None:
        return
    dtype = draft.among(("float32", "float64", "float16", "bfloat16", "int32", "int8", "bool"))
    values = draft.values[name]
    if dtype.startswith("int") and not (numpy.abs(values.astype("float64")) < 100).all():
        return  # no number of that type stands for it
    draft.step(
        "cast",
        f"{{0}}.astype({dtype!r})",
        name,
        dtype=dtype,
        meaning="+{0}" if values.dtype != bool else "{0} | False",
    )


@kind(0.7)
def random(draft: Draft) -> None:
    """Random numbers, which follow from the seed."""
    n, m = draft.whole(1, 9), draft.whole(1, 9)
    of = draft.among(("uniform(-1, 1, ", "normal(0, 1, "))
    meaning = f"numpy.random.default_rng({len(draft.steps)}).{of}size=({n}, {m}))"
    text = f"np.random.{of}size=({n}, {m}))"
    draft.step(
        "random", text, dtype="float32", meaning=meaning, known=False, rounding=ROUNDS, ulps=8
    )


_DRAWN = (
    "normal({0}, 0.5", "normal({0}, np.abs({0}) + 0.5", "uniform({0}, {0} + 2", "laplace({0}, 0.25",
    "normal(loc=0.5, scale=np.abs({0}) + 1", "uniform(low={0}, high=9", "gumbel({0}, 1",
    "exponential(np.abs({0}) + 0.5", "logistic({0}, 1",
)  # fmt: skip


@kind(0.4)
def drawn(draft: Draft) -> None:
    """Random numbers whose distributions follow from arrays."""
    name = draft.pick(lambda a: a.dtype.name == "float32" and numpy.isfinite(a).all())
    if name is not None:
        shape = draft.shape_of(name)
        size, like = "", "+{0}"
        if draft.chance(0.4):
            size, like = f", size={(2, *shape)}", f"np.broadcast_to({{0}}, {(2, *shape)})"
        # Near 0, a logarithm of about 1 is what another one cancels.
        draft.step("drawn", f"np.random.{draft.among(_DRAWN)}{size})", name, dtype="float32",
                   meaning=like, known=False, rounding=ROUNDS, ulps=8, absolute=8)  # fmt: skip


# -- sums and products -----------------------------------------------------------------------------


@kind(2)
def reduction(draft: Draft) -> None:
    name = draft.pick(lambda a: a.ndim > 0 and a.size > 0 and a.dtype != bool)
    if draft.chance(0.1):  # rows of few elements are reduced many at a time
        shape = draft.among(((70, 3), (33, 2), (2, 40, 4)))
        name = draft.argument(shape, draft.among(("float32", "float64", "int32")))
    if name:
        axis = draft.among([None, *range(-draft.values[name].ndim, draft.values[name].ndim)])
        keeps = ", keepdims=True" if draft.chance(0.4) else ""
        function = draft.among(("sum", "mean", "max", "min", "cumsum", "std", "var", "prod"))
        if function == "cumsum":
            keeps = ""
        rounding = ACCUMULATES
        if not draft.is_float(name):
            return
        draft.step(
            "reduction", f"np.{function}({{0}}, axis={axis}{keeps})", name, rounding=rounding
        )


# Sums, and what compares them with one of themselves: an element that is computed twice, in two
# orders, equals nothing.
_SUMMED = (
    "{0}.sum(axis={1})", "{0}.mean(axis={1})", "np.abs({0}).sum(axis={1})",
    "({0} * {0}).sum(axis={1})", "{0}.sum(axis={1}, keepdims=True)", "np.cumsum({0}, axis={1})",
)  # fmt: skip
_COMPARED = (
    "{0} == {0}.max()", "{0} == {0}.min(axis=-1, keepdims=True)", "{0} >= {0}.max()",
    "np.where({0} == {0}.max(), {0}, 0)", "np.where({0} < {0}.max(axis=0), {0}, 2)",
    "np.sign({0} - {0}.max())", "({0} == {0}.min()).sum()", "{0} == {0}.reshape(-1)[0]",
    "np.where({0} >= {0}[..., :1], {0}, -1)", "{0} <= {0}[::-1]", "{0} == np.sort({0}, axis=-1)",
    "np.where({0} > {0}.min(), 0, {0} - {0}.max())", "{0}.max() == {0}.reshape(-1)[{0}.argmax()]",
)  # fmt: skip
# An order shows in many terms; rows of few elements are reduced many at a time.
_LONG = (
    (8, 100), (3, 1000), (100, 8), (16, 33), (5, 7, 65), (70, 3), (33, 2), (2, 40, 4), (50, 10),
    (3, 33, 17), (48, 24), (35, 40),
)  # fmt: skip


@kind(0.8)
def compared(draft: Draft) -> None:
    """Sums that are compared with the largest of them, or with another one."""
    name = draft.pick(lambda a: a.ndim > 0 and a.size > 0 and is_float(a.dtype.name))
    if name is None or draft.chance(0.6):
        name = draft.argument(draft.among(_LONG), draft.among(("float32", "float64")))
    axis = draft.whole(-draft.values[name].ndim, draft.values[name].ndim - 1)
    text = draft.among(_SUMMED).replace("{1}", str(axis))
    sums = draft.step("compared", text, name, rounding=ACCUMULATES)
    for text in (draft.among(_COMPARED) for _ in range(draft.whole(1, 2))):
        if sums and "axis" in text and draft.values[sums].ndim == 0:
            continue  # to NumPy, one number has the axes 0 and -1
        found = sums and draft.step("compared", text, sums, rounding=EXACT)
        if found and draft.chance(0.5):
            _choose_terms(draft, name, axis, found)


def _choose_terms(draft: Draft, name: str, axis: int, chosen: str) -> None:
    """What was summed, or what costs more than it, where a sum was chosen."""
    for text in draft.among((("np.tanh({0})", "np.exp({0})", "{0} * 1.5"), ("{0} + 1",), ())):
        name = draft.step("compared", text, name, rounding=ROUNDS) or name
    if draft.values[chosen].ndim < draft.values[name].ndim:
        chosen = draft.view(f"np.expand_dims({{0}}, {axis})", chosen) or chosen
    draft.step("compared", "np.where({0}, {1}, 0)", chosen, name, rounding=EXACT)


@kind(1.5)
def product(draft: Draft) -> None:
    if draft.chance(0.1):
        _tall_product(draft)
        return
    name = draft.pick(lambda a: a.ndim in (1, 2, 3) and a.size > 0 and a.dtype.kind not in "biu")
    if name is None:
        return
    shape = draft.shape_of(name)
    inner = shape[-1]
    second = draft.pick(
        lambda a: a.ndim == 2 and a.shape[0] == inner and a.dtype == draft.dtype_of(name)
    )
    if second is None or draft.chance(0.3):
        add = draft.constant if draft.chance(0.5) else draft.argument
        second = add((inner, draft.whole(1, 9)), draft.dtype_of(name))
    draft.step(
        "product",
        draft.among(("{0} @ {1}", "np.dot({0}, {1})")),
        name,
        second,
        rounding=ACCUMULATES,
    )


def _tall_product(draft: Draft) -> None:
    """Few columns of many rows, times few more, or summed up over the rows."""
    rows, columns = draft.whole(250, 300), draft.whole(1, 9)
    dtype = draft.among(("float32", "float64"))
    tall = draft.argument((rows, columns), dtype)
    sums = draft.chance(0.5)
    other = draft.argument((rows if sums else columns, draft.whole(1, 5)), dtype)
    text = "{0}.T @ {1}" if sums else "{0} @ {1}"
    draft.step("product", text, tall, other, rounding=ACCUMULATES)


# -- from nothing ----------------------------------------------------------------------------------


@kind(1)
def creation(draft: Draft) -> None:
    """Work that has no input."""
    n, m = draft.whole(1, 9), draft.whole(1, 9)
    texts = (
        f"np.arange({n})",
        f"np.eye({n})",
        f"np.zeros(({n}, {m}))",
        f"np.ones({n}) * {m}",
        f"np.arange({n}) + 1",
        f"np.full(({m},), 2.5)",
        f"np.eye({n}, {m}) * 2",
    )
    draft.step("creation", draft.among(texts), dtype="float32")


# What a number that is read outside decides: a value, a branch, a shape, an index.
_READING = (
    ("{0} * {1}", (2.5, -1.5)), ("{0} + {1}", (0.5, 3.0)), ("{0} + {1}", (0.0, -0.0)),
    ("{0} * 3 if {1} > 1 else 2 - {0}", (2, 0)), ("{0} + 2 if {1} else {0} * 0.5", (True, False)),
    ("np.stack([{0}] * {1}).sum(axis=0)", (1, 3)), ("{0}[..., {1}:]", (0, 1)),
    ("np.concatenate([{0}, {0}], axis={1})", (0, 1)),
    ("np.where({0} > {1}, {0}, {1})", (0.25, -0.25)),
    ("{0} * 2 if {1} == 'twice' else {0} + 1", ("twice", "more")),
    ("{0} - 1 if {1} is None else {0} * 3", (None, 2.5)), ("np.sum({0}, axis={1})", (None, 0)),
    ("{0}[{1}]", (slice(1), slice(None, None, -1))),
)  # fmt: skip


@kind(0.7)
def changing(draft: Draft) -> None:
    """A number from outside that changes between calls."""
    name = draft.pick(lambda a: a.dtype.kind == "f")
    if name is not None:
        text, values = draft.among(_READING)
        first, later = values if draft.chance(0.5) else reversed(values)
        number = draft.changing(first, later)
        if text.startswith("{0}["):
            draft.view(text, name, number)
        else:
            rounding = ACCUMULATES if "sum(" in text else ROUNDS
            draft.step("changing", text, name, number, rounding=rounding)


@kind(1)
def outside(draft: Draft) -> None:
    """An array or a number from outside, used at once."""
    name = draft.pick(lambda a: a.dtype.kind == "f")
    if name is None:
        return
    other = (
        draft.number(draft.among((2.5, -1, 0.1, 3)))
        if draft.chance(0.5)
        else draft.constant(draft.among(((), draft.shape_of(name))), draft.dtype_of(name))
    )
    draft.step(
        "outside",
        draft.among(("{0} * {1}", "{1} - {0}", "{0} + {1}")),
        name,
        other,
        rounding=ROUNDS,
    )
