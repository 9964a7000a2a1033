"""The least that losses need of a block."""

from __future__ import annotations

from typing import Any

from heterosis import np, npx


class _Namespace:
    np, npx = np, npx


class HybridBlock:
    """A block whose computation stands in `hybrid_forward`."""

    def __init__(self, prefix: str | None = None, params: Any = None):
        self.prefix, self.params = prefix, params

    def __call__(self, *args: Any) -> Any:
        return self.forward(*args)

    def forward(self, x: Any, *args: Any) -> Any:
        """Run `hybrid_forward`."""
        return self.hybrid_forward(_Namespace, x, *args)

    def hybrid_forward(self, F: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        """The computation."""
        raise NotImplementedError
