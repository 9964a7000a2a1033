"""Kinds of steps with steps inside: choices and loops that arrays decide."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import numpy

from heterosis.ir.types import is_float
from tests.programs.draft import Draft
from tests.programs.kinds import KINDS, kind
from tests.programs.meaning import UNITS
from tests.programs.program import ACCUMULATES, ROUNDS, Step
from tests.programs.statements import Block, Called, Choice, Control, Leave, Loop, Tried

DEEPEST = 2  # blocks within one another
LARGEST = 3000  # elements that a loop carries
# What blocks are made of besides choices and loops, and how often.
_INSIDE = {"unary": 3, "binary": 3, "view": 2, "write": 4, "mask": 1, "into": 2, "gather": 1,
           "typed": 0.5, "out": 1, "drawn": 0.1,
           "cast": 1, "reduction": 2, "product": 1, "creation": 1, "outside": 1,
           "operation": 1, "random": 0.1, "choice": 1, "loop": 1, "tried": 0.4, "called": 0.4,
           "printed": 0.2, "refused": 0.3, "changing": 0.3, "swapped": 0.2}  # fmt: skip
_NESTING = ("choice", "loop", "tried", "called")
_TESTS = (
    "np.sum({0}) > 0.25", "np.mean({0}) < 0.1", "np.max({0}) > 1", "np.min({0}) < -0.5",
    "np.any({0} > 1.25)", "np.all({0} < 1)", "{0}.reshape(-1)[0] > 0", "np.abs({0}).max() < 1.5",
)  # fmt: skip
_STATEMENTS = (
    "not np.sum({0}) > 0.5", "-1 < np.sum({0}) < 2", "np.sum({0}) > 0 and np.max({0}) < 1.5",
    "np.max({0}) > 1.5 or np.min({0}) < -1", "0.75 < np.max({0})",
)  # fmt: skip


_WATCHED = 0.25  # of the loops write to what their condition reads by another name
_VIEWS = ("{0}", "{0}[...]", "{0}[::-1]", "{0}.reshape(-1)", "{0}.T", "{0}[:1]", "{0}[-1]")
_WRITTEN = ("{0}[...]", "{0}[...]", "{0}[..., :1]")


def _test(
    draft: Draft, *, statement: bool, text: str = "{inner}", counter: str = "", of: str = ""
) -> Any:
    """A question about an array, `of` one that is given, for a statement or for a function."""
    name = of or draft.pick(lambda a: a.size > 0 and is_float(a.dtype.name))
    if name is None:
        return None
    inner = draft.among(_STATEMENTS if statement and draft.chance(0.4) else _TESTS)
    operands = (name, counter) if counter else (name,)
    whole = (1,) if counter else ()
    text = text.replace("{inner}", inner)
    return Step("test", text, operands, None, "bool", ACCUMULATES, whole=whole)


def _fill(draft: Draft, many: int) -> None:
    """Steps of a block, so many if they can be."""
    names = [n for n in _INSIDE if draft.depth < DEEPEST or n not in _NESTING]
    weights = numpy.array([_INSIDE[n] for n in names])
    wanted = len(draft.steps) + many
    for _ in range(3 * many):
        if len(draft.steps) >= wanted:
            return
        KINDS[names[int(draft.rng.choice(len(names), p=weights / weights.sum()))]][1](draft)


def _of_type(dtype: str, shape: tuple[int, ...]) -> Callable[[Any], bool]:
    return lambda a: a.dtype.name == dtype and a.shape == shape


def _like(draft: Draft, dtype: str, shape: tuple[int, ...]) -> str | None:
    """An array of a type: one that is there, or a new one."""
    found = draft.pick(_of_type(dtype, shape)) if draft.chance(0.9) else None
    text = f"np.full({shape}, 1, dtype={dtype!r})"
    return found or draft.step("creation", text, dtype=dtype)


def _taken(draft: Draft, outside: set[str], most: int) -> list[str]:
    """Arrays that a block hands on: rather those that it has made."""
    made = [n for n in draft.arrays() if n not in outside]
    found = []
    for _ in range(draft.whole(0 if draft.steps else 1, most)):
        names = made if made and draft.chance(0.85) else draft.arrays()
        found.append(draft.among(names))
    return list(dict.fromkeys(found))


@kind(1.5)
def choice(draft: Draft) -> None:
    """One of two blocks."""
    if draft.depth >= DEEPEST:
        return
    form = draft.among(("if", "if", "if", "cond", "inputs"))
    test = _test(draft, statement=form == "if")
    if test is None:
        return
    outside, is_function = set(draft.values), form != "if"
    with draft.block(is_function=is_function) as steps:
        _fill(draft, draft.whole(0, 4))
        if draft.can_leave and draft.chance(0.3):
            _leave(draft)
            _fill(draft, draft.whole(0, 1))
        names = _taken(draft, outside, 2)
        types = [(draft.dtype_of(n), draft.shape_of(n)) for n in names]
        then = Block(tuple(steps), tuple(names))
    with draft.block(is_function=is_function) as steps:
        _fill(draft, draft.whole(0, 3))
        other = [_like(draft, *type_) for type_ in types]
        otherwise = Block(tuple(steps), tuple(map(str, other)))
    if None not in other:
        blocks = (then, otherwise)
        if form == "if" and len(types) == 1 and all(map(_is_expression, blocks)):
            form = "expression"
        names = tuple(draft.fresh() for _ in types)
        draft.control(Choice("choice", form, test=test, blocks=blocks, names=names))


def _is_expression(block: Block) -> bool:
    if len(block.steps) != 1:
        return False
    step = block.steps[0]
    return not step.is_write and not step.is_control and (step.result,) == block.returned


@kind(1.5)
def loop(draft: Draft) -> None:
    """A block over and over: as long as a test holds, or over rows."""
    form = draft.among(("while", "while", "for", "backwards", "foreach", "while_loop"))
    if draft.depth < DEEPEST:
        with suppress(_Impossible):
            draft.control(_loop(draft, form))


# What raises, in Python, and which error: also of an array whose extents are known.
_RAISING = (
    ("{0}[{0}.shape[0]]", "IndexError"), ("{0}[-{0}.shape[0] - 1]", "IndexError"),
    ("{0} * [1.0][{0}.ndim + 1]", "LookupError"), ("{0} * {}['factor']", "KeyError"),
    ("{0} * (1 // 0)", "ZeroDivisionError"), ("{0}.reshape(7, 11, 13)", "ValueError"),
    ("{0} + np.zeros({0}.shape[0] + 2)", "Exception"),
)  # fmt: skip


@kind(0.5)
def tried(draft: Draft) -> None:
    """A block whose error, if it has one, is caught: what was written before stays."""
    name = draft.pick(lambda a: a.ndim == 1 and a.size > 1 and is_float(a.dtype.name))
    if draft.depth >= DEEPEST or name is None:
        return
    text, error = draft.among(_RAISING)
    outside = set(draft.values)
    with draft.block(is_function=False) as steps:
        draft.is_tried = True
        _fill(draft, draft.whole(0, 3))
        names = _taken(draft, outside, 2)
        types = [(draft.dtype_of(n), draft.shape_of(n)) for n in names]
        if draft.chance(0.6):
            raising = text.replace("{}", "{{}}")
            draft.add(Step("raising", raising, (name,), draft.fresh(), draft.dtype_of(name)))
        body = Block(tuple(steps), tuple(names))
    with draft.block(is_function=False) as steps:
        draft.is_tried = True
        _fill(draft, draft.whole(0, 2))
        other = [_like(draft, *type_) for type_ in types]
        otherwise = Block(tuple(steps), tuple(map(str, other)))
    if None not in other:
        names = tuple(draft.fresh() for _ in types)
        draft.control(Tried("tried", error, blocks=(body, otherwise), names=names))


@kind(0.6)
def called(draft: Draft) -> None:
    """A function that the program makes and calls, hybridized by itself or not."""
    if draft.depth >= DEEPEST:
        return
    outside = set(draft.values)
    with draft.block(is_function=True) as steps:
        _fill(draft, draft.whole(1, 4))
        returned = _taken(draft, outside, 2)
        body = Block(tuple(steps), tuple(returned))
    passed = tuple(n for n in draft.arrays() if n in outside and draft.chance(0.5))
    form = draft.among(("function", "hybridized"))
    names = tuple(draft.fresh() for _ in returned)
    if steps:
        draft.control(Called("called", form, blocks=(body,), names=names, passed=passed))


class _Impossible(Exception):
    """There is nothing that such a loop could be made of."""


def _found(name: Any) -> Any:
    if name is None:
        raise _Impossible
    return name


def _loop(draft: Draft, form: str) -> Control:
    counts = form in ("while", "while_loop")
    starts = dict.fromkeys(
        _found(draft.pick(lambda a: 0 < a.size <= LARGEST and is_float(a.dtype.name)))
        for _ in range(draft.whole(1, 2))
    )
    data = () if counts else dict.fromkeys(_rows_of(draft) for _ in range(1 + draft.chance(0.3)))
    if form in ("for", "backwards"):
        data = tuple(data)[:1]
    data = tuple(n for n in data if draft.shape_of(n)[0] == draft.shape_of(next(iter(data)))[0])
    most = draft.whole(1, 5)
    counter = draft.fresh() if counts else ""
    carried = [draft.fresh() for _ in starts]
    rows = [draft.fresh() for _ in data]
    given = dict(zip(carried, (draft.values[n] for n in starts), strict=True))
    given |= {row: draft.values[n][0, ...] for row, n in zip(rows, data, strict=True)}
    asked, written = _watched(draft, given, starts) if draft.chance(_WATCHED) else ("", "")
    outside = set(draft.values)
    statement = form in ("while", "for", "backwards")
    with draft.block(is_function=not statement) as steps:
        draft.values.update(given)
        draft.can_leave = statement
        outputs_too = not statement and draft.chance(0.7)
        test = _turns(draft, form, counter, most, outputs_too, asked) if counts else None
        behind = counter if statement else f"{counter}_next"
        if counts:
            draft.add(Step("count", "{0} + 1", (counter,), behind, "int64"))
        if written:
            text = f"{draft.among(_WRITTEN)} {draft.among(('+= 0.25', '*= 0.5', '= 0.75'))}"
            draft.step("watched", text, written, writes=True, rounding=ROUNDS)
        _fill(draft, draft.whole(0, 2))
        if statement and draft.chance(0.3):
            _leave(draft)
        _fill(draft, draft.whole(1, 3))
        after = [_tame(draft, name) for name in carried]
        outputs = _taken(draft, outside, 2) if outputs_too else []
        body = Block(tuple(steps), (*([behind] if counts else []), *after, *outputs))
    begins = [_counted_from(draft, statement)] if counts else []
    names = (*([counter] if counts else []), *carried, *(draft.fresh() for _ in outputs))
    bound = most + draft.whole(0, 1) if outputs_too or draft.chance(0.6) else None
    return Loop(
        "loop", form, test=test, blocks=(body,), names=names, starts=(*begins, *starts),
        data=tuple(data), rows=tuple(rows), most=bound if form == "while_loop" else None,
    )  # fmt: skip


def _watched(draft: Draft, given: dict[str, Any], starts: Iterable[str]) -> tuple[str, str]:
    """An array that a condition reads, and another name, in turns, of what it is a part of."""
    if draft.chance(0.4):
        return next(zip(starts, given, strict=False))  # what the loop begins with
    name = _found(draft.writable(lambda a: is_float(a.dtype.name)))
    views = _VIEWS if draft.shape_of(name) else _VIEWS[:2]
    return str(_found(draft.view(draft.among(views), name))), name


def _rows_of(draft: Draft) -> str:
    return str(_found(draft.pick(lambda a: a.ndim > 0 and 0 < a.shape[0] < 10 and a.size > 0)))


def _turns(draft: Draft, form: str, counter: str, most: int, outputs_too: bool, of: str) -> Step:
    """Whether there is another turn: `most` times at most. The question is `of` an array, if it is
    given."""
    if form == "while":
        text = draft.among((f"{{1}} < {most} and {{inner}}", f"{{inner}} and {{1}} < {most}"))
        text = text.replace("{inner}", "({inner})")
    else:
        text = f"np.logical_and({{1}} < {most}, {{inner}})"
        if outputs_too:  # without a turn, nobody knows what they are
            text = f"np.logical_or({{1}} < 1, {text})"
    return _found(_test(draft, statement=form == "while", text=text, counter=counter, of=of))


def _counted_from(draft: Draft, statement: bool) -> str:
    if statement and draft.chance(0.5):
        return draft.number(0)
    return draft.constant((), "int64", 0, 0)


def _leave(draft: Draft) -> None:
    test = _test(draft, statement=True)
    if test is not None:
        text = draft.among(("break", "continue"))
        draft.add(Leave("leave", text, test=test).closed())


def _tame(draft: Draft, name: str) -> str:
    """What a turn hands on for a carried array: of its type, and no larger from turn to turn."""
    dtype, shape = draft.dtype_of(name), draft.shape_of(name)
    found = draft.pick(_of_type(dtype, shape))
    if found is None or (found == name and draft.chance(0.8)):
        other = draft.pick(lambda a: is_float(a.dtype.name) and a.size > 0)
        text, operands = "{0} * 0.5 + np.mean({1}).astype({2})", (name, other)
        # Differences are taken in float64, where an operand's type is another one.
        meaning, text = text.replace("{2}", "{0}.dtype"), text.replace("{2}", repr(dtype))
        # The mean is rounded in its own type, which may be a narrower one.
        own, narrowest = (UNITS.get(d, 1.0) for d in (dtype, draft.dtype_of(other or name)))
        ulps = Step.ulps * max(1.0, narrowest / own)
        found = draft.step(
            "unary", text, *operands, dtype=dtype, meaning=meaning, rounding=ACCUMULATES, ulps=ulps
        )
        found = found or name
    if draft.chance(0.7):
        text = draft.among(("np.clip({0}, -3, 3)", "np.tanh({0})", "{0} * 0.5"))
        found = draft.step("unary", text, found, dtype=dtype, rounding=ACCUMULATES)
    return str(found or name)
