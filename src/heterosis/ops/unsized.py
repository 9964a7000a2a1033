"""Arrays whose shape follows from the operation that uses them: parameters not yet sized.

An `Unsized` stands for such an array. When an operation meets one, its rule here says which shape
the array must have, given the other arguments; the array is made, and the operation runs on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from heterosis.runtime.errors import ArgumentError, DeferredInitializationError, ShapeError

Shape = tuple[int, ...]
Arguments = Mapping[str, Any]
Rule = Callable[[Arguments], Mapping[str, Shape]]

UNKNOWN = -1


class Unsized:
    """Stands for an array until `settle` makes it. Its `shape` has -1 where it is unknown;
    `known_shape` is None if nothing is known, and `shape` an error."""

    def __init__(self, description: str, shape: Shape | None, settle: Callable[[Shape], Any]):
        self.description, self.known_shape = description, shape
        self.made: Any = None  # the array, once it is there
        self._settle = settle

    @property
    def shape(self) -> Shape:
        """What is known of the shape."""
        if self.known_shape is None:
            raise self.refuse("'.shape'")
        return self.known_shape

    def settle(self, operation: str, shape: Shape) -> Any:
        """The array, made in `shape`, which must agree with what was known."""
        if self.made is not None:
            return self.made
        known = self.known_shape
        fits = known is None or (
            len(shape) == len(known)
            and all(extent in (UNKNOWN, n) for extent, n in zip(known, shape, strict=True))
        )
        if not fits:
            raise ShapeError(
                f"{operation}: {self.description} has shape {known}, and the other arguments "
                f"ask for {shape}. Change the layer's sizes, or check the input."
            )
        self.made = self._settle(shape)
        self.known_shape = shape
        return self.made

    def refuse(self, use: str) -> DeferredInitializationError:
        """The error for a use that does not tell the missing extents."""
        error = DeferredInitializationError(
            f"{use} does not tell the unknown extents (-1) of {self.description}, whose shape is "
            f"{self.known_shape}. Give its full shape when the layer is made (in_units, "
            "in_channels, ...), define infer_shape(self, *inputs) in the block, or use the "
            f"parameter first in one of: {', '.join(sorted(RULES))}."
        )
        error.array = self
        return error

    def __getattr__(self, name: str) -> Any:
        if self.made is not None:
            return getattr(self.made, name)
        if name.startswith("__"):
            raise AttributeError(name)
        raise self.refuse(f"'.{name}'")


def _delegating(symbol: str, method: str) -> Callable[..., Any]:
    def run(self: Unsized, *others: Any) -> Any:
        if self.made is None:
            raise self.refuse(f"'{symbol}'")
        return getattr(self.made, method)(*others)

    return run


_OPERATORS = {
    "+": "add", "-": "sub", "*": "mul", "/": "truediv", "//": "floordiv", "%": "mod", "**": "pow",
    "@": "matmul",
}  # fmt: skip
_BOTH_SIDES = [(symbol, side + name) for symbol, name in _OPERATORS.items() for side in ("", "r")]
_OTHERS = [("-", "neg"), ("[]", "getitem"), ("len()", "len"), ("for", "iter")]
for _symbol, _name in _BOTH_SIDES + _OTHERS:
    setattr(Unsized, f"__{_name}__", _delegating(_symbol, f"__{_name}__"))


# -- rules: argument name to the shape it must have -----------------------------------------------

RULES: dict[str, Rule] = {}
# What rules need, and operations may do without.
_NUMBERS = ("num_hidden", "num_filter", "kernel", "input_dim", "output_dim")


def rule(*operations: str) -> Callable[[Rule], Rule]:
    """Register how the shapes of unsized arrays follow for these operations."""

    def register(found: Rule) -> Rule:
        RULES.update(dict.fromkeys(operations, found))
        return found

    return register


def settled(operation: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments of an operation, each `Unsized` replaced by the array it stands for."""
    waiting = {k: v for k, v in arguments.items() if isinstance(v, Unsized) and v.made is None}
    if "data" in waiting:  # all rules go by it
        raise waiting["data"].refuse(operation)
    shapes = _asked_for(operation, arguments) if waiting and operation in RULES else {}
    for name, given in waiting.items():
        if name not in shapes:
            raise given.refuse(operation)
        given.settle(operation, shapes[name])
    return {name: _made(operation, given) for name, given in arguments.items()}


def _made(operation: str, given: Any) -> Any:
    """The array itself for what stands for one, also in a sequence, whose shapes no rule tells."""
    if isinstance(given, list | tuple):
        return type(given)([_made(operation, item) for item in given])
    if isinstance(given, Unsized) and given.made is None:
        raise given.refuse(operation)
    return given.made if isinstance(given, Unsized) else given


def _asked_for(operation: str, arguments: Arguments) -> Mapping[str, Shape]:
    """The shapes by an operation's rule, which takes for granted that its arguments are there."""
    missing = [name for name in _NUMBERS if name in arguments and arguments[name] is None]
    shapes: Mapping[str, Shape] = {}
    try:
        shapes = RULES[operation](arguments)
    except IndexError:
        raise ShapeError(
            f"{operation}: data of shape {arguments['data'].shape} has too few dimensions."
        ) from None
    except (TypeError, DeferredInitializationError):
        if not missing:
            raise
    if missing and (not shapes or any(None in shape for shape in shapes.values())):
        raise ArgumentError(f"{operation}: {' and '.join(missing)} must be given.")
    return shapes


@rule("fully_connected")
def _fully_connected(a: Arguments) -> Mapping[str, Shape]:
    x, units = a["data"], a["num_hidden"] or a["weight"].shape[0]
    features = math.prod(x.shape[1:]) if a["flatten"] else x.shape[-1]
    return {"weight": (units, features), "bias": (units,)}


def _channels(a: Arguments) -> int:
    layout = a.get("layout") or "NC"
    return int(a["data"].shape[layout.index("C")])


def _in_layout(layout: str | None, outer: int, inner: int, kernel: Shape) -> Shape:
    """A weight's shape: `outer`, and `inner` where the data's layout has its channels."""
    if layout is None or layout.index("C") == 1:
        return (outer, inner, *kernel)
    return (outer, *kernel, inner)


@rule("convolution")
def _convolution(a: Arguments) -> Mapping[str, Shape]:
    filters, kernel = a["num_filter"], tuple(a["kernel"])
    inner = _channels(a) // a["num_group"]
    return {"weight": _in_layout(a["layout"], filters, inner, kernel), "bias": (filters,)}


@rule("deconvolution")
def _deconvolution(a: Arguments) -> Mapping[str, Shape]:
    filters, kernel = a["num_filter"], tuple(a["kernel"])
    inner = filters // a["num_group"]
    return {"weight": _in_layout(a["layout"], _channels(a), inner, kernel), "bias": (filters,)}


@rule("batch_norm", "layer_norm", "instance_norm", "rms_norm")
def _norm(a: Arguments) -> Mapping[str, Shape]:
    extent = (a["data"].shape[a.get("axis", 1)],)
    return dict.fromkeys(("gamma", "beta", "moving_mean", "moving_var"), extent)


@rule("group_norm")
def _group_norm(a: Arguments) -> Mapping[str, Shape]:
    return dict.fromkeys(("gamma", "beta"), (a["num_groups"],))


@rule("embedding")
def _embedding(a: Arguments) -> Mapping[str, Shape]:
    return {"weight": (a["input_dim"], a["output_dim"])}


@rule("leaky_relu")
def _leaky_relu(a: Arguments) -> Mapping[str, Shape]:
    return {"gamma": (a["data"].shape[1],)}
