"""Libraries for several processors, with threads: what is chosen, and the same bits as here."""

import multiprocessing
import os
import resource
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path

import numpy
import pytest

import heterosis
from heterosis import np, npx
from heterosis.backends.native.codegen.target import FALLBACK
from heterosis.backends.native.export import cases
from heterosis.gluon import nn
from heterosis.runtime.errors import ArgumentError, FileError
from tests.frontends import python_front_end
from tests.frontends.check import HEADER
from tests.frontends.models import convolution_net, mlp, random, recurrent_net, runnable_levels

front_end = python_front_end()


@pytest.fixture(autouse=True)
def threads_stay():
    before = npx.settings.threads
    yield
    npx.settings.threads = before


MODELS = {
    "mlp": (mlp, random(64, 512)),
    "convolution net": (convolution_net, random(2, 1, 28, 28)),
    "recurrent net": (recurrent_net, random(7, 3, 8)),
    "many elements": (lambda: lambda x: (np.tanh(x) * 2, x.sum(0)), random(700, 1000)),
}


def _convolutions():
    net = nn.HybridSequential()
    net.add(nn.Conv2D(64, 3, padding=1), nn.BatchNorm(), nn.Conv2D(64, 3, padding=1))
    net.initialize()
    return net


# Networks whose parameters are packed, as what is multiplied by them wants them.
PACKED = {
    "mlp": (mlp, random(64, 512), {}),
    "convolutions by transforms": (_convolutions, random(1, 32, 28, 28), {}),
    "recurrent net": (recurrent_net, random(7, 3, 8), {}),
    "sizes and threads": (mlp, random(3, 512), {"dynamic": {"x": (0,)}, "threads": 2}),
}


@pytest.mark.parametrize("label", MODELS)
def test_any_number_of_threads_gives_the_bits_of_replay(label, tmp_path):
    make, x = MODELS[label]
    function = make()
    npx.settings.threads = 3
    expected = heterosis.hybridize(lambda x: function(x))(x)
    expected = expected if isinstance(expected, tuple) else (expected,)
    path, _ = heterosis.export(function, tmp_path / "model", x, threads=3)
    for threads in (1, 2, 3):
        library = front_end.Library(path, threads=threads)
        for _ in range(10):
            found = library(x.asnumpy())
            found = found if isinstance(found, tuple) else (found,)
            for ours, theirs in zip(expected, found, strict=True):
                assert ours.asnumpy().tobytes() == theirs.tobytes()
    assert front_end.Library(path, threads=numpy.int32(2)).threads == 2
    for threads in (4, 0, -1, 2**64 + 1, "2", 1.0):
        with pytest.raises(front_end.LibraryError, match=f"threads={threads!r}; expected 1 to 3"):
            front_end.Library(path, threads=threads)


def test_threads_that_are_refused(tmp_path):
    with pytest.raises(ArgumentError, match="threads=0; expected 1 to"):
        heterosis.export(lambda x: x, tmp_path / "model", random(3), threads=0)


def _child(library, x, expected, answer):
    answer.put((library(x) == expected).all())


def test_a_pool_in_a_process_that_has_forked(tmp_path):
    """Its threads are not there, and the numbers are the same."""
    x = random(700, 1000)
    path, _ = heterosis.export(np.tanh, tmp_path / "model", x, threads=2)
    library, x = front_end.Library(path), x.asnumpy()
    forked = multiprocessing.get_context("fork")
    answer = forked.Queue()
    child = forked.Process(target=_child, args=(library, x, library(x), answer))
    child.start()
    assert answer.get(timeout=60)
    child.join()


def test_bad_pools_are_codes(tmp_path):
    path, _ = heterosis.export(lambda x: x * 2, tmp_path / "model", random(5), threads=2)
    library = front_end.Library(path)
    ask, (entry,) = library._ask, library.entries.values()
    x = random(5).asnumpy()
    arrays = front_end._addresses([x])

    def run(*fields):
        pool = (front_end._Address * 3)(*fields)
        return ask("run_with", 0, arrays, front_end._addresses([x.copy()]), 64, pool)

    assert entry.workspace_bytes == 0
    assert run(None, None, 1) == run(None, 1, 0) == run(None, 1, 3) == -7
    assert ask("pool_bytes", 0) == ask("pool_bytes", 3) == ask("pool_start", None, 2) == -7
    assert ask("pool_start", 32, 2) == ask("pool_stop", None) == -7
    place = library._pool + 8
    assert ask("pool_start", place, 2) == ask("pool_stop", place) == -7
    assert ask("run_with", 0, arrays, arrays, 64, None) == 0
    assert b"pool" in library._functions.heterosis_message(library._library, 0, -7)


def test_the_best_level_of_this_processor_is_chosen(tmp_path):
    net, x = mlp(), random(1, 512)
    here = runnable_levels()
    expected = front_end.Library(heterosis.export(net, tmp_path / "one", x, target=here[0])[0])
    path, _ = heterosis.export(net, tmp_path / "several", x, target=here)
    library = front_end.Library(path)
    assert library.target == expected.target == here[0]
    assert (library(x.asnumpy()) == expected(x.asnumpy())).all()
    weights = sum(p.data().size * 4 for p in net.collect_params().values())
    assert Path(path).stat().st_size < len(here) * (weights + 30_000)


@pytest.mark.parametrize("label", PACKED)
def test_a_lesser_processor_writes_the_same_library(label, tmp_path, monkeypatch):
    """Parameters are packed for the better one by instructions that this one has."""
    make, x, options = PACKED[label]
    net = make()
    net(x)
    best = runnable_levels()[0]

    def written():
        path, _ = heterosis.export(net, tmp_path / "model", x, target=best, **options)
        return Path(path).read_bytes()

    expected = written()
    monkeypatch.setattr(cases, "usable_targets", lambda: [FALLBACK])
    monkeypatch.setattr(cases, "host_target", lambda: FALLBACK)
    assert written() == expected


def test_arrays_that_levels_share_are_stored_once(tmp_path):
    table = random(1000, 100)
    path, _ = heterosis.export(lambda i: table[i], tmp_path / "rows", np.zeros(3, dtype="int64"),
                               target=runnable_levels())  # fmt: skip
    assert Path(path).stat().st_size < 400_000 + 60_000


@pytest.fixture(scope="module")
def stress(tmp_path_factory):
    if not shutil.which("cc"):
        pytest.skip("there is no cc")
    program = tmp_path_factory.mktemp("stress") / "stress"
    source = Path(__file__).with_name("stress.c")
    options = ["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{HEADER}"]
    subprocess.run(["cc", *options, source, "-ldl", "-pthread", "-o", program], check=True)
    return program


@pytest.mark.lengthy
def test_threads_of_a_program_share_a_library_and_a_pool(stress, tmp_path):
    path, _ = heterosis.export(convolution_net(), tmp_path / "net", random(2, 1, 28, 28), threads=3)
    done = subprocess.run([stress, path, "16", "1"], capture_output=True, text=True, check=True)
    assert "16 threads, a pool of 3" in done.stdout


@pytest.mark.parametrize("processor, level", [("Nehalem", "x86-64"), ("Haswell", "x86-64-v3")])
def test_lesser_processors_get_code_of_their_own(processor, level, stress, tmp_path):
    if not shutil.which("qemu-x86_64"):
        pytest.skip("there is no qemu-x86_64: apt-get install qemu-user")
    path, _ = heterosis.export(
        mlp(), tmp_path / "net", random(1, 512), target=runnable_levels(), threads=2
    )
    command = ["qemu-x86_64", "-cpu", processor, stress, path, "2", "0.2"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"{level}: ")


def test_a_processor_without_the_instructions_is_told(stress, tmp_path):
    if not shutil.which("qemu-x86_64"):
        pytest.skip("there is no qemu-x86_64: apt-get install qemu-user")
    path, _ = heterosis.export(mlp(), tmp_path / "net", random(1, 512), target=runnable_levels()[0])
    command = ["qemu-x86_64", "-cpu", "Nehalem", stress, path, "2", "0.2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "cannot be used here" in done.stderr


def _mlp_with_file(folder):
    net, x = mlp(), random(3, 512)
    path, _ = heterosis.export(net, folder / "net", x, weights="file")
    return Path(path), folder / "libnet.weights", x.asnumpy(), net


def test_parameters_in_a_file(tmp_path):
    path, weights, x, net = _mlp_with_file(tmp_path)
    inside, _ = heterosis.export(net, tmp_path / "inside", np.array(x))
    assert path.stat().st_size < 60_000 < weights.stat().st_size
    expected = front_end.Library(inside)(x)
    for check in (True, False):
        library = front_end.Library(path, check=check)
        assert (library(x) == expected).all()
    other = front_end.Library(path)  # opened twice, and each closed when it is not needed
    del library
    assert (other(x) == expected).all()
    with pytest.raises(ArgumentError, match="weights='outside'; expected 'inside'"):
        heterosis.export(net, tmp_path / "net", np.array(x), weights="outside")


def test_files_of_parameters_that_do_not_fit(tmp_path):
    path, weights, x, _ = _mlp_with_file(tmp_path)
    (tmp_path / "other").mkdir()
    _, mixed, *_ = _mlp_with_file(tmp_path / "other")
    whole = weights.read_bytes()
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 1
    for content, why, whatever in (
        (mixed.read_bytes(), "of another export", True),
        (whole[:-5], "cut short", True),
        (whole[:-4096] + whole[-24:], "damaged", True),
        (b"", "cut short", True),
        (bytes(flipped), "damaged", False),  # what only reading all of it tells
    ):
        weights.write_bytes(content)
        for check in (True, False) if whatever else (True,):
            with pytest.raises(front_end.LibraryError, match=why):
                front_end.Library(path, check=check)
    weights.unlink()
    with pytest.raises(front_end.LibraryError, match=r"lib<name>\.weights, which was not given"):
        front_end.Library(path)
    weights.write_bytes(whole)
    assert front_end.Library(path)(x).shape == (3, 2)


@contextmanager
def _files_of_at_most(size):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_failed_export_leaves_the_older_library(tmp_path):
    path, weights, x, _ = _mlp_with_file(tmp_path)
    expected, names = front_end.Library(path)(x), sorted(tmp_path.iterdir())
    with _files_of_at_most(weights.stat().st_size // 2), pytest.raises(FileError, match="weights"):
        _mlp_with_file(tmp_path)
    assert sorted(tmp_path.iterdir()) == names
    assert (front_end.Library(path)(x) == expected).all()
    for header in ("net.h", "heterosis.h"):
        (tmp_path / header).unlink()
        (tmp_path / header).mkdir()
        with pytest.raises(FileError, match=f"{header}: Is a directory"):
            _mlp_with_file(tmp_path)
        assert sorted(tmp_path.iterdir()) == names
        assert (front_end.Library(path)(x) == expected).all()
        (tmp_path / header).rmdir()
        (tmp_path / header).touch()


def test_a_library_with_a_file_is_opened_with_it(tmp_path):
    path, weights, *_ = _mlp_with_file(tmp_path)
    kept = front_end.Library(path)
    functions = kept._functions
    code = front_end._Number()
    opened = functions.heterosis_open
    opened.restype = front_end._Address
    assert not opened(front_end._Number(front_end._VERSION), front_end.ctypes.byref(code))
    assert code.value == -8
    nowhere, version = os.fsencode(tmp_path / "nowhere"), front_end._VERSION
    assert not functions.heterosis_open_with(version, nowhere, front_end.ctypes.byref(code))
    assert code.value == -8
    library = functions.heterosis_open_with(version, os.fsencode(weights), None)
    assert functions.heterosis_entries(library) == 1
    assert functions.heterosis_entries(None) == functions.heterosis_close(None) == -1
    assert functions.heterosis_close(library) == 0
