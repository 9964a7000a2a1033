"""NumPy references of convolution and pooling, for tests: loops over taps, independent of ours."""

from __future__ import annotations

import itertools
from typing import Any

import numpy


def _axes(given: Any, axes: int, missing: int) -> tuple[int, ...]:
    return (missing,) * axes if given is None else tuple(given)


def _first(x, layout):
    return numpy.moveaxis(x, -1, 1) if layout and layout.endswith("C") else x


def _last(x, layout):
    return numpy.moveaxis(x, 1, -1) if layout and layout.endswith("C") else x


def _taps(kernel, stride, dilate, out):
    """Every tap, and where in the padded input it meets the output positions."""
    for tap in itertools.product(*map(range, kernel)):
        yield tap, tuple(
            slice(t * d, t * d + (o - 1) * s + 1, s)
            for t, d, s, o in zip(tap, dilate, stride, out, strict=True)
        )


def _out(padded, kernel, stride, dilate):
    return tuple(
        (n - d * (k - 1) - 1) // s + 1
        for n, k, s, d in zip(padded, kernel, stride, dilate, strict=True)
    )


def _padded(x, pad):
    return numpy.pad(x, ((0, 0), (0, 0), *((p, p) for p in pad)))


def convolution(
    data, weight, bias=None, kernel=(), stride=None, dilate=None, pad=None, num_group=1,
    no_bias=False, layout=None,
):  # fmt: skip
    axes = data.ndim - 2
    stride, dilate = _axes(stride, axes, 1), _axes(dilate, axes, 1)
    x, w = _padded(_first(data, layout), _axes(pad, axes, 0)), _first(weight, layout)
    out = _out(x.shape[2:], kernel, stride, dilate)
    y = numpy.zeros((x.shape[0], w.shape[0], *out))
    for tap, where in _taps(kernel, stride, dilate, out):
        parts = zip(
            numpy.split(x[(..., *where)], num_group, 1), numpy.split(w[(..., *tap)], num_group)
        )
        y += numpy.concatenate([numpy.einsum("nc...,oc->no...", a, b) for a, b in parts], 1)
    if bias is not None:
        y += bias.reshape(-1, *(1,) * axes)
    return _last(y, layout)


def convolution_data_gradient(
    dy, weight, shape=(), stride=None, dilate=None, pad=None, num_group=1
):
    axes = dy.ndim - 2
    stride, dilate, pad = _axes(stride, axes, 1), _axes(dilate, axes, 1), _axes(pad, axes, 0)
    dx = numpy.zeros((*shape[:2], *(n + 2 * p for n, p in zip(shape[2:], pad, strict=True))))
    for tap, where in _taps(weight.shape[2:], stride, dilate, dy.shape[2:]):
        parts = zip(numpy.split(dy, num_group, 1), numpy.split(weight[(..., *tap)], num_group))
        dx[(..., *where)] += numpy.concatenate(
            [numpy.einsum("no...,oc->nc...", a, b) for a, b in parts], 1
        )
    inside = tuple(slice(p, p + n) for n, p in zip(shape[2:], pad, strict=True))
    return dx[(..., *inside)]


def convolution_weight_gradient(
    dy, data, kernel=(), stride=None, dilate=None, pad=None, num_group=1
):
    axes = dy.ndim - 2
    stride, dilate = _axes(stride, axes, 1), _axes(dilate, axes, 1)
    x = _padded(data, _axes(pad, axes, 0))
    dw = numpy.zeros((dy.shape[1], x.shape[1] // num_group, *kernel))
    for tap, where in _taps(kernel, stride, dilate, dy.shape[2:]):
        parts = zip(numpy.split(dy, num_group, 1), numpy.split(x[(..., *where)], num_group, 1))
        flat = ((a.reshape(*a.shape[:2], -1), b.reshape(*b.shape[:2], -1)) for a, b in parts)
        dw[(..., *tap)] = numpy.concatenate([numpy.einsum("nop,ncp->oc", *f) for f in flat])
    return dw


def deconvolution(
    data, weight, bias=None, kernel=(), stride=None, dilate=None, pad=None, adj=None,
    target_shape=None, num_group=1, no_bias=True, layout=None,
):  # fmt: skip
    axes = data.ndim - 2
    stride, dilate = _axes(stride, axes, 1), _axes(dilate, axes, 1)
    pad, adj = _axes(pad, axes, 0), _axes(adj, axes, 0)
    x, w = _first(data, layout), _first(weight, layout)
    full = [
        (n - 1) * s + d * (k - 1) + 1
        for n, s, d, k in zip(x.shape[2:], stride, dilate, kernel, strict=True)
    ]
    if target_shape is not None:
        surplus = [n - t for n, t in zip(full, target_shape, strict=True)]
        pad, adj = [-(-s // 2) for s in surplus], [s % 2 for s in surplus]
    out = [n - 2 * p + a for n, p, a in zip(full, pad, adj, strict=True)]
    shape = (x.shape[0], num_group * w.shape[1], *out)
    y = convolution_data_gradient(x, w, shape, stride, dilate, pad, num_group)
    if bias is not None:
        y = y + bias.reshape(-1, *(1,) * axes)
    return _last(y, layout)
