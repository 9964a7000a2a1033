"""`.params` files: MXNet's bytes and a checksum, whole or not at all, clear on what is wrong."""

import os
import struct
from pathlib import Path
from zlib import crc32

import numpy
import pytest

from heterosis import np, npx
from heterosis.io.atomic import written
from heterosis.io.params import loads
from heterosis.runtime.errors import DTypeError, FormatError
from tests.differential.answers import difference, our_answer

DATA = Path(__file__).with_name("data")  # written by MXNet 1.9.1
DICTIONARY = (DATA / "dictionary.params").read_bytes()
VALUES = [[1, 0, 3], [4, 5, 100]]
DTYPES = ("float32", "float64", "float16", "uint8", "int32", "int8", "int64", "bool")


def test_reads_what_mxnet_wrote():
    found = npx.load(str(DATA / "dictionary.params"))
    assert list(found) == [*DTYPES, "scalar", "empty", "naïve/名"]
    for dtype in DTYPES:
        assert found[dtype].dtype == dtype
        numpy.testing.assert_array_equal(found[dtype].asnumpy(), numpy.array(VALUES, dtype))
    assert found["scalar"].shape == () and found["scalar"].item() == 2.5
    assert found["empty"].shape == (0, 3)


def test_reads_lists_and_older_files():
    first, second = npx.load(DATA / "list.params")
    assert first.tolist() == [0, 1, 2] and second.shape == () and second.item() == 1.5
    old = npx.load(DATA / "legacy.params")
    assert {k: v.tolist() for k, v in old.items()} == {"arg:w": [[1, 2], [3, 4.5]], "aux:m": [7]}
    assert npx.load(DATA / "nothing.params") == []


@pytest.mark.parametrize("layout", ["I2I", "Iiqq"])
def test_reads_the_first_formats(layout):
    """Without a magic number, and with the first one: 32-bit extents, then 64-bit ones."""
    shape = struct.pack("<III", 2, 2, 1)
    if layout == "Iiqq":
        shape = struct.pack("<Iiqq", 0xF993FAC8, 2, 2, 1)
    array = shape + struct.pack("<iii2f", 1, 0, 0, 1.5, -2)
    (found,) = loads(struct.pack("<QQQ", 0x112, 0, 1) + array + struct.pack("<Q", 0))
    assert found.tolist() == [[1.5], [-2]]


@pytest.mark.parametrize("name", ["dictionary", "list", "nothing"])
def test_writes_the_bytes_of_mxnet(name, tmp_path):
    npx.save(str(tmp_path / "own"), npx.load(DATA / f"{name}.params"))
    theirs = (DATA / f"{name}.params").read_bytes()
    seal = b"HXSEALED" + crc32(theirs).to_bytes(4, "little")
    assert (tmp_path / "own").read_bytes() == theirs + seal


def test_round_trip_of_views_and_bfloat16(tmp_path):
    x = np.arange(24).reshape(4, 6)
    given = {"turned": x.T[1:], "strided": x[::-1, ::2], "half": x.astype("bfloat16")}
    npx.save(tmp_path / "x", given)
    found = npx.load(tmp_path / "x")
    for name, array in given.items():
        assert found[name].dtype == array.dtype
        numpy.testing.assert_array_equal(found[name].asnumpy(), array.asnumpy())
    npx.save(tmp_path / "x", x)
    (alone,) = npx.load(tmp_path / "x")
    assert alone.shape == (4, 6)


@pytest.mark.parametrize("dtype", ["int16", "uint16", "uint32", "uint64"])
def test_types_that_mxnet_has_only_numbers_for(tmp_path, dtype):
    values = numpy.array([0, 7, numpy.iinfo(dtype).max], dtype)
    npx.save(tmp_path / "x", np.array(values))
    (found,) = npx.load(tmp_path / "x")
    assert found.dtype == dtype
    numpy.testing.assert_array_equal(found.asnumpy(), values)


def test_mxnet_reads_what_we_wrote(mxnet, tmp_path):
    given = {d: np.array(VALUES, dtype=d) for d in DTYPES} | {"b": np.array(7, dtype="int64")}
    npx.save(tmp_path / "x", given)
    code = f"npx.load({str(tmp_path / 'x')!r})"
    theirs = mxnet.answer(code)
    assert theirs["parts"][::2] == list(given)
    assert difference(our_answer(code), theirs) is None


def test_mxnet_passes_over_the_checksum(mxnet, tmp_path):
    """Also from memory, as a list, and in a block."""
    path = str(tmp_path / "x")
    npx.save(path, [np.array(VALUES)])
    code = (
        f"[npx.load({path!r})[0], mx.nd.load({path!r})[0].as_np_ndarray(), "
        f"mx.nd.load_frombuffer(open({path!r}, 'rb').read())[0].as_np_ndarray()]"
    )
    theirs = mxnet.answer(code)
    assert difference(our_answer(f"[npx.load({path!r})[0]] * 3"), theirs) is None


# -- bad input ------------------------------------------------------------------------------------


def test_every_truncation_is_an_error():
    for length in range(len(DICTIONARY)):
        with pytest.raises(FormatError, match="Nothing has been loaded"):
            loads(DICTIONARY[:length])


def test_flipped_bytes_never_crash():
    rng = numpy.random.default_rng(1)
    for _ in range(500):
        broken = bytearray(DICTIONARY)
        for place in rng.integers(0, len(broken), 3):
            broken[place] = rng.integers(256)
        try:
            loads(bytes(broken))
        except FormatError as error:
            assert "at byte" in str(error)


def one_array(head: bytes) -> bytes:
    return struct.pack("<QQQ", 0x112, 0, 1) + head + struct.pack("<Q", 0)


@pytest.mark.parametrize(
    "data, message",
    [
        (b"PK" + bytes(40), "it begins with"),
        (DICTIONARY + b"x", "more bytes follow"),
        (struct.pack("<QQQ", 0x112, 0, 2**64 - 1), "array 0 of"),
        (one_array(struct.pack("<Ii", 0xF993FACA, 1)), "sparse"),
        (one_array(struct.pack("<Iii", 0xF993FACA, 0, -1)), "-1 dimensions"),
        (one_array(struct.pack("<Iii", 0xF993FACA, 0, 33)), "33 dimensions"),
        (one_array(struct.pack("<Iiiq", 0xF993FACA, 0, 1, -4)), "negative extent"),
        (one_array(struct.pack("<Iiiqiii", 0xF993FACA, 0, 1, 2**62, 1, 0, 0)), "file ends within"),
        (one_array(struct.pack("<Iiiqiii", 0xF993FACA, 0, 1, 0, 1, 0, 99)), "element type 99"),
        (one_array(struct.pack("<Iii", 0xF993FAC9, 0, 0)), "before it had a shape"),
        (struct.pack("<QQQQ", 0x112, 0, 0, 3), "3 names for 0 arrays"),
    ],
)
def test_malformed_files(data, message):
    with pytest.raises(FormatError, match=message):
        loads(data)


def test_two_arrays_of_one_name():
    empty = struct.pack("<Iiiqiii", 0xF993FACA, 0, 1, 0, 1, 0, 0)
    name = struct.pack("<Q", 1) + b"a"
    data = struct.pack("<QQQ", 0x112, 0, 2) + 2 * empty + struct.pack("<Q", 2) + 2 * name
    with pytest.raises(FormatError, match="the name 'a'"):
        loads(data)


def test_what_is_no_array_is_refused_and_nothing_written(tmp_path):
    for given in ({"a": 1.0}, {1: np.ones(2)}, [numpy.ones(2)], "text"):
        with pytest.raises(DTypeError):
            npx.save(tmp_path / "x", given)
    assert not list(tmp_path.iterdir())
    with pytest.raises(FileNotFoundError):
        npx.load(tmp_path / "x")


# -- replacing ------------------------------------------------------------------------------------


def test_a_failure_while_writing_leaves_the_old_file(tmp_path):
    target = tmp_path / "x"
    target.write_bytes(b"old")
    target.chmod(0o640)
    with pytest.raises(RuntimeError), written(target) as file:
        file.write(b"half")
        raise RuntimeError
    assert target.read_bytes() == b"old" and list(tmp_path.iterdir()) == [target]
    with written(target) as file:
        file.write(b"new")
    assert target.read_bytes() == b"new" and target.stat().st_mode & 0o777 == 0o640


def test_links_and_devices_stay_what_they_are(tmp_path):
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "target")
    npx.save(link, [np.ones(2)])
    assert link.is_symlink() and npx.load(tmp_path / "target")[0].tolist() == [1, 1]
    npx.save(os.devnull, [np.ones(2)])
    assert not Path(os.devnull).is_file()
