"""The whole state of a training run in one file, which is replaced whole.

It is a safetensors file: parameters, the optimizer's states as `Trainer.save_states` writes them,
and JSON for the rest. Everything is checked before anything is changed.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Mapping
from typing import Any

import numpy

from heterosis import np
from heterosis.gluon import loading
from heterosis.gluon.block import Block
from heterosis.gluon.parameter import Parameter
from heterosis.gluon.trainer import Trainer
from heterosis.io.atomic import written
from heterosis.io.files import opened
from heterosis.io.packing import pack, unpack
from heterosis.runtime.errors import ArgumentError, FormatError

_KIND = "heterosis training run"
_VERSION = 1
_TWISTER_WORDS = 624  # of NumPy's generator
_PARAMETER, _GRADIENT, _OPTIMIZER = "parameter ", "gradient ", "optimizer"

Facts = dict[str, Any]


def save(path: str | os.PathLike[str], net: Block, trainer: Trainer, run: Facts) -> None:
    """Write the state of training; `run` is what else is to be known, in what JSON has."""
    named = _named(net, trainer)
    states = numpy.frombuffer(trainer.updater.get_states(dump_optimizer=True), "uint8")
    arrays = {_PARAMETER + name: p.merged_data() for name, p in named.items()}
    arrays |= {_GRADIENT + name: p.grad() for name, p in _accumulating(named).items()}
    arrays[_OPTIMIZER] = np.array(states, dtype="uint8")
    facts = {
        "kind": _KIND,
        "version": _VERSION,
        "order": _order(named, trainer),
        "random": _random_state(),
        "run": run,
    }
    try:
        packed = pack(arrays, facts)
    except TypeError as error:
        raise ArgumentError(
            f"{os.fspath(path)} cannot be written: {error}. The attributes that a handler names in "
            "`remembered`, and the indices of a sampler, must be numbers, texts or lists of them."
        ) from None
    with written(path) as file:
        file.write(packed)


def load(
    path: str | os.PathLike[str], net: Block, trainer: Trainer, check: Callable[[Facts], None]
) -> tuple[Facts, Callable[[], None]]:
    """Take over a state that `save` wrote: `run`, and what restores the random numbers.

    `check` raises if it can do nothing with `run`; then, and for a file that is damaged or does
    not fit, nothing has changed.
    """
    with opened(path, "a checkpoint of gluon.fit") as source:
        arrays, facts = _opened(source.whole())
        take_states, restore_random = _checked(arrays, facts, net, trainer)
        check(facts["run"])
    named = _named(net, trainer)
    _load_parameters(named, arrays)
    take_states()
    _load_gradients(named, arrays)
    return facts["run"], restore_random


def _opened(data: bytes) -> tuple[dict[str, np.ndarray], Facts]:
    arrays, facts = unpack(data)
    if facts.get("kind") != _KIND or _OPTIMIZER not in arrays:
        raise FormatError(
            "it is a safetensors file, but no checkpoint that fit has written. Give another "
            "folder, or resume=False to start anew."
        )
    if facts["version"] != _VERSION:
        raise FormatError(f"it has version {facts['version']}; expected {_VERSION}.")
    return arrays, facts


def _checked(
    arrays: Mapping[str, np.ndarray], facts: Facts, net: Block, trainer: Trainer
) -> tuple[Callable[[], None], Callable[[], None]]:
    """What takes over the optimizer's states, and the random numbers, once all has been checked."""
    named = _named(net, trainer)
    loading.check_all(named, _starting(arrays, _PARAMETER), "the file")
    numbers = _renumbered(facts["order"], _order(named, trainer))
    _check_gradients(named, _starting(arrays, _GRADIENT))
    weights = {i: arrays[_PARAMETER + name] for i, name in enumerate(facts["order"])}
    take = trainer.updater.prepared(arrays[_OPTIMIZER].asnumpy().tobytes(), weights)

    def take_states() -> None:
        take()
        trainer.updater.renumber(numbers)

    return take_states, _random_restorer(facts["random"])


# -- parameters -----------------------------------------------------------------------------------


def _named(net: Block, trainer: Trainer) -> dict[str, Parameter]:
    """All parameters, each once: by their places in the net, others of the trainer by name."""
    first: dict[int, tuple[str, Parameter]] = {}
    for name, parameter in net._collect_params_with_prefix().items():
        first.setdefault(id(parameter), (name, parameter))
    for parameter in trainer.parameters:
        first.setdefault(id(parameter), (f"trainer.{parameter.name}", parameter))
    return dict(first.values())


def _order(named: Mapping[str, Parameter], trainer: Trainer) -> list[str]:
    names = {id(parameter): name for name, parameter in named.items()}
    return [names[id(parameter)] for parameter in trainer.parameters]


def _renumbered(saved: list[str], now: list[str]) -> dict[int, int]:
    """A trainer numbers its parameters by their names, which count all layers ever made."""
    if sorted(saved) != sorted(now):
        raise ArgumentError(
            "its trainer updates other parameters than this one: "
            f"{sorted(set(saved) ^ set(now))} belong to one of the two only."
        )
    return {place: now.index(name) for place, name in enumerate(saved)}


def _accumulating(named: Mapping[str, Parameter]) -> dict[str, Parameter]:
    """Those whose gradients outlive a step."""
    return {name: p for name, p in named.items() if p.grad_req == "add"}


def _starting(arrays: Mapping[str, np.ndarray], start: str) -> dict[str, np.ndarray]:
    return {n.removeprefix(start): a for n, a in arrays.items() if n.startswith(start)}


def _load_parameters(named: Mapping[str, Parameter], arrays: Mapping[str, np.ndarray]) -> None:
    for name, array in _starting(arrays, _PARAMETER).items():
        named[name].load(array)


def _check_gradients(named: Mapping[str, Parameter], gradients: Mapping[str, np.ndarray]) -> None:
    for name, array in gradients.items():
        problem = (
            named[name].load_problem(array, cast_dtype=False) if name in named else "no parameter"
        )
        if problem:
            raise FormatError(f"the gradient of {name!r}: {problem}.")


def _load_gradients(named: Mapping[str, Parameter], arrays: Mapping[str, np.ndarray]) -> None:
    gradients = _starting(arrays, _GRADIENT)
    for name, parameter in _accumulating(named).items():
        if name in gradients:
            parameter.grad()[...] = gradients[name]
            parameter.mark_used()


# -- random numbers -------------------------------------------------------------------------------


def _random_state() -> Facts:
    """Ours, and those of Python and NumPy, which datasets and transforms may use."""
    kind, keys, *rest = numpy.random.get_state(legacy=True)
    return {
        "heterosis": np.random.get_state(),
        "python": random.getstate(),
        "numpy": [kind, numpy.asarray(keys).tolist(), *rest],
    }


def is_random_state(given: Any) -> bool:
    """Whether these are two numbers that a generator of ours can go on from."""
    numbers = isinstance(given, list) and len(given) == 2
    return numbers and all(type(n) is int and 0 <= n < 1 << 64 for n in given)


def _random_restorer(state: Facts) -> Callable[[], None]:
    version, keys, gauss = state["python"]
    python = (version, tuple(keys), gauss)
    random.Random().setstate(python)  # raises if it is none
    _, _, place, *_ = state["numpy"]
    if type(place) is not int or not 0 <= place <= _TWISTER_WORDS:  # NumPy would read beyond them
        raise ValueError(f"{place} is no place among the {_TWISTER_WORDS} numbers of a generator")
    numpy.random.RandomState().set_state(state["numpy"])
    kind, seed, drawn = state["heterosis"]
    if kind != np.random.get_state()[0] or not is_random_state([seed, drawn]):
        raise ValueError(f"{kind}, {seed} and {drawn} are no state of random numbers")

    def restore() -> None:
        np.random.set_state((kind, seed, drawn))
        random.setstate(python)
        numpy.random.set_state(state["numpy"])

    return restore
