"""Runs contenders in turn, each in a process of its own, and says what was measured.

A benchmark is a script with a function for the worker, `measure(contender) -> {case: Sample}`, and
calls `main(__file__, measure, ...)`. Rounds alternate between the contenders, so that all meet the
same machine; the result is the median of the rounds, and the spread is half the distance between
the quartiles. Only the standard library is needed in a worker, and Python >= 3.9.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time

# Environment variables that set the number of threads of some contender.
_THREADS = (
    "HETEROSIS_NUM_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "MXNET_CPU_WORKER_NTHREADS",
)
# Interpreters of contenders that cannot share ours; benchmarks/peers.sh makes them. The first word
# of a contender's name stands here: "torch script" runs where "torch" does.
_INTERPRETERS = {
    "torch": "HETEROSIS_TORCH_PYTHON",
    "mxnet": "HETEROSIS_MXNET_PYTHON",
    "jax": "HETEROSIS_JAX_PYTHON",
    "tensorflow": "HETEROSIS_TENSORFLOW_PYTHON",
    "onnxruntime": "HETEROSIS_ONNX_PYTHON",
    "openvino": "HETEROSIS_ONNX_PYTHON",
}
_MARK = "RESULT "
_SMALLEST_BATCH = 0.02  # seconds
_BATCHES = 5


# -- in a worker ----------------------------------------------------------------------------------


def seconds_a_call(call, wait) -> float:
    """Median time of a call in batches of many calls that end with one `wait`."""

    def batch(count):
        start = time.perf_counter()
        for _ in range(count):
            call()
        wait()
        return time.perf_counter() - start

    batch(3)
    count = 1
    while (taken := batch(count)) < _SMALLEST_BATCH:
        count = max(2 * count, int(count * _SMALLEST_BATCH / max(taken, 1e-9) / 2))
    return statistics.median(batch(count) / count for _ in range(_BATCHES))


def _work(measure, contender: str) -> None:
    found = measure(contender)
    print(_MARK + json.dumps(found), flush=True)


# -- in the parent --------------------------------------------------------------------------------


def interpreters() -> dict[str, str]:
    """The contenders at hand and the Python that runs each."""
    found = {"heterosis": sys.executable, "numpy": sys.executable}
    for name, variable in _INTERPRETERS.items():
        if os.environ.get(variable):
            found[name] = os.environ[variable]
    return found


def run_round(script: str, contender: str, python: str, threads: int) -> dict:
    """What one process of a contender measures."""
    environment = os.environ | dict.fromkeys(_THREADS, str(threads))
    command = [python, script, "--worker", contender]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False,
        preexec_fn=lambda: _stay_on(threads),
    )  # fmt: skip
    lines = [line for line in done.stdout.splitlines() if line.startswith(_MARK)]
    if done.returncode or not lines:
        raise SystemExit(f"{contender} ({python}) failed:\n{done.stdout}{done.stderr}")
    return json.loads(lines[-1][len(_MARK) :])


def _stay_on(count: int) -> None:
    """Use `count` processors only: some contenders start more threads than they are told to."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])


def machine() -> dict:
    """What the numbers depend on."""
    facts = {
        "system": platform.platform(),
        "python": platform.python_version(),
        "processors": len(os.sched_getaffinity(0)),
        "load": round(os.getloadavg()[0], 2),
        "date": time.strftime("%Y-%m-%d %H:%M %Z"),
    }
    with open("/proc/cpuinfo") as file:
        names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    with open("/proc/meminfo") as file:
        facts["memory"] = f"{int(file.readline().split()[1]) >> 20} GiB"
    return {"processor": names[0] if names else platform.machine(), **facts}


def summary(rounds: list[float]) -> dict:
    """Median and spread of a case's rounds, in seconds."""
    quartiles = statistics.quantiles(rounds, n=4) if len(rounds) > 1 else [rounds[0]] * 3
    return {"median": statistics.median(rounds), "spread": (quartiles[2] - quartiles[0]) / 2}


def compare(script: str, threads: int, rounds: int, contenders: tuple[str, ...]) -> dict:
    """Contenders at hand, `rounds` times in turn: {"versions", "seconds": {case: {contender: [...]}}}."""
    result: dict = {"threads": threads, "versions": {}, "seconds": {}, "values": {}}
    found = interpreters()
    at_hand = [(name, found[word]) for name in contenders if (word := name.split()[0]) in found]
    for i in range(rounds):
        for contender, python in at_hand:
            print(f"round {i + 1} of {rounds}: {contender}", file=sys.stderr)
            measured = run_round(script, contender, python, threads)
            result["versions"][contender] = measured["version"]
            for case, (seconds, value) in measured["cases"].items():
                result["seconds"].setdefault(case, {}).setdefault(contender, []).append(seconds)
                result["values"].setdefault(case, {})[contender] = value
    _check_values(result["values"])
    return result


def _check_values(values: dict[str, dict[str, float]]) -> None:
    """All contenders compute the same, or their times mean nothing."""
    for case, found in values.items():
        judge = next(name for name in ("numpy", *found) if name in found)
        expected = found[judge]
        for contender, value in found.items():
            if abs(value - expected) > 1e-3 * max(abs(expected), 1e-3):
                raise SystemExit(f"{case}: {contender} gets {value}, and {judge} {expected}.")


def markdown(result: dict) -> str:
    """A table: medians with their spread, and how much faster we are than the best of the others."""
    contenders = list(result["versions"])
    others = [name for name in contenders if not name.startswith("heterosis")]
    heads = [f"{name} {result['versions'][name]}" for name in contenders]
    lines = [
        f"Microseconds a call, {result['threads']} thread(s); ratio: the best of the others to us.",
        "",
        "| case | " + " | ".join(heads) + " | ratio |",
        "|---|" + "---:|" * (len(contenders) + 1),
    ]
    for case, rounds in result["seconds"].items():
        found = {name: summary(rounds[name]) for name in contenders if name in rounds}
        cells = [_cell(found[name]) if name in found else "" for name in contenders]
        best = _fastest(found, others)
        own = _fastest(found, [name for name in contenders if name not in others])
        ratio = f"{best / own:.2f}" if best and own else ""
        lines.append(f"| {case} | " + " | ".join(cells) + f" | {ratio} |")
    return "\n".join(lines)


def _fastest(found: dict[str, dict], names: list[str]) -> float | None:
    return min((found[name]["median"] for name in names if name in found), default=None)


def _cell(found: dict) -> str:
    micro = found["median"] * 1e6
    digits = 3 if micro < 10 else 1 if micro < 1000 else 0
    return f"{micro:,.{digits}f} ± {100 * found['spread'] / found['median']:.0f}%"


def heading() -> str:
    """The machine, in a line."""
    facts = machine()
    return ", ".join(f"{key}: {value}" for key, value in facts.items())


_CONTENDERS = ("heterosis", "numpy", *_INTERPRETERS)


def main(
    script: str,
    measure,
    rounds: int = 5,
    threads: tuple[int, ...] = (1, 2),
    contenders: tuple[str, ...] = _CONTENDERS,
) -> None:
    """The command line of a benchmark that compares contenders."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--threads", type=int, nargs="+", default=threads)
    parser.add_argument("--json", help="file to write everything that was measured to")
    given = parser.parse_args()
    if given.worker:
        _work(measure, given.worker)
        return
    facts, results = machine(), []
    print(heading(), end="\n\n")
    for count in given.threads:
        results.append(compare(script, count, given.rounds, contenders))
        print(markdown(results[-1]), end="\n\n", flush=True)
    if given.json:
        with open(given.json, "w") as file:
            json.dump({"machine": facts, "results": results}, file, indent=1)
