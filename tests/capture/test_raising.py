"""Exceptions that programs raise when they run: those that the function raises imperatively."""

import pickle
import sys

import pytest

import heterosis
from heterosis import autograd, gluon, np
from heterosis.gluon.block import HybridBlock
from heterosis.ir import evaluate
from heterosis.runtime.errors import ArgumentError, CaptureError, ShapeError, UnsupportedError
from heterosis.runtime.raising import exception, told
from tests.processes import run_python

ROWS = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0], [9.0, 1.0], [2.0, 2.0]]


class Own(Exception):
    pass


class OfTwo(Exception):
    def __init__(self, first, second):
        super().__init__(f"{first} and {second}")
        self.first = first


# -- programs -------------------------------------------------------------------------------------


def says_nothing(x):
    assert x.sum() < 10
    return x


def several_arguments(x):
    if x.sum() > 10:
        raise ValueError("large", 3, None, "{}")
    return x


def a_class(x):
    if x.sum() > 10:
        raise Own
    return x


def made_of_two(x):
    if x.sum() > 10:
        raise OfTwo(1, "2")
    return x


def in_a_while(x):
    while x.sum() > 10:
        raise RuntimeError("never ends")
    return x


def in_a_later_turn(x):
    turns = np.array(0)
    while x.sum() > 10:
        x = x - 1
        turns = turns + 1
        if turns > 2:
            raise RuntimeError("diverged")
    return x


def in_a_for(x):
    total = np.zeros(2)
    for row in x:
        total = total + row
        if total.sum() > 30:
            raise KeyError("k")
    return total


def of_every_row(x):
    for row in x:
        raise Own(row.shape[0])
    return x


def in_a_range(x):
    for i in range(x.sum().astype("int64")):
        x = x + i
        if x.sum() > 200:
            raise OverflowError("over")
    return x


def in_an_expression(x):
    def failing():
        raise LookupError("nothing there")

    return x if x.sum() < 10 else failing()


def behind_and(x):
    def failing():
        raise LookupError("asked")

    return x if x.sum() < 10 or failing() else -x


def chained(x):
    try:
        y = x * 2
    finally:
        if x.sum() > 10:
            raise ValueError("chained") from KeyError("why")
    return y


def the_first_of_two(x):
    assert x.sum() < 10, "first"
    assert x.max() < 5, "second"
    return x


def raised_again(x):
    if x.sum() > 10:
        try:
            raise ValueError("again")
        except ValueError:  # noqa: TRY203 - it is what is tested
            raise
    return x


def not_caught(x):
    try:
        return failing_if(x.sum() > 10) or x
    except ZeroDivisionError:
        return -x


def failing_if(test):
    if test:
        raise LookupError("not caught")


def python_asserts(x):
    if x.sum() > 10:
        assert x.ndim == 7, "a number of Python's"
    return x


PROGRAMS = [
    says_nothing, several_arguments, a_class, made_of_two, in_a_while, in_a_later_turn, in_a_for,
    of_every_row, in_a_range, in_an_expression, behind_and, chained, the_first_of_two, raised_again,
    not_caught, python_asserts,
]  # fmt: skip


def outcome(function, x):
    try:
        found = function(np.array(x))
        return found.asnumpy().tolist()
    except Exception as error:  # noqa: BLE001 - whatever it is, it is to be the same
        first = "" if str(error).startswith("assert ") else str(error).partition("\n")[0]
        return type(error), first  # pytest says more


@pytest.mark.parametrize("function", PROGRAMS)
def test_a_program_raises_what_the_function_does(function):
    compiled = heterosis.hybridize(function)
    for sign in (1, -1, 1):
        x = [[sign * number for number in row] for row in ROWS]
        assert outcome(compiled, x) == outcome(function, x)


def test_the_error_comes_from_the_users_line():
    with pytest.raises(ValueError, match="large") as raised:
        heterosis.hybridize(several_arguments)(np.array(ROWS))
    last = raised.traceback[-1]
    assert last.path.name == "test_raising.py"
    assert last.lineno == several_arguments.__code__.co_firstlineno + 1  # counted from 0
    assert raised.value.__cause__ is None is raised.value.__context__


@pytest.mark.main_memory("the note names no operands")
def test_a_note_has_the_line_where_there_is_no_python(tmp_path):
    path = tmp_path / "raises.heterosis"
    heterosis.hybridize(several_arguments).save(path, np.array(ROWS))
    with pytest.raises(ValueError, match="large") as raised:
        heterosis.load(path)(np.array(ROWS)).asnumpy()
    if sys.version_info >= (3, 11):
        (note,) = raised.value.__notes__
        line = several_arguments.__code__.co_firstlineno + 2
        assert "(float32[6, 2]): raise at" in note
        assert note.endswith(f"test_raising.py:{line}")


@pytest.mark.parametrize("count", [3, 1 << 20])
def test_the_call_raises_and_has_written_what_comes_before(count):
    @heterosis.hybridize
    def added(x):
        x += 1
        assert x.sum() < 0, "no"
        x += 1
        return x

    x = np.zeros(count)
    for turn in (1, 2):
        with pytest.raises(AssertionError, match="no"):
            added(x)
        assert (x == turn).all()


def test_the_arguments_of_the_error_are_those_of_the_call():
    @heterosis.hybridize
    def sums(x, name):
        if x.sum() > 0:
            raise ValueError(name)
        return x

    for name in ("one", "two"):
        with pytest.raises(ValueError, match=name):
            sums(np.ones(2), name)


def test_a_step_that_raises_is_not_counted_twice():
    net = gluon.nn.Dense(1, in_units=2)
    net.initialize()
    trainer = gluon.Trainer(net.collect_params(), "adam")

    @heterosis.hybridize
    def step(x):
        with autograd.record():
            loss = net(x).sum()
        assert x.sum() < 0, "no"
        loss.backward()
        trainer.step(1)

    before = net.weight.data().copy()
    with pytest.raises(AssertionError, match="no"):
        step(np.ones((1, 2)))
    assert (net.weight.data() == before).all()
    step(-np.ones((1, 2)))
    assert (net.weight.data() != before).any()


@pytest.mark.lengthy
def test_another_process_raises_it_too(tmp_path):
    """From code that is cached on disk."""
    code = """
import heterosis
from heterosis import np

class Own(Exception):
    pass

@heterosis.hybridize
def function(x):
    if x.sum() > 0:
        raise Own("mine")
    return x

try:
    function(np.ones(3)).asnumpy()
except Own as error:
    print("raised", error)
"""
    file = tmp_path / "raises.py"
    file.write_text(code)
    for _ in range(2):
        assert run_python(str(file), folder=tmp_path).stdout == "raised mine\n"


def test_an_exception_can_be_pickled():
    with pytest.raises(RuntimeError) as raised:
        heterosis.hybridize(in_a_while)(np.array(ROWS)).asnumpy()
    assert str(pickle.loads(pickle.dumps(raised.value))) == "never ends"


# -- files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", PROGRAMS)
def test_saved_programs_raise(function, tmp_path):
    path = tmp_path / "raises.heterosis"
    heterosis.hybridize(function).save(path, np.array(ROWS))
    loaded = heterosis.load(path)
    for sign in (1, -1):
        x = [[sign * number for number in row] for row in ROWS]
        assert outcome(loaded, x) == outcome(function, x)


class Checked(HybridBlock):
    def forward(self, x):
        if x.sum() > 0:
            raise ValueError("large")
        return x * 2


def test_a_symbol_cannot(tmp_path):
    net = Checked()
    net.hybridize()
    net(-np.ones(2))
    with pytest.raises(UnsupportedError, match="the program may raise, and a symbol cannot"):
        net.export(str(tmp_path / "checked"))


# -- what a text may name -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "carried", ["not json", "[]", '["subprocess:Popen", [["true"]]]', '["builtins:eval", ["1"]]',
                '["builtins:SystemExit", []]', '["builtins:nothing", []]', '["os:error", []]'],
)  # fmt: skip
def test_other_classes_are_not_made(carried):
    found = exception(f"what happened\x1f{carried}\x1f behind")
    assert type(found) is ArgumentError
    assert str(found) == "what happened behind"


def test_what_is_told_is_made():
    found = exception(told("place", KeyError("a", 1)))
    assert (type(found), found.args) == (KeyError, ("a", 1))
    assert type(exception(told("place", Own))) is Own


def test_the_reference_raises_it():
    program = heterosis.capture.capture(a_class, (np.array(ROWS),), {}).program
    with pytest.raises(Own):
        evaluate(program, [np.array(ROWS).asnumpy()])


def test_what_is_no_exception_is_refused():
    def bare(x):
        if x.sum() > 0:
            raise  # noqa: PLE0704
        return x

    with pytest.raises(CaptureError, match="Raise one, as in raise ValueError"):
        heterosis.hybridize(bare)(np.array(ROWS))


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 has no notes")
def test_an_error_of_a_branch_says_that_all_are_captured():
    """Imperatively nobody comes there."""

    def choice(x, y):
        return x + 1 if x.sum() > 0 else x @ y

    x, y = np.ones((7, 4)), np.ones((3,))
    assert choice(x, y).shape == (7, 4)
    with pytest.raises(ShapeError) as found:
        heterosis.hybridize(choice)(x, y)
    (note,) = found.value.__notes__
    assert "all of them are captured" in note
    assert __file__ in note
