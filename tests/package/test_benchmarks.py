"""The runner of the benchmarks: who is compared, and who is left out."""

import itertools
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SCRIPT = f"""
import sys
sys.path.insert(0, {str(BENCHMARKS)!r})
import runner

VALUES = {{"heterosis": 2.0, "numpy": 2.0001, "numpy wrong": 2.1, "numpy failing": 1 / 0.5}}

def measure(contender, model):
    if contender == runner.PEAK:
        return {{"version": "", "cases": {{model: (1e-3, None)}}}}
    assert contender != "numpy failing", "out of order"
    seconds = 4e-3 if contender == "heterosis" else 2e-3
    case = {{model: (seconds, VALUES[contender])}}
    return {{"version": "1", "cases": case, "first": {{model: 0.25}}}}

if __name__ == "__main__":
    contenders = (*VALUES, runner.PEAK)
    runner.main(__file__, measure, threads=(1,), contenders=contenders, models=("a", "b"))
"""


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("benchmark")
    (folder / "script.py").write_text(SCRIPT)
    command = [
        sys.executable,
        "script.py",
        "--rounds",
        "2",
        "--models",
        "b",
        "--json",
        "models.json",
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    (result,) = json.loads((folder / "models.json").read_text())["results"]
    return done.stdout, result


@pytest.mark.lengthy
def test_results_go_into_documents(tmp_path):
    seconds = {"a": {"heterosis": [1e-3], "numpy": [2e-3]}, "b": {"heterosis": [4e-3]}}
    result = {
        "threads": 1, "versions": {"heterosis": "1", "numpy": "2"}, "seconds": seconds,
        "first": {}, "left out": [],
    }  # fmt: skip
    single = result | {"seconds": {"a": seconds["a"]}}
    for name, one in {"models": result, "mlp": single}.items():
        content = {"machine": {"processor": "P"}, "results": [one]}
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    document = tmp_path / "document.md"
    document.write_text("head\n<!-- results: begin -->old<!-- results: end -->\ntail\n")
    command = [sys.executable, str(BENCHMARKS / "report.py"), "models.json", "mlp.json"]
    subprocess.run([*command, "--into", "document.md"], cwd=tmp_path, check=True)
    text = document.read_text()
    assert text.startswith("head\n<!--") and text.endswith("-->\ntail\n") and "old" not in text
    assert "on processor: P." in text and "| 2.00 |" in text
    assert "| numpy 2 | 2,000 ± 0% | 2.00 |" in text  # contenders are rows where there is one case
    for name in ("models", "mlp"):
        assert f"(static/{name}.png)" in text
        assert (tmp_path / "static" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    subprocess.run([*command[:2], "mlp.json", "--into", "document.md"], cwd=tmp_path, check=True)
    assert document.read_text() == text  # what another benchmark had found stays
    other = json.loads((tmp_path / "mlp.json").read_text()) | {"machine": {"processor": "Q"}}
    (tmp_path / "mlp.json").write_text(json.dumps(other))
    subprocess.run([*command[:2], "mlp.json", "--into", "document.md"], cwd=tmp_path, check=True)
    assert document.read_text() == text.replace(
        "mlp.py` on processor: P", "mlp.py` on processor: Q"
    )
    text = document.read_text()
    (tmp_path / "others.json").write_text("{}")
    refused = [*command[:2], "others.json", "--into", "document.md"]
    done = subprocess.run(refused, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode and "others.json is of no benchmark with tables" in done.stderr
    document.write_text(f"{text}<!-- results AVX-512: begin --><!-- results AVX-512: end -->\n")
    more = ["--into", "document.md", "--processor", "AVX-512"]
    subprocess.run([*command, *more], cwd=tmp_path, check=True)
    assert document.read_text().startswith(text)
    assert "(static/mlp_avx512.png)" in document.read_text().removeprefix(text)


def test_models_are_selected_and_each_round_counts(report):
    assert report[1]["seconds"] == {
        "b": {"heterosis": [4e-3, 4e-3], "numpy": [2e-3, 2e-3], "peak": [1e-3, 1e-3]}
    }


def test_the_table_tells_the_ratio_and_how_far_from_the_peak(report):
    (row,) = (line for line in report[0].splitlines() if line.startswith("| b |") and "±" in line)
    assert row.endswith("| 0.50 | 25% | 50% |")
    assert "| b | 250 / 250 | 250 / 250 |" in report[0]


def test_contenders_that_fail_or_compute_something_else_are_left_out(report):
    assert "b: numpy failing is left out: AssertionError: out of order" in report[0]
    assert "b: numpy wrong is left out: gets 2.1, others 2.0001" in report[0]


IN_TURNS = f"""
import itertools, os, sys, threading, time
sys.path.insert(0, {str(BENCHMARKS)!r})
import runner

def say(name):
    with open("said", "a") as file:
        file.write(name + "\\n")

def spin(name):
    while True:
        say(name)
        time.sleep(1e-3)

def measure(contender):
    threading.Thread(target=spin, args=[contender], daemon=True).start()
    time.sleep(0.05)
    calls = itertools.count()

    def call():
        time.sleep(0.04)
        if contender == "numpy failing" and next(calls) > 3:
            raise RuntimeError("tired")

    return {{"version": "1", "cases": {{"a": (runner.seconds_a_call(call, lambda: None), 1.0)}}}}

if __name__ == "__main__":
    runner.main(__file__, measure, threads=(1,), contenders=("heterosis", "numpy", "numpy failing"))
"""


def test_those_who_wait_for_their_turn_stand_still(tmp_path):
    (tmp_path / "script.py").write_text(IN_TURNS)
    command = [sys.executable, "script.py", "--rounds", "1", "--turns", "3", "--json", "a.json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    (result,) = json.loads((tmp_path / "a.json").read_text())["results"]
    assert set(result["seconds"]["a"]) == {"heterosis", "numpy"}
    assert all(0.04 <= taken < 1 for (taken,) in result["seconds"]["a"].values())
    assert "numpy failing is left out: RuntimeError: tired" in done.stdout
    said = (tmp_path / "said").read_text().split("\n")[:-1]
    turns = [name for name, _ in itertools.groupby(said) if name != "numpy failing"]
    turns = [name for name, _ in itertools.groupby(turns)]
    # They prepare themselves, take three turns, and may say a word when it is enough.
    assert turns[:8] == ["heterosis", "numpy"] * 4 and len(turns) <= 10


def test_what_compiling_costs_is_measured():
    """It looks at what is planned, which is no public interface."""
    command = [sys.executable, str(BENCHMARKS / "compile_model.py"), "MLP 1"]
    found = json.loads(subprocess.check_output(command))
    assert found["kernels"] == 3 and found["result"] >= found["wall"] > 0


ASKING = """
#include <cpuid.h>
unsigned answer(unsigned leaf, unsigned which) {
  unsigned found[4];
  __cpuid_count(leaf, 0, found[0], found[1], found[2], found[3]);
  return found[which];
}
unsigned number(void) { return 0xa20f; } /* the bytes of cpuid, and none */
void fail(void) { __builtin_trap(); }
"""
ASKED = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
if len(sys.argv) > 2:
    library.fail()
print([library.answer(leaf, which) for leaf in (1, 7) for which in range(4)], library.number())
"""
WIDE = 1 << 16 | 1 << 17 | 1 << 21 | 1 << 28 | 1 << 30 | 1 << 31  # of the second word for leaf 7


@pytest.mark.skipif(platform.machine() != "x86_64", reason="no processor with AVX-512")
@pytest.mark.skipif(not all(map(shutil.which, ("gcc", "objdump"))), reason="no gcc, or no objdump")
def test_libraries_can_be_kept_from_wide_vectors(tmp_path):
    environment = tmp_path / "environment"
    environment.mkdir()
    (tmp_path / "asking.c").write_text(ASKING)
    library = environment / "asking.so"
    make = ["gcc", "-O1", "-shared", "-fPIC", tmp_path / "asking.c", "-o", library]
    subprocess.run(make, check=True)

    def asked(*more, **settings):
        command = [sys.executable, "-c", ASKED, library, *more]
        found = {"env": os.environ | settings, "capture_output": True, "text": True}
        return subprocess.run(command, check=False, **found)

    seen, number = asked().stdout.rsplit(" ", 1)
    tool = [sys.executable, BENCHMARKS / "without_avx512.py", tmp_path / "folder", environment]
    printed = subprocess.check_output(tool, text=True).splitlines()
    settings = dict(line.removeprefix("export ").split("=", 1) for line in printed)
    hidden, same = asked(**settings).stdout.rsplit(" ", 1)
    seen, hidden = json.loads(seen), json.loads(hidden)
    assert same == number == f"{0xA20F}\n"
    assert [seen[i] for i in (0, 2, 3, 4)] == [hidden[i] for i in (0, 2, 3, 4)]
    assert hidden[5] & 0xFFFFFFFF == seen[5] & ~WIDE & 0xFFFFFFFF
    assert asked().returncode == -signal.SIGILL  # nobody answers
    assert asked("fail", **settings).returncode == -signal.SIGILL
