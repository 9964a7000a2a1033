"""Writes in place: captured programs give, and leave in the caller's arrays, what eager ones do."""

import numpy
import pytest

import heterosis
from heterosis import np, npx
from heterosis.runtime.errors import CaptureError
from tests.capture.comparison import leaves, same


def over_all(x):
    v = np.exp(x)
    x[...] = v
    return v * 2


def over_all_backwards(x):
    v = np.exp(x)
    x[::-1] = v
    return v * 2


def into_zeros(x):
    s = np.exp(x)
    y = np.zeros((2, 4, 6))
    y[0] = s
    return y, s * 2


def row_by_row(x):
    s = np.zeros(6)
    for i in range(4):
        s = np.tanh(s * 0.9 + x[i])
        x[i] = s
    return s


def twice_through_a_view(x):
    v = np.exp(x)
    row = v[1]
    np.add(row, row, out=row)
    return v, row


def gathered_into_itself(x):
    v = np.exp(x)
    v[:, -5] = npx.gather_nd(v, np.array([[0, 1, 2, 3], [5, 4, 3, 2]], dtype="int32"))
    return v, v[:, 1] * 2


def through_a_mask_of_a_view(x):
    v = x**1
    w = v[-1::1]
    w[w > 0.25] = 2
    return v, w


def backwards_over_itself(x):
    v = np.cumsum(x, axis=1)
    before = np.where(x > 0, v, 0)
    v[::-1] = v
    return before, np.take(v, 4, axis=1, mode="clip")


def shifted_within_itself(x):
    v = x @ np.ones((6, 6))
    v[1:] = v[:-1]
    return v, v.sum()


def twice_over_a_product(x):
    v = x @ np.ones((6, 6))
    v[:, 1:3] = x @ np.ones((6, 2))
    v[2:] = np.sort(x, axis=1)[:2]
    return v


def over_parts_that_are_needed(x):
    a, b = np.sort(x, axis=1), np.cumsum(x, axis=0)
    both = np.concatenate([a, b])
    both[3:5] = x[:2] * 2
    return both, a, b @ np.ones(6)


def over_parts_side_by_side(x):
    both = np.concatenate([np.sort(x, axis=1), np.cumsum(x, axis=0)], axis=1)
    both[:, 5:7] = x[:, :2]
    return both, both.T


def rows_by_number(x):
    v = np.exp(x)
    w = v * 2
    w[np.array([0, 2, 0], dtype="int32")] = v[1:]
    v[[1, 3]] = 0
    return w, v


PROGRAMS = [
    over_all, over_all_backwards, into_zeros, row_by_row, twice_through_a_view,
    gathered_into_itself, through_a_mask_of_a_view, backwards_over_itself, shifted_within_itself,
    twice_over_a_product, over_parts_that_are_needed, over_parts_side_by_side, rows_by_number,
]  # fmt: skip


@pytest.mark.each("program")
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_writes_in_place(program):
    writes_agree(program, heterosis.hybridize)


def writes_agree(program, hybridize):
    """A program gives, and leaves in its argument, the same captured by `hybridize`."""
    numbers = numpy.linspace(-1, 1, 24, dtype="float32").reshape(4, 6)
    given, expected = np.array(numbers), np.array(numbers)
    compiled = hybridize(program)
    for _ in range(2):  # what the first call has written, the second one reads
        wanted = program(expected)
        same(compiled(given), wanted, 16)
        same(given, expected, 16)


# -- results that share memory --------------------------------------------------------------------


def a_part(x):
    y = np.exp(x)
    return y, y[1:, ::2]


def rearranged(x):
    y = np.exp(x)
    return y.T, y.reshape(-1)


def overlapping(x):
    y = np.exp(x)
    return y[:3], y[2:]


def apart(x):
    y = np.exp(x)
    return y[:2], y[2:]


def of_a_part(x):
    y = np.exp(x)[1:]
    return {"all": [y], "first": y[0], "number": y[0, 0]}


def of_an_argument(x):
    x[...] = np.exp(x)
    return x[1], x


def of_an_argument_alone(x):
    x[0] = 7
    return x[:2]


def the_same_twice(x):
    y = np.exp(x)
    return y, y, y.copy(), y.reshape(4, 6)


SHARING = [
    a_part, rearranged, overlapping, apart, of_a_part, of_an_argument, of_an_argument_alone,
    the_same_twice,
]  # fmt: skip


@pytest.mark.each("program")
@pytest.mark.parametrize("program", SHARING, ids=lambda program: program.__name__)
def test_what_shares_memory_goes_on_sharing_it(program):
    sharing_agrees(program, heterosis.hybridize)


def sharing_agrees(program, hybridize):
    """Writes to a result show in the others, and in the argument, captured by `hybridize` too."""
    numbers = numpy.linspace(-1, 1, 24, dtype="float32").reshape(4, 6)
    count = len(list(leaves(_listed(program(np.array(numbers))))))
    compiled = hybridize(program)
    for written in range(count):
        results = []
        for function in (program, compiled):
            given = np.array(numbers)
            found = list(leaves(_listed(function(given))))
            found[written][...] = 3
            results.append([given, *found])
        same(results[1], results[0], 16)


def _listed(tree):
    return list(tree.values()) if isinstance(tree, dict) else [tree]


# -- a reshape that has to copy is no view --------------------------------------------------------


def _flat_of_a_transpose(x):
    flat = x.reshape(2, 12).T.reshape(24)
    x[0] = 5
    return flat * 1


def _into_the_flat_of_a_transpose(x):
    flat = x.T.reshape(-1)
    flat[0] = 9
    return flat * 1


def _into_the_flat(x):
    flat = x.reshape(-1)
    flat[0] = 9
    return flat * 1


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("outside", [False, True])
@pytest.mark.parametrize(
    "program", [_flat_of_a_transpose, _into_the_flat_of_a_transpose, _into_the_flat]
)
def test_a_reshape_that_copies(program, outside, transposed):
    def run(hybridized):
        x = np.array(numpy.arange(24.0).reshape(4, 6))
        x = x.T if transposed else x
        function = (lambda: program(x)) if outside else program
        function = heterosis.hybridize(function) if hybridized else function
        return [(function() if outside else function(x)).tolist() for _ in range(2)], x.tolist()

    assert run(True) == run(False)


# -- arrays that a loop goes over ------------------------------------------------------------------


def all_rows(x):
    total = np.zeros(2)
    for row in x:
        x += 1
        total = total + row
    return total


def rows_backwards(x):
    total = np.zeros(2)
    for row in reversed(x):
        x += 1
        total = total + row
    return total


def rows_of_a_part(x):
    total = np.zeros(2)
    for row in x[2:]:
        x += 1
        total = total + row
    return total


def rows_beside_each_other(x):
    total = np.zeros(2)
    for i, (row, other) in enumerate(zip(x, reversed(x))):
        x[3] += i
        total = total + row * other
    return total


def items_of_a_list(x):
    items = [x + i for i in range(7)]
    last, total = items[-1], x * 0
    for item in items:
        last += 1
        total = total + item
    return total


def rows_in_a_loop_within(x):
    total, i = np.zeros(2), 0
    for row in x:
        while i < total.sum():
            x[1] += 1
            i = i + 1
        if row.sum() > 3:
            x[2:] *= 2
        total = total + row
    return total


@pytest.mark.parametrize(
    "function",
    [
        all_rows, rows_backwards, rows_of_a_part, rows_beside_each_other, items_of_a_list,
        rows_in_a_loop_within,
    ],
)  # fmt: skip
def test_rows_are_seen_as_turns_leave_them(function):
    x, y = (np.arange(16).reshape(8, 2) * 1.0 for _ in range(2))
    expected = function(x)
    numpy.testing.assert_array_equal(heterosis.hybridize(function)(y), expected)
    numpy.testing.assert_array_equal(y, x)


def test_a_foreach_that_writes_to_its_data_is_refused():
    def body(row, state):
        x[:] += 1
        return row, state

    x = np.ones((8, 2))
    with pytest.raises(CaptureError, match="turns write to an array whose rows the loop goes over"):
        heterosis.hybridize(lambda x: npx.foreach(body, x, np.zeros(2)))(x)


def _states(weight):
    """A step that keeps a state among its arguments, and what it gives and leaves for three calls:
    the weight is another one from the second on."""

    def step(state, x):
        state[:] = np.tanh(x @ weight * 0.3) + state * 0.5
        return state @ weight

    return step


def test_a_state_is_written_beside_weights_that_are_packed_ahead():
    generator = numpy.random.default_rng(0)
    values = generator.normal(size=(64, 64)).astype("float32")
    x = np.array(generator.normal(size=(1, 64)).astype("float32"))
    found = []
    for compiled in (False, True):
        weight, state = np.array(values), np.zeros((1, 64))
        step = _states(weight)
        run = heterosis.hybridize(step) if compiled else step
        made = []
        for call in range(4):
            if call == 2:
                weight[:] = weight * -0.5
            made += [run(state, x).asnumpy(), state.asnumpy()]
        found.append(made)
    for eager, hybrid in zip(*found, strict=True):
        numpy.testing.assert_allclose(hybrid, eager, rtol=1e-5, atol=1e-5)
    assert not numpy.allclose(found[1][2], found[1][6])


def test_what_is_written_to_may_be_a_weight():
    """The array that is given is the one that the function finds outside, too: it is seen as it is
    at each call, whatever was packed of it before."""
    weight = np.array(numpy.arange(16, dtype="float32").reshape(4, 4) / 8)
    x = np.ones((1, 4))

    def step(given, x):
        given[:] = given * 0.5
        return x @ weight

    run, sums = heterosis.hybridize(step), numpy.array([[3.0, 3.5, 4.0, 4.5]])
    for given, scale in ((np.ones((4, 4)), 1), (weight, 0.5), (weight, 0.25), (x * 1, 0.25)):
        assert run(given, x).asnumpy().tolist() == (sums * scale).tolist()


# -- an array outside that is an argument, too -----------------------------------------------------


def in_both_branches(x, state, outside):
    if x[0] > 0:
        outside[outside < 0] = 0.5
    else:
        state += state
    return state * 1, outside * 1


def twice_in_one_branch(x, state, outside):
    if x[0] > 0:
        outside += 1
        state *= 2
        outside -= 3
    return state * 1, outside * 1


def in_branches_of_branches(x, state, outside):
    if x[0] > 0:
        if x[1] > 1:
            outside += 1
        else:
            state *= 3
        state *= 2
    else:
        outside[1:3] = state[:2]
    return state * 1, outside * 1


def through_a_view_in_a_branch(x, state, outside):
    if x[0] > 0:
        outside += 1
    else:
        column = state.reshape(-1, 1)[1:]
        column *= 2
    return state * 1, outside * 1


def in_a_scan(x, state, outside):
    def body(row, total):
        outside[:] = outside + row
        state[:] = state * 2
        return row + state.sum(), total + outside.sum()

    return *npx.foreach(body, x, np.zeros(())), state * 1


def in_a_loop(x, state, outside):
    def body(turn):
        outside[:] = outside + x[1]
        state[:] = state * 2
        return [], [turn + 1]

    npx.while_loop(lambda turn: turn < x[1], body, [np.zeros(())], max_iterations=5)
    return state * 1, outside * 1


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("signs", [(1.0, -1.0), (-1.0, 1.0)])
@pytest.mark.parametrize(
    "program",
    [
        in_both_branches,
        twice_in_one_branch,
        in_branches_of_branches,
        through_a_view_in_a_branch,
        in_a_scan,
        in_a_loop,
    ],
)
def test_writes_to_an_argument_that_is_an_array_outside(program, signs, apart):
    """One array by two names, in a branch or a turn too; and two, in other calls."""

    def left(hybridized):
        outside = np.array([0.5, -0.25, -1.0, -0.65, 0.25])

        def call(x, state):
            return program(x, state, outside)

        run, found = heterosis.hybridize(call) if hybridized else call, []
        for number, sign in enumerate(signs * 2):
            is_apart = apart and number % 2 == 1
            state = np.arange(5.0) if is_apart else outside
            found += leaves(run(np.array([sign, 2.0 - number % 2]), state))
            found += [state.copy(), outside.copy()]
        return found

    for found, wanted in zip(left(True), left(False), strict=True):
        same(found, wanted)


@pytest.mark.parametrize(
    "read",
    [float, lambda a: a.item(), lambda a: a.tolist()[0], lambda a: float(a.asnumpy()[0])],
    ids=["float", "item", "tolist", "asnumpy"],
)
@pytest.mark.parametrize("apart_first", [False, True])
def test_reading_what_an_argument_has_written_is_refused(read, apart_first):
    outside, x = np.array([0.5]), np.array([1.0, 2.0])

    @heterosis.hybridize
    def step(x, state):
        state -= x[0]
        return x * read(outside)

    if apart_first:
        state = np.array([3.0])
        assert step(x, state).tolist() == [0.5, 1.0]
        assert state.tolist() == [2.0]
    with pytest.raises(CaptureError, match=r"needs the elements of an array float32\[1\]"):
        step(x, outside)
    assert outside.tolist() == [0.5]


def test_choosing_by_what_an_argument_has_written():
    outside = np.array([2.0])

    @heterosis.hybridize
    def step(x, state):
        state -= x[0]
        if outside:
            return x + 1
        return x

    found = [step(np.array([number]), outside).item() for number in (1.0, 1.0, -1.0)]
    assert found == [2.0, 1.0, 0.0]
