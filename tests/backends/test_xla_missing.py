"""Who does not ask for XLA does not notice it, and who does without JAX is told what to do."""

import pytest

from tests.processes import run_python

WITHOUT = """
import sys
sys.modules["jax"] = None  # as if it were not installed
import heterosis
from heterosis import np
try:
    heterosis.hybridize(lambda x: x, backend="xla")
except heterosis.runtime.errors.MissingPackageError as error:
    print(error)
from heterosis import backends
print(backends.names(), backends.available())
"""

IMPORTED = """
import sys
from heterosis import np
import heterosis
heterosis.hybridize(lambda x: x + 1)(np.ones(2)).wait_to_read()
print([name for name in sys.modules if "jax" in name or "xla" in name])
"""


def test_jax_is_asked_for_by_name(tmp_path):
    message, names = run_python("-c", WITHOUT, folder=tmp_path).stdout.splitlines()
    assert "needs JAX" in message and "pip install 'heterosis[xla]'" in message
    assert names == "('native', 'xla') ('native',)"


@pytest.mark.lengthy
def test_jax_is_not_imported_by_others(tmp_path):
    assert run_python("-c", IMPORTED, folder=tmp_path).stdout == "[]\n"
