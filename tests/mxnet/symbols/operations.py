"""Every operation that MXNet has an operator for, as a symbol, with its inputs in a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy

from heterosis import capture, np
from heterosis.mxnet.symbols.capturing import graph_of
from heterosis.mxnet.symbols.symbol import Symbol
from heterosis.ops.record import REGISTRY, Record
from heterosis.ops.samples import Case
from heterosis.runtime.errors import UnsupportedError
from tests.differential.mxnet_process import AskedInVain, MXNetProcess
from tests.mxnet.symbols import roundtrip
from tests.ops import harness

_FEW = 3  # cases of an operation
_TYPES = ("float32", "int64", "int32")  # of the inputs: the first that an operation takes

# What MXNet's operators do not take, so that the symbol raises there; and where equal places are
# written twice, which of them counts.
LIMITS = {
    "argmax_channel": "cannot be part of a CachedOp",
    "copysign": "its form with a number cannot be part of a CachedOp",
    "deconvolution": "no dilation with oneDNN",
    "diagflat": "no array of 0 dimensions",
    "fully_connected": "no empty batch",
    "group_norm": "a scale for each group only",
    "percentile": "one dimension of q at most",
    "pinv": "ends the process",
    "repeat_each": "no 0 repeats",
    "roll": "no array of 0 dimensions",
    "roi_pooling": "no scale above 1",
    "scatter_nd": "equal places",
    "solve": "no broadcasting",
}
# Operations for which some arguments have no words in MXNet: the export says so.
PARTLY = {
    "activation", "adjust_lighting", "average", "batch_norm", "concatenate", "linspace", "norm",
    "normalize", "quantile",
}  # fmt: skip


def described() -> Iterator[tuple[str, Record, Case]]:
    """Some cases of all operations with a name in MXNet."""
    for record in REGISTRY.values():
        if record.names.get("mxnet") and record.samples:
            cases = [c for c in record.samples.cases if _is_plain(c)]
            step = max(len(cases) // _FEW, 1)
            for place, case in enumerate(cases[::step]):
                yield f"{record.name}{place}", record, case


def _is_plain(case: Case) -> bool:
    """Whether there is an array with elements, and so a graph that runs in MXNet."""
    return any(isinstance(s, list) or (s is not None and 0 not in s) for s in case.shapes)


def write(name: str, record: Record, case: Case, folder: Path) -> Any:
    """The symbol and the inputs of a case; what the operation gives, or why there is no symbol."""
    dtype = next(dtype for dtype in _TYPES if dtype in record.samples.dtypes)
    given, attributes = harness.arguments(record, case, dtype)
    # MXNet's operators have no vectors of 0 dimensions in places.
    arrays = [np.array(a) if isinstance(a, numpy.ndarray | numpy.generic) else a for a in given]
    arrays = [[np.array(i) for i in a] if isinstance(a, list) else a for a in arrays]
    names = [p.name for p, use in zip(record.parameters, record.uses, strict=True) if use in (0, 2)]

    def run(*arrays: Any) -> Any:
        return record.operation(**dict(zip(names, arrays, strict=False)), **attributes)

    try:
        symbol = Symbol(graph_of(capture.capture(run, tuple(arrays), {}), _named))
    except UnsupportedError as error:
        return str(error)
    symbol.save(folder / f"{name}-symbol.json")
    flat = [
        i for a in arrays for i in (a if isinstance(a, list) else [a]) if isinstance(i, np.ndarray)
    ]
    inputs = {f"data{i}": a.asnumpy() for i, a in enumerate(flat)}
    numpy.savez(folder / f"{name}-inputs.npz", **inputs)
    found = run(*arrays)
    return [a.asnumpy() for a in (found if isinstance(found, tuple | list) else (found,))]


def outcome(
    mxnet: MXNetProcess, name: str, record: Record, case: Case, folder: Path
) -> str | tuple[float | str, float | str]:
    """How far MXNet is from what a case gives, and we from the symbol; or why there is none."""
    found = write(name, record, case, folder)
    if isinstance(found, str):
        return found
    reading = [(name, "[]", [1])]
    try:
        roundtrip.ask(mxnet, "read", reading, folder)
        there = roundtrip.difference(found, roundtrip.arrays(folder, name))
    except AskedInVain as error:
        there = str(error)
    (folder / f"{name}.txt").unlink(missing_ok=True)
    roundtrip.run_here("read", reading, folder)
    return there, roundtrip.difference(found, roundtrip.arrays(folder, name))


def _named(source: Any) -> tuple[str, dict[str, str]]:
    return f"data{source.position}", {}
