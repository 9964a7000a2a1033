"""The module that `import mxnet` gives: MXNet's names for what is here, imported on first use."""

import importlib as _importlib
from typing import Any as _Any

from heterosis import __version__ as __heterosis_version__  # noqa: F401
from heterosis.mxnet.compat.absent import explain as _explain
from heterosis.mxnet.compat.absent import missing as _missing

__version__ = "1.9.1"  # the version whose names and behaviour are these

# Modules of mxnet's, and where they are; what lies below them has the same name in both.
MODULES = {
    "autograd": "heterosis.autograd",
    "base": "heterosis.mxnet.compat.facade.base",
    "context": "heterosis.runtime.context",
    "engine": "heterosis.mxnet.compat.facade.engine",
    "executor": "heterosis.mxnet.symbols.executor",
    "gluon": "heterosis.gluon",
    "gluon.nn.basic_layers": "heterosis.gluon.nn",
    "gluon.nn.conv_layers": "heterosis.gluon.nn",
    "image": "heterosis.image",
    "img": "heterosis.image",
    "init": "heterosis.initializer",
    "initializer": "heterosis.initializer",
    "io": "heterosis.mxnet.compat.facade.io",
    "kv": "heterosis.kvstore",
    "kvstore": "heterosis.kvstore",
    "lr_scheduler": "heterosis.lr_scheduler",
    "metric": "heterosis.metric",
    "nd": "heterosis.ndarray",
    "ndarray": "heterosis.ndarray",
    "np": "heterosis.np",
    "np_symbol": "heterosis.symbol",
    "npx": "heterosis.npx",
    "numpy": "heterosis.np",
    "numpy_extension": "heterosis.npx",
    "optimizer": "heterosis.optimizer",
    "profiler": "heterosis.profiler",
    "random": "heterosis.ndarray.random",
    "recordio": "heterosis.recordio",
    "rnd": "heterosis.ndarray.random",
    "runtime": "heterosis.mxnet.compat.facade.runtime",
    "sym": "heterosis.symbol",
    "symbol": "heterosis.symbol",
    "test_utils": "heterosis.mxnet.compat.facade.test_utils",
    "util": "heterosis.mxnet.compat.facade.util",
}

# Names of mxnet's own that are defined in one of those modules.
NAMES = {
    **dict.fromkeys(("Context", "cpu", "cpu_pinned", "current_context", "gpu"), "context"),
    **dict.fromkeys(("gpu_memory_info", "num_gpus"), "context"),
    **dict.fromkeys(("is_np_array", "is_np_shape", "np_array", "np_shape", "set_np_shape"), "util"),
    **dict.fromkeys(("use_np", "use_np_array", "use_np_shape"), "util"),
    "MXNetError": "base",
}


def place_of(name: str) -> str | None:
    """The module here that stands for `mxnet.<name>`."""
    if name in MODULES:
        return MODULES[name]
    above, _, last = name.rpartition(".")
    parent = place_of(above) if above else None
    return parent and f"{parent}.{last}"


def _module(name: str) -> _Any:
    found = _importlib.import_module(MODULES[name])
    _explain(found, name)
    return found


def __getattr__(name: str) -> _Any:
    if name in NAMES:
        found = getattr(_module(NAMES[name]), name)
    elif name in MODULES:
        found = _module(name)
    elif name.startswith("_"):
        raise AttributeError(f"module 'mxnet' has no attribute {name!r}")
    else:
        raise AttributeError(_missing(name))
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({name for name in MODULES if "." not in name} | set(NAMES) | {"__version__"})
