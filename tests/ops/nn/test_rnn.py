"""Fused recurrent layers against their formulas, one step after the other, and their gradients."""

import numpy
import pytest

import heterosis
from heterosis import autograd, np, npx
from heterosis.backends.native.compile.plans import machine
from heterosis.backends.native.stages.pipeline import for_processor
from heterosis.capture.attempts import capture
from heterosis.capture.captured import Outside
from heterosis.runtime import modes
from heterosis.runtime.errors import ArgumentError, HeterosisError, ShapeError, UnsupportedError

MODES = ("rnn_relu", "rnn_tanh", "lstm", "gru")
GATES = {"rnn_relu": 1, "rnn_tanh": 1, "lstm": 4, "gru": 3}
# (layers, bidirectional, projection)
NETWORKS = [(mode, *kind, None) for mode in MODES for kind in ((1, False), (2, True))]
NETWORKS += [("lstm", 2, True, 3), ("lstm", 1, False, 3)]


def shapes(mode, inputs, units, layers, both, projection):
    """Of all weights, then of all biases."""
    outputs, directions, wide = projection or units, 1 + both, GATES[mode] * units
    found = []
    for layer in range(layers):
        for _ in range(directions):
            found += [(wide, outputs * directions if layer else inputs), (wide, outputs)]
            found += [(projection, units)] if projection else []
    return found + [(wide,)] * (2 * layers * directions)


def sigmoid(x):
    return 1 / (1 + numpy.exp(-x))


def step(mode, x, h, c, weights, biases, units):
    a, b = x @ weights[0].T + biases[0], h @ weights[1].T + biases[1]
    if mode == "gru":
        (r, z, n), (rb, zb, nb) = numpy.split(a, 3, 1), numpy.split(b, 3, 1)
        z = sigmoid(z + zb)
        return (1 - z) * numpy.tanh(n + sigmoid(r + rb) * nb) + z * h, c
    if mode != "lstm":
        return numpy.tanh(a + b) if mode == "rnn_tanh" else numpy.maximum(a + b, 0), c
    i, f, g, o = numpy.split(a + b, 4, 1)
    c = sigmoid(f) * c + sigmoid(i) * numpy.tanh(g)
    h = sigmoid(o) * numpy.tanh(c)
    return (h @ weights[2].T if len(weights) > 2 else h), c


def reference(mode, layers, both, projection, units, x, parameters, h0, c0=None):
    """Outputs, last states and, for 'lstm', last memories."""
    parts, at = [], 0
    for shape in shapes(mode, x.shape[2], units, layers, both, projection):
        size = int(numpy.prod(shape))
        parts.append(parameters[at : at + size].reshape(shape))
        at += size
    count = layers * (1 + both)
    each = len(parts[: -2 * count]) // count
    states, memories = [], []
    for layer in range(layers):
        outputs = []
        for direction in range(1 + both):
            i = layer * (1 + both) + direction
            weights, biases = parts[each * i :][:each], parts[each * count + 2 * i :][:2]
            h, c = h0[i], None if c0 is None else c0[i]
            found = []
            for own in x[::-1] if direction else x:
                h, c = step(mode, own, h, c, weights, biases, units)
                found.append(h)
            outputs.append(numpy.stack(found[::-1] if direction else found))
            states.append(h)
            memories.append(c)
        x = numpy.concatenate(outputs, -1)
    states = [x, numpy.stack(states)]
    return [*states, numpy.stack(memories)] if mode == "lstm" else states


def operands(mode, layers, both, projection, steps=3, batch=2, inputs=4, units=5, seed=0):
    rng = numpy.random.default_rng(seed)
    count = layers * (1 + both)
    size = sum(int(numpy.prod(s)) for s in shapes(mode, inputs, units, layers, both, projection))
    found = [
        rng.normal(size=(steps, batch, inputs)),
        rng.normal(size=size) * 0.3,
        rng.normal(size=(count, batch, projection or units)),
    ]
    return [*found, rng.normal(size=(count, batch, units))] if mode == "lstm" else found


def run(mode, layers, both, projection, arrays, units=5, **more):
    return npx.rnn(
        *arrays, state_size=units, num_layers=layers, bidirectional=both, mode=mode,
        projection_size=projection, **more,
    )  # fmt: skip


# Few rows, which read the weights as they lie, and more, for which they are packed.
SIZES = [(network, 7, 19) for network in NETWORKS] + [(n, 1, 5) for n in NETWORKS if n[1] == 1]
# Whole blocks of units, whose gates are computed with their products, to and fro.
SIZES += [((mode, 1, False, None), batch, 64) for mode in MODES for batch in (1, 3, 7)]


@pytest.mark.parametrize("network, batch, units", SIZES, ids=str)
def test_matches_the_formulas(network, batch, units):
    given = operands(*network, batch=batch, units=units)
    arrays = [np.array(a.astype("float32")) for a in given]
    found = run(*network, arrays, units, state_outputs=True)
    expected = reference(*network, units, *given)
    for a, b in zip(found, expected, strict=True):
        numpy.testing.assert_allclose(a.asnumpy(), b, rtol=1e-5, atol=1e-5)
    with autograd.record(train_mode=False):  # which goes another way
        recorded = run(*network, arrays, units, state_outputs=True)
    for a, b in zip(recorded, expected, strict=True):
        numpy.testing.assert_allclose(a.asnumpy(), b, rtol=1e-5, atol=1e-5)


@pytest.fixture
def threads_stay():
    before = npx.settings.threads
    yield
    npx.settings.threads = before


@pytest.mark.parametrize("batch", [1, 17, 67])
@pytest.mark.parametrize("mode", MODES)
def test_threads_share_the_units_or_the_rows(mode, batch, threads_stay):
    """A few rows by units, several blocks of which one thread takes at once; many by rows, of which
    a thread computes all steps, once or twice."""
    given = operands(mode, 1, False, None, batch=batch, units=256)
    arrays = [np.array(a.astype("float32")) for a in given]
    expected, found = reference(mode, 1, False, None, 256, *given), []
    for threads in (1, 2):
        npx.settings.threads = threads
        found.append(run(mode, 1, False, None, arrays, 256, state_outputs=True))
        npx.waitall()
    for one, two, wanted in zip(*found, expected, strict=True):
        assert (one == two).all()
        numpy.testing.assert_allclose(one.asnumpy(), wanted, rtol=1e-5, atol=2e-4)


# Inputs as wide as the outputs, whose product is one with that of the outputs; of the last two, not
# all rows fill tiles, and the inputs of the second layer are wider.
JOINED = [(mode, 1, False, None, 16, 32) for mode in MODES]
JOINED += [("lstm", 2, False, None, 33, 64), ("rnn_tanh", 2, True, None, 17, 32)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("network", JOINED, ids=str)
def test_products_of_inputs_and_states_are_one(network, dtype, threads_stay):
    npx.settings.threads = 1
    *network, batch, units = network
    x, weights, *states = operands(*network, steps=4, batch=batch, units=units, inputs=units)
    weights = np.array(weights, dtype)
    net = heterosis.hybridize(
        lambda x, *states: run(*network, [x, weights, *states], units, state_outputs=True)
    )
    given = [np.array(a, dtype) for a in (x, *states)]
    expected = reference(*network, units, x, weights.asnumpy().astype("float64"), *states)
    near = 1e-5 if dtype == "float32" else 1e-12
    for _ in range(2):
        for a, b in zip(net(*given), expected, strict=True):
            numpy.testing.assert_allclose(a.asnumpy(), b, rtol=near, atol=near)
    captured = capture(net.function, given, {})
    inputs = zip(captured.program.inputs, captured.sources, strict=True)
    fixed = [value for value, source in inputs if isinstance(source, Outside)]
    found = str(for_processor(captured.program, fixed, machine()))
    assert ("_joined" in found) == (network[0] != "gru")


@pytest.mark.parametrize("states", [False, True])
@pytest.mark.parametrize("network", NETWORKS, ids=str)
def test_gradients(network, states):
    rng = numpy.random.default_rng(1)
    given = operands(*network, batch=5 if states else 2, units=3, seed=2)
    weights = None

    def total(arrays):
        nonlocal weights
        found = run(*network, arrays, 3, state_outputs=states)
        found = found if states else (found,)
        weights = weights or [np.array(rng.normal(size=y.shape)) for y in found]
        return sum((w * y).sum() for w, y in zip(weights, found, strict=True))

    variables = [np.array(a) for a in given]
    for v in variables:
        v.attach_grad()
    with autograd.record(train_mode=False):
        y = total(variables)
    y.backward()
    for i, variable in enumerate(variables):
        towards = rng.normal(size=given[i].shape)
        ends = []
        for sign in (1, -1):
            moved = [np.array(a) for a in given]
            moved[i] = np.array(given[i] + sign * 1e-6 * towards)
            with autograd.record(train_mode=False):
                ends.append(total(moved).item())
        slope = float((variable.grad.asnumpy() * towards).sum())
        assert slope == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-5, abs=1e-6)


@pytest.mark.lengthy
def test_differentiating_what_kept_nothing_gives_the_same():
    """As a traced program does: activations are computed again."""
    from heterosis.ops.nn.rnn import rnn

    for network in (("lstm", 1, False, 3), ("gru", 1, True, None)):
        mode, layers, both, projection = network
        gradients = []
        for function in (rnn, npx.rnn):
            x, parameters, *states = (np.array(a) for a in operands(*network))
            parameters.attach_grad()
            with autograd.record():
                y = function(
                    x, parameters, *states, state_size=5, num_layers=layers,
                    bidirectional=both, mode=mode, projection_size=projection,
                )  # fmt: skip
            y.backward()
            gradients.append(parameters.grad.asnumpy())
        numpy.testing.assert_allclose(*gradients, rtol=1e-9, atol=1e-12)


def test_half_precision_is_computed_in_single():
    given = operands("gru", 1, True, None)
    found = run("gru", 1, True, None, [np.array(a.astype("float16")) for a in given])
    assert found.dtype == "float16"
    (expected, _) = reference("gru", 1, True, None, 5, *given)
    numpy.testing.assert_allclose(found.asnumpy(), expected, atol=4e-3)


def test_without_states_the_outputs_come_alone():
    arrays = [np.array(a) for a in operands("gru", 1, False, None)]
    alone = run("gru", 1, False, None, arrays)
    both = run("gru", 1, False, None, arrays, state_outputs=True)
    assert len(both) == 2 and (both[0] == alone).all()


def test_no_steps_give_the_first_states():
    arrays = [np.array(a) for a in operands("lstm", 2, True, None, steps=0)]
    outputs, hidden, memory = run("lstm", 2, True, None, arrays, state_outputs=True)
    assert outputs.shape == (0, 2, 10)
    numpy.testing.assert_array_equal(hidden.asnumpy(), arrays[2].asnumpy())
    numpy.testing.assert_array_equal(memory.asnumpy(), arrays[3].asnumpy())


def test_dropout_between_layers_in_training_only():
    arrays = [np.array(a) for a in operands("gru", 2, False, None)]
    plain = run("gru", 2, False, None, arrays).asnumpy()
    assert (run("gru", 2, False, None, arrays, p=0.5).asnumpy() == plain).all()
    one = [np.array(a) for a in operands("gru", 1, False, None)]
    with modes.switched(training=True):
        np.random.seed(1)
        first = run("gru", 2, False, None, arrays, p=0.5).asnumpy()
        np.random.seed(1)
        assert (run("gru", 2, False, None, arrays, p=0.5).asnumpy() == first).all()
        assert (first != plain).any()
        alone = run("gru", 1, False, None, one, p=0.5).asnumpy()
    assert (alone == run("gru", 1, False, None, one).asnumpy()).all()


def test_errors_say_what_is_expected():
    x, parameters, h, c = (np.array(a) for a in operands("lstm", 1, False, None))
    facts = {"state_size": 5, "mode": "lstm"}
    with pytest.raises(ShapeError, match=r"parameters is of shape \(7,\); expected \(220,\)"):
        npx.rnn(x, np.zeros(7), h, c, **facts)
    with pytest.raises(ShapeError, match=r"state is of shape \(1, 2, 4\)"):
        npx.rnn(x, parameters, h[:, :, 1:], c, **facts)
    with pytest.raises(ShapeError, match="state_cell is missing"):
        npx.rnn(x, parameters, h, **facts)
    with pytest.raises(ShapeError, match=r"\(steps, batch, inputs\)"):
        npx.rnn(x[0], parameters, h, c, **facts)
    with pytest.raises(ArgumentError, match="rnn_tanh"):
        npx.rnn(x, parameters, h, state_size=5, mode="rnn")
    with pytest.raises(ArgumentError, match="projection_size"):
        npx.rnn(x, parameters, h, state_size=5, mode="gru", projection_size=2)
    with pytest.raises(ArgumentError, match="positive"):
        npx.rnn(x, parameters, h, mode="gru")
    for unsupported in ({"use_sequence_length": True}, {"lstm_state_clip_min": -1.0}):
        with pytest.raises(UnsupportedError):
            npx.rnn(x, parameters, h, c, **facts, **unsupported)
    with pytest.raises(HeterosisError):
        npx.rnn(x, parameters, h, c, **facts, p=2)
