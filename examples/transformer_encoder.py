"""A transformer encoder learns to sort: python examples/transformer_encoder.py

It sees sequences of symbols and says for every place which symbol stands there in sorted order. For
that, every place has to attend to all others.
"""

import numpy
from shared import Report, options

from heterosis import autograd, gluon, init, np
from heterosis.gluon import nn

SYMBOLS, LENGTH, BATCH = 16, 12, 64


class SelfAttention(gluon.HybridBlock):
    """Every place gets a mean of all places' values, in each of several heads."""

    def __init__(self, units, heads, **kwargs):
        super().__init__(**kwargs)
        self.units, self.heads = units, heads
        self.project = nn.Dense(3 * units, flatten=False, use_bias=False)
        self.join = nn.Dense(units, flatten=False)

    def hybrid_forward(self, F, x):
        query, key, value = (self.apart(F, v) for v in F.np.split(self.project(x), 3, axis=-1))
        scores = F.npx.batch_dot(query, key, transpose_b=True) * (self.units // self.heads) ** -0.5
        mixed = F.npx.batch_dot(F.npx.softmax(scores), value)
        mixed = mixed.reshape((-1, self.heads, LENGTH, self.units // self.heads))
        return self.join(mixed.transpose((0, 2, 1, 3)).reshape((-1, LENGTH, self.units)))

    def apart(self, F, x):
        """(batch * heads, length, units / heads)"""
        x = x.reshape((-1, LENGTH, self.heads, self.units // self.heads))
        return x.transpose((0, 2, 1, 3)).reshape((-1, LENGTH, self.units // self.heads))


class EncoderLayer(gluon.HybridBlock):
    """Attention, then a network at each place, each added to its normalised input."""

    def __init__(self, units, heads, **kwargs):
        super().__init__(**kwargs)
        self.attention = nn.HybridSequential()
        self.attention.add(nn.LayerNorm(), SelfAttention(units, heads))
        self.network = nn.HybridSequential()
        self.network.add(
            nn.LayerNorm(), nn.Dense(2 * units, flatten=False), nn.GELU(),
            nn.Dense(units, flatten=False),
        )  # fmt: skip

    def hybrid_forward(self, F, x):
        x = x + self.attention(x)
        return x + self.network(x)


class Sorter(gluon.HybridBlock):
    """Symbols and places as vectors, encoder layers, and scores of all symbols."""

    def __init__(self, units=64, heads=4, layers=2, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.places = self.params.get("places", shape=(LENGTH, units), init=init.Normal(0.1))
        self.symbols = nn.Embedding(SYMBOLS, units)
        self.layers = nn.HybridSequential()
        for _ in range(layers):
            self.layers.add(EncoderLayer(units, heads))
        self.scores = nn.HybridSequential()
        self.scores.add(nn.LayerNorm(), nn.Dense(SYMBOLS, flatten=False))

    def hybrid_forward(self, F, x, places):
        return self.scores(self.layers(self.symbols(x) + places))


def batches(count, seed):
    """Pairs of sequences and the same sequences sorted."""
    generator = numpy.random.default_rng(seed)
    for _ in range(count):
        x = generator.integers(0, SYMBOLS, (BATCH, LENGTH)).astype("int32")
        yield np.array(x), np.array(numpy.sort(x))


def right(net, data):
    """The shares of places and of whole sequences that are right."""
    found = [net(x).argmax(-1) == y for x, y in data]
    places = np.concatenate(found).astype("float32")
    return places.mean().item(), places.min(1).mean().item()


def main():
    given = options(__doc__.partition("\n")[0])
    count, epochs, required = (60, 2, 0.2) if given.quick else (200, 5, 0.97)
    report = Report("Transformer encoder that sorts", given.output)
    np.random.seed(0)
    net = Sorter()
    net.initialize(init.Xavier())
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.002})
    test = list(batches(8, seed=0))
    for epoch in range(epochs):
        trainer.set_learning_rate(0.002 * (1 - epoch / epochs))
        total = np.zeros(1)
        for x, y in batches(count, seed=epoch + 1):
            with autograd.record():
                loss = loss_of(net(x), y)
            loss.backward()
            trainer.step(BATCH)
            total += loss.mean()
        places, sequences = right(net, test)
        report.epoch(loss=total.item() / count, sorted_places=places, sorted_sequences=sequences)
    report.finish("sorted sequences", required)


if __name__ == "__main__":
    main()
