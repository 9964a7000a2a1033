"""Recurrent cells and layers."""

from heterosis.gluon.rnn.cells import (
    BidirectionalCell,
    GRUCell,
    HybridRecurrentCell,
    HybridSequentialRNNCell,
    LSTMCell,
    RecurrentCell,
    RNNCell,
    SequentialRNNCell,
)
from heterosis.gluon.rnn.layers import GRU, LSTM, RNN
from heterosis.gluon.rnn.modifiers import DropoutCell, ModifierCell, ResidualCell, ZoneoutCell
from heterosis.runtime.arguments import check_members as _check_members

_check_members(globals())

__all__ = [
    "GRU",
    "LSTM",
    "RNN",
    "BidirectionalCell",
    "DropoutCell",
    "GRUCell",
    "HybridRecurrentCell",
    "HybridSequentialRNNCell",
    "LSTMCell",
    "ModifierCell",
    "RNNCell",
    "RecurrentCell",
    "ResidualCell",
    "SequentialRNNCell",
    "ZoneoutCell",
]
