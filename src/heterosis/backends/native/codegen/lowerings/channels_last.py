"""The kernels of convolutions that keep channels last."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from typing import TYPE_CHECKING

from heterosis.backends.native.codegen.costs import PRODUCT_FLOPS
from heterosis.backends.native.codegen.emit import abi
from heterosis.backends.native.codegen.emit.builder import I64, PTR, Module
from heterosis.backends.native.codegen.epilogue import Epilogue
from heterosis.backends.native.codegen.kernel import KernelCode, Machine, Multiplied, Place
from heterosis.backends.native.codegen.kernels import channels_last as code
from heterosis.backends.native.codegen.kernels.matmul.element import element
from heterosis.backends.native.codegen.kernels.matmul.tile import tile
from heterosis.backends.native.codegen.lowerings.native import (
    CONVOLVE_LAST,
    GROUPED_LAST,
    TILES_LAST,
)
from heterosis.backends.native.codegen.lowerings.products import packed_depth
from heterosis.backends.native.codegen.tables import KERNELS, KernelLowering
from heterosis.backends.native.codegen.target import Target
from heterosis.ir.program import Node
from heterosis.ir.types import TensorType, numpy_dtype

if TYPE_CHECKING:
    from heterosis.backends.native.codegen.kernels.matmul import Problem as Product

# Bytes of a result that are still in the second-level cache when the next kernel reads them.
_KEPT = 1 << 20


def _problem(node: Node, y_row: int | None = None, width: int = 1) -> code.Problem:
    """`y_row`: how far apart the rows of the result are; they have no gaps unless it says so."""
    images, in_h, in_w, channels = node.inputs[0].shape
    filters = node.types[0].shape[-1]
    facts = node.attributes
    pairs = (
        facts["kernel"],
        facts["out"],
        (in_h, in_w),
        *(facts[name] for name in ("stride", "dilate", "origin")),
    )
    return code.Problem(
        node.types[0].dtype,
        (images, channels, filters, filters if y_row is None else y_row)
        + tuple(n for pair in pairs for n in pair),
        width,
    )


def _product_kernel(
    node: Node, inputs: tuple[Place, ...], outputs: tuple[Place, ...], machine: Machine,
    epilogue: Epilogue,
) -> KernelCode:  # fmt: skip
    problem = _problem(node, _row_of(node, outputs[0]))
    depth = prod(node.attributes["kernel"]) * node.inputs[0].shape[-1]
    shape = tile(machine.target, element(problem.dtype, machine.target))
    narrow = shape.ends_narrow(node.types[0].shape[-1])
    return KernelCode(
        key=f"convolve last {problem.dtype} {narrow}{epilogue.key}",
        emit=_emission(partial(code.emit_product, narrow=narrow), problem, epilogue),
        numbers=problem.sizes,
        scratch_bytes=code.product_scratch_bytes(problem),
        nanoseconds=2 * node.types[0].size * depth / PRODUCT_FLOPS,
    )


def _row_of(node: Node, output: Place) -> int:
    """How far apart the rows of the result are."""
    rows = output.strided.reshape(_one_matrix(node.types[0])[1:])
    assert rows is not None, f"rows of {output.strided} are not equally far apart"
    return rows.strides[0]


def _tiles_kernel(
    node: Node, inputs: tuple[Place, ...], outputs: tuple[Place, ...], machine: Machine,
    epilogue: Epilogue,
) -> KernelCode:  # fmt: skip
    problem, m = _problem(node, _row_of(node, outputs[0])), node.attributes["winograd"]
    # As many multiplications as each place in a tile takes, for each of its results.
    depth = node.inputs[0].shape[-1] * (m + 2) ** 2 / m**2
    return KernelCode(
        key=f"tiles last {problem.dtype} {m}{epilogue.key}",
        emit=_emission(partial(code.emit_tiles, m=m), problem, epilogue),
        numbers=problem.sizes,
        scratch_bytes=code.tiles_scratch_bytes(problem, m, machine.target, machine.workers),
        nanoseconds=2 * node.types[0].size * depth / PRODUCT_FLOPS,
    )


def _grouped_kernel(
    node: Node, inputs: tuple[Place, ...], outputs: tuple[Place, ...], machine: Machine,
    epilogue: Epilogue,
) -> KernelCode:  # fmt: skip
    problem = _problem(node, width=node.attributes["width"])
    depth = prod(node.attributes["kernel"]) * problem.width
    return KernelCode(
        key=f"grouped last {problem.dtype} {problem.width} {problem.windows()}{epilogue.key}",
        emit=_emission(code.emit_grouped, problem, epilogue),
        numbers=problem.sizes,
        scratch_bytes=code.grouped_scratch_bytes(problem, machine.target, machine.workers),
        nanoseconds=2 * node.types[0].size * depth / PRODUCT_FLOPS,
        chained=partial(_behind, problem, epilogue, machine),
    )


def _emission(
    emit_core: Callable[..., None], problem: code.Problem, epilogue: Epilogue
) -> Callable[[Module, Target, str], None]:
    """What defines `@name`, which hands on to the core what that takes."""

    def emit(module: Module, target: Target, name: str) -> None:
        ended = None if epilogue.is_empty else epilogue
        emit_core(module, target, f"{name}.product", problem, ended)
        labels = epilogue.parameters(("call", "x", "a"), ("y", "scratch"), problem.parameters())
        f = module.function(name, labels)
        (call, x, a, y, scratch, *numbers), words = epilogue.split(f.parameters, 3, 2)
        call = abi.with_workspace(f, call, abi.workspace(f, call), words)
        f.call(f"{name}.product", [call, x, a, y, scratch, *numbers])
        f.ret()

    return emit


def _behind(
    problem: code.Problem, epilogue: Epilogue, machine: Machine, own: KernelCode, other: KernelCode
) -> KernelCode | None:
    """A convolution in groups that asks the product before it for its input, line by line: where
    that is large, it would be gone from the cache when it is read."""
    before, sizes = other.product, problem.known()
    if before is None or not _is_by_panels(before.problem, problem.dtype):
        return None
    product = dict(zip(before.labels, other.numbers, strict=False))
    positions = sizes["images"] * sizes["in_h"] * sizes["in_w"]
    shape = (positions, sizes["channels"], sizes["channels"])
    whole = (product["m"], product["n"], product["c_row"]) == shape
    large = positions * sizes["channels"] * numpy_dtype(problem.dtype).itemsize > _KEPT
    deep = product["k"] <= packed_depth(product["k"], problem.dtype, machine)
    if not (whole and large and deep):
        return None

    def emit(module: Module, target: Target, name: str) -> None:
        _emit_behind(module, target, name, problem, epilogue, before)

    return KernelCode(
        key=f"{own.key} behind {other.key}",
        emit=emit,
        numbers=other.numbers + own.numbers,
        scratch_bytes=own.scratch_bytes,
        nanoseconds=other.nanoseconds + own.nanoseconds,
    )


def _is_by_panels(product: Product, dtype: str) -> bool:
    """Whether it is a single product that reads a row as it lies, whenever it is asked."""
    return product.variant == "panels" and not product.batch and product.dtype == dtype


def _emit_behind(
    module: Module, target: Target, name: str, problem: code.Problem, epilogue: Epilogue,
    before: Multiplied,
) -> None:  # fmt: skip
    """Define `@name`, which takes the pointers of both kernels, then the numbers of both."""
    ended, first = (None if e.is_empty else e for e in (epilogue, before.epilogue))
    code.emit_grouped(
        module, target, f"{name}.product", problem, ended, code.Before(first, before.problem.narrow)
    )
    theirs = before.epilogue.parameters(("x", "panels"), (), [(n, I64) for n in before.labels])
    mine = epilogue.parameters(("a",), ("y", "scratch"), problem.parameters())
    both = [(f"before_{label}", type_) for label, type_ in theirs] + mine
    labels = [("call", PTR), *sorted(both, key=lambda parameter: parameter[1] != PTR)]
    f = module.function(name, labels)
    found = {label: value for (label, _), value in zip(labels, f.parameters, strict=True)}
    (x, panels, *numbers), words = before.epilogue.split(
        [found[f"before_{label}"] for label, _ in theirs], 2, 0
    )
    product = dict(zip(before.labels, numbers, strict=True))
    (a, y, scratch, *numbers), own = epilogue.split([found[label] for label, _ in mine], 1, 2)
    workspace = abi.workspace(f, found["call"])
    call, call_before = (
        abi.with_workspace(f, found["call"], workspace, some) for some in (own, words)
    )
    needed = [call_before, x, panels, product["a_row"], product["k"]]
    f.call(f"{name}.product", [call, x, a, y, scratch, *numbers, *needed])
    f.ret()


def _one_matrix(type_: TensorType) -> tuple[int, int, int]:
    return 1, prod(type_.shape[:-1]), type_.shape[-1]


KERNELS[CONVOLVE_LAST] = KernelLowering(
    _product_kernel, gapless=True, finishes=_one_matrix, spaced=True
)
KERNELS[TILES_LAST] = KernelLowering(_tiles_kernel, gapless=True, finishes=_one_matrix, spaced=True)
KERNELS[GROUPED_LAST] = KernelLowering(_grouped_kernel, gapless=True, finishes=_one_matrix)
