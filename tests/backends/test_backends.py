"""What names a back end, and which of them compiles."""

import copy
import pickle

import pytest

import heterosis
from heterosis import autograd, backends, np
from heterosis.autograd.listing import back_ends
from heterosis.gluon import nn
from heterosis.ir import PRIMITIVES
from heterosis.runtime.errors import ArgumentError
from tests.backends.reference import NAME, Reference
from tests.processes import run_python


class Counted(Reference):
    """Tells which programs it compiles."""

    def __init__(self):
        super().__init__()
        self.programs = []

    def compile(self, program, layouts, fixed=()):
        self.programs.append((program.name, list(fixed)))
        return super().compile(program, layouts, fixed)


@pytest.fixture
def counted(monkeypatch):
    """A back end by the name of counted, and what it compiles."""
    monkeypatch.setattr(backends, "_makers", dict(backends._makers))
    monkeypatch.setattr(backends, "_made", dict(backends._made))
    backends.register("counted", Counted)
    return backends.named("counted").programs


def double(x):
    return x * 2


def _dense(**flags):
    net = nn.HybridSequential()
    net.add(nn.Dense(3, in_units=2), nn.Dense(1, in_units=3))
    net.initialize()
    net.hybridize(**flags)
    return net


def test_the_native_one_is_known_from_the_start():
    assert backends.names()[0] == backends.NATIVE
    assert backends.named("native") is backends.eager(0)
    assert heterosis.hybridize(double).backend == "native"


def test_an_unknown_name_is_refused_at_once():
    known = "there is no back end 'any'; known are 'native', .*'reference'.*register"
    for wrong in (
        lambda: backends.named("any"),
        lambda: heterosis.hybridize(double, backend="any"),
        lambda: heterosis.hybridize(heterosis.hybridize(double), backend="any"),
        lambda: _dense(backend="any"),
    ):
        with pytest.raises(ArgumentError, match=known):
            wrong()


def test_a_back_end_is_made_once_and_can_be_made_anew(counted):
    first = backends.named("counted")
    assert backends.named("counted") is first
    backends.register("counted", Counted)
    assert backends.named("counted") is not first


def test_functions(counted):
    compiled = heterosis.hybridize(double, backend="counted")
    decorated = heterosis.hybridize(backend="counted")(double)
    for function in (compiled, decorated, compiled):
        assert function(np.ones(2)).tolist() == [2, 2]
    assert counted == [("double", [])] * 2
    assert heterosis.hybridize(compiled, backend="counted") is compiled


def test_a_hybridized_function_can_be_compiled_by_another(counted):
    native = heterosis.hybridize(double)
    other = heterosis.hybridize(native, backend="counted")
    assert (native.backend, other.backend) == ("native", "counted")
    assert native(np.ones(1)).item() == other(np.ones(1)).item() == 2
    assert counted == [("double", [])]


def test_blocks_and_their_parts(counted):
    net, x = _dense(backend="counted"), np.ones((1, 2))
    assert net(x).shape == (1, 1)
    assert counted == [("_captured_forward", [1, 2, 3, 4])]
    assert net[0](x).shape == (1, 3)
    assert counted[1:] == [("_captured_forward", [1, 2])]
    net.hybridize(clear=False)
    net(x)
    assert len(counted) == 2 and net[1]._compiled.backend == "native"


def test_plain_blocks_hand_it_on(counted):
    class Plain(nn.Block):
        def __init__(self):
            super().__init__()
            self.inside = _dense()

        def forward(self, x):
            return self.inside(x)

    block = Plain()
    block.hybridize(backend="counted")
    block(np.ones((1, 2)))
    assert len(counted) == 1


@pytest.mark.parametrize("backend", ["MKLDNN", None])
def test_gluon_s_names_of_the_native_one(backend):
    assert _dense(backend=backend)._compiled.backend == "native"


def test_who_is_called_becomes_a_part(counted):
    inner = heterosis.hybridize(double, backend="counted")
    outer = heterosis.hybridize(lambda x: inner(x) + 1)
    assert outer(np.ones(1)).item() == 3
    assert counted == []


def test_methods_and_copies(counted):
    class Scale:
        factor = 3

        @heterosis.hybridize(backend="counted")
        def scaled(self, x):
            return x * self.factor

    assert Scale().scaled(np.ones(1)).item() == 3
    compiled = heterosis.hybridize(double, backend="counted")
    for again in (copy.deepcopy(compiled), pickle.loads(pickle.dumps(compiled.compiled_by(NAME)))):
        assert again(np.ones(1)).item() == 2
    assert [name for name, _ in counted] == ["scaled", "double"]


def test_derivatives_are_compiled_by_the_same(counted):
    x = np.array([0.5, 2.0])
    x.attach_grad()
    compiled = heterosis.hybridize(double, backend="counted")
    for _ in range(2):
        with autograd.record():
            y = compiled(x)
        y.backward()
    assert x.grad.tolist() == [2, 2]
    assert counted == [("double", []), ("double (backward)", [])]


def test_what_is_fixed_may_be_none_where_gradients_are_recorded(counted):
    net, x = _dense(backend="counted"), np.ones((1, 2))
    with autograd.record():
        net(x)
    assert counted == [("_captured_forward", [])]


def test_saved_functions_need_no_back_end(counted, tmp_path):
    compiled = heterosis.hybridize(double, backend="counted")
    compiled(np.ones(2))
    heterosis.save(compiled, tmp_path / "double")
    loaded = heterosis.load(tmp_path / "double")
    assert loaded(np.ones(2)).tolist() == [2, 2]
    assert loaded.compiled_by("counted")(np.ones(2)).tolist() == [2, 2]
    assert len(counted) == 2


def test_the_listing_asks_every_back_end():
    add, loop = PRIMITIVES["add"], PRIMITIVES["while_loop"]
    installed = set(backends.available())
    assert {"native", NAME} <= installed <= {"native", NAME, "xla"}
    assert backend_names(add) == installed
    assert backend_names(loop) == installed


def backend_names(primitive):
    return set(back_ends(primitive).split(", "))


LOADED = """
import sys
import heterosis
from heterosis import np

compilers = [name for name in sys.modules if "llvmlite" in name or "backends.native" in name]
print(compilers)
np.ones(1) + 1
print("heterosis.backends.native.compile.single" in sys.modules,
      "heterosis.backends.native.stages.pipeline" in sys.modules)
"""


def test_what_compiles_is_imported_when_it_is_first_needed(tmp_path):
    found = run_python("-c", LOADED, folder=tmp_path).stdout.split("\n")
    assert found[:2] == ["[]", "True False"]
