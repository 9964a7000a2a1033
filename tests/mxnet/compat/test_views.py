"""Views are views here, and copies in MXNet: a migrated program that writes into one is told."""

import warnings

import pytest

import heterosis
from heterosis import _core, np
from heterosis import ndarray as nd
from heterosis.mxnet.compat.views import ViewWriteWarning, warn_of_writes
from tests.processes import run_python


@pytest.fixture
def noted():
    warn_of_writes()
    yield
    _core.note_views_of([])


def _array():
    return np.arange(6).reshape(2, 3).copy()


# How a view is made, of an array of shape (2, 3) ...
_VIEWS = {
    "reshape": lambda x: x.reshape(3, 2),
    "np.reshape": lambda x: np.reshape(x, (3, 2)),
    "nd.reshape": lambda x: nd.reshape(x, shape=(3, 2)),
    "transpose": lambda x: x.transpose(),
    "T": lambda x: x.T,
    "swapaxes": lambda x: np.swapaxes(x, 0, 1),
    "expand_dims": lambda x: np.expand_dims(x, 0),
    "flip": lambda x: np.flip(x, 0),
    "split": lambda x: np.split(x, 2)[1],
    "view of a view": lambda x: x.reshape(3, 2).T,
    "column": lambda x: x[:, 1],
    "part": lambda x: x[:, :2],
}
# ... and how it is written to.
_WRITES = {
    "all": lambda y: y.__setitem__(Ellipsis, 7),
    "one": lambda y: y.__setitem__(0, 7),
    "in place": lambda y: y.__iadd__(1),
    "out": lambda y: np.negative(y, out=y),
    "mask": lambda y: y.__setitem__(y < 9, 7),
    "index": lambda y: y.__setitem__(np.array([0], dtype="int64"), 7),
}


def _changed(x, view, write):
    write(view(x))
    return x


def _warned(call):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    return [w for w in found if w.category is ViewWriteWarning]


@pytest.mark.parametrize("mode", ["eager", "hybridized"])
@pytest.mark.parametrize("write", list(_WRITES))
@pytest.mark.parametrize("view", list(_VIEWS))
def test_the_first_write_warns(view, write, mode, noted):
    x = _array()

    def run(x):
        return _changed(x, _VIEWS[view], _WRITES[write])

    call = run if mode == "eager" else heterosis.hybridize(run)
    (warning,) = _warned(lambda: call(x))
    assert warning.filename == __file__
    assert ".copy()" in str(warning.message)
    assert (x != _array()).any()
    assert not _warned(lambda: call(x))


_QUIET = {
    "a copy": lambda x: _changed(x, lambda x: x.reshape(3, 2).copy(), _WRITES["all"]),
    "the array itself": lambda x: _changed(x, lambda x: x, _WRITES["all"]),
    "nobody has the other": lambda x: _WRITES["all"](np.zeros(6).reshape(2, 3)),
    "nor a view between": lambda x: _WRITES["in place"](np.zeros(6).reshape(2, 3).T),
    "rows, which MXNet shares": lambda x: _changed(x, lambda x: x[1:], _WRITES["all"]),
    "a row": lambda x: _changed(x, lambda x: x[1], _WRITES["in place"]),
    "detached, which MXNet shares": lambda x: _changed(x, lambda x: x.detach(), _WRITES["all"]),
    "part of the array itself": lambda x: _changed(
        x, lambda x: x, lambda y: y.__setitem__((0, 1), 2)
    ),
    "a computed result": lambda x: _changed(x, lambda x: x.T + 1, _WRITES["all"]),
    "only read": lambda x: x.reshape(3, 2) + x.T.reshape(3, 2),
}


@pytest.mark.parametrize("mode", ["eager", "hybridized"])
@pytest.mark.parametrize("name", list(_QUIET))
def test_other_writes_do_not(name, mode, noted):
    call = _QUIET[name] if mode == "eager" else heterosis.hybridize(_QUIET[name])
    assert not _warned(lambda: call(_array()))


def test_nothing_is_noted_without_the_alias():
    x = _array()
    assert not _warned(lambda: _changed(x, _VIEWS["reshape"], _WRITES["all"]))


# What a captured program does to a view, and what it returns.
_CAPTURED = {
    "nothing returned": lambda y: y.__setitem__(Ellipsis, 0),
    "an array returned": lambda y: (y.__setitem__(Ellipsis, 0), y.sum())[1],
    "results in a dictionary": lambda y: {"sum": (y.__iadd__(1)).sum(), "more": [None, 2.5]},
}


@pytest.mark.parametrize("view", ["reshape", "T"])
@pytest.mark.parametrize("name", _CAPTURED)
def test_an_argument_that_is_a_view_warns_when_the_program_runs_again(noted, name, view):
    x, written = _array(), heterosis.hybridize(lambda y: _CAPTURED[name](y))
    _core.note_views_of([])
    for _ in range(2):
        written(_VIEWS[view](_array()))
    warn_of_writes()
    y = _VIEWS[view](x)
    (warning,) = _warned(lambda: written(y))
    assert warning.filename == __file__
    assert not _warned(lambda: written(y))


def test_warnings_as_errors(noted):
    x = _array()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ViewWriteWarning):
            x.reshape(3, 2)[0] = 1
    assert (x == _array()).all()


_PROGRAM = """
import heterosis
heterosis.install_as_mxnet()
import mxnet as mx
x = mx.np.ones((2, 3))
y = x.reshape(3, 2)
y[:] = 0
z = x.T
z += 1
print(int(x.sum()))
"""


@pytest.mark.lengthy
def test_the_alias_installs_it(tmp_path):
    script = tmp_path / "migrated.py"
    script.write_text(_PROGRAM)
    done = run_python(str(script), folder=tmp_path)
    assert done.stdout.split() == ["6"]
    (line,) = [line for line in done.stderr.splitlines() if "ViewWriteWarning" in line]
    assert line.startswith(f"{script}:7: ")
