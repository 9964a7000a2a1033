"""What a piece of code gives in a library: in MXNet, or in ours under MXNet's names.

Imports nothing of ours but tables, so that MXNet's Python can run it. A piece of code sees the
arrays of `expressions.SETUP`, the modules `mx`, `np`, `npx`, `nd`, `autograd`, `gluon`, `onp` (which
is NumPy), and the functions of `helpers.py` without their first argument; its value is that of its
last line.
"""

import ast
import functools
import inspect

import numpy

from tests.differential import helpers
from tests.differential.expressions import SETUP


def answer(code, library):
    """The parts of the value, from left to right, or what is raised."""
    try:
        return {"parts": [_plain(part) for part in _leaves(_value(code, library))]}
    except Exception as error:  # noqa: BLE001 - every kind of failure is an answer
        return {"raised": type(error).__name__, "message": str(error).split("\n")[0]}


def mxnet_answer(code):
    """What MXNet gives."""
    import mxnet

    return answer(code, mxnet)


def our_answer(code):
    """What is given here."""
    from heterosis.mxnet.compat import facade as mxnet

    return answer(code, mxnet)


def _value(code, library):
    space = {name: getattr(library, name) for name in ("np", "npx", "nd", "autograd", "gluon")}
    space.update(mx=library, onp=numpy)
    for name, helper in inspect.getmembers(helpers, inspect.isfunction):
        space[name] = functools.partial(helper, library)
    exec(_compiled(SETUP)[0], space)  # noqa: S102
    statements, last = _compiled(code)
    exec(statements, space)  # noqa: S102
    return eval(last, space)


@functools.lru_cache(maxsize=2)
def _compiled(code):
    """The statements of a piece of code, and the expression at its end."""
    body = ast.parse(code).body
    ends = isinstance(body[-1], ast.Expr)
    statements = ast.Module(body[:-1] if ends else body, type_ignores=[])
    last = ast.Expression(body[-1].value) if ends else ast.parse("None", mode="eval")
    return compile(statements, "<row>", "exec"), compile(last, "<row>", "eval")


def _leaves(result):
    if isinstance(result, dict):
        result = list(result.items())
    if isinstance(result, (list, tuple)):
        return [leaf for item in result for leaf in _leaves(item)]
    return [result]


def _plain(part):
    """An array of NumPy's; of what is none the text, or the name of the class."""
    if part is None or isinstance(part, (str, type, numpy.dtype)):
        return getattr(part, "__name__", str(part))
    array = numpy.asarray(part.asnumpy() if hasattr(part, "asnumpy") else part)
    return type(part).__name__ if array.dtype.hasobject else array


# -- comparing -------------------------------------------------------------------------------------

TOLERANCE = {"float16": 2e-3, "float32": 2e-5, "float64": 2e-5}


def difference(ours, theirs, values=True):
    """How two answers differ; nothing where they agree. Two errors agree, of whatever class."""
    if "raised" in ours and "raised" in theirs:
        return None
    for answer_, who in ((ours, "we raise"), (theirs, "MXNet raises")):
        if "raised" in answer_:
            return f"{who} {answer_['raised']}: {answer_['message']}"
    ours, theirs = ours["parts"], theirs["parts"]
    if len(ours) != len(theirs):
        return f"{len(ours)} results, and {len(theirs)} in MXNet"
    found = (_difference(a, b, values) for a, b in zip(ours, theirs))
    return next((text for text in found if text), None)


def _difference(a, b, values):
    if isinstance(a, str) or isinstance(b, str):
        return None if isinstance(a, str) and a == str(b) else f"{a!r}, and {b!r} in MXNet"
    if (a.dtype, a.shape) != (b.dtype, b.shape):
        return f"{a.dtype}{a.shape}, and {b.dtype}{b.shape} in MXNet"
    near = TOLERANCE.get(a.dtype.name, 0)
    if values and not numpy.allclose(a, b, rtol=near, atol=near, equal_nan=near > 0):
        return f"{a!r}, and {b!r} in MXNet"
    return None
