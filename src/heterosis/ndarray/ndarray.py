"""The array's older name, and functions on arrays that are no operators of symbol files."""

from heterosis.mxnet.arrays.functions import (
    NDArray,
    concatenate,
    from_dlpack,
    from_numpy,
    histogram,
    linspace,
    load,
    load_frombuffer,
    moveaxis,
    save,
    true_divide,
    waitall,
)

__all__ = [
    "NDArray",
    "concatenate",
    "from_dlpack",
    "from_numpy",
    "histogram",
    "linspace",
    "load",
    "load_frombuffer",
    "moveaxis",
    "save",
    "true_divide",
    "waitall",
]
