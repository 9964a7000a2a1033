"""Damages an exported library, and a file of parameters, in many ways, and looks what accepts it:
the front end for Python, and that for C++, which asks the functions of `heterosis.h`.

python -m tests.frontends.damage --count 10000 --seed 0
"""

import argparse
import multiprocessing
import random
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

import heterosis
from heterosis import np
from tests.frontends import FRONTENDS, python_front_end
from tests.frontends.check import HEADER


def _cut(content, chance):
    return content[: chance.randrange(len(content))]


def _without_beginning(content, chance):
    return content[chance.randrange(1, len(content)) :]


def _flipped(content, chance):
    damaged = bytearray(content)
    for _ in range(chance.choice((1, 1, 2, 50))):
        damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
    return bytes(damaged)


def _header_flipped(content, chance):
    damaged = bytearray(content)
    damaged[chance.randrange(1024)] ^= 1 << chance.randrange(8)
    return bytes(damaged)


def _overwritten(content, chance):
    at, size = chance.randrange(len(content)), chance.randrange(1, 5000)
    return content[:at] + chance.randbytes(size) + content[at + size :]


def _page_lost(content, chance):
    at = 4096 * chance.randrange(len(content) // 4096)
    return content[:at] + bytes(4096) + content[at + 4096 :]


def _longer(content, chance):
    return content + chance.randbytes(chance.randrange(1, 100))


def _hole(content, chance):
    at, size = chance.randrange(len(content)), chance.randrange(1, 5000)
    return content[:at] + content[at + size :]


WAYS = (
    _cut, _without_beginning, _flipped, _header_flipped, _overwritten, _page_lost, _longer, _hole,
)  # fmt: skip


def accepted(opens, path, count, seed, of_weights=False):
    """The numbers and ways of the damaged libraries that `opens` opened, or files of parameters:
    none should."""
    chance, found = random.Random(seed), []
    library = path.with_name("libdamaged.so")
    place = library
    if of_weights:
        library.write_bytes(path.read_bytes())
        path, place = path.with_suffix(".weights"), library.with_suffix(".weights")
    content = path.read_bytes()
    for number in range(count):
        way = WAYS[number % len(WAYS)]
        damaged = way(content, chance)
        if damaged == content:
            continue
        place.write_bytes(damaged)
        if opens(library):
            found.append((number, way.__name__))
    place.unlink()
    return found


# -- what opens them ------------------------------------------------------------------------------


@contextmanager
def by_python():
    """Whether the front end for Python opens a library."""
    front_end = python_front_end()

    def opens(path):
        try:
            front_end.Library(path)
        except front_end.LibraryError:
            return False
        return True

    yield opens


@contextmanager
def by_cpp(program):
    """Whether a program in C++ opens a library."""
    command = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def opens(path):
        print(path, file=command.stdin, flush=True)
        answer = command.stdout.readline()
        if not answer:
            raise AssertionError(f"{program} has ended with {command.wait()}")
        return answer == "opened\n"

    with command:
        yield opens


def built(folder):
    """The program in C++, which the sanitizers of addresses and undefined behaviour look at."""
    program = folder / "opens"
    options = ["-std=c++20", "-g", "-O1", "-Wall", "-Wextra", "-Werror", "-fno-omit-frame-pointer"]
    options += ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    options += [f"-I{HEADER}", f"-I{FRONTENDS / 'cpp'}"]
    source = Path(__file__).with_name("opens.cpp")
    subprocess.run(["c++", *options, source, "-ldl", "-o", program], check=True)
    return program


def sample(folder):
    """A library with a file of parameters."""
    table = np.arange(3000)
    path, _ = heterosis.export(
        lambda x: np.tanh(x) * table, folder / "sample", np.ones(3000), weights="file"
    )
    return Path(path)


def _batch(opening, path, count, seed, of_weights):
    with opening as opens:
        for number, way in accepted(opens, path, count, seed, of_weights):
            print(f"seed {seed}: file {number} ({way}) was opened")
            raise SystemExit(1)


def _failed(label, opening, path, wanted):
    """How many batches of a hundred files fail, each in a child process: a crash ends one."""
    failed, size = 0, 100
    for first in range(0, wanted.count, size):
        seed, count = wanted.seed + first, min(size, wanted.count - first)
        child = multiprocessing.get_context("fork").Process(
            target=_batch, args=(opening(), path, count, seed, bool(first // size % 2))
        )
        child.start()
        child.join()
        if child.exitcode:
            failed += 1
            print(f"{label}, seed {seed}: the child ended with {child.exitcode}")
    print(f"{label}: {wanted.count} damaged libraries and files of parameters, "
          f"{failed} batches failed")  # fmt: skip
    return failed


def main():
    """Open damaged files, as many by each front end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path, ways = sample(folder), {"Python": by_python}
        if shutil.which("c++"):
            program = built(folder)
            ways["C++"] = lambda: by_cpp(program)
        else:
            print("C++: there is no c++")
        failed = sum(_failed(label, opening, path, wanted) for label, opening in ways.items())
    raise SystemExit(bool(failed))


if __name__ == "__main__":
    main()
