"""Loops: `while`, `for` over rows and ranges, and how they are left; `npx.foreach` and
`npx.while_loop`."""

import numpy

from heterosis import autograd, np, npx
from tests.capture.control_programs.table import LONG, program

# -- while -----------------------------------------------------------------------------------------


@program()
def halves_until_small(x):
    y, turns = x, 0
    while np.abs(y).max() > 0.3:
        y = y * 0.5
        turns += 1
    return y, turns * np.ones(2)


@program()
def a_while_that_may_not_turn(x):
    while x.sum() < 0:
        x = x + 1
    return x * 2


@program()
def a_while_in_a_while(x):
    count = 0
    while x.sum() < 40:
        while x.max() < 5:
            x = x + 1
            count += 1
        x = x * 1.5
    return x, np.zeros(1) + count


@program()
def while_with_break_and_continue(x):
    n = 0
    while n < 20:
        n += 1
        if x.sum() > 30:
            break
        if x.max() < 1:
            x = x + 0.5
            continue
        x = x * 1.5
    return x, np.zeros(1) + n


@program()
def while_with_else(x):
    n = 0
    while n < 4:
        x = x + 0.5
        n += 1
        if x.sum() > 8:
            break
    else:
        x = x * 10
    return x


@program()
def while_true(x):
    while True:
        x = x * 2 + 1
        if x.max() > 20:
            return x


@program()
def a_walrus_in_a_while(x):
    while (total := x.sum()) < 10:
        x = x + 1 + total * 0
    return x, total


@program()
def and_in_a_while(x):
    n = np.array(0)
    while x.sum() < 100 and n < 5 and not x.max() > 50:
        x = x * 2 + 1
        n = n + 1
    return x, n


@program(gradient=False)
def nan_ends_no_loop_by_itself(x):
    """A comparison with NaN is false: `while error > 1e-3` ends, `while not error < 1e-3` would
    not."""
    error, n = x.sum() / x.sum() * np.array(float("nan")), 0
    while error > 1e-3:
        n += 1
    while not error < 1e-3:
        n += 1
        if n > 3:
            break
    return x + n


@program()
def zero_turns_of_a_range(x):
    n = (x.sum() > 1000).astype("int64")
    for i in range(n):
        x = x * i
    return x


@program()
def a_range_with_an_array_bound(x):
    n = 2 + (x.sum() > 0).astype("int64") * 2
    total = x * 0
    for i in range(n):
        total = total + x * i
    return total


@program()
def a_range_between_arrays(x):
    first = (x.sum() > 0).astype("int64")
    total = x * 1
    for i in range(first, 7 - first, 2):
        if i > 4:
            break
        total = total * 0.5 + i
    return total


@program()
def the_number_of_the_last_turn(x):
    """AutoGraph has no value for it."""
    i = 0
    n = 3 + (x.sum() > 0).astype("int64")
    for i in range(n):  # noqa: B007
        x = x + 1
    return x * i


# -- rows ------------------------------------------------------------------------------------------


@program()
def sums_of_rows(x):
    total = np.zeros(3)
    for row in x:
        total = total + row * row
    return total


@program(x=LONG)
def a_scan_of_rows(x):
    total = np.zeros(3)
    for row in x:
        total = np.tanh(total + row * row)
    return total


@program()
def rows_with_break(x):
    total = np.zeros(3)
    for row in x:
        if row.sum() > 0.5:
            break
        total = total + row
    return total + x


@program(x=LONG)
def a_scan_with_break(x):
    total = np.zeros(3)
    for row in x:
        if row.sum() > 0.5:
            break
        total = total + row
    return total + x


@program()
def rows_with_continue(x):
    total = x[0] * 1
    for row in x:
        if row.sum() > 0.5:
            continue
        total = total * row + 1
    return total


@program(x=LONG)
def a_scan_with_continue_and_else(x):
    total = x[0] * 1
    for row in x:
        if row.sum() > 0.5:
            continue
        total = total * row + 1
        if total.sum() > 30:
            break
    else:
        total = total * 2
    return total


@program()
def a_loop_in_a_loop(x):
    total = np.zeros(3)
    for row in x:
        for other in x:
            if row.sum() > other.sum():
                total = total + row * other
    return total + x[0]


@program(x=LONG)
def a_scan_in_a_scan_with_exits(x):
    total = np.zeros(3)
    for row in x:
        for other in x:
            if row.sum() < other.sum():
                break
            if other.max() < -0.5:
                continue
            total = total + row * other
        if total.sum() > 100:
            break
    return total + x[0]


@program()
def return_in_a_loop_in_a_branch(x):
    if x.sum() > -2:
        for row in x:
            if row.max() > 0.5:
                return row * 2
    return x[0] - 1


@program(x=LONG)
def return_in_a_scan_in_a_branch(x):
    if x.sum() > -10:
        for row in x:
            if row.max() > 0.5:
                return row * 2
    return x[0] - 1


@program(x=LONG)
def return_in_a_while_in_a_scan(x):
    for row in x:
        n = 0
        while n < 3:
            n += 1
            row = row + 0.5
            if row.sum() > 2:
                return row * n
    return x[0]


@program()
def returns_of_different_depth(x):
    if x.sum() > 10:
        return x[0]
    for row in x:
        if row.sum() > 0:
            if row.max() > 0.7:
                return row * 2
            for other in x:
                if other.min() > 0.3:
                    return other * 3
        elif row.min() < -1:
            return row
    return x.sum(axis=0)


@program(x=LONG)
def the_last_row_behind_the_loop(x):
    row = x[0]
    for row in x:  # noqa: B007 - it is used behind the loop
        pass
    return row * 2


@program()
def swapped_in_a_loop(x):
    a, b = x[0] * 1, x[1] * 1
    for row in x:
        a, b = b + row, a
    return a * b


@program(x=LONG)
def fibonacci_of_rows(x):
    a, b = x[0] * 1, x[1] * 1
    for row in x:
        a, b = b, a + b * 0.5 + row
    return a * b


@program(x=LONG)
def rows_of_two_with_their_numbers(x):
    total = np.zeros(3)
    for i, (row, other) in enumerate(zip(x, x[::-1], strict=True)):
        total = total * 0.5 + row * other + i
    return total


@program(x=LONG)
def an_inner_state_that_begins_anew(x):
    total = np.zeros(())
    for row in x:
        inner = 0.0
        while inner < 3:
            inner = inner + 1 + np.abs(row).sum()
        total = total + inner
    return total * x


@program(x=LONG)
def rows_of_a_square(x):
    """Each row with all: a matrix, row by row."""
    found = []
    for row in x:
        found.append(x @ row)  # noqa: PERF401
    return np.stack(found)


@program(x=LONG)
def only_positive_rows_count(x):
    total, count = np.zeros(3), np.array(0)
    for row in x:
        if row.sum() > 0:
            total = total + row
            count = count + 1
    return total / np.maximum(count, 1)


@program(x=LONG[:5, :1])
def a_vector_element_by_element(x):
    total = np.zeros(())
    for element in x.reshape(-1):
        total = total * 0.5 + element if element > 0 else total - element
    return total


@program(x=numpy.zeros((0, 3), "float32"))
def no_rows(x):
    total = np.ones(3)
    for row in x:
        total = total + row * 100
    return total * 2 + x.sum()


@program(x=numpy.zeros((7, 0), "float32"), gradient=False)
def rows_of_nothing(x):
    total = np.zeros(0)
    n = 0
    for row in x:
        total = total + row
        n = n + 1
    return total, x, np.zeros(1) + n


@program(x=numpy.zeros((0,), "float32"), gradient=False)
def an_empty_array_decides_by_its_sum(x):
    return x + 1 if x.sum() > 0 else x * 2 + x.sum()


@program(x=numpy.arange(21).reshape(7, 3), gradient=False)
def integer_rows(x):
    total, odd = np.zeros(3, dtype="int64"), np.array(False)
    for row in x:
        total = total + row
        odd = odd != (row.sum() % 2 == 1)
    return total, odd


@program(x=LONG)
def nothing_is_carried(x):
    found = []
    for row in x:
        if row.sum() > 0:  # noqa: SIM108
            y = row * 2
        else:
            y = -row
        found.append(y)
    return np.stack(found)


@program(x=LONG)
def a_list_of_pairs(x):
    sums, both = [], []
    total = np.zeros(3)
    for row in x:
        total = total + row
        sums.append(total)
        both.append((row * 2, {"sum": total.sum()}))
    return np.stack(sums), np.stack([a for a, _ in both]), sum(b["sum"] for _, b in both)


@program(x=LONG)
def with_inside_a_scan(x):
    """TorchScript has failed for `continue` within two `with`."""
    total = np.zeros(3)
    for row in x:
        with autograd.predict_mode():
            if row.sum() > 1:
                continue
            with autograd.train_mode():
                if row.sum() < -1.5:
                    continue
                total = total + row
            total = total * 2
    return total + x[0]


@program(x=LONG)
def try_inside_a_scan(x):
    total = np.zeros(3)
    for row in x:
        try:
            if row.sum() > 1:
                continue
            total = total + row
        except ValueError:
            total = total * 100
        finally:
            total = total + 1
    return total + x[0]


# -- functions of loops ----------------------------------------------------------------------------


@program()
def scan_with_outputs(x):
    return npx.foreach(lambda row, s: (np.tanh(row * s), s + row), x, np.ones(3))


@program()
def scan_over_two(x):
    def body(rows, states):
        a, b = rows
        return [a * b, states[0]], [states[0] + a, states[1] * b]

    (one, other), (first, second) = npx.foreach(body, [x, np.cos(x)], [np.zeros(3), np.ones(3)])
    return one, other, first, second


@program()
def outputs_copied_from_what_turns_write_to(x):
    state = np.zeros(3)

    def body(row, s):
        s[0] += row
        return np.copy(s[0]), s

    return npx.foreach(body, x, [state])[0]


@program()
def bounded_with_outputs(x):
    def body(n, s):
        return s * 2, [n + 1, s + x[0]]

    outputs, (_, s) = npx.while_loop(
        lambda n, s: np.logical_or(n < 1, s.sum() < 3), body, [np.array(0), np.zeros(3)], 5
    )
    return outputs, s


@program()
def a_bounded_loop_that_does_not_turn(x):
    """MXNet fails for it when it is hybridized."""
    _, s = npx.while_loop(lambda s: s.sum() < -1000, lambda s: (s, s * 2), [x], max_iterations=5)
    return s


@program(numpy.ones(1, "float32"), numpy.ones(1, "float32"))
def a_bounded_loop_with_arrays_around_it(x, a, b):
    """MXNet fails for this one when it is hybridized: a and b are free, and not used."""
    outputs, s = npx.while_loop(
        lambda s: np.prod(s < 1e35), lambda s: (s * 1, s * 1), [x], max_iterations=5
    )
    return [outputs * 2, s[0] * 3]


@program()
def a_power_by_turns_that_go_on_doing_nothing(x):
    """JAX's gradient of it was three times too large."""

    def turn(_, state):
        value, running = state
        after = npx.cond(running < 4, lambda: (value * x, running + 1), lambda: (value, running))
        return value, list(after)

    _, (value, _) = npx.foreach(turn, np.zeros(4), [x * 1, np.array(1)])
    return value


@program()
def a_choice_in_turns_around_a_weight(x):
    """MXNet's gradients of it become NaN."""
    weight = np.cos(x[0])
    for _ in range(4):
        x = np.tanh(x * weight) if x.sum() > 0 else x + weight
    return x
