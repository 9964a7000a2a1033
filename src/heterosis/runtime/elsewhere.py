"""Names that people know from other libraries, and what is written here instead.

`HINTS` has a row a name, by where it is looked for. Nothing is looked up before a name is missing:
modules ask in their `__getattr__`, and classes have an attribute that raises.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from heterosis.runtime.errors import MissingAttributeError

_NO_DEVICES = "there is one device, the CPU, and every array is on it: leave it out"
_PAUSED = "write `with autograd.pause():`; outside `autograd.record()` nothing is recorded anyway"
_RECORDED = "write `with autograd.record():` around what is to be differentiated"
_BLOCK = "derive from gluon.Block, or from gluon.HybridBlock to compile it, and define `forward`"
_FUNCTIONAL = "operations of networks are in heterosis.npx"
_NOTHING_TO_ZERO = (
    "backward() replaces gradients; only parameters with grad_req='add' add them up, and those "
    "have zero_grad()"
)
_MODES = (
    "layers train inside `autograd.record()` and predict outside of it; "
    "`autograd.train_mode()` and `predict_mode()` say otherwise"
)
_PICKLES = "parameters are saved with save_parameters(file) and read with load_parameters(file)"
_SEED = "write np.random.seed(number)"
_CROSS_ENTROPY = "use gluon.loss.SoftmaxCrossEntropyLoss(), which takes scores and class numbers"
_SQUARES = "use gluon.loss.L2Loss(); it is half of the squared error"
_BINARY = "use gluon.loss.SigmoidBCELoss()"
_IN_PLACE = "write `x[...] = value`, or `x += value`: arrays are changed in place"

_LAYERS = {
    "Linear": "use nn.Dense(out_features, flatten=False); the inputs are counted at the first call",
    "Module": _BLOCK,
    "Model": _BLOCK,
    "Layer": _BLOCK,
    "ModuleList": "use nn.Sequential or nn.HybridSequential and index it, or register_child(block)",
    "ModuleDict": "assign the blocks to attributes, or call register_child(block, name)",
    "Parameter": "use gluon.Parameter, or `self.params.get(name, shape=...)` in a block",
    "Input": "nothing declares inputs: shapes are found at the first call",
    "functional": _FUNCTIONAL,
    "init": "use heterosis.initializer",
    "ReLU": "use nn.Activation('relu')",
    "Sigmoid": "use nn.Activation('sigmoid')",
    "Tanh": "use nn.Activation('tanh')",
    "Softmax": "use nn.HybridLambda('softmax'), or npx.softmax in `forward`",
    "Conv1d": "use nn.Conv1D(channels, kernel_size)",
    "Conv2d": "use nn.Conv2D(channels, kernel_size); input channels are found at the first call",
    "Conv3d": "use nn.Conv3D(channels, kernel_size)",
    "ConvTranspose1d": "use nn.Conv1DTranspose",
    "ConvTranspose2d": "use nn.Conv2DTranspose",
    "ConvTranspose3d": "use nn.Conv3DTranspose",
    "MaxPool1d": "use nn.MaxPool1D",
    "MaxPool2d": "use nn.MaxPool2D",
    "MaxPool3d": "use nn.MaxPool3D",
    "MaxPooling2D": "use nn.MaxPool2D",
    "AvgPool1d": "use nn.AvgPool1D",
    "AvgPool2d": "use nn.AvgPool2D",
    "AvgPool3d": "use nn.AvgPool3D",
    "AveragePooling2D": "use nn.AvgPool2D",
    "AdaptiveAvgPool2d": "use nn.GlobalAvgPool2D() for one number a channel",
    "GlobalAveragePooling2D": "use nn.GlobalAvgPool2D()",
    "GlobalMaxPooling2D": "use nn.GlobalMaxPool2D()",
    "BatchNorm1d": "use nn.BatchNorm()",
    "BatchNorm2d": "use nn.BatchNorm()",
    "BatchNorm3d": "use nn.BatchNorm()",
    "BatchNormalization": "use nn.BatchNorm()",
    "LayerNormalization": "use nn.LayerNorm()",
    "InstanceNorm2d": "use nn.InstanceNorm()",
    "MultiheadAttention": "use nn.MultiHeadAttention(units, num_heads), batch first",
    "TransformerDecoderLayer": "use nn.TransformerEncoderLayer(..., is_causal=True) for a decoder "
    "without encoder, or put two nn.MultiHeadAttention together",
    "RNN": "use gluon.rnn.RNN",
    "LSTM": "use gluon.rnn.LSTM",
    "GRU": "use gluon.rnn.GRU",
    "LSTMCell": "use gluon.rnn.LSTMCell",
    "GRUCell": "use gluon.rnn.GRUCell",
    "CrossEntropyLoss": _CROSS_ENTROPY,
    "MSELoss": _SQUARES,
    "L1Loss": "use gluon.loss.L1Loss()",
    "HuberLoss": "use gluon.loss.HuberLoss()",
    "SmoothL1Loss": "use gluon.loss.HuberLoss()",
    "KLDivLoss": "use gluon.loss.KLDivLoss(), which adds up the numbers of a sample",
    "BCELoss": "use gluon.loss.SigmoidBCELoss(from_sigmoid=True)",
    "BCEWithLogitsLoss": _BINARY,
    "NLLLoss": "use gluon.loss.SoftmaxCrossEntropyLoss(from_logits=True)",
    "utils": "use gluon.utils",
}

_LOSSES = {
    **{name: _LAYERS[name] for name in ("CrossEntropyLoss", "MSELoss", "SmoothL1Loss", "NLLLoss")},
    **{name: _LAYERS[name] for name in ("BCELoss", "BCEWithLogitsLoss")},
    "CategoricalCrossentropy": _CROSS_ENTROPY,
    "SparseCategoricalCrossentropy": _CROSS_ENTROPY,
    "BinaryCrossentropy": _BINARY,
    "SigmoidFocalLoss": "use gluon.loss.FocalLoss()",
    "MeanSquaredError": _SQUARES,
    "MeanAbsoluteError": "use gluon.loss.L1Loss()",
}

_ARRAY_FUNCTIONS = {
    "tensor": "use np.array",
    "Tensor": "the class is np.ndarray; np.array makes one",
    "as_tensor": "use np.asarray",
    "from_numpy": "use np.array, which copies, or np.from_dlpack, which shares the memory",
    "cat": "use np.concatenate",
    "mm": "use np.matmul, or `a @ b`",
    "bmm": "use np.matmul, or `a @ b`",
    "rand": "use np.random.uniform(size=shape)",
    "randn": "use np.random.normal(size=shape)",
    "randperm": "use np.random.permutation(n)",
    "clamp": "use np.clip",
    "unsqueeze": "use np.expand_dims(x, axis)",
    "permute": "use np.transpose(x, axes)",
    "manual_seed": _SEED,
}

_ACTIVATIONS = {
    name: f"use npx.{name}" for name in ("relu", "sigmoid", "softmax", "log_softmax", "one_hot")
}

_PROGRAMS = {
    "jit": "use heterosis.hybridize",
    "compile": "use heterosis.hybridize",
    "function": "use heterosis.hybridize",
    "grad": "write `with autograd.record(): y = f(x)`, then autograd.grad(y, x) or y.backward()",
    "value_and_grad": "write `with autograd.record(): y = f(x)`, then autograd.grad(y, x)",
    "vmap": "operations take batches: add an axis and broadcast",
    "no_grad": _PAUSED,
    "inference_mode": _PAUSED,
    "enable_grad": _RECORDED,
    "GradientTape": _RECORDED,
    "cuda": _NO_DEVICES,
    "device": _NO_DEVICES,
    "device_put": _NO_DEVICES,
    "numpy": "use heterosis.np",
    "keras": "layers are in gluon.nn, and gluon.fit trains",
    "layers": "layers are in gluon.nn",
    "losses": "losses are in gluon.loss",
    "metrics": "use heterosis.metric",
    "DataLoader": "use gluon.data.DataLoader",
    "Module": _BLOCK,
}

HINTS: dict[str, Mapping[str, str]] = {
    "heterosis": _ARRAY_FUNCTIONS | _PROGRAMS,
    "heterosis.np": _ARRAY_FUNCTIONS | _ACTIVATIONS | {
        name: _PROGRAMS[name] for name in ("jit", "grad", "vmap", "no_grad")
    },
    "heterosis.npx": {
        "cross_entropy": _CROSS_ENTROPY,
        "mse_loss": _SQUARES,
        "linear": "use npx.fully_connected(x, weight, bias)",
        "conv2d": "use npx.convolution",
        "max_pool2d": "use npx.pooling(x, kernel, pool_type='max')",
        "avg_pool2d": "use npx.pooling(x, kernel, pool_type='avg')",
        "tanh": "use np.tanh",
        "pad": "use np.pad",
    },
    "heterosis.autograd": {
        "no_grad": _PAUSED,
        "enable_grad": _RECORDED,
        "GradientTape": _RECORDED,
        "Variable": "make an array and call its attach_grad()",
        "set_grad_enabled": "use `with autograd.record():` or `with autograd.pause():`",
        "functional": "autograd.grad(y, x, create_graph=True) gives derivatives of derivatives",
    },
    "heterosis.gluon": {
        "Module": _BLOCK,
        "Model": _BLOCK,
        "Sequential": "use gluon.nn.Sequential or gluon.nn.HybridSequential",
        "Dense": "use gluon.nn.Dense",
        "Linear": "use gluon.nn.Dense with flatten=False",
        "DataLoader": "use gluon.data.DataLoader",
        "functional": _FUNCTIONAL,
        "optim": "use gluon.Trainer(net.collect_params(), 'adam')",
    },
    "heterosis.gluon.nn": _LAYERS,
    "heterosis.gluon.loss": _LOSSES,
    "heterosis.gluon.data": {
        "TensorDataset": "use gluon.data.ArrayDataset",
        "IterableDataset": "gluon.data.DataLoader goes by index: define __getitem__ and __len__",
        "random_split": "use dataset.shard, take or filter, or index with np.random.permutation",
    },
    "heterosis.gluon.utils": {
        "clip_grad_norm_": "use gluon.Trainer(..., clip_global_norm=1.0), or clip_global_norm here",
        "clip_by_global_norm": "use clip_global_norm, or gluon.Trainer(..., clip_global_norm=1.0)",
    },
    "heterosis.optimizer": {
        "SGDMomentum": "use SGD(momentum=0.9)",
        "lr_scheduler": "use heterosis.lr_scheduler",
        "Adagrad": "use AdaGrad",
        "Adadelta": "use AdaDelta",
        "RMSprop": "use RMSProp",
        "NAdam": "use Nadam",
    },
    "ndarray": {
        "numpy": "use x.asnumpy()",
        "cuda": _NO_DEVICES,
        "cpu": _NO_DEVICES,
        "to": f"{_NO_DEVICES}; x.astype(dtype) converts the elements",
        "at": "write `x[index] = value` or `x[index] += value`: arrays are changed in place",
        "requires_grad": "call x.attach_grad() on what gradients are wanted for",
        "requires_grad_": "call x.attach_grad() on what gradients are wanted for",
        "zero_grad": _NOTHING_TO_ZERO,
        "unsqueeze": "use x.expand_dims(axis)",
        "permute": "use x.transpose(*axes)",
        "view": "use x.reshape(*shape), a view wherever it can be one",
        "contiguous": "operations take any layout; x.copy() is contiguous",
        "t": "use x.T",
        "numel": "use x.size",
        "dim": "use x.ndim",
        "float": "use x.astype('float32')",
        "double": "use x.astype('float64')",
        "half": "use x.astype('float16')",
        "long": "use x.astype('int64')",
        "int": "use x.astype('int32')",
        "mm": "use `x @ y`",
        "matmul": "use `x @ y`",
        "add_": _IN_PLACE,
        "mul_": _IN_PLACE,
        "fill_": _IN_PLACE,
        "zero_": _IN_PLACE,
        "masked_fill": "use np.where(mask, value, x)",
        "block_until_ready": "use x.wait_to_read()",
        "clone": "use x.copy()",
    },
    "Block": {
        "train": _MODES,
        "eval": _MODES,
        "parameters": "use net.collect_params()",
        "named_parameters": "use net.collect_params().items()",
        "trainable_variables": "use net.collect_params()",
        "get_weights": "use net.collect_params()",
        "state_dict": _PICKLES,
        "load_state_dict": _PICKLES,
        "save_weights": _PICKLES,
        "load_weights": _PICKLES,
        "to": f"{_NO_DEVICES}; net.cast(dtype) converts the parameters",
        "cuda": _NO_DEVICES,
        "cpu": _NO_DEVICES,
        "double": "use net.cast('float64')",
        "half": "use net.cast('float16')",
        "zero_grad": _NOTHING_TO_ZERO,
        "add_module": "use net.register_child(block, name)",
        "compile": "call net.hybridize() to compile it; gluon.fit takes the loss and the optimizer",
        "fit": "use gluon.fit(net, data, loss=..., epochs=...)",
        "predict": "call it: net(x)",
        "evaluate": "use gluon.fit(..., validation=...), or heterosis.metric",
    },
    "Trainer": {
        "zero_grad": _NOTHING_TO_ZERO,
        "state_dict": "use trainer.save_states(file)",
        "load_state_dict": "use trainer.load_states(file)",
        "param_groups": "set lr_mult and wd_mult of parameters, or make several trainers",
        "minimize": "write `with autograd.record(): y = loss(...)`, y.backward(), trainer.step(n)",
        "apply_gradients": "use trainer.step(batch_size)",
    },
    "Optimizer": {
        "step": "gluon.Trainer(net.collect_params(), optimizer).step(batch_size) applies it",
        "zero_grad": _NOTHING_TO_ZERO,
        "param_groups": "set lr_mult and wd_mult of parameters",
        "apply_gradients": "gluon.Trainer(net.collect_params(), optimizer).step(batch_size) does",
        "minimize": "gluon.Trainer(net.collect_params(), optimizer).step(batch_size) applies it",
    },
    "Parameter": {
        "requires_grad": "set parameter.grad_req to 'write' or 'null'",
        "numpy": "use parameter.data().asnumpy()",
        "numel": "use parameter.data().size",
    },
}  # fmt: skip


class _Elsewhere:
    """An attribute that is not here: asked for, it says what is."""

    __slots__ = ("_message",)

    def __init__(self, message: str):
        self._message = message

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        raise MissingAttributeError(self._message)


def explain(place: str, class_: type) -> None:
    """Let a class explain the names that it lacks. What subclasses and objects define comes first;
    for others `hasattr` is false, as it was."""
    for name, advice in HINTS[place].items():
        if not hasattr(class_, name):
            setattr(class_, name, _Elsewhere(f"{place} has no attribute {name!r}: {advice}."))
    class_.__dir__ = _listed  # type: ignore[method-assign, assignment]


def _listed(self: Any) -> list[str]:
    """What `dir(x)` shows: these names only where an object has them."""
    own = getattr(self, "__dict__", ())
    return [n for n in object.__dir__(self) if n in own or not _is_explained(type(self), n)]


def _is_explained(class_: type, name: str) -> bool:
    """Whether a class has nothing but advice under a name."""
    found = next((vars(c)[name] for c in class_.__mro__ if name in vars(c)), None)
    return isinstance(found, _Elsewhere)


def missing(module: str, name: str) -> AttributeError:
    """What is raised for a name that a module lacks."""
    advice = HINTS.get(module, {}).get(name)
    message = f"module {module!r} has no attribute {name!r}"
    return MissingAttributeError(f"{message}: {advice}.") if advice else AttributeError(message)


def lookup(module: str) -> Callable[[str], Any]:
    """A module's `__getattr__`, which explains names that it lacks."""

    def raise_missing(name: str) -> Any:
        raise missing(module, name)

    return raise_missing
