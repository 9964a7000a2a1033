"""Arrays as text: NumPy's printing, with the element type left out where it goes without saying."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy

from heterosis import _core
from heterosis.np import convert
from heterosis.runtime import modes
from heterosis.runtime.errors import ArgumentTypeError

_UNSAID = ("float32", "bool")  # types that the elements themselves, or the default, tell
_options: dict[str, Any] = {}


# NumPy's options in the order in which they are given without names.
_IN_ORDER = (
    "precision", "threshold", "edgeitems", "linewidth", "suppress", "nanstr", "infstr", "formatter",
)  # fmt: skip


def set_printoptions(*in_order: Any, **options: Any) -> None:
    """How arrays are printed: NumPy's options, for these arrays only. `None` is NumPy's own."""
    if len(in_order) > len(_IN_ORDER):
        raise ArgumentTypeError(
            f"set_printoptions: {len(in_order)} options without names; expected at most "
            f"{len(_IN_ORDER)}: {', '.join(_IN_ORDER)}."
        )
    options = {**dict(zip(_IN_ORDER, in_order, strict=False)), **options}
    with numpy.printoptions(**options):  # which refuses what it does not know
        str(numpy.ones(2))  # and this what it cannot print with
    _options.update(options)
    for name in [name for name, value in _options.items() if value is None]:
        del _options[name]


def get_printoptions() -> dict[str, Any]:
    """The options that arrays are printed with."""
    return {**numpy.get_printoptions(), **_options}


@contextlib.contextmanager
def printoptions(*in_order: Any, **options: Any):
    """Print arrays with other options inside a `with` block."""
    before = dict(_options)
    set_printoptions(*in_order, **options)
    try:
        yield get_printoptions()
    finally:
        _options.clear()
        _options.update(before)


def to_text(self: _core.ndarray) -> str:
    """What `print` shows."""
    if _is_shown():
        return _without_elements(self)
    with numpy.printoptions(**_options):
        return str(_printable(self))


def representation(self: _core.ndarray) -> str:
    """What the interpreter shows."""
    if _is_shown():
        return _without_elements(self)
    with numpy.printoptions(**_options):
        body = numpy.array2string(_printable(self), separator=", ", prefix="array(")
        width = numpy.get_printoptions()["linewidth"]
    facts = []
    if self.size == 0 and self.shape != (0,):
        facts.append(f"shape={self.shape}")
    if self._dtype_name not in _UNSAID:
        facts.append(f"dtype={self._dtype_name}")
    return f"array({_joined(body, ', '.join(facts), width)})"


_shown: list[Callable[[], bool]] = []


def set_shown(is_shown: Callable[[], bool]) -> None:
    """`is_shown()` says, while a program is captured, whether a text is one for people: it shows an
    array without its elements."""
    _shown[:] = [is_shown]


def _is_shown() -> bool:
    return modes.is_capturing() and _shown[0]()


def _without_elements(self: _core.ndarray) -> str:
    return f"<array {self._dtype_name}{list(self.shape)} of a program>"


def _printable(self: _core.ndarray) -> numpy.ndarray:
    values = convert.shared(self)
    return values.astype("float32") if self._dtype_name == "bfloat16" else values


def _joined(body: str, facts: str, width: int) -> str:
    if not facts:
        return body
    last = len(body) - (body.rfind("\n") + 1) + (0 if "\n" in body else len("array("))
    fits = last + len(", ") + len(facts) + len(")") <= width
    return body + (", " if fits else ",\n      ") + facts


def format_array(self: _core.ndarray, specification: str) -> str:
    """`format(x, '.2f')`: an array without dimensions is formatted as its number."""
    if not specification:
        return to_text(self)
    if self.ndim == 0:
        return format(self.item(), specification)
    raise ArgumentTypeError(
        f"cannot format an array of shape {self.shape} with {specification!r}; format single "
        "elements, or see np.set_printoptions."
    )


__all__ = ["get_printoptions", "printoptions", "set_printoptions"]
