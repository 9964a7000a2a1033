"""The door for files: names, bounds, and what is left of writers that were killed."""

import ast
import errno
import gzip
import os
import signal
import struct
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy
import pytest

import heterosis
from heterosis import gluon, image, np, npx, recordio, symbol
from heterosis.gluon import nn
from heterosis.gluon.data.vision import MNIST
from heterosis.io import files
from heterosis.io.atomic import write_together, written
from heterosis.runtime.errors import ArgumentTypeError, FileError, FormatError, MissingFileError


def _trainer():
    net = nn.Dense(1, in_units=1)
    net.initialize()
    return gluon.Trainer(net.collect_params(), "sgd")


READERS = {
    "npx.load": npx.load,
    "imread": image.imread,
    "symbol.load": symbol.load,
    "heterosis.load": heterosis.load,
    "load_parameters": lambda name: nn.Dense(1).load_parameters(name),
    "load_states": lambda name: _trainer().load_states(name),
    "check_sha1": lambda name: gluon.utils.check_sha1(name, ""),
    "MXRecordIO": lambda name: recordio.MXRecordIO(name, "r"),
    "imports": lambda name: gluon.SymbolBlock.imports(name, ["data"]),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("name", [True, 1, None, 2.5, b"\0", "a\0b"])
def test_a_number_is_no_name(reader, name):
    """It would be a descriptor, and closed after its use."""
    with pytest.raises(ArgumentTypeError, match=r"no name of a file|expected a string or a path"):
        READERS[reader](name)
    os.fstat(1)


def test_a_number_is_no_name_to_write_to():
    with pytest.raises(ArgumentTypeError, match="no name of a file"):
        npx.save(1, np.ones(2))
    os.fstat(1)


@pytest.mark.parametrize("reader", READERS)
def test_what_the_system_says_names_the_file(reader, tmp_path):
    with pytest.raises(MissingFileError, match=r"no file .*nowhere.*expected"):
        READERS[reader](str(tmp_path / "nowhere"))
    with pytest.raises(FileError, match="directory") as caught:
        READERS[reader](str(tmp_path))
    assert caught.value.errno


def test_a_file_without_end_is_bounded(monkeypatch):
    monkeypatch.setattr(files, "_room", lambda most: 1 << 20)
    with pytest.raises(FormatError, match="/dev/zero: it holds more than 1,048,576 bytes"):
        symbol.load("/dev/zero")


def _mnist(folder, head, zeros):
    """Two files that decompress to a head and that many zeros; they take a thousandth of it."""
    for name in ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"):
        with gzip.open(folder / f"{name}.gz", "wb") as file:
            file.write(head)
            piece = bytes(1 << 20)
            for _ in range(zeros >> 20):
                file.write(piece)


@pytest.mark.parametrize("head", [b"", struct.pack(">4I", 0x803, 1, 28, 28)])
def test_no_more_is_decompressed_than_is_wanted(head, tmp_path, monkeypatch):
    _mnist(tmp_path, head, 64 << 20)
    taken = []
    some = files.Source.some
    monkeypatch.setattr(files.Source, "some", lambda s, n: taken.append(n) or some(s, n))
    with pytest.raises(FormatError, match=r"begins with 0|more bytes follow"):
        MNIST(tmp_path)
    assert sum(taken) < 1 << 20


def test_a_head_that_promises_too_much(tmp_path):
    _mnist(tmp_path, struct.pack(">4I", 0x803, 1 << 31, 1 << 31, 1 << 31), 0)
    with pytest.raises(FormatError, match=r"should take .* bytes, and there can be"):
        MNIST(tmp_path)


def test_deep_json(tmp_path):
    (tmp_path / "deep").write_text("[" * 200_000)
    with pytest.raises(FormatError, match="deep: it is nested too deeply"):
        symbol.load(tmp_path / "deep")


def test_the_line_that_is_no_text(tmp_path):
    (tmp_path / "x.rec").write_bytes(b"")
    (tmp_path / "x.idx").write_bytes(b"0\t0\n1\t\xff\n")
    with pytest.raises(FormatError, match=r"x.idx: line 2 is no UTF-8 text"):
        recordio.MXIndexedRecordIO(tmp_path / "x.idx", tmp_path / "x.rec", "r")


def test_an_image_of_too_many_pixels():
    pixels = image.codec.encode(numpy.zeros((2, 2, 3), "uint8"), ".bmp")
    bomb = pixels[:18] + struct.pack("<ii", 1 << 20, 1 << 20) + pixels[26:]
    with pytest.raises(FormatError, match="decompression bomb"):
        image.imdecode(bomb)


def test_an_image_in_a_record_is_named(tmp_path):
    with recordio.MXIndexedRecordIO(tmp_path / "x.idx", tmp_path / "x.rec", "w") as file:
        file.write_idx(7, recordio.pack((0, 1.0, 7, 0), b"no image"))
    data = gluon.data.vision.ImageRecordDataset(str(tmp_path / "x.rec"))
    with pytest.raises(FormatError, match=r"x\.rec: record 7: imdecode"):
        data[0]


# Who opens and parses elsewhere than in the door, and why.
_ELSEWHERE = {
    "backends/heterosis_library.py": "read where Heterosis is not: the file of a library",
    "backends/native/compile/object_cache.py": "its entries prove themselves, and lie below it",
    "backends/native/compile/shipped.py": "a file of the package, whose entries prove themselves",
    "mxnet/compat/coverage.py": "a file of the package",
    "mxnet/compat/script.py": "a user's program, to be run",
    "demo.py": "what it has written itself",
    "gluon/data/transport.py": "messages between our own processes",
    "io/archives.py": "the door",
    "io/atomic.py": "the door",
    "io/files.py": "the door",
    "io/packing.py": "bytes that the door has read; it translates what is raised",
    "backends/native/compile/sized.py": "entries of the object cache",
    "backends/native/compile/stored.py": "entries of the object cache",
    "recordio.py": "it reads by position, through the door's translation",
    "runtime/registry.py": "a text, and no file",
    "runtime/raising.py": "a text, and no file",
    "capture/exporting.py": "a file of the package, as it was installed",
}
_OPENERS = {"open", "open_code", "fdopen", "read_bytes", "read_text"}
_PARSERS = {"gzip", "zlib", "bz2", "lzma", "tarfile", "zipfile", "json", "pickle", "mmap"}
_PARSING = {
    "load",
    "loads",
    "open",
    "decompress",
    "mmap",
    "GzipFile",
    "TarFile",
    "ZipFile",
    "fromfile",
}


def _reads(tree):
    """Whether a module calls something that opens or parses files."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = node.func
        if isinstance(called, ast.Name) and called.id in _OPENERS:
            return True
        if not isinstance(called, ast.Attribute):
            continue
        owner = called.value.id if isinstance(called.value, ast.Name) else ""
        opens = called.attr in _OPENERS - {"open"} or (
            owner in ("os", "io") and called.attr == "open"
        )
        if opens or (owner in _PARSERS | {"numpy"} and called.attr in _PARSING):
            return True
    return False


@pytest.mark.lengthy
def test_files_are_read_through_the_door():
    package = Path(heterosis.__file__).parent
    modules = {p.relative_to(package).as_posix(): p for p in package.rglob("*.py")}
    found = {name for name, path in modules.items() if _reads(ast.parse(path.read_text()))}
    assert found == set(_ELSEWHERE)


# -- several files --------------------------------------------------------------------------------


def _fails(file):
    file.write(b"new")
    raise OSError(errno.ENOSPC, "No space left on device")


def _writes(file):
    file.write(b"new")


def test_files_that_belong_together_are_replaced_together(tmp_path):
    names = [str(tmp_path / name) for name in "abc"]
    write_together(dict.fromkeys(names, lambda file: file.write(b"old")))
    for failing in names:
        with pytest.raises(FileError, match=f"{failing}: No space left"):
            write_together({name: _fails if name == failing else _writes for name in names})
        assert [Path(name).read_bytes() for name in names] == [b"old"] * 3
        assert sorted(map(str, tmp_path.iterdir())) == names
    (tmp_path / "d").mkdir()
    with pytest.raises(FileError, match="d: Is a directory"):
        write_together(dict.fromkeys([*names, str(tmp_path / "d")], _writes))
    assert [Path(name).read_bytes() for name in names] == [b"old"] * 3
    assert len(list(tmp_path.iterdir())) == 4
    write_together(dict.fromkeys(names, _writes))
    assert [Path(name).read_bytes() for name in names] == [b"new"] * 3


def test_what_is_left_in_a_buffer_is_written_before_any_file_is_replaced(tmp_path):
    (tmp_path / "a").write_text("old")
    with pytest.raises(FileError, match="full: No space left"):
        write_together({str(tmp_path / "a"): _writes, "/dev/full": _writes})
    assert (tmp_path / "a").read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


# -- writers that were killed ---------------------------------------------------------------------

_WRITER = """
import sys, time
from heterosis.io.atomic import written
with written(sys.argv[1]) as file:
    file.write(b"half")
    file.flush()
    print("writing", flush=True)
    time.sleep(60)
"""


def _writer(path):
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(_WRITER), str(path)], stdout=subprocess.PIPE
    )
    assert process.stdout.readline() == b"writing\n"
    return process


@pytest.mark.lengthy
def test_what_a_killed_writer_left_goes_with_the_next_save(tmp_path):
    with _writer(tmp_path / "old") as killed:
        killed.send_signal(signal.SIGKILL)
    assert len(list(tmp_path.glob("old.*.partial"))) == 1
    npx.save(tmp_path / "new", np.ones(2))
    assert [file.name for file in tmp_path.iterdir()] == ["new"]


@pytest.mark.lengthy
def test_what_is_being_written_stays(tmp_path):
    with _writer(tmp_path / "x") as alive:
        npx.save(tmp_path / "x", np.ones(2))
        assert len(list(tmp_path.glob("x.*.partial"))) == 1
        alive.kill()


def test_files_of_others_stay(tmp_path):
    others = [
        "x.partial",
        "x.0123.partial",
        "x.0123456789abcdeg.partial",
        ".0123456789abcdef.partial",
    ]
    for name in others:
        (tmp_path / name).write_text("theirs")
    with written(tmp_path / "x") as file:
        file.write(b"ours")
    assert sorted(f.name for f in tmp_path.iterdir()) == sorted([*others, "x"])


def test_a_file_taken_for_abandoned_is_made_anew(tmp_path, monkeypatch):
    from heterosis.io import atomic

    answers = iter([False, True])
    monkeypatch.setattr(atomic, "_lock", lambda file: next(answers, True))
    start = time.monotonic()
    npx.save(tmp_path / "x", np.ones(2))
    assert time.monotonic() - start < 10
    assert npx.load(tmp_path / "x")[0].tolist() == [1, 1]
