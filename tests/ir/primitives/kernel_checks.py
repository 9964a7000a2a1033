"""What tests of primitives with kernels of their own share: nodes, and what they give."""

import numpy
import pytest

from heterosis import _core, np
from heterosis.ir.program import INPUT, Node, Program, apply
from heterosis.ir.strided import Strided
from heterosis.ir.types import UNSIGNED, TensorType, is_float, numpy_dtype
from heterosis.ops import eager
from heterosis.runtime.errors import HeterosisError

WIDE = ("float32", "float64")


def inputs(*types):
    return tuple(apply(INPUT, (), TensorType(shape, dtype)) for shape, dtype in types)


def node(primitive, operands, results, **attributes):
    made = tuple(TensorType(shape, dtype) for shape, dtype in results)
    return Node(primitive, inputs(*operands), attributes, made)


def types_of(array):
    return tuple(array.shape), getattr(array.dtype, "name", array.dtype)


def compiled(node, arrays):
    """What the native back end makes of the node."""
    program = Program(node.inputs, node.outputs)
    layouts = [Strided.contiguous(a.shape) for a in arrays]
    plan = eager.plan(program, layouts, None, views=True, freely=False)
    results = _core.run_plan(plan, [np.array(a, dtype=a.dtype.name) for a in arrays])
    return [y.asnumpy() for y in results]


def meant(node, arrays):
    """What the node means, of the types that its rule gives."""
    assert node.primitive.types(node) == node.types
    assert node.attributes.keys() == node.primitive.attributes.keys()
    for name, kind in node.primitive.attributes.items():
        assert isinstance(node.attributes[name], kind)
    found = node.primitive.evaluate(node, *arrays)
    for array, type_ in zip(found, node.types, strict=True):
        assert (array.shape, array.dtype) == (type_.shape, numpy_dtype(type_.dtype))
    return found


def epsilon(dtype):
    return float(numpy.asarray(1, numpy_dtype(dtype)) * 2.0 ** -{
        "float16": 10, "bfloat16": 7, "float32": 23, "float64": 52
    }[dtype])  # fmt: skip


def check(node, arrays, *, ulps=4.0):
    """Both agree: integers exactly, floats within `ulps` of the largest result."""
    for got, want in zip(compiled(node, arrays), meant(node, arrays), strict=True):
        assert (got.shape, got.dtype) == (want.shape, want.dtype)
        if want.dtype.kind in "biu":
            numpy.testing.assert_array_equal(got, want)
            continue
        dtype = want.dtype.name
        got, want = got.astype("float64"), want.astype("float64")
        finite = numpy.where(numpy.isfinite(want), abs(want), 0.0)
        near = ulps * epsilon(dtype) * finite.max(initial=0.0)
        numpy.testing.assert_allclose(got, want, rtol=ulps * epsilon(dtype), atol=near)


def drawn(shape, dtype, *, seed=0, low=-3, high=3):
    generator = numpy.random.default_rng(seed)
    if dtype == "bool":
        return generator.integers(0, 2, shape).astype("bool")
    if is_float(dtype):
        return generator.uniform(low, high, shape).astype(numpy_dtype(dtype))
    return generator.integers(0 if dtype in UNSIGNED else -100, 100, shape).astype(dtype)


def failure_of(node, arrays):
    """The class and the message of the error that both raise; the kernel's names the program."""
    with pytest.raises(HeterosisError) as of_kernel:
        compiled(node, arrays)
    with pytest.raises(HeterosisError) as of_meaning:
        node.primitive.evaluate(node, *arrays)
    assert of_kernel.type is of_meaning.type
    assert str(of_kernel.value).endswith(f": {of_meaning.value}")
    return of_meaning.type
