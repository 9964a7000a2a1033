"""What pieces of code may call besides a library; the library is the first argument of each.

Imports nothing of ours but cases, so that MXNet's Python can run it. The docstrings stand in
docs/from_gluon.md.
"""

import os
import tempfile
import warnings


def gradient(mx, function, *arrays):
    """the gradients of the sum of what the function gives for the arrays"""
    for array in arrays:
        array.attach_grad()
    with mx.autograd.record():
        result = function(*arrays)
    result.backward()
    return [array.grad for array in arrays]


def warned(mx, function):
    """the classes of the warnings that the function causes"""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function()
    return [warning.category.__name__ for warning in caught]


def trained(mx, function):
    """what the function gives in training"""
    with mx.autograd.record():
        return function()


def twice(mx, function):
    """whether the function gives the same again after `mx.random.seed` with the same number"""
    results = []
    for _ in range(2):
        mx.random.seed(3)
        results.append(function())
    return results[0] == results[1]


def network(mx):
    """a hybridized `Dense` layer that was called once"""
    net = mx.gluon.nn.Dense(2, in_units=3)
    net.initialize()
    net.hybridize()
    net(mx.np.ones((1, 3)))
    return net


def written(mx, function):
    """the files that the function writes, given the start of a path, and those that it names"""
    with tempfile.TemporaryDirectory() as folder:
        named = function(os.path.join(folder, "net"))
        names = [os.path.basename(name) for name in named] if isinstance(named, tuple) else named
        return sorted(os.listdir(folder)), names


def checkpoints(mx, before, **arguments):
    """what an estimator's `CheckpointHandler` leaves of the files before and of four epochs, of which
    two come from another run if it resumes"""
    from tests.gluon.contrib.estimator_cases import Problem

    mx.npx.reset_np()
    problem = Problem(mx, mx.nd.array)
    for name in before:
        with open(os.path.join(problem.folder.name, name), "wb"):
            pass
    if arguments.get("resume_from_checkpoint"):
        problem.fit(problem.checkpoints(), epochs=2)
    problem.fit(problem.checkpoints(**arguments), epochs=4)
    return sorted(name for name in os.listdir(problem.folder.name) if name.endswith("params"))
