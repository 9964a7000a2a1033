"""Recurrent cells and layers: states, unrolling, modifiers, and what they refuse."""

import numpy
import pytest

from heterosis import autograd, np
from heterosis.gluon import rnn
from heterosis.runtime.errors import ArgumentError, ShapeError, UnsupportedError


def initialized(cell):
    cell.initialize()
    return cell


def test_states_are_made_by_a_function():
    cell = rnn.LSTMCell(3)
    assert [s.shape for s in cell.begin_state(2)] == [(2, 3)] * 2
    (a, b) = cell.begin_state(batch_size=2, func=np.ones, dtype="float64")
    assert (a == 1).all() and b.dtype.name == "float64"
    stack = rnn.SequentialRNNCell()
    stack.add(cell)
    stack.add(rnn.GRUCell(4))
    assert [s.shape for s in stack.begin_state(batch_size=1)] == [(1, 3), (1, 3), (1, 4)]
    assert len(stack) == 2 and stack[1]._hidden_size == 4


def test_a_step_and_an_unrolled_sequence_agree():
    cell = initialized(rnn.GRUCell(3))
    x = np.random.normal(size=(2, 4, 5))
    state = cell.begin_state(2)
    for t in range(4):
        output, state = cell(x[:, t], state)
    outputs, states = cell.unroll(4, x)
    assert isinstance(outputs, list) and len(outputs) == 4
    numpy.testing.assert_allclose(outputs[-1].asnumpy(), output.asnumpy(), rtol=1e-5)
    numpy.testing.assert_allclose(states[0].asnumpy(), state[0].asnumpy(), rtol=1e-5)
    merged, _ = cell.unroll(4, [x[:, t] for t in range(4)], layout="TNC", merge_outputs=True)
    assert merged.shape == (4, 2, 3)


def test_layers_and_their_cells_agree():
    layer = initialized(rnn.LSTM(3, 2, bidirectional=True, dropout=0.5, input_size=2))
    x = np.random.normal(size=(4, 2, 2))
    outputs, states = layer(x, layer.begin_state(2))
    stack = layer._unfuse()
    assert [type(c).__name__ for c in stack._children.values()] == [
        "BidirectionalCell", "DropoutCell", "BidirectionalCell",
    ]  # fmt: skip
    unrolled, _ = stack.unroll(4, x, layout="TNC", merge_outputs=True)
    numpy.testing.assert_allclose(unrolled.asnumpy(), outputs.asnumpy(), rtol=1e-4, atol=1e-6)
    assert [s.shape for s in states] == [(4, 2, 3)] * 2
    assert layer(x).shape == (4, 2, 6)


def test_gradients_flow_through_unrolled_cells():
    cell = initialized(rnn.RNNCell(3, input_size=2))
    x = np.random.normal(size=(2, 3, 2))
    with autograd.record():
        outputs, _ = cell.unroll(3, x, merge_outputs=True, valid_length=np.array([1, 3]))
        total = outputs.sum()
    total.backward()
    assert (np.abs(cell.h2h_weight.grad()).sum() > 0).item()


def test_dropout_and_zoneout_act_in_training():
    dropout = rnn.DropoutCell(0.5)
    x = np.ones((2, 3, 50))
    assert (dropout.unroll(3, x, merge_outputs=True)[0] == 1).all()
    with autograd.train_mode():
        dropped, _ = dropout.unroll(3, x, merge_outputs=True)
    assert set(dropped.asnumpy().ravel().tolist()) == {0.0, 2.0}
    base = rnn.RNNCell(50, input_size=50)
    zoneout = initialized(rnn.ZoneoutCell(base, zoneout_outputs=0.5))
    with autograd.train_mode():
        first, _ = zoneout(np.ones((1, 50)), zoneout.begin_state(1))
    kept = (first == 0).asnumpy().mean()
    assert 0.1 < kept < 0.9 and zoneout.params is base.params


def test_modified_cells_are_called_through_their_modifier():
    cell = rnn.GRUCell(3)
    residual = rnn.ResidualCell(cell)
    assert residual.name == "gru0_residualcell"
    with pytest.raises(ArgumentError, match="call the modifier"):
        cell.begin_state(1)
    with pytest.raises(ArgumentError, match="already modified"):
        rnn.ZoneoutCell(cell)
    assert residual.begin_state(2)[0].shape == (2, 3)


def test_what_cells_refuse():
    both = rnn.BidirectionalCell(rnn.GRUCell(2), rnn.GRUCell(2))
    with pytest.raises(UnsupportedError, match="unroll"):
        both(np.ones((1, 2)), both.begin_state(1))
    with pytest.raises(ArgumentError, match="each of its two cells"):
        rnn.ZoneoutCell(both)
    with pytest.raises(ShapeError, match=r"length=3.*4 steps"):
        initialized(rnn.GRUCell(2)).unroll(3, np.ones((1, 4, 2)))


def test_what_layers_refuse():
    layer = initialized(rnn.GRU(3, layout="NTC"))
    with pytest.raises(ShapeError, match=r"expected \[\(1, 2, 3\)\]"):
        layer(np.ones((2, 4, 5)), np.ones((1, 4, 3)))
    with pytest.raises(ShapeError, match=r"inputs of shape \(4,\); expected three dimensions, NTC"):
        layer(np.ones(4))
    with pytest.raises(ArgumentError, match="layout"):
        rnn.GRU(3, layout="CNT")
    with pytest.raises(ArgumentError, match="rnn_relu"):
        rnn.RNN(3, activation="cubic")


@pytest.mark.parametrize("hybridized", [False, True])
@pytest.mark.parametrize("kind", [rnn.RNN, rnn.LSTM, rnn.GRU])
def test_layers_begin_with_zeros_unless_states_are_given(kind, hybridized):
    layer = initialized(kind(3, 2, bidirectional=True, layout="NTC"))
    if hybridized:
        layer.hybridize()
    seen = []
    layer.register_forward_hook(lambda block, given, found: seen.append((len(given), type(found))))
    for batch in (2, 5, 1, 2):
        x = np.random.normal(size=(batch, 4, 5))
        outputs, states = layer(x, layer.begin_state(batch))
        assert (layer(x) == outputs).all() and len(states) == len(layer.state_info())
    assert set(seen) == {(2, tuple), (1, np.ndarray)}


def test_layers_can_be_cast():
    layer = initialized(rnn.LSTM(3, input_size=2))
    layer.cast("float64")
    assert layer.begin_state(1)[0].dtype.name == "float64"
    assert layer(np.ones((2, 1, 2), dtype="float64")).dtype.name == "float64"


def test_printing():
    assert repr(rnn.LSTMCell(3, input_size=2)) == "LSTMCell(2 -> 12)"
    assert repr(rnn.RNNCell(3)) == "RNNCell(-1 -> 3, tanh)"
    assert repr(rnn.GRU(3, 2, dropout=0.5, bidirectional=True)) == (
        "GRU(-1 -> 3, TNC, num_layers=2, dropout=0.5, bidirectional)"
    )
    assert repr(rnn.ZoneoutCell(rnn.GRUCell(2), 0.1)) == (
        "ZoneoutCell(p_out=0.1, p_state=0.0, GRUCell(-1 -> 6))"
    )


@pytest.mark.parametrize("layer", [rnn.RNN, rnn.LSTM, rnn.GRU])
def test_layers_say_that_they_take_no_lengths(layer):
    with pytest.raises(UnsupportedError, match=r"use_sequence_length=True.*valid_length"):
        layer(2, use_sequence_length=True)
    made = layer(2, use_sequence_length=False)
    made.initialize()
    x = np.ones((3, 2, 4))
    with pytest.raises(UnsupportedError, match=r"sequence_length is given.*valid_length"):
        made(x, sequence_length=np.array([1, 2]))
    assert made(x, sequence_length=None).shape == (3, 2, 2)
