"""Kinds of steps that a call may refuse, that show how far it came, or choose what is read."""

from __future__ import annotations

from dataclasses import replace

from tests.programs.draft import Draft
from tests.programs.kinds import kind

_FAR = (0, 3, 1000)  # beyond the end


@kind(0.7)
def refused(draft: Draft) -> None:
    """An element or rows by an index among the arguments, which is out of bounds in one call."""
    if draft.is_tried:
        return  # a compiled program raises it when it is called: its `try` has ended
    name = draft.pick(lambda a: a.ndim > 0 and 0 < a.shape[0] < 1000 and a.size > 0)
    target = draft.writable(lambda a: a.ndim > 0 and 0 < a.shape[0] < 1000)
    writes = target is not None and draft.chance(0.4)
    if writes:
        name = target
    if name is None:
        return
    size = draft.shape_of(name)[0]
    index = draft.argument(draft.among(((), (), (1,), (3,))), "int64", -size, size - 1)
    if draft.chance(0.7):
        given = draft.arguments[index]
        elements = given.elements.copy()
        far = draft.among(_FAR)
        elements.reshape(-1)[-1] = size + far if draft.chance(0.7) else -size - 1 - far
        draft.refused[index] = replace(given, elements=elements)
    if writes:
        number = "True" if draft.dtype_of(name) == "bool" else "1"
        draft.step("refused", f"{{0}}[{{1}}] = {number}", name, index, writes=True, whole=(1,))
    else:
        draft.step("refused", "{0}[{1}]", name, index, dtype=draft.dtype_of(name), whole=(1,))


@kind(0.6)
def printed(draft: Draft) -> None:
    """A line that begins with a word of its own, and tells the first element."""
    name = draft.pick(lambda a: a.size > 0)
    if name is not None:
        word = f"p{draft.made}"
        text = f"npx.print('{word}', {{0}}.reshape(-1)[:1])"
        draft.step("printed", text, name, writes=True, meaning=f"printed({word!r})")


@kind(0.5)
def swapped(draft: Draft) -> None:
    """One of two arrays: which one, a number outside says, and it changes between calls."""
    one = draft.pick(lambda a: a.ndim > 0 and a.size > 0)
    if one is not None and draft.mode != "inside":  # there, a variable has no other names before
        shape, dtype = draft.shape_of(one), draft.dtype_of(one)
        other = draft.constant(shape, dtype) if draft.chance(0.5) else draft.pick()
        places = (0, 1) if draft.chance(0.5) else (1, 0)
        if other is not None and (draft.shape_of(other), draft.dtype_of(other)) == (shape, dtype):
            draft.step("view", "({0}, {1})[{2}]", one, other, draft.changing(*places))
