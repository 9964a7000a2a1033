"""From LLVM IR text to a relocatable object, and the choice of the processor it is made for.

LLVM is reached through llvmlite, and llvmlite only from inside these functions: importing it costs
more than a whole start from a warm cache.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING

from heterosis.backends.native.codegen.target import AVX2, AVX512, FALLBACK, NEON, Target
from heterosis.runtime.errors import ArgumentError, HeterosisError, UnsupportedError

if TYPE_CHECKING:
    from llvmlite import binding


class CompileError(HeterosisError, RuntimeError):
    """LLVM refuses the code that a lowering wrote."""


# -- which processor ------------------------------------------------------------------------------

# A machine's targets, the best first.
_FAMILIES = {"x86_64": (AVX512, AVX2, FALLBACK), "aarch64": (NEON,)}


def host_target() -> Target:
    """The best target that this processor runs, or the lesser one that HETEROSIS_TARGET names."""
    return _host_target(os.environ.get("HETEROSIS_TARGET", ""))


@cache
def _host_target(wanted: str) -> Target:
    from heterosis import _core

    machine = os.uname().machine
    family = _FAMILIES.get(machine)
    if family is None:
        raise UnsupportedError(
            f"no code generation for the processor family {machine!r}; "
            f"expected one of {', '.join(_FAMILIES)}."
        )
    present = set(_core.cpu_features())
    usable = _usable(family, present)
    if wanted:
        return _restricted(wanted, family, usable, present)
    return usable[0]


def family() -> tuple[Target, ...]:
    """The targets of this machine's processor family, also those that it does not run."""
    return _FAMILIES.get(os.uname().machine, ())


def usable_targets() -> list[Target]:
    """All that this processor runs, the best first, whatever HETEROSIS_TARGET says."""
    from heterosis import _core

    return _usable(_FAMILIES[os.uname().machine], set(_core.cpu_features()))


def _usable(family: tuple[Target, ...], present: set[str]) -> list[Target]:
    return [target for target in family if not _required(target) - present]


def _required(target: Target) -> set[str]:
    return {feature.removeprefix("+") for feature in target.features.split(",")}


def _restricted(
    wanted: str, family: tuple[Target, ...], usable: list[Target], present: set[str]
) -> Target:
    named = next((target for target in family if target.name == wanted), None)
    choice = ", ".join(target.name for target in usable)
    if named is None:
        raise ArgumentError(
            f"HETEROSIS_TARGET={wanted}: not a target of this processor family; "
            f"this machine runs {choice}. Name one of these, or leave the setting out."
        )
    if named not in usable:
        missing = ", ".join(sorted(_required(named) - present))
        raise ArgumentError(
            f"HETEROSIS_TARGET={wanted}: this processor lacks {missing}; "
            f"it runs {choice}. Name one of these, or leave the setting out."
        )
    return named


# -- compiling ------------------------------------------------------------------------------------


def compile_object(llvm_text: str, target: Target, *, optimize: bool = False) -> bytes:
    """The ELF object of a module.

    `optimize` runs LLVM's own passes over the text first. Lowerings write explicit vectors and
    fold sizes themselves: the passes take longer than all the rest and change next to nothing.
    Threads would not make it quicker: llvmlite lets one of them into LLVM at a time.
    """
    module = _module(llvm_text, target, optimize)
    with _as_written():
        return bytes(_machine(target).emit_object(module))


def assembly(llvm_text: str, target: Target, *, optimize: bool = False) -> str:
    """The same code as text, for reading and for counting spills."""
    module = _module(llvm_text, target, optimize)
    with _as_written():
        return str(_machine(target).emit_assembly(module))


@contextmanager
def _as_written() -> Iterator[None]:
    """Loops keep the addresses that lowerings gave them.

    To look for better ones took half of LLVM's time, and made no kernel faster. Other libraries
    may share this LLVM, and expect it as it was.
    """
    llvm = _llvm()
    llvm.set_option("heterosis", "-disable-lsr=true")
    try:
        yield
    finally:
        llvm.set_option("heterosis", "-disable-lsr=false")


def _module(llvm_text: str, target: Target, optimize: bool) -> binding.ModuleRef:
    llvm = _llvm()
    try:
        module: binding.ModuleRef = llvm.parse_assembly(llvm_text)
        module.verify()
    except RuntimeError as error:
        raise CompileError(
            f"LLVM does not accept a lowering's code: {error}\n"
            "This is a fault of the framework; please report it with the operation and its shapes."
        ) from error
    if optimize:
        _run_passes(module, target)
    return module


def _run_passes(module: binding.ModuleRef, target: Target) -> None:
    llvm = _llvm()
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = options.slp_vectorization = options.loop_unrolling = False
    builder = llvm.create_pass_builder(_machine(target), options)
    builder.getModulePassManager().run(module, builder)


@cache
def _llvm() -> ModuleType:
    from llvmlite import binding

    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    binding.initialize_native_asmparser()  # for the instructions that only an assembler knows
    llvm: ModuleType = binding
    return llvm


@cache
def _machine(target: Target) -> binding.TargetMachine:
    # Level 2 schedules and allocates registers with care; 3 adds time and no speed here.
    family = _llvm().Target.from_triple(target.triple)
    return family.create_target_machine(
        cpu=target.cpu, features=target.features, opt=2, reloc="pic", codemodel="small"
    )
