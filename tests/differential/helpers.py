"""What pieces of code may call besides a library; the library is the first argument of each.

Imports nothing of ours, so that MXNet's Python can run it.
"""

import warnings


def gradient(mx, function, *arrays):
    """The gradients of the sum of what a function gives for some arrays."""
    for array in arrays:
        array.attach_grad()
    with mx.autograd.record():
        result = function(*arrays)
    result.backward()
    return [array.grad for array in arrays]


def warned(mx, function):
    """The classes of the warnings that a function causes."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function()
    return [warning.category.__name__ for warning in caught]
