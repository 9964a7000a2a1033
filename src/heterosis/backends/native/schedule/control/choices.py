"""The kernel of a choice: it calls the function of one of two programs."""

from __future__ import annotations

from collections.abc import Sequence

from heterosis.backends.native.codegen.emit.builder import I64, Function, Value, constant
from heterosis.backends.native.codegen.emit.function import return_if_failed
from heterosis.backends.native.codegen.kernel import KernelCode, Machine
from heterosis.backends.native.codegen.tables import KERNELS, KernelLowering
from heterosis.backends.native.schedule.control.parts import Call, Places, is_true, kernel, part
from heterosis.ir.primitives.control import COND
from heterosis.ir.program import Node


def _cond(node: Node, inputs: Places, outputs: Places, machine: Machine) -> KernelCode:
    parts = {name: part(node.attributes[name], machine) for name in ("then", "otherwise")}
    shift = len(parts["then"].failures)

    def emit(f: Function, addresses: list[Value], calls: dict[str, Call]) -> None:
        holds, given = is_true(f, addresses[0]), addresses[1:-1]
        for call in calls.values():
            call.give(0, given)

        def otherwise() -> Sequence[Value]:
            return [_behind(f, calls["otherwise"].status(), shift)]

        (status,) = f.if_else(holds, lambda: [calls["then"].status()], otherwise)
        if any(part.failures for part in parts.values()):
            return_if_failed(f, status, 0)

    return kernel("cond", parts, 0, 1, [v.type for v in node.inputs] + [*node.types], emit)


def _behind(f: Function, status: Value, failures: int) -> Value:
    """A status whose failures are counted behind so many others."""
    failed = f.compare("ne", status, constant(I64, 0))
    return f.select(failed, f.add(status, constant(I64, failures)), status)


KERNELS[COND] = KernelLowering(_cond, gapless=True)
