"""A failing program as a script that anyone can run."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

import numpy

from tests.programs import places
from tests.programs.places import numbers_set
from tests.programs.program import Array, Program

_FLAGS = {"xla": " --xla", "gpu_eager": " --gpus", "gpu_hybridized": " --gpus"}


def command(program: Program, way: str, flags: str) -> str:
    """What finds the program again, as it was before it was shrunk, and shrinks it again."""
    checked = "HETEROSIS_CHECK=1 " if os.environ.get("HETEROSIS_CHECK") == "1" else ""
    return f"{checked}python -m tests.programs {program.origin}{flags}{_FLAGS.get(way, '')}"


def reproduction(program: Program, way: str, target: str, told: str, flags: str = "") -> str:
    """A script that shows what is wrong with a program."""
    by_reference = way == "reference"
    backend = ", backend=reference.NAME" if by_reference else ""
    lines = [
        f"# {way}{f' on {target}' if target else ''}: {told[:300]}",
        f"# {command(program, way, flags)}",
        "import numpy, heterosis",
        "from heterosis import autograd, np, npx",
        *(["from tests.backends import reference"] if by_reference else []),
        *_arrays(program.outside),
        *(f"{name}.attach_grad()" for name in program.variables() if program.mode == "inside"),
        *places.made(program.numbers),
        *numbers_set(program.numbers),
        program.source(),
        f"for function in (program, heterosis.hybridize(program{backend})):",
        *("    " + line for line in _calling(program)),
    ]
    if program.changes:
        lines.append(f"# and once more after {'; '.join(numbers_set(program.changes))}")
    if program.refused:
        lines.append(f"# and once more with {'; '.join(_arrays(program.refused))}")
    return "\n".join(lines)


def _calling(program: Program) -> list[str]:
    names = ", ".join(program.arguments)
    lines = _arrays(program.arguments)
    if program.mode != "gradient":
        return [*lines, f"print(function({names}){_more(program)})"]
    return [
        *lines,
        *(f"{name}.attach_grad()" for name in program.variables()),
        "with autograd.record(train_mode=False):",
        f"    results = function({names})",
        *_again(program),
        "autograd.backward(results)",
        f"print(results, {', '.join(f'{name}.grad' for name in program.variables())})",
    ]


def _again(program: Program) -> list[str]:
    """The lines that put gradients in place of the results."""
    if not program.twice:
        return []
    variables = ", ".join(program.variables())
    return [f"    results = autograd.grad(results, [{variables}], create_graph=True)"]


def _more(program: Program) -> str:
    written = {step.operands[0] for step in program.within() if step.is_write and step.operands}
    return "".join(f", {n}" for n in [*program.arguments, *program.outside] if n in written)


def _arrays(arrays: Mapping[str, Array]) -> list[str]:
    return [f"{name} = {array.part or _elements(array.elements)}" for name, array in arrays.items()]


# Elements that are said in a few letters; `n` counts from 1.
MOST = 256  # elements that are written down
REGULAR = ("n / 4", "numpy.cos(n)", "n % 3 - 1")


def regulars(like: numpy.ndarray) -> list[numpy.ndarray]:
    """Regular elements, of the shape and type that `like` has."""
    n = numpy.arange(1, like.size + 1)
    made = (eval(text, {"n": n, "numpy": numpy}) for text in REGULAR)
    with numpy.errstate(all="ignore"):
        return [elements.reshape(like.shape).astype(like.dtype) for elements in made]


def _elements(elements: numpy.ndarray) -> str:
    dtype = elements.dtype.name
    for text, regular in zip(REGULAR, regulars(elements), strict=True):
        if elements.size > 8 and (regular == elements).all():
            n = f"numpy.arange(1, {elements.size + 1})"
            spelled = re.sub(r"\bn\b", n, text)
            shaped = "" if elements.ndim == 1 else f".reshape{elements.shape}"
            return f"np.array(({spelled}){shaped}, dtype={dtype!r})"
    if elements.size > MOST:
        return f"...  # {elements.size} of type {dtype}: run the seed"
    told = elements.astype("float64").tolist() if elements.dtype.kind in "fV" else elements.tolist()
    text = re.sub(r"\b(nan|inf)\b", r"numpy.\1", repr(told))
    shaped = f".reshape{elements.shape}" if elements.size == 0 else ""
    return f"np.array({text}, dtype={dtype!r}){shaped}"
