"""What every process does in the tests of programs that run in several: python -m
tests.distributed.joined"""

import contextlib
import shutil
import tempfile
from pathlib import Path

import numpy

from heterosis import autograd, distributed, gluon, hybridize, np, npx
from heterosis.capture.sharded import Sharded
from heterosis.gluon import nn
from heterosis.runtime.errors import (
    ArgumentError,
    CaptureError,
    CommunicationError,
    ShapeError,
    UnsupportedError,
)
from tests.processes import raises

distributed.initialize()
RANK, COUNT = distributed.rank(), distributed.num_workers()
WHOLE = distributed.Sharding()


def together(function=None, **settings):
    if function is None:
        return lambda given: together(given, **settings)
    return hybridize(function, backend="xla", sharding=distributed.Sharding(**settings))


def part(whole):
    """The rows of this process."""
    rows = len(whole) // COUNT
    return whole[RANK * rows : (RANK + 1) * rows]


def data(rows=8 * 6, columns=5):
    generator = numpy.random.default_rng(0)
    x = generator.standard_normal((rows, columns)).astype("float32")
    return x, generator.integers(0, 3, rows).astype("int32")


def perceptron():
    net = nn.HybridSequential()
    net.add(nn.Dense(7, activation="tanh", in_units=5), nn.Dense(3, in_units=7))
    return net


def convolutions():
    """Layers that look at the batch, and random numbers: both are those of the whole batch."""
    net = nn.HybridSequential()
    net.add(
        nn.HybridLambda(lambda F, x: F.np.reshape(x, (-1, 1, 5, 1))),
        nn.Conv2D(4, (3, 1), in_channels=1, use_bias=False), nn.BatchNorm(in_channels=4),
        nn.Activation("relu"), nn.Dropout(0.3), nn.Flatten(), nn.Dense(3, in_units=12),
    )  # fmt: skip
    return net


def step_of(net, trainer, how):
    """A whole step of training, compiled by `how`."""
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()

    @how
    def step(x, y):
        with autograd.record():
            loss = loss_of(net(x), y)
        loss.backward()
        trainer.step(len(x))
        return loss.mean()

    return step


def trained(network, optimizer, settings, seed, cut, how):
    """Losses of a network, and its parameters after some steps."""
    np.random.seed(seed)
    net = network()
    net.initialize()
    if how is together:
        distributed.broadcast_parameters(net.collect_params())
    np.random.seed(5)  # of what is drawn in steps
    trainer = gluon.Trainer(net.collect_params(), optimizer, settings)
    step = step_of(net, trainer, how)
    x, y = data()
    losses = []
    for i in range(6):
        rows = slice(8 * COUNT * (i % 2), 8 * COUNT * (i % 2 + 1))
        losses.append(step(np.array(cut(x[rows])), np.array(cut(y[rows]))).item())
    parameters = [p.data().asnumpy().ravel() for p in net.collect_params().values()]
    return losses, numpy.concatenate(parameters), step


def training_is_that_of_one_process():
    cases = (
        (perceptron, "sgd", {"learning_rate": 0.5, "momentum": 0.9}),
        (convolutions, "adam", {"learning_rate": 0.1}),
    )
    for case in cases:
        expected, of_one, _ = trained(*case, 11, lambda rows: rows, hybridize)
        losses, found, step = trained(*case, 11 + RANK, part, together)
        numpy.testing.assert_allclose(losses, expected, rtol=2e-6)
        numpy.testing.assert_allclose(found, of_one, rtol=2e-5, atol=2e-6)
        rows = np.array(numpy.repeat(found[None], 2, 0))
        whole = together(lambda rows: rows * 1)(rows).asnumpy()
        assert (whole == whole[0]).all(), "processes hold other values"
        assert isinstance(step, Sharded) and step.captures == 1
        (text,) = step.texts
        assert COUNT == 1 or "all-reduce" in text
        assert "collective-permute" not in text  # no images are sent


def results_are_of_the_whole_batch():
    x, y = data()
    mine = np.array(part(x))
    doubled, total = together(lambda x: (x * 2, x.sum()))(mine)
    assert numpy.array_equal(doubled.asnumpy(), x * 2)
    numpy.testing.assert_allclose(total.item(), x.sum(), rtol=1e-4)
    assert together(len)(mine) == len(x)
    turned = np.array(numpy.ascontiguousarray(part(x).T)).T  # not row by row
    assert numpy.array_equal(together(np.negative)(turned).asnumpy(), -x)
    found = together(lambda batch: batch["x"] + batch["y"][0])({"x": mine, "y": [mine]})
    assert numpy.array_equal(found.asnumpy(), x + x)
    given = together(lambda x: x + 1)(part(y))  # an array of NumPy's
    assert numpy.array_equal(given, y + 1)
    for view in (lambda x: x[1:], lambda x: x.T, lambda x: x.reshape(-1, 2)):
        found = together(view)(mine)
        assert numpy.array_equal(found.asnumpy(), view(x))
        found[...] = 0  # memory of its own
    assert numpy.array_equal(mine.asnumpy(), part(x))
    again = np.zeros(x.shape)

    def keep(x):
        again[...] = x

    together(keep)(mine)
    assert numpy.array_equal(again.asnumpy(), x)


def wide():
    """Layers whose rows can be divided, but for those of the last."""
    net = nn.HybridSequential()
    net.add(
        nn.Dense(24, activation="tanh", in_units=5), nn.Dropout(0.3), nn.LayerNorm(in_channels=24),
        nn.Dense(16, activation="relu", in_units=24), nn.Dense(3, in_units=16),
    )  # fmt: skip
    return net


def is_divisible(name, shape):
    return shape[0] % 8 == 0


def trained_divided(optimizer, settings, divide, folder):
    """Losses of a network whose parameters are divided, or not; saved and loaded on the way."""
    np.random.seed(7)
    net = wide()
    net.initialize()
    if divide:
        chosen = distributed.shard_parameters(net.collect_params(), is_divisible)
        assert len(chosen) == 6 and not any("dense2" in name for name in chosen)
    trainer = gluon.Trainer(net.collect_params(), optimizer, settings)
    step = step_of(net, trainer, hybridize)
    x, y = data(rows=16 * COUNT)
    give = distributed.from_parts if divide else np.array
    mine = part if divide else (lambda rows: rows)
    np.random.seed(5)
    halves = [
        [give(np.array(mine(whole[rows]))) for whole in (x, y)]
        for rows in (slice(0, 8 * COUNT), slice(8 * COUNT, None))
    ]
    losses = [step(*halves[i % 2]).item() for i in range(4)]
    if divide:
        check_divided(net, trainer, chosen)
    net.save_parameters(str(folder / "net.params"))
    trainer.save_states(str(folder / "trainer.states"))
    np.random.seed(6)
    goes_on = [step(*halves[i % 2]).item() for i in range(2)]
    net.load_parameters(str(folder / "net.params"))
    trainer.load_states(str(folder / "trainer.states"))
    np.random.seed(6)
    again = [step(*halves[i % 2]).item() for i in range(2)]
    assert again == goes_on, (again, goes_on)
    if divide:
        check_divided(net, trainer, chosen)
    return losses + goes_on, [p.data().asnumpy() for p in net.collect_params().values()]


def check_divided(net, trainer, chosen):
    """Each process holds its rows alone of what was chosen: of values, gradients and states."""
    states = trainer._updater.states
    names = {parameter: name for name, parameter in net.collect_params().items()}
    for index, parameter in enumerate(trainer._params):
        name, state = names[parameter], states[index]
        arrays = [parameter.data(), parameter.grad()]
        arrays += state if isinstance(state, tuple) else [state]
        for array in arrays:
            if array is not None:
                shards = array._elements.addressable_shards
                held = sum(one.data.size for one in shards) // len(shards)
                fraction = COUNT * len(shards) if name in chosen else 1
                assert held * fraction == array.size, (name, held, array.shape)


def training_of_divided_parameters_is_that_of_one_process():
    with tempfile.TemporaryDirectory() as alone, shared_folder() as together_:
        cases = (
            ("sgd", {"learning_rate": 0.5, "momentum": 0.9}),
            ("adam", {"learning_rate": 0.05, "wd": 0.01}),
        )
        for case in cases:
            expected, of_one = trained_divided(*case, False, Path(alone))
            losses, found = trained_divided(*case, True, together_)
            numpy.testing.assert_allclose(losses, expected, rtol=5e-6)
            for mine, theirs in zip(found, of_one, strict=True):
                numpy.testing.assert_allclose(mine, theirs, rtol=5e-5, atol=5e-6)


@contextlib.contextmanager
def shared_folder():
    """A folder that process 0 makes, and all know."""
    folder = tempfile.mkdtemp() if RANK == 0 else ""
    padded = numpy.zeros(200, "uint8")
    padded[: len(folder)] = list(folder.encode())
    told = distributed._processes().of_one(0, padded)
    yield Path(bytes(told).rstrip(b"\0").decode())
    distributed.barrier()
    if RANK == 0:
        shutil.rmtree(folder)


def arrays_of_all_processes_are_like_others():
    here, there = npx.cpu(), distributed.context()
    x, y = data()
    whole, label = (distributed.from_parts(part(one)) for one in (x, y))
    assert whole.shape == x.shape and whole.ctx == there == whole.copy().ctx
    assert numpy.array_equal(whole.asnumpy(), x) and label.tolist() == y.tolist()
    assert repr(whole.ctx) == "processes(0)"
    numpy.testing.assert_allclose((whole @ whole.T).asnumpy(), x @ x.T, rtol=1e-5, atol=1e-6)
    assert numpy.array_equal(np.take(whole, label, axis=0).asnumpy(), x[y])
    assert numpy.array_equal(whole[3:5, ::2].T.asnumpy(), x[3:5, ::2].T)
    whole[1:3] = 2
    whole[5] += whole[6]
    x[1:3], x[5] = 2, x[5] + x[6]
    assert numpy.array_equal(whole.as_in_ctx(here).asnumpy(), x)
    again = np.array(x).as_in_ctx(there)
    assert again.ctx == there and (again == whole).all()
    again.attach_grad()
    with autograd.record():
        found = (again * whole).sum()
    found.backward()
    assert numpy.array_equal(again.grad.asnumpy(), x)
    view = whole.reshape(-1)
    view[:] = 1
    assert whole.sum().item() == x.size
    far = np.array([999]).as_in_ctx(there)
    raises(IndexError, "", lambda: np.take(whole, far, mode="raise").asnumpy())
    raises(ArgumentError, "one device", lambda: hybridize(lambda a, b: a @ b.T)(whole, np.array(x)))
    raises(UnsupportedError, "no memory", whole.__dlpack__)


def what_differs_between_processes_is_raised_by_all():
    there = distributed.context()
    raises(ArgumentError, "others in some", lambda: np.full((3,), RANK).as_in_ctx(there))
    raises(CommunicationError, "do not do the same", lambda: np.ones((2 + RANK,)).as_in_ctx(there))
    raises(CommunicationError, "", lambda: distributed.from_parts(np.ones((2 + 2 * RANK, 3))))
    x = np.ones((4, 3)).as_in_ctx(there)
    raises(CommunicationError, "do not do the same", lambda: x.sin() if RANK else x.cos())
    raises(CommunicationError, "the same numbers", lambda: x * (2.0 + RANK))
    net = wide()
    net.initialize()
    distributed.shard_parameters(net.collect_params(), is_divisible)
    weight = next(iter(net.collect_params().values())).data()
    raises(CommunicationError, "", weight.asnumpy if RANK else lambda: x + 1)
    assert (x + 1).sum().item() == 24  # and all can go on


def what_cannot_be_divided_is_refused():
    net = perceptron()
    net.initialize()
    params = net.collect_params()
    raises(ArgumentError, "picks none", lambda: distributed.shard_parameters(params, "other"))
    raises(ArgumentError, "rule=3", lambda: distributed.shard_parameters(params, 3))
    raises(ShapeError, "no multiple", lambda: distributed.shard_parameters(params, ".*weight"))
    raises(ShapeError, "first axis", lambda: distributed.from_parts(np.ones(())))
    raises(CaptureError, "", lambda: hybridize(distributed.from_parts)(np.ones((2, 2))))
    raises(ArgumentError, "no context", lambda: np.ones(2, ctx=npx.Context("processes", 1)))


def other_arguments_are_whole():
    x, _ = data()
    table = np.array(numpy.arange(5, dtype="float32"))
    step = together(lambda x, table, *, scale: x * table * scale, batch=("x",))
    found = step(np.array(part(x)), table, scale=3)
    numpy.testing.assert_allclose(found.asnumpy(), x * numpy.arange(5) * 3, rtol=1e-6)
    raises(ArgumentError, "no argument 'z'", lambda: together(np.sin, batch="z")(table))

    @together(batch="x")
    def shift(x, state):
        state += x.sum(0)
        return state

    assert shift(np.array(part(x)), table) is table
    numpy.testing.assert_allclose(table.asnumpy(), numpy.arange(5) + x.sum(0), rtol=1e-4)


def methods():
    class Model:
        def __init__(self):
            self.weight = np.full((5,), 2.0)

        @hybridize(backend="xla", sharding=WHOLE)
        def predict(self, x):
            return x @ self.weight

    x, _ = data()
    found = Model().predict(np.array(part(x)))
    numpy.testing.assert_allclose(found.asnumpy(), x.sum(1) * 2, rtol=1e-4, atol=1e-5)


def random_numbers_are_those_of_one_process():
    np.random.seed(3)
    expected = hybridize(lambda x: x + np.random.uniform(size=x.shape))(np.zeros((2 * COUNT, 4)))
    np.random.seed(3)
    found = together(lambda x: x + np.random.uniform(size=x.shape))(np.zeros((2, 4)))
    assert numpy.array_equal(found.asnumpy(), expected.asnumpy())


def other_values_are_refused_by_all():
    weight = np.full((5,), 1.0 + RANK)
    step = together(lambda x: x @ weight)
    mine = np.array(part(data()[0]))
    raises(ArgumentError, "broadcast_parameters", lambda: step(mine))
    weight[...] = 1
    step(mine)
    step(mine)
    weight[...] = 3
    step(mine)  # all have written the same
    if RANK:
        weight[0] = 2
    raises(ArgumentError, "float32[5]", lambda: step(mine))
    weight[...] = 1
    step(mine)


def other_calls_are_refused_by_all():
    mine = np.ones((2 + 2 * RANK, 3))
    step = together(lambda x: x + 1)
    raises(CommunicationError, "float32[", lambda: step(mine))
    other = together((lambda x: x + 1) if RANK else (lambda x: x - 1))
    raises(CommunicationError, "do not do the same", lambda: other(np.ones((2, 3))))
    call = distributed.barrier if RANK else lambda: step(np.ones((2, 3)))
    raises(CommunicationError, "barrier", call)
    distributed.barrier()  # and all can go on
    assert step(np.ones((2, 3))).shape == (2 * COUNT, 3)


def other_numbers_are_refused_by_all():
    weight = gluon.Parameter("weight", shape=(3,))
    weight.initialize()
    distributed.broadcast_parameters({"weight": weight})
    trainer = gluon.Trainer({"weight": weight}, "sgd", {"learning_rate": 0.5})

    @together
    def step(x):
        with autograd.record():
            loss = (x * weight.data()).sum()
        loss.backward()
        trainer.step(len(x))
        return loss

    step(np.ones((2, 3)))
    trainer.set_learning_rate(0.25 * (1 + RANK))
    raises(CommunicationError, "the same numbers", lambda: step(np.ones((2, 3))))
    np.random.seed(RANK)
    draw = together(lambda x: x + np.random.uniform(size=x.shape))
    raises(CommunicationError, "np.random.seed", lambda: draw(np.ones((2, 3))))
    np.random.seed(1)


def what_a_run_checks_is_raised_by_all():
    step = together(lambda x, at: np.take(x, at, mode="raise"), batch="x")
    x = np.arange(4.0)
    assert step(x, np.array([1], dtype="int32")).tolist() == [1]
    raises(IndexError, "", lambda: step(x, np.array([4 * COUNT], dtype="int32")).tolist())
    assert step(x, np.array([0], dtype="int32")).tolist() == [0]


def what_is_not_there_is_refused():
    mine = np.ones((2, 3))

    def writes(x):
        x += 1

    refused = {
        "writes to an argument": lambda: together(writes)(mine),
        "returns an argument": lambda: together(lambda x: x)(mine),
        "share its memory": lambda: together(lambda x: (x[:2], x[1:]))(mine),
        "gradients": lambda: recorded(together(np.sin), mine),
        "one process": lambda: hybridize(np.sin, sharding=WHOLE),
    }
    for text, function in refused.items():
        raises(UnsupportedError, text, function)
    variable = np.ones((2, 3))
    variable.attach_grad()
    raises(UnsupportedError, "detach", lambda: together(np.sin)(variable))
    raises(ShapeError, "a first axis", lambda: together(np.sin)(np.ones(())))
    inner = together(np.sin)
    raises(CaptureError, "part of another program", lambda: hybridize(lambda x: inner(x))(mine))
    raises(ArgumentError, "distributed.Sharding", lambda: hybridize(np.sin, sharding="x"))
    raises(ArgumentError, "for functions", lambda: together(perceptron()))
    raises(ArgumentError, "for functions", lambda: perceptron().hybridize(sharding=WHOLE))
    raises(ArgumentError, "check=True", lambda: hybridize(np.sin, sharding=WHOLE, check=True))
    raises(ArgumentError, "all processes", lambda: hybridize(inner, backend="native"))
    raises(ArgumentError, "but once", distributed.initialize)
    raises(ArgumentError, "root_rank", lambda: distributed.broadcast_parameters({}, COUNT))
    raises(CaptureError, "outside", lambda: hybridize(lambda x: distributed.barrier())(mine))


def recorded(function, x):
    with autograd.record():
        return function(x)


def programs_of_one_process_go_on():
    x = np.full((2,), RANK + 1.0)
    assert hybridize(lambda x: x * 2, backend="xla")(x).tolist() == [2 * RANK + 2] * 2


CASES = (
    training_is_that_of_one_process,
    results_are_of_the_whole_batch,
    training_of_divided_parameters_is_that_of_one_process,
    arrays_of_all_processes_are_like_others,
    what_differs_between_processes_is_raised_by_all,
    what_cannot_be_divided_is_refused,
    other_arguments_are_whole,
    methods,
    random_numbers_are_those_of_one_process,
    other_values_are_refused_by_all,
    other_calls_are_refused_by_all,
    other_numbers_are_refused_by_all,
    what_a_run_checks_is_raised_by_all,
    what_is_not_there_is_refused,
    programs_of_one_process_go_on,
)


def main():
    for case in CASES:
        case()
        distributed.barrier()
    if RANK == 0:
        print("passed", len(CASES), flush=True)
    npx.waitall()
    distributed.shutdown()


if __name__ == "__main__":
    main()
