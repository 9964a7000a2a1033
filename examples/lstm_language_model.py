"""An LSTM learns a small language: python examples/lstm_language_model.py

The grammar that makes the text knows how probable each of its words was. No model can have a lower
perplexity in the long run, so what the LSTM reaches says how much of the grammar it has learnt: one
needs memory for the verb, which agrees with a subject that may stand many words before.
"""

import math

import numpy
from shared import Report, options

from heterosis import autograd, gluon, np
from heterosis.gluon import nn, rnn

NOUNS = (("cat", "cats"), ("dog", "dogs"), ("bird", "birds"), ("fox", "foxes"))
VERBS = (("sees", "see"), ("hears", "hear"), ("follows", "follow"))
ADJECTIVES = ("small", "old", "quick")
PLACES = ("near", "behind")
WORDS = sorted({"the", "."}.union(ADJECTIVES, PLACES, *NOUNS, *VERBS))
STEPS, BATCH = 20, 32


class Speaker:
    """Makes sentences, and adds up the information in its choices."""

    def __init__(self, seed):
        self.generator, self.nats = numpy.random.default_rng(seed), 0.0

    def choose(self, options_, probabilities=None):
        """One of the options, all as likely unless probabilities are given."""
        p = probabilities or [1 / len(options_)] * len(options_)
        i = self.generator.choice(len(options_), p=p)
        self.nats -= math.log(p[i])
        return options_[i]

    def noun_phrase(self, number, nested=True):
        """`the old cats near the dog`, say."""
        words = ["the"]
        while self.choose((True, False), (0.3, 0.7)):
            words.append(self.choose(ADJECTIVES))
        words.append(self.choose(NOUNS)[number])
        if nested and self.choose((True, False), (0.4, 0.6)):
            words += [self.choose(PLACES), *self.noun_phrase(self.choose((0, 1)), nested=False)]
        return words

    def sentence(self):
        """A subject, its verb, an object and a full stop."""
        number = self.choose((0, 1))
        verb = [self.choose(VERBS)[number]]
        subject, object_ = self.noun_phrase(number), self.noun_phrase(self.choose((0, 1)))
        return [*subject, *verb, *object_, "."]


def text(count, seed):
    """Columns of words (steps, batch) of about `count` words, and the grammar's perplexity."""
    speaker, words = Speaker(seed), []
    while len(words) < count:
        words += speaker.sentence()
    numbers = numpy.array([WORDS.index(word) for word in words], "int32")
    rows = len(numbers) // BATCH
    return numbers[: rows * BATCH].reshape(BATCH, rows).T, math.exp(speaker.nats / len(words))


class LanguageModel(gluon.HybridBlock):
    """Words to vectors, an LSTM, and scores of all words for the next one."""

    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.embed = nn.Embedding(len(WORDS), units)
        self.lstm = rnn.LSTM(units)
        self.decode = nn.Dense(len(WORDS), flatten=False)

    def hybrid_forward(self, F, words, *states):
        outputs, states = self.lstm(self.embed(words), list(states))
        return self.decode(outputs), *states


def segments(columns):
    """Pairs of words and the words that follow them, `STEPS` at a time."""
    for start in range(0, len(columns) - 1, STEPS):
        y = columns[start + 1 : start + 1 + STEPS]
        yield np.array(columns[start : start + len(y)]), np.array(y)


def perplexity(net, columns, trainer=None):
    """Of the next word, over all columns; trained on them if there is a trainer."""
    loss_of, total = gluon.loss.SoftmaxCrossEntropyLoss(batch_axis=1), np.zeros(1)
    states = net.lstm.begin_state(BATCH)
    for x, y in segments(columns):
        states = [state.detach() for state in states]  # gradients end where the segment begins
        with autograd.record(train_mode=trainer is not None):
            scores, *states = net(x, *states)
            loss = loss_of(scores, y)
        if trainer is not None:
            loss.backward()
            gluon.utils.clip_global_norm(
                [p.grad() for p in net.collect_params().values()], 1.0 * BATCH
            )
            trainer.step(BATCH)
        total += loss.mean() * len(y)
    return math.exp(total.item() / (len(columns) - 1))


def main():
    given = options(__doc__.partition("\n")[0])
    count, epochs, slack = (8_000, 2, 2.5) if given.quick else (100_000, 5, 1.02)
    report = Report("LSTM language model", given.output)
    np.random.seed(0)
    (train, _), (test, best) = text(count, 1), text(20_000, 2)
    print(f"{len(WORDS)} words; perplexity of the grammar on the test text: {best:.4f}")
    net = LanguageModel(64)
    net.initialize()
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.01})
    for epoch in range(epochs):
        trainer.set_learning_rate(0.01 * 0.5**epoch)
        report.epoch(
            training_perplexity=perplexity(net, train, trainer), perplexity=perplexity(net, test)
        )
    report.finish("perplexity", slack * best, most=True)


if __name__ == "__main__":
    main()
