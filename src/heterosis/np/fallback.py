"""NumPy's names that arrays do not have: they run on the host, through NumPy.

Arrays go in as NumPy arrays that share their memory, and NumPy arrays come back as new arrays;
results of element types that arrays do not have (int16, complex) stay NumPy arrays. It waits for
the arguments, and is not possible inside captured programs, where there are no values yet.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy

from heterosis import _core
from heterosis.ir.program import Value
from heterosis.np import convert
from heterosis.np.dtypes import kept_dtype
from heterosis.runtime import elsewhere, modes
from heterosis.runtime.arguments import in_our_words
from heterosis.runtime.errors import UnsupportedError
from heterosis.runtime.placing import beside


def use_numpy(module: ModuleType, numpy_module: str) -> None:
    """Let names that `module` lacks be looked up in `numpy_module`, loaded when needed."""
    place = f"{numpy_module}.".removeprefix("numpy.")

    @functools.cache
    def look_up(name: str) -> Any:
        private = name.startswith("_")
        found = None if private else getattr(importlib.import_module(numpy_module), name, None)
        if found is None:
            raise elsewhere.missing(module.__name__, name)
        is_function = callable(found) and not isinstance(found, type)
        return on_host(found, f"{place}{name}") if is_function else found

    module.__getattr__ = look_up  # type: ignore[method-assign]


def on_host(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """NumPy's `function` on arrays, which users know as np.`name`."""

    @functools.wraps(function, updated=())
    def run(*arguments: Any, **keywords: Any) -> Any:
        if name.startswith("random."):
            modes.refuse_python_numbers(f"np.{name}")
        return call_on_host(name, function, arguments, keywords)

    return run


def call_on_host(
    name: str, function: Callable[..., Any], arguments: tuple[Any, ...], keywords: dict[str, Any]
) -> Any:
    """Call a function of NumPy's with arrays' elements; its arrays become ours."""
    met = _Met()
    arguments, keywords = met.lend(arguments), met.lend(keywords)
    if met.programs:
        raise UnsupportedError(
            f"np.{name} runs on the host, through NumPy, and inside a program that is being "
            "captured there are no values for it yet. Call it outside, or write it with "
            "operations that np has itself (python -m heterosis names lists them)."
        )
    try:
        result = function(*arguments, **keywords)
    except Exception as error:
        raise in_our_words(f"np.{name}", error) from error
    met.write_back()
    if met.recorded and modes.is_recording() and _has_floats(result):
        raise UnsupportedError(
            f"np.{name} runs on the host, through NumPy, and no gradient flows through it. Call it "
            "in autograd.pause(), or on x.detach(), or write it with operations that np has itself "
            "(python -m heterosis names lists them)."
        )
    if met.array is None:
        return _only_arrays_back(result)
    with beside(met.array):
        return take_back(result)


def _has_floats(result: Any) -> bool:
    if isinstance(result, list | tuple):
        return any(map(_has_floats, result))
    kind = getattr(getattr(result, "dtype", None), "kind", "")
    return kind in "fcV"  # V: bfloat16


class _Met:
    """Turns arguments into NumPy's, and counts what it met among them."""

    def __init__(self) -> None:
        self.array: _core.ndarray | None = None  # the first one
        self.programs = 0
        self.recorded = False  # whether gradients flow to one
        # Of arrays that are on a device: copies, and what was in them.
        self.copies: list[tuple[_core.ndarray, numpy.ndarray, bytes]] = []

    def lend(self, given: Any) -> Any:
        if isinstance(given, _core.ndarray):
            self.array = given if self.array is None else self.array
            self.recorded = self.recorded or given._autograd is not None
            return self._lent(given)
        if isinstance(given, Value):
            self.programs += 1
        if type(given) in (list, tuple):
            return type(given)(self.lend(item) for item in given)
        if type(given) is dict:
            return {key: self.lend(item) for key, item in given.items()}
        return given

    def _lent(self, array: _core.ndarray) -> numpy.ndarray:
        if array._device < _core.first_remote:
            return convert.shared(array)
        copy = convert.to_numpy(array)
        self.copies.append((array, copy, copy.tobytes()))
        return copy

    def write_back(self) -> None:
        """Write what the function has written to copies into the arrays that they are of."""
        for array, copy, before in self.copies:
            if copy.tobytes() != before:
                with beside(array):
                    array[...] = convert.from_numpy(copy, array._dtype_name)


def take_back(result: Any) -> Any:
    """NumPy arrays and scalars as arrays, also inside lists and tuples."""
    if isinstance(result, numpy.generic | numpy.ndarray):
        result = numpy.asarray(result)
        name = kept_dtype(result.dtype)
        return result if name is None else convert.from_numpy(result, name)
    if type(result) in (list, tuple):
        return type(result)(take_back(item) for item in result)
    if isinstance(result, tuple) and hasattr(result, "_fields"):
        return type(result)(*map(take_back, result))
    return result


def _only_arrays_back(result: Any) -> Any:
    return result if isinstance(result, numpy.generic) else take_back(result)


__all__ = ["call_on_host", "on_host", "take_back", "use_numpy"]
