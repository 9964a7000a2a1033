"""Something to run every row of the table of operators on: arrays, and attributes.

The arrays are those of `cases`, and some more; what stands in no table takes matrices alone.
"""

from __future__ import annotations

from typing import Any

import numpy

MORE = {
    "n": numpy.arange(12).reshape(3, 4).astype("int32"),
    "truth": numpy.array([[1.0, 0.0, 1.0]] * 3, "float32"),
    "one": numpy.ones((1,), "float32"),
    "four": numpy.ones((4,), "float32"),
    "filters": numpy.ones((2, 4, 2, 2), "float32"),
    "back": numpy.ones((4, 2, 2, 2), "float32"),
    "places": numpy.ones((2, 5), "float32"),
    "box": numpy.array([[0, 0, 0, 3, 3]], "float32"),
    "anchors": numpy.array([[[0.1, 0.1, 0.4, 0.4], [0.5, 0.5, 0.9, 0.9]]], "float32"),
    "boxes": numpy.array([[[1, 0.5, 0.5, 0.9, 0.9]]], "float32"),
    "classes": numpy.ones((1, 3, 2), "float32"),
    "steps": numpy.ones((4, 1, 2), "float32"),
    "weights": numpy.ones((3 * (2 + 3 + 2) * 4,), "float32"),
    "state": numpy.ones((1, 1, 3), "float32"),
    "labels": numpy.array([[1.0], [2.0], [1.0]], "float32"),
    "joined": numpy.ones((2, 3, 12), "float32"),
    "pairs": numpy.ones((2, 3, 8), "float32"),
    "weighting": numpy.ones((6, 2, 2), "float32"),
    "part": numpy.array([0.25, 0.5], "float32"),
}

_NORM = ("image four four four four", {})
_SQUARE = ("s", {})

SAMPLES: dict[str, tuple[str, dict[str, Any]]] = {
    # numbers beside whole numbers
    **{
        f"_npi_{name}_scalar": ("n", {"scalar": 3, "is_int": True})
        for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "lcm")
    },
    "_npi_where_lscalar": ("truth s", {"scalar": 2.0}),
    "_npi_where_rscalar": ("truth s", {"scalar": 2.0}),
    "_npi_where_scalar2": ("truth", {"x": 2.0, "y": 3.0}),
    "clip": ("s", {"a_min": 0.0, "a_max": 1.0}),
    "Cast": ("s", {"dtype": "int32"}),
    "amp_cast": ("s", {"dtype": "float16"}),
    # made from nothing
    **dict.fromkeys(("zeros", "ones", "empty", "_npi_zeros"), ("", {"shape": (2, 3)})),
    "full": ("", {"shape": (2, 3), "val": 2.0}),
    "_npi_full": ("", {"shape": (2, 3), "value": 2.0}),
    "_npi_full_like": ("s", {"fill_value": 2.0}),
    "arange": ("", {"start": 3}),
    "_npi_arange": ("", {"start": 0, "stop": 3}),
    "_linspace": ("", {"start": 0.0, "stop": 1.0}),
    "eye": ("", {"N": 3}),
    "_npi_eye": ("", {"N": 3}),
    "random_randint": ("", {"low": 0, "high": 5, "shape": (2,)}),
    "sample_multinomial": ("part", {"get_prob": True}),
    "sample_negative_binomial": ("four four", {}),
    # rearranged, joined, split
    "reshape": ("m", {"shape": (-1,)}),
    "expand_dims": ("m", {"axis": 0}),
    "_npi_swapaxes": ("m", {"dim1": 0, "dim2": 1}),
    "reverse": ("m", {"axis": 0}),
    "depth_to_space": ("image", {"block_size": 2}),
    "space_to_depth": ("image", {"block_size": 2}),
    "split": ("m", {"num_outputs": 2, "axis": 1}),
    "split_v2": ("m", {"indices_or_sections": 1}),
    "_npi_split": ("m", {"indices": (0, 1, 2)}),
    "_split_v2": ("m", {"sections": 3}),
    "tile": ("m", {"reps": (2, 1)}),
    "repeat": ("m", {"repeats": 2}),
    "broadcast_to": ("m", {"shape": (3, 4)}),
    "pad": ("image", {"mode": "edge", "pad_width": (0, 0, 0, 0, 1, 1, 1, 1)}),
    "_npi_pad": ("m", {"pad_width": ((1, 1), (0, 0)), "constant_value": 2.0}),
    # parts
    "slice": ("m", {"begin": (0, 1), "end": (2, 3)}),
    "_slice_assign": ("m one", {"begin": (0, 1), "end": (2, 3)}),
    "_slice_assign_scalar": ("m", {"begin": (0, 1), "end": (2, 3), "scalar": 2.0}),
    "slice_axis": ("m", {"axis": 0, "begin": 0, "end": 2}),
    "take": ("m i", {}),
    "batch_take": ("m i", {}),
    "pick": ("m i", {}),
    "fill_element_0index": ("m v i", {}),
    "one_hot": ("i", {"depth": 3}),
    "gather_nd": ("m places", {}),
    "scatter_nd": ("four n", {"shape": (9, 9, 12)}),
    "unravel_index": ("n", {"shape": (3, 4)}),
    "ravel_multi_index": ("n", {"shape": (4, 8, 12)}),
    # products and reductions
    "_npi_average": ("m", {"returned": True, "weighted": False}),
    "_npi_percentile": ("m", {"q_scalar": 50.0}),
    "topk": ("m", {"k": 2, "ret_typ": "both"}),
    "batch_dot": ("x y", {"transpose_b": True}),
    "_npi_tensordot": ("m m", {"a_axes_summed": (0,), "b_axes_summed": (0,)}),
    "_npi_tensordot_int_axes": ("m m", {"axes": 2}),
    "_npi_tensorsolve": ("s v", {}),
    **dict.fromkeys(("_npi_svd", "_npi_eig", "_npi_eigh", "_npi_slogdet"), _SQUARE),
    # layers
    "FullyConnected": ("m m v", {"num_hidden": 3}),
    "Convolution": ("image filters", {"kernel": (2, 2), "num_filter": 2, "no_bias": True}),
    "Convolution_v1": ("image filters", {"kernel": (2, 2), "num_filter": 2, "no_bias": True}),
    "Deconvolution": ("image back", {"kernel": (2, 2), "num_filter": 2}),
    **dict.fromkeys(
        ("Embedding", "_contrib_SparseEmbedding"), ("i m", {"input_dim": 3, "output_dim": 4})
    ),
    "RNN": (
        "steps weights state state",
        {"mode": "lstm", "state_size": 3, "num_layers": 1, "state_outputs": True},
    ),
    "Activation": ("m", {"act_type": "relu"}),
    **dict.fromkeys(("LeakyReLU", "softmax", "log_softmax", "Dropout"), ("m", {})),
    "softmax_cross_entropy": ("m i", {}),
    "Pooling": ("image", {"kernel": (2, 2)}),
    "Pooling_v1": ("image", {"kernel": (2, 2)}),
    "BatchNorm": _NORM,
    "BatchNorm_v1": _NORM,
    "_contrib_SyncBatchNorm": _NORM,
    "_contrib_BatchNormWithReLU": _NORM,
    "LayerNorm": ("m four four", {"output_mean_var": True}),
    "InstanceNorm": ("image four four", {}),
    "GroupNorm": ("image four four", {"num_groups": 2}),
    "LRN": ("image", {"nsize": 3}),
    "SoftmaxOutput": ("m i", {}),
    "CTCLoss": ("x labels", {}),
    # images
    "UpSampling": ("image", {"scale": 2, "sample_type": "nearest"}),
    "Crop": ("image", {"h_w": (2, 2)}),
    "ROIPooling": ("image box", {"pooled_size": (2, 2), "spatial_scale": 1.0}),
    # contrib
    "_contrib_index_array": ("m", {"axes": (1,)}),
    "_contrib_index_copy": ("s i s", {}),
    "_contrib_boolean_mask": ("m i", {}),
    "_contrib_interleaved_matmul_selfatt_qk": ("joined", {"heads": 2}),
    "_contrib_interleaved_matmul_selfatt_valatt": ("joined weighting", {"heads": 2}),
    "_contrib_interleaved_matmul_encdec_qk": ("x pairs", {"heads": 2}),
    "_contrib_interleaved_matmul_encdec_valatt": ("joined weighting", {"heads": 2}),
    "_contrib_AdaptiveAvgPooling2D": ("image", {"output_size": (2, 3)}),
    "_contrib_BilinearResize2D": ("image", {"height": 3, "width": 2}),
    "_contrib_box_iou": ("m m", {}),
    "_contrib_MultiBoxTarget": ("anchors boxes classes", {}),
}

# Rows that cannot be run from a file, and why.
NOT_IN_FILES = {
    "array": "it takes what is no array",
    "reset_arrays": "it has no result: it writes to its operands",
}
