"""HETEROSIS_LIBRARY=libmy_mlp.so ... python -m pytest library_test.py.

../README.md says which libraries the variables name.
"""

import os
import threading
from pathlib import Path

import numpy
import pytest
from heterosis_library import Library, LibraryError

PATH = Path(os.environ.get("HETEROSIS_LIBRARY", "libmy_mlp.so"))
X = numpy.full((1, 512), 0.5, "float32")


@pytest.fixture
def mlp():
    return Library(PATH)


def test_a_library_tells_what_it_takes_and_gives(mlp):
    assert mlp.name == "my_mlp"
    assert str(mlp) == "forward(x: float32[1, 512]) -> (output: float32[1, 2])"
    assert mlp.entries["forward"].inputs[0].shape == (1, 512)


def test_arrays_in_and_out(mlp):
    scores = mlp(X)
    assert (scores.shape, scores.dtype.name) == ((1, 2), "float32")
    assert (mlp.entries["forward"](X) == scores).all()
    strided = numpy.repeat(X, 2, axis=1)[:, ::2]
    assert (mlp(strided) == scores).all()


def test_results_can_be_written_to_arrays_of_the_caller(mlp):
    expected, out = mlp(X), numpy.empty((1, 2), "float32")
    found = mlp(X, out=[out])
    assert found is out
    assert (out == expected).all()
    for wrong, why in (
        ([], "with 0 arrays; expected 1"),
        ([out.astype("float64")], r"has float64\[1, 2\]; expected output: float32\[1, 2\]"),
        ([out[0]], "has float32"),
        ([numpy.empty((1, 4), "float32")[:, ::2]], "without gaps"),
        ([X[:, :2]], "without gaps|overlaps another array"),
        ([[1.0, 2.0]], "has a list"),
    ):
        with pytest.raises(LibraryError, match=why):
            mlp(X, out=wrong)
    with pytest.raises(LibraryError, match="overlaps another array"):
        mlp(X, out=[X.reshape(-1)[:2].reshape(1, 2)])


def test_threads_share_a_library(mlp):
    expected, found = mlp(X), []
    threads = [
        threading.Thread(target=lambda: found.append((mlp(X) == expected).all())) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 8


def test_a_program_runs_at_the_sizes_that_it_has():
    sized = Library(os.environ.get("HETEROSIS_SIZED", "libsized.so"))
    scores = sized(numpy.repeat(X, 3, axis=0))
    assert scores.shape == (3, 2)
    assert (scores[2] == scores[0]).all()
    assert [size.name for size in sized.entries["forward"].sizes] == ["n0"]
    with pytest.raises(LibraryError, match=r"n0 = 0: .* n0 from 1 to"):
        sized(numpy.zeros((0, 512), "float32"))


def test_other_types_and_sizes_are_refused(mlp):
    for wrong in (X.astype("float64"), X[:, 1:], X[0]):
        with pytest.raises(LibraryError, match="no entry takes"):
            mlp(wrong)
    with pytest.raises(LibraryError, match=r"got \(\); expected forward"):
        mlp.entries["forward"]()
    with pytest.raises(LibraryError, match="threads=2; expected 1 to 1"):
        Library(PATH, threads=2)


def test_damaged_files_are_refused_before_they_are_loaded(tmp_path):
    whole, place = PATH.read_bytes(), tmp_path / "libdamaged.so"
    flipped = bytearray(whole)
    flipped[64] ^= 1
    for content, why in (
        (b"", "cut short"),
        (whole[:-1], "cut short"),
        (bytes(flipped), "damaged"),
        (whole[:-16] + b"\3" + whole[-15:], "has version 3"),
    ):
        place.write_bytes(content)
        with pytest.raises(LibraryError, match=why):
            Library(place)
    with pytest.raises(LibraryError, match="is for another family of processors"):
        Library(os.environ.get("HETEROSIS_OTHER", "libother.so"))
    with pytest.raises(FileNotFoundError):
        Library(tmp_path / "nowhere.so")
