"""ONNX models, paths or bytes, in the runtimes that run them: `(version, start, to_numpy)`, where
`start()` makes the session and gives the function to call."""

from __future__ import annotations

import os

import numpy

_THREADS = "OMP_NUM_THREADS"  # the runner sets it for all contenders


def onnxruntime(model, x):
    """A session of ONNX Runtime."""
    import onnxruntime

    def start():
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = int(os.environ[_THREADS])
        session = onnxruntime.InferenceSession(model, options, ["CPUExecutionProvider"])
        feed = {session.get_inputs()[0].name: x}
        return lambda: session.run(None, feed)

    return onnxruntime.__version__, start, _first


def openvino(model, x):
    """An inference request of OpenVINO."""
    import openvino

    def start():
        settings = {"INFERENCE_NUM_THREADS": os.environ[_THREADS], "PERFORMANCE_HINT": "LATENCY"}
        # Half precision is its default on some processors; the others compute in single.
        settings["INFERENCE_PRECISION_HINT"] = "f32"
        weights = (b"",) if isinstance(model, bytes) else ()
        read = openvino.Core().read_model(model, *weights)
        request = openvino.compile_model(read, "CPU", settings).create_infer_request()
        return lambda: request.infer([x], share_inputs=True)

    return openvino.__version__.split("-")[0], start, _first


def _first(outputs):
    return numpy.asarray(outputs[0])
