"""Exported libraries for many sizes: the bits of a hybridized call at each, or an error."""

import numpy
import pytest

import heterosis
from heterosis import np, npx
from heterosis.capture import open_calls, trees
from heterosis.cli import main
from heterosis.gluon import nn
from heterosis.runtime.errors import ArgumentError, ProgramError, ScheduleError
from tests.frontends import python_front_end
from tests.frontends.models import (
    convolution_net,
    even_recurrent_net,
    mlp,
    random,
    recurrent_net,
    until_small,
)

front_end = python_front_end()


@pytest.fixture(autouse=True)
def one_thread():
    before = npx.settings.threads
    npx.settings.threads = 1
    yield
    npx.settings.threads = before


def _encoder():
    net = nn.TransformerEncoderLayer(16, 32, 2)
    net.initialize()
    return net


def _image_net():
    net = nn.HybridSequential()
    net.add(nn.Conv2D(32, 3), nn.GlobalAvgPool2D(), nn.Dense(5))
    net.initialize()
    return net


def _attention(q, k, v):
    return np.matmul(npx.softmax(np.matmul(q, k.swapaxes(1, 2))), v)


def _scaled(x):
    return x * (1.0 / x.shape[0]) + x.shape[0] * 0.5, x.shape[0] * x


# What makes each, the axes that are open, and the shapes that it is called with, the first one of
# which it is exported with.
PROGRAMS = {
    "mlp": (mlp, {"x": (0,)}, [[(5, 512)], [(1, 512)], [(2, 512)], [(4, 512)], [(64, 512)]]),
    "captured with one row": (mlp, {"x": (0,)}, [[(1, 512)], [(3, 512)]]),
    "convolution net": (
        convolution_net, {"x": (0,)},
        [[(2, 1, 28, 28)], [(1, 1, 28, 28)], [(3, 1, 28, 28)], [(9, 1, 28, 28)]],
    ),
    "image of any height and width": (
        _image_net, {"x": (0, 2, 3)}, [[(4, 3, 32, 40)], [(3, 3, 19, 20)], [(1, 3, 5, 7)]],
    ),
    "attention": (
        lambda: _attention, True,
        [[(2, 9, 16)] * 3, [(3, 31, 8)] * 3, [(2, 2, 2)] * 3, [(1, 9, 16)] * 3, [(1, 1, 1)] * 3],
    ),
    "encoder": (
        _encoder, {"x": (0, 1)}, [[(2, 9, 16)], [(1, 9, 16)], [(3, 1, 16)], [(7, 64, 16)]],
    ),
    "lstm": (
        recurrent_net, {"inputs": (0, 1)},
        [[(7, 3, 8)], [(1, 3, 8)], [(9, 1, 8)], [(1, 1, 8)], [(30, 17, 8)]],
    ),
    "even lstm": (
        even_recurrent_net, {"inputs": (0, 1)},
        [[(7, 17, 32)], [(1, 16, 32)], [(9, 3, 32)], [(2, 1, 32)], [(3, 70, 32)]],
    ),
    "two lengths": (
        lambda: lambda x, y: x @ y, {"x": (0,), "y": (1,)},
        [[(3, 8), (8, 5)], [(1, 8), (8, 5)], [(3, 8), (8, 1)], [(70, 8), (8, 90)]],
    ),
    "loop": (lambda: until_small, True, [[(5,)], [(1,)], [(20,)]]),
    "floats of sizes": (lambda: _scaled, {"x": (0,)}, [[(5, 3)], [(4, 3)], [(1, 3)], [(777, 3)]]),
    "joined": (
        lambda: lambda x, y: np.concatenate([x, y, x * 2]), True,
        [[(5,), (3,)], [(2,), (2,)], [(1,), (9,)], [(600,), (601,)]],
    ),
    "halves": (lambda: lambda x: x[: x.shape[0] // 2], True, [[(8,)], [(9,)], [(1000,)]]),
    "views and what is given": (
        lambda: lambda x: (x.T, x, x[1:]), True, [[(4, 3)], [(3, 4)], [(9, 2)]]
    ),
    "in order": (lambda: np.sort, True, [[(100,)], [(3,)], [(5000,)]]),
    "windows": (
        lambda: lambda x, w: npx.convolution(x, w, kernel=(3, 3), stride=(2, 2), num_filter=4,
                                             no_bias=True),
        {"x": (0, 2, 3)},
        [[(2, 3, 9, 11), (4, 3, 3, 3)], [(5, 3, 8, 8), (4, 3, 3, 3)],
         [(1, 3, 33, 21), (4, 3, 3, 3)]],
    ),
}  # fmt: skip


def _called(function):
    return lambda *arrays: function(*arrays)


@pytest.mark.lengthy
@pytest.mark.release("label")
@pytest.mark.parametrize("label", PROGRAMS)
@pytest.mark.parametrize("weights", ["inside", "file"])
def test_one_library_for_all_sizes(label, weights, tmp_path):
    make, axes, calls = PROGRAMS[label]
    function = make()
    inputs = [[random(*shape) for shape in shapes] for shapes in calls]
    path, _ = heterosis.export(
        function, tmp_path / "model", *inputs[0], dynamic=axes, weights=weights
    )
    library = front_end.Library(path)
    assert len(library.entries) == 1
    compiled = heterosis.hybridize(_called(function), dynamic=True)
    for arrays in inputs:
        expected = compiled(*arrays)
        found = library(*(array.asnumpy() for array in arrays))
        expected = expected if isinstance(expected, tuple) else (expected,)
        found = found if isinstance(found, tuple) else (found,)
        for ours, theirs in zip(expected, found, strict=True):
            assert ours.shape == theirs.shape
            assert ours.asnumpy().tobytes() == theirs.tobytes(), arrays[0].shape


def _library(function, folder, *inputs, **options):
    path, _ = heterosis.export(function, folder / "model", *inputs, **options)
    return front_end.Library(path)


def test_what_a_library_says_of_sizes(tmp_path):
    library = _library(lambda x, y: x @ y, tmp_path, random(3, 8), random(8, 5), dynamic=True)
    (entry,) = library.entries.values()
    text = "(x: float32[n0, n1], y: float32[n1, n2]) -> (output: float32[n0, n2])"
    assert str(entry).endswith(text)
    assert [size.name for size in entry.sizes] == ["n0", "n1", "n2"]
    assert {size.least for size in entry.sizes} == {1}
    header = (tmp_path / "model.h").read_text()
    assert "_at(const void* library, int64_t n0, int64_t n1, int64_t n2,\n" in header
    assert "const float* x, const float* y, float* output, void* workspace" in header


def test_sizes_that_a_program_does_not_take_are_errors(tmp_path):
    library = _library(mlp(), tmp_path, random(5, 512), dynamic={"x": (0,)})
    (entry,) = library.entries.values()
    assert entry.serves(1) and entry.serves(5)
    assert not any(map(entry.serves, (0, -1, 2**49, 2**64 + 1)))
    for shape, why in (
        ((0, 512), "n0 from 1 to"),
        ((3, 511), "no entry takes"),
        ((2, 3, 512), "no entry takes"),
    ):
        with pytest.raises(front_end.LibraryError, match=why):
            library(numpy.zeros(shape, "float32"))
    library = _library(lambda x, y: x + y, tmp_path, random(5), random(5), dynamic=True)
    x = numpy.zeros(3, "float32")
    assert library(x, x).shape == (3,)
    with pytest.raises(front_end.LibraryError, match="no entry takes"):
        library(x, numpy.zeros(4, "float32"))


@pytest.mark.lengthy
def test_sizes_whose_numbers_do_not_fit_are_errors(tmp_path):
    library = _library(lambda x, y, z: x[:, None, None] + y[:, None] + z, tmp_path,
                       random(3), random(4), random(5), dynamic=True)  # fmt: skip
    (entry,) = library.entries.values()
    assert front_end._Prepared(entry, (3, 4, 5)).workspace_bytes >= 0
    for sizes in ((2**40, 2**40, 2), (2**49, 1, 1), (-1, 2, 2)):
        with pytest.raises(front_end.LibraryError, match="n0 from 1 to"):
            front_end._Prepared(entry, sizes)


def test_bad_arguments_are_codes(tmp_path):
    library = _library(lambda x: x * 2, tmp_path, random(5), dynamic=True)
    whole, functions = library._library, library._functions
    code = front_end._Number()

    def at(library, entry, sizes, memory):
        given = (front_end._Number * 1)(*sizes) if sizes else None
        found = functions.heterosis_at(library, entry, given, memory, front_end.ctypes.byref(code))
        return found or code.value

    memory = numpy.zeros(functions.heterosis_at_bytes(whole, 0) + 64, "uint8")
    place = front_end._aligned(memory)
    assert at(None, 0, [3], place) == -1
    assert at(whole, 1, [3], place) == -2
    assert at(whole, 0, None, place) == -3
    assert at(whole, 0, [3], None) == at(whole, 0, [3], place + 8) == -4
    assert at(whole, 0, [0], place) == at(whole, 0, [2**60], place) == -9
    assert functions.heterosis_workspace_bytes(whole, 0) == -9
    assert functions.heterosis_input_extent(whole, 0, 0, 0) == -9
    assert functions.heterosis_input_extent_text(whole, 0, 0, 1) is None
    x, y = numpy.arange(3, dtype="float32"), numpy.zeros(3, "float32")
    given, made = front_end._addresses([x]), front_end._addresses([y])
    assert functions.heterosis_run_with(whole, 0, given, made, place, None) == -9
    assert b"heterosis_at" in functions.heterosis_message(whole, 0, -9)
    found = at(whole, 0, [3], place)
    assert found == place
    assert functions.heterosis_sizes(found, 0) == 0
    assert functions.heterosis_output_bytes(found, 0, 0) == 12
    assert functions.heterosis_output_extent(found, 0, 0, 0) == 3
    assert functions.heterosis_run_with(found, 1, given, made, place, None) == -2
    assert at(found, 0, None, None) == found
    workspace = numpy.zeros(functions.heterosis_workspace_bytes(found, 0) + 64, "uint8")
    run = functions.heterosis_run_with
    assert run(found, 0, given, made, front_end._aligned(workspace), None) == 0
    assert (y == x * 2).all()
    assert functions.heterosis_close(found) == 0


def test_an_entry_with_sizes_behind_others(tmp_path):
    compiled = heterosis.hybridize(lambda x: x * 2 + x.shape[0], dynamic={"x": (0,)})
    for x in (random(5), random(5, 3)):
        compiled(x)
    path, _ = heterosis.export(compiled, tmp_path / "model")
    library = front_end.Library(path)
    assert len(library.entries) == 2
    for shape in ((4,), (9, 3), (1, 3), (1,)):
        x = random(*shape)
        assert library(x.asnumpy()).tobytes() == compiled(x).asnumpy().tobytes()


def test_random_numbers_of_several_open_extents(tmp_path):
    """Whichever of them is larger."""

    def noisy(x):
        return x + np.random.normal(size=x.shape)

    library = _library(noisy, tmp_path, random(4, 8, 6), dynamic=True)
    compiled = heterosis.hybridize(noisy, dynamic=True)
    for shape in ((4, 8, 6), (9, 3, 2), (2, 30, 17)):
        np.random.seed(7)
        expected = compiled(random(*shape)).asnumpy()
        found = library(random(*shape).asnumpy(), numpy.array(7, "int64"))
        assert found.tobytes() == expected.tobytes()
    assert compiled.captures == 1
    with pytest.raises(
        front_end.LibraryError, match=r"got the sizes \(3,\); expected \(n0, n1, n2\)"
    ):
        library.entries["noisy"].serves(3)


def test_random_numbers_at_sizes(tmp_path):
    def noisy(x):
        return x + np.random.uniform(size=x.shape)

    library = _library(noisy, tmp_path, random(5), dynamic=True)
    compiled = heterosis.hybridize(noisy, dynamic=True)
    for n in (3, 5, 1000):
        x = random(n)
        np.random.seed(7)
        expected = compiled(x).asnumpy()
        assert library(x.asnumpy(), numpy.array(7, "int64")).tobytes() == expected.tobytes()


def test_random_numbers_beside_parameters_at_sizes(tmp_path):
    """Weights are packed at export, and the seed stands behind them."""
    dense = nn.Dense(64, in_units=32)
    dense.initialize()

    def dropped(x):
        return npx.dropout(dense(x), p=0.5, mode="always")

    library = _library(dropped, tmp_path, random(2, 32), dynamic=True)
    heterosis.save(heterosis.hybridize(dropped, dynamic=True), tmp_path / "saved", random(2, 32))
    saved = heterosis.load(tmp_path / "saved")
    for rows in (2, 5, 90):
        x = random(rows, 32)
        np.random.seed(7)
        expected = saved(x).asnumpy()
        assert library(x.asnumpy(), numpy.array(7, "int64")).tobytes() == expected.tobytes()


def test_failures_at_sizes_have_messages(tmp_path):
    library = _library(
        lambda x, i: x[i], tmp_path, random(5), np.array([1, 2], dtype="int64"), dynamic=True
    )
    x = random(9).asnumpy()
    assert (library(x, numpy.array([8, -9, 0], "int64")) == x[[8, -9, 0]]).all()
    with pytest.raises(front_end.LibraryError, match=": an index is out of bounds for axis 0"):
        library(x, numpy.array([0, 9, 1], "int64"))


@pytest.mark.parametrize("threads", [1, 2])
def test_levels_and_threads(threads, tmp_path):
    net, x = mlp(), random(7, 512)
    targets = ("x86-64", "x86-64-v3")
    library = _library(
        net, tmp_path, x, dynamic={"x": (0,)}, target=targets, threads=threads, weights="file"
    )
    for rows in (1, 3, 200):
        x = random(rows, 512)
        numpy.testing.assert_allclose(library(x.asnumpy()), net(x).asnumpy(), rtol=1e-4, atol=1e-5)


def test_saved_programs_become_libraries(tmp_path, capsys):
    """As `heterosis.save` writes them, with open extents."""
    net, saved = mlp(), str(tmp_path / "saved.hx")
    heterosis.save(net, saved, random(1, 512))
    assert main(["export", saved]) == 0
    library = front_end.Library(capsys.readouterr().out.splitlines()[0])
    compiled = heterosis.hybridize(lambda x: net(x), dynamic=True)
    for rows in (1, 2, 50):
        x = random(rows, 512)
        assert library(x.asnumpy()).tobytes() == compiled(x).asnumpy().tobytes()
    assert main(["inspect", str(tmp_path / "libsaved.so")]) == 0
    shown = capsys.readouterr().out
    assert "float32[n0, 512]" in shown
    assert "n0: from 1 on" in shown


@pytest.mark.lengthy
def test_sizes_that_have_no_plan_are_told_of(tmp_path, capsys):
    """A loop is planned for every size by itself."""
    with pytest.warns(UserWarning, match="serves no sizes like n0 ="):
        library = _library(until_small, tmp_path, random(5), dynamic=True)
    assert library(random(9).asnumpy())[0].shape == (9,)
    why = "at n0 = 3000: .* as far as the library has a plan .* export it with sample inputs"
    with pytest.raises(front_end.LibraryError, match=why):
        library(random(3000).asnumpy())
    (entry,) = library.entries.values()
    assert entry.serves(9)
    assert not entry.serves(3000)
    assert main(["inspect", str(tmp_path / "libmodel.so")]) == 0
    (line,) = (line for line in capsys.readouterr().out.splitlines() if "n0: " in line)
    assert line.startswith("  n0: 1 to ")
    assert "on" not in line


# What a program does not serve that was to be open: its function, the axes, samples, and what is
# told of it, and why.
def _more_than_one(x):
    if x.shape[0] < 2:
        raise ValueError("one row is too few")
    return x - x.mean(axis=0)


def _of_five(x):
    return x + np.ones(5)


UNSERVED = {
    "no rows of 1": (_more_than_one, {"x": (0,)}, [(4, 3)], ["no calls with 1 on axis 0 of x",
                                                              "one row is too few"]),
    "one extent alone": (_of_five, {"x": (0, 1)}, [(4, 5)], ["only 5 on axis 1 of x"]),
    "none": (_of_five, True, [(5,)], ["only 5 on axis 0 of x", "n0 == 5"]),
    "equal extents": (lambda x: x * 2, {"x": (0, 1)}, [(4, 4)],
                      ["only equal extents on axis 0 of x and axis 1 of x", "some that differ"]),
    "another program": (lambda x: x * 2 if x.shape[0] > 10 else x - 1, {"x": (0,)}, [(4, 3)],
                        ["no sizes like n0 = 11", "where -n0 >= -10, asked at ", "one more"]),
    "even sizes": (lambda x: x * 2 if x.shape[0] % 2 else x - 1, {"x": (0,)}, [(9,)],
                   ["no sizes like n0 = 8", "Export one more"]),
    "others where 1": (lambda x: np.squeeze(x) if x.shape[0] == 1 else x, {"x": (0,)}, [(4, 3)],
                       ["no calls with 1 on axis 0 of x", "its results are others"]),
}  # fmt: skip


@pytest.mark.parametrize("label", UNSERVED)
def test_what_may_not_stay_open_is_told(label, tmp_path):
    function, dynamic, shapes, told = UNSERVED[label]
    inputs = [random(*shape) for shape in shapes]
    with pytest.warns(UserWarning, match="what is exported serves") as caught:
        library = _library(function, tmp_path, *inputs, dynamic=dynamic)
    (warning,) = (str(w.message) for w in caught if "what is exported serves" in str(w.message))
    for part in told:
        assert part in warning
    found, expected = library(*(x.asnumpy() for x in inputs)), function(*inputs).asnumpy()
    numpy.testing.assert_allclose(found, expected, rtol=1e-6)


def test_our_own_faults_are_not_taken_for_refusals(tmp_path, monkeypatch):
    """What is wrong inside of a capture does not make a library for fewer sizes."""
    real = open_calls.capture

    def faulty(function, *call, opening):
        if trees.arrays_in(call) and next(iter(trees.arrays_in(call))).shape[0] == 1:
            return real(function, None, None, opening=opening)
        return real(function, *call, opening=opening)

    monkeypatch.setattr(open_calls, "capture", faulty)
    with pytest.raises(TypeError):
        heterosis.export(np.exp, tmp_path / "model", random(5), dynamic=True)
    refused = open_calls.refuses
    assert refused(ArgumentError("x"))
    assert not refused(ScheduleError("x"))
    assert not refused(ProgramError("x"))
    assert not refused(KeyError("x"))
