"""Derivatives of views: the elements go back to where they were shown from."""

from __future__ import annotations

from heterosis.autograd.rules.table import Cotangents, Step, adjoint
from heterosis.ir import views
from heterosis.ir.program import ASSEMBLE, SCATTER, apply, constant
from heterosis.ir.types import TensorType
from heterosis.ops.math.elementwise import add
from heterosis.ops.math.reductions import summed_to
from heterosis.ops.nn.pooling import together
from heterosis.ops.rules import cast, iota, weak, zeros


@adjoint(views.RESHAPE)
def _reshape(step: Step) -> Cotangents:
    return (views.reshape(step.cotangent, step.inputs[0].shape),)


@adjoint(views.TRANSPOSE)
def _transpose(step: Step) -> Cotangents:
    axes = step.attributes["axes"]
    return (views.transpose(step.cotangent, tuple(axes.index(a) for a in range(len(axes)))),)


@adjoint(views.BROADCAST)
def _broadcast(step: Step) -> Cotangents:
    return (summed_to(step.cotangent, step.inputs[0].shape),)


@adjoint(views.SLICE)
def _slice(step: Step) -> Cotangents:
    """Among zeros."""
    (x,), g = step.inputs, step.cotangent
    place = (step.attributes["starts"], step.attributes["steps"])
    operands = (cast(weak(0.0), g.dtype), g)
    type_ = TensorType(x.shape, g.dtype)
    return (apply(ASSEMBLE, operands, type_, places=(place,), filled=True),)


@adjoint(views.DIAGONAL)
def _diagonal(step: Step) -> Cotangents:
    (x,), g = step.inputs, step.cotangent
    axes, start = step.attributes["axes"], step.attributes["start"]
    rest = tuple(a for a in range(x.ndim) if a not in axes)
    along = iota(g.shape[-1])
    places = [add(along, constant(first, "int64")) for first in start]
    order = (*axes, *rest)
    base = zeros(g, tuple(x.shape[a] for a in order))
    update = views.transpose(g, (g.ndim - 1, *range(g.ndim - 1)))
    type_ = TensorType(base.shape, g.dtype)
    found = apply(SCATTER, (base, *places, update), type_, combine=None)
    return (views.transpose(found, tuple(order.index(a) for a in range(x.ndim))),)


@adjoint(views.WINDOWS)
def _windows(step: Step) -> Cotangents:
    (x,), steps = step.inputs, step.attributes["steps"]
    return (together(step.cotangent, x.shape[2:], steps),)
