"""Programs that are refused: what would happen, or be one object, depends on arrays."""

import bisect
import contextlib
import functools
import heapq

import numpy

from heterosis import np

REFUSED = []


def refused(message):
    """Put a program into the table, with what the error says."""

    def register(function):
        REFUSED.append((function, message))
        return function

    return register


_CHANGED = "of type {} is changed at .*, within a branch or a loop"
_ANOTHER = "may be another one as well"


# -- objects that branches change ------------------------------------------------------------------


@refused(_CHANGED.format("list"))
def a_list_is_extended_in_place(x):
    found = []
    if x.sum() > 0:
        found += [x]
    return x + len(found)


@refused(_CHANGED.format("dict"))
def a_dictionary_is_updated_in_place(x):
    found = {"a": 1}
    if x.sum() > 0:
        found |= {"b": 2}
    return x + len(found)


@refused(_CHANGED.format("ndarray"))
def an_array_of_numpy_is_written_to(x):
    found = numpy.zeros(2)
    if x.sum() > 0:
        found += 1
    return x + found.sum()


@refused(_CHANGED.format("ndarray"))
def an_array_of_numpy_is_filled(x):
    found = numpy.zeros(2)
    if x.sum() > 0:
        found.fill(1)
    return x + found.sum()


class Counter:
    """Counts in place."""

    count = 0

    def __iadd__(self, n):
        self.count += n
        return self


@refused(_CHANGED.format("Counter"))
def an_object_counts_in_place(x):
    counter = Counter()
    if x.sum() > 0:
        counter += 2
    return x + counter.count


@refused(_CHANGED.format("list"))
def a_heap(x):
    heap = [3]
    while x.sum() < 10:
        x = x + 1
        heapq.heappush(heap, 1)
    return x + len(heap)


@refused(_CHANGED.format("list"))
def a_sorted_list(x):
    found = [3]
    if x.sum() > 0:
        bisect.insort(found, 1)
    return x + len(found)


@refused(_CHANGED.format("list"))
def a_method_of_the_class(x):
    found = []
    if x.sum() > 0:
        list.append(found, 1)
    return x + len(found)


@refused(_CHANGED.format("list"))
def a_method_with_its_arguments(x):
    found = []
    add = functools.partial(found.append, 1)
    if x.sum() > 0:
        add()
    return x + len(found)


@refused(_CHANGED.format("list"))
def a_method_that_map_calls(x):
    found = []
    if x.sum() > 0:
        list(map(found.append, [1, 2]))
    return x + len(found)


class Logged:
    """Notes that it was entered."""

    def __init__(self, log):
        self.log = log

    def __enter__(self):
        self.log.append("entered")

    def __exit__(self, *error):
        pass


@refused(_CHANGED.format("list"))
def a_context_that_changes_a_list(x):
    log = []
    if x.sum() > 0:
        with Logged(log):
            x = x * 2
    return x + len(log)


@refused("an object of type list is changed at .*, within a branch")
def a_context_that_is_a_generator(x):
    log = []

    @contextlib.contextmanager
    def scope():
        log.append("entered")
        yield

    if x.sum() > 0:
        with scope():
            x = x * 2
    return x + len(log)


# -- objects that may be one -----------------------------------------------------------------------


@refused(_ANOTHER)
def a_list_with_two_names(x):
    first = [x]
    second = first
    if x.sum() > 0:
        second = [x + 1]
    second[0] = second[0] * 100
    return first[0]


@refused(_ANOTHER)
def the_other_name(x):
    first = {"a": x}
    second = first
    if x.sum() > 0:
        second = {"a": x + 1}
    first["a"] = x * 100
    return second["a"]


@refused(_ANOTHER)
def a_list_that_a_loop_may_have_replaced(x):
    first = [x]
    second = first
    while second[0].sum() < 3:
        second = [second[0] + 1]
    second[0] = second[0] * 100
    return first[0]


@refused(_ANOTHER)
def a_list_chosen_by_an_expression(x):
    first, second = [x], [x + 1]
    chosen = first if x.sum() > 0 else second
    chosen.append(x)
    return sum(first) + sum(second)


@refused(_ANOTHER)
def two_names_made_in_a_branch(x):
    if x.sum() > 0:
        first = [x, x]
        second = first
    else:
        first, second = [x, x * 2], [x * 2, x * 3]
    first[0] = x * 10
    return sum(first) + sum(second)


@refused(_ANOTHER)
def two_names_of_an_array(x):
    if x.sum() > 0:
        first = x * 1
        second = first
    else:
        first, second = x * 2, x * 3
    first[0] = 10
    return first + second


@refused(_ANOTHER)
def two_names_of_an_array_in_a_loop(x):
    first, second = x[0] * 1, x[0] * 2
    while second.sum() < 4:
        first = first + 1
        second = first
    first[0] = 10
    return first + second


@refused("whether two names stand for one object depends on arrays")
def is_a_list(x):
    first = [x]
    second = first
    if x.sum() > 0:
        second = [x + 1]
    return x if first is second else x * 2


@refused("whether two names stand for one object depends on arrays")
def is_an_array(x):
    second = x
    if x.sum() > 0:
        second = x + 1
    return x if x is not second else x * 2


# -- variables and types ---------------------------------------------------------------------------


@refused(r"y is float32\[2, 3\] in one branch .* and not set in the other")
def on_one_branch_alone(x):
    if x.sum() > 0:
        y = x * 2
    return y


@refused(r"y is float32\[2, 3\] in one branch .* and None in the other")
def none_on_one_branch(x):
    y = None
    if x.sum() > 0:
        y = x
    return x if y is None else y


@refused(r"mode is 'b' in one branch .* and 'a' in the other")
def a_text_that_arrays_choose(x):
    mode = "a"
    if x.sum() > 0:
        mode = "b"
    return x if mode == "a" else x * 2


@refused(r"f is a function in one branch .* and another function in the other")
def a_function_that_arrays_choose(x):
    f = np.sin
    if x.sum() > 0:  # noqa: SIM108
        f = lambda y: y * 2  # noqa: E731
    else:
        f = lambda y: y * 3  # noqa: E731
    return f(x)


@refused(r"y is float32\[3\] in one branch .* and float32\[2, 3\] .* \(made at .*:\d+ and .*:\d+\)")
def shapes_that_differ(x):
    y = x * 1
    if x.sum() > 0:
        y = x[0]
    return y


@refused(r"x is float32\[2, 3\] before the loop at .*, and float32\[4, 3\] .* made at .*:\d+")
def a_shape_that_grows(x):
    while x.sum() < 100:
        x = np.concatenate([x, x])
    return x


@refused("i is set in the loop at .* alone, which may take no turn")
def the_number_of_a_turn_that_may_not_be(x):
    for i in range(x.sum().astype("int64")):  # noqa: B007
        x = x + 1
    return x * i


@refused("a variable is set with := behind it")
def a_walrus_that_an_array_decides(x):
    if x.sum() > 0 and (largest := x.max()) > 1:
        x = x + largest
    return x


@refused("a function calls itself in a branch")
def recursion(x):
    return x if x.sum() > 0 else recursion(x + 1)


@refused("an integer or a fraction by its sign")
def a_power_of_integers(x):
    n = 2
    if x.sum() > 0:
        n = 3
    return x * 2**-n


@refused(r"total is 0 before the loop at .*, and float32\[2, 3\] behind a turn")
def a_number_that_becomes_a_matrix(x):
    total = 0
    while x.sum() < 10:
        total += x
        x = x + 1
    return total + x


@refused("body at .*: total is written to in place, and is another array")
def a_sum_in_place_has_a_second_name(x):
    total = np.zeros(3)
    other = total
    while total.sum() < x.sum():
        total += 1
        other = other + 1
    return total + other


@refused("something in pair is float32\\[2, 3\\] before the loop")
def an_array_in_a_pair_changes_its_shape(x):
    pair = (x, 1)
    while pair[0].sum() < 10:
        pair = (pair[0].T + 1, 2)
    return pair[0]


@refused("stands for a number of Python's is written to in place")
def a_number_is_written_to(x):
    n = 1
    if x.sum() > 0:
        n = 2
    n[...] = 5
    return x * n


# -- numbers that arrays have chosen ---------------------------------------------------------------


def _number(x):
    return 2 if x.sum() > 0 else 3


@refused("whether two objects, one of which is a number")
def a_chosen_number_is_a_number(x):
    two = 2
    return x if _number(x) is two else -x


@refused("whether two objects, one of which is a number")
def a_number_or_an_array_is_true(x):
    return x if (x.sum() > 0 and True) is True else -x


@refused("id at .*: a number that arrays have chosen")
def the_identity_of_a_chosen_number(x):
    return x if id(_number(x)) == id(2) else -x


@refused(r"int\.bit_length at .*: of a number that arrays have chosen")
def a_method_of_a_chosen_number(x):
    return x * _number(x).bit_length()


@refused(r"pow at .*: three numbers, and arrays have chosen one of them")
def a_chosen_number_is_the_base_of_a_power_with_a_modulus(x):
    return x * pow(_number(x), 2, 7)


@refused(r"pow at .*: three numbers, and arrays have chosen one of them")
def a_chosen_number_is_the_modulus_of_a_power(x):
    return x * pow(9, exp=2, mod=_number(x))


@refused("How many elements this gives")
def a_chosen_number_of_repetitions(x):
    return np.repeat(x, _number(x))


@refused("a list or a tuple, and a number that arrays have chosen")
def a_list_is_repeated(x):
    return x * len([1.0] * _number(x))


@refused("a list or a tuple, and a number that arrays have chosen")
def a_list_equals_a_number(x):
    return x if _number(x) == [2] else -x


@refused("Whether something is in there")
def a_chosen_number_is_in_a_list(x):
    return x if _number(x) in [2, 5] else -x


@refused("Arrays have no hash")
def a_chosen_number_is_a_key(x):
    return x * {2: 5, 3: 7}[_number(x)]


@refused("A text with digits")
def a_chosen_number_is_a_text(x):
    return x * len(f"{_number(x)}")


@refused("how far a range goes")
def a_list_as_long_as_a_chosen_number(x):
    return x * len(list(range(_number(x))))


# -- errors that are caught ------------------------------------------------------------------------

_CAUGHT = "arrays decide whether it is raised, and the try at .* catches it"


@refused(_CAUGHT)
def a_branch_within_a_try_raises(x):
    try:
        if x.sum() > 0:
            raise ValueError("positive")
    except ValueError:
        x = -x
    return x


@refused(_CAUGHT)
def an_expression_within_a_try_raises(x):
    try:
        return x if x.sum() > 0 else {}["key"]
    except KeyError:
        return -x


@refused(_CAUGHT)
def python_raises_in_a_branch_within_a_try(x):
    try:
        y = int("none") if x.sum() > 0 else 2
    except ValueError:
        y = 3
    return x * y


@refused(_CAUGHT)
def a_branch_raises_what_is_suppressed(x):
    with contextlib.suppress(ValueError):
        if x.sum() > 0:
            raise ValueError("positive")
        x = x * 2
    return x


@refused(_CAUGHT)
def a_called_function_raises(x):
    def checked(y):
        if y.sum() > 0:
            raise KeyError("positive")
        return y

    try:
        return checked(x)
    except (KeyError, ValueError):
        return -x


@refused(_CAUGHT)
def an_assertion_is_caught(x):
    try:
        assert x.sum() > 0
    except AssertionError:
        return -x
    return x


@refused(_CAUGHT)
def a_turn_raises_within_a_try(x):
    try:
        while x.sum() < 10:
            x = x + 1
            raise ValueError
    except ValueError:
        x = -x
    return x
