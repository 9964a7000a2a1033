"""Recording and going back: what is recorded, where gradients go, and what is refused."""

import threading

import numpy
import pytest

import heterosis
from heterosis import _core, autograd, gluon, np, npx
from heterosis.autograd import derivative
from heterosis.autograd.reverse import cotangents
from heterosis.autograd.rules.table import piecewise_constant
from heterosis.ir import views
from heterosis.ir.calls import collected, moved
from heterosis.ir.program import ASSEMBLE, INPUT, apply, constant
from heterosis.ir.types import TensorType
from heterosis.ops.math import elementwise
from heterosis.ops.math.cast import stop_gradient
from heterosis.runtime.errors import ArgumentError, AutogradError, DTypeError, UnsupportedError
from tests.ir.made_up import made_up


def variable(values, grad_req="write"):
    x = np.array(values)
    x.attach_grad(grad_req)
    return x


def gradient(function, *values):
    """The gradients of a function's sum for its arguments."""
    variables = [variable(v) for v in values]
    with autograd.record():
        y = function(*variables)
    y.backward()
    found = [v.grad.tolist() for v in variables]
    return found[0] if len(found) == 1 else found


# What real MXNet 1.9.1 answers, where the derivative is a matter of choice; but for the extremes
# of an array, which give each of equal elements everything there.
TIES = [
    (lambda x: x.max(), [[1, 2, 2]], [0, 0.5, 0.5]),
    (lambda x: x.min(axis=1), [[[1, 2, 1], [2, 3, 4]]], [[0.5, 0, 0.5], [1, 0, 0]]),
    (lambda x: np.max(np.stack([x, x])), [[1, 3]], [0, 1]),
    (lambda x: np.ptp(x), [[1, 3, 3, 1, 2]], [-0.5, 0.5, 0.5, -0.5, 0]),
    (lambda x: np.linalg.norm(x, ord=np.inf), [[-3, 3, 1]], [-0.5, 0.5, 0]),
    (np.sort, [[2, 1, 2]], [1, 1, 1]),
    (lambda x: np.median(x), [[1, 2, 2, 5]], [0, 0.5, 0.5, 0]),
    (np.maximum, [[1, 2, 3], [2, 2, 2]], [[0, 1, 1], [1, 0, 0]]),
    (np.minimum, [[1, 2, 3], [2, 2, 2]], [[1, 1, 0], [0, 0, 1]]),
    (np.abs, [[-1, 0, 3]], [-1, 0, 1]),
    (npx.relu, [[-1, 0, 3]], [0, 0, 1]),
    (lambda x: np.clip(x, 0, 3), [[-1, 0, 1, 3, 4]], [0, 1, 1, 1, 0]),
    (np.floor, [[0.5, 1]], [0, 0]),
]


@pytest.mark.parametrize("function, values, expected", TIES)
def test_where_there_is_no_single_derivative(function, values, expected):
    assert gradient(lambda *v: function(*v) * 1, *values) == expected


def test_prod_with_zeros():
    assert gradient(np.prod, [2.0, 0.0, 3.0]) == [0, 6, 0]
    assert gradient(np.prod, [2.0, 0.0, 0.0]) == [0, 0, 0]


def test_modes_nest_and_return_to_what_was():
    assert not autograd.is_recording() and not autograd.is_training()
    with autograd.record():
        assert autograd.is_recording() and autograd.is_training()
        with autograd.pause():
            assert not autograd.is_recording() and not autograd.is_training()
            with autograd.train_mode():
                assert not autograd.is_recording() and autograd.is_training()
        with autograd.predict_mode():
            assert autograd.is_recording() and not autograd.is_training()
        assert autograd.is_recording() and autograd.is_training()
    with autograd.record(train_mode=False):
        assert not autograd.is_training()
    assert not autograd.is_recording()


def test_modes_return_after_an_error():
    with pytest.raises(KeyError), autograd.record():
        raise KeyError
    assert not autograd.is_recording()


def test_recording_is_a_matter_of_each_thread():
    seen = []
    with autograd.record():
        thread = threading.Thread(target=lambda: seen.append(autograd.is_recording()))
        thread.start()
        thread.join()
    assert seen == [False]


def test_pause_and_detach_stop_gradients():
    x = variable([1.0, 2.0])
    with autograd.record():
        with autograd.pause():
            constant = x * 3
        y = constant * x + x.detach() * x
    y.backward()
    assert x.grad.tolist() == [4, 8]


def test_requests():
    x = variable([1.0, 2.0], "add")
    for _ in range(3):
        with autograd.record():
            y = x * 2
        y.backward()
    assert x.grad.tolist() == [6, 6]
    x.attach_grad("null")
    assert x.grad is None
    with pytest.raises(ArgumentError, match="grad_req='sum'; expected one of write, add, null"):
        x.attach_grad("sum")


def test_the_gradient_array_stays_the_same_object():
    x = variable([1.0])
    held = x.grad
    for factor in (2, 3):
        with autograd.record():
            y = x * factor
        y.backward()
        assert x.grad is held and held.item() == factor


def test_head_gradients_and_several_heads():
    x = variable([1.0, 2.0])
    with autograd.record():
        a, b = x * 2, x * 3
    autograd.backward([a, b], [np.array([1.0, 10.0]), np.array([100.0, 1000.0])])
    assert x.grad.tolist() == [302, 3020]
    with autograd.record():
        a = x * 2
    with pytest.raises(ArgumentError, match=r"shape \(3,\) for a head of shape \(2,\)"):
        a.backward(np.ones(3))


def test_a_variable_in_the_middle_cuts_the_record():
    x = variable([1.0, 2.0])
    with autograd.record():
        y = x * 2
        y.attach_grad()
        z = y * x
    z.backward()
    assert x.grad.tolist() == [2, 4] and y.grad.tolist() == [1, 2]


def test_retained_graphs():
    x = variable([1.0, 2.0])
    with autograd.record():
        y = np.exp(x)
    y.backward(retain_graph=True)
    first = x.grad.tolist()
    y.backward()
    assert x.grad.tolist() == first
    with pytest.raises(AutogradError, match="retain_graph=True"):
        y.backward()


def test_what_was_not_recorded_has_no_gradient():
    x = variable([1.0])
    y = x * 2
    with pytest.raises(AutogradError, match=r"with autograd.record\(\)"):
        y.backward()
    with pytest.raises(AutogradError, match="attach_grad"):
        autograd.grad(y, np.ones(1))


@pytest.mark.parametrize("mode", ["raise", "clip", "wrap"])
def test_indices_that_are_floats_receive_zeros(mode):
    """Fractions of them are cut off: what they find changes in steps."""

    def function(x, index):
        return np.take(x * x, index, mode=mode).sum()

    for run in (function, heterosis.hybridize(function)):
        assert gradient(run, [1.0, 2.0, 3.0], [1.5, 1.0, 2.25]) == [[0, 8, 6], [0, 0, 0]]


def test_views_and_indexing():
    assert gradient(lambda x: x[1:] * 2, [1.0, 2.0, 3.0]) == [0, 2, 2]
    assert gradient(lambda x: x[::-2] * np.array([1.0, 2.0]), [1.0, 2.0, 3.0]) == [2, 0, 1]
    assert gradient(lambda x: x.T[0] * 2, [[1.0, 2.0], [3.0, 4.0]]) == [[2, 0], [2, 0]]
    assert gradient(lambda x: x[None, ..., 0] * 2, [[1.0, 2.0]]) == [[2, 0]]
    assert gradient(lambda x: x[np.array([0, 0, 2])] * 2, [1.0, 2.0, 3.0]) == [4, 0, 2]
    assert gradient(lambda x: x[np.array([1, 0, 1], dtype=bool)] * 2, [1.0, 2.0, 3.0]) == [2, 0, 2]
    assert gradient(lambda x: x.reshape(3, 1)[1] * 2, [1.0, 2.0, 3.0]) == [0, 2, 0]


def test_writes_into_what_is_no_variable():
    def slices(x):
        y = np.zeros((4,))
        y[1:3] = x * 3
        y[0] = 5.0
        return y * y

    assert gradient(slices, [1.0, 2.0]) == [18, 36]

    def operators(x):
        y = x * 2
        y += x
        y[0] = 0.0
        return y

    assert gradient(operators, [1.0, 2.0]) == [0, 3]

    def places(x):
        y = np.zeros((3,))
        y[np.array([0, 2, 2])] = x
        return y

    assert gradient(places, [1.0, 2.0, 3.0]) == [1, 0, 1]

    def places_in_a_part(x):
        y = x[:3].reshape(1, 3) * np.ones((2, 1))
        y[1:, np.array([0, 2])] = x[3:] * 2
        return y

    assert gradient(places_in_a_part, [1.0, 2.0, 3.0, 4.0, 5.0]) == [1, 2, 1, 2, 2]


@pytest.mark.parametrize("hybrid", [False, True])
@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize(
    "key",
    [
        numpy.s_[::-1],
        numpy.s_[[3, 2, 1, 0]],
        numpy.s_[:, ::-1],
        numpy.s_[:, [2, 1, 0]],
        numpy.s_[...],
    ],
)
def test_an_array_is_written_to_places_of_its_own(key, recorded, hybrid):
    """All is read before anything is written, whether or not that is recorded."""

    def function(x):
        y = x * 2
        y[key] = y
        return y

    x = variable(numpy.arange(12.0, dtype="float32").reshape(4, 3))
    run = heterosis.hybridize(function) if hybrid else function
    expected = 2 * x.asnumpy()
    expected[key] = expected.copy()
    if not recorded:
        assert run(x).tolist() == expected.tolist()
        return
    with autograd.record():
        y = run(x)
    assert y.tolist() == expected.tolist()
    seed = numpy.arange(12.0, dtype="float32").reshape(4, 3) + 1
    y.backward(np.array(seed))
    assert x.grad.tolist() == (2 * seed[key]).tolist()


def test_writes_that_gradients_cannot_follow_are_refused():
    x = variable([1.0, 2.0])
    with autograd.record():
        with pytest.raises(AutogradError, match="a variable with a gradient is written to"):
            x += 1
        with pytest.raises(AutogradError, match="a variable with a gradient is written to"):
            x[0] = 1.0
        y = x * 2
        part = y[1:]
        with pytest.raises(AutogradError, match="through a view"):
            part += 1
    assert x.tolist() == [1, 2] and y.tolist() == [2, 4]


def test_what_backward_needs_must_not_have_been_written_to():
    x = variable([1.0, 2.0])
    with autograd.record():
        y = x * 3
        z = y * 2
        y += 1  # no gradient needs what y was
    z.backward()
    assert x.grad.tolist() == [6, 6]
    with autograd.record():
        y = np.exp(x)
        z = y * 1
    y += 1
    with pytest.raises(AutogradError, match="written to after it was used"):
        z.backward()


def test_a_stale_view_is_noticed():
    x = variable([1.0, 2.0])
    with autograd.record():
        y = x * 2
        part = y[1:]
        y *= 3
        with pytest.raises(AutogradError, match="written to through another"):
            part * 2


def test_a_head_that_was_overwritten_is_noticed():
    x = variable([1.0, 2.0])
    with autograd.record():
        y = x * x
        turned = y[::-1]
        y *= 3
    with pytest.raises(AutogradError, match="written to through another"):
        turned.backward()
    y.backward()
    assert x.grad.tolist() == [6, 12]


@pytest.mark.parametrize("prepare", [lambda f: f, heterosis.hybridize])
def test_a_write_to_a_variable_through_an_earlier_view(prepare):
    x = variable([1.0, 2.0])
    part = x[1:]

    def head():
        with autograd.record():
            part[...] = 5
            return (x * x).sum()

    with pytest.raises(AutogradError, match="a variable with a gradient is written to"):
        prepare(head)()
    assert x.tolist() == [1, 2]


def test_variables_may_change_between_recordings():
    x = variable([1.0])
    for _ in range(3):
        with autograd.record():
            y = x * x
        y.backward()
        x -= 0.25 * x.grad
    assert x.item() == 0.125


def test_higher_orders():
    x = variable(2.0)
    with autograd.record():
        y = x**5
        for expected in (80.0, 160.0, 240.0):
            (y,) = autograd.grad(y, x, create_graph=True)
            assert y.item() == pytest.approx(expected)
    y.backward()
    assert x.grad.item() == pytest.approx(240.0)


def test_gradient_of_what_lies_between():
    x = variable([1.0, 2.0])
    with autograd.record():
        y = x * 2
        z = y * y
    (of_y, of_x) = autograd.grad(z, [y, x])
    assert of_y.tolist() == [4, 8] and of_x.tolist() == [8, 16]
    assert x.grad.tolist() == [0, 0]


@pytest.mark.parametrize("hybrid", [False, True])
@pytest.mark.parametrize(
    "function",
    [
        lambda x, z: x + z,
        lambda x, z: (x + z).reshape(3, 2),
        lambda x, z: (x - z)[:, ::-1],
        lambda x, z: np.flip(x, 0).T - z.T,
    ],
)
def test_gradients_are_new_arrays(function, hybrid):
    """A sum hands on what it receives to both, a view a view of it."""

    def run(x, z, dy):
        x, z, dy = x.copy(), z.copy(), dy.copy()
        x.attach_grad()
        z.attach_grad()
        with autograd.record():
            y = function(x, z)
        dx, dz = autograd.grad([y], [x, z], [dy])
        dy[:] = 7
        dx[:] += 1
        return dx, dz, dy

    shape = function(np.ones((2, 3)), np.ones((2, 3))).shape
    call = heterosis.hybridize(run) if hybrid else run
    dx, dz, dy = call(np.ones((2, 3)), np.ones((2, 3)), np.ones(shape))
    assert (dx == 2).all()
    assert (np.abs(dz) == 1).all()
    assert (dy == 7).all()


@pytest.mark.parametrize("move", [lambda x: np.roll(x, 3, 1), lambda x: np.flip(x, 1)])
def test_what_slices_of_one_array_receive_is_put_together_once(monkeypatch, move):
    """An array of zeros for each of them, and their sums, would take several times as long."""
    programs, plan = [], derivative.eager.plan

    def planned(program, *arguments, **options):
        programs.append(program)
        return plan(program, *arguments, **options)

    monkeypatch.setattr(derivative.eager, "plan", planned)
    x = variable(numpy.zeros((5, 13)))  # a shape of its own: programs are kept
    with autograd.record():
        y = move(x)
    programs.clear()
    y.backward(np.arange(65.0).reshape(5, 13))
    assert (move(x.grad) == np.arange(65.0).reshape(5, 13)).all()
    (backward,) = (p for p in programs if p.name.endswith("(backward)"))
    assembled = [n for n in backward.nodes() if n.primitive is ASSEMBLE]
    assert len(assembled) <= 1 and not any(n.attributes["filled"] for n in assembled)


def test_one_variable_gives_a_list_too():
    x = variable([1.0, 2.0])
    with autograd.record():
        y = x * x
    found = autograd.grad(y, x)
    assert isinstance(found, list) and [g.tolist() for g in found] == [[2, 4]]


@pytest.mark.parametrize("dtype", ["int32", "int64", "bool", "uint8"])
def test_variables_are_floats(dtype):
    x = np.ones(2, dtype=dtype)
    with pytest.raises(DTypeError, match=f"an array of {dtype} cannot be a variable"):
        x.attach_grad()
    with pytest.raises(DTypeError, match="only floats have gradients"):
        autograd.mark_variables([x], [np.zeros(2)])
    x.attach_grad("null")
    assert x.grad is None
    parameter = gluon.Parameter("steps", shape=(2,), dtype=dtype, init="zeros")
    with pytest.raises(DTypeError, match="parameter 'steps'"):
        parameter.initialize()
    gluon.Parameter("steps", shape=(2,), dtype=dtype, init="zeros", grad_req="null").initialize()


def test_arrays_in_lists_are_part_of_the_record():
    def function(x, y):
        return (np.array([[x[0], 2 * y[1]], [3.0, x[1]]]) ** 2).sum()

    wanted = [[2, 8], [0, 32]]
    assert gradient(function, [1.0, 4.0], [5.0, 4.0]) == wanted
    assert gradient(heterosis.hybridize(function), [1.0, 4.0], [5.0, 4.0]) == wanted
    assert gradient(lambda x: np.array([x, x]).sum(), [1.0, 4.0]) == [2, 2]


def test_what_runs_on_the_host_refuses_gradients():
    x = variable([3.0, 1.0, 2.0])
    for function in (np.unwrap, numpy.add.accumulate, np.unique, lambda x: np.nanmax(x * 2)):
        with autograd.record(), pytest.raises(UnsupportedError, match="no gradient flows"):
            function(x)
        with autograd.record():
            assert function(x.detach())._autograd is None
            with autograd.pause():
                function(x)
    with autograd.record():
        assert np.searchsorted(np.array([1.0, 2.0]), x)._autograd is None  # no floats come of it


def test_a_gradient_does_not_end_in_what_encodes_it():
    """A primitive from floats to integers says that it is constant in between, or is refused."""
    bits, numbers = made_up("bits"), made_up("numbers")
    x, g = (apply(INPUT, (), TensorType((3,), "float32")) for _ in range(2))
    encoded = apply(bits, (x,), TensorType((3,), "int32"))
    y = apply(numbers, (elementwise.add(encoded, encoded),), x.type)
    with pytest.raises(UnsupportedError, match="numbers has no gradient"):
        cotangents([y], [g], [x], ())
    piecewise_constant(bits)
    assert cotangents([y], [g], [x], ()) == [None]


def test_moved_programs_keep_gradients_of_their_own():
    x, z = (apply(INPUT, (), TensorType((3,), "float32")) for _ in range(2))
    with collected() as calls:
        stopped = elementwise.add(stop_gradient(elementwise.negative(x)), x)
    (again,), others = moved((stopped,), calls, {x: z})
    given = views.broadcast(constant(1.0, "float32"), (3,))
    assert cotangents([stopped], [given], [x], calls) == [given]
    assert cotangents([again], [given], [z], others) == [given]


def test_mark_variables():
    x, y = np.ones(2), np.ones(3)
    gx, gy = np.zeros(2), np.full(3, 7.0)
    autograd.mark_variables([x, y], [gx, gy], ["write", "add"])
    with autograd.record():
        z = (x * 2).sum() + (y * 3).sum()
    z.backward()
    assert gx.tolist() == [2, 2] and gy.tolist() == [10, 10, 10] and x.grad is gx
    with pytest.raises(ArgumentError, match=r"shape \(3,\) for a variable of shape \(2,\)"):
        autograd.mark_variables([x], [gy])


class Sigmoid(autograd.Function):
    def forward(self, x):
        y = 1 / (1 + np.exp(-x))
        self.save_for_backward(y)
        return y

    def backward(self, dy):
        (y,) = self.saved_tensors
        return dy * y * (1 - y)


def test_functions_of_ones_own():
    got = gradient(lambda x: Sigmoid()(x) * 2, [0.0, 1.0])
    expected = gradient(lambda x: npx.sigmoid(x) * 2, [0.0, 1.0])
    assert got == pytest.approx(expected)
    twice = Sigmoid()
    twice(np.ones(1))
    with pytest.raises(AutogradError, match="once"):
        twice(np.ones(1))


class Wrong(Sigmoid):
    def backward(self, dy):
        return dy, dy


def test_a_function_that_returns_too_many_gradients():
    x = variable([1.0])
    with autograd.record():
        y = Wrong()(x)
    with pytest.raises(AutogradError, match="2 gradients for 1 arguments"):
        y.backward()


def test_element_types():
    x = np.array([1.0, 2.0], dtype="float16")
    x.attach_grad()
    with autograd.record():
        y = (x.astype("float64") * 3).sum() + (x * np.array([1, 2])).sum()
    y.backward()
    assert x.grad.dtype == "float16" and x.grad.tolist() == [4, 5]


def test_a_loop_keeps_nothing():
    x = variable(numpy.ones(10))
    before = _core.memory_counters()["live"]
    with autograd.record():
        y = x
        for _ in range(5000):
            y = y + x
    y.backward()
    assert x.grad.tolist() == [5001] * 10
    npx.waitall()
    del y
    assert _core.memory_counters()["live"] < before + 4096


def test_what_has_no_gradient_says_so():
    x = variable(numpy.diag([1.0, 2.0]))
    with autograd.record(), pytest.raises(UnsupportedError, match="has no gradient"):
        np.linalg.eig(x)


def _positive(rng, n=4):
    a = rng.normal(size=(n, n))
    return a @ a.T + n * numpy.eye(n)


# Results that are not unique, so that the registry has no samples: functions that are.
LINEAR_ALGEBRA = {
    "cholesky": lambda a: np.linalg.cholesky(a),
    "upper": lambda a: np.linalg.cholesky(a, upper=True),
    "eigvalsh": lambda a: np.linalg.eigvalsh(a),
    "eigh": lambda a: np.abs(np.linalg.eigh(a)[1]),
    "svd": lambda a: np.abs(np.linalg.svd(a[:, :3])[0]) @ np.abs(np.linalg.svd(a[:, :3])[2]),
    "wide svd": lambda a: np.abs(np.linalg.svd(a[:3])[0]) @ np.abs(np.linalg.svd(a[:3])[2]),
    "singular values": lambda a: np.linalg.svd(a, compute_uv=False),
    "qr": lambda a: np.abs(np.linalg.qr(a[:, :3])[0]) @ np.abs(np.linalg.qr(a[:, :3])[1]),
}


@pytest.mark.parametrize("name", LINEAR_ALGEBRA)
def test_linear_algebra(name):
    rng = numpy.random.default_rng(3)
    a, direction = _positive(rng), rng.normal(size=(4, 4))
    direction = direction + direction.T  # the triangle that is not read moves along
    weight = None

    def f(x):
        nonlocal weight
        y = LINEAR_ALGEBRA[name](x)
        if weight is None:
            weight = np.array(rng.normal(size=y.shape))
        return (y * weight).sum()

    x = np.array(a)
    x.attach_grad()
    with autograd.record():
        y = f(x)
    y.backward()
    step = 1e-5
    slope = (f(np.array(a + step * direction)) - f(np.array(a - step * direction))) / (2 * step)
    assert (x.grad * np.array(direction)).sum().item() == pytest.approx(slope.item(), rel=1e-6)
