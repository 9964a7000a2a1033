"""Runs in the interpreter that has MXNet: calls functions, one for each line of standard input.

A line is a list of a module, the name of a function in it, and its arguments; the answer is
{"result": ...}, or {"error": ...} with the last lines of what it raised.
"""

import importlib
import os
import sys
import traceback

os.environ.setdefault("MXNET_ENGINE_TYPE", "NaiveEngine")  # errors are raised at the call
os.environ.setdefault("OMP_NUM_THREADS", "1")  # tests run side by side already

import mxnet

from tests.differential import wire


def answer(module, function, *arguments):
    """What a function returns, each called as the first in the process would be."""
    mxnet.npx.set_np()
    mxnet.name.NameManager._current.value = mxnet.name.NameManager()
    try:
        return {"result": getattr(importlib.import_module(module), function)(*arguments)}
    except Exception:  # noqa: BLE001 - whatever it raises is told to who asked
        return {"error": traceback.format_exc(limit=-3)}


def main():
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what is printed here is no answer
    for line in sys.stdin.buffer:
        answers.write(wire.encoded(answer(*wire.decoded(line))))
        answers.flush()


if __name__ == "__main__":
    main()
