"""Runs the array API standard's own suite on `heterosis.array_api`, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
VARIABLE = "HETEROSIS_ARRAY_API_TESTS"
# The suite leaves these out itself where the namespace lacks them, but for complex numbers.
ABSENT = ("int16", "uint16", "uint32", "uint64", "complex64", "complex128")


def folder() -> Path:
    """Where the suite is: as the environment says, or beside the repository."""
    return Path(os.environ.get(VARIABLE) or ROOT.parent / "shared" / "array-api-tests")


def files() -> list[str]:
    """The names of the suite's files; none where it is not there."""
    return sorted(path.stem for path in (folder() / "array_api_tests").glob("test_*.py"))


def run(arguments: list[str], examples: int, results: Path) -> tuple[int, str]:
    """Pytest's status and what it wrote; how each test came out lies in `results` then."""
    environment = {
        **os.environ,
        "ARRAY_API_TESTS_MODULE": "heterosis.array_api",
        "ARRAY_API_TESTS_VERSION": "2024.12",
        "ARRAY_API_TESTS_SKIP_DTYPES": ",".join(ABSENT),
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src"), str(folder())]),
        "HYPOTHESIS_STORAGE_DIRECTORY": str(results.parent / "hypothesis"),
    }
    command = [sys.executable, "-m", "pytest", "-p", "tests.array_api.plugin", "-q", "--no-header"]
    command += ["-p", "no:cacheprovider", "--disable-deadline"]
    command += ["--max-examples", str(examples), "--derandomize", "--json-report"]
    command += ["--json-report-file", str(results), *arguments]
    found = subprocess.run(
        command, cwd=folder(), env=environment, capture_output=True, text=True, check=False
    )
    return found.returncode, found.stdout + found.stderr


def outcomes(results: Path) -> dict[str, Counter]:
    """How many tests of each file passed, failed, were expected to, and were left out."""
    counts: dict[str, Counter] = {}
    for test in json.loads(results.read_text())["tests"]:
        name = test["nodeid"].split("::")[0].removeprefix("array_api_tests/")
        counts.setdefault(name, Counter())[test["outcome"]] += 1
    return counts
