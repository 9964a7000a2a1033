"""The operations of `heterosis.npx`."""

# Made by docs/make_stubs.py: change the record of an operation, and run it again.
# mypy: allow-any-generics

from collections.abc import Sequence
from heterosis._core import ndarray
from heterosis.runtime.context import Context
from heterosis.typing import ArrayLike, DTypeLike
from typing import Any

def activation(data: ArrayLike, act_type: str, *, out: ndarray | None = None) -> ndarray:
    """'relu', 'sigmoid', 'tanh', 'softrelu' (`log(1 + exp(x))`), 'softsign' (`x / (1 + |x|)`), or a
    function of `npx` by its name: 'gelu', 'hard_sigmoid', 'hardswish', 'log_sigmoid', 'mish' or
    'silu'; 'gelu_tanh' is `gelu` with that approximation.
    """

def arange_like(
    data: ArrayLike,
    start: ArrayLike = 0.0,
    step: ArrayLike = 1.0,
    repeat: int = 1,
    ctx: Context | None = None,
    axis: int | None = None,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """Numbers from `start` on, `step` apart, each `repeat` times: as many as `data` has elements,
    in its shape, or as it has along `axis`.
    """

def batch_dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    transpose_a: bool = False,
    transpose_b: bool = False,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """The matrix products of the matrices in two stacks."""

def batch_flatten(data: ArrayLike, *, out: ndarray | None = None) -> ndarray:
    """All dimensions but the first merged into one."""

def broadcast_axes(
    data: ArrayLike,
    axis: int | Sequence[int] = (),
    size: int | Sequence[int] = (),
    *,
    out: ndarray | None = None,
) -> ndarray:
    """`data` repeated `size` times along axes of extent 1."""

def broadcast_like(
    lhs: ArrayLike,
    rhs: ArrayLike,
    lhs_axes: int | Sequence[int] | None = None,
    rhs_axes: int | Sequence[int] | None = None,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """`lhs` repeated to the shape of `rhs`, along all axes or along those that are named."""

def cast(data: ArrayLike, dtype: DTypeLike, *, out: ndarray | None = None) -> ndarray:
    """A new array with elements converted to `dtype`."""

def convolution(
    data: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None = None,
    kernel: Any = None,
    stride: Any = None,
    dilate: Any = None,
    pad: Any = None,
    num_filter: int | None = None,
    num_group: int = 1,
    workspace: int = 1024,
    no_bias: bool = False,
    cudnn_tune: str | None = None,
    cudnn_off: bool = False,
    layout: str | None = None,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """Filters slid over the axes of space: `weight` is (num_filter, channels / num_group, *kernel).

    With channels last (NWC, NHWC, NDHWC), (num_filter, *kernel, channels / num_group). What is
    left of `workspace` and the `cudnn` arguments is that they are accepted.
    """

def deconvolution(
    data: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None = None,
    kernel: Any = None,
    stride: Any = None,
    dilate: Any = None,
    pad: Any = None,
    adj: Any = None,
    target_shape: Any = None,
    num_filter: int | None = None,
    num_group: int = 1,
    workspace: int = 512,
    no_bias: bool = True,
    cudnn_tune: str | None = None,
    cudnn_off: bool = False,
    layout: str | None = None,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """A convolution turned round: `weight` is (channels, num_filter / num_group, *kernel).

    Each element of `data` is spread by its filters over the result, which `adj` lengthens, or
    `target_shape` fixes by choosing the padding. With channels last, so is the weight's second
    axis.
    """

def depth_to_space(
    data: ArrayLike,
    block_size: int,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """Channels moved into blocks of pixels."""

def digamma(x: ArrayLike, *, out: ndarray | None = None) -> ndarray:
    """The derivative of `gammaln`."""

def embedding(
    data: ArrayLike,
    weight: ArrayLike,
    input_dim: int | None = None,
    output_dim: int | None = None,
    dtype: DTypeLike | None = None,
    sparse_grad: bool = False,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """The rows of `weight` that `data` numbers; numbers outside mean the nearest row.

    `input_dim` and `output_dim`, if given, are the extents of `weight`. `dtype` and `sparse_grad`
    are accepted and change nothing: the result has the weights' type, and gradients are dense.
    """

def erf(x: ArrayLike, *, out: ndarray | None = None) -> ndarray:
    """The error function."""

def erfinv(x: ArrayLike, *, out: ndarray | None = None) -> ndarray:
    """The inverse of the error function."""

def fully_connected(
    data: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None = None,
    num_hidden: int | None = None,
    no_bias: bool = False,
    flatten: bool = True,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """`data @ weight.T + bias`, over all dimensions but the first, or, without `flatten`, over the
    last. `weight` is (outputs, inputs); `num_hidden`, if given, is the number of outputs.
    """

def gamma(x: ArrayLike, *, out: ndarray | None = None) -> ndarray:
    """The gamma function."""

def gammaln(x: ArrayLike, *, out: ndarray | None = None) -> ndarray:
    """The logarithm of the absolute value of the gamma function."""

def gather_nd(
    data: ArrayLike,
    indices: ArrayLike,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """Rows of `data` at the places whose coordinates stand along the first axis of `indices`."""

def gelu(
    data: ArrayLike,
    approximation: str = "erf",
    *,
    out: ndarray | None = None,
) -> ndarray:
    """`data` times the probability that a normal number is below it.

    `approximation` is how that is computed: 'erf' by the error function, 'tanh' by a formula that
    comes close to it, as many published networks have it.
    """

def hard_sigmoid(
    data: ArrayLike,
    alpha: ArrayLike = 0.2,
    beta: ArrayLike = 0.5,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """The line `alpha * data + beta` within 0 and 1: a cheap `sigmoid`. Its slope where the line
    meets them counts as 0.
    """

def hardswish(data: ArrayLike, *, out: ndarray | None = None) -> ndarray:
    """`data` times the line from 0 at -3 to 1 at 3: a cheap `silu`."""

def index_add(
    a: ArrayLike,
    ind: ArrayLike,
    val: ArrayLike,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """`a` with `val` added at the places whose coordinates stand along the first axis of `ind`, as
    `gather_nd` has them; of equal places all count.
    """

def index_update(
    a: ArrayLike,
    ind: ArrayLike,
    val: ArrayLike,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """`a` with `val` written at the places whose coordinates stand along the first axis of `ind`,
    as `gather_nd` has them; of equal places the last counts.
    """

def layer_norm(
    data: ArrayLike,
    gamma: ArrayLike,
    beta: ArrayLike,
    axis: int = -1,
    eps: float = 1e-05,
    output_mean_var: bool = False,
) -> Any:
    """`data` with mean 0 and variance 1 along `axis`, times `gamma` plus `beta`; with
    `output_mean_var`, also the mean and `sqrt(var + eps)`.
    """

def log_sigmoid(data: ArrayLike, *, out: ndarray | None = None) -> ndarray:
    """The logarithm of `sigmoid`, without overflow."""

def log_softmax(
    data: ArrayLike,
    axis: int = -1,
    temperature: float | None = None,
    dtype: DTypeLike | None = None,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """The logarithm of `softmax`, without overflow."""

def masked_softmax(
    data: ArrayLike,
    mask: ArrayLike,
    axis: int = -1,
    temperature: float | None = None,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """`softmax` of the elements whose `mask`, which is repeated to the shape of `data`, is true (or
    not 0); the others become 0, and so does all where nothing is true.
    """

def mish(data: ArrayLike, *, out: ndarray | None = None) -> ndarray:
    """`data * tanh(log(1 + exp(data)))`."""

def multibox_detection(
    cls_prob: ArrayLike,
    loc_pred: ArrayLike,
    anchor: ArrayLike,
    clip: bool = True,
    threshold: float = 0.01,
    background_id: int = 0,
    nms_threshold: float = 0.5,
    force_suppress: bool = False,
    variances: tuple[float, ...] = ...,
    nms_topk: int = -1,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """Boxes that a detector has found: (batch, anchors, 6) rows of class, score and box, the best
    first. The class of a row is -1 where there is nothing: no class but background (0) scores
    `threshold`, or the box overlaps a better one of its class (of any, if `force_suppress`) by
    `nms_threshold`, or it is not among the `nms_topk` best.
    """

def multibox_prior(
    data: ArrayLike,
    sizes: tuple[float, ...] = ...,
    ratios: tuple[float, ...] = ...,
    clip: bool = False,
    steps: tuple[float, ...] = ...,
    offsets: tuple[float, ...] = ...,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """Anchors around each pixel of `data` (batch, channels, height, width): (1, anchors, 4).

    Every pixel has one of each of `sizes`, with the first of `ratios` (width to height), and one of
    the first size with each further ratio. `steps` and `offsets`, (y, x), place the middles: by
    default in the middle of the pixel. `clip` keeps boxes within the image.
    """

def multibox_target(
    anchor: ArrayLike,
    label: ArrayLike,
    cls_pred: ArrayLike,
    overlap_threshold: float = 0.5,
    ignore_label: float = -1.0,
    negative_mining_ratio: float = -1.0,
    negative_mining_thresh: float = 0.5,
    minimum_negative_samples: int = 0,
    variances: tuple[float, ...] = ...,
) -> tuple[ndarray, ndarray, ndarray]:
    """What a detector should predict for each anchor: offsets, which of them count, and classes.

    `label` (batch, labels, 5) has rows of a class and a box; a class of -1 ends them. First every
    box takes the anchor that it overlaps most, then every anchor the box that it overlaps by more
    than `overlap_threshold`. Classes are 1 + the label's, 0 for background. With a
    `negative_mining_ratio`, background are just so many anchors for one that has a box: those that
    `cls_pred` (batch, classes, anchors) takes for it least, of those that overlap no box by
    `negative_mining_thresh`; the others get `ignore_label`.
    """

def one_hot(
    indices: ArrayLike,
    depth: int,
    on_value: ArrayLike = 1.0,
    off_value: ArrayLike = 0.0,
    dtype: DTypeLike = "float32",
    *,
    out: ndarray | None = None,
) -> ndarray:
    """A new last dimension of `depth`: `on_value` at each index, `off_value` elsewhere."""

def pick(
    data: ArrayLike,
    index: ArrayLike,
    axis: int = -1,
    keepdims: bool = False,
    mode: str = "clip",
    *,
    out: ndarray | None = None,
) -> ndarray:
    """One element for each position off `axis`: the one that `index` names along it."""

def pooling(
    data: ArrayLike,
    kernel: Any = None,
    pool_type: str = "max",
    global_pool: bool = False,
    cudnn_off: bool = False,
    pooling_convention: str = "valid",
    stride: Any = None,
    pad: Any = None,
    p_value: int | None = None,
    count_include_pad: bool | None = None,
    layout: str | None = None,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """The max, avg, sum or lp norm of windows of `kernel` elements, `stride` apart.

    With `pooling_convention` "valid" windows lie inside the padded data, with "full" the last one
    may reach beyond, and with "same" there is one for every `stride` elements.
    """

def rcbrt(x: ArrayLike, *, out: ndarray | None = None) -> ndarray:
    """`1 / cbrt(x)`."""

def relu(x: ArrayLike, *, out: ndarray | None = None) -> ndarray:
    """`x` where it is positive, else 0."""

def reshape(
    a: ArrayLike,
    newshape: Any,
    reverse: bool = False,
    order: str = "C",
    *,
    out: ndarray | None = None,
) -> ndarray:
    """A reshape with codes: -1 infers, -2 keeps an extent, -3 drops a 1, -4 keeps all that follow,
    -5 multiplies two, -6 splits one into the next two numbers; `reverse` matches from the right.
    """

def reshape_coded(
    a: ArrayLike,
    newshape: Any,
    reverse: bool = False,
    order: str = "C",
    *,
    out: ndarray | None = None,
) -> ndarray:
    """A reshape with codes: -1 infers, -2 keeps an extent, -3 drops a 1, -4 keeps all that follow,
    -5 multiplies two, -6 splits one into the next two numbers; `reverse` matches from the right.
    """

def reshape_like(
    lhs: ArrayLike,
    rhs: ArrayLike,
    lhs_begin: int | None = None,
    lhs_end: int | None = None,
    rhs_begin: int | None = None,
    rhs_end: int | None = None,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """`lhs` in the shape of `rhs`; with bounds, its dimensions from `lhs_begin` up to `lhs_end`
    replaced by those of `rhs` from `rhs_begin` up to `rhs_end`.
    """

def rms_norm(
    data: ArrayLike,
    gamma: ArrayLike | None = None,
    axis: int = -1,
    eps: float = 1e-06,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """`data` with a mean square of 1 along `axis`, times `gamma`."""

def roi_pooling(
    data: ArrayLike,
    rois: ArrayLike,
    pooled_size: Sequence[int],
    spatial_scale: float,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """The largest element of each of `pooled_size` (rows, columns) parts of each region.

    `data` is (batch, channels, height, width); a row of `rois` is the number of an image and the
    region's left, top, right and bottom, which belong to it, times `spatial_scale`. A part without
    pixels gives 0, and so does the number of no image.
    """

def rotary_embedding(
    data: ArrayLike,
    positions: ArrayLike | None = None,
    base: float = 10000.0,
    interleaved: bool = False,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """`data`, (..., length, width), with pairs of its columns turned by angles that grow with the
    place in the sequence, so that products of two such rows depend on how far they are apart.

    Pair `i` turns by `base ** (-2 * i / width)` a place. It is columns `i` and `i + width / 2`, or,
    `interleaved`, columns `2 * i` and `2 * i + 1`. `positions` are the places, if they are not
    0, 1, ...: numbers that broadcast to `data` without its last axis.
    """

def rsqrt(x: ArrayLike, *, out: ndarray | None = None) -> ndarray:
    """`1 / sqrt(x)`."""

def scatter_nd(
    data: ArrayLike,
    indices: ArrayLike,
    shape: Any,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """Zeros of `shape` with the rows of `data` at the places that `indices` names as `gather_nd`
    does; of equal places the last counts.
    """

def segment_max(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: Any,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """The largest rows of each segment, element by element: row `i` belongs to segment
    `segment_ids[i]`, a number below `num_segments`. Where there are none, -inf, or the least
    integer.
    """

def segment_mean(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: Any,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """The means of the rows of each segment: row `i` belongs to segment `segment_ids[i]`, a number
    below `num_segments`. 0 where there are none.
    """

def segment_min(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: Any,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """The smallest rows of each segment, element by element: row `i` belongs to segment
    `segment_ids[i]`, a number below `num_segments`. Where there are none, inf, or the largest
    integer.
    """

def segment_sum(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: Any,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """The sums of the rows of each segment: row `i` belongs to segment `segment_ids[i]`, a number
    below `num_segments`. 0 where there are none.
    """

def sequence_mask(
    data: ArrayLike,
    sequence_length: ArrayLike | None = None,
    use_sequence_length: bool = False,
    value: ArrayLike = 0.0,
    axis: int = 0,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """`data` with `value` behind the end of each sequence. `axis`, 0 or 1, counts the steps and the
    other one the sequences; without `use_sequence_length`, `data` as it is.
    """

def shape_array(data: ArrayLike, *, out: ndarray | None = None) -> ndarray:
    """The shape, as an array of int64."""

def sigmoid(x: ArrayLike, *, out: ndarray | None = None) -> ndarray:
    """`1 / (1 + exp(-x))`."""

def silu(data: ArrayLike, beta: ArrayLike = 1.0, *, out: ndarray | None = None) -> ndarray:
    """`data * sigmoid(beta * data)`, also known as swish."""

def size_array(data: ArrayLike, *, out: ndarray | None = None) -> ndarray:
    """The number of elements, as an array of one int64."""

def slice(
    data: ArrayLike,
    begin: tuple[Any, ...],
    end: tuple[Any, ...],
    step: tuple[Any, ...] | None = None,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """The elements from `begin` to `end`, `step` apart, along the leading dimensions."""

def slice_axis(
    data: ArrayLike,
    axis: int,
    begin: int,
    end: int | None,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """The elements from `begin` to `end` along one axis."""

def slice_like(
    data: ArrayLike,
    shape_like: ArrayLike,
    axes: int | Sequence[int] = (),
    *,
    out: ndarray | None = None,
) -> ndarray:
    """The first elements along `axes` (all of them by default), as many as `shape_like` has."""

def smooth_l1(
    data: ArrayLike,
    scalar: ArrayLike = 1.0,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """The absolute value, rounded off to a parabola within `1 / scalar**2` of zero."""

def softmax(
    data: ArrayLike,
    length: ArrayLike | None = None,
    axis: int = -1,
    temperature: float | None = None,
    use_length: bool = False,
    dtype: DTypeLike | None = None,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """`exp(data)` scaled to a sum of 1 along `axis`.

    With `use_length`, just the first `length` elements count, and the others become 0.
    """

def softmin(
    data: ArrayLike,
    axis: int = -1,
    temperature: float | None = None,
    dtype: DTypeLike | None = None,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """`softmax` of the negative."""

def softplus(
    data: ArrayLike,
    beta: ArrayLike = 1.0,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """`log(1 + exp(beta * data)) / beta`, a smooth `relu`, without overflow."""

def space_to_depth(
    data: ArrayLike,
    block_size: int,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """Blocks of pixels moved into channels."""

def topk(
    data: ArrayLike,
    axis: int | None = -1,
    k: int = 1,
    ret_typ: str = "indices",
    is_ascend: bool = False,
    dtype: DTypeLike = "float32",
) -> Any:
    """The `k` largest (or smallest) elements along `axis`, in order; all of them if `k` is 0.

    `ret_typ` says what is returned: their "indices", as `dtype`; their "value"; "both", values
    first; or a "mask", 1 where they stand and 0 elsewhere.
    """
