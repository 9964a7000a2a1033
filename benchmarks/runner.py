"""Runs contenders in turn, each in a process of its own, and says what was measured.

A benchmark is a script with a function for the worker, `measure(contender) -> {case: Sample}`, and
calls `main(__file__, measure, ...)`. Rounds alternate between the contenders, so that all meet the
same machine, and with --turns so do moments within a round; the result is the median of the rounds,
and the spread is half the distance between the quartiles. Only the standard library is needed in a
worker, and Python >= 3.10.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib.util
import itertools
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence

import side_by_side

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
PEAK = "peak"  # a contender that does nothing but arithmetic: no rival, and its value is no value
# Interpreters of contenders; benchmarks/peers.sh makes them. Without a setting, ours is taken if it
# can import the package. The first word of a contender's name stands here: "torch script" runs
# where "torch" does.
_INTERPRETERS = {
    "torch": "HETEROSIS_TORCH_PYTHON",
    "mxnet": "HETEROSIS_MXNET_PYTHON",
    "jax": "HETEROSIS_JAX_PYTHON",
    "tensorflow": "HETEROSIS_TENSORFLOW_PYTHON",
    "onnxruntime": "HETEROSIS_ONNX_PYTHON",
    "openvino": "HETEROSIS_ONNX_PYTHON",
}
MARK = "RESULT "
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

    if side_by_side.wanted():
        return side_by_side.seconds_in_turns(batch)
    if batch(1) < _SMALLEST_BATCH:
        batch(3)
    count = 1
    while (taken := batch(count)) < _SMALLEST_BATCH:
        count = max(2 * count, int(count * _SMALLEST_BATCH / max(taken, 1e-9) / 2))
    return statistics.median(batch(count) / count for _ in range(_BATCHES))


def sample(title: str, version: str, start, wait, to_numpy) -> dict:
    """What a worker tells of a model that `start()` makes ready to be called: seconds a call, and
    until the first result, and a number that follows from the outputs."""
    began = time.perf_counter()
    call = start()
    outputs = to_numpy(call()).ravel().tolist()
    first = time.perf_counter() - began
    weighed = (abs(x) * (2 + math.cos(i)) for i, x in enumerate(outputs))
    value = math.fsum(weighed) / len(outputs)
    seconds = seconds_a_call(call, wait)
    return {"version": version, "cases": {title: (seconds, value)}, "first": {title: first}}


def _work(measure, contender: str, *model: str) -> None:
    found = measure(contender, *model)
    print(MARK + json.dumps(found), flush=True)


# -- in the parent --------------------------------------------------------------------------------


def interpreters() -> dict[str, str]:
    """The contenders at hand and the Python that runs each."""
    found = dict.fromkeys(("heterosis", "numpy", PEAK), sys.executable)
    for name, variable in _INTERPRETERS.items():
        if os.environ.get(variable):
            found[name] = os.environ[variable]
        elif importlib.util.find_spec(name):
            found[name] = sys.executable
    return found


def run_round(script: str, contender: str, python: str, threads: int, model: str = "") -> dict:
    """What one process of a contender measures."""
    return _run(contender, _command(script, contender, python, model), threads)


def _run(contender: str, command: list[str], threads: int) -> dict:
    done = subprocess.run(
        command, env=environment_of(threads), capture_output=True, text=True, check=False,
        preexec_fn=lambda: os.sched_setaffinity(0, _processors(threads)),
    )  # fmt: skip
    lines = [line for line in done.stdout.splitlines() if line.startswith(MARK)]
    if done.returncode or not lines:
        raise _failed(contender, command, done.stdout + done.stderr)
    return json.loads(lines[-1][len(MARK) :])


def _failed(contender: str, command: list[str], printed: str) -> Failed:
    return Failed(f"{contender} ({command[0]}) failed:\n{printed}")


def _command(script: str, contender: str, python: str, model: str) -> list[str]:
    """What starts a contender's worker."""
    command = [python, script, "--worker", contender]
    return command + ["--models", model] if model else command


def environment_of(threads: int) -> dict[str, str]:
    """The variables of a process in which every contender has so many threads."""
    return os.environ | dict.fromkeys(_THREADS, str(threads))


class Failed(Exception):
    """A contender's process ended without a result."""


def _processors(count: int) -> list[int]:
    """The only processors that are used: some contenders start more threads than they are told."""
    return sorted(os.sched_getaffinity(0))[:count]


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


def compare(
    script: str, threads: int, rounds: int, contenders: tuple[str, ...],
    models: Sequence[str] = ("",), turns: int = 0,
) -> dict:  # fmt: skip
    """Contenders in turn, `rounds` times: {"versions", "seconds": {case: {contender: [...]}}}.

    With `models`, each is a process of its own, and all contenders finish one before the next. With
    `turns`, those of a round live side by side, and each case is measured in so many turns of each.
    """
    result: dict = {"threads": threads, "versions": {}, "seconds": {}, "first": {}, "values": {}}
    found = interpreters()
    at_hand = [(name, found[word]) for name in contenders if (word := name.split()[0]) in found]
    left_out = result["left out"] = []
    run = functools.partial(_run_in_turns, turns) if turns else _run_one_by_one
    for model, i in itertools.product(models, range(rounds)):
        gone = {contender for of, contender, _ in left_out if of == model}
        commands = {
            contender: _command(script, contender, python, model)
            for contender, python in at_hand
            if contender not in gone
        }
        print(f"{model or 'round'} {i + 1} of {rounds}: {', '.join(commands)}", file=sys.stderr)
        for contender, found in run(commands, threads):
            if isinstance(found, Failed):
                print(found, file=sys.stderr)
                left_out.append([model, contender, str(found).rstrip().splitlines()[-1]])
            else:
                _add(result, contender, found)
    for case, contender, why in _wrong(result["values"]):
        del result["seconds"][case][contender]  # the time of a wrong result means nothing
        left_out.append([case, contender, why])
    return result


_Results = Iterator[tuple[str, "dict | Failed"]]


def _run_one_by_one(commands: dict[str, list[str]], threads: int) -> _Results:
    """Each worker's measurements, one after the other."""
    for contender, command in commands.items():
        try:
            yield contender, _run(contender, command, threads)
        except Failed as error:
            yield contender, error


def _run_in_turns(turns: int, commands: dict[str, list[str]], threads: int) -> _Results:
    """The measurements of workers that live side by side."""
    for contender, found in side_by_side.results(
        commands, environment_of(threads), _processors(threads), MARK, turns
    ):
        if isinstance(found, side_by_side.Ended):
            yield contender, _failed(contender, commands[contender], str(found))
        else:
            yield contender, json.loads(found)


def _add(result: dict, contender: str, measured: dict) -> None:
    result["versions"][contender] = measured["version"]
    for case, (seconds, value) in measured["cases"].items():
        result["seconds"].setdefault(case, {}).setdefault(contender, []).append(seconds)
        if value is not None:
            result["values"].setdefault(case, {})[contender] = value
    for case, seconds in measured.get("first", {}).items():
        result["first"].setdefault(case, {}).setdefault(contender, []).append(seconds)


def _wrong(values: dict[str, dict[str, float]]) -> Iterator[tuple[str, str, str]]:
    """Case and contender that do not compute what most do, and what they get."""
    for case, by_contender in values.items():
        expected = statistics.median_low(by_contender.values())
        for contender, value in by_contender.items():
            if not abs(value - expected) <= 1e-3 * max(abs(expected), 1e-3):
                yield case, contender, f"gets {value:g}, others {expected:g}"


def markdown(result: dict) -> str:
    """A table: medians with their spread, and how much faster we are than the best of the others.
    A single case has a line for each contender."""
    contenders = list(result["versions"])
    if len(result["seconds"]) == 1 and PEAK not in contenders:
        return _single(result)
    own = [name for name in contenders if name.startswith("heterosis")]
    others = [name for name in contenders if name not in (*own, PEAK)]
    heads = [f"{name} {result['versions'][name]}" for name in contenders] + ["ratio"]
    heads += ["of peak: we", "of peak: best other"] if PEAK in contenders else []
    lines = [
        f"Microseconds a call, {result['threads']} thread(s); ratio: the best of the others to us.",
        "",
        "| case | " + " | ".join(heads) + " |",
        "|---|" + "---:|" * len(heads),
    ]
    for case, rounds in result["seconds"].items():
        found = {name: summary(rounds[name]) for name in contenders if name in rounds}
        cells = [_cell(found[name]) if name in found else "" for name in contenders]
        best, ours = _fastest(found, others), _fastest(found, own)
        cells.append(f"{best / ours:.2f}" if best and ours else "")
        if PEAK in contenders:
            cells += [_percent(found, names) for names in (own, others)]
        lines.append(f"| {case} | " + " | ".join(cells) + " |")
    return "\n".join([*lines, *_left_out(result)])


def _single(result: dict) -> str:
    ((case, rounds),) = result["seconds"].items()
    found = {name: summary(rounds[name]) for name in result["versions"] if name in rounds}
    ours = _fastest(found, [name for name in found if name.startswith("heterosis")])
    lines = [
        f"{case}: microseconds a call, {result['threads']} thread(s), and as multiples of ours.",
        "",
        "| library | microseconds | times ours |\n|---|---:|---:|",
    ]
    for name, times in found.items():
        ratio = f"{times['median'] / ours:.2f}" if ours else ""
        lines.append(f"| {name} {result['versions'][name]} | {_cell(times)} | {ratio} |")
    return "\n".join([*lines, *_left_out(result)])


def _left_out(result: dict) -> list[str]:
    return [
        f"\n{case or 'All'}: {contender} is left out: {why}"
        for case, contender, why in result["left out"]
    ]


def _percent(found: dict[str, dict], names: list[str]) -> str:
    """How much of the peak the fastest of them reaches."""
    fastest = _fastest(found, names)
    return f"{100 * found[PEAK]['median'] / fastest:.0f}%" if fastest else ""


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


def first_calls(result: dict) -> str:
    """A table: seconds to the first result, with all caches empty (one round) and later."""
    contenders = [name for name in result["versions"] if name != PEAK]
    lines = [
        f"Milliseconds from the network to its first result, {result['threads']} thread(s):",
        "the first round / the median of later ones, which find what that left on the disk.",
        "",
        "| case | " + " | ".join(contenders) + " |",
        "|---|" + "---:|" * len(contenders),
    ]
    for case, rounds in result["first"].items():
        cells = (_first_cell(rounds[name]) if name in rounds else "" for name in contenders)
        lines.append(f"| {case} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _first_cell(rounds: list[float]) -> str:
    later = f" / {1e3 * statistics.median(rounds[1:]):,.0f}" if rounds[1:] else ""
    return f"{1e3 * rounds[0]:,.0f}{later}"


def main(
    script: str,
    measure,
    rounds: int = 5,
    threads: tuple[int, ...] = (1, 2),
    contenders: tuple[str, ...] = _CONTENDERS,
    models: tuple[str, ...] = (),
    prepare=None,
) -> None:
    """The command line of a benchmark that compares contenders.

    With `models`, it is `measure(contender, model)`; `prepare(models)` is a context that runs
    around it all.
    """
    given = _arguments(rounds, threads, contenders, models)
    if given.worker:
        _work(measure, given.worker, *given.models)
        return
    with prepare(given.models) if prepare else contextlib.nullcontext():
        _compare_all(script, given)


def _arguments(rounds, threads, contenders, models) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--threads", type=int, nargs="+", default=threads)
    parser.add_argument(
        "--turns", type=int, default=0, metavar="COUNT",
        help="contenders of a round live side by side, and compute in so many turns of 0.08 s",
    )  # fmt: skip
    only = "only these: " + ", ".join(contenders)
    parser.add_argument(
        "--contenders", nargs="+", default=contenders, metavar="NAME", choices=contenders, help=only
    )
    parser.add_argument("--json", help="file to write everything that was measured to")
    if models:
        parser.add_argument("--models", nargs="+", default=models, choices=models, metavar="NAME",
                            help="only these: " + ", ".join(models))  # fmt: skip
    else:
        parser.set_defaults(models=())
    return parser.parse_args()


def _stolen() -> tuple[int, int]:
    """Time that this machine's processors were given to others, and all time, in ticks."""
    with open("/proc/stat") as file:
        ticks = [int(word) for word in file.readline().split()[1:]]
    return ticks[7], sum(ticks[:8])


def _share_stolen(before: tuple[int, int]) -> str:
    """How much of the time since then was stolen."""
    stolen, passed = (now - then for now, then in zip(_stolen(), before))
    return f"{100 * stolen / max(passed, 1):.1f}%"


def _compare_all(script: str, given: argparse.Namespace) -> None:
    facts, results, before = machine(), [], _stolen()
    print(heading(), end="\n\n")
    for count in given.threads:
        models = given.models or ("",)
        results.append(compare(
            script, count, given.rounds, given.contenders, models, given.turns
        ))  # fmt: skip
        print(markdown(results[-1]), end="\n\n", flush=True)
        if results[-1]["first"]:
            print(first_calls(results[-1]), end="\n\n", flush=True)
    facts["stolen by neighbours"] = _share_stolen(before)
    print(f"Stolen by neighbours: {facts['stolen by neighbours']} of the time.")
    if given.json:
        with open(given.json, "w") as file:
            json.dump({"machine": facts, "results": results}, file, indent=1)
