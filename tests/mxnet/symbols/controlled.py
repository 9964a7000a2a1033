"""Symbols with choices and loops, composed, stored and run in MXNet as well as here: the file
imports nothing of ours, so that MXNet's Python can run it."""

import os

import numpy


def numbers(name):
    """The array of a variable."""
    given = {
        "x": numpy.linspace(-1, 1, 6).reshape(2, 3),
        "y": numpy.array([1, -2, 0.5]),
        "w": numpy.array([0.1, 0.2, -0.3]),
    }
    return given[name].astype("float32")


def row_by_row(sym, x, y, w):
    z = x * 2

    def body(row, state):
        return row * state + w, state + sym.broadcast_mul(row, sym.sum(z))

    return sym.contrib.foreach(body, x, y)


def two_exchanged(sym, x, y, w):
    def body(rows, states):
        return [rows[0] * states[0], rows[1] + states[1]], [states[1], states[0]]

    outputs, states = sym.contrib.foreach(body, [x, x * 2], [y, w])
    return [*outputs, *states]


def no_outputs(sym, x, y, w):
    return sym.contrib.foreach(lambda row, states: ([], [states[0] + row]), x, [y])[1]


def one_of_two(sym, x, y, w):
    z = x * 2
    return [
        sym.contrib.cond(
            sym.sum(x) < sym.sum(y), lambda: sym.broadcast_add(x * 2, w), lambda: x + z
        )
    ]


def two_of_four(sym, x, y, w):
    return sym.contrib.cond(sym.sum(x) > sym.sum(y), lambda: [x * 2, x], lambda: [-x, sym.exp(x)])


def while_small(sym, x, y, w):
    outputs, states = sym.contrib.while_loop(
        lambda i, s: sym.sum(i) <= 5,
        lambda i, s: ([i + s], [i + 1, s + i + w]),
        [y, w],
        max_iterations=6,
    )
    # MXNet leaves the rows behind the last turn to chance.
    return [sym.slice_axis(outputs[0], axis=0, begin=0, end=2), *states]


def loop_in_a_loop(sym, x, y, w):
    def inner(row, state):
        return sym.contrib.foreach(
            lambda one, s: (one * 2, one + s), sym.expand_dims(row, 1), state
        )

    return sym.contrib.foreach(inner, x, sym.sum(y, keepdims=True))


PROGRAMS = [
    row_by_row, two_exchanged, no_outputs, one_of_two, two_of_four, while_small, loop_in_a_loop,
]  # fmt: skip


def composed(sym, program):
    """The symbol of a program."""
    return sym.Group(list(program(sym, *(sym.var(name) for name in "xyw"))))


def written(sym, folder):
    """Store all programs."""
    for program in PROGRAMS:
        composed(sym, program).save(os.path.join(folder, f"{program.__name__}.json"))


def results(sym, context, array, folder):
    """What the stored programs give, by name."""
    found = {}
    for program in PROGRAMS:
        symbol = sym.load(os.path.join(folder, f"{program.__name__}.json"))
        given = {name: array(numbers(name)) for name in symbol.list_arguments()}
        found[program.__name__] = [a.asnumpy() for a in symbol.bind(context, given).forward()]
    return found


def in_mxnet(task, folder):
    """Let MXNet compose and store the programs, or run what is stored."""
    import mxnet as mx

    mx.npx.reset_np()  # symbols know nothing of NumPy's semantics
    try:
        if task == "write":
            return written(mx.sym, folder)
        return results(mx.sym, mx.cpu(), mx.nd.array, folder)
    finally:
        mx.npx.set_np()
