"""What the machine can do at most: multiply-and-add in registers, on all threads at once."""

from __future__ import annotations

import ctypes
import threading

import runner

_REGISTERS = 12  # in flight: the instruction takes 4 cycles, and two start in each
_ROUNDS = 2_000_000


def _program(lanes: int) -> str:
    """LLVM IR of a loop over `_REGISTERS` multiply-adds that do not wait for each other."""
    vector, each = f"<{lanes} x float>", range(_REGISTERS)
    phis = [f"%x{i} = phi {vector} [%s{i}, %entry], [%y{i}, %loop]" for i in each]
    starts = [f"%s{i} = insertelement {vector} %v, float {i}.0, i32 0" for i in each]
    steps = [
        f"%y{i} = call {vector} @llvm.fma.v{lanes}f32({vector} %x{i}, {vector} %v, {vector} %v)"
        for i in each
    ]
    sums = [f"%z{i + 1} = fadd {vector} %z{i}, %y{i}" for i in each]
    return "\n".join([
        f"declare {vector} @llvm.fma.v{lanes}f32({vector}, {vector}, {vector})",
        "define void @work(i64 %count, float %half, ptr %out) {", "entry:",
        f"%one = insertelement {vector} undef, float %half, i32 0",
        f"%v = shufflevector {vector} %one, {vector} undef, <{lanes} x i32> zeroinitializer",
        *starts, "br label %loop", "loop:", "%n = phi i64 [%count, %entry], [%m, %loop]",
        *phis, *steps, "%m = sub i64 %n, 1", "%more = icmp sgt i64 %m, 0",
        "br i1 %more, label %loop, label %end", "end:", f"%z0 = fadd {vector} %v, %v",
        *sums, f"store {vector} %z{_REGISTERS}, ptr %out, align 4", "ret void", "}",
    ])  # fmt: skip


def _features():
    """What the compiler can use of the processor, by name."""
    from llvmlite import binding

    return binding.get_host_cpu_features()


def _compiled(lanes: int):
    """The loop, and what must stay alive for it."""
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    features = _features().flatten()
    machine = binding.Target.from_default_triple().create_target_machine(
        cpu=binding.get_host_cpu_name(), features=features + ",-prefer-256-bit", opt=2
    )
    engine = binding.create_mcjit_compiler(binding.parse_assembly(_program(lanes)), machine)
    engine.finalize_object()
    signature = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_float, ctypes.c_void_p)
    return signature(engine.get_function_address("work")), engine


def seconds_an_operation(threads: int) -> float:
    """Seconds for a floating-point operation, of this many threads together."""
    lanes = 16 if _features().get("avx512f") else 8
    work, engine = _compiled(lanes)

    def run():
        work(_ROUNDS, 0.5, ctypes.create_string_buffer(4 * lanes))

    def run_all():
        workers = [threading.Thread(target=run) for _ in range(threads - 1)]
        for worker in workers:
            worker.start()
        run()
        for worker in workers:
            worker.join()

    seconds = runner.seconds_a_call(run_all, lambda: None)
    del engine
    return seconds / (2 * lanes * _REGISTERS * _ROUNDS * threads)


if __name__ == "__main__":
    for count in (1, 2):
        print(f"{1e-9 / seconds_an_operation(count):.1f} GF/s, {count} thread(s)")
