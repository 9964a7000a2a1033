"""The examples run, in quick mode, and reach what they ask for; the report tells when they miss."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
SCRIPTS = sorted(p.name for p in EXAMPLES.glob("*.py") if p.name != "shared.py")
PLAIN = {"linear_regression.py", "perceptron.py"}  # a few lines, without options


@pytest.mark.parametrize(
    "script", [pytest.param(s, marks=[pytest.mark.lengthy] * (s not in PLAIN)) for s in SCRIPTS]
)
def test_runs_and_reaches_what_it_asks_for(script):
    options = [] if script in PLAIN else ["--quick"]
    command = [sys.executable, str(EXAMPLES / script), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert script in PLAIN or "required: at " in done.stdout


@pytest.fixture
def shared(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    yield __import__("shared")
    del sys.modules["shared"]


def test_a_missed_aim_is_a_failure(shared):
    report = shared.Report("title", None)
    report.epoch(accuracy=0.5, loss=2.0)
    report.finish("accuracy", 0.5)
    report.finish("loss", 2.0, most=True)
    with pytest.raises(SystemExit, match="missed"):
        report.finish("accuracy", 0.6)
    with pytest.raises(SystemExit, match="missed"):
        report.finish("loss", 1.9, most=True)


def test_curves_become_a_picture(shared, tmp_path):
    pytest.importorskip("matplotlib").use("Agg")
    report = shared.Report("title", str(tmp_path / "curve.png"))
    report.epoch(accuracy=0.5)
    report.finish("accuracy", 0.5)
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")
