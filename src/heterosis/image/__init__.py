"""Images: reading, resizing, cropping, changing at random, and batches of them."""

from heterosis.image import augment as augment
from heterosis.image import codec as codec
from heterosis.image import detection as detection
from heterosis.image import image as image
from heterosis.image.augment import *
from heterosis.image.detection import *
from heterosis.image.image import (
    center_crop,
    color_normalize,
    fixed_crop,
    imdecode,
    imread,
    imresize,
    imrotate,
    random_crop,
    random_rotate,
    random_size_crop,
    resize_short,
    scale_down,
)
from heterosis.image.iterator import DataBatch, ImageDetIter, ImageIter
from heterosis.runtime.arguments import check_members as _check_members

_check_members(globals())

__all__ = [
    "DataBatch",
    "ImageDetIter",
    "ImageIter",
    "center_crop",
    "color_normalize",
    "fixed_crop",
    "imdecode",
    "imread",
    "imresize",
    "imrotate",
    "random_crop",
    "random_rotate",
    "random_size_crop",
    "resize_short",
    "scale_down",
]
__all__ += augment.__all__
__all__ += detection.__all__
