"""ONNX's own cases: models of one operator, or of what it is made of, with inputs and outputs."""

import re
import warnings
from collections import defaultdict
from functools import cache

import numpy
from onnx import TensorProto, numpy_helper
from onnx.backend.test.case import node as of_nodes
from onnx.defs import get_all_schemas

# Differences that are none: some cases want sums of halves as if no step rounded.
LEAST = {"float16": 2e-3, "bfloat16": 2e-2}
OPERATORS = sorted({schema.name for schema in get_all_schemas()})


@cache
def by_operator():
    """The cases of each operator: those of what it is made of stand with it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its own arithmetic
        cases = of_nodes.collect_testcases(None)
    operators = {case.name: case.model.graph.node[0].op_type for case in cases}
    found = defaultdict(list)
    for case in cases:
        base = re.sub(r"_expanded(_ver\d+|_function)?.*$", "", case.name)
        found[operators.get(base, operators[case.name])].append(case)
    return found


def flat(values):
    """The arrays in nested lists and tuples."""
    if isinstance(values, list | tuple):
        return [array for value in values for array in flat(value)]
    return [values]


def differences(case, run):
    """What `run(inputs)` gives that is not as the case wants it, as texts."""
    for inputs, outputs in case.data_sets:
        got, expected = flat(run(inputs)), flat(outputs)
        if len(got) != len(expected):
            yield f"{len(got)} results, not {len(expected)}"
            continue
        for array, wanted in zip(got, expected, strict=True):
            yield from _difference(array, wanted, case)


def _difference(array, wanted, case):
    if isinstance(wanted, TensorProto):
        wanted = numpy_helper.to_array(wanted)
    if (array.dtype, array.shape) != (wanted.dtype, wanted.shape):
        yield f"{array.dtype}{array.shape}, not {wanted.dtype}{wanted.shape}"
        return
    a, b = array.asnumpy(), wanted
    if a.dtype.kind not in "iub":
        a, b = a.astype("float64"), b.astype("float64")
    if "bernoulli" in case.name:  # the numbers are drawn
        a, b = numpy.isin(a, (0, 1)), numpy.full(b.shape, True)
    rtol, atol = case.rtol, max(case.atol, LEAST.get(array.dtype.name, 1e-5))
    if not numpy.allclose(a, b, rtol=rtol, atol=atol, equal_nan=True):
        yield f"{a.ravel()[:8]}, not {b.ravel()[:8]}"
