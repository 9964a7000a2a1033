"""ONNX models, paths or bytes, in the runtimes that run them: `(version, start, to_numpy)`, where
`start()` makes the session and gives the function to call."""

from __future__ import annotations

import os

import numpy

_THREADS = "OMP_NUM_THREADS"  # the runner sets it for all contenders


def onnxruntime_session(model):
    """What a session of ONNX Runtime gives for an input."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = int(os.environ[_THREADS])
    session = onnxruntime.InferenceSession(model, options, ["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    return lambda x: session.run(None, {name: x})


def openvino_session(model):
    """What an inference request of OpenVINO gives for an input."""
    import openvino

    settings = {"INFERENCE_NUM_THREADS": os.environ[_THREADS], "PERFORMANCE_HINT": "LATENCY"}
    # Half precision is its default on some processors; the others compute in single.
    settings["INFERENCE_PRECISION_HINT"] = "f32"
    weights = (b"",) if isinstance(model, bytes) else ()
    read = openvino.Core().read_model(model, *weights)
    request = openvino.compile_model(read, "CPU", settings).create_infer_request()
    return lambda x: request.infer([x], share_inputs=True)


def onnxruntime(model, x):
    """A session of ONNX Runtime."""
    import onnxruntime as runtime

    return runtime.__version__, _start(onnxruntime_session, model, x), _first


def openvino(model, x):
    """An inference request of OpenVINO."""
    import openvino as runtime

    return runtime.__version__.split("-")[0], _start(openvino_session, model, x), _first


def _start(session, model, x):
    def start():
        run = session(model)
        return lambda: run(x)

    return start


def _first(outputs):
    return numpy.asarray(outputs[0])
