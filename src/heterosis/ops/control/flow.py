"""Choices and loops as operations, whose attributes are programs.

Nobody writes these programs by hand: a capture makes them of what users write, and `npx.cond`,
`npx.while_loop` and `npx.foreach` run as Python where nothing is captured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from heterosis.ir.primitives.control import COND, SCAN, WHILE_LOOP
from heterosis.ir.primitives.families import Control
from heterosis.ir.program import INPUT, Node, Program, Value, apply, apply_many
from heterosis.ir.types import TensorType
from heterosis.ops.bounds import required
from heterosis.ops.math.elementwise import add, less, multiply, negative
from heterosis.ops.math.reductions import sum as total
from heterosis.ops.record import Operands, operation
from heterosis.ops.rules import cast
from heterosis.ops.samples import Case, Samples


def _evaluated(primitive: Control, *before: str) -> Callable[..., Any]:
    """The reference: what the primitive means, on NumPy arrays of the types that its programs take;
    those of the operands `before` are not theirs."""

    def reference(*arrays: Any, **attributes: Any) -> Any:
        from heterosis.ir.reference import evaluate

        *first, operands = arrays
        inside = attributes["then" if "then" in attributes else "body"]
        dtypes = [*before, *(value.dtype for value in inside.inputs)]
        given = [a.astype(dtype) for a, dtype in zip([*first, *operands], dtypes, strict=True)]
        inputs = [apply(INPUT, (), TensorType(a.shape, a.dtype.name)) for a in given]
        found = evaluate(Program(tuple(inputs), _made(primitive, inputs, **attributes)), given)
        return found if len(found) > 1 else found[0]

    return reference


def _made(primitive: Control, operands: Sequence[Value], **attributes: Any) -> tuple[Value, ...]:
    types = primitive.types(Node(primitive, tuple(operands), attributes, ()))
    return apply_many(primitive, operands, types, **attributes)


def _program(function: Callable[..., Sequence[Value]], *shapes: tuple[int, ...]) -> Program:
    """A program for samples, on float64 arrays."""
    inputs = tuple(apply(INPUT, (), TensorType(shape, "float64")) for shape in shapes)
    return Program(inputs, tuple(function(*inputs)), "sample", ())


@operation(
    numpy=_evaluated(COND, "bool"),
    public=(),
    samples=Samples(
        [
            Case(
                ((), [(3,), (2, 3)]),
                {
                    "then": _program(lambda x, y: (add(x, y), x), (3,), (2, 3)),
                    "otherwise": _program(lambda x, y: (multiply(y, x), negative(x)), (3,), (2, 3)),
                },
            )
        ],
        dtypes=("float64",),
    ),
)
def conditional(
    condition: Value, operands: Operands, then: Program, otherwise: Program
) -> tuple[Value, ...]:
    """What one of two programs makes of the operands."""
    return _made(COND, (cast(condition, "bool"), *operands), then=then, otherwise=otherwise)


@operation(
    numpy=_evaluated(WHILE_LOOP),
    public=(),
    samples=Samples(
        [
            Case(
                ([(3,), ()],),
                {
                    "condition": _program(lambda x, y: (less(total(x), 9.0),), (3,), ()),
                    "body": _program(lambda x, y: (add(multiply(x, 0.5), 4.0),), (3,), ()),
                    "carried": 1,
                },
            )
        ],
        dtypes=("float64",),
    ),
)
def while_loop(
    operands: Operands, condition: Program, body: Program, carried: int
) -> tuple[Value, ...]:
    """The carried operands, changed by the body for as long as the condition holds."""
    return _made(WHILE_LOOP, operands, condition=condition, body=body, carried=carried)


@operation(
    numpy=lambda holds, failure: holds.astype("bool"),
    public=(),
    samples=Samples(
        [Case((shape,), {"failure": "no"}) for shape in ((), (3,), (0,))],
        domain=(1, 4),
        dtypes=("float32", "int64"),
    ),
)
def asserted(holds: Value, failure: str) -> Value:
    """A truth; the program fails with the message if it is none."""
    truth = cast(holds, "bool")
    return required(truth, truth, failure)


_STEP = _program(lambda s, w, x: (add(multiply(s, w), x), add(s, x)), (3,), (), (3,))


@operation(
    numpy=_evaluated(SCAN),
    public=(),
    samples=Samples(
        [
            Case(
                ([(3,), (), (n, 3)],),
                {"body": _STEP, "carried": 1, "shared": 1, "length": n, "reverse": reverse},
            )
            for n, reverse in ((5, False), (4, True), (0, False))
        ],
        dtypes=("float64",),
    ),
)
def scan(
    operands: Operands, body: Program, carried: int, shared: int, length: int, reverse: bool
) -> tuple[Value, ...]:
    """What the body carries on last, and its other results of each turn, as rows."""
    return _made(
        SCAN, operands, body=body, carried=carried, shared=shared, length=length, reverse=reverse
    )
