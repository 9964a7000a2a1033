"""Programs whose arrays decide how they go on: python benchmarks/control_flow.py

The same Python for Heterosis, imperative and hybridized, and for PyTorch, eager and compiled; for
JAX with its own loops, since it captures no others. All start from the same numbers. The last two
are no loops, for comparison: the LSTM with its turns one by one, and as a layer.
"""

from __future__ import annotations

import time
from types import SimpleNamespace

import numpy
import runner

_RNG = numpy.random.default_rng(0)
NUMBERS = _RNG.uniform(1, 100, 1000).astype("float32")
FIELD = (_RNG.normal(size=(8, 8)) / 4).astype("float32")
START = _RNG.normal(size=8).astype("float32")
STEPS, WIDTH = 400, 64
SEQUENCE = _RNG.normal(size=(STEPS, 1, WIDTH)).astype("float32")
WEIGHTS = [
    (_RNG.normal(size=size) / 8).astype("float32")
    for size in ((WIDTH, 4 * WIDTH), (WIDTH, 4 * WIDTH), (4 * WIDTH,))
]
ROWS = _RNG.normal(size=(50, 16, 32)).astype("float32")
LENGTHS = _RNG.integers(1, 50, (16, 1)).astype("float32")
CELL = (_RNG.normal(size=(32, 32)) / 6).astype("float32")
BEAMS, MOST, TOKENS = 4, 32, 64
TABLE, READOUT = (_RNG.normal(size=size).astype("float32") for size in ((TOKENS, 32), (32, TOKENS)))
DRAWN, CHOICES = 200, 128
MEMORY = (_RNG.normal(size=(64, 64)) / 8).astype("float32")
EMBEDDED, SCORES = (
    _RNG.normal(size=size).astype("float32") / 4 for size in ((CHOICES, 64), (64, CHOICES))
)
NOISE = _RNG.gumbel(size=(DRAWN, CHOICES)).astype("float32")


# -- as Python says it ----------------------------------------------------------------------------


def programs(xp, array):
    """The programs, by name, for a module with the functions of NumPy."""
    numbers, field, start, sequence, rows, lengths, cell = map(
        array, (NUMBERS, FIELD, START, SEQUENCE, ROWS, LENGTHS, CELL)
    )
    inner, outer, bias = map(array, WEIGHTS)
    table, readout, memory, embedded, scores, noise = map(
        array, (TABLE, READOUT, MEMORY, EMBEDDED, SCORES, NOISE)
    )
    places, starts = array(numpy.arange(MOST)), array(numpy.zeros(BEAMS, "int64"))
    alone = array(numpy.array([0] + [-1e9] * (BEAMS - 1), "float32"))

    def newton(a):
        x = xp.ones_like(a)
        while xp.abs(x * x - a).max() > 1e-2:
            x = (x + a / x) / 2
        return x

    def ode(y):
        t = y.sum() * 0
        h = t + 0.05
        while t < 5:
            slope = xp.tanh(y @ field)
            middle = xp.tanh((y + h * slope) @ field)
            error = xp.abs(middle - slope).max() * h
            if error < 1e-2:
                y = y + h * (slope + middle) / 2
                t = t + h
                h = h * 1.25
            else:
                h = h * 0.5
        return y

    def turn(row, h, c):
        gates = row @ inner + h @ outer + bias
        i, f = xp.sigmoid(gates[:, :64]), xp.sigmoid(gates[:, 64:128])
        g, o = xp.tanh(gates[:, 128:192]), xp.sigmoid(gates[:, 192:])
        c = f * c + i * g
        return o * xp.tanh(c), c

    def lstm(x, h, c):
        for row in x:
            h, c = turn(row, h, c)
        return h

    def until_lengths(x, h):
        t = h.sum() * 0
        for row in x:
            if t < 40:
                alive = xp.where(lengths > t, lengths * 0 + 1, lengths * 0)
                h = h + alive * (xp.tanh(row @ cell + h) - h)
            t = t + 1
        return h

    def beam_search(state):
        totals, tokens, n = alone, starts, 0
        history = (totals[:, None] + places) * 0
        while n < MOST:
            state = xp.tanh(state @ cell + table[tokens])
            likely = totals[:, None] + xp.log_softmax(state @ readout)
            totals, chosen = xp.best(likely.reshape(-1))
            tokens, parents = chosen % TOKENS, chosen // TOKENS
            state = state[parents]
            history = xp.where(places == n, tokens[:, None], history[parents])
            n += 1
            if tokens[0] == 0:
                break
        return history

    def sampling(state):
        tokens, token, n = array(numpy.zeros(DRAWN, "float32")), 1, 0
        while n < DRAWN:
            state = xp.tanh(state @ memory + embedded[token])
            token = xp.argmax(state @ scores + noise[n])
            tokens[n] = token
            n += 1
            if token == 0:
                break
        return tokens

    def lstm_unrolled(x, h, c):
        for i in range(STEPS):
            h, c = turn(x[i], h, c)
        return h

    zeros = array(numpy.zeros((1, WIDTH), "float32"))
    state = array(numpy.zeros((16, 32), "float32"))
    return {
        "newton": (newton, (numbers,)),
        "ode": (ode, (start,)),
        "lstm": (lstm, (sequence, zeros, zeros)),
        "lengths": (until_lengths, (rows, state)),
        "beam": (beam_search, (array(numpy.zeros((BEAMS, 32), "float32")),)),
        "sampling": (sampling, (array(numpy.zeros(64, "float32")),)),
        "unrolled": (lstm_unrolled, (sequence, zeros, zeros)),
    }


NAMES = {
    "newton": "Newton's iteration, 1,000 numbers",
    "ode": "an adaptive ODE step, 8 numbers",
    "lstm": f"an LSTM cell, {STEPS} turns of {WIDTH}",
    "lengths": "a recurrent network to true lengths",
    "beam": f"beam search, {BEAMS} beams, {TOKENS} tokens",
    "sampling": f"sampling until a token ends it, {CHOICES} tokens",
    "unrolled": f"the LSTM cell, {STEPS} times",
    "layer": f"the LSTM as a layer, {STEPS} steps",
}
FUNCTIONS = "abs", "argmax", "ones_like", "tanh", "where"


# -- contenders -----------------------------------------------------------------------------------


def _heterosis(hybridized):
    import heterosis
    from heterosis import np, npx
    from heterosis.gluon import rnn

    functions = SimpleNamespace(
        sigmoid=npx.sigmoid,
        log_softmax=npx.log_softmax,
        best=lambda x: npx.topk(x, k=BEAMS, ret_typ="both", dtype="int64"),
        **{name: getattr(np, name) for name in FUNCTIONS},
    )
    found = programs(functions, np.array)
    layer = rnn.LSTM(WIDTH, input_size=WIDTH)
    layer.initialize()
    found["layer"] = layer, (np.array(SEQUENCE),)
    wrap = heterosis.hybridize if hybridized else lambda f: f
    return heterosis.__version__, found, wrap, lambda y: y.asnumpy(), npx.waitall


def _torch(compiled):
    import torch

    torch.set_grad_enabled(False)
    torch.set_num_threads(torch.get_num_threads())
    wrap = torch.compile if compiled else lambda f: f
    functions = SimpleNamespace(
        sigmoid=torch.sigmoid,
        log_softmax=lambda x: torch.log_softmax(x, -1),
        best=lambda x: torch.topk(x, BEAMS),
        **{name: getattr(torch, name) for name in FUNCTIONS},
    )
    found = programs(functions, torch.tensor)
    layer = torch.nn.LSTM(WIDTH, WIDTH)
    found["layer"] = lambda x: layer(x)[0], (torch.tensor(SEQUENCE),)
    return torch.__version__, found, wrap, lambda y: y.numpy(), lambda: None


def _jax():
    import jax
    import jax.numpy as jnp
    from jax import lax

    field, cell, lengths = map(jnp.asarray, (FIELD, CELL, LENGTHS))
    inner, outer, bias = map(jnp.asarray, WEIGHTS)

    def newton(a):
        return lax.while_loop(
            lambda x: jnp.abs(x * x - a).max() > 1e-2, lambda x: (x + a / x) / 2, jnp.ones_like(a)
        )

    def ode(y):
        def turn(state):
            y, t, h = state
            slope = jnp.tanh(y @ field)
            middle = jnp.tanh((y + h * slope) @ field)
            error = jnp.abs(middle - slope).max() * h
            return lax.cond(
                error < 1e-2,
                lambda: (y + h * (slope + middle) / 2, t + h, h * 1.25),
                lambda: (y, t, h * 0.5),
            )

        begun = y, jnp.float32(0), jnp.float32(0.05)
        return lax.while_loop(lambda state: state[1] < 5, turn, begun)[0]

    def lstm(x, h, c):
        def turn(state, row):
            h, c = state
            gates = row @ inner + h @ outer + bias
            i, f = jax.nn.sigmoid(gates[:, :64]), jax.nn.sigmoid(gates[:, 64:128])
            g, o = jnp.tanh(gates[:, 128:192]), jax.nn.sigmoid(gates[:, 192:])
            c = f * c + i * g
            return (o * jnp.tanh(c), c), None

        return lax.scan(turn, (h, c), x)[0][0]

    def until_lengths(x, h):
        def turn(state, row):
            h, t = state
            alive = jnp.where(lengths > t, 1.0, 0.0)
            found = lax.cond(t < 40, lambda: h + alive * (jnp.tanh(row @ cell + h) - h), lambda: h)
            return (found, t + 1), None

        return lax.scan(turn, (h, jnp.float32(0)), x)[0][0]

    table, readout, memory, embedded, scores, noise = map(
        jnp.asarray, (TABLE, READOUT, MEMORY, EMBEDDED, SCORES, NOISE)
    )
    places = jnp.arange(MOST)

    def beam_search(state):
        def turn(carried):
            state, totals, tokens, history, n = carried
            state = jnp.tanh(state @ cell + table[tokens])
            likely = totals[:, None] + jax.nn.log_softmax(state @ readout)
            totals, chosen = lax.top_k(likely.reshape(-1), BEAMS)
            tokens, parents = chosen % TOKENS, chosen // TOKENS
            history = jnp.where(places == n, tokens[:, None], history[parents])
            return state[parents], totals, tokens, history, n + 1

        def goes_on(carried):
            return (carried[4] < MOST) & ((carried[4] == 0) | (carried[2][0] != 0))

        alone = jnp.array([0] + [-1e9] * (BEAMS - 1), "float32")
        history = jnp.zeros((BEAMS, MOST), "float32")
        begun = state, alone, jnp.zeros(BEAMS, "int32"), history, 0
        return lax.while_loop(goes_on, turn, begun)[3]

    def sampling(state):
        def turn(carried):
            state, tokens, token, n = carried
            state = jnp.tanh(state @ memory + embedded[token])
            token = jnp.argmax(state @ scores + noise[n])
            return state, tokens.at[n].set(token.astype("float32")), token, n + 1

        def goes_on(carried):
            return (carried[3] < DRAWN) & (carried[2] != 0)

        begun = state, jnp.zeros(DRAWN, "float32"), jnp.int32(1), 0
        return lax.while_loop(goes_on, turn, begun)[1]

    given = programs(jnp, jnp.asarray)
    unrolled = programs(SimpleNamespace(sigmoid=jax.nn.sigmoid, tanh=jnp.tanh), jnp.asarray)
    own = newton, ode, lstm, until_lengths, beam_search, sampling, unrolled["unrolled"][0]
    found = {name: (f, arguments) for f, (name, (_, arguments)) in zip(own, given.items())}

    def run(function):
        compiled = jax.jit(function)
        return lambda *arguments: compiled(*arguments).block_until_ready()

    return jax.__version__, found, run, numpy.asarray, lambda: None


def measure(contender: str, model: str) -> dict:
    """Seconds of a call, and of the first one, and a figure of the result."""
    version, found, wrap, to_numpy, wait = {
        "heterosis": lambda: _heterosis(hybridized=True),
        "heterosis imperative": lambda: _heterosis(hybridized=False),
        "torch": lambda: _torch(compiled=False),
        "torch compile": lambda: _torch(compiled=True),
        "jax": _jax,
    }[contender]()
    name = NAMES[model]
    if model not in found:
        return {"version": version, "cases": {}}
    function, arguments = found[model]
    run = wrap(function)
    start = time.perf_counter()
    result = to_numpy(run(*arguments))
    first = time.perf_counter() - start
    value = None if model == "layer" else float(numpy.abs(result).sum())  # of its own weights

    def call():
        return run(*arguments)

    cases = {name: (runner.seconds_a_call(call, wait), value)}
    return {"version": version, "cases": cases, "first": {name: first}}


if __name__ == "__main__":
    runner.main(
        __file__,
        measure,
        contenders=("heterosis", "heterosis imperative", "torch", "torch compile", "jax"),
        models=tuple(NAMES),
    )
