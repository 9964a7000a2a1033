"""Calls of captured functions with NumPy arrays: inputs like any others, copied in and back out."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy

from heterosis.capture import trees
from heterosis.np.convert import from_numpy, to_numpy
from heterosis.runtime import modes
from heterosis.runtime.errors import CaptureError


def call(replay: Callable[..., Any], arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """`replay(*arguments, **keywords)` with an array of ours for every NumPy array.

    What the program wrote is written back; an argument that is returned is the caller's own.
    """
    sources = {id(one): one for one in trees.numpy_arrays_in((arguments, keywords))}
    with modes.switched(recording=False):
        made = {key: from_numpy(source) for key, source in sources.items()}

    def stand_in(source: numpy.ndarray) -> Any:
        return made.get(id(source), source)

    given, named = trees.replaced((arguments, keywords), stand_in, numpy.ndarray)
    versions = {key: array._version for key, array in made.items()}
    result = replay(*given, **named)
    written = [key for key, array in made.items() if array._version != versions[key]]
    _check_apart(list(sources.values()), [sources[key] for key in written])
    for key in written:
        sources[key][...] = to_numpy(made[key])
    own = {id(array): sources[key] for key, array in made.items()}
    containers = zip(
        *(map(trees.containers_in, ((given, named), (arguments, keywords)))), strict=True
    )
    known = {id(made_here): callers for made_here, callers in containers}

    def instead(container: Any) -> Any:
        is_whole = not any(id(array) in own for array in trees.arrays_in(container))
        return known.get(id(container), container if is_whole else None)

    return trees.mapped(result, lambda leaf: own.get(id(leaf), leaf), instead, {})


def _check_apart(sources: list[numpy.ndarray], written: list[numpy.ndarray]) -> None:
    """Nothing has been written back so far."""
    for one, other in itertools.product(written, sources):
        if one is not other and numpy.shares_memory(one, other):
            raise CaptureError(
                f"two NumPy arrays among the arguments, of shapes {one.shape} and {other.shape}, "
                "share memory, and the program writes to it. Pass copies."
            )
