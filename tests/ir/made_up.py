"""Primitives that tests make up: their nodes are of the types that they say."""

from typing import Any

from heterosis.ir.primitives.families import Elementwise, Primitive
from heterosis.runtime.errors import UnsupportedError


def made_up(name: str, family: type[Primitive] = Elementwise, **facts: Any) -> Any:
    """A primitive of `family`, which NumPy cannot compute unless `facts` have its meaning."""

    def meaning(*arguments: Any) -> Any:
        raise UnsupportedError(f"{name} has no meaning.")

    return family(name, **{"types": lambda node: node.types, "meaning": meaning, **facts})
