"""A network 512-256-128-2 called from C: python benchmarks/from_c.py

As an exported library and in ONNX Runtime, both through C, beside what Python calls: the hybridized
network, ONNX Runtime, and TorchScript, which needs all of PyTorch wherever it is called from. One
thread; the same weights, and the same outputs. Per contender: a call, the first one with all that
opens what it runs, the memory of the process after it, and what has to be on the disk.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from glob import glob
from pathlib import Path

import mlp
import runner

_HERE = Path(__file__).resolve().parent
_FOLDER = "HETEROSIS_BENCHMARK_FOLDER"  # where the parent has put what workers need


def _place(name: str) -> Path:
    return Path(os.environ[_FOLDER]) / name


def built(name: str, folder: Path) -> Path:
    """A program in C of this folder, compiled; `heterosis.h` lies beside what was exported."""
    options = ["-O2", "-Wall", "-Wextra", "-Werror", f"-I{folder}", "-o", folder / name]
    subprocess.run(["cc", *options, _HERE / f"{name}.c", "-ldl"], check=True)
    return folder / name


def called(*words) -> dict:
    """What a program in C measures."""
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{words[0]}: {done.stderr}")
    return json.loads(done.stdout)


def _value() -> float:
    """A number for what a program in C has computed."""
    one, two = struct.unpack("<2f", _place("outputs").read_bytes())
    return one + 2 * two


def _resident_kilobytes() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


# Every function returns what was measured, with the bytes on disk and the version.


def library(name, *options):
    import heterosis

    path = _place(f"lib{name}.so")
    arrays = _place("inputs"), _place("outputs")
    found = called(_place("call_library"), path, *arrays, 1, *options) | {"value": _value()}
    files = (path, path.with_suffix(".weights"))
    found["disk"] = sum(file.stat().st_size for file in files if file.exists())
    return found | {"version": heterosis.__version__}


def onnxruntime():
    import onnxruntime as runtime

    (shared,) = glob(os.path.join(os.path.dirname(runtime.__file__), "capi", "libonnxruntime.so*"))
    model = _place("mlp.onnx")
    model.write_bytes(mlp.onnx_model())
    arrays = _place("inputs"), _place("outputs")
    found = called(_place("call_onnxruntime"), shared, model, *arrays, mlp.output_name())
    found["value"] = _value()
    found["disk"] = model.stat().st_size + os.path.getsize(shared)
    return found | {"version": runtime.__version__}


def from_python(contender):
    begin = time.perf_counter()
    version, call, wait, to_numpy = mlp.CONTENDERS[contender]()
    value = to_numpy(call()).astype("float64")[0] @ [1.0, 2.0]
    first, memory = time.perf_counter() - begin, _resident_kilobytes()
    return {
        "version": version, "seconds": runner.seconds_a_call(call, wait), "value": float(value),
        "first": first, "kilobytes": memory,
    }  # fmt: skip


CONTENDERS = {
    "heterosis, C": functools.partial(library, "my_mlp"),
    "heterosis, C, checked first": functools.partial(library, "my_mlp", "checked"),
    "heterosis, C, parameters in a file": functools.partial(library, "apart"),
    "onnxruntime, C": onnxruntime,
    "heterosis, Python": functools.partial(from_python, "heterosis hybrid"),
    "onnxruntime, Python": functools.partial(from_python, "onnxruntime"),
    "torch, TorchScript, Python": functools.partial(from_python, "torch script"),
}


def _prepare(folder: Path) -> None:
    """The libraries, the input and the programs in C."""
    import heterosis
    from heterosis import np
    from heterosis.gluon import nn

    net, x = mlp.perceptron(nn, np.array), np.array(mlp.row())
    heterosis.export(net, folder / "my_mlp", x)
    heterosis.export(net, folder / "apart", x, weights="file")
    (folder / "inputs").write_bytes(mlp.row().tobytes())
    for name in ("call_library", "call_onnxruntime"):
        built(name, folder)


def _rounds(count: int, contenders: list[str]) -> dict[str, list[dict]]:
    interpreters, found = runner.interpreters(), {}
    for i in range(count):
        for contender in contenders:
            python = interpreters.get(contender.split(",")[0])
            if python is None or (i and contender not in found):
                continue
            print(f"round {i + 1} of {count}: {contender}", file=sys.stderr)
            try:
                measured = runner.run_round(__file__, contender, python, threads=1)
            except runner.Failed as error:
                print(f"{contender} is left out: {error}", file=sys.stderr)
                continue
            found.setdefault(contender, []).append(measured)
    return found


def _row(contender: str, rounds: list[dict], fastest: float) -> list[str]:
    def median(fact):
        return statistics.median(one[fact] for one in rounds)

    spread = runner.summary([one["seconds"] for one in rounds])["spread"]
    took = median("seconds")
    call = f"{took * 1e6:.2f} us ± {100 * spread / took:.0f}%"
    disk = f"{median('disk') / 1e6:.2f} MB" if "disk" in rounds[0] else ""
    return [
        f"{contender} ({rounds[0]['version']})", call, f"{took / fastest:.2f}",
        f"{median('first') * 1e3:.2f} ms", f"{median('kilobytes') / 1e3:.1f} MB", disk,
    ]  # fmt: skip


def _table(found: dict[str, list[dict]]) -> str:
    values = {name: rounds[0]["value"] for name, rounds in found.items()}
    expected = statistics.median_low(values.values())
    wrong = [name for name, v in values.items() if abs(v - expected) > 1e-3 * max(abs(expected), 1)]
    if wrong:
        raise SystemExit(f"{', '.join(wrong)}: other outputs than the rest: {values}")
    fastest = min(statistics.median(one["seconds"] for one in rounds) for rounds in found.values())
    heads = ["", "a call", "times the fastest", "first call, opening included", "resident memory",
             "on disk"]  # fmt: skip
    lines = [heads, ["---"] * len(heads)]
    lines += [_row(name, rounds, fastest) for name, rounds in found.items()]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--contenders", nargs="+", default=list(CONTENDERS), choices=CONTENDERS)
    given = parser.parse_args()
    if given.worker:
        print(runner.MARK + json.dumps(CONTENDERS[given.worker]()), flush=True)
        return
    print(runner.heading(), end="\n\n")
    with tempfile.TemporaryDirectory() as folder:
        os.environ[_FOLDER] = folder
        _prepare(Path(folder))
        print(_table(_rounds(given.rounds, given.contenders)))


if __name__ == "__main__":
    main()
