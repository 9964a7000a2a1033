"""Kernels that call LAPACK for every matrix of a batch.

Arrays are row-major and LAPACK is column-major, so a routine sees the transpose of each matrix:
the tables below are written for that, and no matrix is ever transposed in memory here.
"""

from __future__ import annotations

import ctypes
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from heterosis import _core
from heterosis.backends.native.codegen.costs import LAPACK_FLOPS
from heterosis.backends.native.codegen.emit.access import STORED
from heterosis.backends.native.codegen.emit.builder import (
    I8,
    I32,
    I64,
    PTR,
    Function,
    Module,
    Value,
    constant,
)
from heterosis.backends.native.codegen.kernel import KernelCode, Place
from heterosis.backends.native.codegen.target import Target
from heterosis.ir.primitives import factorizations
from heterosis.ir.types import ITEMSIZE

_LETTERS = {"float32": "s", "float64": "d"}
_WORK = ("work", "lwork", "iwork", "liwork")
_CALL_NANOSECONDS = 1000.0
_QUEUED_NANOSECONDS = 1e5  # always through the queue, which runs it without the interpreter lock
_ALIGNMENT = 64

Sizes = Mapping[str, int]

PREFIX = "heterosis_lapack_"  # of the names by which generated code calls routines


@dataclass(frozen=True)
class Call:
    """A routine's name without the letter of its type, and its arguments up to `info`.

    An argument is a quoted letter, a size or a memory by name, or one of LAPACK's workspaces.
    `failure` is the number of the failure that a non-zero `info` means; 0: it means none.
    """

    routine: str
    arguments: tuple[str, ...]
    failure: int = 0


@dataclass(frozen=True)
class Factorization:
    """Calls on one matrix of each operand.

    Operands are copied to the memories that `copies` names; `results` names the memories that are
    results, in order, and `scratch(sizes)` gives the elements of further ones: those whose names
    begin with "i" hold 32-bit integers. `imaginary` is (a memory of `n` numbers, the failure if
    one is not 0); `finite` the failure if a number of the first operand is infinite or NaN.
    """

    name: str
    calls: tuple[Call, ...]
    copies: tuple[str, ...]
    results: tuple[str, ...]
    scratch: Callable[[Sizes], dict[str, int]]
    failures: tuple[str, ...] = ()
    imaginary: tuple[str, int] | None = None
    finite: int = 0
    cubes: float = 1.0  # floating-point operations for rows * columns * the smaller of them


# -- the library ----------------------------------------------------------------------------------


@cache
def _library() -> ctypes.CDLL:
    import scipy_openblas32

    name = scipy_openblas32.get_library(fullname=True)
    library = ctypes.CDLL(os.path.join(scipy_openblas32.get_lib_dir(), name))
    library.scipy_openblas_set_num_threads(1)  # the engine's threads are the ones that share work
    return library


@cache
def _entry(routine: str) -> Callable[..., Any]:
    """The routine, which generated code may call by the name that this registers."""
    entry = _library()[f"scipy_{routine}_"]
    address = ctypes.cast(entry, ctypes.c_void_p).value
    assert address is not None
    _core.register_symbol(_symbol(routine), address)
    return entry


def _symbol(routine: str) -> str:
    return PREFIX + routine


def register_called(file: bytes) -> bool:
    """Let the routines be called that an object file names; whether there are any."""
    names = re.findall(_symbol(r"(\w+)").encode(), file)
    for name in names:
        _entry(name.decode())
    return bool(names)


def _workspace(call: Call, dtype: str, sizes: Sizes) -> dict[str, int]:
    """The elements of `work` and `iwork` that the routine asks for."""
    entry = _entry(_LETTERS[dtype] + call.routine)
    if "lwork" not in call.arguments:
        return {}
    number = ctypes.c_float if dtype == "float32" else ctypes.c_double
    answers = {"work": number(0), "iwork": ctypes.c_int(0)}
    lengths: list[ctypes.c_size_t] = []
    arguments: list[object] = []
    for argument in call.arguments:
        if argument.startswith("'"):
            arguments.append(ctypes.c_char_p(argument[1].encode()))
            lengths.append(ctypes.c_size_t(1))
        elif argument in answers:
            arguments.append(ctypes.byref(answers[argument]))
        elif argument in ("lwork", "liwork") or argument in sizes:
            arguments.append(ctypes.byref(ctypes.c_int(sizes.get(argument, -1))))
        else:
            arguments.append(ctypes.c_void_p(None))  # not looked at when asked for sizes
    entry(*arguments, ctypes.byref(ctypes.c_int(0)), *lengths)
    found = {"work": max(1, math.ceil(answers["work"].value))}
    if "liwork" in call.arguments:
        found["iwork"] = max(1, int(answers["iwork"].value))
    return found


# -- a kernel -------------------------------------------------------------------------------------


def kernel(
    what: Factorization, sizes: Sizes, inputs: Sequence[Place], outputs: Sequence[Place]
) -> KernelCode:
    """Code that runs `what` over operands and results of three, or two, dimensions.

    The first dimension counts the matrices; results lie without gaps.
    """
    dtype = inputs[0].dtype
    scratch = dict(what.scratch(sizes))
    for call in what.calls:
        for name, count in _workspace(call, dtype, sizes).items():
            scratch[name] = max(count, scratch.get(name, 0))
    sizes = {
        **sizes,
        **{f"l{name}": scratch[name] for name in ("work", "iwork") if name in scratch},
    }
    places, total = _layout(scratch, dtype)
    matrix = inputs[0].strided.shape
    numbers = [matrix[0]]
    for place in inputs:
        numbers += _rows(place)
    numbers += [math.prod(place.strided.shape[1:]) for place in outputs]
    numbers += [*places.values(), *sizes.values()]
    frame = _Frame(what, dtype, tuple(sizes), tuple(scratch), tuple(p.dtype for p in outputs))
    flops = what.cubes * math.prod(matrix[1:]) * min(matrix[1:])
    return KernelCode(
        key=f"lapack.{what.name}({dtype}, {', '.join((*sizes, *scratch))})",
        emit=frame.emit,
        numbers=tuple(numbers),
        scratch_bytes=total,
        nanoseconds=_QUEUED_NANOSECONDS + matrix[0] * (_CALL_NANOSECONDS + flops / LAPACK_FLOPS),
        failures=tuple(("LinearAlgebraError", message) for message in what.failures),
    )


def _rows(place: Place) -> tuple[int, ...]:
    """Rows and columns of one matrix, and the steps to the next matrix, row and column."""
    shape, strides = place.strided.shape, place.strided.strides
    if len(shape) == 2:
        return 1, shape[1], strides[0], 0, strides[1]
    return *shape[1:], *strides


def _layout(scratch: Mapping[str, int], dtype: str) -> tuple[dict[str, int], int]:
    """Where each memory begins, in bytes, and how much they take together."""
    places, total = {}, 0
    for name, count in scratch.items():
        places[name] = total
        size = count * (4 if name.startswith("i") else ITEMSIZE[dtype])
        total += -(-max(size, 1) // _ALIGNMENT) * _ALIGNMENT
    return places, total


@dataclass(frozen=True)
class _Frame:
    """What the text of a kernel depends on."""

    what: Factorization
    dtype: str
    sizes: tuple[str, ...]
    scratch: tuple[str, ...]
    results: tuple[str, ...]  # element types

    def emit(self, module: Module, target: Target, name: str) -> None:
        inputs = [f"input{i}" for i in range(len(self.what.copies))]
        outputs = [f"output{i}" for i in range(len(self.results))]
        layout = [f"{i}.{part}" for i in inputs for part in ("m", "n", "next", "row", "column")]
        labels = ["count", *layout, *(f"{o}.items" for o in outputs)]
        labels += [f"at.{s}" for s in self.scratch] + [f"size.{s}" for s in self.sizes]
        f = module.function(
            name,
            [(p, PTR) for p in ("call", *inputs, *outputs, "scratch")] + [(n, I64) for n in labels],
            I64,
        )
        given = {p.text[1:]: p for p in f.parameters}
        _Body(self, f, given).emit()


class _Body:
    """The function of one kernel: a loop over the batch."""

    def __init__(self, frame: _Frame, f: Function, given: dict[str, Value]):
        self.frame, self.what, self.f, self.given = frame, frame.what, f, given
        self.real = STORED[frame.dtype]
        self.cells = {name: self._cell(given[f"size.{name}"]) for name in frame.sizes}
        self.info = f.allocate(I32, align=4)
        self.letters = {
            a: self._letter(a) for c in self.what.calls for a in c.arguments if "'" in a
        }

    def _cell(self, number: Value) -> Value:
        """Fortran takes the addresses of its integers."""
        cell = self.f.allocate(I32, align=4)
        self.f.store(self.f.convert("trunc", number, I32), cell)
        return cell

    def _letter(self, quoted: str) -> Value:
        cell = self.f.allocate(I8, align=1)
        self.f.store(constant(I8, ord(quoted[1])), cell)
        return cell

    def emit(self) -> None:
        f, zero = self.f, constant(I64, 0)
        with f.loop(0, self.given["count"], carried=[zero]) as batch:
            failed = self._one(batch.index)
            first = f.compare("eq", batch.carried[0], zero)
            batch.next = [f.select(first, failed, batch.carried[0])]
        f.ret(batch.results[0])

    def _one(self, index: Value) -> Value:
        """Factorise matrix number `index`; the number of its failure, or 0."""
        memories = self._memories(index)
        spoilt = [self._copy(i, index, memories[name]) for i, name in enumerate(self.what.copies)]
        if not self.what.finite:
            return self._calls(memories)
        f = self.f
        broken = f.compare("uno", spoilt[0], spoilt[0])
        failure = constant(I64, self.what.finite)
        (status,) = f.if_else(broken, lambda: [failure], lambda: [self._calls(memories)])
        return status

    def _memories(self, index: Value) -> dict[str, Value]:
        f, found = self.f, {}
        for i, (name, dtype) in enumerate(zip(self.what.results, self.frame.results, strict=True)):
            items = f.mul_size(index, self.given[f"output{i}.items"])
            found[name] = f.offset(STORED[dtype], self.given[f"output{i}"], items)
        for name in self.frame.scratch:
            found[name] = f.offset(I8, self.given["scratch"], self.given[f"at.{name}"])
        return found

    def _copy(self, i: int, index: Value, to: Value) -> Value:
        """Operand `i`'s matrix without gaps; returns a number that is NaN if not all are finite."""
        f = self.f
        m, n, following, row, column = (
            self.given[f"input{i}.{part}"] for part in ("m", "n", "next", "row", "column")
        )
        start = f.offset(self.real, self.given[f"input{i}"], f.mul_size(index, following))
        nothing = constant(self.real, 0.0)
        with f.loop(0, m, carried=[nothing]) as rows:
            source = f.offset(self.real, start, f.mul_size(rows.index, row))
            target = f.offset(self.real, to, f.mul_size(rows.index, n))
            with f.loop(0, n, carried=rows.carried) as columns:
                at = f.offset(self.real, source, f.mul_size(columns.index, column))
                x = f.load(self.real, at)
                f.store(x, f.offset(self.real, target, columns.index))
                columns.next = [f.add(columns.carried[0], f.mul(x, nothing))]
            rows.next = columns.results
        return rows.results[0]

    def _calls(self, memories: dict[str, Value]) -> Value:
        f, status = self.f, constant(I64, 0)
        for call in self.what.calls:
            info = self._call(call, memories)
            if call.failure:
                bad = f.compare("ne", info, constant(I32, 0))
                new = f.compare("eq", status, constant(I64, 0))
                both = f.binary("and", bad, new)
                status = f.select(both, constant(I64, call.failure), status)
        if self.what.imaginary is None:
            return status
        name, failure = self.what.imaginary
        return self._real_only(memories[name], failure, status)

    def _call(self, call: Call, memories: dict[str, Value]) -> Value:
        named = {**self.cells, **self.letters, **memories}
        arguments = [named[a] for a in call.arguments]
        # gfortran passes the lengths of its strings behind all arguments.
        lengths = [constant(I64, 1) for a in call.arguments if "'" in a]
        routine = _symbol(_LETTERS[self.frame.dtype] + call.routine)
        self.f.call(routine, [*arguments, self.info, *lengths])
        return self.f.load(I32, self.info)

    def _real_only(self, imaginary: Value, failure: int, status: Value) -> Value:
        f = self.f
        with f.loop(0, self.given["size.n"], carried=[status]) as loop:
            x = f.load(self.real, f.offset(self.real, imaginary, loop.index))
            complex_ = f.compare("une", x, constant(self.real, 0.0))
            new = f.compare("eq", loop.carried[0], constant(I64, 0))
            both = f.binary("and", complex_, new)
            loop.next = [f.select(both, constant(I64, failure), loop.carried[0])]
        return loop.results[0]


# -- the table ------------------------------------------------------------------------------------


def _matrix(sizes: Sizes) -> dict[str, int]:
    return {"a": sizes["m"] * sizes["n"]}


def _nothing(sizes: Sizes) -> dict[str, int]:
    return {}


_LU = Call("getrf", ("n", "n", "a", "lda", "ipiv"), failure=1)

CHOLESKY = Factorization(
    "cholesky",
    (Call("potrf", ("'U'", "n", "l", "lda"), failure=1),),
    copies=("l",),
    results=("l",),
    scratch=_nothing,
    failures=(factorizations.NOT_POSITIVE,),
    cubes=0.33,
)
LU = Factorization(
    "lu",
    (Call("getrf", ("n", "n", "lu", "lda", "ipiv")),),
    copies=("lu",),
    results=("lu", "ipiv"),
    scratch=_nothing,
    cubes=0.67,
)
INVERSE = Factorization(
    "inverse",
    (_LU, Call("getri", ("n", "a", "lda", "ipiv", "work", "lwork"), failure=1)),
    copies=("a",),
    results=("a",),
    scratch=lambda sizes: {"ipiv": sizes["n"]},
    failures=(factorizations.SINGULAR_MATRIX,),
    cubes=2.0,
)
# The second operand and the result hold one right-hand side a row.
SOLVE = Factorization(
    "solve",
    (_LU, Call("getrs", ("'T'", "n", "k", "a", "lda", "ipiv", "x", "lda"), failure=1)),
    copies=("a", "x"),
    results=("x",),
    scratch=lambda sizes: {**_matrix(sizes), "ipiv": sizes["n"]},
    failures=(factorizations.SINGULAR_MATRIX,),
)


def _symmetric(name: str, vectors: str, uplo: str) -> Factorization:
    """Eigenvalues, upwards, and eigenvectors, one a row. `uplo` counts in rows, as NumPy's."""
    seen = "'U'" if uplo == "L" else "'L'"
    syevd = ("n", "v", "lda", "w", "work", "lwork", "iwork", "liwork")
    return Factorization(
        f"{name}_{uplo}",
        (Call("syevd", (vectors, seen, *syevd), failure=1),),
        copies=("v",),
        results=("w", "v") if vectors == "'V'" else ("w",),
        scratch=_nothing if vectors == "'V'" else lambda sizes: {"v": sizes["n"] ** 2},
        failures=(factorizations.NO_EIGENVALUES,),
        cubes=9.0 if vectors == "'V'" else 1.5,
    )


SYMMETRIC = {uplo: _symmetric("symmetric", "'V'", uplo) for uplo in "LU"}
SYMMETRIC_VALUES = {uplo: _symmetric("symmetric_values", "'N'", uplo) for uplo in "LU"}


def _general(name: str, vectors: str) -> Factorization:
    """Eigenvalues, and eigenvectors, one a row: the left ones of what LAPACK sees."""
    geev = ("n", "a", "lda", "w", "wi", "v", "lda", "v", "lda", "work", "lwork")
    none = {} if vectors == "'V'" else {"v": 1}
    return Factorization(
        name,
        (Call("geev", (vectors, "'N'", *geev), failure=1),),
        copies=("a",),
        results=("w", "v") if vectors == "'V'" else ("w",),
        scratch=lambda sizes: {**_matrix(sizes), "wi": sizes["n"], **none},
        failures=(factorizations.NO_EIGENVALUES, factorizations.COMPLEX, factorizations.NOT_FINITE),
        imaginary=("wi", 2),
        finite=3,
        cubes=25.0 if vectors == "'V'" else 10.0,
    )


GENERAL = _general("general", "'V'")
GENERAL_VALUES = _general("general_values", "'N'")


def _singular(name: str, job: str) -> Factorization:
    """U, S and V transposed; LAPACK's two swap their roles under the transpose."""
    gesdd = ("n", "m", "a", "lda", "s", "vt", "lda", "u", "ldu", "work", "lwork", "iwork")
    none = {"u": 1, "vt": 1} if job == "'N'" else {}
    return Factorization(
        name,
        (Call("gesdd", (job, *gesdd), failure=1),),
        copies=("a",),
        results=("s",) if job == "'N'" else ("u", "s", "vt"),
        scratch=lambda sizes: {**_matrix(sizes), "iwork": 8 * sizes["k"], **none},
        failures=(factorizations.NO_SINGULAR_VALUES,),
        finite=1,  # of infinities, vectors are looked for without end
        cubes=3.0 if job == "'N'" else 20.0,
    )


SINGULAR_VALUES = _singular("singular_values", "'N'")
SINGULAR = _singular("singular", "'S'")
SINGULAR_FULL = _singular("singular_full", "'A'")

# A transposed is L Q, so A is Q transposed times L transposed: an orthogonal matrix and R.
ORTHOGONAL = Factorization(
    "orthogonal",
    (Call("gelqf", ("n", "m", "r", "lda", "tau", "work", "lwork")),),
    copies=("r",),
    results=("r", "tau"),
    scratch=_nothing,
    cubes=2.0,
)
# The orthogonal matrix itself, of `k` columns, from the other's results.
REFLECTORS = Factorization(
    "reflectors",
    (Call("orglq", ("k", "m", "reflectors", "q", "lda", "tau", "work", "lwork")),),
    copies=("q", "tau"),
    results=("q",),
    scratch=lambda sizes: {"tau": sizes["reflectors"]},
    cubes=2.0,
)
