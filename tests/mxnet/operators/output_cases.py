"""SoftmaxOutput with every kind of labels and options, for MXNet and for us.

`MXNET_PYTHON output_cases.py > mxnet_outputs.json` stores what MXNet gives: the file imports
nothing of ours, so that MXNet's Python can run it.
"""

import itertools
import json

import numpy

_KINDS = [
    ((3, 4), (3,), {}),
    ((3, 4), (3, 4), {}),
    ((2, 3, 4), (2, 3, 4), {}),
    ((2, 3, 2), (2, 2), {"multi_output": True}),
    ((2, 3, 2), (2, 1, 2), {"multi_output": True}),
    ((2, 3, 2), (2, 3, 2), {"multi_output": True}),
    ((2, 3, 2, 2), (2, 2, 2), {"multi_output": True}),
    ((2, 3, 4), (2, 3), {"preserve_shape": True}),
    ((2, 3, 4), (2, 3, 4), {"preserve_shape": True}),
]
_OPTIONS = [
    {},
    {"grad_scale": 2.0},
    {"smooth_alpha": 0.1},
    {"normalization": "batch"},
    {"normalization": "valid", "ignore_label": 1.0},
    {"normalization": "valid", "use_ignore": True, "ignore_label": 1.0},
    {"normalization": "batch", "use_ignore": True, "ignore_label": 1.0},
]
CASES = [
    (data, label, {**kind, **options})
    for (data, label, kind), options in itertools.product(_KINDS, _OPTIONS)
]


def operands(data, label):
    """Data and labels of these shapes: probabilities where the shapes are equal, else classes."""
    rng = numpy.random.RandomState(0)
    scores = rng.randn(*data)
    return scores, rng.rand(*label) if data == label else rng.randint(0, 3, label)


def bound(mx, data, label, options):
    """Through a symbol: the result and the gradient for the data."""
    scores, labels = (mx.nd.array(a.astype("float32")) for a in operands(data, label))
    symbol = mx.sym.SoftmaxOutput(mx.sym.Variable("d"), mx.sym.Variable("l"), **options)
    gradient = mx.nd.zeros(data)
    executor = symbol.bind(mx.cpu(), {"d": scores, "l": labels}, args_grad={"d": gradient})
    result = executor.forward(is_train=True)[0]
    executor.backward()
    return result.asnumpy(), gradient.asnumpy()


def main():
    """Print what MXNet gives."""
    import mxnet

    found = [bound(mxnet, *case) for case in CASES]
    print(json.dumps([[[float(f"{x:.6g}") for x in a.ravel()] for a in pair] for pair in found]))


if __name__ == "__main__":
    main()
