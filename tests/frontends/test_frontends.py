"""Exported libraries, called from Python without Heterosis and from C: the same bits as here."""

import contextlib
import gc
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy
import pytest

import heterosis
from heterosis import autograd, np, npx
from heterosis.cli import main
from heterosis.gluon import nn, rnn
from heterosis.runtime.errors import ArgumentError, UninitializedError, UnsupportedError
from tests.frontends import FRONTENDS, check, damage, python_front_end
from tests.frontends.models import (
    INTEGERS,
    convolution_net,
    embedding,
    mlp,
    quotients,
    random,
    recurrent_net,
    runnable_levels,
    until_small,
)
from tests.threads.together import together

front_end = python_front_end()


SQUARE = np.array([[2, 1, 0], [0, 3, 1], [1, 0, 4]], dtype="float32")


def _absolute_or_twice(x):
    if x.sum() > 0:
        return x * 2
    return abs(x)


def _whole(*numbers):
    return np.array(numbers, dtype="int64")


PROGRAMS = {
    "mlp": (mlp, [random(1, 512)]),
    "mlp of 64": (mlp, [random(64, 512)]),
    "convolution net": (convolution_net, [random(2, 1, 28, 28)]),
    "recurrent net": (recurrent_net, [random(7, 3, 8)]),
    "embedding": (embedding, [np.array([[1, 5, 19]], dtype="int32")]),
    "loop": (lambda: until_small, [random(5)]),
    "choice": (lambda: _absolute_or_twice, [-abs(random(5))]),
    "attention": (
        lambda: lambda q, k, v: np.matmul(npx.softmax(np.matmul(q, k.swapaxes(1, 2))), v),
        [random(2, 9, 16)] * 3,
    ),
    "views and what is given": (lambda: lambda x: (x.T, x, x[1:], x), [random(4, 3)]),
    "no inputs that matter": (lambda: lambda x: np.arange(5) * 2, [random(2)]),
    "integers": (lambda: lambda x, y: (x // y, x % y, x & y), [_whole(-7, 9), _whole(2, 4)]),
    "short and unsigned integers": (lambda: quotients, INTEGERS),
    "float64": (lambda: np.exp, [np.array([0.5, -3.0], dtype="float64")]),
    "float16": (lambda: lambda x: x * x + 1, [random(40).astype("float16")]),
    "bfloat16": (lambda: np.sin, [random(37).astype("bfloat16")]),
    "every other one of bfloat16": (
        lambda: lambda x: np.exp(x[::3]),
        [random(100).astype("bfloat16")],
    ),
    "roundings": (lambda: lambda x: (np.floor(x), np.trunc(x), np.fmod(x, 0.3)), [random(37)]),
    "nothing": (lambda: lambda x: x + 1, [np.zeros((0, 3))]),
    "a number": (lambda: lambda x: x + 1, [np.array(2.0)]),
    "in order": (lambda: lambda x: np.sort(x), [random(100)]),
    "what is computed of constants": (
        lambda: lambda x: x @ np.linalg.inv(SQUARE) + SQUARE[1],
        [random(2, 3)],
    ),
    "memory moved": (lambda: lambda x: np.concatenate([x, x[::-1]]), [random(1000)]),
}


@pytest.fixture(autouse=True)
def one_thread():
    before = npx.settings.threads
    npx.settings.threads = 1  # as libraries run: sums of parts depend on how many there are
    yield
    npx.settings.threads = before


@pytest.mark.parametrize("label", PROGRAMS)
def test_libraries_give_the_same_bits(label, tmp_path):
    make, inputs = PROGRAMS[label]
    function = make()
    expected = heterosis.hybridize(lambda *arrays: function(*arrays))(*inputs)
    heterosis.export(function, tmp_path / "model", *inputs)
    library = front_end.Library(tmp_path / "libmodel.so")
    found = library(*(x.asnumpy() for x in inputs))
    expected = expected if isinstance(expected, tuple) else (expected,)
    found = found if isinstance(found, tuple) else (found,)
    for ours, theirs in zip(expected, found, strict=True):
        assert ours.asnumpy().tobytes() == theirs.tobytes()
        assert ours.shape == theirs.shape


@pytest.mark.parametrize("level", ["x86-64", "x86-64-v3", "x86-64-v4"])
def test_a_library_for_other_processors(level, tmp_path):
    """The same numbers up to rounding; where the processor is a lesser one, opening tells."""
    net, x = convolution_net(), random(2, 1, 28, 28)
    path, _ = heterosis.export(net, tmp_path / "model", x, target=level)
    if level not in runnable_levels():
        with pytest.raises(front_end.LibraryError, match="this processor lacks instructions"):
            front_end.Library(path)
        return
    numpy.testing.assert_allclose(
        front_end.Library(path)(x.asnumpy()), net(x).asnumpy(), rtol=1e-4, atol=1e-5
    )


def test_a_library_that_was_exported_again_is_the_new_one(tmp_path):
    libraries = []
    for number in (1, 2, 3):
        path, _ = heterosis.export(lambda x: x + number, tmp_path / "model", random(1))  # noqa: B023
        libraries += [front_end.Library(path), front_end.Library(path)]
    x = numpy.zeros(1, "float32")
    assert [int(library(x)[0]) for library in libraries] == [1, 1, 2, 2, 3, 3]


def _is_mapped(path):
    with open("/proc/self/maps") as lines:
        return any(os.path.basename(path) in line for line in lines)


def test_a_closed_library_is_unloaded_and_says_so(tmp_path):
    x = numpy.zeros(1, "float32")
    for number in (1, 2):
        path, _ = heterosis.export(lambda x: x + number, tmp_path / "closed", random(1))  # noqa: B023
        with front_end.Library(path) as library:
            assert int(library(x)[0]) == number
        assert not _is_mapped(path)
        library.close()
        (entry,) = library.entries.values()
        for use in (library, entry, lambda *_: entry.serves(), lambda *_: library.__enter__()):  # noqa: B023
            with pytest.raises(front_end.LibraryError, match="is closed; open its file once more"):
                use(x)
    first, second = front_end.Library(path), front_end.Library(path)
    first.close()
    assert int(second(x)[0]) == 2
    del second
    gc.collect()
    assert not _is_mapped(path)


def test_what_cannot_be_opened_is_unloaded(tmp_path):
    path, _ = heterosis.export(lambda x: x + 1, tmp_path / "refused", random(1), threads=2)
    with pytest.raises(front_end.LibraryError, match="threads=3"):
        front_end.Library(path, threads=3)
    gc.collect()
    assert not _is_mapped(path)


def test_a_library_is_closed_while_threads_call_it(tmp_path):
    net, x = mlp(), random(64, 512)
    path, _ = heterosis.export(net, tmp_path / "busy", x, threads=2)
    x = x.asnumpy()
    expected = front_end.Library(path)(x)
    for _ in range(10):
        library, answers = front_end.Library(path), []

        def call(number):
            if number == 0:
                while len(answers) < 5:  # noqa: B023
                    time.sleep(0.0001)
                return library.close()  # noqa: B023
            with contextlib.suppress(front_end.LibraryError):
                while True:
                    answers.append((library(x) == expected).all())  # noqa: B023

        together(call, 4)
        assert all(answers)
        gc.collect()
        assert not _is_mapped(path)


def test_an_entry_for_each_kind_of_arguments(tmp_path):
    net = mlp()
    net.hybridize()
    expected = {batch: net(random(batch, 512)).asnumpy() for batch in (1, 3)}
    paths = net.export(str(tmp_path / "my_mlp"), format="native")
    assert paths == (str(tmp_path / "libmy_mlp.so"), str(tmp_path / "my_mlp.h"))
    library = front_end.Library(paths[0])
    assert list(library.entries) == ["forward", "forward_1"]
    assert str(library).startswith("forward(x: float32[1, 512]) -> (output: float32[1, 2])")
    for batch, ours in expected.items():
        assert (library(random(batch, 512).asnumpy()) == ours).all()
    with pytest.raises(front_end.LibraryError, match="no entry takes"):
        library(numpy.zeros((2, 512), "float32"))


def test_states_that_callers_keep(tmp_path):
    """A recurrent layer exports what it was called with: states are arrays in and out."""
    net, x = recurrent_net(), random(7, 3, 8)
    net.hybridize()
    states = net.begin_state(3)
    outputs, after = net(x, states)
    path, _ = net.export(str(tmp_path / "model"), format="native")
    found = front_end.Library(path)(*(a.asnumpy() for a in (x, *states)))
    for ours, theirs in zip((outputs, *after), found, strict=True):
        assert (ours.asnumpy() == theirs).all()


def _wide_recurrent_net():
    net = rnn.LSTM(64, input_size=64)
    net.initialize()
    return net


def _dense_layers():
    net = nn.HybridSequential()
    net.add(*(nn.Dense(128, in_units=128, activation="tanh") for _ in range(6)))
    net.initialize()
    return net


@pytest.mark.parametrize(
    "make, shape, most",
    [(mlp, (1, 512), 20_000), (mlp, (64, 512), 40_000), (_wide_recurrent_net, (35, 1, 64), 45_000),
     (_dense_layers, (8, 128), 45_000)],
)  # fmt: skip
def test_a_library_is_small_and_needs_the_c_library_at_most(make, shape, most, tmp_path):
    """What it has beyond its parameters, of which none is there twice."""
    net = make()
    path, _ = heterosis.export(net, tmp_path / "model", random(*shape))
    weights = sum(p.data().size * 4 for p in net.collect_params().values())
    assert Path(path).stat().st_size - weights < most
    if shutil.which("readelf"):
        shown = subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True)
        assert "NEEDED" not in shown.stdout


_OF_FILES = {"open", "lseek", "pread", "mmap", "mprotect", "munmap", "close"}
_OF_THREADS = {"pthread_create", "pthread_join", "pthread_sigmask", "sigfillset", "syscall"}


@pytest.mark.skipif(not shutil.which("nm"), reason="there is no nm")
@pytest.mark.parametrize(
    "options, needed",
    [({}, set()), ({"weights": "file"}, _OF_FILES), ({"threads": 2}, _OF_THREADS)],
)
def test_what_a_library_shows_and_needs(options, needed, tmp_path):
    """It shows the functions of `heterosis.h`, all of them and nothing else."""
    path, header = heterosis.export(mlp(), tmp_path / "model", random(1, 512), **options)
    shown = subprocess.run(["nm", "-D", path], capture_output=True, text=True, check=True).stdout
    kinds = {line.split()[-1].split("@")[0]: line.split()[-2] for line in shown.splitlines()}
    text = Path(header).with_name("heterosis.h").read_text()
    declared = set(re.findall(r"^[a-z].*?\b(heterosis_\w+)\(", text, re.MULTILINE))
    inline = set(re.findall(r"^static .*?\b(heterosis_\w+)\(", text, re.MULTILINE))
    assert {name for name, kind in kinds.items() if kind == "T"} == declared - inline
    assert {name for name, kind in kinds.items() if kind == "U"} == needed
    assert set(kinds.values()) <= {"T", "U"}


HELD = np.array(numpy.random.default_rng(3).normal(size=(40, 1000)), dtype="float32")

# Functions of which a library has a part of `HELD`, and the bytes of that, about.
PARTS = {
    "rows": (lambda x: x + HELD[3:5], 8_000),
    "rows twice": (lambda x: (x + HELD[3:5]) * HELD[7] + HELD[3:5], 12_000),
    "columns": (lambda x: x[:, :10] + HELD[3:5, :10], 160_000),
    "all": (lambda x: (x + HELD[:2]) @ HELD.T, 160_000),
    "rows of rows": (lambda x: x + HELD[10:20].reshape(2, 5000)[:, :1000], 40_000),
    "given back": (lambda x: (x, HELD[4]), 4_000),
}


@pytest.mark.parametrize("label", PARTS)
def test_a_library_has_of_an_array_what_is_read(label, tmp_path):
    function, size = PARTS[label]
    x = random(2, 1000)
    expected = heterosis.hybridize(lambda x: function(x))(x)
    path, _ = heterosis.export(function, tmp_path / "model", x)
    found = front_end.Library(path)(x.asnumpy())
    expected = expected if isinstance(expected, tuple) else (expected,)
    found = found if isinstance(found, tuple) else (found,)
    for ours, theirs in zip(expected, found, strict=True):
        assert ours.asnumpy().tobytes() == theirs.tobytes()
    assert size <= Path(path).stat().st_size < size + 30_000


def test_inspecting(tmp_path, capsys):
    path, header = heterosis.export(lambda x: x + 1, tmp_path / "more", random(5))
    assert main(["inspect", path]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"more: {Path(path).stat().st_size:,} bytes")
    assert "(x: float32[5]) -> (output: float32[5])" in shown
    for wrong in (header, str(tmp_path / "nowhere")):
        assert main(["inspect", wrong]) == 1
        assert wrong in capsys.readouterr().err


def _noisy(x):
    return x + np.random.uniform(size=3), np.random.normal(size=4)


def _walk(x):
    y = np.random.uniform(size=3)
    while (x * x).sum() < 20:
        x = x + np.random.uniform(size=3)
    return x, y, np.random.randint(0, 1000, size=3)


def _dropped(x):
    with autograd.train_mode():
        return npx.dropout(x, 0.5)


def _drawn_with_arrays(x):
    """What is computed of these arrays alone is computed at export."""
    rates, chances = np.array([1.0, 2.0, 3.0]), np.array([0.2, 0.3, 0.5])
    return (
        np.random.multinomial(10, [0.2, 0.3, 0.5], size=(4,)),
        np.random.poisson(rates) + x,
        np.random.gamma(rates),
        np.random.binomial(5, chances * 0.5),
        np.random.choice(3, size=4, p=chances),
    )


@pytest.mark.parametrize("function", [_noisy, _walk, _dropped, _drawn_with_arrays])
def test_random_numbers_follow_from_a_seed(function, tmp_path):
    """Those that a hybridized call draws right after the seed was set."""
    x = random(3)
    path, _ = heterosis.export(function, tmp_path / "model", x)
    library, compiled = front_end.Library(path), heterosis.hybridize(lambda x: function(x))
    (entry,) = library.entries.values()
    assert str(entry.inputs[-1]) == "seed: int64[]"
    results = []
    for seed in (0, 7, 7, 2**40):
        np.random.seed(seed)
        expected = compiled(x)
        expected = expected if isinstance(expected, tuple) else (expected,)
        found = library(x.asnumpy(), numpy.array(seed, "int64"))
        found = found if isinstance(found, tuple) else (found,)
        for ours, theirs in zip(expected, found, strict=True):
            assert ours.asnumpy().tobytes() == theirs.tobytes()
        results.append(b"".join(array.tobytes() for array in found))
    assert results[1] == results[2]
    assert len(set(results)) > 1


def _layer_with_cache(token, place, keys, values):
    """One step of attention to all places so far, with a cache of 16 places of 8 numbers."""
    here = (np.arange(16) == place).reshape(16, 1)
    keys, values = np.where(here, token, keys), np.where(here, token * 2, values)
    scores = np.where(np.arange(16) <= place, np.matmul(keys, token.reshape(8, 1))[:, 0], -1e9)
    return np.matmul(npx.softmax(scores).reshape(1, 16), values)[0], keys, values


def test_a_cache_that_the_caller_keeps(tmp_path):
    tokens, cache = random(6, 8), [np.zeros((16, 8)), np.zeros((16, 8))]
    path, _ = heterosis.export(_layer_with_cache, tmp_path / "step", tokens[0], _whole(0), *cache)
    library, step = front_end.Library(path), heterosis.hybridize(_layer_with_cache)
    kept = [array.asnumpy() for array in cache]
    for i in range(6):
        expected, *cache = step(tokens[i], _whole(i), *cache)
        found, *kept = library(tokens[i].asnumpy(), numpy.array([i]), *kept)
        assert found.tobytes() == expected.asnumpy().tobytes()


def test_saved_programs_become_libraries(tmp_path, capsys):
    net, x = mlp(), random(3, 512)
    saved = str(tmp_path / "saved.hx")
    net.hybridize(dynamic=False)
    heterosis.save(net, saved, x)
    assert main(["export", saved, "--format", "native", "--target", "x86-64"]) == 0
    path = str(tmp_path / "libsaved.so")
    assert capsys.readouterr().out.splitlines() == [path, str(tmp_path / "saved.h")]
    library = front_end.Library(path)
    assert library.target == "x86-64"
    numpy.testing.assert_allclose(library(x.asnumpy()), net(x).asnumpy(), rtol=1e-4, atol=1e-5)
    other = ["--output", str(tmp_path / "other"), "--threads", "2", "--weights", "file"]
    assert main(["export", saved, *other]) == 0
    assert main(["inspect", str(tmp_path / "libother.so")]) == 0
    assert "2 threads" in capsys.readouterr().out


def test_failures_are_codes_with_messages(tmp_path):
    heterosis.export(lambda x, i: x[i], tmp_path / "item", random(5), _whole(1, 2))
    library = front_end.Library(tmp_path / "libitem.so")
    x = random(5).asnumpy()
    assert (library(x, numpy.array([4, -5], dtype="int64")) == x[[4, -5]]).all()
    with pytest.raises(front_end.LibraryError, match=": an index is out of bounds for axis 0"):
        library(x, numpy.array([0, 5], dtype="int64"))


def test_bad_arguments_are_codes(tmp_path):
    heterosis.export(until_small, tmp_path / "model", random(5))
    opened = front_end.Library(tmp_path / "libmodel.so")
    functions = opened._functions
    ask = functions.heterosis_open
    ask.restype, ask.argtypes = front_end._Address, [front_end._Number, front_end._Address]
    library = ask(2, None)
    assert not ask(1, None)
    assert functions.heterosis_entries(None) == functions.heterosis_entries(library + 8) == -1
    assert functions.heterosis_entry_name(library, 1) is None
    assert functions.heterosis_inputs(library, -1) == functions.heterosis_inputs(library, 1) == -2
    assert functions.heterosis_input_extent(library, 0, 0, 1) == -2
    assert functions.heterosis_output_bytes(library, 0, 2) == -2
    x, y, n = numpy.zeros(5, "float32"), numpy.zeros(5, "float32"), numpy.zeros((), "float32")
    given, made = front_end._addresses([x]), front_end._addresses([y, n])
    missing = front_end._addresses([y]), front_end._addresses([])
    memory = numpy.zeros(functions.heterosis_workspace_bytes(library, 0) + 64, "uint8")
    workspace = memory.ctypes.data + -memory.ctypes.data % 64

    run = functions.heterosis_run
    run.restype, (*run.argtypes, _) = front_end._FUNCTIONS["run_with"]

    assert run(library, 0, given, made, workspace) == 0
    assert run(None, 0, given, made, workspace) == -1
    assert run(library, 1, given, made, workspace) == -2
    assert run(library, 0, None, made, workspace) == run(library, 0, given, None, workspace) == -3
    assert run(library, 0, missing[1], made, workspace) == -3
    assert run(library, 0, given, made, None) == run(library, 0, given, made, workspace + 1) == -4
    assert b"aligned" in functions.heterosis_message(library, 0, -4)
    assert functions.heterosis_message(library, 7, 1 << 20) == b"the program failed"


@pytest.mark.lengthy
@pytest.mark.parametrize("language", ["Python", "C++"])
def test_damaged_files_are_errors_and_are_not_loaded(language, tmp_path):
    if language == "Python":
        opening = damage.by_python()
    elif shutil.which("c++"):
        opening = damage.by_cpp(damage.built(tmp_path))
    else:
        pytest.skip("there is no c++")
    path, _ = heterosis.export(until_small, tmp_path / "model", random(5))
    with opening as opens:
        assert opens(Path(path))
        assert damage.accepted(opens, Path(path), count=200, seed=0) == []
        with_file = damage.sample(tmp_path)
        assert opens(with_file)
        assert damage.accepted(opens, with_file, 100, seed=0, of_weights=True) == []


def test_a_library_of_another_version_is_told(tmp_path):
    path, _ = heterosis.export(until_small, tmp_path / "model", random(5))
    content = Path(path).read_bytes()
    Path(path).write_bytes(content[:-16] + b"\3" + content[-15:])
    with pytest.raises(front_end.LibraryError, match="has version 3"):
        front_end.Library(path)


def test_what_a_library_cannot_do_is_refused(tmp_path):
    state = np.zeros(3)

    def writes(x):
        state[:] = x
        return x

    def checks(x):
        assert x.sum() > 0, "not positive"
        return x

    def prints(x):
        npx.print(x)
        return x

    x = random(3)
    for function, why in (
        (prints, "prints, by npx.print"),
        (writes, "writes to arrays"),
        (checks, "checks arrays"),
        (lambda x: (x, 3), "holds, a int"),
        (lambda x: np.linalg.inv(x.reshape(3, 1) * x), "computes inverse, which is linear algebra"),
        (lambda x: np.linalg.svd(x * np.ones((3, 1)))[1], "computes singular, which is"),
    ):
        with pytest.raises(UnsupportedError, match=why):
            heterosis.export(function, tmp_path / "model", x)
    with pytest.raises(UninitializedError, match="no program yet"):
        heterosis.export(lambda x: x, tmp_path / "model")
    with pytest.raises(ArgumentError, match="letters, digits"):
        heterosis.export(lambda x: x, tmp_path / "my-model", x)
    with pytest.raises(ArgumentError, match=r"heterosis\.h has the functions that every library"):
        heterosis.export(lambda x: x, tmp_path / "heterosis", x)
    with pytest.raises(ArgumentError, match="expected some of x86-64"):
        heterosis.export(lambda x: x, tmp_path / "model", x, target="avx2")
    with pytest.raises(ArgumentError, match="format"):
        mlp().export(str(tmp_path / "model"), format="elf")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return [check.exported(label, tmp_path_factory.mktemp("model")) for label in check.MODELS]


@pytest.mark.lengthy
@pytest.mark.parametrize("name", check.LANGUAGES)
def test_languages_give_the_same_bits(name, models, tmp_path):
    language = check.LANGUAGES[name]
    if missing := language.missing():
        pytest.skip(f"{missing}: bash frontends/check.sh --install")
    language.made(tmp_path)
    for model in models:
        assert model.check(language, tmp_path) > 0


def test_languages_that_are_missing_are_told(monkeypatch, capsys):
    """And with `--all`, they are a failure."""
    absent = check.Language("None", "c", ["no-such-program"], [])
    present = check.Language("Python", "python", ["true"], [sys.executable, "run_files.py"])
    monkeypatch.setattr(check, "LANGUAGES", {"None": absent, "Python": present})
    monkeypatch.setattr(check, "MODELS", {"loop": check.MODELS["loop"]})
    assert check.main([]) == 0
    shown = capsys.readouterr().out
    assert "not checked: None: there is no no-such-program" in shown
    assert "1 of 1 models x languages are equal to the bit" in shown
    assert check.main(["--all"]) == 1


def _named_like_keywords(double, switch, new, linux, NULL, heterosis_run, memory):
    return double + switch * new - linux + NULL * heterosis_run + memory


def _other_labels(arrays):
    return {"a b": arrays["*/ x; /*"] + arrays["größe"], "a_b": arrays["a\nb"], "\0": arrays["1"]}


HEADERS = {
    "keywords": (_named_like_keywords, [random(3)] * 7, {}),
    "keywords at sizes": (_named_like_keywords, [random(3)] * 7, {"dynamic": True}),
    "labels": (_other_labels, [dict.fromkeys(("*/ x; /*", "größe", "a\nb", "1"), random(3))], {}),
}


@pytest.mark.parametrize("label", HEADERS)
@pytest.mark.parametrize("compiler", ["cc -x c -std=c11", "c++ -x c++ -std=c++20"])
def test_headers_compile_whatever_arrays_are_called(label, compiler, tmp_path):
    command = compiler.split()
    if not shutil.which(command[0]):
        pytest.skip(f"there is no {command[0]}")
    function, inputs, options = HEADERS[label]
    _, header = heterosis.export(function, tmp_path / "model", *inputs, **options)
    assert "x; /*" not in re.sub(r"/\*.*?\*/", "", Path(header).read_text(), flags=re.DOTALL)
    options = ["-Wall", "-Wextra", "-Werror", "-Wno-unused-function", "-fsyntax-only"]
    subprocess.run([*command, *options, header], check=True)


_COMPILED_C = (
    "cc -std=gnu11 -Wall -Wextra -Werror library_test.c -I. -L. -lmy_mlp -ldl -Wl,-rpath,."
    " -o library_test"
)
_COMPILED_CPP = f"c++ -std=c++20 -Wall -Wextra -Werror library_test.cpp -I{check.HEADER} -ldl"
_OWN_TESTS = {
    "C": ["sh", "-c", f"cp library_test.c @ && cd @ && {_COMPILED_C} && ./library_test"],
    "C++": ["sh", "-c", f"{_COMPILED_CPP} -o @/library_test && @/library_test"],
    "Python": [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "library_test.py"],
    "JavaScript": ["npm", "test"],
    "Perl": ["prove", "-l"],
    "Java": ["java", "-cp", f"{check._JNA}:@/java", "LibraryTest"],
    "Scala": ["scala", "-cp", f"{check._JNA}:@/scala", "LibraryTest"],
    "R": ["Rscript", "tests/library.R"],
}


@pytest.mark.parametrize("name", _OWN_TESTS)
def test_tests_of_front_ends(name, tmp_path):
    """Those that are written in the language itself."""
    language = check.LANGUAGES[name]
    if missing := language.missing():
        pytest.skip(f"{missing}: bash frontends/check.sh --install")
    path, _ = heterosis.export(mlp(), tmp_path / "my_mlp", random(1, 512))
    sized, _ = heterosis.export(mlp(), tmp_path / "sized", random(5, 512), dynamic={"x": (0,)})
    whole, _ = heterosis.export(
        lambda x: x + x, tmp_path / "whole", np.array([1, 2, 3], dtype="int8"), threads=4
    )
    other, _ = heterosis.export(lambda x: x, tmp_path / "other", random(3), target="aarch64-linux")
    language.made(tmp_path)
    done = subprocess.run(
        [word.replace("@", str(tmp_path)) for word in _OWN_TESTS[name]],
        cwd=FRONTENDS / language.folder, capture_output=True, text=True, check=False,
        env=os.environ
        | {"HETEROSIS_LIBRARY": path, "HETEROSIS_SIZED": sized, "HETEROSIS_WHOLE": whole}
        | {"HETEROSIS_OTHER": other}
        | {"R_LIBS": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", check.LANGUAGES)
def test_every_language_has_a_page_and_tests(name):
    page = FRONTENDS / check.LANGUAGES[name].folder / "README.md"
    assert page.read_text().startswith(f"# Exported libraries in {name}")
    assert name in _OWN_TESTS


_README = {
    "c": ("scores.c", "no error: "),
    "cpp": ("scores.cpp", ""),
}


@pytest.mark.parametrize("language", _README)
def test_programs_of_pages(language, tmp_path):
    """They are built as the page says, and print finite numbers."""
    if not shutil.which("c++"):
        pytest.skip("there is no c++")
    text = (FRONTENDS / language / "README.md").read_text()
    source, begin = _README[language]
    (tmp_path / source).write_text(re.search(rf"```{language}\n(.*?)```", text, re.DOTALL)[1])
    heterosis.export(mlp(), tmp_path / "my_mlp", random(1, 512))
    shutil.copy(FRONTENDS / "cpp" / "heterosis.hpp", tmp_path)
    (command,) = re.findall(r"```console\n\$ (.*)\n", text)
    done = subprocess.run(["sh", "-ec", command], cwd=tmp_path, capture_output=True, text=True,
                          check=True)  # fmt: skip
    assert done.stdout.startswith(begin)
    assert [float(word) for word in done.stdout.removeprefix(begin).split()] == [0.0, 0.0]


_EXAMPLES = {
    "c": "cc -std=c11 -Wall -Wextra -Werror run_mlp.c -I. -L. -lmy_mlp -Wl,-rpath,. -o run_mlp",
    "cpp": "c++ -std=c++20 -Wall -Wextra -Werror run_mlp.cpp -I. -ldl -o run_mlp",
}


@pytest.mark.parametrize("language", _EXAMPLES)
def test_examples_that_are_compiled(language, tmp_path):
    command = _EXAMPLES[language].split()
    if not shutil.which(command[0]):
        pytest.skip(f"there is no {command[0]}")
    net = mlp()
    x = np.array((numpy.arange(512) % 7).astype("float32") / numpy.float32(7)).reshape(1, 512)
    expected = heterosis.hybridize(net)(x).asnumpy().ravel()
    heterosis.export(net, tmp_path / "my_mlp", x)
    for path in (FRONTENDS / language).iterdir():
        shutil.copy(path, tmp_path)
    subprocess.run(command, cwd=tmp_path, check=True)
    shown = subprocess.run(["./run_mlp"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert [float.fromhex(word) for word in shown.stdout.split()] == list(map(float, expected))
    if language == "cpp":
        _refuses_damaged_files(tmp_path)


def _refuses_damaged_files(folder):
    """Nothing of a damaged library is loaded by the program in this folder, which says why."""
    command, options = ["./run_mlp"], {"cwd": folder, "capture_output": True, "text": True}
    path = folder / "libmy_mlp.so"
    whole = path.read_bytes()
    flipped = bytearray(whole)
    flipped[64] ^= 1  # the type of the first segment
    for content, why in (
        (b"", "cut short"),
        (whole[:-1], "cut short"),
        (whole[:100], "cut short"),
        (bytes(flipped), "damaged"),
        (whole[4096:], "damaged"),
        (whole[:-16] + b"\3" + whole[-15:], "another version"),
    ):
        path.write_bytes(content)
        shown = subprocess.run(command, check=False, **options)
        assert (shown.returncode, shown.stdout) == (1, "")
        assert why in shown.stderr
    path.unlink()
    shown = subprocess.run(command, check=False, **options)
    assert shown.returncode == 1
    assert "cannot be opened" in shown.stderr
