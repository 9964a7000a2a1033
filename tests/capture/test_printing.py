"""`npx.print` in hybridized functions: the lines that the same calls print imperatively."""

import numpy
import pytest

import heterosis
from heterosis import autograd, np, npx
from heterosis.gluon import nn
from heterosis.gluon.block import HybridBlock
from heterosis.runtime.errors import ArgumentTypeError, CaptureError, UnsupportedError


def integer(number):
    return np.array(number, dtype="int64")


# -- programs -------------------------------------------------------------------------------------


def values(x):
    y = x * 2
    npx.print("y", y, [y, 1, "text"], {"sum": y.sum()}, 3.5, None, sep="|", end="!\n")
    y[0] = 7
    npx.print(y, y[1:], y.astype("int32"), y > 3)
    npx.print()
    return y


def branches(x):
    npx.print("begin")
    if x.sum() > 0:
        npx.print("positive", x.sum())
        y = x
    elif x.sum() < -10:
        npx.print("small")
        y = x
    else:
        y = -x
        npx.print("negative", y, x)
    npx.print("end", y)
    return y


def expressions(x):
    def told(text, value):
        npx.print(text, value)
        return value > 0

    both = told("first", x[0]) and told("second", x[1])
    return x if both or told("third", x[2]) else -x


def turns(a):
    x, i = np.ones_like(a), 0
    while np.abs(x * x - a).max() > 1e-5:
        x = (x + a / x) / 2
        i = i + 1
        npx.print("turn", i, x)
        if i > 3:
            npx.print("many")
    npx.print("done", i)
    return x


def asked(x):
    def is_small(value):
        npx.print("asked", value)
        return value < 5

    while is_small(x):
        x = x + 2
    return x


def rows(x):
    total, found = np.zeros(()), []
    for i, row in enumerate(x):
        total = total + row.sum()
        if total > 3:
            npx.print(i, "large", total)
        npx.print("total", total)
        found.append(row * 2)
    return np.stack(found)


def left(x):
    total = np.zeros(())
    for row in x:
        total = total + row.sum()
        npx.print("total", total)
        if total > 5:
            npx.print("left")
            break
    else:
        npx.print("never left")
    return total


def nested(n):
    total = integer(0)
    for i in range(n):
        k = i
        while k > 0:
            k = k - 2
            total = total + k
            npx.print(i, k, total)
        npx.print("row", i)
    return total


def explicit(x):
    def body(row, state):
        npx.print("row", row, state)
        return row * state, state + 1

    def turn(i):
        npx.print("turn", i)
        return i, i + 1

    def chosen():
        npx.print("chosen")
        return state

    _, state = npx.foreach(body, x, np.array(1.0))
    npx.while_loop(lambda i: i < 3, turn, integer(0), 5)
    return npx.cond(state > 3, chosen, lambda: state * 2)


PROGRAMS = [
    (values, [1.0, 2.0]),
    (branches, [1.0, 2.0]),
    (branches, [-3.0, 2.0]),
    (branches, [-30.0, 2.0]),
    *((expressions, x) for x in ([1, 1, 0], [1, -1, 2], [-1, 1, -1])),
    (turns, [4.0, 2.0]),
    (turns, [1.0, 1.0]),
    (asked, 0.0),
    (asked, 10.0),
    (rows, numpy.ones((10, 2))),
    (rows, numpy.ones((3, 2))),
    (left, numpy.ones((7, 2))),
    (left, numpy.ones((7, 2)) / 10),
    (left, numpy.ones((2, 2))),
    (explicit, [1.0, 2.0, 3.0]),
    (explicit, [1.0]),
]


@pytest.mark.parametrize("function, x", PROGRAMS)
def test_a_program_prints_at_every_run_what_python_does(function, x, capsys):
    hybridized = heterosis.hybridize(function)
    function(np.array(x))
    expected = capsys.readouterr().out
    for _ in range(3):
        hybridized(np.array(x))
        assert capsys.readouterr().out == expected
    assert hybridized.captures == 1


@pytest.mark.parametrize("n", [0, 1, 6])
def test_turns_within_turns(n, capsys):
    nested(integer(n))
    expected = capsys.readouterr().out
    heterosis.hybridize(nested)(integer(n))
    assert capsys.readouterr().out == expected


def test_prints_stand_in_order_with_those_outside(capsys):
    told = heterosis.hybridize(lambda x: npx.print("inside", x))
    for i in range(3):
        npx.print("before", i)
        told(np.array([i]))
        print("behind", i)
    lines = [f"{where} {i}" for i in range(3) for where in ("before", "inside", "behind")]
    lines = [f"inside [{line[-1]}.]" if line.startswith("inside") else line for line in lines]
    assert capsys.readouterr().out.splitlines() == lines


def test_the_last_turns_of_a_long_while(capsys):
    @heterosis.hybridize
    def counted(n):
        i = 0
        while i < n:
            i = i + 1
            npx.print(i)
        return i

    counted(integer(1100))
    first, *others = capsys.readouterr().out.splitlines()
    assert first == (
        "... npx.print keeps the last 1024 turns of a while: what the 76 before them print is left "
        "out ..."
    )
    assert others == [str(i) for i in range(77, 1101)]


def test_outside_arrays_and_numbers(capsys):
    weight, factor = np.array([1.0, 2.0]), {"value": 2}

    @heterosis.hybridize
    def told(x):
        npx.print(weight, factor["value"], x)

    told(np.ones(1))
    weight[0] = 5
    told(np.ones(1))
    factor["value"] = 3
    told(np.ones(1))
    expected = ["[1. 2.] 2 [1.]", "[5. 2.] 2 [1.]", "[5. 2.] 3 [1.]"]
    assert capsys.readouterr().out.splitlines() == expected


def test_a_value_is_that_of_the_place(capsys):
    """What is written behind a print is not shown by it, in the caller's arrays either."""

    @heterosis.hybridize
    def written(x):
        npx.print(x, x[1:], x.reshape(1, 2))
        x += 1
        npx.print(x)

    x = np.zeros(2)
    for _ in range(2):
        written(x)
    expected = ["[0. 0.] [0.] [[0. 0.]]", "[1. 1.]", "[1. 1.] [1.] [[1. 1.]]", "[2. 2.]"]
    assert capsys.readouterr().out.splitlines() == expected


class Told(HybridBlock):
    def __init__(self):
        super().__init__()
        self.dense = nn.Dense(2)

    def forward(self, x):
        y = self.dense(x)
        npx.print("block", y)
        return y


def test_blocks(capsys):
    net = nn.HybridSequential()
    net.add(Told(), Told())
    net.initialize()
    net(np.ones((1, 3)))
    expected = capsys.readouterr().out
    net.hybridize()
    for _ in range(2):
        net(np.ones((1, 3)))
        assert capsys.readouterr().out == expected
    with pytest.raises(UnsupportedError, match=r"prints with npx\.print, and a symbol cannot"):
        net.export("told")


def test_gradients_are_those_without(capsys):
    def loss(x, told):
        state = x * 1
        while state.sum() < 50:
            state = state * 2
            told("state", state)
        for row in np.stack([state] * 6):
            if row.sum() > 3:
                told("row", row.mean())
            state = state + row * x
        return state.sum()

    found, lines = [], []
    for run in (loss, heterosis.hybridize(loss)):
        for told in (npx.print, lambda *_: None):
            x = np.array([1.0, 2.0])
            x.attach_grad()
            with autograd.record():
                y = run(x, told)
            y.backward()
            found.append(x.grad.asnumpy().tolist())
            lines.append(capsys.readouterr().out)
    assert found.count(found[0]) == 4
    assert lines == [lines[0], "", lines[0], ""] != [""] * 4


@pytest.mark.main_memory("XLA rounds in another order")
def test_a_step_of_training(capsys):
    weight = np.array([1.0, 2.0])
    weight.attach_grad()

    def step(x):
        with autograd.record():
            y = weight * x
            npx.print("recorded", y)
            z = (y * y).sum()
        z.backward()
        npx.print("gradient", weight.grad)
        weight[:] = weight - 0.1 * weight.grad
        npx.print("weight", weight)

    lines = []
    for run in (step, heterosis.hybridize(step)):
        weight[:] = np.array([1.0, 2.0])
        for _ in range(2):
            run(np.array([3.0, 4.0]))
        lines.append(capsys.readouterr().out)
    assert lines[0] == lines[1] != ""


def test_a_turn_that_cannot_stand_for_all_prints_once(capsys):
    def grown(x):
        k, found = 1, np.zeros(2)
        for row in x:
            k = k + 1 if row.shape else k
            npx.print("row", k)
            found = found + row * k
        return found

    grown(np.ones((7, 2)))
    expected = capsys.readouterr().out
    heterosis.hybridize(grown)(np.ones((7, 2)))
    assert capsys.readouterr().out == expected


def test_what_comes_before_an_error_of_python(capsys):
    @heterosis.hybridize
    def raising(x):
        npx.print("before", x)
        raise KeyError("none")

    for _ in range(2):
        with pytest.raises(KeyError):
            raising(np.ones(1))
        assert capsys.readouterr().out == "before [1.]\n"


# -- what is refused ------------------------------------------------------------------------------


def test_a_text_made_of_an_array_is_refused():
    told = heterosis.hybridize(lambda x: npx.print(f"x is {x}"))
    with pytest.raises(CaptureError, match=r"Hand in the array by itself: npx\.print\('x is', x\)"):
        told(np.ones(2))


def test_saving_is_refused(tmp_path):
    told = heterosis.hybridize(lambda x: npx.print(x))
    with pytest.raises(UnsupportedError, match=r"Leave npx\.print out before you save"):
        told.save(tmp_path / "told.heterosis", np.ones(2))


@pytest.mark.parametrize("run", [lambda f: f, heterosis.hybridize])
def test_separators_are_texts(run):
    with pytest.raises(ArgumentTypeError, match="sep is 3; expected a text"):
        run(lambda x: npx.print(x, sep=3))(np.ones(2))


def test_a_backward_of_ones_own_prints_nothing():
    class Square(autograd.Function):
        def forward(self, x):
            self.save_for_backward(x)
            return x * x

        def backward(self, gradient):
            npx.print(gradient)
            (x,) = self.saved_tensors
            return 2 * x * gradient

    x = np.ones(2)
    x.attach_grad()
    with autograd.record(), pytest.raises(CaptureError, match=r"Square\.backward prints"):
        heterosis.hybridize(lambda x: Square()(x).sum())(x)
