"""Every example with a network trains through XLA, and reaches what it does without.

It takes minutes, so pytest leaves it out unless it is named: python -m pytest -n 2
tests/backends/xla/every_example.py
"""

import re
import subprocess
import sys

import numpy
import pytest

from tests.examples.test_examples import EXAMPLES, PLAIN, SCRIPTS

# Runs a script whose networks are all hybridized.
RUN = """
import runpy, sys
from heterosis import gluon
_, backend, path, *options = sys.argv
initialize = gluon.Block.initialize
def hybridized(block, *arguments, **keywords):
    initialize(block, *arguments, **keywords)
    block.hybridize(backend=backend)
gluon.Block.initialize = hybridized
sys.argv = [path, *options]
runpy.run_path(path, run_name="__main__")
assert (backend == "xla") == ("heterosis.backends.xla.executable" in sys.modules)
"""
EPOCH = re.compile(r"epoch +\d+, +[\d.]+ s: (.*)")


def epochs(script, backend):
    """The numbers that an example prints after each epoch."""
    path = EXAMPLES / script
    command = [sys.executable, "-c", RUN, backend, str(path), "--quick"]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=600, check=False, cwd=EXAMPLES
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = EPOCH.findall(done.stdout)
    return [[float(x) for x in re.findall(r"-?\d+\.\d+", text)] for text in found]


# That of several processes has an option for it, which tests/distributed uses.
TRAINING = [one for one in SCRIPTS if one not in {*PLAIN, "many_processes.py"}]


@pytest.mark.parametrize("script", TRAINING)
def test_trains_alike(script):
    native, xla = (epochs(script, backend) for backend in ("native", "xla"))
    assert len(native) == len(xla) > 0
    # Rounding grows with every step, so that it is the first epoch that can be compared.
    numpy.testing.assert_allclose(xla[0], native[0], rtol=0.02, atol=0.01)
