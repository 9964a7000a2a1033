"""Updates in place, through views too, within choices and loops."""

from heterosis import np
from tests.capture.control_programs.table import LONG, program


@program()
def writes_in_one_branch(x):
    y = x * 1
    if x.mean() > 0:
        y[0] = y[1] * 3
    return y


@program()
def writes_in_both_branches(x):
    y, z = x * 1, x * 2
    if x.mean() > 0:
        y[:, 1] = z[:, 0]
        z[...] = 0
    else:
        z += y
    return y * z


@program(gradient=False)
def writes_through_a_view(x):
    y = x * 1
    part = y[:, 1:]
    if x.mean() > 0:
        part[...] = part * 5
    return y, part


@program(gradient=False)
def a_view_made_in_a_branch(x):
    y = x * 1
    if x.mean() > 0:
        y[1][1:] *= 4
    return y


@program(gradient=False)
def an_update_before_and_after(x):
    y = x * 1
    y[0] = 2
    if x.mean() > 0:
        y[0] += x[1]
    y[1] -= y[0]
    return y


@program(gradient=False)
def the_argument_is_written_to(x):
    """The caller's array has changed, or has not."""
    if x.sum() > 0:
        x[0] = 7
    while x.sum() < 3:
        x += 1
    return x.sum()


@program(gradient=False)
def a_view_from_before_sees_the_write(x):
    """PyTorch's compiler has given the value from before."""
    a = x[0:1] * 1
    b = a.reshape(3)
    a[0] = 0
    if a[0, 0] < 1e5:
        a[0] = 2
    return b


@program(gradient=False)
def a_value_from_before_does_not(x):
    y = np.exp(x)
    if x.sum() > 0:
        x *= 2
    return y, x


@program(gradient=False)
def writes_in_a_loop(x):
    y = np.zeros(3)
    for row in x:
        y[1:] = y[:-1] * row[1:]
        y[0] += row[0]
    return y * x


@program(x=LONG, gradient=False)
def writes_in_a_scan(x):
    y = np.zeros(3)
    for row in x:
        y[1:] = y[:-1] * row[1:]
        y[0] += row[0]
    return y * x


@program(x=LONG, gradient=False)
def a_view_made_before_the_loop(x):
    y = np.zeros((2, 3))
    first = y[0]
    for row in x:
        first += row
        y[1] = first * 2
    return y, first


@program(gradient=False)
def a_row_at_a_place_that_arrays_know(x):
    y, n = np.zeros((4, 3)), np.array(0)
    while n < 4:
        y[n] = x[0] * n
        n = n + 1
    return y


@program(gradient=False)
def a_table_that_a_while_fills(x):
    """What PyTorch's while_loop refuses, since it writes in place."""
    table, n = np.zeros((5, 3)), np.array(0)
    value = x[0] * 1
    while n < 5 and value.max() < 20:
        value = value * 2 + 1
        table[n] = value
        n += 1
    return table, n


@program(gradient=False)
def three_that_change_places_unrolled(x):
    """TorchScript's names have gone to the wrong arrays."""
    a, b, c = np.zeros(3), np.zeros(3), np.zeros(3)
    for row in x:
        a, b, c = c, a, b
        a[...] = a + row
    return a, b, c


@program(gradient=False)
def a_write_in_a_loop_in_a_branch(x):
    y = x * 1
    if x.sum() > 0:
        while y.sum() < 50:
            y[0] += 1
            y[1] *= 2
    return y


@program(gradient=False)
def writes_before_break(x):
    y = x * 1
    n = 0
    while True:
        y += 1
        if y.sum() > 10:
            y[0] = 0
            break
        n += 1
        if n > 20:
            break
    return y


@program(gradient=False)
def in_place_operators_on_rows(x):
    y = x * 1
    for i in range(len(y)):
        if y[i].sum() > 0:
            y[i] *= 2
        else:
            y[i, 1:] -= 1
    return y


@program()
def a_condition_from_before_the_write(x):
    y = x * 1
    positive = y.sum() > 0
    y[...] = -1
    return x * 2 if positive else x


@program(gradient=False)
def a_mask_of_rows(x):
    y = x * 1
    keep = y[:, 0] > 0
    while keep.any():
        y[...] = np.where(keep.reshape(-1, 1), y - 1, y)
        keep = y[:, 0] > 0
    return y


@program(x=LONG, gradient=False)
def moments_that_turns_update(x):
    """Running averages, as normalisations keep them."""
    mean, square, count = np.zeros(3), np.zeros(3), 0
    for row in x:
        if row.sum() > -2:
            mean *= 0.9
            mean += 0.1 * row
            square[...] = 0.9 * square + 0.1 * row * row
            count += 1
    return mean, square, np.zeros(1) + count
