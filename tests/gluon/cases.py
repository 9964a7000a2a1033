"""Layers with fixed inputs and weights, for MXNet and for us.

What MXNet makes of them stands in mxnet_values.json; the file imports nothing of ours, so that
MXNet's Python can run it.
"""

import numpy

# (expression, shape of the input); `ints` in front of the shape makes whole numbers below 5.
LAYERS = [
    ("nn.Dense(3)", (2, 4)),
    ("nn.Dense(3, activation='relu', in_units=8)", (2, 2, 4)),
    ("nn.Dense(3, flatten=False, use_bias=False)", (2, 2, 4)),
    ("nn.Dense(3, activation='tanh')", (2, 4)),
    ("nn.Embedding(5, 3)", ("ints", 2, 3)),
    ("nn.Flatten()", (2, 3, 2)),
    ("nn.Dropout(0.0)", (2, 3)),
    ("nn.BatchNorm()", (4, 3)),
    ("nn.BatchNorm(axis=-1, momentum=0.7, epsilon=1e-3, scale=False)", (2, 3, 2)),
    ("nn.BatchNorm(center=False, use_global_stats=True)", (2, 3, 2, 2)),
    ("nn.LayerNorm()", (3, 5)),
    ("nn.LayerNorm(axis=1, epsilon=1e-3, center=False)", (2, 3, 4)),
    ("nn.GroupNorm(num_groups=2)", (2, 4, 3)),
    ("nn.InstanceNorm()", (2, 3, 4)),
    ("nn.InstanceNorm(axis=2, scale=True)", (2, 4, 3)),
    *((f"nn.Activation('{kind}')", (2, 5)) for kind in ("relu", "sigmoid", "softrelu", "softsign")),
    ("nn.LeakyReLU(0.1)", (2, 5)),
    ("nn.PReLU()", (2, 3)),
    ("nn.PReLU(in_channels=3)", (2, 3, 2)),
    ("nn.ELU(0.5)", (2, 5)),
    ("nn.SELU()", (2, 5)),
    ("nn.GELU()", (2, 5)),
    ("nn.Swish(1.5)", (2, 5)),
    ("nn.Conv1D(2, 3, padding=1)", (2, 3, 5)),
    ("nn.Conv1D(2, 3, strides=2, dilation=2, activation='relu')", (1, 3, 9)),
    ("nn.Conv2D(2, 3)", (1, 2, 5, 4)),
    (
        "nn.Conv2D(4, (2, 3), strides=(2, 1), padding=(1, 0), groups=2, use_bias=False)",
        (1, 4, 4, 5),
    ),
    ("nn.Conv3D(2, 2)", (1, 2, 3, 3, 2)),
    ("nn.Conv1DTranspose(2, 3, strides=2, output_padding=1)", (1, 3, 4)),
    ("nn.Conv2DTranspose(2, 3, strides=2, padding=1)", (1, 3, 3, 2)),
    ("nn.Conv3DTranspose(2, 2)", (1, 2, 2, 2, 2)),
    ("nn.MaxPool1D(2)", (1, 2, 6)),
    ("nn.MaxPool2D((2, 3), strides=1, padding=1)", (1, 2, 4, 4)),
    ("nn.MaxPool2D(2, ceil_mode=True)", (1, 2, 5, 5)),
    ("nn.MaxPool3D(2)", (1, 2, 4, 2, 2)),
    ("nn.AvgPool1D(3, strides=2, padding=1)", (1, 2, 6)),
    ("nn.AvgPool2D(2, padding=1, count_include_pad=False)", (1, 2, 4, 4)),
    ("nn.AvgPool3D(2)", (1, 2, 4, 2, 2)),
    ("nn.GlobalMaxPool1D()", (1, 2, 6)),
    ("nn.GlobalAvgPool2D()", (2, 2, 3, 3)),
    ("nn.GlobalAvgPool1D()", (1, 2, 6)),
    ("nn.GlobalMaxPool2D()", (2, 2, 3, 3)),
    ("nn.GlobalMaxPool3D()", (1, 2, 3, 2, 2)),
    ("nn.AvgPool2D(3, strides=2, ceil_mode=True)", (1, 2, 6, 6)),
    ("nn.Conv2DTranspose(4, (3, 2), strides=(1, 2), padding=(1, 0), groups=2)", (1, 4, 3, 2)),
    ("nn.Conv2D(2, 3, dilation=2, padding=2, activation='sigmoid')", (1, 2, 5, 5)),
    ("nn.Dense(3, activation='sigmoid', use_bias=False)", (2, 4)),
    ("nn.BatchNorm(axis=2)", (2, 3, 4)),
    ("nn.GroupNorm(num_groups=4, epsilon=0.1)", (2, 4, 3, 2)),
    ("rnn.LSTM(3, layout='NTC')", (2, 4, 3)),
    ("rnn.GRU(3, 2, bidirectional=True)", (4, 2, 3)),
    ("rnn.RNN(3, activation='relu')", (4, 2, 3)),
    ("nn.GlobalAvgPool3D()", (1, 2, 3, 2, 2)),
    ("nn.ReflectionPad2D(1)", (1, 2, 3, 3)),
    ("contrib.nn.Identity()", (2, 3)),
    ("contrib.nn.PixelShuffle1D(2)", (1, 4, 3)),
    ("contrib.nn.PixelShuffle2D((2, 3))", (1, 6, 2, 2)),
    ("contrib.nn.PixelShuffle3D(2)", (1, 8, 2, 1, 2)),
    ("nn.Lambda('tanh')", (2, 3)),
    ("nn.HybridLambda('tanh')", (2, 3)),
    ("filled(nn.Sequential(), nn.Dense(3), nn.Dense(2))", (2, 4)),
    ("filled(nn.HybridSequential(prefix='m_'), nn.Dense(3), nn.BatchNorm(), nn.Dense(2))", (2, 4)),
    ("filled(contrib.nn.HybridConcurrent(), nn.Dense(3), contrib.nn.Identity())", (2, 4)),
    ("filled(contrib.nn.Concurrent(axis=1), nn.Dense(3), nn.Dense(2))", (2, 4)),
    ("rnn.RNN(3)", (4, 2, 3)),
    ("rnn.RNN(3, 2, activation='tanh', layout='NTC', bidirectional=True)", (2, 4, 3)),
    ("rnn.LSTM(3)", (4, 2, 3)),
    ("rnn.LSTM(3, 2, bidirectional=True)", (4, 2, 3)),
    ("rnn.LSTM(4, projection_size=2)", (4, 2, 3)),
    ("rnn.GRU(3)", (4, 2, 3)),
    ("rnn.GRU(3, 2, layout='NTC')", (2, 4, 3)),
]

_BOTH_WAYS = "rnn.BidirectionalCell(rnn.GRUCell(3), rnn.GRUCell(3))"

# (cell, length of the sequences, valid_length, layout); inputs have 2 examples of 3 numbers.
CELLS = [
    ("rnn.RNNCell(3)", 3, None, "NTC"),
    ("rnn.RNNCell(3, activation='relu')", 3, [1, 3], "TNC"),
    ("rnn.LSTMCell(3)", 3, None, "NTC"),
    ("rnn.LSTMCell(3)", 4, [2, 4], "NTC"),
    ("rnn.GRUCell(3)", 3, None, "TNC"),
    ("rnn.ResidualCell(rnn.GRUCell(3))", 3, [2, 1], "NTC"),
    ("rnn.ZoneoutCell(rnn.LSTMCell(3))", 3, None, "NTC"),
    ("stacked(rnn.SequentialRNNCell(), rnn.LSTMCell(3), rnn.DropoutCell(0.5), rnn.GRUCell(2))",
     3, [3, 2], "NTC"),
    ("rnn.BidirectionalCell(rnn.LSTMCell(3), rnn.LSTMCell(2))", 3, [2, 3], "NTC"),
    (f"stacked(rnn.HybridSequentialRNNCell(), {_BOTH_WAYS}, rnn.RNNCell(2))", 3, None, "TNC"),
]  # fmt: skip


def numbers(shape, start=0.0):
    """Fixed numbers between -1 and 1."""
    if shape and shape[0] == "ints":
        return (numpy.arange(numpy.prod(shape[1:])) * 3 % 5).reshape(shape[1:]).astype("float32")
    place = numpy.arange(numpy.prod(shape, dtype="int64"))
    return numpy.sin(1.7 * place + start).reshape(shape).astype("float32")


def weights(parameter, position):
    """Fixed weights; those that stand for variances are positive."""
    if parameter.name.endswith("gamma") and parameter.grad_req == "null":
        return numpy.ones(parameter.shape, "float32")  # MXNet sets it so in training
    values = 0.5 * numbers(parameter.shape, 0.3 * position + 0.1)
    return 1 + values if parameter.name.endswith(("gamma", "var")) else values


def filled(container, *blocks):
    with container.name_scope():
        container.add(*blocks)
    return container


def stacked(container, *cells):
    for cell in cells:
        container.add(cell)
    return container


def fixed(make, array, block, first_call):
    """Give the block its weights; its parameters in order."""
    block.initialize()
    first_call()
    parameters = list(block.collect_params().values())
    for i, parameter in enumerate(parameters):
        parameter.set_data(make(weights(parameter, i)))
    return parameters


def rounded(array):
    return [float(f"{x:.6g}") for x in numpy.asarray(array.asnumpy(), "float64").ravel()]


def layer_facts(expression, shape, scope, make, autograd):
    """What one layer does: text, names, outputs in prediction and training, gradients."""
    block = eval(expression, {**scope, "filled": filled})
    x = make(numbers(shape))
    parameters = fixed(make, make, block, lambda: block(x))
    if shape[0] != "ints":
        x.attach_grad()
    y = block(x)
    facts = {"text": repr(block), "predicted": rounded(y), "shape": list(y.shape)}
    facts["parameters"] = [[p.name, list(p.shape), p.grad_req] for p in parameters]
    facts["places"] = list(block._collect_params_with_prefix())
    if "projection" in expression:  # which MXNet cannot train on a CPU
        return facts
    with autograd.record():
        y = block(x)
        z = (y * make(numbers(y.shape, 0.7))).sum()
    z.backward()
    facts["trained"] = rounded(y)
    facts["gradient"] = rounded(x.grad) if shape[0] != "ints" else []
    facts["gradients"] = [rounded(p.grad()) for p in parameters if p.grad_req != "null"]
    facts["states"] = [rounded(p.data()) for p in parameters if p.grad_req == "null"]
    return facts


def cell_facts(expression, length, valid_length, layout, scope, make):
    """What unrolling a cell gives."""
    cell = eval(expression, {**scope, "stacked": stacked})
    x = make(numbers((2, length, 3) if layout == "NTC" else (length, 2, 3)))
    valid = None if valid_length is None else make(numpy.array(valid_length, "float32"))

    def call():
        return cell.unroll(length, x, layout=layout, merge_outputs=True, valid_length=valid)

    parameters = fixed(make, make, cell, call)
    outputs, states = call()
    return {
        "text": repr(cell),
        "outputs": rounded(outputs),
        "shape": list(outputs.shape),
        "states": [rounded(s) for s in states],
        "parameters": [[p.name, list(p.shape)] for p in parameters],
    }


def mxnet_answers():
    """What MXNet gives: with NumPy semantics, or without where it raises with them."""
    import mxnet as mx
    from mxnet import autograd, gluon

    scope = {"nn": gluon.nn, "rnn": gluon.rnn, "contrib": gluon.contrib}
    kinds = {"layers": (LAYERS, layer_facts, (autograd,)), "cells": (CELLS, cell_facts, ())}
    found = {kind: [] for kind in kinds}
    for kind, (cases, facts, more) in kinds.items():
        for case in cases:
            mx.name.NameManager._current.value = mx.name.NameManager()
            try:
                mx.npx.set_np()
                found[kind].append(facts(*case, scope, mx.np.array, *more))
            except Exception:  # noqa: BLE001 - whatever it raises
                mx.npx.reset_np()
                mx.name.NameManager._current.value = mx.name.NameManager()
                found[kind].append(facts(*case, scope, mx.nd.array, *more))
    return found
