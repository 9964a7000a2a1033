"""Machine code of common operations for a package: python tools/precompile.py CORE OUTPUT

The build runs this, with the core that it has just made. The operations of `common.py` are called
one by one, as users do; what this machine plans for them is planned for every other target of its
family too, compiled, and written to files that the package finds it in.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1] / "src" / "heterosis"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("core", type=Path, help="the compiled core, as it will be installed")
    parser.add_argument("output", type=Path, help="the folder of the package, for its machine code")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="heterosis-precompile-") as folder:
        package = Path(folder) / "heterosis"
        shutil.copytree(_PACKAGE, package, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
        shutil.copy2(given.core, package)
        sys.path.insert(0, folder)
        sys.dont_write_bytecode = True
        os.environ["HETEROSIS_CACHE"] = os.path.join(folder, "cache")
        os.environ.pop("HETEROSIS_TARGET", None)
        _precompile(given.output)


def _precompile(package: Path) -> None:
    import common

    from heterosis.backends.native.compile import shipped

    start = time.perf_counter()
    for target, entries in _entries(_codes(common.call_all)).items():
        path = Path(shipped.path_of(target, package))
        path.parent.mkdir(parents=True, exist_ok=True)
        shipped.Archive.write(str(path), entries)
        print(f"{target.name}: {len(entries)} functions, {path.stat().st_size:,} bytes")
    print(f"{time.perf_counter() - start:.1f} s")


def _codes(run) -> dict:
    """The code, for every target, of all operations that `run` calls, by its key."""
    from heterosis import _core, backends
    from heterosis.backends.native import Native
    from heterosis.backends.native.codegen.kernel import Machine
    from heterosis.backends.native.compile.compiler import family
    from heterosis.backends.native.compile.single import code_for

    codes = {target: {} for target in family()}

    class Collecting(Native):
        """Plans for all targets of the family, and runs on this one."""

        def plan(self, program, layouts, targets, **options):
            for target, known in codes.items():
                machine = Machine(target, _core.threads())
                code = code_for(program, layouts, targets, machine, **options)
                if code.parts:  # else nothing runs: results are views
                    known.setdefault(code.key, code)
            return super().plan(program, layouts, targets, **options)

    backends.register(backends.NATIVE, Collecting)
    run()  # nobody waits for what it computes
    return codes


_KNOWN: list = []  # (target, key, code) of all functions: what forks of this process compile


def _entries(codes: dict) -> dict:
    """Entries of archives, by target; as many processes as there are processors compile them."""
    _KNOWN.extend((target, *one) for target, known in codes.items() for one in known.items())
    entries = {target: {} for target in codes}
    with multiprocessing.get_context("fork").Pool(len(os.sched_getaffinity(0))) as pool:
        found = pool.imap(_entry, range(len(_KNOWN)), chunksize=8)
        for (target, *_), (key, entry) in zip(_KNOWN, found, strict=True):
            entries[target][key] = entry
    return entries


def _entry(number: int) -> tuple[bytes, bytes]:
    from heterosis.backends.native.compile import object_cache

    target, text, code = _KNOWN[number]
    cache = object_cache.default_cache()
    key = cache.key(text, target)
    payload = cache.read(key) or object_cache.compile_object(code.emit(target), target)
    return key, object_cache.pack(key, payload)


if __name__ == "__main__":
    main()
