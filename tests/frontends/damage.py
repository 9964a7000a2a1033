"""Damages an exported library, and a file of parameters, in many ways, and looks what accepts it.

python -m tests.frontends.damage --count 10000 --seed 0
"""

import argparse
import multiprocessing
import random
import tempfile
from pathlib import Path

import heterosis
from heterosis import np
from tests.frontends import python_front_end


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


def accepted(front_end, path, count, seed, of_weights=False):
    """The numbers and ways of the damaged libraries that opened, or files of parameters: none
    should."""
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
        try:
            front_end.Library(library)
        except front_end.LibraryError:
            continue
        found.append((number, way.__name__))
    return found


def _batch(path, count, seed, of_weights):
    for number, way in accepted(python_front_end(), path, count, seed, of_weights):
        print(f"seed {seed}: file {number} ({way}) was opened")
        raise SystemExit(1)


def main():
    """Open damaged files in child processes, a hundred in each: a crash ends one and is told."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    wanted, size, failed = parser.parse_args(), 100, 0
    with tempfile.TemporaryDirectory() as folder:
        table = np.arange(3000)
        path, _ = heterosis.export(
            lambda x: np.tanh(x) * table, f"{folder}/sample", np.ones(3000), weights="file"
        )
        for first in range(0, wanted.count, size):
            seed, count = wanted.seed + first, min(size, wanted.count - first)
            child = multiprocessing.get_context("fork").Process(
                target=_batch, args=(Path(path), count, seed, bool(first // size % 2))
            )
            child.start()
            child.join()
            if child.exitcode:
                failed += 1
                print(f"seed {seed}: the child ended with {child.exitcode}")
    print(f"{wanted.count} damaged libraries and files of parameters, {failed} batches failed")
    raise SystemExit(bool(failed))


if __name__ == "__main__":
    main()
