"""Random numbers in symbols: drawn anew whenever a symbol runs."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from heterosis.mxnet.arrays import random as on_arrays
from heterosis.mxnet.symbols import composition
from heterosis.mxnet.symbols.symbol import Symbol
from heterosis.runtime import modes
from heterosis.runtime.errors import ArgumentError
from heterosis.runtime.kinds import is_number

# The parameters of each distribution, in the order in which its operators take them.
_PARAMETERS = {
    "uniform": ("low", "high"),
    "normal": ("loc", "scale"),
    "gamma": ("alpha", "beta"),
    "exponential": ("scale",),
    "poisson": ("lam",),
    "negative_binomial": ("k", "p"),
    "generalized_negative_binomial": ("mu", "alpha"),
    "randint": ("low", "high"),
}
_DRAWN_ALONE = composition.functions()


def drawn(name: str) -> Callable[..., Any]:
    """The distribution as a symbol; while a program is captured, the array itself."""
    immediate = getattr(on_arrays, name)
    signature = inspect.signature(immediate)

    @functools.wraps(immediate)
    def run(*arguments: Any, **keywords: Any) -> Any:
        if modes.is_capturing():
            return immediate(*arguments, **keywords)
        given = signature.bind(*arguments, **keywords)
        given.apply_defaults()
        facts = given.arguments | given.arguments.pop("options")
        return _composed(name, [facts.pop(key) for key in _PARAMETERS[name]], facts)

    return run


def _composed(name: str, parameters: list[Any], facts: dict[str, Any]) -> Symbol:
    options = {k: facts.get(k) for k in ("shape", "dtype", "name") if facts.get(k) is not None}
    symbols = [isinstance(parameter, Symbol) for parameter in parameters]
    if name == "exponential":  # operators take the rate
        parameters = [1.0 / parameters[0]]
    make = composition.function(f"_sample_{name}")
    if make and all(symbols):
        return make(*parameters, **options)
    if not all(map(is_number, parameters)):
        expected = "numbers, or symbols for all of them" if make else "numbers"
        raise ArgumentError(f"random.{name}: the parameters are {parameters}; expected {expected}.")
    return _DRAWN_ALONE[f"random_{name}"](*parameters, **{"shape": (1,), **options})


def randn(*shape: int, loc: Any = 0.0, scale: Any = 1.0, **options: Any) -> Any:
    """`normal` with its shape as arguments."""
    return normal(loc, scale, shape, **options)


uniform, normal, gamma = map(drawn, ("uniform", "normal", "gamma"))
exponential, poisson, randint = map(drawn, ("exponential", "poisson", "randint"))
negative_binomial = drawn("negative_binomial")
generalized_negative_binomial = drawn("generalized_negative_binomial")
multinomial = composition.either("_sample_multinomial", on_arrays.multinomial)
shuffle = composition.either("_shuffle", on_arrays.shuffle)
