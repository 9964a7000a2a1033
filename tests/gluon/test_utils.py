"""Splitting batches, clipping gradients, checking files."""

import hashlib

import numpy
import pytest

from heterosis import cpu, np
from heterosis.gluon import utils
from heterosis.runtime.errors import ArgumentError, ShapeError, UnsupportedError


def test_splitting():
    parts = utils.split_data(np.arange(7), 3, even_split=False)
    assert [p.shape for p in parts] == [(3,), (2,), (2,)]
    assert [p.shape for p in utils.split_data(np.ones((2, 4)), 2, batch_axis=1)] == [(2, 2)] * 2
    with pytest.raises(ShapeError, match="even_split=False"):
        utils.split_data(np.arange(7), 3)
    (whole,) = utils.split_and_load([[1, 2]], [cpu()])
    assert whole.shape == (1, 2)
    halves = utils.split_and_load(numpy.ones((4, 2)), [cpu(), cpu()])
    assert [h.shape for h in halves] == [(2, 2)] * 2


def test_clipping_by_the_norm_of_all():
    arrays = [np.array([3.0, 4.0]), np.array([[12.0]])]
    assert utils.clip_global_norm(arrays, 1.0) == pytest.approx(13)
    assert numpy.allclose(arrays[0].asnumpy(), [3 / 13, 4 / 13])
    small = [np.array([0.5])]
    assert utils.clip_global_norm(small, 1.0, check_isfinite=False).item() == 0.5
    assert small[0].item() == 0.5
    with pytest.warns(UserWarning, match="nan or inf"):
        utils.clip_global_norm([np.array([numpy.inf])], 1.0)
    with pytest.raises(ArgumentError, match="at least one"):
        utils.clip_global_norm([], 1.0)


def test_files(tmp_path):
    file = tmp_path / "data.bin"
    file.write_bytes(b"abc")
    digest = hashlib.sha1(b"abc").hexdigest()
    assert utils.check_sha1(str(file), digest) and not utils.check_sha1(str(file), "0" * 40)
    address = "https://example.org/data.bin"
    assert utils.download(address, str(tmp_path), sha1_hash=digest) == str(file)
    with pytest.raises(ArgumentError, match="SHA-1"):
        utils.download(address, str(tmp_path), sha1_hash="0" * 40)
    with pytest.raises(UnsupportedError, match="no network connections"):
        utils.download(address, str(tmp_path / "other.bin"))
