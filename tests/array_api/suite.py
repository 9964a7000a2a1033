"""Runs the array API standard's own suite on `heterosis.array_api`, in a process of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import heterosis
from tests.array_api.exclusions import EXCLUSIONS

ROOT = Path(__file__).parents[2]
_PACKAGES = Path(heterosis.__file__).parents[1]  # where this process has the package from
VARIABLE = "HETEROSIS_ARRAY_API_TESTS"
# The suite leaves these out itself where the namespace lacks them, but for complex numbers.
ABSENT = ("complex64", "complex128")


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
        "PYTHONPATH": os.pathsep.join(map(str, (ROOT, _PACKAGES, folder()))),
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


def outcomes(results: Path) -> dict[str, Counter[str]]:
    """How many tests of each file passed, failed, were expected to, and were left out."""
    counts: dict[str, Counter[str]] = {}
    for test in _tests(results):
        name = test["nodeid"].split("::")[0].removeprefix("array_api_tests/")
        counts.setdefault(name, Counter())[test["outcome"]] += 1
    return counts


def reasons(results: Path) -> Counter[str]:
    """Why tests were expected to fail or left out, and how many for each reason."""
    return Counter(
        f"{test['outcome']}: {_reason(test)}"
        for test in _tests(results)
        if test["outcome"] in ("xfailed", "skipped")
    )


def _tests(results: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(results.read_text())["tests"]
    return found


def _reason(test: dict[str, Any]) -> str:
    if test["outcome"] == "xfailed":
        return next(why for row, why in EXCLUSIONS.items() if re.search(row, test["nodeid"]))
    told = test.get("call", test["setup"]).get("longrepr", "")
    return re.sub(r".*Skipped: |'\)$|\n.*", "", told, flags=re.DOTALL)
