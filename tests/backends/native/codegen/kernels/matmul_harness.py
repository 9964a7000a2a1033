"""Makes operands of a matrix product, compiles it and calls it, with a parallel loop of ordinary
threads."""

from __future__ import annotations

import ctypes
import functools
import mmap
import re

import llvmlite.binding as llvm
import ml_dtypes
import numpy

from heterosis.backends.native.codegen.emit.builder import I64, PTR, Module
from heterosis.backends.native.codegen.kernels.matmul import (
    Batch,
    Problem,
    emit_matmul,
    workspace_bytes,
)
from heterosis.backends.native.codegen.target import NEON, Target
from heterosis.backends.native.compile import compiler

llvm.initialize_all_targets()
llvm.initialize_all_asmprinters()

_BODY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
_PARALLEL_FOR = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, _BODY, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64
)


class Runtime(ctypes.Structure):
    _fields_ = [
        ("pool", ctypes.c_void_p),
        ("parallel_for", _PARALLEL_FOR),
        ("workers", ctypes.c_int64),
    ]


class Call(ctypes.Structure):
    _fields_ = [
        ("buffers", ctypes.c_void_p),
        ("integers", ctypes.c_void_p),
        ("scalars", ctypes.c_void_p),
        ("workspace", ctypes.c_void_p),
        ("runtime", ctypes.POINTER(Runtime)),
    ]


@_PARALLEL_FOR
def _shares_in_turn(_pool, body, context, count, grain):
    """One thread, but the shares come in an awkward order and with changing worker numbers."""
    begins = list(range(0, count, grain))
    for number, begin in enumerate(reversed(begins)):
        body(context, begin, min(count, begin + grain), number % WORKERS)


WORKERS = 3
RUNTIME = Runtime(None, _shares_in_turn, WORKERS)


def machine(target: Target) -> llvm.TargetMachine:
    return llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu, features=target.features, opt=2, codemodel="jitdefault", jit=True
    )


def text_of(target: Target, problem: Problem, epilogue=None) -> str:
    module = Module()
    emit_matmul(module, target, "product", problem, epilogue)
    unknown = [label for label, _ in problem.parameters()]
    f = module.function("start", [("call", PTR), ("numbers", PTR)], linkage="external")
    call, numbers = f.parameters
    _forward(f, call, numbers, len(unknown))
    return module.text()


def _forward(f, call, numbers, count):
    """The test's entry: three pointers and then the sizes, read from one array."""
    pointers = [f.load(PTR, f.offset(I64, numbers, i)) for i in range(3)]
    sizes = [f.load(I64, f.offset(I64, numbers, 3 + i)) for i in range(count)]
    f.call("product", [call, *pointers, *sizes])
    f.ret()


def assembly(target: Target, problem: Problem) -> str:
    return compiler.assembly(text_of(target, problem), target)


@functools.cache
def compiled(target: Target, problem: Problem, epilogue=None):
    return compile_text(target, text_of(target, problem, epilogue))


def compile_text(target: Target, text: str):
    """The engine, to be kept, and `start(call, numbers)`."""
    parsed = llvm.parse_assembly(text)
    parsed.verify()
    engine = llvm.create_mcjit_compiler(parsed, machine(target))
    engine.finalize_object()
    entry = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(
        engine.get_function_address("start")
    )
    return engine, entry


def strides(array: numpy.ndarray) -> list[int]:
    return [stride // array.itemsize for stride in array.strides]


def problem_of(a, b, c, dtype: str | None = None, **options) -> Problem:
    """The problem that multiplies these arrays, every number known. Axes before two are batches."""
    a_s, b_s, c_s = strides(a), strides(b), strides(c)
    batch = tuple(Batch(*axis) for axis in zip(c.shape[:-2], a_s, b_s, c_s))
    return Problem(
        dtype or a.dtype.name, m=c.shape[-2], n=c.shape[-1], k=a.shape[-1],
        a_row=a_s[-2], a_column=a_s[-1], b_row=b_s[-2], b_column=b_s[-1], c_row=c_s[-2],
        batch=batch, **options,
    )  # fmt: skip


def run(target: Target, code: Problem, actual: Problem, a, b, c, epilogue=None) -> None:
    """Call the code compiled for `code` with the numbers of `actual`."""
    _, entry = compiled(target, code, epilogue)
    numbers = [a.ctypes.data, b.ctypes.data, c.ctypes.data, *code.arguments(actual)]
    size = workspace_bytes(actual, target, WORKERS)
    subnormal = _has_subnormals(a) or (b.dtype == a.dtype and _has_subnormals(b))
    call_with_workspace(entry, numbers, size, subnormal=subnormal)


def _has_subnormals(array: numpy.ndarray) -> bool:
    if array.dtype.kind in "biu":
        return False
    least = ml_dtypes.finfo(array.dtype).smallest_normal
    return bool(((array != 0) & (abs(array) < least)).any())


# Fills memory that kernels should not compute with: a subnormal as float32 and, twice, as float64.
FILL = 0x000A5A5A
_SUBNORMAL = 0x02  # of an x86 processor's flags: an instruction met a subnormal operand
_FLAGS = 7  # which word of an environment has them: `mxcsr`


class _Environment(ctypes.Structure):
    """What C's floating-point environment is on x86 processors."""

    _fields_ = [("words", ctypes.c_uint32 * 8)]


def _has_met_subnormals() -> bool:
    """Whether an instruction met a subnormal operand since the last time."""
    library, environment = ctypes.CDLL("libm.so.6"), _Environment()
    library.fegetenv(ctypes.byref(environment))
    met = bool(environment.words[_FLAGS] & _SUBNORMAL)
    environment.words[_FLAGS] &= ~_SUBNORMAL
    library.fesetenv(ctypes.byref(environment))
    return met


def call_with_workspace(entry, numbers: list[int], size: int, *, subnormal: bool = False) -> None:
    """Call `start` with `size` bytes of workspace, beside which nothing may be written.

    Nor may what lies there be computed with: it may be subnormal, and an instruction that meets
    such operands takes a hundred times as long. Nothing is asserted of that if some of the numbers
    to be multiplied are `subnormal` themselves.
    """
    guard = 64  # numbers
    memory = numpy.full(-(-size // 4) + 2 * guard + 16, FILL, numpy.uint32)
    untouched = memory.view(numpy.uint8).copy()
    start = memory.ctypes.data + 4 * guard
    start += -start % 64
    call = Call(None, None, None, start, ctypes.pointer(RUNTIME))
    address, given = ctypes.addressof(call), (ctypes.c_int64 * len(numbers))(*numbers)
    _has_met_subnormals()
    entry(address, given)
    met = _has_met_subnormals()
    before = start - memory.ctypes.data
    written = memory.view(numpy.uint8) != untouched
    assert not written[:before].any(), "wrote before the workspace"
    assert not written[before + size :].any(), "wrote behind the workspace"
    assert subnormal or not met, "computed with what lay in the workspace"


def guarded(array):
    """A copy with the same strides whose last byte is the last one that may be read."""
    base = numpy.ascontiguousarray(array if array.flags.c_contiguous else array.T)
    pages = -(-base.nbytes // mmap.PAGESIZE) + 1
    memory = mmap.mmap(-1, pages * mmap.PAGESIZE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    libc = ctypes.CDLL(None, use_errno=True)
    wall = start + (pages - 1) * mmap.PAGESIZE
    assert libc.mprotect(ctypes.c_void_p(wall), ctypes.c_size_t(mmap.PAGESIZE), 0) == 0
    offset = (pages - 1) * mmap.PAGESIZE - base.nbytes
    copy = numpy.frombuffer(memory, base.dtype, base.size, offset).reshape(base.shape)
    copy[...] = base
    return copy if array.flags.c_contiguous else copy.T


generator = numpy.random.default_rng(7)


def numbers(shape, dtype: str):
    if dtype == "bool":
        return generator.random(shape) < 0.2
    if dtype.startswith(("int", "uint")):
        low = -100 if dtype.startswith("int") else 0
        return generator.integers(low, 101, shape).astype(dtype)
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
    return generator.standard_normal(shape).astype(kind)


def operand(shape, dtype: str, layout: str):
    """`rows` and `columns` say which neighbours are neighbours in memory."""
    m, n = shape
    if layout == "rows":
        return numbers(shape, dtype)
    if layout == "columns":
        return numbers((n, m), dtype).T
    if layout == "spread":
        return numbers((2 * m, 3 * n), dtype)[::2, ::3]
    if layout == "reversed":
        return numbers(shape, dtype)[::-1, ::-1]
    if layout == "repeated":
        return numpy.broadcast_to(numbers((1, n), dtype), shape)
    raise AssertionError(layout)


def result(m: int, n: int, like):
    """A result inside a wider array, whose margin must survive."""
    wide = numpy.full((m, n + 3), 7).astype(like.dtype)
    return wide, wide[:, :n]


# -- the assembly ----------------------------------------------------------------------------------


def loops_of(body: str) -> list[str]:
    """The parts of assembly between its labels."""
    return re.split(r"^[.\w]*LBB\w+:", body, flags=re.MULTILINE)


_STACK = {"avx512": r"[xyz]mm", "avx2": r"[xyz]mm", "fallback": r"xmm"}


def vector_spills(target: Target, body: str) -> int:
    """How many vectors are stored on the stack, or loaded from there."""
    if target is NEON:
        return len(re.findall(r"^\s*(?:st|ld)[rpu]+\s+[qv]\d+,.*\[sp", body, re.MULTILINE))
    register = _STACK[target.name]
    lines = [line for line in body.splitlines() if re.search(r"\(%rsp", line)]
    return sum(bool(re.search(register, line)) for line in lines)
