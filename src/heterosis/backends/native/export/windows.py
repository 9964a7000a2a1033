"""Arrays that a program holds and reads in part: a library has the parts.

A recurrent layer has all its parameters in one array. Some are packed before the program runs,
which is another array, and would be there twice.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from heterosis import _core
from heterosis.ir.primitives.families import View
from heterosis.ir.program import INPUT, Node, Program, Value, apply, reached, substituted
from heterosis.ir.strided import Strided
from heterosis.ir.traced_sizes import is_traced

_Held = Mapping[Value, _core.ndarray]


def in_windows(program: Program, held: _Held) -> tuple[Program, dict[Value, _core.ndarray]]:
    """The program with further inputs for what is read of some of the arrays that it holds: where
    that is windows without gaps, which are less than the whole."""
    read = _read(program, held)
    found = dict(held)
    made: dict[Value, Value] = {}
    for root, windows in read.items():
        if sum(math.prod(layout.shape) for layout in windows.values()) >= root.size:
            continue
        flat = found.pop(root).reshape(-1)
        for value, layout in windows.items():
            made[value] = apply(INPUT, (), value.type)
            part = flat[layout.offset : layout.offset + math.prod(layout.shape)]
            found[made[value]] = part.reshape(layout.shape)
    outputs = substituted(program.outputs, made)
    return Program((*program.inputs, *made.values()), outputs, program.name), found


def _read(program: Program, held: _Held) -> dict[Value, dict[Value, Strided]]:
    """For each held array, the windows of it that are read."""
    roots = {value: value for value in held}
    layouts = {value: Strided.contiguous(value.shape) for value in held}
    read: dict[Value, dict[Value, Strided]] = {value: {} for value in held}

    def note(value: Value) -> None:
        if value in layouts:
            read[roots[value]][value] = layouts[value]

    for node in program.nodes():
        window = _window(node, layouts)
        if window is None:
            for value in node.inputs:
                note(value)
        else:
            layouts[Value(node)] = window
            roots[Value(node)] = roots[node.inputs[0]]
    for value in program.outputs:
        note(value)
    return read


def _window(node: Node, layouts: Mapping[Value, Strided]) -> Strided | None:
    """Where a view shows a part of a held array, if that is one without gaps."""
    if not isinstance(node.primitive, View) or node.inputs[0] not in layouts or _depends(node):
        return None
    name, arguments = node.primitive.move(node)
    found: Strided | None = getattr(layouts[node.inputs[0]], name)(*arguments)
    return found if found is not None and found.is_contiguous else None


# -- sizes ----------------------------------------------------------------------------------------


def has_sizes(program: Program) -> bool:
    """Whether what a program computes depends on sizes."""
    return any(map(_depends, reached(program.outputs)))


def _depends(node: Node) -> bool:
    return any(map(_varies, (node.types, *node.attributes.values())))


def _varies(given: object) -> bool:
    if isinstance(given, Program):
        return has_sizes(given)
    if isinstance(given, tuple | list):
        return any(map(_varies, given))
    return is_traced(given) or _varies(getattr(given, "shape", ()))
