"""The stages of the second part of docs/tour.md: a network, from its layers to one function."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

from heterosis import np
from heterosis.autograd.derivative import layout_of
from heterosis.backends.native.codegen.emit.program import ProgramCode, function_for_known_sizes
from heterosis.backends.native.codegen.kernel import Machine, OpaqueCall, Place, Schedule
from heterosis.backends.native.codegen.target import AVX2
from heterosis.backends.native.compile import object_cache
from heterosis.backends.native.compile.compiler import assembly
from heterosis.backends.native.schedule.arena import memory
from heterosis.backends.native.schedule.materialize import kept_values
from heterosis.backends.native.schedule.schedule import schedule
from heterosis.backends.native.stages.pipeline import STAGES as NATIVE
from heterosis.backends.native.stages.pipeline import in_parts
from heterosis.capture import capture
from heterosis.capture.captured import Captured, Outside
from heterosis.gluon import nn
from heterosis.ir.program import Program
from heterosis.ir.strided import Strided
from heterosis.ir.text import printed
from heterosis.passes import pipeline
from heterosis.passes.preparation import Split

_MACHINE = Machine(AVX2, 1)
_ROWS, _COLUMNS = 64, 512


def _network() -> nn.HybridSequential:
    net = nn.HybridSequential()
    net.add(nn.Dense(256, activation="relu"), nn.Dense(128, activation="relu"), nn.Dense(2))
    net.initialize()
    return net


# -- what the stages look at ----------------------------------------------------------------------

# The steps of `backends/native/compile/whole.py`, one by one, for one processor.


@cache
def _captured(rows: int = _ROWS) -> tuple[Captured, dict[int, str]]:
    """The network's program, and the names of its parameters by the arrays that hold them."""
    net = _network()
    x = np.zeros((rows, _COLUMNS))
    net(x)  # completes the shapes
    names = {id(p.data()): name for name, p in net.collect_params().items()}
    found = capture(net.forward, (x,), {})
    return replace(found, program=replace(found.program, name="net")), names


def _fixed(captured: Captured) -> list:
    inputs = zip(captured.program.inputs, captured.sources, strict=True)
    return [value for value, source in inputs if isinstance(source, Outside)]


@cache
def _split(rows: int = _ROWS) -> Split | None:
    """The program and what is computed ahead of it, if there is such a thing."""
    captured, _ = _captured(rows)
    fixed = _fixed(captured)
    found = in_parts(captured.program, fixed, _MACHINE)
    return found if isinstance(found, Split) else None


@cache
def _scheduled() -> Schedule:
    captured, _ = _captured()
    layouts = [layout_of(s.array) for s in captured.sources if isinstance(s, Outside)]
    layouts = [Strided.contiguous((_ROWS, _COLUMNS)), *layouts]
    split = _split()
    own = [layouts[i] for i in split.own]
    ahead = [Strided.contiguous(value.shape) for value in split.prepared]
    rest = split.rest
    return schedule(rest, [*own, *ahead], [None], _MACHINE, views=True, kept=kept_values(rest))


@cache
def _code() -> ProgramCode:
    return function_for_known_sizes(_scheduled())


@cache
def _emitted() -> str:
    return _code().emit(AVX2)


@cache
def _micro_kernel() -> list[str]:
    """The assembly of the kernel that ends a tile of six rows with the epilogue."""
    name = r"^matmul\.float32\.\w{16}\.rows:"
    kernel = re.compile(name + r"\n(.*?)^\.Lfunc_end", re.MULTILINE | re.DOTALL)
    return kernel.search(assembly(_emitted(), AVX2))[1].splitlines()


# -- stages ---------------------------------------------------------------------------------------


def captured() -> str:
    """The program of one forward pass, but for the lines of the source."""
    return re.sub(r" at '[^']*'", "", str(_captured()[0].program))


def sources() -> str:
    """What the inputs of the program are."""
    found, names = _captured()
    lines = []
    for i, source in enumerate(found.sources):
        name = names[id(source.array)] if isinstance(source, Outside) else "the argument x"
        lines.append(f"%{i}: {name}")
    return "\n".join(lines)


def simplified() -> str:
    """The program after the first pass."""
    return _text(pipeline.PASSES[0].run(_captured()[0].program))


def passes() -> str:
    """What each step changes."""
    program = _captured()[0].program
    fixed = _fixed(_captured()[0])
    lines = []
    for step in (*pipeline.PASSES, *NATIVE):
        before = program
        more = () if step in pipeline.PASSES else (fixed, _MACHINE)
        program = step.run(program, *more)
        changed = f"{_count(before)} -> {_count(program)}"
        lines.append(f"{step.name:30}{changed if _text(before) != _text(program) else 'nothing'}")
    return "\n".join(lines)


def _count(program: Program) -> str:
    return f"{len(_text(program).splitlines()) - 2} nodes"


def _text(program: Program) -> str:
    return printed(program, calls=False).text


def preparation() -> str:
    """What is computed from the parameters alone."""
    return str(_split().preparation)


def rest() -> str:
    """What is left to do for every call."""
    return str(_split().rest)


def kernels() -> str:
    """The kernels in order: code, and where its operands stand."""
    return "\n".join(_kernel(i, kernel) for i, kernel in enumerate(_scheduled().kernels))


def _kernel(i: int, call: OpaqueCall) -> str:
    open_, _, epilogue = call.code.key.partition(") (")
    variant = re.search(r"variant='(\w+)'", open_)[1]
    then = re.findall(r"primitive=(\w+)", epilogue)
    lines = [
        f"kernel {i}: matmul, {variant}, m, n, k = {call.code.numbers[:3]}, then {', '.join(then)}",
        f"  reads  {', '.join(map(_place, call.inputs))}",
        f"  writes {', '.join(map(_place, call.outputs))}",
    ]
    if call.scratch:
        lines.append(f"  scratch: temporary {call.scratch.index}")
    return "\n".join(lines)


def _place(place: Place) -> str:
    return f"{place.buffer.kind} {place.buffer.index} {list(place.strided.shape)}"


def workspace() -> str:
    """The places of temporaries."""
    planned = _scheduled()
    lines = [f"{'':12}{'bytes':>10}{'starts at':>12}"]
    for i, (size, start) in enumerate(zip(planned.temporaries, planned.starts, strict=True)):
        lines.append(f"temporary {i} {size:10,}{start:12,}")
    found = memory(planned)
    lines.append(
        f"together {found.intermediates:,} bytes, planned {found.planned:,}, "
        f"alive at once {found.least:,}"
    )
    return "\n".join(lines)


def entry() -> str:
    """What the function goes through, from the tables in its LLVM IR."""
    rows, addresses, numbers = (_table(name, r"i64 (-?\d+)") for name in _TABLES)
    codes = _table("codes", r"ptr (\S+?)[,\]]")
    lines = []
    for call in range(len(rows) // 6):
        first, count, number = map(int, rows[6 * call : 6 * call + 3])
        pairs = addresses[2 * first : 2 * (first + count)]
        places = [
            f"workspace + {at}" if buffer == "-1" else f"buffer {buffer}"
            for buffer, at in zip(pairs[::2], pairs[1::2], strict=True)
        ]
        end = int(rows[6 * call + 8]) if 6 * call + 8 < len(rows) else len(numbers)
        lines.append(f"{codes[2 * call]}: {', '.join(places)}")
        lines.append(f"    numbers {' '.join(numbers[number:end])}")
    return "\n".join(lines)


_TABLES = ("rows", "addresses", "numbers")


def _table(name: str, entry: str) -> list[str]:
    line = next(line for line in _emitted().splitlines() if line.startswith(f"@{name} ="))
    return re.findall(entry, line[line.index("] [") + 2 :])


def multiply_assembly() -> str:
    """One step of the product's inner loop."""
    blocks = re.split(r"\n(?=\.L)", "\n".join(_micro_kernel()))
    step = next(block for block in blocks if block.count("vfmadd") == 12)
    lines = step.split("\n")
    end = next(i for i, line in enumerate(lines) if line.split()[0].startswith("j"))
    return "\n".join(lines[: end + 1])


def epilogue_assembly() -> str:
    """What happens to one vector of results before it is stored."""
    lines = _micro_kernel()
    at = next(i for i, line in enumerate(lines) if line.split()[0] == "vmaxps")
    return "\n".join(lines[at - 1 : at + 2])


def single_row() -> str:
    """The same network for one row: whether anything is packed."""
    split = _split(1)
    many, one = len(_split().preparation.outputs), len(split.preparation.outputs) if split else 0
    return f"weights packed for {_ROWS} rows: {many}, for one row: {one}"


def replay() -> str:
    """Captures and compilations of calls, on the processor at hand."""
    counters = object_cache.default_cache().counters
    net, x = _network(), np.ones((_ROWS, _COLUMNS))
    net.hybridize()
    lines = []

    def tell(statement: str) -> None:
        before = counters.compiles + counters.disk_hits
        exec(statement, {"net": net, "x": x, "np": np})  # noqa: S102 - the statement is shown
        functions = counters.compiles + counters.disk_hits - before
        captures = net._compiled.captures
        lines.append(f">>> {statement}  # captures: {captures}, new functions: {functions}")

    tell("y = net(x)")
    tell("y = net(x)")
    tell("net[0].weight.data()[:] = 0")
    tell("y = net(x)")
    lines[-1] += f", y is 0: {not net(x).asnumpy().any()}"
    tell("y = net(x[:32])")
    return "\n".join(lines)


STAGES = {
    f.__name__: f
    for f in (
        captured, sources, simplified, passes, preparation, rest, kernels, workspace, entry,
        multiply_assembly, epilogue_assembly, single_row, replay,
    )
}  # fmt: skip
