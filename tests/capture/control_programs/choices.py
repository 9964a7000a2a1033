"""Choices: `if`, conditional expressions, `and`, `or`, comparisons, `npx.cond`."""

import contextlib

import numpy

from heterosis import np, npx
from tests.capture.control_programs.table import program


@program()
def a_choice_in_a_choice(x):
    if x.sum() > 0:
        y = x * 2 if x.max() > 2 else x * 3
        y = y + 1
    else:
        y = np.exp(x)
    return y * x


@program()
def a_root_that_one_branch_uses(x):
    """Its slope is NaN where the other branch is taken."""
    root = np.sqrt(x)
    return root * 2 if x.min() > 0 else x * 3


@program()
def roots_that_meet_behind_a_choice(x):
    """Each is used once in a branch of its own, and both of one value."""
    y = np.sin(x) * 2
    one, other = np.log(y + 1), np.sqrt(y)
    y = other + one * other if y.min() > 0 else np.exp(x)
    return y * x, one.sum() if y.min() > 1 else x.sum()


@program()
def a_root_behind_two_choices(x):
    root = np.sqrt(x)
    if x.max() > 1:
        return (root if x.min() > 0 else x) + x
    return x * 2


@program()
def three_ways(x):
    if x.sum() > 5:
        return x * 2
    elif x.sum() > 0:  # noqa: RET505 - it is what is tested
        return x - 1
    return np.tanh(x)


@program()
def chained_comparison(x):
    return x * 2 if -1 < x.sum() < 10 else x + 1


@program()
def both_and_either(x):
    y = x
    if (x.sum() > 0 and x.max() < 3) or x.min() < -1.5:
        y = y * 3
    if not (x.sum() > 0):
        y = y + 1
    return y


@program()
def values_of_and_and_or(x):
    """Python gives the operand that decided."""
    return x * (x.max() and x.min()) + (x.sum() or x.max())


@program()
def a_tuple_of_two(x):
    if x.sum() > 0:
        low, high = x.min(), x.max()
    else:
        low, high = x.max(), x.min()
    return low * x, high + x


@program()
def numbers_of_python(x):
    scale, power = 1, 2
    if x.sum() > 0:
        scale, power = 3, 4
    return x * scale + power


@program()
def a_choice_by_cond(x):
    return npx.cond(x.sum() > 0, lambda: (x * 2, x + 1), lambda: (x, x * x))


@program()
def cond_with_inputs(x):
    return npx.cond(lambda a, b: a.sum() > b.sum(), lambda a, b: a * b, lambda a, b: a + b,
                    [x, np.cos(x)])  # fmt: skip


@program()
def a_branch_that_hands_an_argument_on(x):
    """PyTorch's cond refuses it."""
    return npx.cond(x.sum() > 0, lambda: x, lambda: x * 2)


@program()
def a_branch_that_does_nothing(x):
    if x.sum() > 0:
        pass
    else:
        x = x - 1
    return x


@program()
def rounded_in_one_branch(x):
    """MXNet fails where the operators of a branch need nothing of their inputs to go back."""
    return npx.cond(np.sum(x) > 0, lambda: np.tanh(x), lambda: np.round(x) + x * 0)


@program()
def a_choice_is_no_where(x):
    """A branch that does not run has no gradient: `np.where` would give NaN for it."""
    if x.min() > 0:
        return np.sqrt(x)
    return x * 3


@program()
def a_choice_by_training_is_pythons(x):
    """What Python knows is decided when it is captured, between what arrays decide."""
    if x.ndim == 2:
        if x.sum() > 0:  # noqa: SIM108
            y = x * 2
        else:
            y = x * 3
    else:
        y = "never"
    return y + 1


@program()
def types_are_joined(x):
    y = np.array([1, 2, 3])
    if x.sum() > 0:
        y = (x[0] > 0).astype("int32")
    return y * x


@program(gradient=False, joined=True)
def booleans_and_integers_are_joined(x):
    flag = x > 0
    if x.sum() > 0:
        flag = (x * 3).astype("int64")
    return flag


@program(gradient=False, joined=True)
def narrow_and_wide_floats_are_joined(x):
    y = x.astype("float16")
    if x.sum() > 0:
        y = x.astype("float64")
    return y


@program(x=numpy.arange(6).reshape(2, 3), gradient=False)
def integers(x):
    if x.sum() > 20:
        return x // 2
    return x % 4


@program(x=numpy.array([True, False, True]), gradient=False)
def truths(x):
    if x.all():
        return ~x
    if x.any():
        x = x ^ True
    return x


@program()
def an_array_of_one_element_decides(x):
    if x[:1, :1] > 0:
        return x * 2
    return x


@program(numpy.float32("nan"), gradient=False)
def nan_is_true_and_compares_as_false(x, nan):
    y = x
    if nan:
        y = y + 1
    if nan > 0:
        y = y + 2
    if not (nan > 0):
        y = y + 4
    if nan == nan:  # noqa: PLR0124 - it is what is tested
        y = y + 8
    if 0 < nan < 1:
        y = y + 16
    return y


@program(numpy.float32(-0.0), gradient=False)
def minus_zero_is_false(x, zero):
    return x + 1 if zero else x - 1


@program()
def a_truth_of_a_shape_is_pythons(x):
    total = x.sum()
    if total.shape == () and x.shape[0] == 2 and total > 0:
        return x * 2
    return x


@program()
def the_same_object_in_both_branches(x):
    scale = {"by": 2, "name": "two"}
    if x.sum() > 0:
        chosen, y = scale, x
    else:
        chosen, y = scale, -x
    return y * chosen["by"]


@program()
def deleted_in_a_branch(x):
    y = x * 2
    if x.sum() > 0:
        z = y + 1
        del y
    else:
        z = y
        del y
    return z


@program()
def set_again_after_one_branch(x):
    """What one branch alone sets is no fault while nobody reads it."""
    if x.sum() > 0:
        y = x * 2
        x = y + 1
    y = x * 3
    return y  # noqa: RET504


@program()
def loops_in_branches(x):
    if x.sum() > 0:
        while x.max() < 10:
            x = x * 2
    else:
        for row in x:
            x = x + row
    return x


@program()
def an_assertion_that_holds(x):
    assert x.max() < 100, "too large"
    if x.sum() > 0:
        assert x.max() > 0
    return x * 2


@program()
def a_walrus(x):
    if (total := x.sum()) > 0 and x.max() > 0.5:
        return x * total + (n := len(x)) + n
    return x - total


@program()
def a_match_of_a_shape(x):
    if x.sum() > 0:
        match x.shape:
            case (2, columns):
                return x * columns
            case _:
                return x
    return -x


@program()
def a_choice_between_a_number_and_an_array(x):
    scale = 1.5
    if x.sum() > 0:
        scale = x.max()
    return x * scale


@program()
def a_choice_of_rows_by_an_array(x):
    row = x[np.argmax(x.sum(axis=1))]
    return row * 2 if row.sum() > 0 else row


@program()
def a_conditional_expression_among_arguments(x):
    return np.concatenate([x, x * 2 if x.sum() > 0 else x, -x if x.max() > 1 else x + 1])


@program()
def a_condition_asked_twice(x):
    positive = x.sum() > 0
    y = x * 2 if positive else x
    return y + 1 if positive else y - 1


# -- errors that Python catches within a branch or a turn ------------------------------------------


@program()
def a_branch_catches_what_it_raises(x):
    if x.sum() > 0:
        try:
            raise ValueError("positive")
        except Exception as error:  # noqa: BLE001 - it is what is tested
            y = x * len(str(error))
    else:
        y = x
    return y


@program()
def a_turn_catches_and_goes_on(x):
    for i in range(3):
        try:
            if i == 1:
                raise ValueError
            if x.sum() > 3:
                return x * 2
        except ValueError:
            continue
        finally:
            x = x + 0.5
    return -x


@program()
def a_while_catches_in_every_turn(x):
    while x.sum() < 10:
        try:
            x = x + 1
            raise StopIteration
        except StopIteration:
            x = x + 0.5
        else:
            x = x * 3
    return x


@program()
def a_function_in_a_branch_catches(x):
    def found(key):
        try:
            return {"a": 2.0}[key]
        except KeyError:
            return 3.0

    return x * found("a") if x.sum() > 0 else x * found("b")


@program()
def a_branch_suppresses(x):
    if x.sum() > 0:
        with contextlib.suppress(KeyError):
            x = x * 2
            x = {}[0]
    return x


@program()
def a_try_around_a_choice(x):
    try:
        y = x * 2 if x.sum() > 0 else x * 3
        int("none")
    except ValueError:
        y = y + 1
    finally:
        x = x + 1
    return x * y
