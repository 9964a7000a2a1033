"""Networks that MXNet has exported to tests/symbol/data. To do it again:

`python -m tests.symbol.stored | MXNET_PYTHON tests/symbol/peer.py write tests/symbol/data`
"""

from __future__ import annotations

import json

STORED = [
    (
        "layers",
        (
            "filled(nn.HybridSequential(prefix='net_'), nn.Conv2D(3, 3, padding=1, activation='relu'), "
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
    print(json.dumps(STORED))
