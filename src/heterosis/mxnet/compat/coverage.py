"""Which of MXNet 1.9.1's public names exist here, and which not yet."""

from __future__ import annotations

import importlib
import importlib.resources
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# Sections of mxnet_names.json, and where their names are looked up: a module, or a class in one.
PLACES = {
    "np": "heterosis.np",
    "np.random": "heterosis.np.random",
    "np.linalg": "heterosis.np.linalg",
    "npx": "heterosis.npx",
    "npx.random": "heterosis.npx.random",
    "np.ndarray members": "heterosis.np:ndarray",
    "gluon": "heterosis.gluon",
    "gluon.nn": "heterosis.gluon.nn",
    "gluon.rnn": "heterosis.gluon.rnn",
    "gluon.utils": "heterosis.gluon.utils",
    "gluon.contrib.nn": "heterosis.gluon.contrib.nn",
    "gluon.contrib.estimator": "heterosis.gluon.contrib.estimator",
    "gluon.model_zoo.vision": "heterosis.gluon.model_zoo.vision",
    "gluon.Block members": "heterosis.gluon:Block",
    "gluon.HybridBlock members": "heterosis.gluon:HybridBlock",
    "gluon.SymbolBlock members": "heterosis.gluon:SymbolBlock",
    "symbol": "heterosis.symbol",
    "symbol.Symbol members": "heterosis.symbol:Symbol",
    "gluon.Parameter members": "heterosis.gluon:Parameter",
    "gluon.ParameterDict members": "heterosis.gluon:ParameterDict",
    "gluon.Trainer members": "heterosis.gluon:Trainer",
    "gluon.loss": "heterosis.gluon.loss",
    "init": "heterosis.initializer",
    "optimizer": "heterosis.optimizer",
    "lr_scheduler": "heterosis.lr_scheduler",
    "metric": "heterosis.metric",
    "kvstore": "heterosis.kvstore",
    "npx.image": "heterosis.npx.image",
    "gluon.data": "heterosis.gluon.data",
    "gluon.data.vision": "heterosis.gluon.data.vision",
    "gluon.data.vision.transforms": "heterosis.gluon.data.vision.transforms",
    "image": "heterosis.image",
    "recordio": "heterosis.recordio",
    "autograd": "heterosis.autograd",
    "context": "heterosis.runtime.context",
    "random": "heterosis.ndarray.random",
    "util": "heterosis.mxnet.compat.facade.util",
    "runtime": "heterosis.mxnet.compat.facade.runtime",
    "engine": "heterosis.mxnet.compat.facade.engine",
    "profiler": "heterosis.profiler",
}


@dataclass(frozen=True)
class Coverage:
    """One section: its names, and those that are missing."""

    section: str
    names: tuple[str, ...]
    missing: tuple[str, ...]

    @property
    def present(self) -> int:
        return len(self.names) - len(self.missing)


def names() -> dict[str, list[str]]:
    """MXNet's public names by section."""
    text = importlib.resources.files(__package__).joinpath("mxnet_names.json").read_text("utf-8")
    sections: dict[str, list[str]] = json.loads(text)
    return sections


def coverage() -> list[Coverage]:
    """The sections that have a place here. Names that merely fall back to NumPy do not count."""
    return [_covered(section, names()[section], place) for section, place in PLACES.items()]


def _covered(section: str, wanted: list[str], place: str) -> Coverage:
    have = set(_own_names(place))
    return Coverage(section, tuple(wanted), tuple(name for name in wanted if name not in have))


def _own_names(place: str) -> Mapping[str, Any]:
    module, _, attribute = place.partition(":")
    found = importlib.import_module(module)
    if not attribute:
        return vars(found)
    classes = getattr(found, attribute).__mro__[:-1]
    return {name: member for made in reversed(classes) for name, member in vars(made).items()}


def table() -> str:
    """The coverage as text: N of N for each section, and what is missing."""
    lines = [f"{'section':<20} {'present':>9}  missing"]
    for row in coverage():
        count = f"{row.present} of {len(row.names)}"
        lines.append(f"{row.section:<20} {count:>9}  {', '.join(row.missing) or '-'}")
    return "\n".join(lines)
