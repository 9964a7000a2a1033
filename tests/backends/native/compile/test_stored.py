"""Plans of captured programs on disk: found by what they were made of, and by nothing else."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy
import pytest

import heterosis
from heterosis import np, npx
from heterosis.backends.native.codegen.kernel import Machine
from heterosis.backends.native.codegen.target import AVX2, FALLBACK
from heterosis.backends.native.compile import object_cache, plans, sized, stored, whole
from heterosis.backends.native.compile.kept import KeptObjects
from heterosis.backends.native.compile.stored import identity
from heterosis.gluon import nn
from heterosis.ir.primitives.elementwise import ADD
from heterosis.ir.primitives.families import Opaque, Reduction
from heterosis.ir.program import INPUT, Program, apply, constant
from heterosis.ir.strided import Strided
from heterosis.ir.types import TensorType
from heterosis.ops.math.elementwise import add, multiply
from heterosis.runtime.errors import OutOfMemoryError
from heterosis.runtime.settings import settings
from tests.ir.made_up import made_up
from tests.processes import run_python

MACHINE = Machine(AVX2, 1)


@pytest.fixture
def restart(tmp_path, monkeypatch):
    """As if a new process began, with a directory of this test's own."""
    monkeypatch.setattr(object_cache, "_sources_signature", lambda: b"s" * 32)

    def begin() -> object_cache.ObjectCache:
        cache = object_cache.ObjectCache(str(tmp_path))
        monkeypatch.setattr(object_cache, "default_cache", lambda: cache)
        monkeypatch.setattr(plans, "_loaded", KeptObjects())
        return cache

    begin()
    return begin


def forbid_planning(monkeypatch):
    def planned(*arguments):
        raise AssertionError("planned again")

    monkeypatch.setattr(whole, "_functions", planned)


def network():
    net = nn.HybridSequential()
    net.add(nn.Dense(8, activation="relu"), nn.Dense(4))
    net.initialize(heterosis.initializer.Constant(0.5))
    return net


def call(x, net=None):
    net = net or network()
    net.hybridize()
    return net(x).asnumpy()


# -- hits -----------------------------------------------------------------------------------------


@pytest.fixture
def unproved(monkeypatch):
    """Plans for open sizes are kept only where none is proved."""
    monkeypatch.setattr(settings, "check", False)


def at_sizes(sizes):
    """What the network gives for batches of these sizes, and its hybridized function."""
    net = network()
    net.hybridize(dynamic=True)
    return [net(np.array(numpy.arange(3.0 * n).reshape(n, 3))).tolist() for n in sizes]


def forbid_planning_for_sizes(monkeypatch):
    def planned(*arguments):
        raise AssertionError("planned again")

    monkeypatch.setattr(sized, "_Planned", planned)


def test_a_later_process_plans_no_range_of_sizes_again(restart, unproved, monkeypatch):
    expected = at_sizes([4, 9])
    cache = restart()
    forbid_planning_for_sizes(monkeypatch)
    forbid_planning(monkeypatch)
    assert at_sizes([4, 9, 6])[:2] == expected
    assert cache.counters.compiles == 0


def test_ranges_of_several_processes_are_kept(restart, unproved, monkeypatch):
    small, large = [3], [4000]  # planned for other ranges
    first = at_sizes(small)
    restart()
    second = at_sizes(large)
    restart()
    forbid_planning_for_sizes(monkeypatch)
    assert [*at_sizes(small), *at_sizes(large)] == [*first, *second]


def test_a_range_whose_code_is_gone_is_planned_again(restart, unproved, tmp_path):
    expected = at_sizes([4])
    for file in tmp_path.glob("*.o"):
        if b"ELF" in file.read_bytes()[:200]:
            file.unlink()
    cache = restart()
    assert at_sizes([4]) == expected
    assert cache.counters.compiles > 0


def test_a_later_process_plans_nothing(restart, monkeypatch):
    x = np.array(numpy.arange(6.0).reshape(2, 3))
    expected = call(x)
    cache = restart()
    forbid_planning(monkeypatch)
    numpy.testing.assert_array_equal(call(x), expected)
    assert cache.counters.compiles == 0


INVERSES = """
import heterosis
from heterosis import np

@heterosis.hybridize
def both(x):
    return np.linalg.inv(x) @ np.linalg.inv(x)

assert both(np.eye(3) * 2)[0, 0] == 0.25
"""


BACK_THROUGH_A_LOOP = """
import heterosis
from heterosis import autograd, np, npx

@heterosis.hybridize
def doubled(x):
    return npx.while_loop(lambda x: x < 9, lambda x: ([], x * 2), x)[1]

x = np.array(1.0)
x.attach_grad()
with autograd.record():
    y = doubled(x)
y.backward()
assert (y, x.grad) == (16, 16)
"""


@pytest.mark.lengthy
@pytest.mark.parametrize("code", [INVERSES, BACK_THROUGH_A_LOOP])
def test_a_later_process_calls_libraries(code, tmp_path, monkeypatch):
    monkeypatch.setenv("HETEROSIS_CACHE", str(tmp_path))
    for _ in range(2):
        done = run_python("-c", code, folder=tmp_path)
        assert done.returncode == 0, done.stderr


def test_a_result_that_is_a_view(restart, monkeypatch):
    x = np.array(numpy.arange(6.0).reshape(2, 3))
    for _ in range(2):
        restart()
        turned, total = heterosis.hybridize(lambda a: (a.T, a.sum()))(x)
        numpy.testing.assert_array_equal(turned.asnumpy(), x.asnumpy().T)
        assert total == 15
        forbid_planning(monkeypatch)


def test_failures_are_told_as_before(restart, monkeypatch):
    places = np.array([0, 7], dtype="int32")
    for _ in range(2):
        restart()
        with pytest.raises(IndexError, match="index 7"):
            heterosis.hybridize(lambda a: np.take(a, places, mode="raise"))(np.ones(3)).asnumpy()
        forbid_planning(monkeypatch)


def test_gradients_are_found_too(restart, monkeypatch):
    found = []
    for _ in range(2):
        restart()
        net, x = network(), np.ones((2, 3))
        net.hybridize()
        with heterosis.autograd.record():
            loss = net(x).sum()
        loss.backward()
        found.append(net[0].weight.grad().asnumpy())
        forbid_planning(monkeypatch)
    numpy.testing.assert_array_equal(*found)


def test_room_is_asked_for_again(restart):
    def grown(a):
        return np.broadcast_to(a, (1 << 20, 4)) + 1

    x, before = np.ones(4), npx.settings.memory_limit
    heterosis.hybridize(grown)(x).wait_to_read()
    restart()
    try:
        npx.settings.memory_limit = 1 << 22
        with pytest.raises(OutOfMemoryError, match="memory_limit"):
            heterosis.hybridize(grown)(x)
    finally:
        npx.settings.memory_limit = before


# -- distrust -------------------------------------------------------------------------------------


def test_missing_and_damaged_entries_are_made_anew(restart, tmp_path):
    x = np.ones((2, 3))
    expected = call(x)
    for path in os.listdir(tmp_path):  # some are of single operations, which stay planned here
        (tmp_path / path).unlink()
    restart()
    call(x)
    for path in sorted(os.listdir(tmp_path)):
        content = (tmp_path / path).read_bytes()
        for damaged in (content[:-1], None):
            (tmp_path / path).unlink() if damaged is None else (tmp_path / path).write_bytes(
                damaged
            )
            restart()
            numpy.testing.assert_array_equal(call(x), expected)
        assert (tmp_path / path).read_bytes() == content


def test_other_lowerings_find_nothing(restart, monkeypatch):
    x = np.ones((2, 3))
    call(x)
    monkeypatch.setattr(object_cache, "_sources_signature", lambda: b"t" * 32)
    monkeypatch.setattr(object_cache, "_sources_content", lambda: b"u" * 32)
    cache = restart()
    call(x)
    assert cache.counters.compiles > 0


# -- keys -----------------------------------------------------------------------------------------


def program(shape=(2, 3), dtype="float32", number=1.0, operation=add, name="p", swapped=False):
    x = apply(INPUT, (), TensorType(shape, dtype))
    y = apply(INPUT, (), TensorType(shape, dtype))
    inputs = (y, x) if swapped else (x, y)
    return Program(inputs, (add(operation(x, constant(number, dtype)), y),), name)


OTHERS = {
    "shape": {"shape": (3, 2)},
    "type": {"dtype": "float64"},
    "integer": {"number": 1},
    "truth": {"number": True},
    "number": {"number": -1.0},
    "operation": {"operation": multiply},
    "name": {"name": "q"},
    "inputs": {"swapped": True},
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_every_difference_counts(other):
    assert identity(program()) == identity(program()) is not None
    assert identity(program(**other)) != identity(program())


def test_zero_has_a_sign():
    assert identity(program(number=0.0)) != identity(program(number=-0.0))


def test_surroundings_count(restart):
    rows, columns = Strided((2, 3), (3, 1)), Strided((2, 3), (1, 2))
    keys = [
        stored.key(program(), layouts, parameters, machine)
        for layouts in ((rows, rows), (rows, columns))
        for parameters in ((), (1,))
        for machine in (MACHINE, Machine(AVX2, 2), Machine(FALLBACK, 1))
    ]
    assert len(set(keys)) == len(keys) and None not in keys


def test_primitives_from_elsewhere_are_not_kept():
    x = apply(INPUT, (), TensorType((2,), "float32"))
    mine = made_up("add")
    assert identity(Program((x,), (apply(mine, (x, x), x.type),))) is None
    for mine in (made_up("sort", Opaque), made_up("sum", Reduction)):
        assert identity(Program((x,), (apply(mine, (x,), x.type),))) is None


def test_attributes_that_have_no_text_are_not_kept():
    x = apply(INPUT, (), TensorType((2,), "float32"))
    assert identity(Program((x,), (apply(ADD, (x, x), x.type, how=(1, 2.0)),))) is not None
    assert identity(Program((x,), (apply(ADD, (x, x), x.type, how=object()),))) is None


NAMES = """
import collections, gc, heterosis.gluon
from heterosis.ir.primitives.families import Primitive

found = [o for o in gc.get_objects() if isinstance(o, Primitive)]
names = collections.Counter((type(o).__name__, o.name) for o in found)
assert len(names) > 100, names
print([name for name, count in names.items() if count > 1])
"""


@pytest.mark.lengthy
def test_names_tell_primitives_apart():
    output = subprocess.check_output([sys.executable, "-c", NAMES], text=True)
    assert output.strip() == "[]"
