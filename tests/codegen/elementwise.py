"""Compiles one elementwise function into a loop over arrays: vectors, then a scalar tail."""

from __future__ import annotations

import ctypes
from functools import cache

import llvmlite.binding as llvm
import numpy as np

from heterosis.codegen.builder import DOUBLE, FLOAT, I64, PTR, Module, Type
from heterosis.codegen.target import TARGETS, Target

llvm.initialize_all_targets()
llvm.initialize_all_asmprinters()

ELEMENTS = {"float32": FLOAT, "float64": DOUBLE}


def module_text(function, dtype: str, arity: int, target: Target, vectors: bool = True) -> str:
    module = Module()
    module.target = target
    element = ELEMENTS[dtype]
    lanes = target.lanes(element.bits // 8)
    names = [("n", I64), *((f"in{i}", PTR) for i in range(arity)), ("out", PTR)]
    f = module.function(
        "kernel", names, linkage="", attributes=target.function_attributes
    )
    n, *inputs, out = f.parameters

    def body(index, type_: Type) -> None:
        loaded = [f.load(type_, f.offset(element, p, index)) for p in inputs]
        f.store(function(f, *loaded), f.offset(element, out, index))

    whole = f.round_down(n, lanes) if vectors else 0
    if vectors:
        with f.loop(0, whole, lanes) as loop:
            body(loop.index, Type(element.element, lanes))
    with f.loop(whole, n) as loop:
        body(loop.index, element)
    f.ret()
    return module.text()


def machine(target: Target) -> llvm.TargetMachine:
    return llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu, features=target.features, opt=2, reloc="pic", codemodel="small"
    )


def parsed(text: str, target: Target) -> llvm.ModuleRef:
    module = llvm.parse_assembly(text)
    module.triple = target.triple
    module.verify()
    return module


def assembly(function, dtype: str, arity: int, target: Target) -> str:
    module = parsed(module_text(function, dtype, arity, target), target)
    return machine(target).emit_assembly(module)


class Kernel:
    """A compiled elementwise function, called with arrays."""

    def __init__(self, function, dtype: str, arity: int, target: Target, vectors: bool = True):
        module = parsed(module_text(function, dtype, arity, target, vectors), target)
        self.engine = llvm.create_mcjit_compiler(module, machine(target))
        self.engine.finalize_object()
        address = self.engine.get_function_address("kernel")
        self.entry = ctypes.CFUNCTYPE(None, ctypes.c_int64, *[ctypes.c_void_p] * (arity + 1))(
            address
        )
        self.dtype = dtype

    def __call__(self, *arrays: np.ndarray) -> np.ndarray:
        arrays = np.broadcast_arrays(*(np.asarray(a, self.dtype) for a in arrays))
        arrays = [np.ascontiguousarray(a) for a in arrays]
        out = np.empty_like(arrays[0])
        self.entry(out.size, *(a.ctypes.data for a in arrays), out.ctypes.data)
        return out


@cache
def kernel(function, dtype: str, arity: int, target: str, vectors: bool = True) -> Kernel:
    return Kernel(function, dtype, arity, TARGETS[target], vectors)
