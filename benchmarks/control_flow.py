"""Programs whose arrays decide how they go on: python benchmarks/control_flow.py

The same Python for Heterosis, imperative and hybridized, and for PyTorch, eager and compiled; for
JAX with its own loops, since it captures no others. All start from the same numbers.
"""

from __future__ import annotations

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


# -- as Python says it ----------------------------------------------------------------------------


def programs(xp, array):
    """The programs, by name, for a module with the functions of NumPy."""
    numbers, field, start, sequence, rows, lengths, cell = map(
        array, (NUMBERS, FIELD, START, SEQUENCE, ROWS, LENGTHS, CELL)
    )
    inner, outer, bias = map(array, WEIGHTS)

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

    def lstm(x, h, c):
        for row in x:
            gates = row @ inner + h @ outer + bias
            i, f = xp.sigmoid(gates[:, :64]), xp.sigmoid(gates[:, 64:128])
            g, o = xp.tanh(gates[:, 128:192]), xp.sigmoid(gates[:, 192:])
            c = f * c + i * g
            h = o * xp.tanh(c)
        return h

    def until_lengths(x, h):
        t = h.sum() * 0
        for row in x:
            if t < 40:
                alive = xp.where(lengths > t, lengths * 0 + 1, lengths * 0)
                h = h + alive * (xp.tanh(row @ cell + h) - h)
            t = t + 1
        return h

    zeros = array(numpy.zeros((1, WIDTH), "float32"))
    state = array(numpy.zeros((16, 32), "float32"))
    return {
        "Newton's iteration, 1,000 numbers": (newton, (numbers,)),
        "an adaptive ODE step, 8 numbers": (ode, (start,)),
        f"an LSTM cell, {STEPS} turns of 64": (lstm, (sequence, zeros, zeros)),
        "a recurrent network to true lengths": (until_lengths, (rows, state)),
    }


# -- contenders -----------------------------------------------------------------------------------


def _heterosis(hybridized):
    import heterosis
    from heterosis import np, npx

    names = "abs", "ones_like", "tanh", "where"
    functions = SimpleNamespace(sigmoid=npx.sigmoid, **{name: getattr(np, name) for name in names})
    found = programs(functions, np.array)
    wrap = heterosis.hybridize if hybridized else lambda f: f
    return heterosis.__version__, found, wrap, lambda y: y.asnumpy(), npx.waitall


def _torch(compiled):
    import torch

    torch.set_grad_enabled(False)
    torch.set_num_threads(torch.get_num_threads())
    wrap = torch.compile if compiled else lambda f: f
    found = programs(torch, torch.tensor)
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

    own = newton, ode, lstm, until_lengths
    given = programs(jnp, jnp.asarray).items()
    found = {name: (f, arguments) for f, (name, (_, arguments)) in zip(own, given)}

    def run(function):
        compiled = jax.jit(function)
        return lambda *arguments: compiled(*arguments).block_until_ready()

    return jax.__version__, found, run, numpy.asarray, lambda: None


def measure(contender: str) -> dict:
    """Seconds and a figure of the result, for every program."""
    version, found, wrap, to_numpy, wait = {
        "heterosis": lambda: _heterosis(hybridized=True),
        "heterosis imperative": lambda: _heterosis(hybridized=False),
        "torch": lambda: _torch(compiled=False),
        "torch compile": lambda: _torch(compiled=True),
        "jax": _jax,
    }[contender]()
    cases = {}
    for name, (function, arguments) in found.items():
        run = wrap(function)
        value = float(numpy.abs(to_numpy(run(*arguments))).sum())

        def call(run=run, arguments=arguments):
            return run(*arguments)

        cases[name] = runner.seconds_a_call(call, wait), value
    return {"version": version, "cases": cases}


if __name__ == "__main__":
    runner.main(
        __file__,
        measure,
        contenders=("heterosis", "heterosis imperative", "torch", "torch compile", "jax"),
    )
