"""What is called: the public names of every public module, and the methods of some objects."""

from __future__ import annotations

import importlib
import inspect
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy

import heterosis
from heterosis import _core
from heterosis.ops.record import ARRAY, KEY, SEQUENCE, Record
from tests.bad_calls.values import GOOD, RECEIVERS

MODULES = {
    "heterosis": "heterosis",
    "np": "heterosis.np",
    "np.random": "heterosis.np.random",
    "np.linalg": "heterosis.np.linalg",
    "npx": "heterosis.npx",
    "npx.random": "heterosis.npx.random",
    "npx.image": "heterosis.npx.image",
    "nd": "heterosis.ndarray",
    "nd.random": "heterosis.ndarray.random",
    "nd.contrib": "heterosis.ndarray.contrib",
    "nd.linalg": None,
    "sym": "heterosis.symbol",
    "sym.contrib": None,
    "sym.random": None,
    "sym.linalg": None,
    "autograd": "heterosis.autograd",
    "gluon": "heterosis.gluon",
    "gluon.nn": "heterosis.gluon.nn",
    "gluon.rnn": "heterosis.gluon.rnn",
    "gluon.loss": "heterosis.gluon.loss",
    "gluon.data": "heterosis.gluon.data",
    "gluon.data.batchify": "heterosis.gluon.data.batchify",
    "gluon.data.vision": "heterosis.gluon.data.vision",
    "gluon.data.vision.transforms": "heterosis.gluon.data.vision.transforms",
    "gluon.utils": "heterosis.gluon.utils",
    "gluon.model_zoo.vision": "heterosis.gluon.model_zoo.vision",
    "gluon.contrib.nn": "heterosis.gluon.contrib.nn",
    "gluon.contrib.estimator": "heterosis.gluon.contrib.estimator",
    "optimizer": "heterosis.optimizer",
    "metric": "heterosis.metric",
    "initializer": "heterosis.initializer",
    "lr_scheduler": "heterosis.lr_scheduler",
    "image": "heterosis.image",
    "recordio": "heterosis.recordio",
    "kvstore": "heterosis.kvstore",
    "profiler": "heterosis.profiler",
    "utils": "heterosis.utils",
}

# Left out, each for its reason.
NOT_CALLED = {
    "heterosis.install_as_mxnet": "changes what `import` finds for all that follows",
}
NO_METHODS = {
    "hybrid_forward": "called by the framework, which gives it `F` and the parameters",
    "forward": "called through the block",
}


@dataclass(frozen=True)
class Argument:
    """A parameter of a callable: its name, whether it may be left out, and what fits."""

    name: str
    required: bool
    good: str
    starred: bool = False


@dataclass(frozen=True)
class Target:
    """Something to call: its source text, its parameters, and calls that are known to be good."""

    text: str
    arguments: tuple[Argument, ...]
    examples: tuple[tuple[str, ...], ...] = field(default=())


def namespace() -> dict[str, Any]:
    """The names that calls are written with."""
    found: dict[str, Any] = {"nan": float("nan"), "inf": float("inf"), "numpy": numpy}
    found |= {"heterosis": heterosis, "ready": ready}
    for text in MODULES:
        head = text.partition(".")[0]
        if head != "heterosis":
            found[head] = importlib.import_module(MODULES[head])
    for text in ("gluon.model_zoo.vision", "gluon.contrib.nn", "gluon.contrib.estimator"):
        importlib.import_module(MODULES[text])
    return found


def ready(block: Any) -> Any:
    """An initialised block."""
    block.initialize()
    return block


def targets() -> list[Target]:
    """Everything that is called, each callable once."""
    names, seen = namespace(), set()
    found = []
    for text, callable_ in (*_public(names), *_methods(names)):
        key = getattr(callable_, "__wrapped__", callable_)
        if text in NOT_CALLED or (isinstance(key, type) and issubclass(key, BaseException)):
            continue
        owner = text.rpartition(".")[0]
        mark = (owner if owner in ("nd", "sym") else None, _identity(key))
        if mark not in seen:
            seen.add(mark)
            found.append(_target(text, callable_))
    return found


def _identity(callable_: Any) -> Any:
    return getattr(callable_, "__func__", callable_) if callable(callable_) else id(callable_)


def _public(names: dict[str, Any]) -> Iterator[tuple[str, Callable[..., Any]]]:
    for text in MODULES:
        module = eval(text, dict(names))
        for name in sorted(getattr(module, "__all__", vars(module))):
            if not name.startswith("_"):
                value = getattr(module, name, None)
                if callable(value) and _is_ours(value):
                    yield f"{text}.{name}", value


def _methods(names: dict[str, Any]) -> Iterator[tuple[str, Callable[..., Any]]]:
    for text in RECEIVERS:
        receiver = eval(text, dict(names))
        for name in dir(type(receiver)):
            if name in NO_METHODS:
                continue
            public = not name.startswith("_") or name in ("__call__", "__getitem__", "__setitem__")
            public = public or (name in _OPERATORS and isinstance(receiver, _core.ndarray))
            if public and callable(getattr(type(receiver), name, None)):
                yield f"{text}.{name}", getattr(receiver, name)


_OPERATORS = ("__add__", "__rsub__", "__pow__", "__matmul__", "__lt__", "__iadd__", "__contains__")


def _is_ours(value: Any) -> bool:
    if isinstance(value, types.ModuleType):
        return False
    module = getattr(value, "__module__", None) or ""
    return isinstance(value, _core.Operation) or module.startswith("heterosis")


def _target(text: str, callable_: Callable[..., Any]) -> Target:
    record = getattr(callable_, "record", None)
    if isinstance(record, Record):
        return Target(text, *_from_record(record))
    try:
        parameters = list(inspect.signature(callable_).parameters.values())
    except (TypeError, ValueError):
        return Target(text, (Argument("x", False, "np.ones((2, 3))"),) * 2)
    return Target(text, tuple(map(_argument, parameters)))


def _argument(parameter: inspect.Parameter) -> Argument:
    starred = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    required = parameter.default is parameter.empty and not starred
    good = GOOD.get(parameter.name, "np.ones((2, 3))")
    if not required and not starred and isinstance(parameter.default, str | int | float):
        good = repr(parameter.default)
    if parameter.kind is parameter.VAR_KEYWORD:
        return Argument("unknown_keyword", False, good, starred=True)
    return Argument(parameter.name, required, good, starred)


def _from_record(record: Record) -> tuple[tuple[Argument, ...], tuple[tuple[str, ...], ...]]:
    arguments, kinds = [], []
    for parameter, use in zip(record.parameters, record.uses, strict=True):
        if use != KEY:
            required = parameter.default is inspect.Parameter.empty
            good = GOOD.get(parameter.name, "np.ones((2, 3))")
            if not required:
                good = repr(parameter.default)
            if use == ARRAY:
                good = "np.ones((2, 3))"
            if use == SEQUENCE:
                good = "[np.ones((2, 3)), np.ones((2, 3))]"
            arguments.append(Argument(parameter.name, required, good))
            kinds.append(use)
    samples = record.samples.cases[:12] if record.samples else ()
    examples = []
    for case in samples:
        shapes = iter(case.shapes)
        texts = [
            _array(next(shapes, (2, 3)))
            if use in (ARRAY, SEQUENCE)
            else repr(case.attributes[argument.name])
            if argument.name in case.attributes
            else argument.good
            for argument, use in zip(arguments, kinds, strict=True)
        ]
        examples.append(tuple(texts))
    return tuple(arguments), tuple(examples)


def _array(shape: Any) -> str:
    if shape is None:
        return "2.0"
    if isinstance(shape, list):
        return f"[{', '.join(map(_array, shape))}]"
    return f"np.ones({shape})"
