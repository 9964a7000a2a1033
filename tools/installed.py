"""Whether an installed Heterosis works: python -I installed.py README.md fifty_operations.py

Runs away from the tree, on the package alone: the programs of the README, a network before and
after `hybridize`, its export, and how much of an ordinary program was compiled when it was
installed. Prints sizes and times as JSON.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import io
import json
import os
import re
import runpy
import shutil
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

_TIMED = "import time; s = time.perf_counter(); import heterosis; print(time.perf_counter() - s)"
_COMPILERS = ("g++", "c++", "clang++", "gcc", "cc")


def programs(page: str) -> str:
    """The Python blocks of a page, which belong together."""
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert blocks, "a page without programs"
    return "\n".join(blocks)


def import_seconds(rounds: int = 9) -> float:
    """The median of fresh processes, after one that fills the caches."""
    command = [sys.executable, "-I", "-c", _TIMED]
    times = [float(subprocess.check_output(command)) for _ in range(rounds + 1)]
    return statistics.median(times[1:])


def first_use(program: str) -> dict[str, float]:
    """What a program of many operations finds compiled, with an empty cache of its own."""
    with tempfile.TemporaryDirectory() as cache:
        environment = os.environ | {"HETEROSIS_CACHE": cache}
        found = json.loads(
            subprocess.check_output([sys.executable, "-I", program], env=environment)
        )
    brought, compiled = found["disk_hits"], found["compiles"]
    if has_machine_code():
        assert brought > 9 * compiled, f"{brought} kernels came compiled, and {compiled} did not"
    return {"brought": brought, "compiled": compiled, "compiling": found["compile_seconds"]}


def has_machine_code() -> bool:
    """Whether the package brings any: wheels may be built without."""
    files = importlib.metadata.files("heterosis") or []
    return any("machine_code" in file.parts for file in files)


def together(body: Callable[[], int], count: int) -> int:
    """The sum of what so many threads give."""
    with ThreadPoolExecutor(count) as pool:
        return sum(pool.map(lambda _: body(), range(count)))


def gain_of_threads(count: int = 8, seconds: float = 1.0) -> float:
    """How many more calls so many threads make of one hybridized network than one thread does; all
    of them must give the same."""
    import numpy

    from heterosis import np, npx
    from heterosis.gluon import nn

    npx.settings.intra_op_threads = 1  # what processors share are the calls
    net = nn.HybridSequential()
    net.add(nn.Dense(512, activation="relu"), nn.Dense(512, activation="relu"), nn.Dense(10))
    net.initialize()
    x = np.random.normal(size=(64, 512))
    net.hybridize()
    expected = net(x).asnumpy()

    def calls() -> int:
        made, end = 0, time.perf_counter() + seconds
        while time.perf_counter() < end:
            numpy.testing.assert_array_equal(net(x).asnumpy(), expected)
            made += 1
        return made

    one = together(calls, 1)
    return together(calls, count) / one


def networks_agree(folder: Path) -> None:
    """Imperative, hybridized and exported, a network gives the same."""
    import numpy

    import heterosis
    from heterosis import np
    from heterosis.backends.heterosis_library import Library
    from heterosis.gluon import nn

    net = nn.HybridSequential()
    net.add(nn.Dense(64, activation="relu"), nn.Dense(32, activation="tanh"), nn.Dense(5))
    net.initialize()
    x = np.random.normal(size=(3, 20))
    imperative = net(x).asnumpy()
    assert imperative.shape == (3, 5) and numpy.ptp(imperative) > 0
    net.hybridize()
    numpy.testing.assert_allclose(net(x).asnumpy(), imperative, rtol=1e-5, atol=1e-6)
    heterosis.export(net, folder / "my_mlp", x)
    library = Library(str(folder / "libmy_mlp.so"))
    numpy.testing.assert_allclose(library(x.asnumpy()), imperative, rtol=1e-5, atol=1e-6)


def megabytes(files: list[Path]) -> float:
    """What files take, each counted once."""
    return sum(file.stat().st_size for file in set(files) if file.is_file()) / 1e6


def sizes() -> dict[str, float]:
    """Megabytes of the package, and of it with all that it requires."""
    parts = {
        name: megabytes([Path(file.locate()) for file in importlib.metadata.files(name) or []])
        for name in _required("heterosis")
    }
    return {"installed": parts["heterosis"], "environment": sum(parts.values())}


def _required(name: str) -> set[str]:
    """A distribution and those that it requires, without extras."""
    found = {name}
    for line in importlib.metadata.requires(name) or []:
        if "extra ==" not in line:
            required = re.match(r"[\w.-]+", line)
            with contextlib.suppress(importlib.metadata.PackageNotFoundError):  # for another system
                found |= _required(required.group() if required else "")
    return found


def main() -> None:
    reached = [name for name in _COMPILERS if shutil.which(name)]
    assert not reached, f"the test is of an environment without a compiler, and there is {reached}"
    page, program = sys.argv[1:]
    facts = {"import": import_seconds(), **sizes(), **first_use(program)}

    import heterosis

    assert Path(heterosis.__file__).is_relative_to(sysconfig.get_path("platlib"))
    printed = io.StringIO()
    with tempfile.TemporaryDirectory() as folder:
        readme = Path(folder) / "readme.py"
        readme.write_text(programs(Path(page).read_text()))
        with contextlib.redirect_stdout(printed):
            runpy.run_path(str(readme))
        assert "(64, 10)" in printed.getvalue(), printed.getvalue()
        networks_agree(Path(folder))
    facts["threads"] = gain_of_threads()
    facts["gil"] = getattr(sys, "_is_gil_enabled", lambda: True)()
    facts["glibc"] = os.confstr("CS_GNU_LIBC_VERSION")
    print(json.dumps(facts))


if __name__ == "__main__":
    main()
