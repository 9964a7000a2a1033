"""Functions and networks written as ONNX, and what others make of the files."""

from __future__ import annotations

import numpy
import onnx
from onnx.reference import ReferenceEvaluator

from heterosis import np
from heterosis.ir.types import is_float
from heterosis.models import from_onnx, to_onnx

# What ONNX's own evaluator does not do: `Erf` but in float32, rows of more than 32 elements,
# groups, going backwards, and other activations.
_SINGLE = {"Erf"}
_NARROW = {"GatherElements"}
_UNDONE = {"ConvTranspose", "Scan backwards", "RNN", "GlobalMaxPool"}


def listed(results):
    return list(results) if isinstance(results, tuple | list) else [results]


def written(net, path, *inputs, **options):
    """The model that is written, which ONNX finds well formed."""
    to_onnx(net, path, *inputs, **options)
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    return model


def evaluated(model, arrays):
    """What ONNX's evaluator computes; None where it cannot."""
    lost = set(_UNDONE)
    lost |= _SINGLE if any(a.dtype == numpy.float64 for a in arrays) else set()
    lost |= _NARROW if any(a.ndim and a.shape[-1] > 32 for a in arrays) else set()
    if not lost.isdisjoint(_operators(model.graph)):
        return None
    names = [given.name for given in model.graph.input]
    return ReferenceEvaluator(model).run(None, dict(zip(names, arrays, strict=True)))


def _operators(graph):
    found = set()
    for node in graph.node:
        found.add(node.op_type)
        for attribute in node.attribute:
            if attribute.name.endswith("directions") and any(attribute.ints):
                found.add(f"{node.op_type} backwards")
            if attribute.HasField("g"):
                found |= _operators(attribute.g)
    return found


def read_again(path, arrays):
    """What our own reading of the file computes."""
    return [r.asnumpy() for r in listed(from_onnx(str(path))(*map(np.array, arrays)))]


def check_same(got, wanted, ulps=8, absolute=8):
    """Results of the same types and shapes, that agree within so many units of the last place."""
    assert len(got) == len(wanted)
    for a, b in zip(got, wanted, strict=True):
        a, b = numpy.asarray(a), numpy.asarray(b)
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        if not is_float(a.dtype.name):
            numpy.testing.assert_array_equal(a, b)
            continue
        unit = {"float16": 2.0**-11, "bfloat16": 2.0**-8}.get(a.dtype.name)
        unit = unit or numpy.finfo(a.dtype).eps
        a, b = a.astype("float64"), b.astype("float64")
        numpy.testing.assert_allclose(a, b, rtol=4 * unit * ulps, atol=4 * unit * absolute)
