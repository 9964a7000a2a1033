"""A failing program as a script that anyone can run."""

from __future__ import annotations

from collections.abc import Mapping

import numpy

from tests.programs.program import Array, Program


def reproduction(program: Program, way: str, target: str, told: str) -> str:
    """A script that shows what is wrong with a program."""
    lines = [
        f"# {way}{f' on {target}' if target else ''}: {told[:300]}",
        f"# python -m tests.programs {program.origin}",
        "import numpy, heterosis",
        "from heterosis import autograd, np, npx",
        *_arrays(program.outside),
        *(f"{name} = {value!r}" for name, value in program.numbers.items()),
        program.source(),
        "for function in (program, heterosis.hybridize(program)):",
        *("    " + line for line in _arrays(program.arguments)),
        f"    print(function({', '.join(program.arguments)}){_more(program)})",
    ]
    return "\n".join(lines)


def _more(program: Program) -> str:
    written = {step.operands[0] for step in program.steps if step.is_write}
    return "".join(f", {n}" for n in [*program.arguments, *program.outside] if n in written)


def _arrays(arrays: Mapping[str, Array]) -> list[str]:
    return [f"{name} = {array.part or _elements(array.elements)}" for name, array in arrays.items()]


def _elements(elements: numpy.ndarray) -> str:
    size = elements.size
    with numpy.errstate(all="ignore"):
        regular = (numpy.arange(1, size + 1) / 4).reshape(elements.shape).astype(elements.dtype)
    dtype = elements.dtype.name
    if size > 8 and (regular == elements).all():
        return f"np.array(numpy.arange(1, {size + 1}).reshape{elements.shape} / 4, dtype={dtype!r})"
    told = elements.astype("float64").tolist() if elements.dtype.kind in "fV" else elements.tolist()
    text = repr(told).replace("nan", "numpy.nan").replace("inf", "numpy.inf")
    shaped = f".reshape{elements.shape}" if size == 0 else ""
    return f"np.array({text}, dtype={dtype!r}){shaped}"
