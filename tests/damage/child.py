"""The process that reads damaged files: `python -m tests.damage.child FIRST COUNT PROGRESS ...`.

It may take so much memory and so long for a file and no more: what goes wrong ends it, and the one
who started it reads from the file of progress at which file that was.
"""

from __future__ import annotations

import faulthandler
import json
import os
import random
import resource
import shutil
import struct
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any, final

from heterosis import npx
from heterosis.runtime.errors import HeterosisError, OutOfMemoryError
from tests.damage.damages import DAMAGES
from tests.damage.readers import KINDS, Kind, quietly

SECONDS = 20
_MEMORY = 3 << 30  # more address space than the process has at the beginning
_ARRAYS = 1 << 30


class Workplace:
    """A folder a kind, with intact files that are damaged one by one."""

    def __init__(self, root: Path):
        self.root = root
        self.intact: dict[str, dict[str, bytes]] = {}
        self.damaged: dict[str, list[str]] = {}
        for name, kind in KINDS.items():
            folder = self.folder(name)
            folder.mkdir()
            self.damaged[name] = kind.make(folder)
            self.intact[name] = {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()}
            _check_intact(name, kind, folder)
        self.others = [c for files in self.intact.values() for c in files.values()]

    def folder(self, name: str) -> Path:
        return self.root / str(list(KINDS).index(name))

    def read(self, name: str, damage: str, rng: random.Random) -> tuple[str, str]:
        """What came of it: "read", "refused", "foreign", and what the error said."""
        kind, folder = KINDS[name], self.folder(name)
        file = rng.choice(self.damaged[name])
        content = self.intact[name][file]
        (folder / file).write_bytes(_damaged(content, kind, damage, rng, self.others))
        try:
            quietly(kind.read, folder)
            return "read", ""
        except OutOfMemoryError as error:
            return "no room", str(error)[:200]
        except HeterosisError as error:
            return "refused", str(error)[:200]
        except BaseException:  # noqa: BLE001
            return "foreign", traceback.format_exc()
        finally:
            self._restore(name, folder)

    def _restore(self, name: str, folder: Path) -> None:
        for path in folder.iterdir():
            if path.name not in self.intact[name]:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        for file, content in self.intact[name].items():
            if file in self.damaged[name] or not (folder / file).exists():
                (folder / file).write_bytes(content)


def _check_intact(name: str, kind: Kind, folder: Path) -> None:
    try:
        quietly(kind.read, folder)
    except HeterosisError:
        if not kind.refused:
            raise
    else:
        assert not kind.refused, name


def _damaged(
    content: bytes, kind: Kind, damage: str, rng: random.Random, others: list[bytes]
) -> bytes:
    """The content after the damage; half of the time something inside of it is damaged."""
    change = DAMAGES[damage]
    if kind.layer and rng.random() < 0.6:
        inner, around = kind.layer(content, rng)
        return around(change(inner, rng, others))
    return change(content, rng, others)


def case(number: int) -> tuple[str, str]:
    """The kind of file and of damage of a number; all pairs come before one comes again."""
    kinds, damages = list(KINDS), list(DAMAGES)
    turn, place = divmod(number, len(kinds) * len(damages))
    del turn
    return kinds[place % len(kinds)], damages[place // len(kinds)]


def _bounded() -> None:
    with open("/proc/self/statm") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + _MEMORY, now + _MEMORY))
    npx.settings.memory_limit = _ARRAYS
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


@final
class Peak:
    """The most memory that the process had more than at the beginning of the block, in bytes."""

    nbytes = 0

    def __enter__(self) -> Peak:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")  # the peak begins anew
        self.before = self._now()
        return self

    def __exit__(self, *_: object) -> None:
        self.nbytes = self._now() - self.before

    @staticmethod
    def _now() -> int:
        with open("/proc/self/status") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) << 10


def main(first: int, count: int, progress: str) -> None:
    """Read the files of some numbers; each makes a line of JSON, unless it was read or refused."""
    root = Path(tempfile.mkdtemp(dir=os.environ.get("DAMAGE_FOLDER")))
    file = os.open(progress, os.O_WRONLY)
    try:
        place = Workplace(root)
        _bounded()
        for number in range(first, first + count):
            os.pwrite(file, struct.pack("<q", number), 0)
            name, damage = case(number)
            faulthandler.dump_traceback_later(SECONDS, exit=True)
            with Peak() as peak:
                outcome, said = place.read(name, damage, random.Random(number))
            faulthandler.cancel_dump_traceback_later()
            _tell(number=number, kind=name, damage=damage, outcome=outcome, said=said,
                  peak=peak.nbytes)  # fmt: skip
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _tell(**facts: Any) -> None:
    if facts["outcome"] == "read" or facts["outcome"] == "refused":
        del facts["said"]
    print(json.dumps(facts), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
