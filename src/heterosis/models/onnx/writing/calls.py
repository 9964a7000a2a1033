"""Calls of operations that are operators of ONNX: one node for what would be many.

Every row looks at the arguments first: what ONNX's operator does not do, primitives do.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy

from heterosis.ir.program import Value
from heterosis.ir.sizes import Size
from heterosis.models.onnx.writing.programs import ProgramWriter
from heterosis.models.onnx.writing.tables import Emit, Given, call
from heterosis.ops.nn.window_shapes import per_axis

_ACTIVATIONS = {
    "relu": "Relu", "sigmoid": "Sigmoid", "tanh": "Tanh", "softrelu": "Softplus",
    "softsign": "Softsign", "mish": "Mish", "hardswish": "HardSwish",
}  # fmt: skip


def _single(operator: str, given: Given, *arguments: str, **attributes: object) -> Emit:
    """One node on arguments, of which the last ones may be missing."""

    def emit(writer: ProgramWriter) -> str:
        names = ("" if given[a] is None else writer.name(given[a]) for a in arguments)
        return writer.node(operator, *names, **attributes)

    return emit


# -- activations ----------------------------------------------------------------------------------


@call("relu", "sigmoid", "mish", "hardswish", "softplus")
def _activated(given: Given) -> Emit | None:
    operation = given.call.operation
    if operation == "softplus":
        return _activation("softrelu", given) if given.number("beta") == 1 else None
    return _activation(operation, given)


@call("activation")
def _by_name(given: Given) -> Emit | None:
    return _activation(given["act_type"], given)


def _activation(name: str, given: Given) -> Emit | None:
    x = given.call.inputs[0]
    if name not in _ACTIVATIONS or x.dtype != given.result.dtype:
        return None
    return lambda writer: writer.node(_ACTIVATIONS[name], writer.name(x))


@call("leaky_relu")
def _leaky(given: Given) -> Emit | None:
    operators = {"leaky": "LeakyRelu", "elu": "Elu"}
    kind, slope = given["act_type"], given.number("slope")
    if given["data"].dtype != given.result.dtype:
        return None
    if kind == "selu":
        return _single("Selu", given, "data")
    if kind not in operators or slope is None:
        return None
    return _single(operators[kind], given, "data", alpha=float(slope))


@call("clip")
def _clipped(given: Given) -> Emit | None:
    """Between numbers: other bounds are compared element by element."""
    x, bounds = given["a"], []
    for name, other in (("a_min", "min"), ("a_max", "max")):
        name = other if given[name] is None else name
        bounds.append(given.number(name))
        if bounds[-1] is None and given[name] is not None:
            return None

    def emit(writer: ProgramWriter) -> str:
        names = ("" if bound is None else writer.like(x, bound) for bound in bounds)
        return writer.node("Clip", writer.name(x), *names)

    return emit


@call("softmax", "log_softmax")
def _softmax(given: Given) -> Emit | None:
    more = [given.arguments.get(name) for name in ("length", "temperature")]
    if more != [None, None] or given["data"].dtype != given.result.dtype or not given.result.ndim:
        return None
    operator = {"softmax": "Softmax", "log_softmax": "LogSoftmax"}[given.call.operation]
    return _single(operator, given, "data", axis=given["axis"])


# -- layers ---------------------------------------------------------------------------------------


@call("fully_connected")
def _dense(given: Given) -> Emit | None:
    x, weight, bias = (given[name] for name in ("data", "weight", "bias"))
    bias = None if given["no_bias"] else bias
    if given["flatten"] or x.ndim == 2:
        return partial(_gemm, x=x, weight=weight, bias=bias)
    return partial(_products, x=x, weight=weight, bias=bias)


def _gemm(writer: ProgramWriter, x: Value, weight: Value, bias: Value | None) -> str:
    name = writer.name(x) if x.ndim == 2 else writer.node("Flatten", writer.name(x), axis=1)
    more = [] if bias is None else [writer.name(bias)]
    return writer.node("Gemm", name, writer.name(weight), *more, transB=1)


def _products(writer: ProgramWriter, x: Value, weight: Value, bias: Value | None) -> str:
    across = writer.node("Transpose", writer.name(weight), perm=[1, 0])
    found = writer.node("MatMul", writer.name(x), across)
    return found if bias is None else writer.node("Add", found, writer.name(bias))


@call("convolution", "deconvolution")
def _convolution(given: Given) -> Emit | None:
    x, kernel = given["data"], given["kernel"]
    axes = x.ndim - 2
    backwards = given.call.operation == "deconvolution"
    if (given["layout"] or "NC").find("C") != 1 or (backwards and given["target_shape"]):
        return None
    numbers = partial(per_axis, given.call.operation, axes=axes, least=0)
    strides, dilations = (list(numbers(n, given[n], missing=1)) for n in ("stride", "dilate"))
    pads = list(numbers("pad", given["pad"], missing=0))
    more = {"output_padding": list(numbers("adj", given["adj"], missing=0))} if backwards else {}
    bias = [] if given["no_bias"] or given["bias"] is None else ["bias"]
    return _single(
        "ConvTranspose" if backwards else "Conv", given, "data", "weight", *bias,
        kernel_shape=list(numbers("kernel", kernel, missing=1)), strides=strides,
        dilations=dilations, pads=pads * 2, group=given["num_group"], **more,
    )  # fmt: skip


@call("pooling")
def _pooling(given: Given) -> Emit | None:
    x, kind = given["data"], given["pool_type"]
    operators = {"max": "MaxPool", "avg": "AveragePool"}
    if kind not in operators or (given["layout"] or "NC").find("C") != 1:
        return None
    if given["global_pool"]:
        return _single(f"Global{operators[kind]}", given, "data")
    numbers = partial(per_axis, "pooling", axes=x.ndim - 2, least=0)
    kernel = list(numbers("kernel", given["kernel"], missing=1))
    strides = list(numbers("stride", given["stride"], missing=1))
    before = list(numbers("pad", given["pad"], missing=0))
    after: list[int] | None = before
    if given["pooling_convention"] != "valid":
        after = _after(x.shape[2:], given.result.shape[2:], kernel, strides, before)
        if kind != "max" or given["pooling_convention"] != "full":
            return None
    if after is None:
        return None
    include = given["count_include_pad"] is not False
    more = {} if kind == "max" else {"count_include_pad": int(include)}
    return _single(
        operators[kind], given, "data", kernel_shape=kernel, strides=strides,
        pads=[*before, *after], **more,
    )  # fmt: skip


def _after(
    extents: Sequence[int], out: Sequence[int], kernel: Sequence[int], strides: Sequence[int],
    before: Sequence[int],
) -> list[int] | None:  # fmt: skip
    """How far windows reach behind the last element; None if that is not known, or too far."""
    found = [
        (m - 1) * s + k - b - n
        for n, m, k, s, b in zip(extents, out, kernel, strides, before, strict=True)
    ]
    if any(isinstance(a, Size) for a in found):
        return None
    after = [max(a, 0) for a in found]
    return after if all(a < k for a, k in zip(after, kernel, strict=True)) else None


# -- padding --------------------------------------------------------------------------------------


@call("pad")
def _padding(given: Given) -> Emit | None:
    """By the elements at the edge, or those that a mirror there shows, if there are enough."""
    x, mode = given["x"], given["mode"]
    pairs = numpy.broadcast_to(given["pad_width"], (x.ndim, 2)).tolist()
    if mode not in ("edge", "reflect") or given["reflect_type"] != "even" or 0 in x.shape:
        return None
    if mode == "reflect" and any(
        isinstance(n, Size) or max(pair) >= n for n, pair in zip(x.shape, pairs, strict=True)
    ):
        return None
    befores, afters = zip(*pairs, strict=True)
    return lambda writer: writer.node(
        "Pad", writer.name(x), writer.graph.whole(*befores, *afters), mode=mode
    )


# -- normalisation --------------------------------------------------------------------------------


@call("batch_norm")
def _batch_norm(given: Given) -> Emit | None:
    x = given["data"]
    if given["training"] or len(given.call.results) > 1 or given["axis"] % x.ndim != 1:
        return None
    names = ("data", "gamma", "beta", "moving_mean", "moving_var")
    if len({given[name].dtype for name in names}) > 1:
        return None

    def emit(writer: ProgramWriter) -> str:
        data, gamma, *others = (writer.name(given[name]) for name in names)
        if given["fix_gamma"]:
            gamma = writer.node("Expand", writer.like(x, 1.0), writer.sizes.shape(x.shape[1:2]))
        return writer.node("BatchNormalization", data, gamma, *others, epsilon=float(given["eps"]))

    return emit


@call("layer_norm")
def _layer_norm(given: Given) -> Emit | None:
    x, axis = given["data"], given["axis"]
    if given["output_mean_var"] or not isinstance(axis, int) or axis % x.ndim != x.ndim - 1:
        return None
    names = ("data", "gamma", "beta")
    return _single("LayerNormalization", given, *names, axis=-1, epsilon=float(given["eps"]))


@call("instance_norm")
def _instance_norm(given: Given) -> Emit | None:
    if given["data"].ndim < 3:
        return None
    names = ("data", "gamma", "beta")
    return _single("InstanceNormalization", given, *names, epsilon=float(given["eps"]))
