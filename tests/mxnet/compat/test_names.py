"""Where users find what comes from MXNet, and that nobody finds our folder as MXNet."""

import importlib
import pickle
import subprocess
import sys

import pytest

from heterosis import symbol

# Modules of MXNet's below `mx.nd` and `mx.sym`, and something in each.
MODULES = {
    "heterosis.compat": "ViewWriteWarning",
    "heterosis.ndarray.contrib": "foreach",
    "heterosis.ndarray.linalg": "gemm2",
    "heterosis.ndarray.ndarray": "NDArray",
    "heterosis.ndarray.random": "uniform",
    "heterosis.symbol.symbol": "Symbol",
}


@pytest.mark.parametrize("module, name", MODULES.items())
def test_modules_that_users_write_are_there(module, name):
    found = importlib.import_module(module)
    assert name in vars(found) and name in found.__all__


def test_a_symbol_says_where_users_find_it():
    x = symbol.var("x")
    assert f"{type(x).__module__}.{type(x).__name__}" == "heterosis.symbol.symbol.Symbol"
    assert pickle.loads(pickle.dumps(x + 1)).list_arguments() == ["x"]


def test_our_folder_is_not_found_as_mxnet():
    code = (
        "import importlib.util, heterosis; heterosis.nd, heterosis.gluon\n"
        "spec = importlib.util.find_spec('mxnet'); print(spec and spec.origin)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "heterosis" not in done.stdout
