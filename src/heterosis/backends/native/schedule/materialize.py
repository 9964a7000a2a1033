"""Which values of a large program get memory although every loop nest could compute them itself.

Nests inline the elementwise work that they need. What several nests need would be computed, and
its operands read, again in each: along a chain of residual blocks, more with every block.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from heterosis.backends.native.codegen import tables
from heterosis.backends.native.loops.inlining import deep_nodes
from heterosis.backends.native.schedule.epilogues import Uses
from heterosis.backends.native.schedule.horizontal_fusion import sharing
from heterosis.ir.primitives.families import (
    Elementwise,
    Gather,
    Leaf,
    Opaque,
    Reduction,
    Scan,
    View,
)
from heterosis.ir.primitives.reductions import MAX, MIN
from heterosis.ir.program import Node, Program, Value
from heterosis.ir.views import RESHAPE

# What a chain of inlined work may come to until its value gets memory: steps, additions for each
# element, and reductions one after another. A nest must stay of reasonable length, and every one of
# its passes over the reduced dimensions computes again what the passes before it had. Of programs
# that repeat a part often, chains that end early make fewer kinds of nests to be compiled.
_MOST_STEPS, _MOST_ADDITIONS, _MOST_REDUCTIONS = 90, 300.0, 4
# Arrays that a nest of several results goes over: memory is read ahead for so many.
_MOST_ARRAYS = 8
# Additions; below this, computing again costs less than a trip to memory.
_DEAR = 8.0

# Values that get memory, each with those that one nest computes with it, if there are such.
Kept: TypeAlias = "Mapping[Value, tuple[Value, ...]]"


def kept_values(program: Program) -> Kept:
    """The values to be computed once, into memory, for all kernels that use them."""
    nodes = list(program.nodes())
    several = _needed_by_several(program, nodes, _worth(nodes))
    uses = Uses(program)
    heirs = list(_heirs(uses, nodes, several))
    for values, between in heirs:
        several = (several - between) | {value.node for value in values}
    for work, taken in _updates(program, uses):
        several = (several - work) | taken
    kept = several | _too_long(nodes, several)
    kept |= set(deep_nodes(uses.order, {value for node in kept for value in node.outputs}))
    compared = {value.node for value in compared_sums(program)}
    if not kept.issuperset(compared):  # what was cut, or is kept no more, changed who needs them
        kept |= compared & _needed_by_several(program, nodes, compared, kept)
    found: dict[Value, tuple[Value, ...]] = {
        value: () for node in kept if not isinstance(node.primitive, Leaf) for value in node.outputs
    }
    return found | {value: values for values, _ in heirs for value in values}


def kept_in_one_operation(program: Program) -> Kept:
    """The same for an operation, whose nests compute what they need themselves where they can."""
    kept = dict.fromkeys(compared_sums(program), ())
    deep = (value for node in deep_nodes(Uses(program).order, kept) for value in node.outputs)
    return kept | dict.fromkeys(deep, ())


def unrearranged(value: Value) -> Value:
    """What `value` is a view of."""
    while isinstance(value.node.primitive, View):
        value = value.node.inputs[0]
    return value


def compared_sums(program: Program) -> set[Value]:
    """Reductions below an extreme whose operand is used elsewhere too, to find what reaches it.

    Computed by two nests, in two orders, they would round differently, and nothing would reach it.
    """
    nodes = list(program.nodes())
    users = Counter(value for node in nodes for value in node.inputs)
    extremes = (node for node in nodes if node.primitive in (MAX, MIN))
    found: set[Value] = set()
    seen: set[tuple[Value, bool]] = set()  # below any extreme: chains of them take no longer
    stack = [(node.inputs[0], False) for node in extremes]
    while stack:
        value, shared = stack.pop()
        shared = shared or users[value] > 1
        if (value, shared) in seen:
            continue
        seen.add((value, shared))
        if not isinstance(value.node.primitive, Reduction):
            inlined = isinstance(value.node.primitive, Elementwise | View)
            stack += [(own, shared) for own in value.node.inputs] if inlined else []
        elif shared:
            found.add(value)
    return found


# -- what several nests need ----------------------------------------------------------------------


def _needed_by_several(
    program: Program, nodes: list[Node], worth: Collection[Node], kept: Collection[Node] = ()
) -> set[Node]:
    """The `kept` nodes, and those whose users end up in different nests that are `worth` a trip to
    memory."""
    used = {value.node for node in nodes for value in node.inputs}
    found: set[Node] = set()
    nests: dict[Node, set[Node]] = {node: set() for node in nodes}  # where each is computed
    for value in program.outputs:
        nests[unrearranged(value).node].add(unrearranged(value).node)
    for node in reversed(nodes):
        own = node in nests[node]  # it gets memory in any case: others should read it there
        shared = node in worth and len(nests[node]) > 1
        if (own and node in used) or shared or node in kept:
            found.add(node)
        if own or node in found:
            nests[node] = {node}
        for i, value in enumerate(node.inputs):
            nests[value.node] |= _nests_of_operand(node, i, nests[node])
    return found


def _nests_of_operand(user: Node, position: int, nests: set[Node]) -> set[Node]:
    primitive = user.primitive
    if _is_inlined(user):
        return nests
    whole = isinstance(primitive, Opaque) or (isinstance(primitive, Gather) and position == 0)
    return {unrearranged(user.inputs[position]).node} if whole else {user}


def _is_inlined(node: Node) -> bool:
    primitive = node.primitive
    return isinstance(primitive, Elementwise | View | Reduction) and not isinstance(primitive, Scan)


def _worth(nodes: list[Node]) -> set[Node]:
    """Reductions, dear values, and those that are made of more than one array.

    What is repeated counts for nothing: it is small, and loops compute it outside.
    """
    found: set[Node] = set()
    sources: dict[Node, list[Node]] = {}  # two at most
    costs: dict[Node, float] = {}
    for node in nodes:
        operands = [value.node for value in node.inputs]
        sources[node], costs[node] = [], 0.0
        if not _is_inlined(node):
            sources[node] = [node] if node.types[0].ndim else []
        elif not _repeats(node):
            primitive = node.primitive
            own = tables.element(primitive).cost if isinstance(primitive, Elementwise) else 0.0
            sources[node] = list(dict.fromkeys(s for n in operands for s in sources[n]))[:2]
            costs[node] = own + max((costs[n] for n in operands), default=0.0)
        if len(node.types) == 1 and _is_worth(node, len(sources[node]), costs[node]):
            found.add(node)
            sources[node], costs[node] = [node], 0.0
    return found


# -- results that are made of each other -----------------------------------------------------------


def _updates(program: Program, uses: Uses) -> Iterator[tuple[set[Node], set[Node]]]:
    """What is computed element by element for results that are made of each other, or of the same,
    and what it takes: an optimizer's new states and parameters. In no memory but theirs, one nest
    computes them all, which goes over each array once.
    """
    works = [_work(value) for value in dict.fromkeys(program.outputs)]
    for group in sharing(works):
        work = set[Node]().union(*(works[i] for i in group))
        taken = {unrearranged(v) for node in work for v in node.inputs if v.node not in work}
        arrays = len(group) + sum(value.size > 1 for value in taken)
        inner = all(work.issuperset(uses.of(v)) for node in work for v in node.outputs)
        if len(group) > 1 and inner and arrays <= _MOST_ARRAYS:
            yield work, {value.node for value in taken if not _is_given(value)}


def _work(result: Value) -> set[Node]:
    """The nodes that compute a result of elements of its own shape; none if they are many."""
    found: set[Node] = set()
    stack = [result]
    while stack:
        node = stack.pop().node
        alike = isinstance(node.primitive, Elementwise) and node.types[0].shape == result.shape
        if alike and node not in found:
            found.add(node)
            stack += node.inputs
        if len(found) > _MOST_STEPS:
            return set()
    return found


def _is_given(value: Value) -> bool:
    """Whether it is a leaf, or a single number that is made of such alone, which costs nothing."""
    seen: set[Value] = set()
    stack = [value]
    while stack and len(seen) < _MOST_STEPS:
        value = stack.pop()
        if value in seen or isinstance(value.node.primitive, Leaf):
            continue
        seen.add(value)
        if value.size > 1 or not isinstance(value.node.primitive, Elementwise | View):
            return False
        stack += value.node.inputs
    return not stack


# -- what takes the place of an array -------------------------------------------------------------


def _heirs(
    uses: Uses, nodes: list[Node], kept: set[Node]
) -> Iterator[tuple[tuple[Value, ...], set[Node]]]:
    """Values to be computed together, of one array that nothing else needs, and those of `kept` on
    the way to them, which then need no memory.

    A network is trained with an activation and its derivative. They take the place of what both
    are made of; that array and what both share would else be kept until the derivative is wanted.
    """
    for array, made in _made_of_one(nodes, kept).items():
        inside = {value.node for value in made}
        ends = (
            v for v in (array, *made)
            if v in uses.outputs or not inside.issuperset(uses.of(v))
        )  # fmt: skip
        last = tuple(dict.fromkeys(map(unrearranged, ends)))
        stored = inside & kept
        alike = array not in last and len({value.shape for value in last}) == 1
        if alike and 1 < len(last) < 1 + len(stored):
            yield last, stored - {value.node for value in last}


def _made_of_one(nodes: list[Node], kept: set[Node]) -> dict[Value, list[Value]]:
    """The arrays in memory, and what is made of each element by element, of it, of numbers, and of
    inputs that are repeated."""
    origins: dict[Value, Value] = {}
    given: set[Value] = set()  # what is made of inputs and numbers
    found: dict[Value, list[Value]] = {}
    for node in nodes:
        value = node.outputs[0]
        if isinstance(node.primitive, Elementwise | View | Leaf) and given.issuperset(node.inputs):
            given.add(value)
        origin = _origin(node, origins, given)
        if origin is not None:
            origins[value] = origin
            found.setdefault(origin, []).append(value)
        elif len(node.types) == 1 and (node in kept or isinstance(node.primitive, Opaque)):
            origins[value] = value
    return found


def _origin(node: Node, origins: dict[Value, Value], given: set[Value]) -> Value | None:
    """The one array that a value is made of in this way, if it is."""
    if node.primitive is RESHAPE:
        return origins.get(node.inputs[0])
    if not isinstance(node.primitive, Elementwise):
        return None
    arrays = [v for v in node.inputs if v not in given or unrearranged(v).size == v.size > 1]
    found = {origins.get(value) for value in arrays}
    same = all(value.shape == node.types[0].shape for value in arrays)
    return found.pop() if same and len(found) == 1 else None


def _repeats(node: Node) -> bool:
    return isinstance(node.primitive, View) and node.types[0].size > node.inputs[0].size


def _is_worth(node: Node, sources: int, cost: float) -> bool:
    if isinstance(node.primitive, Reduction):
        return True
    return isinstance(node.primitive, Elementwise) and (sources > 1 or cost >= _DEAR)


# -- long chains ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Chain:
    """The longest ways from values in memory to a value."""

    steps: int = 0
    additions: float = 0.0
    reductions: int = 0

    def with_node(self, node: Node) -> _Chain:
        primitive = node.primitive
        own = tables.element(primitive).cost if isinstance(primitive, Elementwise) else 0.0
        passes = self.reductions + isinstance(primitive, Reduction)
        return _Chain(self.steps + 1, self.additions + own, passes)

    @property
    def is_too_long(self) -> bool:
        many = self.steps > _MOST_STEPS or self.additions > _MOST_ADDITIONS
        return many or self.reductions > _MOST_REDUCTIONS


def _longest(chains: Iterable[_Chain]) -> _Chain:
    found = [*chains]
    if len(found) < 2:
        return found[0] if found else _Chain()
    return _Chain(
        max(c.steps for c in found),
        max(c.additions for c in found),
        max(c.reductions for c in found),
    )


def _too_long(nodes: list[Node], kept: set[Node]) -> set[Node]:
    """Nodes at which chains of inlined work are cut: where they get too long, and before the
    reduction that would be one too many."""
    found: set[Node] = set()
    chains: dict[Node, _Chain] = {}
    for node in nodes:
        chains[node] = _Chain()
        if not _is_inlined(node) or node in kept:
            continue
        before = _longest(chains[value.node] for value in node.inputs)
        chain = before.with_node(node)
        if chain.is_too_long:
            if chain.reductions > _MOST_REDUCTIONS:
                found.add(_begin_anew(chains, node.inputs[0]))
                chain = _Chain().with_node(node)
            else:
                found.add(node)
                chain = _Chain()
        chains[node] = chain
    return found


def _begin_anew(chains: dict[Node, _Chain], value: Value) -> Node:
    """Forget the way to `value` and to what it is a view of, which gets memory: a softmax takes its
    largest element off the same values."""
    chains[value.node] = _Chain()
    while isinstance(value.node.primitive, View):
        value = value.node.inputs[0]
        chains[value.node] = _Chain()
    return value.node
