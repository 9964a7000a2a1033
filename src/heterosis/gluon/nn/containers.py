"""Blocks that hold other blocks: sequences, branches side by side, and functions as blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from heterosis import ndarray as F
from heterosis import np
from heterosis.gluon.block import Block, framed
from heterosis.gluon.hybrid_block import HybridBlock
from heterosis.gluon.parameter_dict import ParameterDict
from heterosis.runtime.errors import ArgumentError


class _Container(Block):
    """What sequences of blocks share."""

    is_sequence = True

    def add(self, *blocks: Block) -> None:
        """Append blocks."""
        for block in blocks:
            self.register_child(block)

    def __len__(self) -> int:
        return len(self._children)

    def __iter__(self) -> Iterator[Block]:
        return iter(tuple(self._children.values()))

    def __getitem__(self, key: int | slice) -> Any:
        chosen = list(self._children.values())[key]
        if isinstance(chosen, Block):
            return chosen
        part = self._like(self._prefix)
        part.add(*chosen)
        return part

    def _like(self, prefix: str) -> _Container:
        """An empty container of the same kind."""
        return type(self)(prefix=prefix)

    def __repr__(self) -> str:
        return framed(self, self._children.items())

    def _in_turn(self, x: Any) -> Any:
        for block in self._children.values():
            x = block(x)
        return x


class Sequential(_Container):
    """Blocks one after the other. A slice is another Sequential with the same blocks."""

    def forward(self, x: Any) -> Any:
        """The last block's result."""
        return self._in_turn(x)


class HybridSequential(_Container, HybridBlock):
    """Hybrid blocks one after the other. A slice is another HybridSequential."""

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """The last block's result."""
        return self._in_turn(x)


class Concurrent(Sequential):
    """Blocks side by side on the same input, their results joined along `axis`."""

    def __init__(
        self, axis: int = -1, prefix: str | None = None, params: ParameterDict | None = None
    ):
        super().__init__(prefix, params)
        self.axis = axis

    def _like(self, prefix: str) -> _Container:
        return type(self)(axis=self.axis, prefix=prefix)

    def forward(self, x: Any) -> Any:
        """The results of all blocks, joined."""
        return np.concatenate([block(x) for block in self._children.values()], axis=self.axis)


class HybridConcurrent(HybridSequential):
    """Hybrid blocks side by side on the same input, their results joined along `axis`."""

    def __init__(
        self, axis: int = -1, prefix: str | None = None, params: ParameterDict | None = None
    ):
        super().__init__(prefix, params)
        self.axis = axis

    def _like(self, prefix: str) -> _Container:
        return type(self)(axis=self.axis, prefix=prefix)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """The results of all blocks, joined."""
        return F.np.concatenate([block(x) for block in self._children.values()], axis=self.axis)


class Identity(HybridBlock):
    """Gives its input back: a branch that skips."""

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """The input."""
        return x


class Lambda(Block):
    """A function as a block: a callable, or the name of an operation."""

    def __init__(self, function: str | Callable[..., Any], prefix: str | None = None):
        super().__init__(prefix)
        self._function = _found(function)

    def forward(self, *args: Any) -> Any:
        """The function's result."""
        return self._function(*args)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({_name(self._function)})"


class HybridLambda(HybridBlock):
    """A function `f(F, x, ...)`, or the name of an operation, as a hybrid block."""

    def __init__(self, function: str | Callable[..., Any], prefix: str | None = None):
        super().__init__(prefix)
        run = _found(function)
        if isinstance(function, str):
            self._function: Callable[..., Any] = lambda F, *args: _found(function)(*args)
        else:
            self._function = run
        self._title = function if isinstance(function, str) else _name(function)

    def hybrid_forward(self, F: Any, x: Any, *args: Any) -> Any:
        """The function's result."""
        return self._function(F, x, *args)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._title})"


def _found(function: str | Callable[..., Any]) -> Callable[..., Any]:
    """The function, or the operation of that name in F, npx or np."""
    if callable(function):
        return function
    for module in (F, F.npx, F.np):
        if isinstance(function, str) and callable(getattr(module, function, None)):
            return getattr(module, function)
    raise ArgumentError(
        f"{function!r} is no operation and no function; expected a callable, or the name of an "
        "operation such as 'relu'."
    )


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", type(function).__name__)
