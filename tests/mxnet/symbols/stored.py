"""Networks that MXNet has exported to the folder `data`.

`python -m tests.mxnet.symbols.stored` does it again.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from tests.differential.mxnet_process import MXNetProcess
from tests.mxnet.symbols.roundtrip import ask

STORED = [
    (
        "layers",
        (
            "filled(nn.HybridSequential(prefix='net_'), nn.Conv2D(3, 3, padding=1, "
            "activation='relu'), "
            "nn.BatchNorm(), nn.MaxPool2D(), nn.Dropout(0.5), nn.Dense(4, activation='tanh'), "
            "nn.LayerNorm(), nn.LeakyReLU(0.1), nn.Dense(2))"
        ),
        (2, 2, 4, 4),
    ),
    (
        "branches",
        (
            "filled(contrib.nn.HybridConcurrent(axis=1, prefix='net_'), nn.Dense(3), "
            "contrib.nn.Identity(), nn.PReLU(), nn.Swish(), nn.HybridLambda(lambda F, x: "
            "F.Reshape(x, shape=(0, -4, 2, -1)).sum(axis=1).tile(reps=(1, 2)) * 2))"
        ),
        (2, 4),
    ),
    (
        "recurrent",
        "filled(nn.HybridSequential(prefix='net_'), rnn.LSTM(2), nn.Dense(2))",
        (3, 2, 2),
    ),
]

if __name__ == "__main__":
    with closing(MXNetProcess()) as mxnet:
        ask(mxnet, "write", STORED, Path(__file__).with_name("data"))
