"""Gradients of imperative code: record operations, then go back through them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from importlib import import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any

from heterosis import _core
from heterosis.autograd import tape
from heterosis.autograd.conditional import in_any_case
from heterosis.autograd.function import Function
from heterosis.autograd.tape import Leaf, full
from heterosis.ir.types import is_float
from heterosis.runtime.arguments import check_members as _check_members
from heterosis.runtime.elsewhere import lookup as _lookup
from heterosis.runtime.errors import ArgumentError, AutogradError, DTypeError, UnsupportedError
from heterosis.runtime.modes import (
    is_capturing,
    is_recording,
    is_training,
    set_recording,
    set_training,
    switched,
)
from heterosis.runtime.placing import beside

ndarray = _core.ndarray

REQUESTS = ("write", "add", "null")


def record(train_mode: bool = True) -> AbstractContextManager[None]:
    """Within the block, operations on variables are recorded for `backward`."""
    return switched(True, train_mode)


def pause(train_mode: bool = False) -> AbstractContextManager[None]:
    """Within the block, nothing is recorded."""
    return switched(False, train_mode)


def train_mode() -> AbstractContextManager[None]:
    """Within the block, layers behave as in training."""
    return switched(None, True)


def predict_mode() -> AbstractContextManager[None]:
    """Within the block, layers behave as in prediction."""
    return switched(None, False)


def _as_list(given: Any) -> list[Any]:
    return list(given) if isinstance(given, list | tuple) else [given]


def mark_variables(variables: Any, gradients: Any, grad_reqs: Any = "write") -> None:
    """Make arrays variables whose gradients go into the arrays `gradients`."""
    variables, gradients = _as_list(variables), _as_list(gradients)
    requests = [grad_reqs] * len(variables) if isinstance(grad_reqs, str) else list(grad_reqs)
    if not len(variables) == len(gradients) == len(requests):
        raise ArgumentError(
            f"mark_variables: {len(variables)} variables, {len(gradients)} gradients and "
            f"{len(requests)} requests; give as many of each."
        )
    for variable, gradient, request in zip(variables, gradients, requests, strict=True):
        _check_request("mark_variables", request)
        if request != "null":
            check_float("mark_variables", variable)
        if request != "null" and gradient.shape != variable.shape:
            raise ArgumentError(
                f"mark_variables: a gradient of shape {gradient.shape} for a variable of shape "
                f"{variable.shape}; the shapes must be equal."
            )
        tape.mark(variable, gradient, request)


def _check_request(name: str, request: str) -> None:
    if request not in REQUESTS:
        raise ArgumentError(f"{name}: grad_req={request!r}; expected one of {', '.join(REQUESTS)}.")


def check_float(name: str, variable: Any) -> None:
    """Raise for an array that is to be a variable, and has elements that no gradient reaches."""
    dtype = variable._dtype_name
    if not is_float(dtype):
        raise DTypeError(
            f"{name}: an array of {dtype} cannot be a variable: only floats have gradients. "
            "Convert it with .astype('float32'), or say grad_req='null'."
        )


def attach_grad(self: Any, grad_req: str = "write", stype: str | None = None) -> None:
    """Make the array a variable: `backward` leaves its gradient in `.grad`, written, or added to
    what is there (`grad_req='add'`)."""
    _check_request("attach_grad", grad_req)
    if stype not in (None, "default"):
        raise UnsupportedError(f"attach_grad: {stype!r} storage does not exist; only 'default'.")
    if grad_req != "null":
        check_float("attach_grad", self)
    with beside(self):
        grad = full(self.shape, 0.0, self._dtype_name)
    mark_variables([self], [grad], [grad_req])


def grad_of(self: Any) -> Any:
    """The gradient that `backward` has left; None for an array that is no variable."""
    return tape.gradient_of(self)


def turn_of(variable: Any) -> int:
    """When `backward` has last found the gradient of a variable: after those with lower numbers."""
    source = variable._autograd
    return source.turn if isinstance(source, Leaf) else 0


def backward_from(
    self: Any, out_grad: Any = None, retain_graph: bool = False, train_mode: bool = True
) -> None:
    """Gradients of the array's sum, or of its product with `out_grad`, for all variables."""
    backward([self], None if out_grad is None else [out_grad], retain_graph, train_mode)


def backward(
    heads: Any, head_grads: Any = None, retain_graph: bool = False, train_mode: bool = True
) -> None:
    """Gradients of `heads` for all variables that they were computed from, left in `.grad`."""
    heads = _as_list(heads)
    seeds = tape.seeds_for(heads, None if head_grads is None else _as_list(head_grads))
    found = tape.propagate(heads, seeds, retain=retain_graph, again=False)
    with switched(recording=False):
        for leaf in list(found):
            leaf.receive([found.pop(leaf)])


def grad(
    heads: Any,
    variables: Any,
    head_grads: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    train_mode: bool = True,
) -> list[Any]:
    """The gradients of `heads` for `variables`, a list of new arrays, also for one variable; with
    `create_graph` they can be differentiated again."""
    heads, variables = _as_list(heads), _as_list(variables)
    seeds = tape.seeds_for(heads, None if head_grads is None else _as_list(head_grads))
    sources = [_source(variable) for variable in variables]
    retain = create_graph if retain_graph is None else retain_graph
    found = tape.propagate(heads, seeds, retain=retain, again=create_graph, stops=sources)
    gradients = [_found(found, s, v) for s, v in zip(sources, variables, strict=True)]
    if is_capturing():  # whose arrays are apart
        return gradients
    with switched(recording=create_graph):
        return list(_apart(gradients, [] if head_grads is None else seeds))


def _apart(gradients: Sequence[Any], given: Sequence[Any]) -> Iterator[Any]:
    """The gradients, copied where a rule hands on what it receives: none shares its memory with
    another one, or with a head gradient that was given."""
    taken = {seed._storage_id for seed in given}
    for gradient in gradients:
        own = gradient.copy() if gradient._storage_id in taken else gradient
        taken.add(own._storage_id)
        yield own


def _source(variable: Any) -> tape.Source:
    source = tape.source_of(variable)
    if source is None:
        raise AutogradError(
            f"grad: an array of shape {variable.shape} is no variable and was not computed from "
            "one; call attach_grad() on it before it is used."
        )
    return source


def _found(found: dict[Any, Any], source: tape.Source, variable: Any) -> Any:
    total = in_any_case(found.get(tape.key_of(source)))
    if total is not None:
        return total
    with beside(variable):
        return full(variable.shape, 0.0, variable._dtype_name)


def get_symbol(x: Any) -> Any:
    """The recorded computation of `x` as a `symbol.Symbol` of variables var0, var1, ..."""
    # By name: symbols stand above this package, which does nothing but hand the array on.
    return import_module("heterosis.mxnet.symbols.history").symbol_of(x)


tape.install()
for _name, _member in {
    "attach_grad": attach_grad,
    "grad": property(grad_of),
    "backward": backward_from,
}.items():
    setattr(ndarray, _name, _member)

_check_members(globals())

if not _TYPE_CHECKING:  # else every name would be known
    __getattr__ = _lookup(__name__)

__all__ = [
    "Function",
    "backward",
    "get_symbol",
    "grad",
    "is_recording",
    "is_training",
    "mark_variables",
    "pause",
    "predict_mode",
    "record",
    "set_recording",
    "set_training",
    "train_mode",
]
