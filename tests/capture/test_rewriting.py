"""Functions that are rewritten do what they do as they are written."""

import contextlib
import functools
import itertools

import numpy
import pytest

import heterosis
from heterosis import autograd, np
from heterosis.runtime.errors import CaptureError, CaptureWarning

X = numpy.linspace(-1, 1, 21, dtype="float32").reshape(7, 3)
SHIFTS = (0.3, -0.3, 1.2, -3)


# -- loops over rows ------------------------------------------------------------------------------


def recurrent(x):
    outputs, h = [], np.zeros(3)
    for row in x:
        h = np.tanh(row + h * 0.5)
        outputs.append(h * 2)
    return np.concatenate(outputs), h


def appended_pairs(x):
    found = []
    for row in x:
        found.append((row * 2, "text", [row.sum()]))  # noqa: PERF401
    return sum(a * c[0] for a, _, c in found)


def state_of_a_tree(x):
    state = (np.zeros(3), [np.ones(3)])
    for row in x:
        h, (c,) = state
        c = c * 0.9 + row
        state = (np.tanh(h + c), [c])
    return state[0] + state[1][0]


def state_from_none(x):
    state = None
    for row in x:
        state = row if state is None else state * 0.5 + row
    return state


def set_in_the_loop_alone(x):
    for row in x:
        y = row * 2
        if y.sum() > 2:
            break
    return y + row


def counted(x):
    total, n = np.zeros(3), 0
    for row in x:
        n += 1
        total = total + row * n
    return total.reshape(3 * n // 7), np.zeros(1) + n


def with_numbers(x):
    total = np.zeros(3)
    for i, row in enumerate(x):
        if i == 2:
            continue
        total = total + row * i + row
    return total


def with_fractions(x):
    total = np.zeros(3)
    for i, row in enumerate(x, 1):
        total = total + row * (0.1 * i)
    return total


def zipped(x):
    total, weights = np.zeros(3), [1, 2, 3, 4, 5, 6, 7]
    for a, (i, b), w in zip(x, enumerate(x[::-1]), weights, strict=True):
        total = total * 0.5 + a * b * w - i
    return total


def lists_of_arrays(x):
    total = np.zeros(3)
    for row, scale in zip(x, [x[0] + i for i in range(7)], strict=True):
        total = total + row * scale
    return total


def unequal(x):
    total = np.zeros(3)
    for row, other in zip(x, x[2:], strict=False):
        total = total + row * other
    return total


def growing(x):
    found = x[:1]
    for row in x:
        found = np.concatenate([found, row.reshape(1, 3)])
    return found


def looked_at(x):
    outputs = [x[0]]
    for row in x:
        outputs.append(outputs[-1] * 0.5 + row)
    return sum(outputs)


def lists_in_lists(x):
    rows = []
    for row in x:
        parts = []
        for other in x:
            parts.append((row * other).sum())  # noqa: PERF401
        rows.append(np.stack(parts))
    return np.stack(rows)


def both_loops_append(x):
    found = []
    for row in x:
        for other in x:
            found.append(row * other)  # noqa: PERF401
    return sum(found)


def attributes(x):
    class Box:
        pass

    box = Box()
    for row in x:
        box.last = row
    return box.last * 2


def advanced(x):
    pairs = zip(x, x, strict=True)
    first, _ = next(pairs)
    for a, b in pairs:
        first = first + a * b
    return first


def left_by_arrays(x):
    y = x[0]
    for i in range(5):
        y = y + x[i]
        if y.sum() > 1:
            break
    else:
        y = y * 100
    for name in ("a", "bb"):
        if y.sum() > len(name):
            return y * len(name)
    return y


def taken_from_an_iterator(x):
    total, weights, others = np.zeros(3), iter([1, 2, 3, 4, 5, 6, 7]), iter(range(20))
    for row in x:
        total = total + row * next(weights)
        for n in others:
            total = total + n
            if n % 2:
                break
    return total


def set_by_name(x):
    total = np.zeros(3)

    class Box:
        item = 0

    for row in x:
        total = total + row * Box.item
        setattr(Box, "item", Box.item + 1)  # noqa: B010
    return total


def made_in_turns(x):
    total = np.zeros(3)
    for row in x:
        for a, b in zip([1, 2], (n * 2 for n in [3, 4]), strict=True):
            total = total + row * a - b
        total = total + next(iter([2])) + sum(map(float, [1]))
    return total


def functions_of_turns(x):
    functions, others = [], []
    for row in x:
        functions.append(lambda v, r=row: v * r)
        others.append(lambda v: v + row)  # noqa: B023
    return sum(f(x[0]) for f in [*functions, *others])


def in_place(x):
    total = np.zeros(3)
    for row in x:
        total += row
        total *= 0.5
    return total


# -- ranges ---------------------------------------------------------------------------------------


def ranged(x):
    n = (x[0].sum() > 0).astype("int64") * 3 + 2
    total = np.zeros(3)
    for i in range(n):
        total = total + x[i]
    for i in range(n, 0, -1):
        total = total * 0.5 + i
    for i in reversed(range(1, n)):
        total = total * 0.5 + i
        if total.sum() > 5:
            break
    return total


# -- other statements -----------------------------------------------------------------------------


def matched(x):
    match x.shape:
        case (7, n):
            y = x * n
        case _:
            y = x
    if x.sum() > 0:
        match x.ndim:
            case 1:
                return x
            case 2:
                y = y + 1
    return y


def named(x):
    if (total := x.sum()) > 0 and x.max() > 0.5:
        x = x + total
    if x.ndim == 2 and (n := len(x)) > 1:
        x = x + n
    while (total := total + 1) < 5:
        x = x + total
    numbers = [last := i for i in range(3)]
    return x + total + sum(numbers) + last


def annotated(x):
    y: object = x
    z: int
    if x.sum() > 0:
        y: object = x * 2
    z = 2
    return y * z


def tried(x):
    try:
        if x.ndim == 1:
            return x
        y = x * 2
    except ValueError:
        y = x
    else:
        y = y + 1
        if x.sum() > 0:
            return y
    finally:
        z = 3
    return y * z


def tried_and_left(x, found=False):
    try:
        if x.ndim == 2:
            return x * 2
    finally:
        found = True
    if x.sum() > 0:
        return x
    return x * found


def chained(x, n=0, items=()):
    if n < len(items) < items[n]:
        return x
    return x if -1 < x.sum() < 3 < len(x) else -x


class Private:
    __scale = 2

    def run(self, x):
        def within(y, __z=1):
            return y * self.__scale + __z if y.sum() > 0 else y

        return within(x)


def private(x):
    return Private().run(x)


def decorated(function):
    @functools.wraps(function)
    def call(*given):
        return function(*given) * 2

    return call


@decorated
def wrapped(x):
    if x.sum() > 0:
        return x
    return -x


class Callable:
    def __call__(self, x):
        return x if x.sum() > 0 else -x


def called(x):
    first, second = (lambda v: v if v.sum() > 0 else -v), (lambda v: v * 2 if v.max() > 1 else v)
    return first(x) + second(x) + wrapped(x) + Callable()(x)


def generated(x):
    def rows():
        yield from x

    y = sum(row for row in rows())
    if x.sum() > 0:
        y = y + 1
    return y


PROGRAMS = [
    recurrent, appended_pairs, state_of_a_tree, state_from_none, set_in_the_loop_alone, counted,
    with_numbers, with_fractions, zipped, lists_of_arrays, unequal, growing, looked_at,
    lists_in_lists, both_loops_append, attributes, advanced, left_by_arrays, in_place, ranged,
    taken_from_an_iterator, set_by_name, made_in_turns, functions_of_turns,
    matched, named, annotated, tried, tried_and_left, chained, private, called, generated,
]  # fmt: skip
WITH_WHILE = {ranged, named}
SCANS = {
    recurrent: 1, appended_pairs: 1, state_of_a_tree: 1, state_from_none: 1, with_numbers: 1,
    zipped: 1, lists_of_arrays: 1, unequal: 1, lists_in_lists: 1, both_loops_append: 1, in_place: 1,
    set_in_the_loop_alone: 1, counted: 0, with_fractions: 0, growing: 0, looked_at: 0,
    attributes: 0, advanced: 0, left_by_arrays: 0, taken_from_an_iterator: 0, set_by_name: 0,
    made_in_turns: 1, functions_of_turns: 0,
}  # fmt: skip


def results(found):
    return [a.asnumpy() for a in (found if isinstance(found, tuple) else (found,))]


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_as_python(function):
    compiled = heterosis.hybridize(function)
    for shift in SHIFTS:
        expected = results(function(np.array(X + numpy.float32(shift))))
        found = results(compiled(np.array(X + numpy.float32(shift))))
        for ours, theirs in zip(found, expected, strict=True):
            assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
            numpy.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=1e-5)
    assert compiled.captures == 1


@pytest.mark.parametrize("shift", SHIFTS)
@pytest.mark.parametrize(
    "function", [f for f in PROGRAMS if f not in WITH_WHILE], ids=lambda f: f.__name__
)
def test_gradients(function, shift):
    def gradient(run):
        x = np.array(X + numpy.float32(shift))
        x.attach_grad()
        with autograd.record():
            found = run(x)
            found = found if isinstance(found, tuple) else (found,)
            loss = sum((a * np.sin(a)).sum() for a in found) + (x * x).sum()
        loss.backward()
        return x.grad.asnumpy()

    expected = gradient(function)
    found = gradient(heterosis.hybridize(function))
    numpy.testing.assert_allclose(found, expected, rtol=2e-4, atol=1e-3)


@pytest.mark.parametrize("function", SCANS, ids=lambda f: f.__name__)
def test_which_loops_are_scans(function):
    program = heterosis.capture.capture(function, (np.array(X),), {}).program
    assert [str(call.operation) for call in program.calls].count("scan") == SCANS[function]


# -- statements of Python --------------------------------------------------------------------------


def targets():
    class Box:
        item = 0

    box, found = Box(), []
    for i, (box.item, *rest) in enumerate([(1, 2, 3), (4, 5, 6)]):
        found += [i, box.item, *rest]
        for found[0] in (7, 8):
            if found[0] == 7:
                continue
            found[1] += 1
    return found


def errors():
    found = []
    for i in range(4):
        try:
            if i == 1:
                continue
            found.append(6 // (2 - i))
        except ZeroDivisionError as error:
            found.append(len(str(error)))
            if i == 3:
                break
        else:
            found.append(i)
        finally:
            found.append(-i)
    try:
        error  # noqa: B018
    except NameError:
        found.append(100)
    return found


def late():
    functions = []
    for i in range(3):
        j = i * 10
        functions.append(lambda k=i: (i, j, k))  # noqa: B023
    return [n for function in functions for n in function()]


def deleted(flag=True):
    value = 1
    if flag:
        del value
    try:
        return [value]
    except UnboundLocalError:
        return [2]


def left():
    found = []
    for i in range(5):
        for j in range(5):
            if j == 3:
                break
            if i == 2:
                found.append(99)
                continue
            found.append(i * j)
        else:
            found.append(-1)
        while j > 0:
            j -= 2
            if j == 1:
                break
        else:
            found.append(j)
            if i == 3:
                return found
    return found


def nonlocals():
    n = 0

    def bump(by=1):
        nonlocal n
        if by > 0:
            n += by
        return n

    return [bump(), bump(2), bump(-1), n]


def within():
    with contextlib.suppress(KeyError):
        if {}["a"]:
            return [1]
    with contextlib.suppress(KeyError) as nothing:
        for _ in range(2):
            return [2, nothing is None]
    return [3]


def finally_last():
    found = []

    def run(n):
        try:
            if n > 0:
                return found.append("returned") or n
            found.append("went on")
        finally:
            found.append("finally")
        return 0

    return [run(1), run(0), len(found)]


def cases():
    found = []
    for value in ([1, 2, 3], {"a": 5, "b": 6}, (1,), 7, "text"):
        match value:
            case [first, *rest] if rest:
                found += [first, len(rest)]
                continue
            case {"a": a, **others}:
                found += [a, len(others)]
            case int(number):
                found.append(number)
                break
            case _:
                found.append(0)
    return found


def compared(n=3):
    asked = []

    def ask(value):
        asked.append(value)
        return value

    results = [ask(1) < ask(n) < ask(2) < ask(9), ask(0) or ask(5), ask(0) and ask(6)]
    results.append(not ask(1) if ask(0) else ask(2) in (1, 2) != None)
    return [*asked, *map(int, results)]


def named_in_comprehensions():
    if any((last := n) > 2 for n in range(9)):
        squares = [square for n in range(last) if (square := n * n) > 1]
    return [last, square, *squares]


@pytest.mark.parametrize(
    "function",
    [
        targets, errors, late, deleted, left, nonlocals, within, finally_last, cases, compared,
        named_in_comprehensions,
    ],
)  # fmt: skip
def test_statements_of_python(function):
    x = np.ones(())

    def run(x):
        if x.ndim == 0:
            found = function()
        return [x * n for n in found]

    assert [int(a.item()) for a in heterosis.hybridize(run)(x)] == function()


def set_by_another(x):
    n = 0

    def bump():
        nonlocal n
        n += 1

    if x.sum() > 0:
        bump()
    return x * n


def test_the_source_is_what_runs(tmp_path, monkeypatch):
    """A file that has changed since it was imported is not what a capture takes."""
    file = tmp_path / "changing.py"
    file.write_text("def f(x):\n    return x * 2 if x.ndim > 1 else x\n")
    monkeypatch.syspath_prepend(tmp_path)
    import changing

    file.write_text("def f(x):\n    return x * 3 if x.ndim > 1 else x\n")
    numpy.testing.assert_array_equal(heterosis.hybridize(changing.f)(np.array(X)).asnumpy(), X * 2)


def test_what_happens_once(capsys):
    seen = []

    def function(x):
        seen.append("here")
        print("captured")
        if x.sum() > 0:
            return x
        return -x

    compiled = heterosis.hybridize(function)
    with pytest.warns(CaptureWarning, match="this prints while") as told:
        compiled(np.array(X))
    first = function.__code__.co_firstlineno
    places = [(one.filename, one.lineno) for one in told]
    assert places == [(__file__, first + 1), (__file__, first + 2)]
    compiled(np.array(X))
    assert capsys.readouterr().out == "captured\n"
    assert seen == ["here"]


def test_prints_in_rows_that_are_no_loop(capsys):
    """What was tried and did not work has not been printed."""

    def function(x):
        found = x[:1]
        for row in x:
            print("row")
            found = np.concatenate([found, row.reshape(1, 3)])
        return found

    with pytest.warns(CaptureWarning):
        heterosis.hybridize(function)(np.array(X))
    assert capsys.readouterr().out == "row\n" * 7


COUNT = 0


def sets_a_global(x):
    global COUNT  # noqa: PLW0603
    COUNT = COUNT + 1
    if x.sum() > 0:
        return x
    return -x


def test_variables_of_others():
    with pytest.warns(CaptureWarning, match="COUNT, a variable outside of the function, is set"):
        heterosis.hybridize(sets_a_global)(np.array(X))
    assert COUNT == 1


def sets_a_global_within(x):
    if x.sum() > 0:
        sets_a_global(x)
    return x


def match_of_an_array(x):
    match x.sum():
        case 1:
            return x
    return -x


def appended_where_left(x):
    found = []
    for row in x:
        if row.sum() > 0:
            break
        found.append(row)
    return sum(found)


def range_of_a_list(x):
    for i in list(range(x.sum().astype("int64"))):
        x = x + i
    return x


def endless(x):
    for i in itertools.count():
        x = x + i
        if x.sum() > 10:
            break
    return x


@pytest.mark.parametrize(
    "function, message",
    [
        (sets_a_global_within, "COUNT, a variable outside of the function, is set at"),
        (match_of_an_array, r"match at .*: which case it is depends on an array float32\[\]"),
        (appended_where_left, "an object of type list is changed at"),
        (range_of_a_list, "how far a range goes at .* depends on arrays"),
        (set_by_another, "n, a variable outside of the function, is set at"),
        (endless, "the loop at .* goes over count, and arrays decide when it is left"),
    ],
)
@pytest.mark.filterwarnings("ignore::heterosis.runtime.errors.CaptureWarning")
def test_refusals(function, message):
    with pytest.raises(CaptureError, match=f"(?s){message}") as caught:
        heterosis.hybridize(function)(np.array(X + 0.3))
    assert f"{__file__}:" in str(caught.value)


def test_appended_arrays_may_be_others():
    """What is one array without a loop, and two with it, is not written to."""

    def function(x):
        found, h = [], np.zeros(3)
        for row in x:
            h = h + row
            found.append(h)
        h += 1
        return sum(found)

    with pytest.raises(CaptureError, match="may be another one"):
        heterosis.hybridize(function)(np.array(X))


def test_why_it_was_captured():
    box = {"factor": 1}
    compiled = heterosis.hybridize(lambda x: x * box["factor"])
    for factor in (1, 2):
        box["factor"] = factor
        compiled(np.array(X))
    compiled(np.array(X[:2]))
    first, second, third = compiled.captures_why
    assert first == "the first call"
    assert "factor" in second
    assert third == "extents of the arguments vary: n0 = 2"
