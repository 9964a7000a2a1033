"""Runs in the interpreter that has MXNet: evaluates expressions, and writes what came out.

Input: JSON {"setup": code, "expressions": [...]} on standard input. Output: a file of NumPy's,
named on the command line, with the arrays of result `i` as `i.0`, `i.1`, ... and a JSON `facts`.
"""

import json
import os
import sys

os.environ.setdefault("MXNET_ENGINE_TYPE", "NaiveEngine")  # errors are raised at the call

import mxnet as mx
import numpy as onp
from mxnet import np, npx


def leaves(result):
    """The parts of a result: what lists and tuples hold, from left to right."""
    if isinstance(result, (list, tuple)):
        return [leaf for item in result for leaf in leaves(item)]
    return [result]


def evaluate(expression, setup, arrays, index):
    """What is known of one result; its arrays go into `arrays`."""
    space = {"np": np, "npx": npx, "onp": onp}
    exec(setup, space)  # noqa: S102
    try:
        parts = leaves(eval(expression, space))
        found = [p.asnumpy() if isinstance(p, mx.nd.NDArray) else p for p in parts]
    except Exception as error:  # noqa: BLE001 - every kind of failure is an answer
        return {"error": type(error).__name__ + ": " + str(error).split("\n")[0]}
    facts = []
    for place, part in enumerate(found):
        if part is None or isinstance(part, str):
            facts.append(str(part))
            continue
        facts.append(isinstance(parts[place], mx.nd.NDArray))
        arrays[f"{index}.{place}"] = onp.asarray(part)
    return {"parts": facts}


def main():
    npx.set_np()
    job = json.load(sys.stdin)
    arrays = {}
    facts = [
        evaluate(expression, job["setup"], arrays, i)
        for i, expression in enumerate(job["expressions"])
    ]
    onp.savez(sys.argv[1], facts=onp.array(json.dumps(facts)), **arrays)


if __name__ == "__main__":
    main()
