"""What loops carry: trees, numbers of Python's, tuples with names, types that are joined."""

import dataclasses
import math
import operator
from typing import NamedTuple

import numpy

from heterosis import np, npx
from tests.capture.control_programs.table import LONG, program


class Pair(NamedTuple):
    low: object
    high: object


@dataclasses.dataclass
class Record:
    total: object
    count: object


@program()
def dictionaries(x):
    state = {"a": x, "b": {"c": x.sum()}}
    while state["b"]["c"] < 5:
        state = {"a": state["a"] + 1, "b": {"c": state["b"]["c"] + 2}}
    return state["a"] * state["b"]["c"]


@program()
def lists(x):
    state = [x, [x.sum(), x.max()]]
    while state[1][0] < 5:
        state = [state[0] * 0.5, [state[1][0] + 1, state[0].sum()]]
    return state[0] + state[1][1]


@program(x=LONG)
def a_tree_over_rows(x):
    state = {"mean": np.zeros(3), "all": (np.zeros(()), [np.ones(3)])}
    for row in x:
        count, (old,) = state["all"]
        state = {"mean": state["mean"] * 0.9 + row, "all": (count + 1, [old * row])}
    return state["mean"], state["all"][0], state["all"][1][0]


@program()
def named_tuples_of_branches(x):
    pair = Pair(x.min(), x.max())
    if x.sum() > 0:
        pair = Pair(pair.high, pair.low)
    return pair.low * x - pair.high


@program(x=LONG)
def named_tuples_of_loops(x):
    pair = Pair(x[0], x[0])
    for row in x:
        pair = pair._replace(low=np.minimum(pair.low, row), high=np.maximum(pair.high, row))
    while pair.low.sum() < 10:
        pair = Pair(pair.low + 1, pair.high)
    return pair.high - pair.low * 2


@program()
def a_dataclass_made_of_what_arrays_decide(x):
    total, count = x, x.sum()
    if x.sum() > 0:
        total, count = x * 2, count + 1
    record = Record(total, count)
    record.count = record.count + 1
    return record.total * record.count


@program()
def a_list_of_the_choice_is_changed(x):
    """Each branch has made its own, and nobody else knows it."""
    if x.sum() > 0:
        found, named = [x, x * 2], {"a": x, "b": x + 1}
    else:
        found, named = [x + 1, x * 3], {"a": x * 4, "b": x}
    found.append(x * 5)
    found[0] = found[0] + 1
    named["c"] = x
    return sum(found) + named["a"] - named["b"] * named["c"]


@program()
def numbers_carried(x):
    n, step, found = 0, 1.0, False
    while x.sum() * step < 20 and not found:
        n += 1
        step *= 1.5
        found = n > 6
    return x * step + n, np.zeros(1) + found


@program()
def an_integer_becomes_a_float(x):
    total = 0
    while x.sum() + total < 5:
        total = total + 0.75
    return x * total


@program(x=LONG)
def a_number_becomes_an_array(x):
    total, last = 0, None
    for row in x:
        total = total + row
        last = row * 2
    return total * 2 + last


@program()
def an_array_of_numbers_becomes_a_vector(x):
    """A state begins as a number, and is a vector behind one turn."""
    total = 0.0
    for row in x:
        total = total + row
    return total


@program(x=numpy.linspace(0, 1, 6).reshape(2, 3), gradient=False)
def double_precision(x):
    step = 0.1
    while x.sum() < 5:
        x = x + step
        step = step * 1.1
    return x


@program(gradient=False)
def half_precision(x):
    y = x.astype("float16")
    while np.abs(y).sum() < 20:
        y = y * 1.5 + 0.1
    return y


@program(x=numpy.arange(6, dtype="int32").reshape(2, 3), gradient=False)
def integers_carried(x):
    n = 0
    while x.sum() < 100:
        x = x * 2 + 1
        n += 1
    return x, np.zeros(1, dtype="int64") + n


@program(x=numpy.array([5, 200, 90], "uint8"), gradient=False)
def small_integers_wrap_around(x):
    n = np.array(0)
    while n < 3:
        x = x + x
        n = n + 1
    return x


@program(x=numpy.array([12, 18, 27, 7]), gradient=False)
def collatz(x):
    """Every element goes its own way, by masks."""
    steps = np.zeros(4, dtype="int64")
    x = np.maximum(x, 1)
    while (x > 1).any():
        going = x > 1
        x = np.where(going, np.where(x % 2 == 0, x // 2, 3 * x + 1), x)
        steps = steps + going.astype("int64")
    return steps


@program(x=numpy.array([48, 36]), gradient=False)
def greatest_common_divisor(x):
    a, b = np.abs(x[0]), np.abs(x[1])
    while b != 0:
        a, b = b, a % b
    return a


@program(x=numpy.array([True, False, False]), gradient=False)
def truths_carried(x):
    seen, n = x, np.array(0)
    while not seen.all():
        seen = np.concatenate([np.ones(1, dtype="bool"), seen[:-1]])
        n = n + 1
        if n > 5:
            break
    return seen, n


@program()
def none_until_it_is_set(x):
    best = None
    for row in x:
        if best is None:  # noqa: SIM114
            best = row
        elif row.sum() > best.sum():
            best = row
    return best


@program(x=LONG)
def none_until_it_is_set_over_many_rows(x):
    best = None
    for row in x:
        best = row if best is None else np.maximum(best, row)
    return best


@program()
def text_that_python_decides(x):
    name, total = "", x * 0
    for i in range(3):
        name += "ab"[i % 2]
        if x.sum() > len(name):
            total = total + {"a": x, "ab": x * 2, "aba": x * 3}[name]
    return total


@program()
def shapes_that_python_knows(x):
    if x.sum() > 0:  # noqa: SIM108
        y = x.reshape(x.shape[1], -1)
    else:
        y = x.T * 2
    return y @ x


@program()
def a_cumulative_state_of_another_shape(x):
    outer = np.zeros((3, 3))
    for row in x:
        outer = outer + row.reshape(3, 1) * row
        if outer.max() > 1:
            outer = outer / outer.max()
    return outer


@program()
def constants_are_carried(x):
    """A state that no turn changes, and one that begins as another one's value."""
    y, z = x, x
    n = 0
    while y.sum() < 10 and n < 5:
        y = y + 1
        n += 1
    return y * z


@program()
def numbers_are_not_written_to(x):
    """A number has the value that it had, whoever goes on with it."""
    n, largest = 0, 0
    if x.sum() > 0:
        n = 1
    before = n
    n += 5
    while x.sum() < 10:
        largest = n
        n += 1
        x = x + 1
    after = n
    n -= 2
    return x * before + n, after * x + largest


@program(x=LONG)
def numbers_in_lists(x):
    n, total, found = 0, 0, []
    for row in x:
        found.append(n)
        if row.sum() > 0:
            n += 1
        total += row.sum()
    return np.stack([np.zeros(1) + one for one in found]) * x[0], total + n


@program(x=LONG, gradient=False)
def arithmetic_of_numbers(x):
    """As Python does it: integers stay integers, and True is 1."""
    n, flag = 7, False
    for row in x:
        if row.sum() > 0.5:
            n, flag = -9, True
    parts = [
        n // 2,
        n % 4,
        n / 2,
        n**2,
        -n,
        abs(n),
        n**2.0,
        n << 1,
        n | 1,
        n & 6,
        ~n,
        flag + flag,
        -flag,
    ]
    return np.stack([np.zeros(1) + part for part in parts])


@program(gradient=False)
def numbers_adapt_to_arrays(x):
    n, step = 3, 0.5
    if x.sum() > 0:
        n, step = 5, 1.5
    small, whole = x.astype("float16"), (x * 3).astype("int32")
    return small * n, small + step, whole * n, whole + step, (x > 0) + n, whole // n, n < whole


@program(x=LONG)
def large_integers_are_counted(x):
    """float32 would stay at 16,777,216."""
    n = 16_777_215
    for row in x:
        if row.sum() > -10:
            n += 1
    while x.sum() < 30:
        n += 1
        x = x + 1
    return x * (n - 16_777_215)


@program()
def a_number_that_is_asked_what_it_is(x):
    n = 1
    if x.sum() > 0:
        n = 2
    return x * n if isinstance(n, int) and not isinstance(n, float) else x


@program()
def random_numbers_of_one_branch(x):
    """The generator goes on as far as the branch that runs has drawn."""
    y = npx.cond(x.sum() > 0, lambda: x * np.random.uniform(size=(2, 3)), lambda: x * 3)
    return y + np.random.uniform(size=(2, 3))


@program()
def fractions_have_the_digits_of_python(x):
    tenth = 0.1 if x.sum() > 0 else 0.2
    third = (1 if x.sum() > 0 else 2) / 3
    exact = tenth + 0.2 == 0.30000000000000004 or tenth + 0.2 == 0.4
    return x * (2 if exact else 3), x * (third * 3e9 - 1e9)


@program()
def fractions_carried(x):
    total, n = 0.0, 0
    while x.sum() + n < 1000:
        total += 0.1
        n += 1
    return x * ((total - n * 0.1) * 1e12)


@program()
def numbers_beside_element_types(x):
    n, half = (3, 0.5) if x.sum() > 0 else (2, 0.1)
    found = [x.astype(dtype) * half for dtype in ("float16", "float32", "float64", "int32")]
    found += [x.astype(dtype) + n for dtype in ("float16", "float64", "int32")]
    return found


@program()
def numbers_in_functions(x):
    n, half = (3, 0.5) if x.sum() > 0 else (2, 0.1)
    wide = x.astype("float64")
    return (
        np.where(x > 0, half, x),
        np.maximum(wide, half),
        np.full((2,), n),
        np.array(n),
        np.array(half),
        np.exp(half),
        np.clip(x, -half, n),
        np.where(x.astype("int32") > 0, n, x.astype("int32")),
        np.stack([np.array(half), x[0, 0]]),
    )


@program()
def kinds_of_numbers(x):
    n, half, flag = (3, 0.5, True) if x.sum() > 0 else (2, 0.1, False)
    checks = [
        type(n) is int,
        type(half) is float,
        n.__class__ is int,
        isinstance(half, float),
        not isinstance(n, np.ndarray),
        flag is True,
        flag is not False,
        n is not True,
        n is not None,
        operator.is_(flag, True),
        (n == 3) is (half == 0.5),
        hasattr(n, "real"),
        not hasattr(n, "shape"),
        getattr(n, "shape", None) is None,
    ]
    found = [np.zeros(1) + (1 if check else 0) for check in checks]
    return np.stack(found), x * n.real, x * half.conjugate(), x * (3 if half.is_integer() else 4)


@program(gradient=False)
def conversions_of_numbers(x):
    half, n = (3.5, 3) if x.sum() > 0 else (-2.5, 0)
    parts = [
        int(half),
        float(n) / 7,
        bool(n),
        round(half),
        math.floor(half),
        math.ceil(half),
        math.trunc(half),
        abs(half),
        *divmod(half, 2),
        *divmod(n, -2),
        half // -1.5,
        half % -1.5,
        max(half, n),
        sum([half, n, 1]),
    ]
    return np.stack([np.zeros(1) + part for part in parts])
