"""What is read at every second position alone is computed there alone.

A convolution with one tap and a stride reads a part of its input, as a slice with steps does. Where
nothing reads the rest, the elementwise steps and convolutions that lead there leave it out: in a
residual network whose strides are in front of its blocks, the end of the block before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import gcd
from operator import floordiv, mod

from heterosis.ir.primitives.families import Elementwise
from heterosis.ir.primitives.windows import CONVOLVE, windows_of
from heterosis.ir.program import Node, Program, Value, with_inputs
from heterosis.ir.traced_sizes import is_traced
from heterosis.ir.types import TensorType
from heterosis.ir.views import BROADCAST, RESHAPE, SLICE, TRANSPOSE, slice_

# A number for every axis: positions so far apart, from the first on; 0 stands for none.
Steps = tuple[int, ...]


def thinned(program: Program) -> Program:
    """`program` without the elements between those that are read."""
    nodes = list(program.nodes())
    if not any(step > 1 for node in nodes for step in _strides(node) if not is_traced(step)):
        return program
    thinning = _Thinning(_asked(program, nodes))
    for node in nodes:
        thinning.visit(node)
    outputs = tuple(thinning.at(output, _everywhere(output)) for output in program.outputs)
    if outputs == program.outputs:
        return program
    return Program(program.inputs, outputs, program.name)


def _everywhere(value: Value) -> Steps:
    return (1,) * value.ndim


def _asked(program: Program, nodes: Sequence[Node]) -> dict[Value, Steps]:
    """The steps at which those that read a value read it, all together."""
    asked = {value: (0,) * value.ndim for node in nodes for value in node.outputs}
    for output in program.outputs:
        asked[output] = _everywhere(output)
    for node in reversed(nodes):
        steps = _computed(node, asked[node.outputs[0]])
        for value, read in zip(node.inputs, _read(node, steps), strict=True):
            asked[value] = tuple(map(gcd, asked[value], read))
    return asked


def _computed(node: Node, asked: Steps) -> Steps:
    """The steps, of those that are `asked`, at which a node may compute its result. Of open sizes
    nothing is left out: how many elements remain would be an expression of its own."""
    shape = node.types[0].shape
    known = [not is_traced(n) and n > 0 for n in shape]
    if node.primitive is CONVOLVE:
        may = [*(False,) * 3, *known[3:]]
    elif node.primitive is SLICE:
        may = [n and not is_traced(step) for n, step in zip(known, _strides(node), strict=True)]
    elif node.primitive is RESHAPE:
        kept = {after for _, after in _kept(node)}
        may = [axis in kept for axis in range(len(shape))]
    else:
        passes_on = isinstance(node.primitive, Elementwise) or node.primitive in _KEEPING
        may = [n and passes_on for n in known]
    return tuple(step if allowed else 1 for step, allowed in zip(asked, may, strict=True))


def _read(node: Node, steps: Steps) -> list[Steps]:
    """The steps at which a node reads its operands for a result at `steps`."""
    if isinstance(node.primitive, Elementwise):
        return [steps] * len(node.inputs)
    reads = [_everywhere(value) for value in node.inputs]
    if strides := _strides(node):
        goes = zip(strides, steps, _starts_at_once(node), strict=True)
        reads[0] = tuple(stride * step if at_once else 1 for stride, step, at_once in goes)
    elif node.primitive in _KEEPING:
        first = list(reads[0])
        for before, after in _kept(node):
            first[before] = steps[after]
        reads[0] = tuple(first)
    return reads


class _Thinning:
    """The program as it is made anew: what has become of each value, and at which steps."""

    def __init__(self, asked: dict[Value, Steps]):
        self._asked = asked
        self._made: dict[Value, Value] = {}
        self._steps: dict[Value, Steps] = {}

    def at(self, value: Value, steps: Steps) -> Value:
        """The elements of `value` at `steps`, which are among those that are there."""
        there, made = self._steps[value], self._made[value]
        if steps == there:
            return made
        assert not any(map(mod, steps, there)), f"{value.type} at {steps} of what is at {there}"
        apart = tuple(map(floordiv, steps, there))
        return slice_(made, (0,) * made.ndim, apart, _left(value.shape, steps))

    def visit(self, node: Node) -> None:
        """Make a node anew, whose operands have been made."""
        steps = _computed(node, self._asked[node.outputs[0]])
        if node.primitive in _KEEPING:
            steps = self._shown(node, steps)
        reads = _read(node, steps)
        if node.primitive in _KEEPING or _strides(node):
            reads[0] = self._steps[node.inputs[0]]  # whatever is there
        here = _again(node, tuple(map(self.at, node.inputs, reads)), steps, reads)
        for value, made in zip(node.outputs, here.outputs, strict=True):
            self._made[value] = made
            self._steps[value] = steps if len(node.types) == 1 else _everywhere(value)

    def _shown(self, node: Node, steps: Steps) -> Steps:
        """The steps at which a view shows what is there; what it repeats is at `steps`."""
        found, there = list(steps), self._steps[node.inputs[0]]
        for before, after in _kept(node):
            found[after] = there[before]
        return tuple(found)


def _again(node: Node, operands: tuple[Value, ...], steps: Steps, reads: Sequence[Steps]) -> Node:
    """The same node for its result at `steps`, given what it `reads` of its operands."""
    if all(step == 1 for some in (steps, *reads) for step in some):
        return with_inputs(node, operands)
    attributes, (type_,) = dict(node.attributes), node.types
    if before := _strides(node):
        goes = zip(before, steps, reads[0], strict=True)
        after = tuple(stride * step // there for stride, step, there in goes)
        name = "steps" if node.primitive is SLICE else "stride"
        attributes[name] = after[-len(attributes[name]) :]
    result = TensorType(_left(type_.shape, steps), type_.dtype, type_.weak)
    return Node(node.primitive, operands, attributes, (result,))


def _left(shape: Sequence[int], steps: Steps) -> tuple[int, ...]:
    """The extents of what is left at `steps`."""
    return tuple(n if step == 1 else -(-n // step) for n, step in zip(shape, steps, strict=True))


# -- the primitives that are open to steps, besides the elementwise ones ---------------------------

_KEEPING = (BROADCAST, RESHAPE, TRANSPOSE)


def _kept(node: Node) -> Iterator[tuple[int, int]]:
    """Axes of a view's operand whose positions stay positions of an axis of the result: both."""
    before, after = node.inputs[0].shape, node.types[0].shape
    if node.primitive is TRANSPOSE:
        yield from ((axis, i) for i, axis in enumerate(node.attributes["axes"]))
    elif node.primitive is BROADCAST:
        new = len(after) - len(before)
        yield from ((i, new + i) for i, n in enumerate(before) if is_traced(n) or n != 1)
    else:
        ends = _ends(after)
        yield from ((axis, ends[end]) for end, axis in _ends(before).items() if end in ends)


def _ends(shape: Sequence[int]) -> dict[tuple[int, int], int]:
    """Each axis but those of extent 1 by the number of elements behind a step along it, and its
    extent, as far as these are known."""
    found, behind = {}, 1
    for axis in reversed(range(len(shape))):
        if is_traced(shape[axis]) or not shape[axis]:
            break
        if shape[axis] != 1:
            found[behind, shape[axis]] = axis
        behind *= shape[axis]
    return found


def _strides(node: Node) -> Steps:
    """How far apart along each axis a convolution or a slice reads its operand for neighbours;
    nothing for other nodes."""
    if node.primitive is CONVOLVE:
        return (1, 1, 1, *node.attributes["stride"])
    return node.attributes["steps"] if node.primitive is SLICE else ()


def _starts_at_once(node: Node) -> list[bool]:
    """Along which axes they read one element for each of the result, from the first on."""
    if node.primitive is SLICE:
        places = zip(node.attributes["starts"], node.attributes["steps"], strict=True)
        return [not any(map(is_traced, place)) and place[0] == 0 < place[1] for place in places]
    windows = windows_of(node)
    axes = zip(windows.kernel, windows.origin, strict=True)
    one = [not any(map(is_traced, axis)) and axis == (1, 0) for axis in axes]
    return [False] * 3 + one
