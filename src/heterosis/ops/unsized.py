"""Arrays whose shape follows from the operation that uses them: parameters not yet sized.

An `Unsized` stands for such an array. When an operation meets one, its rule here says which shape
the array must have, given the other arguments; the array is made, and the operation runs on it.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any

from heterosis.runtime.errors import DeferredInitializationError, ShapeError

Shape = tuple[int, ...]
Arguments = Mapping[str, Any]
Rule = Callable[[Arguments], Mapping[str, Shape]]

UNKNOWN = -1


class Unsized:
    """Stands for an array, whose `shape` has -1 where it is unknown, until `settle` makes it."""

    def __init__(self, description: str, shape: Shape, settle: Callable[[Shape], Any]):
        self.description, self.shape = description, shape
        self._settle = settle

    def settle(self, operation: str, shape: Shape) -> Any:
        """The array, made in `shape`, which must agree with what was known."""
        fits = len(shape) == len(self.shape) and all(
            known in (UNKNOWN, n) for known, n in zip(self.shape, shape, strict=True)
        )
        if not fits:
            raise ShapeError(
                f"{operation}: {self.description} has shape {self.shape}, and the other arguments "
                f"ask for {shape}. Change the layer's sizes, or check the input."
            )
        return self._settle(shape)

    def refuse(self, use: str) -> DeferredInitializationError:
        """The error for a use that does not tell the missing extents."""
        return DeferredInitializationError(
            f"{use} does not tell the unknown extents (-1) of {self.description}, whose shape is "
            f"{self.shape}. Give its full shape when the layer is made (in_units, in_channels, "
            "...), define infer_shape(self, *inputs) in the block, or use the parameter first in "
            f"one of: {', '.join(sorted(RULES))}."
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise self.refuse(f"'.{name}'")


def _refusing(symbol: str) -> Callable[..., Any]:
    def refuse(self: Unsized, *others: Any) -> Any:
        raise self.refuse(f"'{symbol}'")

    return refuse


_OPERATORS = {
    "+": "add", "-": "sub", "*": "mul", "/": "truediv", "//": "floordiv", "%": "mod", "**": "pow",
    "@": "matmul",
}  # fmt: skip
for _symbol, _name in _OPERATORS.items():
    setattr(Unsized, f"__{_name}__", _refusing(_symbol))
    setattr(Unsized, f"__r{_name}__", _refusing(_symbol))
for _symbol, _name in {"-": "neg", "[]": "getitem", "len()": "len", "iteration": "iter"}.items():
    setattr(Unsized, f"__{_name}__", _refusing(_symbol))


# -- rules: argument name to the shape it must have -----------------------------------------------

RULES: dict[str, Rule] = {}


def _rule(*operations: str) -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        RULES.update(dict.fromkeys(operations, rule))
        return rule

    return register


def settled(operation: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments of an operation, each `Unsized` replaced by the array it stands for."""
    waiting = {k: v for k, v in arguments.items() if isinstance(v, Unsized)}
    if not waiting:
        return arguments
    shapes = RULES[operation](arguments) if operation in RULES else {}
    made = {}
    for name, given in waiting.items():
        if name not in shapes:
            raise given.refuse(operation)
        made[name] = given.settle(operation, shapes[name])
    return {**arguments, **made}


def settles(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a Python function whose name has a rule take `Unsized` arguments."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def wrapper(*arguments: Any, **keywords: Any) -> Any:
        if any(isinstance(a, Unsized) for a in (*arguments, *keywords.values())):
            bound = signature.bind(*arguments, **keywords)
            bound.apply_defaults()
            bound.arguments.update(settled(function.__name__, dict(bound.arguments)))
            arguments, keywords = bound.args, bound.kwargs
        return function(*arguments, **keywords)

    return wrapper


def _first(arguments: Arguments, *names: str) -> Any:
    return next(arguments[name] for name in names if name in arguments)


@_rule("fully_connected")
def _fully_connected(a: Arguments) -> Mapping[str, Shape]:
    x, units = _first(a, "x", "data"), a["num_hidden"] or a["weight"].shape[0]
    features = math.prod(x.shape[1:]) if a.get("flatten", True) else x.shape[-1]
    return {"weight": (units, features), "bias": (units,)}


def _channels(a: Arguments) -> int:
    layout = a.get("layout") or "NC"
    return int(a["data"].shape[layout.index("C")])


def _in_layout(layout: str | None, outer: int, inner: int, kernel: Shape) -> Shape:
    """A weight's shape: `outer`, and `inner` where the data's layout has its channels."""
    if layout is None or layout.index("C") == 1:
        return (outer, inner, *kernel)
    return (outer, *kernel, inner)


@_rule("convolution")
def _convolution(a: Arguments) -> Mapping[str, Shape]:
    filters, kernel = a["num_filter"], tuple(a["kernel"])
    inner = _channels(a) // a["num_group"]
    return {"weight": _in_layout(a["layout"], filters, inner, kernel), "bias": (filters,)}


@_rule("deconvolution")
def _deconvolution(a: Arguments) -> Mapping[str, Shape]:
    filters, kernel = a["num_filter"], tuple(a["kernel"])
    inner = filters // a["num_group"]
    return {"weight": _in_layout(a["layout"], _channels(a), inner, kernel), "bias": (filters,)}


@_rule("batch_norm", "layer_norm", "instance_norm")
def _norm(a: Arguments) -> Mapping[str, Shape]:
    x = _first(a, "x", "data")
    extent = (x.shape[a.get("axis", 1)],)
    return dict.fromkeys(("gamma", "beta", "running_mean", "running_var"), extent)


@_rule("group_norm")
def _group_norm(a: Arguments) -> Mapping[str, Shape]:
    return dict.fromkeys(("gamma", "beta"), (a["num_groups"],))


@_rule("embedding")
def _embedding(a: Arguments) -> Mapping[str, Shape]:
    return {"weight": (a["input_dim"], a["output_dim"])}


@_rule("leaky_relu")
def _leaky_relu(a: Arguments) -> Mapping[str, Shape]:
    return {"gamma": (a["data"].shape[1],)}
