"""The known models' structure, and outputs of small ones, for MXNet and for us.

What MXNet has stands in mxnet_zoo.json; the file imports nothing of ours, so that MXNet's Python
can run it.
"""

import hashlib

import numpy

NAMES = [
    *(f"resnet{n}_v{v}" for v in (1, 2) for n in (18, 34, 50, 101, 152)),
    *(f"vgg{n}{bn}" for n in (11, 13, 16, 19) for bn in ("", "_bn")),
    "alexnet", "densenet121", "densenet161", "densenet169", "densenet201", "squeezenet1.0",
    "squeezenet1.1", "inceptionv3", *(f"mobilenet{m}" for m in ("1.0", "0.75", "0.5", "0.25")),
    *(f"mobilenetv2_{m}" for m in ("1.0", "0.75", "0.5", "0.25")),
]  # fmt: skip

# (name, keywords, shape of the input): small enough to run.
RUNS = [
    ("resnet18_v1", {"classes": 3, "thumbnail": True}, (2, 3, 16, 16)),
    ("resnet50_v2", {"classes": 3, "thumbnail": True}, (1, 3, 16, 16)),
    ("mobilenet0.25", {"classes": 3}, (1, 3, 32, 32)),
    ("mobilenetv2_0.25", {"classes": 3}, (1, 3, 32, 32)),
    ("squeezenet1.1", {"classes": 3}, (1, 3, 224, 224)),
]


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def structure(net):
    """How many parameters there are, and digests of their places, names and shapes, and of the
    text. Where the network is in the process must not matter: pass a prefix."""
    places = net._collect_params_with_prefix()
    lines = [f"{place} {p.name} {tuple(p.shape)} {p.grad_req}" for place, p in places.items()]
    return [len(lines), digest("\n".join(lines)), digest(repr(net))]


def outputs(net, shape, make):
    """What the network gives for fixed weights."""
    net.initialize()
    x = make(numpy.sin(0.37 * numpy.arange(numpy.prod(shape))).reshape(shape).astype("float32"))
    net(x)
    for i, p in enumerate(net.collect_params().values()):
        numbers = numpy.sin(1.7 * numpy.arange(numpy.prod(p.shape)) + i).reshape(p.shape)
        inputs = max(numpy.prod(p.shape[1:]), 1)
        scaled = 2 * numbers / inputs**0.5 if len(p.shape) > 1 else 0.1 * numbers
        if p.name.endswith(("gamma", "var")):
            scaled = scaled + 1
        p.set_data(make(scaled.astype("float32")))
    return [float(f"{n:.5g}") for n in net(x).asnumpy().ravel()]


def mxnet_answers():
    """What MXNet has."""
    import mxnet as mx

    vision = mx.gluon.model_zoo.vision
    found = {"structure": {}, "outputs": {}}
    for name in NAMES:
        found["structure"][name] = structure(vision.get_model(name, prefix="net_"))
    for name, keywords, shape in RUNS:
        try:
            mx.npx.set_np()
            net = vision.get_model(name, prefix="net_", **keywords)
            found["outputs"][name] = outputs(net, shape, mx.np.array)
        except Exception:  # noqa: BLE001 - without NumPy semantics then
            mx.npx.reset_np()
            net = vision.get_model(name, prefix="net_", **keywords)
            found["outputs"][name] = outputs(net, shape, mx.nd.array)
    return found
