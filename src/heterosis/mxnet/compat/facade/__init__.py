"""The module that `import mxnet` gives: MXNet's names for what is here, imported on first use."""

import importlib as _importlib
from typing import Any as _Any

from heterosis import __version__ as __heterosis_version__  # noqa: F401

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

_GLUON = "Write the model with gluon: gluon.nn, gluon.Trainer and a loop under autograd.record()."
_SYMBOL = "mx.sym has symbols: give names and attributes to its operators and to mx.sym.var."
_PICTURES = "Print sym.debug_str(), or block.summary(x)."
# What mxnet has besides, and what to do instead.
ABSENT = {
    **dict.fromkeys(("AttrScope", "attribute", "name"), _SYMBOL),
    **dict.fromkeys(("visualization", "viz"), _PICTURES),
    "executor_manager": "mx.sym.Symbol.bind gives an executor.",
    **dict.fromkeys(("module", "mod", "model", "callback", "monitor", "mon", "rnn"), _GLUON),
    **dict.fromkeys(("contrib", "onnx", "notebook"), "It has no counterpart here."),
    **dict.fromkeys(("operator", "library"), "Define operations with autograd.Function."),
    **dict.fromkeys(("rtc", "tvmop", "torch", "th"), "It has no counterpart on the CPU."),
    "gluon.contrib.rnn": "gluon.rnn has the recurrent cells and layers.",
    "gluon.contrib.data": "Derive from gluon.data.Dataset and gluon.data.Sampler.",
    "gluon.contrib.cnn": "gluon.nn has the convolutions.",
}


def place_of(name: str) -> str | None:
    """The module here that stands for `mxnet.<name>`."""
    if name in MODULES:
        return MODULES[name]
    above, _, last = name.rpartition(".")
    parent = place_of(above) if above else None
    return parent and f"{parent}.{last}"


def missing(name: str) -> str:
    """What to tell somebody who asked for `mxnet.<name>`."""
    advice = ABSENT.get(name) or ABSENT.get(name.partition(".")[0])
    listed = "`python -m heterosis names` lists what is there."
    return f"mxnet.{name} does not exist in Heterosis. {advice or listed}"


def __getattr__(name: str) -> _Any:
    if name in NAMES:
        found = getattr(_importlib.import_module(MODULES[NAMES[name]]), name)
    elif name in MODULES:
        found = _importlib.import_module(MODULES[name])
    elif name in ABSENT:
        raise AttributeError(missing(name))
    else:
        raise AttributeError(f"module 'mxnet' has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({name for name in MODULES if "." not in name} | set(NAMES) | {"__version__"})
