"""Runs exported models in the languages that this machine has; `bash frontends/check.sh`.

Every language has a program that runs a library on arrays in files, and says how many microseconds
a call takes.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import heterosis
from heterosis import np, npx
from tests.frontends import FRONTENDS
from tests.frontends.models import (
    INTEGERS,
    convolution_net,
    mlp,
    quotients,
    random,
    recurrent_net,
    until_small,
    without_elements,
)

# What makes each, its inputs, and how it is exported if need be: `at`, for inputs of other sizes,
# which are then given to every call.
MODELS: dict[str, tuple] = {
    "MLP": (mlp, [random(1, 512)]),
    "threads and file": (mlp, [random(64, 512)], {"threads": 2, "weights": "file"}),
    "convolution net": (convolution_net, [random(2, 1, 28, 28)]),
    "LSTM": (recurrent_net, [random(7, 3, 8)]),
    "loop": (lambda: until_small, [random(5)]),
    "integers": (lambda: quotients, INTEGERS),
    "no elements": (lambda: without_elements, [np.zeros((0, 3))]),
    "sizes": (mlp, [random(37, 512)], {"dynamic": {"x": (0,)}, "at": [random(5, 512)]}, [37]),
    "lengths": (
        recurrent_net, [random(19, 2, 8)],
        {"dynamic": {"inputs": (0, 1)}, "at": [random(7, 3, 8)]}, [19, 2],
    ),
}  # fmt: skip
HEADER = FRONTENDS.parent / "src" / "heterosis" / "backends"


@dataclass(frozen=True)
class Language:
    """How a front end is built and run, in its folder; `probe` succeeds where all is installed.

    In commands, `@` is a folder for what is built.
    """

    name: str
    folder: str
    probe: Sequence[str]
    run: Sequence[str]
    build: Sequence[str] = ()

    def missing(self) -> str:
        """Why the language cannot be checked here: nothing if it can."""
        if not shutil.which(self.probe[0]):
            return f"there is no {self.probe[0]}"
        fails = self._tried(self.probe).returncode
        return f"{' '.join(self.probe)} fails" if fails else ""

    def made(self, folder: Path) -> None:
        """Compile what has to be."""
        if self.build:
            self._do(self.build, folder)

    def microseconds(
        self, folder: Path, library: str, arrays: Path, calls: int, sizes: Sequence[int] = ()
    ) -> float:
        """Run a library on the inputs in `arrays`, where the outputs go to."""
        words = [library, str(arrays), str(calls), *map(str, sizes)]
        return float(self._do([*self.run, *words], folder))

    def _do(self, command: Sequence[str], folder: Path) -> str:
        words = [word.replace("@", str(folder)) for word in command]
        done = self._tried(words)
        if done.returncode:
            raise RuntimeError(f"{' '.join(words)}\n{done.stdout}{done.stderr}")
        return done.stdout

    def _tried(self, words: Sequence[str]) -> subprocess.CompletedProcess:
        return subprocess.run(
            words, cwd=FRONTENDS / self.folder, capture_output=True, text=True, check=False
        )


_JNA = "/usr/share/java/jna.jar"  # where Debian has it
_STRICT = ("-O2", "-Wall", "-Wextra", "-Werror", f"-I{HEADER}")
LANGUAGES = {
    language.name: language
    for language in (
        Language("C", "c", ["cc", "--version"], ["@/run_c"],
                 ["cc", "-std=c11", *_STRICT, "run_files.c", "-ldl", "-o", "@/run_c"]),
        Language("C++", "cpp", ["c++", "--version"], ["@/run_cpp"],
                 ["c++", "-std=c++20", *_STRICT, "run_files.cpp", "-ldl", "-o", "@/run_cpp"]),
        Language("Python", "python", [sys.executable, "-c", "import numpy"],
                 [sys.executable, "run_files.py"]),
        Language("JavaScript", "javascript",
                 ["node", "--input-type=module", "-e", "import './heterosis_library.js'"],
                 ["node", "run_files.js"]),
        Language("Java", "java",
                 ["sh", "-c", f"javac --version && test -f {_JNA}"],
                 ["java", "-cp", f"{_JNA}:@/java", "RunFiles"],
                 ["javac", "-Xlint:all", "-Werror", "-cp", _JNA, "-sourcepath", ".", "-d", "@/java",
                  "RunFiles.java", "RunMlp.java", "LibraryTest.java"]),
        Language("Scala", "scala", ["sh", "-c", f"scalac -version && test -f {_JNA}"],
                 ["scala", "-cp", f"{_JNA}:@/scala", "RunFiles"],
                 ["sh", "-c", ("mkdir -p @/scala"
                  f" && javac -cp {_JNA} -d @/scala ../java/heterosis/*.java"
                  f" && scalac -deprecation -Xlint -Xfatal-warnings -cp {_JNA}:@/scala -d @/scala"
                  " heterosis/*.scala *.scala")]),
        Language("R", "r", ["R", "CMD", "config", "CC"], ["Rscript", "run_files.R", "@"],
                 ["sh", "-c", "cp -rL . @/source && R CMD INSTALL --library=@ @/source"]),
        Language("Perl", "perl", ["perl", "-Ilib", "-MHeterosis::Library", "-e", "1"],
                 ["perl", "-Ilib", "run_files.pl"]),
    )
}  # fmt: skip


@dataclass(frozen=True)
class Exported:
    """A library, the folder of its inputs, and the bytes that it should give."""

    path: str
    arrays: Path
    expected: list[bytes]
    sizes: Sequence[int] = ()

    def check(self, language: Language, folder: Path, calls: int = 1) -> float:
        """The microseconds of a call, if the language computes the same bits."""
        for old in self.arrays.glob("output*"):
            old.unlink()
        took = language.microseconds(folder, self.path, self.arrays, calls, self.sizes)
        found = [(self.arrays / f"output{i}").read_bytes() for i in range(len(self.expected))]
        if found != self.expected:
            raise AssertionError(f"{language.name}: other results than in Python")
        return took


def exported(label: str, folder: Path) -> Exported:
    """One of the models, written to a folder."""
    make, inputs, *further = MODELS[label]
    given = dict(further[0]) if further else {}
    function, samples = make(), given.pop("at", inputs)
    threads, npx.settings.threads = npx.settings.threads, given.get("threads", 1)
    try:
        made = heterosis.hybridize(lambda *arrays: function(*arrays), dynamic=True)(*inputs)
        path, _ = heterosis.export(function, folder / "model", *samples, **given)
    finally:
        npx.settings.threads = threads
    for i, array in enumerate(inputs):
        (folder / f"input{i}").write_bytes(array.asnumpy().tobytes())
    made = made if isinstance(made, tuple) else (made,)
    expected = [array.asnumpy().tobytes() for array in made]
    return Exported(path, folder, expected, further[1] if further[1:] else ())


def _row(model: Exported, languages: Sequence[Language], folder: Path) -> list[str]:
    cells = []
    for language in languages:
        try:
            cells.append(f"{model.check(language, folder, calls=2000):.1f}")
        except (RuntimeError, AssertionError) as error:
            print(error, file=sys.stderr)
            cells.append("FAILED")
    return cells


def main(words: Sequence[str] | None = None) -> int:
    """Print a table of models by languages, in microseconds a call."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--all", action="store_true", help="a missing language is a failure")
    wanted = parser.parse_args(words)
    why = {language.name: language.missing() for language in LANGUAGES.values()}
    present = [language for language in LANGUAGES.values() if not why[language.name]]
    with tempfile.TemporaryDirectory() as name:
        folder, rows = Path(name), []
        for language in present:
            language.made(folder)
        for number, label in enumerate(MODELS):
            place = folder / str(number)
            place.mkdir()
            rows.append([label, *_row(exported(label, place), present, folder)])
    for row in [["", *(language.name for language in present)], *rows]:
        print(f"{row[0]:16}" + "".join(f"{cell:>12}" for cell in row[1:]))
    for name, reason in why.items():
        if reason:
            print(f"not checked: {name}: {reason} (bash frontends/check.sh --install)")
    cells = [cell for row in rows for cell in row[1:]]
    equal = len(cells) - cells.count("FAILED")
    print(f"{equal} of {len(cells)} models x languages are equal to the bit; microseconds a call")
    failed = equal < len(cells) or not cells or (wanted.all and len(present) < len(why))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
