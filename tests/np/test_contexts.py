"""Arrays on several contexts: results are where operands are, and nothing is mixed silently."""

import copy
import inspect
import pickle
import threading

import numpy
import pytest

import heterosis
from heterosis import autograd, npx
from heterosis import np as hnp
from heterosis.runtime.errors import ArgumentError

ONE = npx.cpu(1)


def _with_ctx(module):
    for name in dir(module):
        function = getattr(module, name)
        if name.startswith("_") or inspect.isclass(function) or not callable(function):
            continue
        try:
            parameters = inspect.signature(function).parameters
        except ValueError:
            continue
        if parameters.keys() & {"ctx", "device"}:
            yield name, function


# What has to be given besides, by the function's name or by the parameters' names.
_GIVEN = {
    "shape": (2, 3), "N": 3, "n": 3, "M": 3, "start": 1, "stop": 5, "num": 4, "step": 1, "obj": [1],
    "object": [1.0, 2.0], "source_array": [1.0], "prototype": hnp.ones(2), "a": hnp.ones(3),
    "x": hnp.ones(2), "dimensions": (2, 3), "fill_value": 2.0, "val": 2.0, "value": 2.0, "b": 1.0,
    "dtype": "float32", "low": 1, "high": 4, "size": (2,), "n_rows": 2, "df": 2.0,
    "data": hnp.ones((2, 3)), "axes": None,
}  # fmt: skip
_NOT_FOR_ARRAYS = {"seed", "load_parameters", "default_dtypes", "dtypes"}
_PLACES = {
    "np": hnp,
    "np.random": hnp.random,
    "npx": npx,
    "npx.random": npx.random,
    "nd": heterosis.nd,
    "nd.random": heterosis.nd.random,
    "array_api": heterosis.array_api,
}
_CALLS = [
    pytest.param(function, id=f"{place}.{name}")
    for place, module in _PLACES.items()
    for name, function in _with_ctx(module)
    if name not in _NOT_FOR_ARRAYS
]


@pytest.mark.main_memory("the current context is cpu(0)")
@pytest.mark.parametrize("function", _CALLS)
def test_results_are_on_the_context_that_is_named(function):
    parameters = inspect.signature(function).parameters
    given = {
        name: _GIVEN[name]
        for name, p in parameters.items()
        if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    }
    if "logit" in parameters:
        given["prob"] = 0.5
    named = "ctx" if "ctx" in parameters else "device"
    positional = [given.pop(n) for n in list(given) if parameters[n].kind == 0]

    def call(**more):
        found = function(*positional, **given, **more)
        return found[0] if isinstance(found, tuple | list) else found

    assert call(**{named: ONE}).ctx == ONE
    assert call(**{named: npx.cpu()}).ctx == npx.cpu()
    assert call().ctx == npx.cpu()
    if not any(isinstance(one, hnp.ndarray) for one in (*positional, *given.values())):
        with ONE:
            assert call().ctx == ONE


def test_there_are_such_functions():
    assert len(_CALLS) > 60


def test_results_are_where_operands_are():
    x = hnp.array([[1.0, 2.0], [3.0, 4.0]], ctx=ONE)
    found = {
        "operators": x * 2 + 1,
        "views": x[0].reshape(2, 1).T,
        "two results": hnp.split(x, 2)[1],
        "reductions": x.sum(axis=0),
        "lists": x + [1.0, 2.0],
        "NumPy's": x + numpy.ones(2, "float32"),
        "conditions": hnp.where(x > 2, x, 0.0),
        "several": hnp.concatenate([x, x]),
        "products": x @ x,
        "casts": x.astype("int32"),
        "chosen": x[hnp.array([True, False], ctx=ONE)],
        "like": hnp.zeros_like(x),
        "like, empty": hnp.empty_like(x),
        "deep": copy.deepcopy(x),
        "detached": x.detach(),
        "sorted": hnp.sort(x),
        "linear algebra": hnp.linalg.inv(x),
        "random": hnp.random.normal(x, 1.0),
        "networks": npx.softmax(x),
        "in place": x.__iadd__(1.0),
        "foreign": hnp.from_dlpack(x) if x.ctx == npx.cpu() else x,
    }
    assert {name: y.ctx for name, y in found.items()} == dict.fromkeys(found, ONE)


@pytest.mark.main_memory("the current context is cpu(0)")
@pytest.mark.parametrize(
    "mixed",
    [
        lambda x, y: x + y,
        lambda x, y: hnp.concatenate([x, y]),
        lambda x, y: hnp.where(x > 0, x, y),
        lambda x, y: x.__iadd__(y),
        lambda x, y: hnp.add(x, x, out=y),
        lambda x, y: hnp.dot(x, y),
        lambda x, y: x[y.astype("int32") - 1],
    ],
)
def test_operands_on_two_contexts_are_refused(mixed):
    x, y = hnp.ones(3), hnp.ones(3, ctx=ONE)
    with pytest.raises(ArgumentError, match=r"one array is on cpu\([01]\), another on cpu\([01]\)"):
        mixed(x, y)
    assert x.tolist() == y.tolist() == [1.0, 1.0, 1.0]


@pytest.mark.main_memory("the current context is cpu(0)")
def test_elements_are_copied_from_one_to_another():
    x, y = hnp.array([1.0, 2.0, 3.0]), hnp.zeros(3, ctx=ONE)
    y[:] = x
    assert (y.ctx, y.tolist()) == (ONE, [1.0, 2.0, 3.0])
    y[1:] = x[:2]
    x[:1].copyto(y[:1])
    moved = x.as_in_ctx(ONE)
    assert moved.ctx == ONE
    moved[0] = 7
    assert (x.tolist(), y.tolist(), moved.tolist()) == ([1, 2, 3], [1, 1, 2], [7, 2, 3])
    assert x.as_in_ctx(npx.cpu()) is x
    assert x.copyto(npx.cpu()) is not x
    assert hnp.array(x, ctx=ONE).ctx == ONE
    assert hnp.asarray(y, ctx=ONE) is y
    assert x.to_device(ONE).device == ONE
    assert pickle.loads(pickle.dumps(x)).tolist() == x.tolist()


def test_gradients_are_where_variables_are():
    x = hnp.array([1.0, 2.0], ctx=ONE)
    x.attach_grad()
    assert x.grad.ctx == ONE
    with autograd.record():
        y = hnp.where(x > 1, x * x, 0.0 * x)
    y.backward()
    assert (x.grad.ctx, x.grad.tolist()) == (ONE, [0.0, 4.0])
    with autograd.record():
        (grad,) = autograd.grad((x * x).sum(), [x], create_graph=True)
        z = (grad * grad).sum()
    z.backward(hnp.array(0.5, ctx=ONE))
    assert (x.grad.ctx, x.grad.tolist()) == (ONE, [4.0, 8.0])
    with autograd.record():
        (unused,) = autograd.grad([x.sum()], [x * 1.0]) if False else autograd.grad(x.sum(), x)
    assert unused.ctx == ONE


@pytest.mark.main_memory("the current context is cpu(0)")
def test_contexts_are_each_threads_own():
    found = []

    def run():
        found.append(hnp.ones(2).ctx)

    with ONE:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        assert hnp.ones(2).ctx == npx.current_context() == ONE
        with npx.cpu(2):
            assert hnp.ones(2).ctx == npx.cpu(2)
        assert hnp.ones(2).ctx == ONE
    assert found == [npx.cpu()]
    assert hnp.ones(2).ctx == npx.cpu()


@pytest.mark.parametrize("number", [-1, 1 << 15])
def test_numbers_of_contexts_have_bounds(number):
    with pytest.raises(ArgumentError, match="expected a number from 0 to"):
        hnp.ones(2, ctx=npx.cpu(number))


def test_helpers_are_made_where_operands_are():
    x = hnp.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], ctx=ONE)
    found = {
        "rows": x[[0, 2]],
        "elements": x[[0, 2], [1, 0]],
        "taken": hnp.take(x, [1, 2], axis=0),
        "inserted": hnp.insert(x, 1, [7.0, 8.0], axis=0),
        "deleted": hnp.delete(x, [0], axis=0),
        "unique": hnp.unique(x),
        "percentile": hnp.percentile(x, [25, 50]),
        "picked": npx.pick(x, [0, 1, 0]),
        "lists": hnp.concatenate([x, [[9.0, 9.0]]]),
        "chosen": hnp.choose([0, 1], x[:2]),
        "histogram": hnp.histogram(x, bins=3)[0],
        "foreach": npx.foreach(lambda row, s: (row + s, s + 1), x, hnp.zeros(2, ctx=ONE))[0],
        "older": heterosis.nd.one_hot(x[0], 4),
        "masked": npx.sequence_mask(x, [1, 2], True),
        "backwards": x[::-1],
        "method": x.take([0, 3]),
    }
    assert {name: y.ctx for name, y in found.items()} == dict.fromkeys(found, ONE)
    x[[0, 2]] = [[0.0, 1.0], [2.0, 3.0]]
    x[x > 3.5] = 9.0
    x[1] = hnp.array([7.0, 7.0])
    assert (x.ctx, x.tolist()) == (ONE, [[0, 1], [7, 7], [2, 3]])
    with autograd.record():
        pass
    y = hnp.ones((3, 2), ctx=ONE)
    y.attach_grad()
    with autograd.record():
        z = (y[[0, 0, 2]] * hnp.array([1.0, 2.0], ctx=ONE)).sum()
    z.backward()
    assert (y.grad.ctx, y.grad.tolist()) == (ONE, [[2, 4], [0, 0], [1, 2]])
