"""Record files: the bytes of MXNet's, and what becomes of damaged ones."""

import multiprocessing
import os
import pickle

import numpy
import pytest

from heterosis import recordio
from heterosis.runtime.errors import FormatError, HeterosisError
from tests.image.test_mxnet import STORED

MARK = b"\x0a\x23\xd7\xce"
RECORDS = [
    b"",
    b"a",
    b"abcd",
    MARK,
    b"abcd" + MARK + b"efgh" + MARK * 2 + b"i",
    b"ab" + MARK,
    b"end",
]
PACKED = [
    recordio.pack(recordio.IRHeader(0, [1, 2.5], 7, 9), b"img"),
    recordio.pack(recordio.IRHeader(0, 3, 7, 9), b"img"),
]
ALL = RECORDS + PACKED


def write(folder):
    paths = [str(folder / name) for name in ("b.idx", "b.rec")]
    with recordio.MXIndexedRecordIO(*paths, "w") as file:
        for i, record in enumerate(ALL):
            file.write_idx(i, record)
    return paths


@pytest.fixture
def theirs(tmp_path):
    """The same records, written by MXNet 1.9.1."""
    paths = []
    for name in ("a.idx", "a.rec"):
        (tmp_path / name).write_bytes(STORED[f"record_{name}"].tobytes())
        paths.append(str(tmp_path / name))
    return paths


def test_the_bytes_are_those_of_mxnet(tmp_path, theirs):
    for mine, other in zip(write(tmp_path), theirs, strict=True):
        with open(mine, "rb") as a, open(other, "rb") as b:
            assert a.read() == b.read()


def test_reading_in_order_and_by_key(theirs):
    with recordio.MXRecordIO(theirs[1], "r") as file:
        assert [file.read() for _ in ALL] == ALL
        assert file.read() is None
        file.reset()
        assert file.read() == ALL[0]
    with recordio.MXIndexedRecordIO(*theirs, "r") as file:
        assert file.keys == list(range(len(ALL)))
        assert [file.read_idx(i) for i in reversed(file.keys)] == ALL[::-1]
        with pytest.raises(KeyError, match="99"):
            file.read_idx(99)


def test_headers():
    header, rest = recordio.unpack(PACKED[0])
    assert (header.flag, header.id, header.id2, rest) == (2, 7, 9, b"img")
    assert header.label.tolist() == [1, 2.5]
    header, rest = recordio.unpack(PACKED[1])
    assert (header, rest) == (recordio.IRHeader(0, 3.0, 7, 9), b"img")
    for cut in (PACKED[1][:20], PACKED[0][:26]):
        with pytest.raises(FormatError, match="unpack"):
            recordio.unpack(cut)


@pytest.mark.parametrize("format_, exact", [(".png", True), (".jpg", False)])
@pytest.mark.parametrize("shape", [(24, 32, 3), (24, 32)])
def test_images(format_, exact, shape):
    smooth = numpy.linspace(0, 255, numpy.prod(shape)).reshape(shape).astype("uint8")
    record = recordio.pack_img((0, 5, 1, 0), smooth, img_fmt=format_)
    header, back = recordio.unpack_img(record)
    assert header.label == 5 and back.shape == shape
    assert numpy.abs(back.astype(int) - smooth).max() <= (0 if exact else 12)
    assert recordio.unpack_img(record, 0)[1].shape == shape[:2]


def test_blue_comes_first():
    red = numpy.zeros((2, 2, 4), "uint8")
    red[..., 2:] = 255
    assert (
        recordio.unpack_img(recordio.pack_img((0, 0, 0, 0), red, img_fmt=".png"))[1] == red
    ).all()


@pytest.mark.parametrize("length", [3, 9, 30])
def test_a_file_that_was_cut(tmp_path, theirs, length):
    path = tmp_path / "cut.rec"
    path.write_bytes(STORED["record_a.rec"].tobytes()[:length])
    file = recordio.MXRecordIO(path, "r")
    with pytest.raises(FormatError, match=r"ends within a record.*cut off or damaged"):
        while file.read() is not None:
            pass


def test_other_damage(tmp_path, theirs):
    path = tmp_path / "other.rec"
    path.write_bytes(b"something else altogether")
    with pytest.raises(FormatError, match="has no record at byte 0"):
        recordio.MXRecordIO(path, "r").read()
    first = STORED["record_a.rec"].tobytes()[:8]  # of an empty record
    path.write_bytes(first[:7] + b"\x60")
    with pytest.raises(FormatError, match="middle"):
        recordio.MXRecordIO(path, "r").read()
    path.write_bytes(first[:7] + b"\x20" + first)
    with pytest.raises(FormatError, match="not continued"):
        recordio.MXRecordIO(path, "r").read()
    (tmp_path / "a.idx").write_text("0\t0\n1\t99999\n")
    with pytest.raises(FormatError, match="outside"):
        recordio.MXIndexedRecordIO(*theirs, "r").read_idx(1)
    (tmp_path / "a.idx").write_text("0\t0\nnonsense\n")
    with pytest.raises(FormatError, match="line 2"):
        recordio.MXIndexedRecordIO(*theirs, "r")
    os.remove(theirs[0])
    with pytest.raises(FileNotFoundError, match=r"index of .* is missing"):
        recordio.MXIndexedRecordIO(*theirs, "r")


def test_wrong_use(tmp_path, theirs):
    with pytest.raises(ValueError, match="'r' or 'w'"):
        recordio.MXRecordIO(theirs[1], "a")
    with pytest.raises(HeterosisError, match="reading only"):
        recordio.MXRecordIO(theirs[1], "r").write(b"x")
    file = recordio.MXRecordIO(tmp_path / "new.rec", "w")
    with pytest.raises(HeterosisError, match="writing only"):
        file.read()
    with pytest.raises(TypeError, match="pickled"):
        pickle.dumps(file)
    file.close()
    with pytest.raises(HeterosisError, match="closed"):
        file.write(b"x")


@pytest.mark.lengthy
def test_a_reader_goes_its_own_way_in_other_processes(theirs):
    file = recordio.MXIndexedRecordIO(*theirs, "r")
    file.seek(4)
    copy = pickle.loads(pickle.dumps(file))
    assert copy.read() == ALL[4] and copy.read_idx(1) == ALL[1]
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(file.read_idx, range(len(ALL)), chunksize=1) == ALL
    assert file.read() == ALL[4]
