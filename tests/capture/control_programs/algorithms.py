"""Whole algorithms: iterations until they converge, recurrent networks, searches, samplers."""

import numpy

from heterosis import np, npx
from tests.capture.control_programs.table import LONG, program


@program()
def newton(x):
    target = np.abs(x) + 1
    root = target * 1
    while np.abs(root * root - target).max() > 1e-4:
        root = 0.5 * (root + target / root)
    return root


@program()
def newton_with_a_bound(x):
    target = np.abs(x) + 1

    def step(root):
        return [], [0.5 * (root + target / root)]

    start = np.ones_like(target) * 2
    _, (root,) = npx.while_loop(
        lambda root: np.abs(root * root - target).max() > 1e-3, step, [start], 12
    )
    return root


@program()
def adaptive_step(x):
    """Euler's method with a step that doubles and halves by the error of half steps."""
    time, step, y = np.array(0.0), np.array(0.5), x
    while time < 1:
        whole = y - step * y
        half = y - 0.5 * step * y
        half = half - 0.5 * step * half
        error = np.abs(whole - half).max()
        if error < 0.05:
            y, time = half, time + step
            step = np.minimum(step * 2, 1 - time + 1e-6)
        else:
            step = step * 0.5
    return y, time


@program(gradient=False)
def greedy_until_the_end(x):
    """A token after the other, the likeliest each time, until token 0."""
    table = np.arange(36).reshape(6, 6) * 7 % 11
    tokens = np.zeros(8)
    token, n = np.argmax(x.reshape(-1)).astype("int64"), np.array(0)
    while n < 8:
        tokens[...] = np.where(np.arange(8) == n, token, tokens)
        token = np.argmax(table[token] + token)
        if token == 0:
            break
        n = n + 1
    return tokens, n


@program(gradient=False)
def sampled_until_the_end(x):
    """The same by chance: both draw the same numbers, until a token is 0."""
    chances = npx.softmax((np.arange(36).reshape(6, 6) * 7 % 11) * 0.3 + x.sum())
    tokens, token, n = np.zeros(12, dtype="int64"), np.array(1, dtype="int64"), np.array(0)
    while n < 12:
        below = np.cumsum(chances[token]) < np.random.uniform()
        token = np.minimum(below.sum().astype("int64"), 5)
        tokens[n] = token
        n = n + 1
        if token == 0:
            break
    return tokens, n


@program(gradient=False)
def beam_search(x):
    """Three beams over six tokens, until all have ended or four tokens have come."""
    scores = np.log(npx.softmax((np.arange(36).reshape(6, 6) * 7 % 11) * 0.3 + x.sum()))
    best, tokens = np.array([0.0, -50.0, -50.0]), np.array([1, 1, 1], dtype="int64")
    history, n = np.zeros((3, 4)), np.array(0)
    while n < 4:
        total = (best.reshape(3, 1) + scores[tokens]).reshape(-1)
        chosen = np.argsort(-total)[:3]
        best, tokens = total[chosen], (chosen % 6).astype("int64")
        history = np.where(np.arange(4) == n, tokens.reshape(3, 1), history[chosen // 6])
        n = n + 1
        if np.all(tokens == 0):
            break
    return best, history


@program(numpy.array([2, 3], "int64"))
def recurrent_over_true_lengths(x, lengths):
    sequence = np.stack([x, x * 2, np.sin(x)])
    state, n = np.zeros((2, 3)), np.array(0)
    for step in sequence:
        new = np.tanh(step + state * 0.5)
        state = np.where((n < lengths).reshape(2, 1), new, state)
        n = n + 1
    return state


@program(numpy.array([3, 6], "int64"), x=LONG)
def recurrent_that_stops_at_the_longest(x, lengths):
    state = np.zeros((2, 3))
    outputs = []
    for n, row in enumerate(x):
        if n < lengths.max():
            new = np.tanh(row + state * 0.5)
            state = np.where((n < lengths).reshape(2, 1), new, state)
        outputs.append(state)
    return np.stack(outputs), state


@program(x=LONG)
def a_gated_cell(x):
    """The gradient of a weight that all turns use."""
    weight, h = np.cos(np.arange(9).reshape(3, 3)) + x[:3] * 0.1, np.zeros(3)
    for row in x:
        gate = npx.sigmoid(row @ weight)
        h = gate * h + (1 - gate) * np.tanh(row)
    return h


@program()
def conjugate_gradients(x):
    matrix = x.T @ x + np.eye(3) * 2
    b = x[0]
    y, r = np.zeros(3), b
    p, rr = r, (r * r).sum()
    n = 0
    while rr > 1e-6 and n < 6:
        ap = matrix @ p
        alpha = rr / (p * ap).sum()
        y, r = y + alpha * p, r - alpha * ap
        after = (r * r).sum()
        p, rr = r + after / rr * p, after
        n += 1
    return y


@program()
def power_iteration(x):
    matrix = x.T @ x + np.eye(3)
    v, before, value = np.ones(3), np.array(0.0), np.array(1.0)
    while np.abs(value - before) > 1e-3:
        v = matrix @ v
        before, value = value, np.sqrt((v * v).sum())
        v = v / value
    return value


@program()
def bisection(x):
    """Where t * t * t is the sum of the absolute values."""
    target = np.abs(x).sum()
    low, high = np.array(0.0), np.array(4.0)
    while high - low > 1e-3:
        middle = (low + high) / 2
        if middle * middle * middle < target:
            low = middle
        else:
            high = middle
    return low + x * 0


@program(gradient=False)
def mandelbrot(x):
    """How long points stay near 0; the loop goes on until none is left or 20 turns are over."""
    real, imaginary, count, n = x * 0, x * 0, np.zeros((2, 3)), 0
    inside = np.ones((2, 3), dtype="bool")
    while inside.any() and n < 20:
        real, imaginary = real * real - imaginary * imaginary + x, 2 * real * imaginary + x / 2
        inside = real * real + imaginary * imaginary < 4
        real, imaginary = np.where(inside, real, 2), np.where(inside, imaginary, 2)
        count += inside
        n += 1
    return count


@program(x=LONG, gradient=False)
def insertion_sort(x):
    y, i = x[:, 0] * 1, np.array(1)
    while i < 7:
        j = i * 1
        while j > 0 and y[np.maximum(j - 1, 0)] > y[j]:
            high, low = y[j - 1] * 1, y[j] * 1
            y[j - 1] = low
            y[j] = high
            j = j - 1
        i = i + 1
    return y


@program(x=LONG, gradient=False)
def viterbi(x):
    """The likeliest path through three states, forwards and back again."""
    moves, score = np.cos(np.arange(9).reshape(3, 3)), x[0]
    pointers = []
    for row in x[1:]:
        total = score.reshape(3, 1) + moves
        pointers.append(np.argmax(total, axis=0).astype("int64"))
        score = total.max(axis=0) + row
    state, path = np.argmax(score).astype("int64"), []
    for pointer in np.stack(pointers)[::-1]:
        path.append(state)
        state = pointer[state]
    return np.stack(path), state, score


@program(x=LONG)
def clipped_running_sum(x):
    """CUSUM: a sum that never falls below 0, and where it was largest."""
    total, largest = np.zeros(3), np.zeros(3)
    for row in x:
        total = np.maximum(total + row, 0)
        if total.sum() > largest.sum():
            largest = total
    return total, largest


@program()
def gradient_descent_with_backtracking(x):
    """A step that is halved until it goes down far enough."""

    def height(y):
        return ((y * y - 1) * (y * y - 1)).sum()

    y, n = x, 0
    while n < 3:
        slope = 4 * y * (y * y - 1)
        step = np.array(0.25)
        while height(y - step * slope) > height(y) - 0.1 * step * (slope * slope).sum():
            step = step / 2
            if step < 1e-3:
                break
        y = y - step * slope
        n += 1
    return y


@program()
def sinkhorn(x):
    """Rows and columns in turn, until all add up to one."""
    plan = np.exp(x[:, :2])
    while np.abs(plan.sum(axis=1) - 1).max() > 1e-3:
        plan = plan / plan.sum(axis=1, keepdims=True)
        plan = plan / plan.sum(axis=0, keepdims=True)
    return plan
