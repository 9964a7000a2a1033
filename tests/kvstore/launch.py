"""Python in several processes, as mpiexec starts them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parents[2]


def mpiexec(count, *arguments, **environment):
    """Run the interpreter with `arguments` in `count` processes of one thread each."""
    beside = Path(sys.executable).with_name("mpiexec")
    launcher = str(beside) if beside.exists() else shutil.which("mpiexec")
    assert launcher, "no mpiexec; pip install mpich"
    return subprocess.run(
        [launcher, "-n", str(count), sys.executable, *arguments],
        cwd=HERE,
        env=settings(**environment),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def settings(**environment):
    """What is told to one of several processes: to use one thread, besides what is given."""
    paths = os.pathsep.join(os.path.abspath(path) for path in sys.path)
    return os.environ | {"PYTHONPATH": paths, "HETEROSIS_NUM_THREADS": "1"} | environment
