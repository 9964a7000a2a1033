"""Exports and imports networks, in MXNet as well as here: the file imports nothing of ours, so that
MXNet's Python can run it.

A case is [name, expression, shape of the input]. Results go to `FOLDER/<name>.npz`, errors to
`FOLDER/<name>.txt`.
"""

import json
import os

import numpy


def numbers(shape, start=0.0):
    """Fixed numbers between -1 and 1; `ints` in front of the shape makes whole ones below 5."""
    if shape and shape[0] == "ints":
        return (numpy.arange(numpy.prod(shape[1:])) * 3 % 5).reshape(shape[1:]).astype("float32")
    return numpy.sin(1.7 * numpy.arange(numpy.prod(shape)) + start).reshape(shape).astype("float32")


def weights(parameter, place):
    """Fixed weights that keep the sizes of numbers from layer to layer."""
    values = numbers(parameter.shape, 0.3 * place)
    if parameter.name.endswith(("gamma", "var")):
        return 1 + 0.5 * values
    fan = numpy.prod(parameter.shape[1:]) if len(parameter.shape) > 1 else 100
    return (values * 2 / max(fan, 1) ** 0.5).astype("float32")


def filled(container, *blocks):
    with container.name_scope():
        container.add(*blocks)
    return container


def made(expression, gluon):
    """The network of an expression."""
    scope = {"nn": gluon.nn, "rnn": gluon.rnn, "contrib": gluon.contrib, "filled": filled}
    scope["vision"] = gluon.model_zoo.vision
    return eval(expression, scope)


def listed(result):
    """The arrays of a result."""
    if isinstance(result, (list, tuple)):
        return [array for item in result for array in listed(item)]
    return [result]


def exported(expression, shape, folder, name, gluon, array):
    """Export a network with fixed weights; what it gives for a fixed input."""
    net = made(expression, gluon)
    net.initialize()
    x = array(numbers(shape))
    net(x)
    for place, parameter in enumerate(net.collect_params().values()):
        parameter.set_data(array(weights(parameter, place)))
    net.hybridize()
    found = listed(net(x))
    net.export(os.path.join(folder, name))
    return [a.asnumpy() for a in found]


def imported(expression, shape, folder, name, gluon, array):
    """What a network from files gives: for the stored inputs, else for fixed ones and zeros."""
    path = os.path.join(folder, name)
    with open(path + "-symbol.json") as file:
        nodes = json.load(file)["nodes"]
    names = [n["name"] for n in nodes if n["op"] == "null" and n["name"].startswith("data")]
    params = path + "-0000.params"
    params = params if os.path.exists(params) else None
    net = gluon.SymbolBlock.imports(path + "-symbol.json", names, params)
    if os.path.exists(path + "-inputs.npz"):
        with numpy.load(path + "-inputs.npz") as stored:
            inputs = [array(stored[n], dtype=stored[n].dtype) for n in names]
    else:
        states = [array(numpy.zeros(s, "float32")) for s in json.loads(expression or "[]")]
        inputs = [array(numbers(shape)), *states[: len(names) - 1]]
    return [a.asnumpy() for a in listed(net(*inputs))]


def keep(run, case, folder, gluon, array):
    """Carry out one case and store its results, or the error."""
    name, expression, shape = case
    try:
        found = run(expression, shape, folder, name, gluon, array)
    except Exception as error:  # noqa: BLE001 - every failure is a result
        with open(os.path.join(folder, name + ".txt"), "w") as file:
            file.write(type(error).__name__ + ": " + str(error))
        return False
    numpy.savez(os.path.join(folder, name + ".npz"), *found)
    return True


TASKS = {"write": exported, "read": imported}


def in_mxnet(task, cases, folder):
    """Let MXNet export into the folder, or import from it."""
    import mxnet as mx

    run = TASKS[task]
    for case in cases:
        mx.npx.set_np()
        done = keep(run, case, folder, mx.gluon, mx.np.array)
        if not done and run is exported:
            mx.npx.reset_np()  # layers that know nothing of NumPy's semantics
            if keep(run, case, folder, mx.gluon, mx.nd.array):
                os.remove(os.path.join(folder, case[0] + ".txt"))
