"""The kernels that sort rows, and search in them."""

from __future__ import annotations

import math
from collections.abc import Callable

from heterosis.backends.native.codegen.emit.access import STORED
from heterosis.backends.native.codegen.emit.builder import Module
from heterosis.backends.native.codegen.kernel import KernelCode, Machine, Place
from heterosis.backends.native.codegen.kernels import extremes, searching, selecting
from heterosis.backends.native.codegen.kernels import sorting as code
from heterosis.backends.native.codegen.tables import KERNELS, KernelLowering
from heterosis.backends.native.codegen.target import Target
from heterosis.ir.primitives.sorting import (
    EXTREME_PLACES,
    FIRST_PLACES,
    SEARCH,
    SORT,
    SORT_PLACES,
)
from heterosis.ir.program import Node
from heterosis.ir.table_sizes import largest, smallest
from heterosis.ir.types import numpy_dtype

_NANOSECONDS = 2.5  # an element and pass
_COMPARED_NANOSECONDS = 0.3  # a key of 32 bits
_SEARCH_STEPS = 16  # in a row of 64,000
_EXTREME_NANOSECONDS = 0.012  # a byte
_SHARE_NANOSECONDS = 20_000.0


def _kernel(places: bool) -> Callable[..., KernelCode]:
    def kernel(
        node: Node, inputs: tuple[Place, ...], outputs: tuple[Place, ...], machine: Machine
    ) -> KernelCode:
        rows, length = inputs[0].strided.shape
        sort = code.RowSort(int(inputs[0].dtype.removeprefix("int")), places)
        room = -(-length * sort.item_bytes // 64) * 64
        network = code.network_for(machine.target, sort)
        if network is not None:
            # Twice the vectors that many rows need hold a row in parts and its copy as well.
            vectors = largest(2 * smallest(length, code.longest(network)), 2 * network.block)
            room = largest(room, vectors * machine.target.vector_bytes)
        row_nanoseconds = max(length * sort.bits / 8 * _NANOSECONDS, 1.0)

        def emit(module: Module, target: Target, name: str) -> None:
            code.emit_sort(module, target, name, sort)

        return KernelCode(
            key=repr(sort),
            emit=emit,
            numbers=(rows, length, math.floor(_SHARE_NANOSECONDS / row_nanoseconds) + 1, room),
            scratch_bytes=room * machine.workers,
            nanoseconds=rows * row_nanoseconds,
        )

    return kernel


def _selection(
    node: Node, inputs: tuple[Place, ...], outputs: tuple[Place, ...], machine: Machine
) -> KernelCode:
    rows, length = inputs[0].strided.shape
    bits = int(inputs[0].dtype.removeprefix("int"))
    selection = selecting.RowSelection(bits, node.attributes["count"])
    row_nanoseconds = max(length * bits / 32 * _COMPARED_NANOSECONDS, 1.0)

    def emit(module: Module, target: Target, name: str) -> None:
        selecting.emit_selection(module, name, selection)

    return KernelCode(
        key=repr(selection),
        emit=emit,
        numbers=(rows, length, math.floor(_SHARE_NANOSECONDS / row_nanoseconds) + 1),
        nanoseconds=rows * row_nanoseconds,
    )


def _search(
    node: Node, inputs: tuple[Place, ...], outputs: tuple[Place, ...], machine: Machine
) -> KernelCode:
    (length,), count = inputs[0].strided.shape, math.prod(inputs[1].strided.shape)
    element = STORED[inputs[0].dtype].element
    search = searching.Search(element, node.attributes["right"])
    nanoseconds = search.nanoseconds * _SEARCH_STEPS

    def emit(module: Module, target: Target, name: str) -> None:
        searching.emit_search(module, target, name, search)

    return KernelCode(
        key=repr(search),
        emit=emit,
        numbers=(length, count, math.floor(_SHARE_NANOSECONDS / nanoseconds)),
        nanoseconds=count * nanoseconds,
    )


def _extremes(
    node: Node, inputs: tuple[Place, ...], outputs: tuple[Place, ...], machine: Machine
) -> KernelCode:
    rows, length = inputs[0].strided.shape
    what = extremes.RowExtremes(inputs[0].dtype, node.attributes["smallest"])
    nanoseconds = numpy_dtype(what.dtype).itemsize * _EXTREME_NANOSECONDS
    turn = largest(smallest(length, extremes.BLOCK), 1) * nanoseconds
    blocks = -(-length // extremes.BLOCK)

    def emit(module: Module, target: Target, name: str) -> None:
        extremes.emit_extremes(module, target, name, what)

    return KernelCode(
        key=repr(what),
        emit=emit,
        numbers=(rows, length, math.floor(_SHARE_NANOSECONDS / turn) + 1),
        scratch_bytes=16 * rows * (blocks - 1),  # for all blocks, where there are several
        nanoseconds=rows * length * nanoseconds,
    )


KERNELS[SORT] = KernelLowering(_kernel(False), gapless=True)
KERNELS[SORT_PLACES] = KernelLowering(_kernel(True), gapless=True)
KERNELS[SEARCH] = KernelLowering(_search, gapless=True)
KERNELS[EXTREME_PLACES] = KernelLowering(_extremes, gapless=True)
KERNELS[FIRST_PLACES] = KernelLowering(_selection, gapless=True)
