"""Kernels on boxes whose next step depends on the last: matching, and suppression of doubles."""

from __future__ import annotations

from collections.abc import Callable

from heterosis.backends.native.codegen.emit.builder import (
    FLOAT,
    I64,
    PTR,
    Function,
    Module,
    Value,
    constant,
)
from heterosis.ir.primitives.boxes import LEAST_OVERLAP

_NONE = constant(I64, -1)


# -- matching -------------------------------------------------------------------------------------


def emit_match(module: Module, name: str, attributes: str) -> None:
    """Define `@name(call, overlaps, counts, matches, scratch, batch, labels, anchors)`.

    `overlaps` are (batch, labels, anchors), of which the first `counts` labels of each example are
    looked at. Pairs are made from the greatest overlap down, each label and each anchor once;
    `matches` (batch, anchors) gets each anchor's label, or -1. Scratch: 16 bytes a label.
    """
    _emit_search(module, f"{name}.search", attributes)
    parameters = [(p, PTR) for p in ("call", "overlaps", "counts", "matches", "scratch")]
    numbers = [(n, I64) for n in ("batch", "labels", "anchors")]
    f = module.function(name, parameters + numbers, attributes=attributes)
    _, overlaps, counts, matches, scratch, batch, labels, anchors = f.parameters
    best = scratch  # of each label: the overlap with its best free anchor, and that anchor
    places = f.offset(I64, scratch, labels)
    with f.loop(0, batch) as example:
        own = f.offset(FLOAT, overlaps, f.mul(f.mul(example.index, labels), anchors))
        row = f.offset(I64, matches, f.mul(example.index, anchors))
        count = f.load(I64, f.offset(I64, counts, example.index))
        with f.loop(0, anchors) as anchor:
            f.store(_NONE, f.offset(I64, row, anchor.index))

        def search(label: Value) -> None:
            line = f.offset(FLOAT, own, f.mul(label, anchors))
            slots = (f.offset(I64, best, label), f.offset(I64, places, label))
            f.call(f"{name}.search", [line, row, anchors, *slots])

        with f.loop(0, count) as label:
            search(label.index)
        with f.loop(0, count):
            place, chosen = _greatest(f, best, places, count)

            def pair() -> None:
                f.store(chosen, f.offset(I64, row, place))
                f.store(_NONE, f.offset(I64, places, chosen))
                _search_again(f, places, count, place, search)

            f.if_else(f.compare("sge", chosen, constant(I64, 0)), pair)
    f.ret()


def _emit_search(module: Module, name: str, attributes: str) -> None:
    """`@name(overlaps, matches, anchors, best, place)`: the best anchor that has no match yet."""
    parameters = [("overlaps", PTR), ("matches", PTR), ("anchors", I64), ("best", PTR)]
    f = module.function(name, [*parameters, ("place", PTR)], attributes=attributes)
    overlaps, matches, anchors, best, place = f.parameters
    with f.loop(0, anchors, 1, [constant(FLOAT, LEAST_OVERLAP), _NONE]) as loop:
        overlap = f.load(FLOAT, f.offset(FLOAT, overlaps, loop.index))
        match = f.load(I64, f.offset(I64, matches, loop.index))
        free = f.compare("slt", match, constant(I64, 0))
        better = f.binary("and", free, f.compare("ogt", overlap, loop.carried[0]))
        found = (overlap, loop.index)
        loop.next = [f.select(better, a, b) for a, b in zip(found, loop.carried, strict=True)]
    f.store(loop.results[0], best)
    f.store(loop.results[1], place)
    f.ret()


def _greatest(f: Function, best: Value, places: Value, count: Value) -> tuple[Value, Value]:
    """The anchor and the label of the greatest overlap; of equal ones the first anchor's."""
    with f.loop(0, count, 1, [constant(FLOAT, 0.0), _NONE, _NONE]) as loop:
        greatest, first, _ = loop.carried
        overlap = f.load(FLOAT, f.offset(I64, best, loop.index))
        place = f.load(I64, f.offset(I64, places, loop.index))
        equal = f.compare("oeq", overlap, greatest)
        tie = f.binary("and", equal, f.compare("slt", place, first))
        better = f.binary("or", f.compare("ogt", overlap, greatest), tie)
        better = f.binary("and", better, f.compare("sge", place, constant(I64, 0)))
        found = (overlap, place, loop.index)
        loop.next = [f.select(better, a, b) for a, b in zip(found, loop.carried, strict=True)]
    return loop.results[1], loop.results[2]


def _search_again(
    f: Function, places: Value, count: Value, taken: Value, search: Callable[[Value], None]
) -> None:
    """For labels whose best anchor has just been `taken`."""
    with f.loop(0, count) as loop:
        lost = f.compare("eq", f.load(I64, f.offset(I64, places, loop.index)), taken)

        def again() -> None:
            search(loop.index)

        f.if_else(lost, again)


# -- suppression ----------------------------------------------------------------------------------


def emit_suppress(module: Module, name: str, attributes: str, any_class: bool) -> None:
    """Define `@name(call, classes, boxes, threshold, kept, scratch, batch, count)`.

    `classes` (batch, count) are numbers, the best box first, -1 from the first that is none on;
    `boxes` (batch, 4, count) their left, top, right and bottom. `kept` gets the classes, -1 where
    the box overlaps a better one of its class (of any class, if `any_class`) by the threshold.
    """
    pointers = ("call", "classes", "boxes", "threshold", "kept", "scratch")
    parameters = [(p, PTR) for p in pointers] + [("batch", I64), ("count", I64)]
    f = module.function(name, parameters, attributes=attributes)
    _, classes, boxes, threshold, kept, _, batch, count = f.parameters
    least, none = f.load(FLOAT, threshold), constant(FLOAT, -1.0)
    with f.loop(0, batch) as example:
        start = f.mul(example.index, count)
        own = f.offset(FLOAT, kept, start)
        box = f.offset(FLOAT, boxes, f.mul(start, constant(I64, 4)))
        with f.loop(0, count, 1, [constant(I64, 0)]) as loop:
            source = f.offset(FLOAT, classes, f.add(start, loop.index))
            given = f.load(FLOAT, source)
            f.store(given, f.offset(FLOAT, own, loop.index))
            some = f.compare("oge", given, constant(FLOAT, 0.0))
            loop.next = [f.add(loop.carried[0], f.convert("zext", some, I64))]
        (valid,) = loop.results
        with f.loop(0, valid) as better:
            kind = f.load(FLOAT, f.offset(FLOAT, own, better.index))

            def others() -> None:
                first = _box(f, box, better.index, count)
                with f.loop(f.add(better.index, constant(I64, 1)), valid) as other:
                    at = f.offset(FLOAT, own, other.index)
                    its_kind = f.load(FLOAT, at)
                    overlap = _overlap(f, first, _box(f, box, other.index, count))
                    double = f.compare("oge", overlap, least)
                    if not any_class:
                        double = f.binary("and", double, f.compare("oeq", kind, its_kind))
                    f.store(f.select(double, none, its_kind), at)

            f.if_else(f.compare("oge", kind, constant(FLOAT, 0.0)), others)
    f.ret()


def _box(f: Function, boxes: Value, index: Value, count: Value) -> list[Value]:
    places = [f.add(f.mul(count, constant(I64, side)), index) for side in range(4)]
    return [f.load(FLOAT, f.offset(FLOAT, boxes, place)) for place in places]


def _overlap(f: Function, a: list[Value], b: list[Value]) -> Value:
    """What two boxes share, as a part of what they cover; 0 if they cover nothing."""
    zero = constant(FLOAT, 0.0)
    sides = []
    for low, high in ((0, 2), (1, 3)):
        end, start = f.intrinsic("minnum", a[high], b[high]), f.intrinsic("maxnum", a[low], b[low])
        sides.append(f.intrinsic("maxnum", zero, f.sub(end, start)))
    shared = f.mul(*sides)
    areas = [f.mul(f.sub(box[2], box[0]), f.sub(box[3], box[1])) for box in (a, b)]
    covered = f.sub(f.add(*areas), shared)
    return f.select(f.compare("ole", covered, zero), zero, f.div(shared, covered))
