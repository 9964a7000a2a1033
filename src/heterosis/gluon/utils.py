"""Helpers for training loops: splitting batches, clipping gradients, checking files."""

from __future__ import annotations

import hashlib
import math
import os
import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any

from heterosis import np
from heterosis.io.files import opened
from heterosis.ops.record import REGISTRY
from heterosis.runtime.arguments import check_members as _check_members
from heterosis.runtime.context import Context
from heterosis.runtime.elsewhere import lookup as _lookup
from heterosis.runtime.errors import ArgumentError, ShapeError, UnsupportedError


def split_data(
    data: np.ndarray, num_slice: int, batch_axis: int = 0, even_split: bool = True
) -> list[np.ndarray]:
    """`num_slice` parts of `data` along `batch_axis`; with `even_split` all must be equal."""
    size = data.shape[batch_axis]
    if even_split and size % num_slice:
        raise ShapeError(
            f"split_data: data of shape {data.shape} cannot be split into {num_slice} equal parts "
            f"along axis {batch_axis}: {size} is no multiple of {num_slice}. Use another batch "
            "size, or even_split=False."
        )
    smallest, larger = divmod(size, num_slice)
    ends = [smallest * i + min(i, larger) for i in range(1, num_slice)]
    return list(np.split(data, ends, axis=batch_axis))


def split_and_load(
    data: Any, ctx_list: Sequence[Context], batch_axis: int = 0, even_split: bool = True
) -> list[np.ndarray]:
    """One part of `data` for each context."""
    array = np.asarray(data, ctx=ctx_list[0])
    parts = split_data(array, len(ctx_list), batch_axis, even_split) if ctx_list[1:] else [array]
    return [part.as_in_context(ctx) for part, ctx in zip(parts, ctx_list, strict=True)]


def clip_global_norm(
    arrays: Sequence[np.ndarray], max_norm: float, check_isfinite: bool = True
) -> float | np.ndarray:
    """Scale the arrays in place so that the norm of them all is at most `max_norm`.

    Returns the norm before: a number, or an array, without waiting for it, if not
    `check_isfinite`.
    """
    if not arrays:
        raise ArgumentError("clip_global_norm: no arrays; expected at least one.")
    first = arrays[0].ctx
    norm = np.sqrt(sum(_squared_norm(array).as_in_context(first) for array in arrays))
    scale = np.minimum(max_norm / (norm + 1e-8), 1.0)
    found = norm.item() if check_isfinite else norm
    if check_isfinite and not math.isfinite(found):
        warnings.warn("clip_global_norm: the norm is nan or inf, and so is the result.",
                      stacklevel=2)  # fmt: skip
    for array in arrays:
        array *= scale.astype(array.dtype, copy=False).as_in_context(array.ctx)
    return found


def _squared_norm(array: np.ndarray) -> np.ndarray:
    """In float32 at least: squares of half precision overflow."""
    flat = array.reshape(-1)
    flat = flat.astype("float32") if flat.dtype.itemsize < 4 else flat
    return REGISTRY["dot"].operation(flat, flat)


def check_sha1(filename: str, sha1_hash: str) -> bool:
    """Whether the file's SHA-1 digest is `sha1_hash`, in hexadecimal digits."""
    digest = hashlib.sha1(usedforsecurity=False)
    with opened(filename, "a file to check") as source:
        while piece := source.some(1 << 20):
            digest.update(piece)
    return digest.hexdigest() == sha1_hash.lower()


def download(
    url: str,
    path: str | None = None,
    overwrite: bool = False,
    sha1_hash: str | None = None,
    retries: int = 5,
    verify_ssl: bool = True,
) -> str:
    """The path of a file that is already there; nothing is fetched from the network.

    Without `path`, the file's name is the end of `url`; a folder as `path` is searched for it.
    """
    name = _local_name(url, path)
    if overwrite or not os.path.exists(name):
        raise UnsupportedError(
            f"download: {url} is not fetched: Heterosis opens no network connections. Download "
            f"it with another program and save it as {name}."
        )
    if sha1_hash and not check_sha1(name, sha1_hash):
        raise ArgumentError(
            f"download: {name} has another SHA-1 digest than {sha1_hash}: it is incomplete or "
            f"another version. Download {url} again."
        )
    return name


def _local_name(url: str, path: str | None) -> str:
    last = url.rsplit("/", 1)[-1]
    path = last if path is None else os.path.expanduser(path)
    name = os.path.join(path, last) if os.path.isdir(path) else path
    if not name:
        raise ArgumentError(f"download: {url!r} ends in no file name; give `path`.")
    return name


def indented(text: str, spaces: int = 2) -> str:
    """`text` with all lines but the first moved to the right."""
    return text.replace("\n", "\n" + " " * spaces)


def listed(names: Iterable[str], limit: int = 8) -> str:
    """Names in quotes, those in the middle left out if they are many."""
    quoted = [repr(str(name)) for name in names]
    if len(quoted) > limit:
        half = limit // 2
        quoted[half:-half] = ["..."]
    return ", ".join(quoted)


_check_members(globals())

if not _TYPE_CHECKING:  # else every name would be known
    __getattr__ = _lookup(__name__)

__all__ = ["check_sha1", "clip_global_norm", "download", "split_and_load", "split_data"]
