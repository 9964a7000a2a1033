"""Machine code that nothing runs any more is given back; what something runs never is."""

import gc

import pytest

import heterosis
from heterosis import autograd, np
from heterosis.backends.native.compile import object_cache, plans
from heterosis.backends.native.compile.compiler import compile_object, host_target
from heterosis.backends.native.compile.kept import KeptObjects
from tests.threads.together import together

FEW = 8


def memory_maps() -> int:
    gc.collect()
    heterosis.npx.waitall()
    with open("/proc/self/maps") as lines:
        return sum(1 for _ in lines)


@pytest.fixture
def keeping_few(tmp_path, monkeypatch):
    """Caches that keep no more than a few objects that nothing runs."""
    cache = object_cache.ObjectCache(str(tmp_path))
    cache._loaded, cache._found = KeptObjects(FEW), KeptObjects(FEW)
    monkeypatch.setattr(object_cache, "default_cache", lambda: cache)
    monkeypatch.setattr(plans, "_loaded", KeptObjects(FEW))


def add_and_multiply(number):
    """A hybridized function whose code no other number has."""
    return heterosis.hybridize(lambda x: np.tanh(x * number) + number)


def loaded(number=1):
    text = f"define i64 @answer() {{ ret i64 {number} }}"
    return heterosis._core.load_object(compile_object(text, host_target()))


def test_the_latest_stay_and_so_does_what_is_held():
    kept = KeptObjects(2)
    held = loaded().function("answer")
    made = loaded()
    del held
    assert not made.is_used
    function = made.function("answer")
    assert made.is_used
    kept.add("held", made)
    for i in range(20):
        kept.add(i, loaded())
    assert kept.get("held") is made
    assert kept.get(19) is not None
    assert kept.get(0) is None
    assert len(kept) <= 2 * 2 + 1
    assert function.address == made.address("answer")


def test_short_lived_functions_leave_no_memory_maps(keeping_few):
    x = np.ones(3)

    def use(thread):
        for i in range(50):
            number = 1000.0 * thread + i + 100.5
            assert add_and_multiply(number)(x)[0].item() == number + 1
            if i % 10 == 0:
                gc.collect()  # what is captured refers to itself

    together(lambda thread: use(100 + thread), 2)
    before = memory_maps()
    together(use, 4)  # 400 maps, if all stayed
    assert memory_maps() < before + 100


def test_programs_that_others_replace_leave_no_memory_maps(keeping_few):
    state = {"number": 0.5}
    scaled = heterosis.hybridize(lambda x: np.tanh(x) * state["number"])
    before = memory_maps()
    for i in range(150):
        state["number"] = i + 0.5
        scaled(np.ones(2 + i % 7))
    assert memory_maps() < before + 180


def test_a_tape_and_queued_work_keep_the_code_of_functions_that_are_gone(keeping_few):
    x = np.full((400, 400), 0.001)
    x.attach_grad()
    with autograd.record():
        y = add_and_multiply(0.25)(x)
    queued = [add_and_multiply(i + 0.5)(np.full((400, 400), 1000.0)) for i in range(40)]
    gc.collect()
    for i in range(5 * FEW):
        add_and_multiply(i + 0.75)(np.ones(2))
    y.backward()
    assert abs(x.grad[0, 0].item() - 0.25) < 1e-5
    assert [one[0, 0].item() for one in queued] == [i + 1.5 for i in range(40)]
