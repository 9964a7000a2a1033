"""The networks that are trained in JAX: functions of parameters, ordered as `networks_torch`."""

from __future__ import annotations

import jax
from jax import lax
from jax import numpy as jnp


class Parameters:
    """Hands out arrays in order, and takes running statistics back."""

    def __init__(self, arrays):
        self.arrays, self.next = list(arrays), 0

    def take(self, count):
        """The next arrays."""
        self.next += count
        return self.arrays[self.next - count : self.next]

    def put(self, *arrays):
        """New values for those that were taken last."""
        self.arrays[self.next - len(arrays) : self.next] = arrays


def _dense(parameters, x):
    weight, bias = parameters.take(2)
    return x @ weight.T + bias


def _convolution(parameters, x, stride=1, padding=0, bias=False):
    weight, *rest = parameters.take(2 if bias else 1)
    around = [(padding, padding)] * 2
    numbers = ("NCHW", "OIHW", "NCHW")
    y = lax.conv_general_dilated(x, weight, (stride, stride), around, dimension_numbers=numbers)
    return y + rest[0][:, None, None] if rest else y


def _pool(x, size, stride, padding=0):
    around = [(0, 0), (0, 0), (padding, padding), (padding, padding)]
    return lax.reduce_window(
        x, -jnp.inf, lax.max, (1, 1, size, size), (1, 1, stride, stride), around
    )


def _normalized(parameters, x):
    scale, shift, mean, variance = parameters.take(4)
    axes = (0, 2, 3)
    found_mean, found_variance = x.mean(axes), x.var(axes)
    news = (
        0.9 * old + 0.1 * lax.stop_gradient(new)
        for old, new in ((mean, found_mean), (variance, found_variance))
    )
    parameters.put(*news)
    factor = scale * lax.rsqrt(found_variance + 1e-5)
    offset = shift - found_mean * factor
    return x * factor[:, None, None] + offset[:, None, None]


def perceptron(parameters, x):
    """512-256-128-2."""
    x = jax.nn.relu(_dense(parameters, x))
    return _dense(parameters, jax.nn.relu(_dense(parameters, x)))


def lenet(parameters, x):
    """Two convolutions, two dense layers."""
    for _ in range(2):
        x = _pool(jax.nn.relu(_convolution(parameters, x, bias=True)), 2, 2)
    x = jax.nn.relu(_dense(parameters, x.reshape(len(x), -1)))
    return _dense(parameters, x)


def language_model(parameters, x):
    """An LSTM layer, and scores for each step."""
    weight, inner, bias, inner_bias = parameters.take(4)

    def step(state, projected):
        hidden, cell = state
        gates = jnp.split(projected + hidden @ inner.T, 4, 1)
        enter, forget, leave = (jax.nn.sigmoid(gates[i]) for i in (0, 1, 3))
        cell = forget * cell + enter * jnp.tanh(gates[2])
        hidden = leave * jnp.tanh(cell)
        return (hidden, cell), hidden

    start = jnp.zeros((x.shape[1], inner.shape[1]))
    _, outputs = lax.scan(step, (start, start), x @ weight.T + (bias + inner_bias))
    return _dense(parameters, outputs)


def _residual(parameters, x, stride, narrows):
    y = jax.nn.relu(_normalized(parameters, _convolution(parameters, x, stride, 1)))
    y = _normalized(parameters, _convolution(parameters, y, 1, 1))
    if narrows:
        x = _normalized(parameters, _convolution(parameters, x, stride))
    return jax.nn.relu(y + x)


def resnet18(parameters, x):
    """ResNet-18, in training."""
    x = jax.nn.relu(_normalized(parameters, _convolution(parameters, x, 2, 3)))
    x = _pool(x, 3, 2, 1)
    for stage in range(4):
        for i in range(2):
            narrows = stage > 0 and i == 0
            x = _residual(parameters, x, 2 if narrows else 1, narrows)
    return _dense(parameters, x.mean((2, 3)))


def _layer_norm(parameters, x):
    scale, shift = parameters.take(2)
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-5) * scale + shift


def _causal_attention(parameters, x, heads):
    batch, steps, width = x.shape
    parts = _dense(parameters, x).reshape(batch, steps, 3, heads, width // heads)
    query, key, value = (parts[:, :, i] for i in range(3))
    found = jax.nn.dot_product_attention(query, key, value, is_causal=True)
    return _dense(parameters, found.reshape(batch, steps, width))


def gpt(parameters, x):
    """A small GPT: 4 layers, 4 heads."""
    characters, places = parameters.take(2)
    x = characters[x] + places[: x.shape[1]]
    for _ in range(4):
        x = x + _causal_attention(parameters, _layer_norm(parameters, x), 4)
        y = jax.nn.gelu(_dense(parameters, _layer_norm(parameters, x)), approximate=False)
        x = x + _dense(parameters, y)
    return _dense(parameters, _layer_norm(parameters, x))


NETWORKS = {f.__name__: f for f in (perceptron, lenet, language_model, resnet18, gpt)}
