"""What initialisers share: the choice by a parameter's name, and composing them."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from heterosis import _core, np, npx
from heterosis.runtime.errors import ArgumentError, ShapeError, UnsupportedError
from heterosis.runtime.registry import Registry

_log = logging.getLogger(__name__)

Fill: TypeAlias = Callable[[str, _core.ndarray], None]  # fills the array of a parameter's name


class InitDesc(str):
    """A parameter's name with attributes: `__init__` names an initialiser of its own."""

    attrs: dict[str, Any]
    global_init: Initializer | None

    def __new__(  # noqa: PYI034 - typing has no Self in Python 3.10
        cls,
        name: str,
        attrs: dict[str, Any] | None = None,
        global_init: Initializer | None = None,
    ) -> InitDesc:
        made = super().__new__(cls, name)
        made.attrs = attrs or {}
        made.global_init = global_init
        return made


# What a name ends with, and the method that fills such a parameter; the first row that fits counts.
_BY_ENDING = (
    (("weight",), "_init_weight"),
    (("bias",), "_init_bias"),
    (("gamma",), "_init_gamma"),
    (("beta",), "_init_beta"),
    (("running_mean", "moving_mean", "moving_inv_var", "moving_avg", "min"), "_init_zero"),
    (("running_var", "moving_var", "max"), "_init_one"),
    (("weight_quantize",), "_init_quantized_weight"),
    (("bias_quantize",), "_init_quantized_bias"),
)


class Initializer:
    """The base of all initialisers. A subclass defines `_init_weight(name, arr)`.

    Called with a parameter's name and array, it fills the array as the name's ending asks: biases
    and `beta` with zeros, `gamma` with ones, weights by `_init_weight`.
    """

    def __init__(self, **kwargs: Any):
        self._kwargs = kwargs
        self._verbose = False
        self._print_func: Callable[[_core.ndarray], str] = _root_mean_square

    def set_verbosity(
        self, verbose: bool = False, print_func: Callable[[_core.ndarray], str] | None = None
    ) -> Initializer:
        """Log what is filled, with what `print_func` says of it; its root mean square, if None."""
        self._verbose = verbose
        self._print_func = print_func or _root_mean_square
        return self

    def dumps(self) -> str:
        """The initialiser as JSON, which `create` takes."""
        keywords = {name: _as_json(value) for name, value in self._kwargs.items()}
        return json.dumps([type(self).__name__.lower(), keywords])

    def __call__(self, desc: str, arr: _core.ndarray) -> None:
        """Fill `arr`, the parameter of the name `desc`."""
        desc = desc if isinstance(desc, InitDesc) else InitDesc(desc)
        if desc.global_init is None:
            desc.global_init = self
        own = desc.attrs.get("__init__")
        if own:
            create(own)._init_weight(desc, arr)
            self._verbose_print(desc, own, arr)
            return
        for endings, method in _BY_ENDING:
            if desc.endswith(endings):
                getattr(self, method)(desc, arr)
                self._verbose_print(desc, method.removeprefix("_init_"), arr)
                return
        self._init_default(desc, arr)

    def _verbose_print(self, desc: str, init: Any, arr: _core.ndarray) -> None:
        if self._verbose:
            _log.info("initialized %s as %s: %s", desc, init, self._print_func(arr))

    def _init_zero(self, _: str, arr: _core.ndarray) -> None:
        arr[...] = 0.0

    def _init_one(self, _: str, arr: _core.ndarray) -> None:
        arr[...] = 1.0

    _init_bias = _init_beta = _init_quantized_bias = _init_zero
    _init_gamma = _init_one

    def _init_weight(self, name: str, arr: _core.ndarray) -> None:
        raise UnsupportedError(f"{type(self).__name__} has to define _init_weight(name, arr).")

    def _init_quantized_weight(self, _: str, arr: _core.ndarray) -> None:
        arr[...] = np.random.randint(-127, 127, arr.shape)

    def _init_default(self, name: str, _: _core.ndarray) -> None:
        known = ", ".join(ending for endings, _ in _BY_ENDING for ending in endings)
        raise ArgumentError(
            f"the name {name!r} does not say how to fill the parameter: it ends with none of "
            f"{known}. Give the parameter an initializer of its own, init=..."
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Initializer):
            return NotImplemented
        return type(self) is type(other) and self.dumps() == other.dumps()

    __hash__ = object.__hash__


def _root_mean_square(arr: _core.ndarray) -> str:
    return str(np.sqrt(np.mean(np.square(arr))).item())


def _as_json(value: Any) -> Any:
    if isinstance(value, Initializer):
        return value.dumps()
    if isinstance(value, Mapping):
        return {name: _as_json(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(item) for item in value]
    return value.tolist() if hasattr(value, "tolist") else value


_registry = Registry(Initializer, "initializer")
create = _registry.create
alias = _registry.alias


def register(klass: type) -> type:
    """Let `create`, and `init='...'`, find a class by its name in lower case."""
    return _registry.register(klass)


def _fill_as_own(init: Fill, name: str, arr: _core.ndarray) -> None:
    """Fill by what a parameter has for itself: as a weight, whatever its name ends with."""
    fill = init._init_weight if isinstance(init, Initializer) else init
    fill(name, arr)


@register
class Load(Initializer):
    """Fills parameters from arrays by name, and those that are missing with `default_init`.

    `param` is a dictionary or a file that `npx.load` reads; `arg:` and `aux:` before names go.
    """

    def __init__(
        self,
        param: Mapping[str, _core.ndarray] | str,
        default_init: Fill | None = None,
        verbose: bool = False,
    ):
        if isinstance(param, str):
            param = npx.load(param)
        if not isinstance(param, Mapping):
            raise ArgumentError(
                f"Load: arrays come by name, and {type(param).__name__} has no names; expected a "
                "dictionary, or a file with one."
            )
        self.param = {re.sub("^(arg|aux):", "", name): array for name, array in param.items()}
        self.default_init = default_init
        super().__init__(param=self.param, default_init=default_init)
        self._verbose = verbose

    def __call__(self, desc: str, arr: _core.ndarray) -> None:
        """Fill `arr`, the parameter called `desc`."""
        if not self._loaded(desc, arr):
            self._default(desc)(desc, arr)

    def _init_weight(self, name: str, arr: _core.ndarray) -> None:
        if not self._loaded(name, arr):
            _fill_as_own(self._default(name), name, arr)

    def _loaded(self, name: str, arr: _core.ndarray) -> bool:
        """Whether there is an array for the parameter; it is copied then."""
        found = name in self.param
        if found:
            self._copy(name, arr)
        if self._verbose:
            _log.info("initialized %s by %s", name, "loading" if found else "default")
        return found

    def _default(self, name: str) -> Fill:
        if self.default_init is None:
            raise ArgumentError(
                f"Load: no array for the parameter {name!r}, and no default_init to fill it."
            )
        return self.default_init

    def _copy(self, name: str, arr: _core.ndarray) -> None:
        source = np.asarray(self.param[name])
        if source.shape != arr.shape:
            raise ShapeError(
                f"Load: the parameter {name!r} has the shape {arr.shape}, and the array loaded "
                f"for it {source.shape}."
            )
        arr[...] = source


@register
class Mixed(Initializer):
    """The initialiser whose pattern is the first to match the start of a parameter's name.

    Parameters that have an initialiser of their own keep it, as with any other.
    """

    def __init__(self, patterns: Sequence[str], initializers: Sequence[Fill | str]):
        if len(patterns) != len(initializers):
            raise ArgumentError(
                f"Mixed: {len(patterns)} patterns and {len(initializers)} initializers; expected "
                "one for each."
            )
        made = [create(init) if isinstance(init, str) else init for init in initializers]
        super().__init__(patterns=list(patterns), initializers=made)
        self.map = [(re.compile(p), init) for p, init in zip(patterns, made, strict=True)]

    def set_verbosity(
        self, verbose: bool = False, print_func: Callable[[_core.ndarray], str] | None = None
    ) -> Initializer:
        """Let all of the initialisers log what they fill."""
        for _, init in self.map:
            if isinstance(init, Initializer):
                init.set_verbosity(verbose, print_func)
        return self

    def __call__(self, desc: str, arr: _core.ndarray) -> None:
        """Fill `arr`, the parameter called `desc`."""
        self._of(desc)(desc, arr)

    def _init_weight(self, name: str, arr: _core.ndarray) -> None:
        _fill_as_own(self._of(name), name, arr)

    def _of(self, name: str) -> Fill:
        for pattern, init in self.map:
            if pattern.match(name):
                return init
        raise ArgumentError(
            f"Mixed: no pattern matches the name {name!r}; add '.*' at the end with an "
            "initializer for the rest."
        )
