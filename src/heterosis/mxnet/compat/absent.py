"""What MXNet has and Heterosis has not, and what to do instead."""

from __future__ import annotations

from types import ModuleType
from typing import Any

_GLUON = "Write the model with gluon: gluon.nn, gluon.Trainer and a loop under autograd.record()."
_SYMBOL = "mx.sym has symbols: give names and attributes to its operators and to mx.sym.var."
_PICTURES = "Print sym.debug_str(), or block.summary(x)."
_FUNCTION = "Define operations with autograd.Function."
_NO_SPARSE = "There is no sparse storage: keep arrays dense, or their rows and indices by yourself."
_OPTIMIZER = "mx.optimizer has the optimizers, and gluon.Trainer applies them."
_DENSITY = "Write the density with mx.np, or with what mx.npx.gammaln gives."
_LOADER = "gluon.data has data sets and DataLoader, and mx.io.NDArrayIter goes over arrays."
_IMAGES = (
    "Use gluon.data.vision.ImageRecordDataset in a gluon.data.DataLoader, or mx.image.ImageIter."
)
_BY_FORMULA = "Write it with the operations of mx.np and mx.npx."
_INTEGERS = "There are no quantized operators; half precision is in net.cast('float16')."
_LISTED = "`python -m heterosis names` lists what is there."

_UPDATES = (
    "adam_update", "ftml_update", "ftrl_update", "lamb_update_phase1", "lamb_update_phase2",
    "mp_lamb_update_phase1", "mp_lamb_update_phase2", "mp_nag_mom_update", "mp_sgd_mom_update",
    "mp_sgd_update", "multi_lars", "multi_mp_sgd_mom_update", "multi_mp_sgd_update",
    "multi_sgd_mom_update", "multi_sgd_update", "nag_mom_update", "rmsprop_update",
    "preloaded_multi_mp_sgd_mom_update", "preloaded_multi_mp_sgd_update",
    "preloaded_multi_sgd_mom_update", "preloaded_multi_sgd_update", "rmspropalex_update",
    "sgd_mom_update", "sgd_update", "signsgd_update", "signum_update", "contrib.adamw_update",
    "contrib.group_adagrad_update", "contrib.mp_adamw_update", "contrib.multi_adamw_update",
    "contrib.multi_lamb_update", "contrib.multi_mp_adamw_update", "contrib.multi_mp_lamb_update",
)  # fmt: skip
_DENSITIES = (
    "random_pdf_dirichlet", "random_pdf_exponential", "random_pdf_gamma", "random_pdf_normal",
    "random_pdf_generalized_negative_binomial", "random_pdf_negative_binomial",
    "random_pdf_poisson", "random_pdf_uniform",
)  # fmt: skip
_QUANTIZED = (
    "dequantize", "quantize", "quantize_asym", "quantize_v2", "quantized_act",
    "quantized_batch_norm", "quantized_concat", "quantized_conv", "quantized_elemwise_add",
    "quantized_elemwise_mul", "quantized_embedding", "quantized_flatten",
    "quantized_fully_connected", "quantized_pooling", "quantized_rnn", "requantize",
)  # fmt: skip
_DRAWN_LIKE = (
    "exponential", "gamma", "generalized_negative_binomial", "negative_binomial", "normal",
    "poisson", "uniform",
)  # fmt: skip
_ONNX = "heterosis.models.from_onnx reads such files; nothing writes them here."

# By name; a row counts for what is below its name, too, and those of `nd` for `sym`.
ABSENT = {
    **dict.fromkeys(("AttrScope", "attribute", "name"), _SYMBOL),
    **dict.fromkeys(("visualization", "viz"), _PICTURES),
    "executor_manager": "mx.sym.Symbol.bind gives an executor.",
    **dict.fromkeys(("module", "mod", "model", "callback", "monitor", "mon", "rnn"), _GLUON),
    **dict.fromkeys(("contrib", "notebook"), "It has no counterpart here."),
    **dict.fromkeys(("onnx", "contrib.onnx"), _ONNX),
    **dict.fromkeys(("operator", "library"), _FUNCTION),
    **dict.fromkeys(("rtc", "tvmop", "torch", "th"), "It has no counterpart on the CPU."),
    "error": "mx.base.MXNetError is the class of all errors here.",
    "log": "Python's logging does what it did.",
    "gluon.contrib.rnn": "gluon.rnn has the recurrent cells and layers.",
    "gluon.contrib.data": "Derive from gluon.data.Dataset and gluon.data.Sampler.",
    "gluon.contrib.cnn": "gluon.nn has the convolutions.",
    "gluon.model_zoo.model_store": "Nothing is downloaded: load_parameters reads a file of yours.",
    "gluon.rnn.rnn_cell": "gluon.rnn has the cells.",
    "gluon.rnn.rnn_layer": "gluon.rnn has the layers.",
    "io": _LOADER,
    **dict.fromkeys(("io.ImageRecordIter", "io.ImageRecordUInt8Iter"), _IMAGES),
    **dict.fromkeys(("io.ImageRecordInt8Iter", "io.ImageRecordIter_v1"), _IMAGES),
    "io.ImageRecordUInt8Iter_v1": _IMAGES,
    "io.ImageDetRecordIter": "Use mx.image.ImageDetIter.",
    "io.MNISTIter": "Use gluon.data.vision.MNIST in a gluon.data.DataLoader.",
    "io.CSVIter": "Read the file with mx.np.genfromtxt, and give the array to mx.io.NDArrayIter.",
    "io.LibSVMIter": _NO_SPARSE,
    "io.PrefetchingIter": "gluon.data.DataLoader fetches ahead, with num_workers.",
    "kv.KVStoreServer": "Processes add up gradients among themselves: mx.kv.create('dist_sync').",
    "kv.kvstore_server": "Processes add up gradients among themselves: mx.kv.create('dist_sync').",
    **dict.fromkeys(("metric.Caffe", "metric.Torch"), "Use mx.metric.Loss."),
    "nd.sparse": _NO_SPARSE,
    "nd.cast_storage": _NO_SPARSE,
    "nd.Custom": _FUNCTION,
    "nd.op": "The operators are in mx.nd and mx.sym themselves.",
    "nd.image": "mx.npx.image has the operations on images.",
    "nd.imdecode": "Use mx.image.imdecode.",
    "nd.onehot_encode": "Use mx.nd.one_hot.",
    "nd.CachedOp": "net.hybridize(), and heterosis.hybridize for functions, compile.",
    "nd.SVMOutput": "Use gluon.loss.HingeLoss or gluon.loss.SquaredHingeLoss.",
    "nd.amp_multicast": "Use mx.nd.cast for each array.",
    **dict.fromkeys(("nd.to_dlpack_for_read", "nd.to_dlpack_for_write"), "Use x.__dlpack__()."),
    "nd.linalg.syevd": "Use mx.np.linalg.eigh.",
    **{f"nd.random.{name}_like": f"Use {name} with shape=x.shape." for name in _DRAWN_LIKE},
    **{f"nd.{name}": _OPTIMIZER for name in _UPDATES},
    **{f"nd.{name}": _DENSITY for name in _DENSITIES},
    **{f"nd.contrib.{name}": _INTEGERS for name in _QUANTIZED},
    "nd.contrib": _BY_FORMULA,
    "nd.contrib.SyncBatchNorm": "Use gluon.contrib.nn.SyncBatchNorm.",
    "nd.contrib.SparseEmbedding": "Use mx.nd.Embedding.",
    "nd.contrib.allclose": "Use mx.np.allclose.",
}  # fmt: skip
_SHORT = {
    "img": "image", "initializer": "init", "kvstore": "kv", "ndarray": "nd", "numpy": "np",
    "np_symbol": "nd", "numpy_extension": "npx", "rnd": "nd.random", "random": "nd.random",
    "sym": "nd", "symbol": "nd",
}  # fmt: skip


def missing(name: str) -> str:
    """What to tell somebody who asked for `mxnet.<name>`."""
    return f"mxnet.{name} does not exist in Heterosis. {_advice(name) or _LISTED}"


def _advice(name: str) -> str | None:
    """The row of the name, or of the nearest above it."""
    first, dot, rest = name.partition(".")
    key = _SHORT.get(first, first) + dot + rest
    while key and key not in ABSENT:
        key = key.rpartition(".")[0]
    return ABSENT.get(key)


def explain(module: ModuleType, name: str) -> None:
    """Let `mxnet.<name>`, and the modules in it, tell what to do about names that they lack."""
    if module in _explained:
        return
    _explained.append(module)
    own = vars(module).get("__getattr__")

    def look_up(attribute: str) -> Any:
        told = f"module {module.__name__!r} has no attribute {attribute!r}"
        try:
            if own is not None:
                return own(attribute)
        except AttributeError as error:
            if type(error) is not AttributeError:  # it has advice already
                raise
            told = str(error)
        if not attribute.startswith("_"):
            told += f": {missing(f'{name}.{attribute}')}"
        raise AttributeError(told)

    module.__getattr__ = look_up  # type: ignore[method-assign]
    for attribute, below in list(vars(module).items()):
        if isinstance(below, ModuleType) and below.__name__ == f"{module.__name__}.{attribute}":
            explain(below, f"{name}.{attribute}")


_explained: list[ModuleType] = []
