"""Inference beside a busy process: python benchmarks/neighbours.py [--models mlp64 resnet18 ...]

Each contender is measured on a quiet machine, and again while another process keeps one processor
busy. With two processors of which a half is gone, nobody can take less than 1.33 times as long, if
he used both of them before.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys

import models
import runner

_BUSY = "while True: pass"


@contextlib.contextmanager
def busy_neighbour():
    """Another process that computes without end."""
    process = subprocess.Popen([sys.executable, "-c", _BUSY])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def measure(contender: str, model: str) -> dict:
    """Seconds a call on a quiet machine and beside a busy process."""
    quiet = models.measure(contender, model)
    with busy_neighbour():
        busy = models.measure(contender, model)
    cases = {f"{title}, busy": found for title, found in busy["cases"].items()}
    return {"version": quiet["version"], "cases": quiet["cases"] | cases, "first": {}}


if __name__ == "__main__":
    runner.main(
        __file__, measure, contenders=tuple(models.CONTENDERS), threads=(2,),
        models=("mlp1", "mlp64", "lenet64", "resnet18", "encoder"), prepare=models.prepare,
    )  # fmt: skip
