"""Hides AVX-512 from libraries, to measure as on a processor that has AVX2 alone:
eval "$(python benchmarks/without_avx512.py FOLDER ENVIRONMENT...)"

A library asks the processor what it has by an instruction, `cpuid`. Wherever the shared libraries
of these environments do, another comes in its place, which no processor runs, and what is made in
the folder answers instead; the settings that are printed load it. The environments are changed for
good, so make some for this alone. Needs gcc and objdump, and an x86-64 processor.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

_SOURCE = Path(__file__).with_suffix(".c")
_ASKS, _REFUSED = b"\x0f\xa2", b"\x06\xa2"
_SECTION = re.compile(r"\] (\S+) +PROGBITS +(\w+) (\w+) (\w+) \w+ +\w*X")
# The C library asks for itself before anything else is loaded.
_SETTINGS = ",".join(f"-AVX512{part}" for part in ("F", "VL", "BW", "DQ", "CD"))


class _Section(NamedTuple):
    """Code in a file: the address it is loaded at, where it begins in the file, its bytes."""

    address: int
    offset: int
    size: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="for the library that answers")
    parser.add_argument("environments", type=Path, nargs="*", help="folders with shared libraries")
    given = parser.parse_args()
    for setting in hide(given.folder, given.environments):
        print(f"export {setting}")


def hide(folder: Path, environments: Iterable[Path]) -> list[str]:
    """The settings with which what is in these environments knows nothing of AVX-512."""
    folder.mkdir(parents=True, exist_ok=True)
    answers = folder.resolve() / "without_avx512.so"
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", _SOURCE, "-o", answers], check=True)
    files = [path for environment in environments for path in libraries(environment)]
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:  # objdump's time, not ours
        list(pool.map(replace, sorted(files, key=lambda path: -path.stat().st_size)))
    return [f"LD_PRELOAD={answers}", f"GLIBC_TUNABLES=glibc.cpu.hwcaps={_SETTINGS}"]


def libraries(environment: Path) -> Iterator[Path]:
    """All shared libraries below a folder."""
    for path in environment.rglob("*.so*"):
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                if file.read(4) == b"\x7fELF":
                    yield path


def replace(path: Path) -> int:
    """Put what is refused in the place of every `cpuid` of a library; gives how many there were."""
    content = bytearray(path.read_bytes())
    sections = list(_sections(path))
    if not any(_ASKS in content[s.offset : s.offset + s.size] for s in sections):
        return 0
    places = list(_asking(path, sections))
    for place in places:
        assert content[place : place + 2] == _ASKS, f"{path}: no cpuid at {place}"
        content[place : place + 2] = _REFUSED
    if places:  # beside it first: whoever has it open keeps what he has
        changed = path.with_name(f"{path.name}.changed")
        changed.write_bytes(content)
        changed.chmod(path.stat().st_mode)
        changed.replace(path)
    return len(places)


def _sections(path: Path) -> Iterator[_Section]:
    command = ["readelf", "--section-headers", "--wide", path]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for _, *numbers in _SECTION.findall(shown):
        yield _Section(*(int(number, 16) for number in numbers))


def _asking(path: Path, sections: Iterable[_Section]) -> Iterator[int]:
    """Where in the file each `cpuid` is: its bytes may be part of other instructions, too."""
    command = ["objdump", "--disassemble", "--wide", "--no-show-raw-insn", path]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as shown:
        assert shown.stdout is not None
        for line in shown.stdout:
            if b"\tcpuid" in line:
                address = int(line.split(b":")[0], 16)
                (here,) = (s for s in sections if s.address <= address < s.address + s.size)
                yield address - here.address + here.offset


if __name__ == "__main__":
    main()
