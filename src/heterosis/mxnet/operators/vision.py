"""Operators on images, and on boxes in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from heterosis import np, npx
from heterosis.mxnet.operators.arithmetic import add_n
from heterosis.mxnet.operators.table import of_record, operator
from heterosis.mxnet.operators.writing import Arguments, Made, Writer, writes
from heterosis.runtime.errors import ArgumentError, ShapeError
from heterosis.runtime.kinds import Positive


@operator("UpSampling")
def up_sampling(
    *data: Any, scale: Positive, sample_type: str = "nearest", multi_input_mode: str = "concat",
    num_args: int | None = None, num_filter: int = 0, workspace: int = 512,
) -> Any:  # fmt: skip
    """Each pixel repeated in both directions, `scale` times in the first of `data`.

    Further images are enlarged to the size that the first gets, and joined as channels or, with
    `multi_input_mode="sum"`, added.
    """
    if sample_type != "nearest":
        raise ArgumentError(
            f"UpSampling: sample_type={sample_type!r}; expected 'nearest'. For bilinear sampling "
            "use Deconvolution with weights from init.Bilinear()."
        )
    if multi_input_mode not in ("concat", "sum"):
        raise ArgumentError(
            f"UpSampling: multi_input_mode={multi_input_mode!r}; expected 'concat' or 'sum'."
        )
    if scale < 1:
        raise ArgumentError(f"UpSampling: scale={scale}; expected at least 1.")
    height, width = (scale * n for n in data[0].shape[2:])
    enlarged = [_enlarged(x, height, width) for x in data]
    return add_n(*enlarged) if multi_input_mode == "sum" else np.concatenate(enlarged, axis=1)


def _enlarged(images: Any, height: int, width: int) -> Any:
    """Images of that size, each pixel repeated equally often."""
    old = images.shape[2:]
    if height % old[0] or width % old[1]:
        raise ShapeError(
            f"UpSampling: images of size {old} do not divide the size {(height, width)} that the "
            "first ones are enlarged to."
        )
    rows = np.repeat(images, height // old[0], axis=2)
    return np.repeat(rows, width // old[1], axis=3)


@operator("Crop")
def crop(
    *data: Any, offset: Sequence[int] = (0, 0), h_w: Sequence[int] = (0, 0),
    center_crop: bool = False, num_args: int | None = None,
) -> Any:  # fmt: skip
    """A part of images: as large as those of a second argument, or `h_w`."""
    x = data[0]
    height, width = data[1].shape[2:] if len(data) > 1 else h_w
    top, left = offset
    if center_crop:
        top, left = (x.shape[2] - height) // 2, (x.shape[3] - width) // 2
    return x[:, :, top : top + height, left : left + width]


@operator("ROIPooling")
def roi_pooling(*arguments: Any, **keywords: Any) -> Any:
    """See `npx.roi_pooling`."""
    return npx.roi_pooling(*arguments, **keywords)


of_record("_contrib_MultiBoxTarget", results=3)


@writes("flip_left_right", "flip_top_bottom")
def _write_flip_image(writer: Writer, a: Arguments) -> Made:
    axis = a["data"].ndim - (2 if a.record.name == "flip_left_right" else 3)
    return writer.single("_npi_flip", a, a["data"], axis=(axis,))


@writes("adjust_lighting")
def _write_adjust_lighting(writer: Writer, a: Arguments) -> Made:
    return None  # MXNet's numbers are attributes, and ours an array
