"""Targets, and the way from LLVM text to machine code that runs."""

from __future__ import annotations

import ctypes
import shutil
import struct
import subprocess
import sys

import numpy
import pytest

from heterosis import _core
from heterosis.backends.native.codegen.emit import abi
from heterosis.backends.native.codegen.emit.builder import (
    DOUBLE,
    FLOAT,
    I16,
    I64,
    PTR,
    Module,
    Type,
    constant,
)
from heterosis.backends.native.codegen.target import AVX2, FALLBACK, NEON, TARGETS, Target
from heterosis.backends.native.compile import compiler
from heterosis.backends.native.compile.compiler import (
    CompileError,
    assembly,
    compile_object,
    host_target,
)
from heterosis.runtime.errors import ArgumentError, UnsupportedError
from tests.backends.native.usable_targets import HERE


class Call(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_void_p)
        for name in ("buffers", "integers", "scalars", "workspace", "runtime")
    ]


def run(function: int, *arrays: numpy.ndarray) -> int:
    """Call a compiled function with these buffers and the first one's size."""
    buffers = (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays))
    integers = (ctypes.c_int64 * 1)(arrays[0].size)
    call = Call(ctypes.addressof(buffers), ctypes.addressof(integers))
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.POINTER(Call))(function)(ctypes.byref(call))


def polynomial(target: Target) -> str:
    """y = 0.5 x^2 + 2, the constants from a table."""
    module, vector = Module(), Type("float", target.lanes(4))
    f = module.function(
        "polynomial", [("call", PTR)], I64, linkage="", attributes=target.function_attributes
    )
    (call,) = f.parameters
    x, y, n = abi.buffer(f, call, 0), abi.buffer(f, call, 1), abi.integer(f, call, 0)
    table = module.table("factors", FLOAT, [0.5, 2.0])
    whole = f.round_down(n, vector.lanes)

    def body(index, type_):
        value = f.load(type_, f.offset(FLOAT, x, index))
        half, two = (f.load(FLOAT, f.offset(FLOAT, table, i)) for i in range(2))
        square = f.mul(value, value)
        result = f.fma(square, f.splat(half, type_.lanes), f.splat(two, type_.lanes))
        f.store(result, f.offset(FLOAT, y, index))

    with f.loop(0, whole, vector.lanes) as loop:
        body(loop.index, vector)
    with f.loop(whole, n) as loop:
        body(loop.index, FLOAT)
    f.ret(constant(I64, 0))
    return module.text()


# -- running --------------------------------------------------------------------------------------


@pytest.mark.parametrize("optimize", [False, True])
@pytest.mark.parametrize("target", HERE, ids=lambda target: target.name)
def test_compiled_code_runs(target, optimize):
    file = compile_object(polynomial(target), target, optimize=optimize)
    loaded = _core.load_object(file)
    x = numpy.linspace(-3, 3, 67, dtype=numpy.float32)
    y = numpy.zeros_like(x)
    assert run(loaded.address("polynomial"), x, y) == 0
    numpy.testing.assert_allclose(y, 0.5 * x * x + 2, rtol=1e-6)


@pytest.mark.parametrize("target", HERE, ids=lambda target: target.name)
def test_halves_convert_without_the_instruction(target):
    """LLVM calls a function for each conversion where the processor has none."""
    module = Module()
    f = module.function("convert", [("call", PTR)], I64, linkage="")
    (call,) = f.parameters
    source, result, narrowed = (abi.buffer(f, call, i) for i in range(3))
    half = Type("half")
    with f.loop(0, abi.integer(f, call, 0)) as loop:
        value = f.load(half, f.offset(half, source, loop.index))
        wide = f.convert("fpext", value, FLOAT)
        f.store(wide, f.offset(FLOAT, result, loop.index))
        third = f.mul(f.convert("fpext", wide, DOUBLE), constant(DOUBLE, 1 / 3))
        f.store(f.convert("fptrunc", third, half), f.offset(half, narrowed, loop.index))
    f.ret(constant(I64, 0))
    loaded = _core.load_object(compile_object(module.text(), target))
    halves = numpy.arange(1 << 16, dtype=numpy.uint16).view(numpy.float16)
    wide, narrow = numpy.zeros(halves.shape, numpy.float32), numpy.zeros_like(halves)
    assert run(loaded.address("convert"), halves, wide, narrow) == 0
    with numpy.errstate(invalid="ignore"):
        numpy.testing.assert_array_equal(wide, halves.astype(numpy.float32))
        expected = (halves.astype(numpy.float64) * (1 / 3)).astype(numpy.float16)
    numpy.testing.assert_array_equal(narrow, expected)


def test_registered_symbol_is_called():
    answer = ctypes.CFUNCTYPE(ctypes.c_int64)(lambda: 42)
    text = "declare i64 @a_host_function()\ndefine i64 @ask() {\n"
    text += "  %x = call i64 @a_host_function()\n  ret i64 %x\n}\n"
    file = compile_object(text, host_target())
    with pytest.raises(_core.LoadError, match="'a_host_function' is not known"):
        _core.load_object(file)
    _core.register_symbol("a_host_function", ctypes.cast(answer, ctypes.c_void_p).value)
    loaded = _core.load_object(file)
    assert ctypes.CFUNCTYPE(ctypes.c_int64)(loaded.address("ask"))() == 42
    with pytest.raises(_core.LoadError, match="no 'tell', only: ask"):
        loaded.address("tell")


@pytest.mark.parametrize("size", [0, 10, 63, 64, 200, 500])
def test_truncated_object_is_refused(size):
    file = compile_object(polynomial(host_target()), host_target())
    with pytest.raises(_core.LoadError, match="object file"):
        _core.load_object(file[:size])


def test_object_for_another_processor_is_refused():
    other = FALLBACK if host_target() is NEON else NEON
    with pytest.raises(_core.LoadError, match="for machine"):
        _core.load_object(compile_object(polynomial(other), other))


# -- text -----------------------------------------------------------------------------------------


def test_assembly_shows_the_target():
    assert "vfmadd" in assembly(polynomial(AVX2), AVX2)
    assert "vfmadd" not in assembly(polynomial(FALLBACK), FALLBACK)
    assert "fmla" in assembly(polynomial(NEON), NEON)


@pytest.mark.parametrize(
    "text, message",
    [
        ("define i32 @f() { ret i64 0 }", "does not match|doesn't match"),
        ("nonsense", "expected top-level entity"),
    ],
)
def test_bad_code_is_reported(text, message):
    with pytest.raises(CompileError, match=message):
        compile_object(text, host_target())


# -- targets --------------------------------------------------------------------------------------


def test_others_find_llvm_as_it_was():
    """Numba shares it, and has its loops improved."""
    module = Module()
    f = module.function("sum", [("x", PTR), ("step", I64), ("n", I64)], FLOAT, linkage="")
    x, step, n = f.parameters
    with f.loop(0, n, 1, [constant(FLOAT, 0)]) as loop:
        item = f.load(FLOAT, f.offset(FLOAT, x, f.mul_size(loop.index, step)))
        loop.next = [f.add(loop.carried[0], item)]
    f.ret(loop.results[0])
    llvm, text = compiler._llvm(), module.text()

    def directly() -> str:
        return compiler._machine(host_target()).emit_assembly(llvm.parse_assembly(text))

    before = directly()
    ours = assembly(text, host_target())
    assert directly() == before != ours


def test_setting_restricts_the_target(monkeypatch):
    for target in HERE:
        monkeypatch.setenv("HETEROSIS_TARGET", target.name)
        assert host_target() is target


@pytest.mark.parametrize(
    "features, wanted, expected",
    [
        (["sse2"], "", "fallback"),
        (["sse2", "avx2", "fma", "f16c", "bmi", "bmi2"], "", "avx2"),
        (["sse2", "avx2", "fma", "f16c", "bmi", "bmi2"], "fallback", "fallback"),
        (["sse2", "avx2", "fma"], "", "fallback"),
        (["sse2"], "avx2", "lacks avx2, bmi, bmi2, f16c, fma; it runs fallback"),
        (["sse2"], "neon", "not a target of this processor family; this machine runs fallback"),
        (["sse2"], "AVX2", "not a target of this processor family"),
    ],
)
def test_choice_of_target(monkeypatch, features, wanted, expected):
    monkeypatch.setattr(_core, "cpu_features", lambda: features)
    monkeypatch.setitem(
        compiler._FAMILIES, compiler.os.uname().machine, compiler._FAMILIES["x86_64"]
    )
    choose = compiler._host_target.__wrapped__
    if expected in TARGETS:
        assert choose(wanted).name == expected
    else:
        with pytest.raises(ArgumentError, match=f"HETEROSIS_TARGET={wanted}.*{expected}"):
            choose(wanted)


def test_unknown_processor_family(monkeypatch):
    monkeypatch.setattr(compiler, "_FAMILIES", {"vax": ()})
    with pytest.raises(UnsupportedError, match="expected one of vax"):
        compiler._host_target.__wrapped__("")


def test_llvm_is_imported_on_first_need_only():
    module = "heterosis.backends.native.compile.object_cache"
    code = f"import sys, {module}; sys.exit('llvmlite' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# -- relocations ----------------------------------------------------------------------------------


def everything(target: Target) -> str:
    """A module with every kind of reference that lowerings write."""
    module = Module()
    f = module.function("whole", [("call", PTR)], I64, linkage="")
    (call,) = f.parameters
    part = module.function("part", abi.LOOP_BODY_PARAMETERS, linkage="internal")
    for name, element in (("i16", I16), ("f32", FLOAT), ("f64", DOUBLE)):
        table = module.table(name, element, [1, 2, 3, 4])
        wide = Type(element.element, max(2, target.lanes(8)))
        part.store(part.load(wide, table), part.parameters[0])
        for scalar in (element, Type("i8")):
            value = part.load(scalar, part.offset(element, table, 1))
            part.store(value, part.offset(DOUBLE, part.parameters[0], 3))
    part.call("a_routine", [part.parameters[0]])
    part.ret()
    abi.parallel_for(f, call, "part", call, 100, 10)
    f.call("memcpy", [call, call, constant(I64, 100)], PTR)
    vector = Type("double", 2)
    shuffled = f.load(vector, call)
    f.store(f.fma(shuffled, constant(vector, 0.1), constant(vector, 0.7)), call)
    f.ret(constant(I64, 0))
    extra = """
@state = internal global i64 5
@pointers = internal constant [2 x ptr] [ptr @state, ptr @chosen]
@elsewhere = external global i64
define i64 @chosen(i64 %which) {
  switch i64 %which, label %z [i64 0, label %a i64 1, label %b i64 2, label %c i64 3, label %d]
a:
  %x = load i64, ptr @elsewhere
  ret i64 %x
b:
  %y = load i64, ptr @state
  ret i64 %y
c:
  %q = getelementptr ptr, ptr @pointers, i64 %which
  %r = load ptr, ptr %q
  %s = ptrtoint ptr %r to i64
  ret i64 %s
d:
  %t = tail call i64 @a_tail(i64 %which)
  ret i64 %t
z:
  ret i64 7
}
declare i64 @a_tail(i64)
"""
    return module.text() + extra


def relocations(file: bytes) -> tuple[int, set[int]]:
    """The ELF machine number and the relocation types in the sections that are loaded."""
    machine = struct.unpack_from("<H", file, 18)[0]
    table = struct.unpack_from("<Q", file, 40)[0]
    count = struct.unpack_from("<H", file, 60)[0]
    sections = [struct.unpack_from("<IIQQQQIIQQ", file, table + 64 * i) for i in range(count)]
    types = set()
    for _, kind, _, _, offset, size, _, into, _, _ in sections:
        if kind == 4 and sections[into][2] & 2:  # SHT_RELA of a section with SHF_ALLOC
            entries = struct.iter_unpack("<QQq", file[offset : offset + size])
            types |= {info & 0xFFFFFFFF for _, info, _ in entries}
    return machine, types


@pytest.mark.parametrize("optimize", [False, True])
@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_loader_knows_every_relocation(target, optimize):
    machine, used = relocations(compile_object(everything(target), target, optimize=optimize))
    known = dict(_core.relocation_types(machine))
    assert len(used) >= 3
    assert used <= set(known), f"unknown: {used - set(known)}"


@pytest.mark.slow
@pytest.mark.skipif(
    not (shutil.which("qemu-aarch64") and shutil.which("aarch64-linux-gnu-gcc")),
    reason="needs qemu-aarch64 and a cross compiler",
)
def test_neon_runs_in_an_emulator(tmp_path):
    (tmp_path / "kernel.o").write_bytes(compile_object(polynomial(NEON), NEON))
    (tmp_path / "main.c").write_text(
        """
        #include <stdint.h>
        typedef struct { void *const *buffers; const int64_t *integers; void *rest[3]; } call;
        int64_t polynomial(const call *);
        int main(void) {
          float x[67], y[67];
          for (int i = 0; i < 67; i++) x[i] = (float)i;
          void *buffers[] = {x, y};
          int64_t n = 67;
          call c = {buffers, &n};
          polynomial(&c);
          for (int i = 0; i < 67; i++) if (y[i] != 0.5f * i * i + 2) return 1 + i;
          return 0;
        }"""
    )
    build = ["aarch64-linux-gnu-gcc", "-static", "main.c", "kernel.o", "-o", "main"]
    subprocess.run(build, cwd=tmp_path, check=True)
    assert subprocess.run(["qemu-aarch64", "./main"], cwd=tmp_path, check=False).returncode == 0
