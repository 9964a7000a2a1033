"""Inference of many kinds of models: python benchmarks/more_models.py [--models vit unet ...]

Each is written in Gluon and hybridized, beside ONNX Runtime and OpenVINO, which run the file that
`heterosis.models.to_onnx` writes of it: all compute the same program with the same weights, and
must give the same outputs.
"""

from __future__ import annotations

import contextlib
import functools
import sys

import runner
import sessions
from networks import Case, files, hybridized, place, run_script

_IMAGE = (1, 3, 224, 224)
CASES = {
    "vit": Case("vision transformer, 12 layers of 192", "vit", _IMAGE),
    "mixer": Case("MLP-Mixer, 6 layers of 256", "mixer", _IMAGE),
    "writer64": Case("GPT, 4 layers of 128, 8 x 64 words", "writer", (8, 64), words=96),
    "writer1": Case("GPT, 4 layers of 128, 1 x 16 words", "writer", (1, 16), words=96),
    "wide_writer": Case("GPT, 2 layers of 512, 1 x 256", "wide_writer", (1, 256), words=1000),
    "attention": Case("attention, 4 x 100 x 256", "attention", (4, 100, 256)),
    "convnext": Case("ConvNeXt-T", "convnext", _IMAGE),
    "efficientnet": Case("EfficientNet-B0", "efficientnet", _IMAGE),
    "regnet": Case("RegNetX-400MF", "regnet", _IMAGE),
    "resnext": Case("ResNeXt-50, 32 x 4", "resnext", _IMAGE),
    "shufflenet": Case("ShuffleNet, 6 units of 240", "shufflenet", _IMAGE),
    "mobilenet": Case("MobileNet", "mobilenet", _IMAGE),
    "squeezenet": Case("SqueezeNet 1.1", "squeezenet", _IMAGE),
    "alexnet": Case("AlexNet", "alexnet", _IMAGE),
    "vgg11": Case("VGG-11", "vgg11", _IMAGE),
    "resnet50v2": Case("ResNet-50 v2", "resnet50v2", _IMAGE),
    "densenet121": Case("DenseNet-121", "densenet121", _IMAGE),
    "inception": Case("Inception v3, 299 x 299", "inception", (1, 3, 299, 299)),
    "unet": Case("U-Net of 32 to 256, 128 x 128", "unet", (1, 3, 128, 128)),
    "generator": Case("DCGAN's generator, batch 16", "generator", (16, 100, 1, 1)),
    "style": Case("painting, 128 x 128", "style", (1, 3, 128, 128)),
    "grouped": Case("residual with group norm, 8 x 32 x 32", "grouped_residual", (8, 3, 32, 32)),
    "autoencoder": Case("autoencoder, 32 x 32 x 32", "autoencoder", (32, 3, 32, 32)),
    "video": Case("3-D convolutions, 8 x 56 x 56", "video", (1, 3, 8, 56, 56)),
    "temporal": Case("temporal convolutions, 8 x 512", "temporal", (8, 16, 512)),
    "wavenet": Case("WaveNet, 4000 samples", "wavenet", (1, 1, 4000)),
    "bilstm": Case("2 layers of LSTM both ways, 50 x 8", "bilstm", (50, 8, 128)),
    "gru1": Case("GRU of 256, 50 x 1", "gru", (50, 1, 64)),
    "gru32": Case("GRU of 256, 35 x 32", "gru", (35, 32, 128)),
    "textcnn": Case("text by convolutions, 16 x 100", "textcnn", (16, 100), words=5000),
    "pointnet": Case("PointNet, 4 x 1024 points", "pointnet", (4, 3, 1024)),
    "deepfm": Case("DeepFM, 256 rows", "deepfm", (256, 22), words=10000),
    "variational": Case("variational autoencoder, 64 rows", "variational", (64, 784)),
    "normalized1": Case("3 normalised layers of 256, 1 row", "normalized", (1, 128)),
    "normalized256": Case("3 normalised layers of 256, 256 rows", "normalized", (256, 128)),
}


@contextlib.contextmanager
def prepare(models):
    """What the workers need, in a folder: parameters and ONNX files."""
    with files():
        own_cache = f"HETEROSIS_CACHE={place('written')}"  # the workers' stays empty
        run_script(["env", own_cache, sys.executable], "more_networks.py", models)
        yield


def heterosis(model):
    from more_networks import loaded

    case = CASES[model]
    return hybridized(loaded(model, case.network), case)


def session(runtime, model):
    version, start, to_numpy = runtime(place(model + ".onnx"), CASES[model].input())
    return version, start, lambda: None, to_numpy


CONTENDERS = {
    "heterosis": heterosis,
    "onnxruntime": functools.partial(session, sessions.onnxruntime),
    "openvino": functools.partial(session, sessions.openvino),
}


def measure(contender: str, model: str) -> dict:
    """Seconds a call, and until the first result, and a number that follows from the outputs."""
    return runner.sample(CASES[model].title, *CONTENDERS[contender](model))


if __name__ == "__main__":
    runner.main(
        __file__, measure, contenders=tuple(CONTENDERS), models=tuple(CASES), prepare=prepare
    )
