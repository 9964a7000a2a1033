"""NumPy references of convolution and pooling, for tests: loops over taps, independent of ours."""

from __future__ import annotations

import itertools
from typing import Any

import numpy


def _axes(given: Any, axes: int, missing: int) -> tuple[int, ...]:
    return (missing,) * axes if given is None else tuple(given)


def _first(x: Any, layout: Any) -> Any:
    return numpy.moveaxis(x, -1, 1) if layout and layout.endswith("C") else x


def _last(x: Any, layout: Any) -> Any:
    return numpy.moveaxis(x, 1, -1) if layout and layout.endswith("C") else x


def _taps(kernel: Any, stride: Any, dilate: Any, out: Any) -> Any:
    """Every tap, and where in the padded input it meets the output positions: indices."""
    for tap in itertools.product(*map(range, kernel)):
        where = (
            slice(t * d, t * d + (o - 1) * s + 1, s)
            for t, d, s, o in zip(tap, dilate, stride, out, strict=True)
        )
        yield (..., *tap), (..., *where)


def _out(padded: Any, kernel: Any, stride: Any, dilate: Any) -> Any:
    return tuple(
        (n - d * (k - 1) - 1) // s + 1
        for n, k, s, d in zip(padded, kernel, stride, dilate, strict=True)
    )


def _padded(x: Any, pad: Any) -> Any:
    return numpy.pad(x, ((0, 0), (0, 0), *((p, p) for p in pad)))


def convolution(
    data: Any,
    weight: Any,
    bias: Any = None,
    kernel: Any = (),
    stride: Any = None,
    dilate: Any = None,
    pad: Any = None,
    num_group: Any = 1,
    no_bias: Any = False,
    layout: Any = None,
) -> Any:
    axes = data.ndim - 2
    stride, dilate = _axes(stride, axes, 1), _axes(dilate, axes, 1)
    x, w = _padded(_first(data, layout), _axes(pad, axes, 0)), _first(weight, layout)
    out = _out(x.shape[2:], kernel, stride, dilate)
    y = numpy.zeros((x.shape[0], w.shape[0], *out))
    for tap, where in _taps(kernel, stride, dilate, out):
        parts = zip(
            numpy.split(x[where], num_group, 1), numpy.split(w[tap], num_group), strict=True
        )
        y += numpy.concatenate([numpy.einsum("nc...,oc->no...", a, b) for a, b in parts], 1)
    if bias is not None:
        y += bias.reshape(-1, *(1,) * axes)
    return _last(y, layout)


def convolution_data_gradient(
    dy: Any,
    weight: Any,
    shape: Any = (),
    stride: Any = None,
    dilate: Any = None,
    pad: Any = None,
    num_group: Any = 1,
) -> Any:
    axes = dy.ndim - 2
    stride, dilate, pad = _axes(stride, axes, 1), _axes(dilate, axes, 1), _axes(pad, axes, 0)
    dx = numpy.zeros((*shape[:2], *(n + 2 * p for n, p in zip(shape[2:], pad, strict=True))))
    for tap, where in _taps(weight.shape[2:], stride, dilate, dy.shape[2:]):
        parts = zip(numpy.split(dy, num_group, 1), numpy.split(weight[tap], num_group), strict=True)
        dx[where] += numpy.concatenate([numpy.einsum("no...,oc->nc...", a, b) for a, b in parts], 1)
    inside: Any = (..., *(slice(p, p + n) for n, p in zip(shape[2:], pad, strict=True)))
    return dx[inside]


def convolution_weight_gradient(
    dy: Any,
    data: Any,
    kernel: Any = (),
    stride: Any = None,
    dilate: Any = None,
    pad: Any = None,
    num_group: Any = 1,
) -> Any:
    axes = dy.ndim - 2
    stride, dilate = _axes(stride, axes, 1), _axes(dilate, axes, 1)
    x = _padded(data, _axes(pad, axes, 0))
    dw = numpy.zeros((dy.shape[1], x.shape[1] // num_group, *kernel))
    for tap, where in _taps(kernel, stride, dilate, dy.shape[2:]):
        parts = zip(numpy.split(dy, num_group, 1), numpy.split(x[where], num_group, 1), strict=True)
        flat = ((a.reshape(*a.shape[:2], -1), b.reshape(*b.shape[:2], -1)) for a, b in parts)
        dw[tap] = numpy.concatenate([numpy.einsum("nop,ncp->oc", *f) for f in flat])
    return dw


def deconvolution(
    data: Any,
    weight: Any,
    bias: Any = None,
    kernel: Any = (),
    stride: Any = None,
    dilate: Any = None,
    pad: Any = None,
    adj: Any = None,
    target_shape: Any = None,
    num_group: Any = 1,
    no_bias: Any = True,
    layout: Any = None,
) -> Any:
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


# -- pooling --------------------------------------------------------------------------------------


def _pooling_axes(
    space: Any, kernel: Any, global_pool: Any, pooling_convention: Any, stride: Any, pad: Any
) -> Any:
    """For each axis: the slices of every window, clipped, and their lengths with padding."""
    axes = len(space)
    kernel = space if global_pool else kernel
    stride = _axes(None if global_pool else stride, axes, 1)
    pad = _axes(None if global_pool else pad, axes, 0)
    found = []
    for n, k, s, p in zip(space, kernel, stride, pad, strict=True):
        before = after = p
        if pooling_convention == "same":
            out = -(-n // s)
            total = max((out - 1) * s + k - n, 0)
            before, after = total // 2, total - total // 2
        elif pooling_convention == "full":
            out = -((k - n - 2 * p) // s) + 1
        else:
            out = (n + 2 * p - k) // s + 1
        begins = [i * s - before for i in range(out)]
        ends = [min(b + k, n + after) for b in begins]
        clipped = [slice(max(b, 0), min(e, n)) for b, e in zip(begins, ends, strict=True)]
        lengths = [e - b for b, e in zip(begins, ends, strict=True)]
        found.append(list(zip(clipped, lengths, strict=True)))
    return found


def pooled_shape(
    shape: Any,
    kernel: Any = (),
    global_pool: Any = False,
    pooling_convention: Any = "valid",
    stride: Any = None,
    pad: Any = None,
    layout: Any = None,
    **_: Any,
) -> Any:
    space = shape[1:-1] if layout and layout.endswith("C") else shape[2:]
    axes = _pooling_axes(space, kernel, global_pool, pooling_convention, stride, pad)
    out = tuple(map(len, axes))
    return (shape[0], *out, shape[-1]) if space == shape[1:-1] else (*shape[:2], *out)


def _every_window(
    x: Any, kernel: Any, global_pool: Any, pooling_convention: Any, stride: Any, pad: Any
) -> Any:
    """Where each window's result stands, where its elements are, and its length with padding."""
    axes = _pooling_axes(x.shape[2:], kernel, global_pool, pooling_convention, stride, pad)
    for place in itertools.product(*(range(len(a)) for a in axes)):
        windows = [axes[i][p] for i, p in enumerate(place)]
        yield (..., *place), (..., *(w for w, _ in windows)), numpy.prod([n for _, n in windows])


def pooling(
    data: Any,
    kernel: Any = (),
    pool_type: Any = "max",
    global_pool: Any = False,
    pooling_convention: Any = "valid",
    stride: Any = None,
    pad: Any = None,
    p_value: Any = None,
    count_include_pad: Any = None,
    layout: Any = None,
) -> Any:
    x = _first(data, layout)
    facts = (kernel, global_pool, pooling_convention, stride, pad)
    y = numpy.zeros(pooled_shape(x.shape, *facts))
    space = tuple(range(2, x.ndim))
    for place, where, length in _every_window(x, *facts):
        window = x[where]
        count = window[0, 0].size if count_include_pad is False and x.size else length
        if pool_type == "max":
            y[place] = window.max(space)
        elif pool_type == "lp":
            y[place] = (window**p_value).sum(space) ** (1 / p_value)
        else:
            y[place] = window.sum(space) / (count if pool_type == "avg" else 1)
    return _last(y, layout)


def pooling_gradient(
    dy: Any,
    data: Any,
    kernel: Any = (),
    pool_type: Any = "max",
    global_pool: Any = False,
    pooling_convention: Any = "valid",
    stride: Any = None,
    pad: Any = None,
    p_value: Any = None,
    count_include_pad: Any = None,
    layout: Any = None,
) -> Any:
    x, dy = _first(data, layout), _first(dy, layout)
    dx = numpy.zeros(x.shape)
    for place, where, length in _every_window(
        x, kernel, global_pool, pooling_convention, stride, pad
    ):
        window, g = x[where], dy[place]
        flat = window.reshape(*window.shape[:2], numpy.prod(window.shape[2:]))
        count = flat.shape[2] if count_include_pad is False else length
        if pool_type == "max":
            part = numpy.arange(flat.shape[2]) == flat.argmax(-1)[..., None] if x.size else flat
        elif pool_type == "lp":
            norm = (flat**p_value).sum(-1, keepdims=True) ** (1 / p_value)
            part = (flat / norm) ** (p_value - 1)
        else:
            part = numpy.ones(flat.shape) / (count if pool_type == "avg" else 1)
        given = numpy.where(part == 0, 0, part * g[..., None])  # also of what is infinite or NaN
        dx[where] += given.reshape(window.shape)
    return _last(dx, layout)
