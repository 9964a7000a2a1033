"""What `tools/wheels.py` makes, and how it finds the interpreters to make it for."""

import importlib.util
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from heterosis.backends.native.compile.compiler import family

ROOT = Path(__file__).parents[2]


def _tool(name: str):
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # where dataclasses look for it
    spec.loader.exec_module(module)
    return module


wheels, installed = _tool("wheels"), _tool("installed")


@pytest.mark.slow
def test_a_wheel_that_needs_no_compiler(tmp_path):
    """Built, repaired, installed without a compiler and tried there, for this interpreter."""
    command = [sys.executable, ROOT / "tools" / "wheels.py", "--jobs", "1"]
    command += ["--python", sys.executable, "--output", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = tmp_path.iterdir()
    assert re.fullmatch(r"heterosis-[\d.]+-cp3\d+t?-cp3\d+t?-manylinux_\w+\.whl", wheel.name)
    assert f"| {wheel.name} |" in done.stdout
    files = {file.filename: file for file in zipfile.ZipFile(wheel).infolist()}
    names = {name for name in files if not name.endswith("/")}
    assert {name.split("/")[0].split("-")[0] for name in names} == {"heterosis"}
    codes = {f"heterosis/machine_code/{target.name}.objects" for target in family()}
    assert codes == {name for name in names if name.startswith("heterosis/machine_code/")}
    assert wheel.stat().st_size < 20e6
    (core,) = (name for name in names if name.endswith(".so"))
    core = Path(zipfile.ZipFile(wheel).extract(core, tmp_path))
    assert b"libstdc++.so" not in core.read_bytes()
    # A library that found these there would use them beside its own, and crash.
    assert "std::locale::" not in _exported(core)


def _exported(library: Path) -> str:
    command = ["nm", "--dynamic", "--defined-only", "--demangle", library]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(
    "answer",
    [
        "exit 1",
        "echo nothing",
        """echo '["PyPy", [3, 11, 9], ""]'""",
        """echo '["CPython", [3, 9, 1], ""]'""",
    ],
)
def test_what_is_no_interpreter_for_us_is_passed_over(tmp_path, answer):
    path = tmp_path / "python3"
    path.write_text(f"#!/bin/sh\n{answer}\n")
    path.chmod(0o755)
    assert wheels.asked(path) is None
    assert wheels.asked(tmp_path / "nowhere") is None


def test_the_latest_of_each_version_is_chosen():
    one = wheels.asked(Path(sys.executable))
    assert one.tag.startswith("cp3") and one.path == sys.executable
    versions = [
        ((3, 12, 1), ""),
        ((3, 12, 4), ""),
        ((3, 9, 30), ""),
        ((3, 13, 0), "t"),
        ((3, 13, 0), ""),
    ]
    given = [wheels.Interpreter(*version, f"/{i}") for i, version in enumerate(versions)]
    found = [(str(one), one.tag) for one in wheels.chosen([None, *given])]
    assert found == [
        ("3.9.30", "cp39"), ("3.12.4", "cp312"), ("3.13.0", "cp313"), ("3.13.0t", "cp313t"),
    ]  # fmt: skip


def test_a_command_that_fails_says_what_it_said():
    with pytest.raises(wheels.Failed, match=r"(?s)-c .*\nhere.*why"):
        wheels._run([sys.executable, "-c", "import sys; print('here'); sys.exit('why')"])


def test_a_copy_has_the_sources_and_nothing_built(tmp_path):
    wheels.copy(tmp_path)
    names = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert {"pyproject.toml", "src/heterosis/_core.pyi", "core/python/module.cpp"} <= names
    assert not [name for name in names if name.endswith((".so", ".pyc"))]


def test_a_copy_for_the_tests_goes_into_a_new_folder(tmp_path):
    tree = wheels.copy(tmp_path / "tree", (*wheels._SOURCES, *wheels._TESTS))
    names = {path.name for path in tree.iterdir()}
    assert names == set(wheels._SOURCES) | set(wheels._TESTS)
    assert (tree / "tests" / "conftest.py").is_file()


def test_what_an_extra_requires_with_our_own_in_it(tmp_path):
    (tmp_path / "pyproject.toml").write_text(
        """dependencies = [
  "numpy>=2.0",
]
image = ["pillow"]
xla = ["jax; python_version >= '3.11'"]
test = [
  "heterosis[image,xla]", "pyright[nodejs]>=1.1",
  # A remark.
  "pip>=24.1",  # for the wheels
]
"""
    )
    assert list(wheels.listed(tmp_path, "dependencies")) == ["numpy>=2.0"]
    assert list(wheels.listed(tmp_path, "test")) == [
        "pillow", "jax; python_version >= '3.11'", "pyright[nodejs]>=1.1", "pip>=24.1",
    ]  # fmt: skip


def test_what_has_no_wheel_is_left_out(tmp_path, monkeypatch):
    installed = []

    def install(environment, what):
        lines = [line for line in what if not line.startswith("--")]
        if {"jax>=0.8", "scipy"} & set(lines):
            raise wheels.Failed("no matching distribution")
        installed.extend(lines)

    monkeypatch.setattr(wheels, "_install", install)
    lines = ["pillow", "jax>=0.8", "mypy", "pytest>=8", "scipy"]
    assert wheels.left_out(tmp_path, lines, tmp_path) == ["jax", "scipy"]
    assert installed == ["pillow", "mypy", "pytest>=8"]


FAILURES = "= FAILURES =\n_ test_one _\nE 3 failed\n"
WARNINGS = "= warnings summary =\n= short test summary info =\nFAILED test_one\n"


@pytest.mark.parametrize(
    "said, shown, good",
    [
        ("....\n12 passed, 4 deselected, 2 warnings in 0.12s", "12 passed", True),
        (f"{FAILURES}{WARNINGS}1 failed, 2 passed in 61s (0:01:01)", "1 failed, 2 passed", False),
        (
            f"= ERRORS =\n_ error _\n{WARNINGS}3 skipped, 1 error in 0.12s",
            "3 skipped, 1 error",
            False,
        ),
        ("no tests ran in 0.01s", "", False),
    ],
)
def test_what_pytest_said_is_counted(said, shown, good):
    quick = wheels.quick_of(said, [])
    assert (str(quick), quick.good) == (shown, good)
    assert quick.failures == ("" if "= warnings" not in said else said.partition("= warnings")[0])
    assert str(wheels.quick_of(said, ["jax", "scipy"])) == f"{shown}, without jax, scipy"


def test_quick_tests_have_a_column_of_their_own():
    facts = dict.fromkeys(("installed", "environment", "import", "compiling", "threads"), 1.0)
    facts |= {"brought": 2, "compiled": 3}
    quick = wheels.Quick({"passed": 5}, ["jax"], "")
    given = [wheels.Row("3.12.1", "a.whl", 1.0, 2.0, facts, one) for one in (quick, None)]
    head, line, *rows = (text.split("|")[1:-1] for text in wheels.table(given))
    assert [len(head)] * 3 == [len(line), *map(len, rows)]
    assert [row[-1].strip() for row in rows] == ["5 passed, without jax", "not asked for"]


def test_the_programs_of_a_page():
    page = "```python\na = 1\n```\ntext\n```\nno = program\n```\n```python\nb = a\n```\n"
    assert installed.programs(page) == "a = 1\n\nb = a\n"
    assert "hybridize" in installed.programs((ROOT / "README.md").read_text())
    with pytest.raises(AssertionError):
        installed.programs("nothing")


@pytest.mark.parametrize("system", ["Windows", "Darwin"])
def test_other_systems_are_refused_by_name(tmp_path, system):
    command = ["cmake", "-S", ROOT, "-B", tmp_path, f"-DCMAKE_SYSTEM_NAME={system}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"Heterosis runs on Linux alone, and this is {system}" in " ".join(done.stderr.split())
