"""Prints the stages of docs/tour.md anew: python docs/make_tour.py [--check]

A stage is a fenced block below a line `<!-- stage: name -->`. With --check, nothing is written, and
the exit status says whether the tour is what this version does. Assembly depends on LLVM too; it
is compared only with the version of llvmlite that the tour names.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from difflib import unified_diff
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

from rich.pretty import pretty_repr
from tour_network import STAGES as NETWORK_STAGES

from heterosis import np
from heterosis.backends.native.codegen.emit.function import function_for_any_size
from heterosis.backends.native.codegen.kernel import Machine
from heterosis.backends.native.codegen.mathematics import arithmetic
from heterosis.backends.native.codegen.target import AVX2
from heterosis.backends.native.compile import object_cache
from heterosis.backends.native.compile.compiler import assembly
from heterosis.backends.native.schedule.schedule import schedule
from heterosis.ir.program import INPUT, NUMBER, Program, apply
from heterosis.ir.strided import Strided
from heterosis.ir.types import TensorType
from heterosis.ops import REGISTRY

TOUR = Path(__file__).with_name("tour.md")
_BLOCK = re.compile(r"(<!-- stage: (\w+) -->\n+```\w*\n)(.*?)(```)", re.DOTALL)

# `x + 1`, with x of shape (1, 2): what the core tells the record about the two operands.
_X = apply(INPUT, (), TensorType((1, 2), "float32"))
_ONE = apply(NUMBER, (), TensorType((), "int64", weak=True))
_PROGRAM = Program((_X, _ONE), (REGISTRY["add"].operation(_X, _ONE),), "add")
_LAYOUTS = (Strided.contiguous((1, 2)), Strided((), ()))
_SCHEDULE = schedule(_PROGRAM, _LAYOUTS, [None], Machine(AVX2, 1), views=False)
_CODE = function_for_any_size(_SCHEDULE)


def _assignment(module: ModuleType, name: str) -> str:
    """Where a module gives something this name."""
    lines = iter(inspect.getsource(module).splitlines())
    found = [next(line for line in lines if line.startswith(f"{name} = "))]
    while "".join(found).count("(") > "".join(found).count(")"):
        found.append(next(lines))
    return "\n".join(found)


def record() -> str:
    """Where the operation is registered."""
    return _assignment(sys.modules["heterosis.ops.math.elementwise"], "add")


def primitive() -> str:
    """What it is made of."""
    return _assignment(sys.modules["heterosis.ir.primitives.elementwise"], "ADD")


def lowering() -> str:
    """What emits one vector of it."""
    return inspect.getsource(arithmetic.add)


def program() -> str:
    """The operation as a program of primitives."""
    return str(_PROGRAM)


def nest() -> str:
    """The one kernel of its schedule."""
    (kernel,) = _SCHEDULE.kernels
    return pretty_repr(kernel, max_width=100)


def integers() -> str:
    """What is passed at run time instead of being compiled in."""
    return f"integers = {_CODE.integers}\nnanoseconds = {_CODE.nanoseconds:.1f}"


def llvm() -> str:
    """The module as LLVM reads it, the shared loop alone."""
    text = _CODE.emit(AVX2)
    return text[text.index("define internal void @nest0") : text.index("\n!0 =")]


def assembly_of_the_loop() -> str:
    """The same loop as LLVM writes it."""
    text = assembly(_CODE.emit(AVX2), AVX2)
    return text[text.index("nest0:") : text.index(".Lfunc_end1")]


def session() -> str:
    """What calls add to the counters of the cache."""
    counters = object_cache.default_cache().counters
    lines = []

    def tell(statement: str, call: Callable[[], object]) -> None:
        before = counters.compiles + counters.disk_hits, np.add.plans
        result = call()
        functions = counters.compiles + counters.disk_hits - before[0]
        plans = np.add.plans - before[1]
        lines.append(f">>> {statement}\n{result!r}  # new functions: {functions}, plans: {plans}")

    x, longer = np.array([[1, 2]]), np.array([1, 2, 3])
    tell("x + 1", lambda: x + 1)
    tell("x + 1", lambda: x + 1)
    tell("longer + 1", lambda: longer + 1)
    return "\n".join(lines)


_ONE_OPERATION = (record, primitive, lowering, program, nest, integers, llvm, session)
STAGES = {f.__name__: f for f in _ONE_OPERATION}
STAGES |= {"assembly": assembly_of_the_loop} | NETWORK_STAGES


def written(text: str) -> str:
    """`text` with every stage as this version prints it."""

    def stage(found: re.Match[str]) -> str:
        name = found[2]
        if name.endswith("assembly") and f"llvmlite {version('llvmlite')}" not in text:
            return found[0]
        return found[1] + STAGES[name]().rstrip("\n") + "\n" + found[4]

    return _BLOCK.sub(stage, text)


def main() -> int:
    """Write or check the tour; the exit status."""
    before = TOUR.read_text()
    if "--check" not in sys.argv:
        before = re.sub(r"llvmlite \d[\w.]*", f"llvmlite {version('llvmlite')}", before)
    after = written(before)
    if "--check" in sys.argv:
        if after == before:
            return 0
        print("docs/tour.md is not what this version does: run python docs/make_tour.py")
        lines = before.splitlines(), after.splitlines()
        print("\n".join(unified_diff(*lines, "docs/tour.md", "this version", lineterm="")))
        return 1
    TOUR.write_text(after)
    return 0


if __name__ == "__main__":
    sys.exit(main())
