"""Messages between the two interpreters: lines of JSON that hold arrays too.

Imports nothing of ours, so that MXNet's Python can run it; neither pickles nor memory would do,
because the two have different versions of NumPy.
"""

import base64
import json

import numpy


def encoded(value):
    """One line of bytes for a value of lists, dictionaries, numbers, texts and arrays."""
    return json.dumps(value, default=_described).encode() + b"\n"


def decoded(line):
    """The value of a line."""
    return json.loads(line, object_hook=_restored)


def _described(value):
    if isinstance(value, numpy.generic):
        value = numpy.asarray(value)
    if not isinstance(value, numpy.ndarray):
        raise TypeError(f"{type(value).__name__} cannot be sent")
    content = base64.b64encode(value.tobytes()).decode()
    return {"array": content, "dtype": value.dtype.str, "shape": value.shape}


def _restored(found):
    if found.keys() != {"array", "dtype", "shape"}:
        return found
    content = numpy.frombuffer(base64.b64decode(found["array"]), found["dtype"])
    return content.reshape(found["shape"]).copy()
