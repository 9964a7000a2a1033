"""Bad input: a clear error of the right class, the arrays unharmed, everything usable after it."""

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heterosis import np, npx
from heterosis.ops import REGISTRY
from heterosis.runtime import errors

A = numpy.arange(6, dtype="float32").reshape(2, 3)
HUGE = 1 << 60


def failed_in_the_queue(x):
    """A factorisation that fails long after the call, seen where its result is read."""
    result = np.linalg.cholesky(np.zeros((64, 64)) - np.eye(64)) + 1
    return result.asnumpy()


# name: (what is done with a 2 x 3 array, the error's classes, words that the message has)
FAULTS = {
    "shapes": (lambda x: x + np.ones((4, 3)), (errors.ShapeError, ValueError), "(2, 3) and (4, 3)"),
    "inner": (lambda x: np.dot(x, x), (errors.ShapeError, ValueError), "inner dimensions"),
    "reshape": (lambda x: x.reshape(4, 2), (errors.ShapeError, ValueError), "6 elements"),
    "concatenate": (lambda x: np.concatenate([x, x.T]), (errors.ShapeError, ValueError), "(3, 2)"),
    "out": (lambda x: np.add(x, 1, out=np.zeros((3, 3))), (errors.ShapeError,), "(3, 3)"),
    "assign": (lambda x: x.__setitem__(0, np.ones(2)), (errors.ShapeError, ValueError), "(2,)"),
    "einsum": (lambda x: np.einsum("ij,jk->ik", x, x), (ValueError,), "einsum"),
    "empty": (
        lambda x: np.zeros((0, 3)).max(axis=0),
        (errors.ShapeError, ValueError),
        "no elements",
    ),
    "axis": (lambda x: x.sum(axis=2), (errors.AxisError, ValueError, IndexError), "axis 2"),
    "axes": (lambda x: x.transpose(0, 0), (errors.AxisError,), "axes"),
    "index": (lambda x: x[2], (errors.IndexingError, IndexError), "out of bounds"),
    "indices": (lambda x: x[np.array([0, 5])].asnumpy(), (errors.IndexingError,), "out of bounds"),
    "too many": (lambda x: x[0, 0, 0], (errors.IndexingError, IndexError), "too many indices"),
    "key": (lambda x: x["a"], (errors.IndexingError, IndexError), "cannot index"),
    "write": (lambda x: x.__setitem__([0, 9], 1.0), (errors.IndexingError,), "9"),
    "dtype": (lambda x: x.astype("complex64"), (errors.DTypeError, TypeError), "complex64"),
    "bits": (lambda x: x & 1, (errors.DTypeError, TypeError), "integers"),
    "into": (
        lambda x: np.add(x, 0.5, out=np.zeros((2, 3), dtype="int32")),
        (errors.DTypeError,),
        "int32",
    ),
    "object": (lambda x: np.array([object()]), (TypeError,), "object"),
    "text": (lambda x: np.array("word"), (TypeError,), "str"),
    "operand": (lambda x: x + "1", (TypeError,), "str"),
    "keyword": (lambda x: np.sum(x, axes=0), (TypeError,), "axes"),
    "mode": (lambda x: np.take(x, np.array([0]), mode="hope"), (ValueError,), "hope"),
    "negative": (lambda x: np.zeros((-1, 2)), (ValueError,), "negative"),
    "truth": (bool, (ValueError,), "exactly one element"),
    "singular": (
        lambda x: np.linalg.inv(np.zeros((3, 3))).asnumpy(),
        (numpy.linalg.LinAlgError,),
        "singular",
    ),
    "queue": (failed_in_the_queue, (errors.LinearAlgebraError,), "test_bad_input.py"),
    "memory": (lambda x: np.zeros((HUGE,)), (errors.OutOfMemoryError, MemoryError), "memory_limit"),
    "size": (lambda x: np.zeros((HUGE, HUGE)), (MemoryError,), "no machine"),
    "expansion": (lambda x: np.broadcast_to(x, (HUGE, 2, 3)) + 1, (MemoryError,), "memory_limit"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_faults(name):
    fault, classes, words = FAULTS[name]
    x = np.array(A)
    with pytest.raises(classes[0]) as caught:
        fault(x)
    assert all(isinstance(caught.value, c) for c in classes)
    assert words in str(caught.value)
    assert (x.asnumpy() == A).all()
    npx.waitall()
    assert np.dot(x, x.T).asnumpy().tolist() == (A @ A.T).tolist()


ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.floats(allow_nan=True),
    st.text(max_size=3),
    st.lists(st.integers(-2, 3), max_size=3),
    st.tuples(st.integers(-2, 3), st.integers(-2, 3)),
    st.sampled_from([(), (0,), (3,), (2, 3), (1, 0, 2)]).map(
        lambda shape: np.array(numpy.ones(shape, "float32"))
    ),
    st.just(numpy.ones(3, "complex64")),
    st.builds(object),
)


@pytest.mark.lengthy
@settings(max_examples=300, deadline=None)
@given(st.sampled_from(sorted(REGISTRY)), st.lists(ANYTHING, max_size=4))
def test_no_arguments_do_harm(name, arguments):
    """Whatever an operation is called with, it returns arrays or raises an ordinary error."""
    x = np.array(A)
    try:
        REGISTRY[name].operation(*arguments)
        npx.waitall()
    except (errors.HeterosisError, TypeError, ValueError, ArithmeticError, LookupError):
        pass
    assert (x + 1).asnumpy().tolist() == (A + 1).tolist()


@pytest.mark.parametrize("given", [", 0, 2)", "f4,(2,", "(1", "i4, f4", "é"])
def test_a_text_that_is_no_element_type(given):
    with pytest.raises(errors.DTypeError, match="is no element type"):
        np.ones(3, dtype=given)


@pytest.mark.parametrize("given", [np.ones(3), [1], {}, np.array(1)])
@pytest.mark.parametrize(
    "call",
    [
        lambda x, dtype: np.array(x, dtype), lambda x, dtype: npx.cast(x, dtype),
        lambda x, dtype: x.astype(dtype), lambda x, dtype: np.zeros_like(x, dtype),
        lambda x, dtype: np.sum(x, dtype=dtype), lambda x, dtype: np.random.normal(dtype=dtype),
    ],
)  # fmt: skip
def test_an_object_that_is_no_element_type(call, given):
    with pytest.raises((errors.DTypeError, errors.ArgumentError)) as caught:
        call(np.ones(3), given)
    assert "hash" not in str(caught.value)
