"""The front of the package: define a function for a matrix product, and size its scratch memory."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

from heterosis.backends.native.codegen.emit import abi
from heterosis.backends.native.codegen.emit.builder import PTR, Function, Module, Size, Value, known
from heterosis.backends.native.codegen.epilogue import Epilogue
from heterosis.backends.native.codegen.kernels.matmul.blocked import (
    blocking,
    emit_blocked,
    scratch_numbers,
)
from heterosis.backends.native.codegen.kernels.matmul.choose import panelled
from heterosis.backends.native.codegen.kernels.matmul.direct import emit_direct
from heterosis.backends.native.codegen.kernels.matmul.dots import emit_dots, turned_numbers
from heterosis.backends.native.codegen.kernels.matmul.element import element
from heterosis.backends.native.codegen.kernels.matmul.frame import Frame, share
from heterosis.backends.native.codegen.kernels.matmul.macro_kernel import product_kernel
from heterosis.backends.native.codegen.kernels.matmul.micro_kernel import Kernel
from heterosis.backends.native.codegen.kernels.matmul.panels import copied_numbers, emit_panels
from heterosis.backends.native.codegen.kernels.matmul.prepack import packed_numbers
from heterosis.backends.native.codegen.kernels.matmul.problem import SIZES, Problem
from heterosis.backends.native.codegen.kernels.matmul.strips import emit_strips, strip_numbers
from heterosis.backends.native.codegen.kernels.matmul.tall import emit_deep, emit_tall
from heterosis.backends.native.codegen.kernels.matmul.tile import tile
from heterosis.backends.native.codegen.kernels.matmul.turned import emit_turned
from heterosis.backends.native.codegen.target import Target

# Multiplications that make a share of several small products worth a thread.
_SHARE_WORK = 1 << 16


# Those whose core multiplies the transposed operands.
_TRANSPOSED = ("direct_transposed", "direct_turned")
_CORES = {
    "copied": emit_panels,
    "deep": emit_deep,
    "direct": emit_direct,
    "direct_row": emit_direct,
    "direct_transposed": emit_direct,
    "direct_turned": emit_direct,
    "dots_of_columns": emit_dots,
    "dots_of_few": emit_dots,
    "dots_of_rows": emit_dots,
    "dots_of_several": emit_dots,
    "panels": emit_panels,
    "rows": emit_panels,
    "strips": emit_strips,
    "tall": emit_tall,
    "turned": emit_turned,
}


def emit_matmul(
    module: Module, target: Target, name: str, problem: Problem, epilogue: Epilogue | None = None
) -> None:
    """Define `void @name(ptr call, ptr a, ptr b, ptr c, <problem.parameters()>)`.

    The pointers are the operands' first elements; the result overlaps neither operand. With an
    `epilogue`, the call is one that `abi.with_workspace` made with the epilogue's words.
    """
    kernel = _kernel(module, target, problem, epilogue)
    core = f"{name}.one"
    turned = problem.transposed() if problem.variant in _TRANSPOSED else problem
    _CORES.get(problem.variant, emit_blocked)(kernel, turned, core)
    pointers = [("call", PTR), ("a", PTR), ("b", PTR), ("c", PTR)]
    unknown = problem.parameters()
    f = module.function(name, pointers + unknown, attributes=target.function_attributes)
    labels = [label for label, _ in pointers + unknown]
    values = _known(problem) | dict(zip(labels, f.parameters, strict=True))
    memory = Frame.allocate(f)
    v = SimpleNamespace(**values)

    def products() -> None:
        _each_product(kernel, problem, core, name, f, v, memory)

    work = f.compare("sgt", f.i64(f.mul_size(f.min_size(v.m, 1), f.min_size(v.n, 1))), f.i64(0))
    f.if_else(work, products)
    f.ret()


def workspace_bytes(problem: Problem, target: Target, workers: int) -> int:
    """Scratch bytes the emitted function needs; every number of `problem` is known."""
    last = tile(target, element(problem.dtype, target)).ends_narrow(
        panelled(problem, problem.variant)
    )
    assert problem.narrow in (0, last), f"the last panel has {last} columns, not {problem.narrow}"
    f = Function(Module(), "sizes", [])
    kernel = _kernel(f.module, target, problem, None)
    inside = 1 if problem.over_batches else workers
    numbers = _scratch(f, kernel, problem, SimpleNamespace(**problem.sizes()), inside)
    return known(numbers) * kernel.element.size * (workers if problem.over_batches else 1)


def _scratch(
    f: Function, kernel: Kernel, problem: Problem, v: SimpleNamespace, workers: Size
) -> Size:
    if problem.variant == "rows":
        return packed_numbers(f, kernel, v.n, v.k)
    if problem.variant == "copied":
        return copied_numbers(f, kernel, v.m, v.k)
    if problem.variant == "strips":
        return f.mul_size(strip_numbers(f, kernel, v), workers)
    if problem.variant == "dots_of_few":
        return turned_numbers(f, kernel, v)
    if problem.variant == "turned":
        return packed_numbers(f, kernel, v.m, v.k)
    if problem.variant in _CORES:
        return 0
    return scratch_numbers(f, blocking(f, kernel, problem, v, workers), workers)


def _kernel(module: Module, target: Target, problem: Problem, epilogue: Epilogue | None) -> Kernel:
    """Products share their kernels: these depend on the element type and the epilogue only."""
    return product_kernel(module, target, problem.dtype).ended_by(epilogue)


def _known(problem: Problem) -> dict[str, Size]:
    numbers = dict(problem.sizes())
    for axis, batch in enumerate(problem.batch):
        numbers |= {f"batch{axis}_{x}": getattr(batch, x) for x in ("count", "a", "b", "c")}
    return {label: number for label, number in numbers.items() if number is not None}


def _each_product(
    kernel: Kernel, problem: Problem, core: str, name: str, f: Function,
    v: SimpleNamespace, memory: Value,
) -> None:  # fmt: skip
    scratch = abi.workspace(f, v.call)
    if not problem.batch:
        _one(kernel, problem, core, f, v, scratch, f.i64(0))
        return
    total: Size = 1
    for axis in range(len(problem.batch)):
        total = f.mul_size(total, getattr(v, f"batch{axis}_count"))
    if not problem.over_batches:
        with f.loop(0, total) as product:
            _one(kernel, problem, core, f, v, scratch, product.index)
        return
    frame = Frame(**vars(v))
    frame.save(f, memory)
    work = f.mul_size(f.mul_size(v.m, v.n), v.k)
    grain = abi.grain_of(f, work, _SHARE_WORK)
    share(f, v.call, f"{name}.batches", memory, total, grain, alone=False)
    _emit_batches_body(kernel, problem, core, name, frame)


def _emit_batches_body(
    kernel: Kernel, problem: Problem, core: str, name: str, frame: Frame
) -> None:
    f, v, begin, end, worker = frame.body(kernel.module, kernel.target, f"{name}.batches")
    size = _scratch(f, kernel, problem, v, 1)
    scratch = f.offset(kernel.element.compute, abi.workspace(f, v.call), f.mul_size(worker, size))
    with f.loop(begin, end) as product:
        _one(kernel, problem, core, f, v, scratch, product.index)
    f.ret()


def _one(
    kernel: Kernel, problem: Problem, core: str, f: Function, v: SimpleNamespace,
    scratch: Value, batch: Value,
) -> None:  # fmt: skip
    """Call the core on product number `batch`, counted with the last batch axis fastest."""
    moved: dict[str, Size] = {"a": 0, "b": 0, "c": 0}
    counts = [getattr(v, f"batch{axis}_count") for axis in range(len(problem.batch))]
    for axis, here in enumerate(f.unravelled(batch, counts)):
        for x, offset in moved.items():
            stride = getattr(v, f"batch{axis}_{x}")
            moved[x] = f.add_size(offset, f.mul_size(here, stride))
    storage = kernel.element.storage
    pointers = {x: f.offset(storage, getattr(v, x), moved[x]) for x in moved}
    sizes = {label: getattr(v, label) for label in SIZES}
    if problem.variant in _TRANSPOSED:
        pointers = {"b": pointers["b"], "a": pointers["a"], "c": pointers["c"]}
        sizes = vars(replace(Problem(problem.dtype), **sizes).transposed())
        problem = problem.transposed()
    unknown = [sizes[label] for label in SIZES if getattr(problem, label) is None]
    f.call(core, [v.call, scratch, batch, *pointers.values(), *unknown])
