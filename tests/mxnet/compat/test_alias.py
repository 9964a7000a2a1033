"""`import mxnet` gives Heterosis: the same objects, and clear errors for what is not there."""

import functools
import importlib
import sys

import pytest

import heterosis
from heterosis.mxnet.compat import absent, facade
from heterosis.runtime.errors import ArgumentError
from tests.processes import run_python


@pytest.fixture
def mx():
    """mxnet, while the test runs."""
    finders, modules = list(sys.meta_path), set(sys.modules)
    heterosis.install_as_mxnet()
    yield importlib.import_module("mxnet")
    sys.meta_path[:] = finders
    for name in set(sys.modules) - modules:
        if name.partition(".")[0] == "mxnet":
            del sys.modules[name]


def test_modules_are_the_same_objects(mx):
    for name, place in facade.MODULES.items():
        spec = importlib.import_module(place).__spec__
        assert importlib.import_module(f"mxnet.{name}") is importlib.import_module(place)
        assert importlib.import_module(place).__spec__ is spec
        assert spec.name == place


def test_what_lies_deeper_is_found(mx):
    from mxnet.gluon.contrib import nn as contrib_nn
    from mxnet.gluon.data.vision import transforms
    from mxnet.gluon.parameter import ParameterDict
    from mxnet.ndarray.ndarray import NDArray

    assert contrib_nn is heterosis.gluon.contrib.nn
    assert transforms is heterosis.gluon.data.vision.transforms
    assert ParameterDict is heterosis.gluon.ParameterDict
    assert NDArray is heterosis.np.ndarray
    assert isinstance(mx.nd.ones((2,)), mx.np.ndarray)


def test_names_of_the_package_itself(mx):
    assert mx.cpu() == heterosis.cpu()
    assert mx.num_gpus() == 0
    assert mx.__version__ == "1.9.1"
    assert all(getattr(mx, name) is not None for name in dir(mx))


def test_installing_twice_is_once(mx):
    before = list(sys.meta_path)
    heterosis.install_as_mxnet()
    assert sys.meta_path == before


@pytest.mark.parametrize(
    "statement",
    [
        "import mxnet.visualization",
        "from mxnet import AttrScope",
        "from mxnet.symbol.nothing import var",
        "from mxnet.contrib import onnx",
        "from mxnet.gluon.contrib import cnn",
        "import mxnet.nothing",
        "from mxnet import nothing",
        "import mxnet.gluon.nothing",
    ],
)
def test_missing_modules_say_so(mx, statement):
    with pytest.raises(ImportError, match=r"mxnet\.\S+ does not exist in Heterosis"):
        exec(statement)  # noqa: S102


def test_missing_attributes_say_what_to_do(mx):
    with pytest.raises(AttributeError, match=r"Write the model with gluon"):
        _ = mx.mod
    with pytest.raises(AttributeError, match=r"Print sym.debug_str\(\)"):
        _ = mx.viz
    with pytest.raises(AttributeError, match=r"mxnet.nothing does not exist in .*heterosis names"):
        _ = mx.nothing


# Names below modules that are here: how each is asked for, and what is told.
BELOW = {
    "nd.sparse.csr_matrix": "no sparse storage",
    "nd.Custom": "autograd.Function",
    "sym.Custom": "autograd.Function",
    "sym.contrib.box_nms": r"contrib.box_nms does not .*mx.np and mx.npx",
    "nd.contrib.allclose": "np.allclose",
    "nd.sgd_update": "mx.optimizer has",
    "io.ImageRecordIter": "ImageRecordDataset",
    "random.normal_like": "Use normal with shape=x.shape",
    "gluon.contrib.cnn": "gluon.nn has",
    "gluon.data.vision.transforms.Nothing": "heterosis names",
    "np.nothing": "np.nothing does not exist",
    "base.check_call": "heterosis names",
    "mod.Module": "Write the model with gluon",
}


def asked(mx, name):
    return functools.reduce(getattr, name.split("."), mx)


@pytest.mark.parametrize("name", BELOW)
def test_names_below_modules_say_what_to_do(mx, name):
    with pytest.raises(AttributeError, match=BELOW[name]):
        asked(mx, name)


def test_advice_for_names_of_other_libraries_stays(mx):
    with pytest.raises(AttributeError, match=r"nn.Dense"):
        _ = mx.gluon.nn.Linear


def test_what_is_told_to_be_absent_is(mx):
    for name in absent.ABSENT:
        if name not in ("io", "nd.contrib"):  # rows for what is missing there
            with pytest.raises(AttributeError, match="does not exist in Heterosis"):
                asked(mx, name)


@pytest.mark.parametrize("statement", ["from mxnet.nd import sparse", "import mxnet.nd.sparse"])
def test_imports_from_below_modules_say_what_to_do(mx, statement):
    with pytest.raises(ImportError, match="no sparse storage"):
        exec(statement)  # noqa: S102


def test_another_mxnet_is_refused(monkeypatch):
    monkeypatch.setitem(sys.modules, "mxnet", importlib.import_module("json"))
    with pytest.raises(ArgumentError, match="another mxnet is imported already"):
        heterosis.install_as_mxnet()


def test_importing_mxnet_imports_only_what_is_used(tmp_path):
    done = run_python(
        "-c",
        "import heterosis, sys; heterosis.install_as_mxnet(); import mxnet as mx; mx.nd.ones(2)\n"
        "print(sorted(n for n in sys.modules if n in ('heterosis.gluon', 'heterosis.metric')))",
        folder=tmp_path,
    )
    assert done.stdout == "[]\n", done.stderr
