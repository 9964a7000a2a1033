"""A network 512-256-128-2 called one row at a time: python benchmarks/mlp.py

Many calls, then one wait. All contenders have the same weights and must give the same outputs.
"""

from __future__ import annotations

import functools
import itertools

import numpy
import runner
import sessions

_SIZES = (512, 256, 128, 2)


def weights():
    """(weight of shape (outputs, inputs), bias) of every layer."""
    generator = numpy.random.default_rng(0)
    layers = []
    for inputs, outputs in itertools.pairwise(_SIZES):
        weight = generator.normal(0, inputs**-0.5, (outputs, inputs)).astype("float32")
        layers.append((weight, generator.normal(0, 0.1, outputs).astype("float32")))
    return layers


def row():
    """One input."""
    return numpy.random.default_rng(1).normal(size=(1, _SIZES[0])).astype("float32")


def _nothing():
    pass


# Every function returns (version, call, wait, to_numpy).


def perceptron(nn, array):
    """Gluon's network with the weights above."""
    net = nn.HybridSequential()
    for i, (weight, bias) in enumerate(weights()):
        activation = "relu" if i < len(_SIZES) - 2 else None
        net.add(nn.Dense(len(bias), activation=activation, in_units=weight.shape[1]))
    net.initialize()
    for layer, (weight, bias) in zip(net, weights()):
        layer.weight.set_data(array(weight))
        layer.bias.set_data(array(bias))
    return net


def heterosis(hybrid):
    import heterosis
    from heterosis import np, npx
    from heterosis.gluon import nn

    net, x = perceptron(nn, np.array), np.array(row())
    if hybrid:
        net.hybridize()
    return heterosis.__version__, lambda: net(x), npx.waitall, lambda y: y.asnumpy()


def mxnet(hybrid):
    numpy.bool = numpy.bool_  # MXNet 1.9.1 asks for it, NumPy 1.23 warns of it
    import mxnet
    from mxnet import np, npx
    from mxnet.gluon import nn

    npx.set_np()
    net, x = perceptron(nn, np.array), np.array(row())
    if hybrid:
        net.hybridize(static_alloc=True, static_shape=True)
    return mxnet.__version__, lambda: net(x), npx.waitall, lambda y: y.asnumpy()


def numpy_():
    layers, x = weights(), row()

    def call():
        y = x
        for weight, bias in layers[:-1]:
            y = numpy.maximum(y @ weight.T + bias, 0)
        weight, bias = layers[-1]
        return y @ weight.T + bias

    return numpy.__version__, call, _nothing, numpy.asarray


def torch(how):
    import torch
    from torch import nn

    torch.set_grad_enabled(False)
    layers = []
    for weight, bias in weights():
        layer = nn.Linear(weight.shape[1], weight.shape[0])
        layer.weight.copy_(torch.from_numpy(weight))
        layer.bias.copy_(torch.from_numpy(bias))
        layers += [layer, nn.ReLU()]
    net, x = nn.Sequential(*layers[:-1]).eval(), torch.from_numpy(row())
    if how == "script":
        net = torch.jit.freeze(torch.jit.script(net))
    elif how == "compile":
        net = torch.compile(net)
    return torch.__version__, lambda: net(x), _nothing, lambda y: y.numpy()


def tensorflow(how):
    import tensorflow as tf

    layers = [(tf.constant(weight.T), tf.constant(bias)) for weight, bias in weights()]
    x = tf.constant(row())

    def net(y):
        for weight, bias in layers[:-1]:
            y = tf.nn.relu(y @ weight + bias)
        weight, bias = layers[-1]
        return y @ weight + bias

    if how != "eager":
        net = tf.function(net, jit_compile=how == "xla")
    return tf.__version__, lambda: net(x), _nothing, lambda y: y.numpy()


def jax():
    import jax
    import jax.numpy as jnp

    layers, x = [(jnp.array(weight.T), jnp.array(bias)) for weight, bias in weights()], row()
    last = []

    @jax.jit
    def net(layers, y):
        for weight, bias in layers[:-1]:
            y = jax.nn.relu(y @ weight + bias)
        weight, bias = layers[-1]
        return y @ weight + bias

    x = jnp.array(x)

    def call():
        last[:] = [net(layers, x)]
        return last[0]

    return jax.__version__, call, lambda: last[0].block_until_ready(), numpy.asarray


def output_name():
    """What the last array of the model for ONNX is called."""
    return f"y{len(_SIZES) - 2}"


def onnx_model():
    """The network for the runtimes of ONNX."""
    from onnx import TensorProto, helper, numpy_helper

    nodes, initializers, name = [], [], "x"
    for i, (weight, bias) in enumerate(weights()):
        initializers += [
            numpy_helper.from_array(weight, f"w{i}"),
            numpy_helper.from_array(bias, f"b{i}"),
        ]
        inputs = [name, f"w{i}", f"b{i}"]
        nodes.append(helper.make_node("Gemm", inputs, [f"y{i}"], transB=1))
        name = f"y{i}"
        if i < len(_SIZES) - 2:
            nodes.append(helper.make_node("Relu", [name], [f"r{i}"]))
            name = f"r{i}"
    graph = helper.make_graph(
        nodes, "mlp",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, _SIZES[0]])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, _SIZES[-1]])],
        initializers,
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()


def _session(runtime):
    """In one of the runtimes for ONNX."""
    version, start, to_numpy = runtime(onnx_model(), row())
    return version, start(), _nothing, to_numpy


CONTENDERS = {
    "heterosis hybrid": functools.partial(heterosis, True),
    "heterosis eager": functools.partial(heterosis, False),
    "numpy": numpy_,
    "torch eager": functools.partial(torch, "eager"),
    "torch script": functools.partial(torch, "script"),
    "torch compile": functools.partial(torch, "compile"),
    "tensorflow eager": functools.partial(tensorflow, "eager"),
    "tensorflow graph": functools.partial(tensorflow, "graph"),
    "tensorflow xla": functools.partial(tensorflow, "xla"),
    "jax jit": jax,
    "onnxruntime": functools.partial(_session, sessions.onnxruntime),
    "openvino": functools.partial(_session, sessions.openvino),
    "mxnet eager": functools.partial(mxnet, False),
    "mxnet hybrid": functools.partial(mxnet, True),
}


def measure(contender: str) -> dict:
    """Seconds a call, and a number that follows from the outputs."""
    version, call, wait, to_numpy = CONTENDERS[contender]()
    value = float(to_numpy(call()).astype("float64")[0] @ [1.0, 2.0])
    case = f"MLP {'-'.join(map(str, _SIZES))}, batch 1"
    return {"version": version, "cases": {case: (runner.seconds_a_call(call, wait), value)}}


if __name__ == "__main__":
    runner.main(__file__, measure, contenders=tuple(CONTENDERS))
