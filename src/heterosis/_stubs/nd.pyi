"""MXNet's operators, in `heterosis.nd`."""

# Made by docs/make_stubs.py: change the record of an operation, and run it again.
# mypy: allow-any-generics

from collections.abc import Sequence
from heterosis._core import ndarray
from typing import Any

def Activation(*arguments: Any, **keywords: Any) -> ndarray: ...

def BatchNorm(*arguments: Any, **keywords: Any) -> Any: ...

def BlockGrad(data: Any) -> ndarray:
    """The same elements; no gradient flows through."""

def CTCLoss(
    data: Any,
    label: Any,
    data_lengths: Any = None,
    label_lengths: Any = None,
    use_data_lengths: bool = False,
    use_label_lengths: bool = False,
    blank_label: str = "first",
) -> ndarray:
    """The loss of each sequence of scores (time, batch, classes) for its labels."""

def Cast(data: Any, dtype: Any) -> ndarray:
    """Elements converted to `dtype`."""

def Concat(*data: Any, dim: int = 1, num_args: int | None = None) -> ndarray:
    """Arrays joined along `dim`."""

def Convolution(data: Any, weight: Any, bias: Any = None, **options: Any) -> ndarray:
    """See `npx.convolution`."""

def Crop(
    *data: Any,
    offset: Sequence[int] = ...,
    h_w: Sequence[int] = ...,
    center_crop: bool = False,
    num_args: int | None = None,
) -> ndarray:
    """A part of images: as large as those of a second argument, or `h_w`."""

def Deconvolution(data: Any, weight: Any, bias: Any = None, **options: Any) -> ndarray:
    """See `npx.deconvolution`."""

def Dropout(*arguments: Any, **keywords: Any) -> ndarray: ...

def ElementWiseSum(*args: Any) -> ndarray:
    """The sum of arrays of one shape."""

def Embedding(*arguments: Any, **keywords: Any) -> ndarray: ...

def Flatten(data: Any) -> ndarray:
    """All dimensions but the first made one."""

def FullyConnected(*arguments: Any, **keywords: Any) -> ndarray: ...

def GroupNorm(
    data: Any,
    gamma: Any,
    beta: Any,
    num_groups: int = 1,
    eps: float = 1e-05,
    output_mean_var: bool = False,
) -> Any:
    """The channels of each group, of each example, scaled together, then scaled and shifted."""

def InstanceNorm(data: Any, gamma: Any, beta: Any, eps: float = 0.001) -> ndarray:
    """Each channel of each example scaled to mean 0 and variance 1, then scaled and shifted."""

def L2Normalization(data: Any, eps: float = 1e-10, mode: str = "instance") -> ndarray:
    """Vectors scaled to length 1: whole examples, channels, or positions in a channel."""

def LRN(
    data: Any,
    nsize: int,
    alpha: float = 0.0001,
    beta: float = 0.75,
    knorm: float = 2.0,
) -> ndarray:
    """Elements divided by a power of the squares of `nsize` neighbouring channels."""

def LayerNorm(*arguments: Any, **keywords: Any) -> Any: ...

def LeakyReLU(*arguments: Any, **keywords: Any) -> ndarray: ...

def LinearRegressionOutput(data: Any, label: Any, grad_scale: float = 1.0) -> ndarray: ...

def LogisticRegressionOutput(data: Any, label: Any, grad_scale: float = 1.0) -> ndarray: ...

def MAERegressionOutput(data: Any, label: Any, grad_scale: float = 1.0) -> ndarray: ...

def MakeLoss(
    data: Any,
    grad_scale: float = 1.0,
    valid_thresh: float = 0.0,
    normalization: str = "null",
) -> ndarray:
    """The same elements, as a loss: the gradient of each is `grad_scale`, divided by the size of
    the batch or by the number of elements above `valid_thresh` if `normalization` says so.
    """

def Pad(data: Any, mode: str, pad_width: Sequence[int], constant_value: float = 0.0) -> ndarray:
    """A border around the data; `pad_width` has two numbers for each axis."""

def Pooling(data: Any, **options: Any) -> ndarray:
    """See `npx.pooling`."""

def RNN(*arguments: Any, **keywords: Any) -> Any: ...

def ROIPooling(*arguments: Any, **keywords: Any) -> ndarray:
    """See `npx.roi_pooling`."""

def Reshape(data: Any, shape: Any = (), reverse: bool = False) -> ndarray:
    """Another shape, in codes: 0 keeps an extent, -1 is inferred, -2 keeps the rest, -3 multiplies
    two, -4 splits one. With `reverse` the codes are read from the right.
    """

def SequenceLast(
    data: Any,
    sequence_length: Any = None,
    use_sequence_length: bool = False,
    axis: int = 0,
) -> ndarray:
    """The last step of each sequence."""

def SequenceMask(
    data: Any,
    sequence_length: Any = None,
    use_sequence_length: bool = False,
    value: float = 0.0,
    axis: int = 0,
) -> ndarray:
    """`value` behind the end of each sequence."""

def SequenceReverse(
    data: Any,
    sequence_length: Any = None,
    use_sequence_length: bool = False,
    axis: int = 0,
) -> ndarray:
    """The steps of each sequence in reverse; those behind its end stay."""

def SliceChannel(
    data: Any,
    num_outputs: int,
    axis: int = 1,
    squeeze_axis: bool = False,
) -> Any:
    """Equal parts along `axis`; without it if `squeeze_axis`."""

def Softmax(
    data: Any,
    label: Any,
    grad_scale: float = 1.0,
    ignore_label: float = -1.0,
    multi_output: bool = False,
    use_ignore: bool = False,
    preserve_shape: bool = False,
    normalization: str = "null",
    smooth_alpha: float = 0.0,
) -> ndarray:
    """Probabilities of classes, along axis 1 if `multi_output`, along the last one if
    `preserve_shape`, else along all but the first; with the gradient of their cross-entropy with
    `label`.

    Labels are numbers of classes, or, if they have the shape of the data, probabilities, for which
    nothing but `grad_scale` counts. Those equal to `ignore_label` do not count if `use_ignore`.
    """

def SoftmaxActivation(data: Any, mode: str = "instance") -> ndarray:
    """Softmax over the last axis, or over the channels (`mode='channel'`)."""

def SoftmaxOutput(
    data: Any,
    label: Any,
    grad_scale: float = 1.0,
    ignore_label: float = -1.0,
    multi_output: bool = False,
    use_ignore: bool = False,
    preserve_shape: bool = False,
    normalization: str = "null",
    smooth_alpha: float = 0.0,
) -> ndarray:
    """Probabilities of classes, along axis 1 if `multi_output`, along the last one if
    `preserve_shape`, else along all but the first; with the gradient of their cross-entropy with
    `label`.

    Labels are numbers of classes, or, if they have the shape of the data, probabilities, for which
    nothing but `grad_scale` counts. Those equal to `ignore_label` do not count if `use_ignore`.
    """

def SwapAxis(data: Any, dim1: int = 0, dim2: int = 0) -> ndarray:
    """Two dimensions in each other's place."""

def UpSampling(
    *data: Any,
    scale: Any,
    sample_type: str = "nearest",
    multi_input_mode: str = "concat",
    num_args: int | None = None,
    num_filter: int = 0,
    workspace: int = 512,
) -> ndarray:
    """Each pixel repeated in both directions, `scale` times in the first of `data`.

    Further images are enlarged to the size that the first gets, and joined as channels or, with
    `multi_input_mode="sum"`, added.
    """

def abs(data: Any) -> ndarray: ...

def add(lhs: Any, rhs: Any) -> ndarray: ...

def add_n(*args: Any) -> ndarray:
    """The sum of arrays of one shape."""

def all_finite(data: Any, init_output: bool = True) -> ndarray:
    """1 if no element is infinite or nan, else 0."""

def amp_cast(data: Any, dtype: Any) -> ndarray:
    """Elements converted to `dtype`."""

def arange(
    start: float,
    stop: float | None = None,
    step: float = 1.0,
    repeat: int = 1,
    infer_range: bool | None = None,
    ctx: Any = None,
    dtype: Any = "float32",
) -> ndarray:
    """Numbers from `start` up to `stop`, each `repeat` times."""

def arccos(data: Any) -> ndarray: ...

def arccosh(data: Any) -> ndarray: ...

def arcsin(data: Any) -> ndarray: ...

def arcsinh(data: Any) -> ndarray: ...

def arctan(data: Any) -> ndarray: ...

def arctanh(data: Any) -> ndarray: ...

def argmax(data: Any, axis: int | None = None, keepdims: bool = False) -> ndarray: ...

def argmax_channel(data: Any) -> ndarray:
    """The index of the largest element along axis 1, as float32."""

def argmin(data: Any, axis: int | None = None, keepdims: bool = False) -> ndarray: ...

def argsort(
    data: Any,
    axis: int = -1,
    is_ascend: bool = True,
    dtype: Any = "float32",
) -> ndarray:
    """The indices that sort along `axis`, as `dtype`."""

def array(source_array: Any, ctx: Any = None, dtype: Any = None) -> ndarray:
    """An array from numbers, lists or arrays; of float32, also from NumPy's arrays of others."""

def batch_dot(
    lhs: Any,
    rhs: Any,
    transpose_a: bool = False,
    transpose_b: bool = False,
) -> ndarray:
    """Matrix products of two stacks of matrices."""

def batch_take(a: Any, indices: Any) -> ndarray:
    """One element of each row."""

def broadcast_add(lhs: Any, rhs: Any) -> ndarray: ...

def broadcast_axes(data: Any, axis: Any = (), size: Any = ()) -> ndarray:
    """Repeated `size` times along axes of extent 1."""

def broadcast_axis(data: Any, axis: Any = (), size: Any = ()) -> ndarray:
    """Repeated `size` times along axes of extent 1."""

def broadcast_div(lhs: Any, rhs: Any) -> ndarray: ...

def broadcast_equal(lhs: Any, rhs: Any) -> ndarray: ...

def broadcast_greater(lhs: Any, rhs: Any) -> ndarray: ...

def broadcast_greater_equal(lhs: Any, rhs: Any) -> ndarray: ...

def broadcast_hypot(lhs: Any, rhs: Any) -> ndarray: ...

def broadcast_lesser(lhs: Any, rhs: Any) -> ndarray: ...

def broadcast_lesser_equal(lhs: Any, rhs: Any) -> ndarray: ...

def broadcast_like(lhs: Any, rhs: Any, lhs_axes: Any = None, rhs_axes: Any = None) -> ndarray:
    """`lhs` repeated to the shape of `rhs`."""

def broadcast_logical_and(lhs: Any, rhs: Any) -> ndarray: ...

def broadcast_logical_or(lhs: Any, rhs: Any) -> ndarray: ...

def broadcast_logical_xor(lhs: Any, rhs: Any) -> ndarray: ...

def broadcast_maximum(lhs: Any, rhs: Any) -> ndarray: ...

def broadcast_minimum(lhs: Any, rhs: Any) -> ndarray: ...

def broadcast_minus(lhs: Any, rhs: Any) -> ndarray: ...

def broadcast_mod(lhs: Any, rhs: Any) -> ndarray: ...

def broadcast_mul(lhs: Any, rhs: Any) -> ndarray: ...

def broadcast_not_equal(lhs: Any, rhs: Any) -> ndarray: ...

def broadcast_plus(lhs: Any, rhs: Any) -> ndarray: ...

def broadcast_power(lhs: Any, rhs: Any) -> ndarray: ...

def broadcast_sub(lhs: Any, rhs: Any) -> ndarray: ...

def broadcast_to(data: Any, shape: Any) -> ndarray:
    """Repeated to `shape`, where 0 keeps an extent."""

def cast(data: Any, dtype: Any) -> ndarray:
    """Elements converted to `dtype`."""

def cbrt(data: Any) -> ndarray: ...

def ceil(data: Any) -> ndarray: ...

def choose_element_0index(
    data: Any,
    index: Any,
    axis: int = -1,
    keepdims: bool = False,
    mode: str = "clip",
) -> ndarray:
    """One element for each position off `axis`."""

def clip(data: Any, a_min: float, a_max: float) -> ndarray:
    """The elements, kept between `a_min` and `a_max`."""

def concat(*data: Any, dim: int = 1, num_args: int | None = None) -> ndarray:
    """Arrays joined along `dim`."""

def cos(data: Any) -> ndarray: ...

def cosh(data: Any) -> ndarray: ...

def crop(
    data: Any,
    begin: int | Sequence,
    end: int | Sequence,
    step: int | Sequence = (),
) -> ndarray:
    """The elements from `begin` to `end`, `step` apart, along the leading dimensions."""

def ctc_loss(
    data: Any,
    label: Any,
    data_lengths: Any = None,
    label_lengths: Any = None,
    use_data_lengths: bool = False,
    use_label_lengths: bool = False,
    blank_label: str = "first",
) -> ndarray:
    """The loss of each sequence of scores (time, batch, classes) for its labels."""

def cumsum(a: Any, axis: int | None = None, dtype: Any = None) -> ndarray:
    """Running sums along `axis`."""

def degrees(data: Any) -> ndarray: ...

def depth_to_space(data: Any, block_size: int) -> ndarray:
    """Channels moved into blocks of pixels."""

def diag(data: Any, k: int = 0, axis1: int = 0, axis2: int = 1) -> ndarray:
    """A diagonal, or a matrix with the elements on its diagonal."""

def divide(lhs: Any, rhs: Any) -> ndarray: ...

def dot(lhs: Any, rhs: Any, transpose_a: bool = False, transpose_b: bool = False) -> ndarray:
    """The sum over the last axis of `lhs`, or its first one if `transpose_a`, and over the first
    axis of `rhs`, or its last one if `transpose_b`.
    """

def elemwise_add(lhs: Any, rhs: Any) -> ndarray: ...

def elemwise_div(lhs: Any, rhs: Any) -> ndarray: ...

def elemwise_mul(lhs: Any, rhs: Any) -> ndarray: ...

def elemwise_sub(lhs: Any, rhs: Any) -> ndarray: ...

def empty(shape: Any, ctx: Any = None, dtype: Any = None) -> ndarray:
    """Whatever the memory held."""

def equal(lhs: Any, rhs: Any) -> ndarray: ...

def erf(data: Any) -> ndarray: ...

def erfinv(data: Any) -> ndarray: ...

def exp(data: Any) -> ndarray: ...

def expand_dims(data: Any, axis: int) -> ndarray:
    """A new dimension of extent 1."""

def expm1(data: Any) -> ndarray: ...

def eye(N: int, M: int = 0, k: int = 0, ctx: Any = None, dtype: Any = "float32") -> ndarray:
    """Ones on a diagonal."""

def fill_element_0index(lhs: Any, mhs: Any, rhs: Any) -> ndarray:
    """`lhs` with, in each row, the element that `rhs` names replaced by that of `mhs`."""

def fix(data: Any) -> ndarray: ...

def flatten(data: Any) -> ndarray:
    """All dimensions but the first made one."""

def flip(data: Any, axis: Any) -> ndarray:
    """Elements in reverse order along `axis`."""

def floor(data: Any) -> ndarray: ...

def full(shape: Any, val: float, ctx: Any = None, dtype: Any = "float32") -> ndarray:
    """One number everywhere."""

def gamma(data: Any) -> ndarray: ...

def gammaln(data: Any) -> ndarray: ...

def gather_nd(data: Any, indices: Any) -> ndarray:
    """The elements at places given by the first dimension of `indices`."""

def greater(lhs: Any, rhs: Any) -> ndarray: ...

def greater_equal(lhs: Any, rhs: Any) -> ndarray: ...

def hard_sigmoid(data: Any, alpha: float = 0.2, beta: float = 0.5) -> ndarray:
    """The line `alpha * data + beta`, kept between 0 and 1."""

def hypot(lhs: Any, rhs: Any) -> ndarray: ...

def identity(data: Any) -> ndarray:
    """A copy."""

def khatri_rao(*args: Any) -> ndarray:
    """Of matrices with equally many columns, the products of columns' elements with each other."""

def lesser(lhs: Any, rhs: Any) -> ndarray: ...

def lesser_equal(lhs: Any, rhs: Any) -> ndarray: ...

def linalg_det(A: Any) -> ndarray:
    """The determinants of matrices."""

def linalg_extractdiag(A: Any, offset: int = 0) -> ndarray:
    """A diagonal."""

def linalg_extracttrian(A: Any, offset: int = 0, lower: bool = True) -> ndarray:
    """The elements of a triangle, in one dimension."""

def linalg_gelqf(A: Any) -> list[Any]:
    """Orthonormal rows, and the lower triangle to multiply them by to give `A`."""

def linalg_gemm(
    A: Any,
    B: Any,
    C: Any,
    transpose_a: bool = False,
    transpose_b: bool = False,
    alpha: float = 1.0,
    beta: float = 1.0,
) -> ndarray:
    """`alpha * A @ B + beta * C`."""

def linalg_gemm2(
    A: Any,
    B: Any,
    transpose_a: bool = False,
    transpose_b: bool = False,
    alpha: float = 1.0,
) -> ndarray:
    """`alpha` times the product of two stacks of matrices."""

def linalg_inverse(A: Any) -> ndarray:
    """The inverses of matrices."""

def linalg_makediag(A: Any, offset: int = 0) -> ndarray:
    """Matrices with the vectors of `A` on a diagonal."""

def linalg_maketrian(A: Any, offset: int = 0, lower: bool = True) -> ndarray:
    """Matrices with the elements of `A` in a triangle."""

def linalg_potrf(A: Any) -> ndarray:
    """The Cholesky factor, a lower triangle."""

def linalg_potri(A: Any) -> ndarray:
    """The inverse of a matrix whose Cholesky factor is `A`."""

def linalg_slogdet(A: Any) -> list[Any]:
    """Signs and logarithms of the absolute values of determinants."""

def linalg_sumlogdiag(A: Any) -> ndarray:
    """The sum of the logarithms of the diagonal."""

def linalg_syrk(A: Any, transpose: bool = False, alpha: float = 1.0) -> ndarray:
    """`alpha` times the product of a matrix with its own transpose."""

def linalg_trmm(
    A: Any,
    B: Any,
    transpose: bool = False,
    rightside: bool = False,
    lower: bool = True,
    alpha: float = 1.0,
) -> ndarray:
    """`alpha` times the product of a triangle and a matrix, in the other order if `rightside`."""

def linalg_trsm(
    A: Any,
    B: Any,
    transpose: bool = False,
    rightside: bool = False,
    lower: bool = True,
    alpha: float = 1.0,
) -> ndarray:
    """What a triangle must be multiplied by to give `alpha * B`."""

def log(data: Any) -> ndarray: ...

def log10(data: Any) -> ndarray: ...

def log1p(data: Any) -> ndarray: ...

def log2(data: Any) -> ndarray: ...

def log_softmax(*arguments: Any, **keywords: Any) -> ndarray: ...

def logical_and(lhs: Any, rhs: Any) -> ndarray: ...

def logical_not(data: Any) -> ndarray:
    """1 where an element is 0, else 0, in the element type of `data`."""

def logical_or(lhs: Any, rhs: Any) -> ndarray: ...

def logical_xor(lhs: Any, rhs: Any) -> ndarray: ...

def make_loss(data: Any) -> ndarray:
    """The same elements, as a loss: the gradient of each is 1."""

def max(data: Any, axis: Any = None, keepdims: bool = False, exclude: bool = False) -> ndarray: ...

def max_axis(
    data: Any,
    axis: Any = None,
    keepdims: bool = False,
    exclude: bool = False,
) -> ndarray: ...

def maximum(lhs: Any, rhs: Any) -> ndarray: ...

def mean(data: Any, axis: Any = None, keepdims: bool = False, exclude: bool = False) -> ndarray: ...

def min(data: Any, axis: Any = None, keepdims: bool = False, exclude: bool = False) -> ndarray: ...

def min_axis(
    data: Any,
    axis: Any = None,
    keepdims: bool = False,
    exclude: bool = False,
) -> ndarray: ...

def minimum(lhs: Any, rhs: Any) -> ndarray: ...

def modulo(lhs: Any, rhs: Any) -> ndarray: ...

def moments(data: Any, axes: Any = None, keepdims: bool = False) -> list[Any]:
    """Mean and variance along axes."""

def multi_all_finite(*data: Any, num_arrays: int = 1, init_output: bool = True) -> ndarray:
    """1 if no element of any array is infinite or nan, else 0."""

def multi_sum_sq(*data: Any, num_arrays: int = 1) -> ndarray:
    """The sum of squares of each array."""

def multiply(lhs: Any, rhs: Any) -> ndarray: ...

def nanprod(
    data: Any,
    axis: Any = None,
    keepdims: bool = False,
    exclude: bool = False,
) -> ndarray: ...

def nansum(
    data: Any,
    axis: Any = None,
    keepdims: bool = False,
    exclude: bool = False,
) -> ndarray: ...

def negative(data: Any) -> ndarray: ...

def norm(
    data: Any,
    ord: int = 2,
    axis: Any = None,
    keepdims: bool = False,
    out_dtype: Any = None,
) -> ndarray:
    """The sum of absolute values (`ord=1`) or the root of the sum of squares (2) along axes."""

def normal(
    loc: Any = 0.0,
    scale: Any = 1.0,
    shape: Any = None,
    dtype: Any = None,
    ctx: Any = None,
) -> ndarray:
    """Normal random numbers."""

def not_equal(lhs: Any, rhs: Any) -> ndarray: ...

def one_hot(
    indices: Any,
    depth: int,
    on_value: float = 1.0,
    off_value: float = 0.0,
    dtype: Any = "float32",
) -> ndarray:
    """A new last dimension with `on_value` at each index."""

def ones(shape: Any, ctx: Any = None, dtype: Any = None, **options: Any) -> ndarray:
    """Ones."""

def ones_like(data: Any) -> ndarray: ...

def pad(data: Any, mode: str, pad_width: Sequence[int], constant_value: float = 0.0) -> ndarray:
    """A border around the data; `pad_width` has two numbers for each axis."""

def pick(
    data: Any,
    index: Any,
    axis: int = -1,
    keepdims: bool = False,
    mode: str = "clip",
) -> ndarray:
    """One element for each position off `axis`."""

def pow(lhs: Any, rhs: Any) -> ndarray: ...

def power(lhs: Any, rhs: Any) -> ndarray: ...

def prod(data: Any, axis: Any = None, keepdims: bool = False, exclude: bool = False) -> ndarray: ...

def radians(data: Any) -> ndarray: ...

def random_exponential(
    lam: Any = 1.0,
    shape: Any = None,
    dtype: Any = None,
    ctx: Any = None,
) -> ndarray:
    """Random numbers of the exponential distribution with rate `lam`."""

def random_gamma(
    alpha: Any = 1.0,
    beta: Any = 1.0,
    shape: Any = None,
    dtype: Any = None,
    ctx: Any = None,
) -> ndarray:
    """Random numbers of the gamma distribution with shape `alpha` and scale `beta`."""

def random_generalized_negative_binomial(
    mu: float = 1.0,
    alpha: float = 1.0,
    shape: Any = None,
    dtype: Any = None,
    ctx: Any = None,
) -> ndarray:
    """Random counts with mean `mu` and variance `mu + alpha * mu ** 2`."""

def random_negative_binomial(
    k: int = 1,
    p: float = 1.0,
    shape: Any = None,
    dtype: Any = None,
    ctx: Any = None,
) -> ndarray:
    """Random counts of failures before `k` successes of probability `p`."""

def random_normal(
    loc: Any = 0.0,
    scale: Any = 1.0,
    shape: Any = None,
    dtype: Any = None,
    ctx: Any = None,
) -> ndarray:
    """Normal random numbers."""

def random_poisson(
    lam: Any = 1.0,
    shape: Any = None,
    dtype: Any = None,
    ctx: Any = None,
) -> ndarray:
    """Random counts with mean `lam`."""

def random_randint(
    low: int,
    high: int,
    shape: Any = None,
    dtype: Any = "int32",
    ctx: Any = None,
) -> ndarray:
    """Random whole numbers from `low` up to, without, `high`."""

def random_uniform(
    low: Any = 0.0,
    high: Any = 1.0,
    shape: Any = None,
    dtype: Any = None,
    ctx: Any = None,
) -> ndarray:
    """Uniform random numbers."""

def ravel_multi_index(data: Any, shape: Any) -> ndarray:
    """Places counted through the whole array, for indices along each axis."""

def rcbrt(data: Any) -> ndarray:
    """One over the cube root."""

def reciprocal(data: Any) -> ndarray: ...

def relu(data: Any) -> ndarray: ...

def repeat(data: Any, repeats: int, axis: int | None = None) -> ndarray:
    """Each element repeated."""

def reset_arrays(*data: Any, num_arrays: int = 1) -> None:
    """Set all elements of all arrays to 0, in place."""

def reshape(data: Any, shape: Any = (), reverse: bool = False) -> ndarray:
    """Another shape, in codes: 0 keeps an extent, -1 is inferred, -2 keeps the rest, -3 multiplies
    two, -4 splits one. With `reverse` the codes are read from the right.
    """

def reshape_like(
    lhs: Any,
    rhs: Any,
    lhs_begin: int | None = None,
    lhs_end: int | None = None,
    rhs_begin: int | None = None,
    rhs_end: int | None = None,
) -> ndarray:
    """`lhs` in the shape of `rhs`, or some of its dimensions in the place of some of those."""

def reverse(data: Any, axis: Any) -> ndarray:
    """Elements in reverse order along `axis`."""

def rint(data: Any) -> ndarray: ...

def round(data: Any) -> ndarray:
    """The nearest whole number, halves away from zero."""

def rsqrt(data: Any) -> ndarray:
    """`1 / sqrt(data)`."""

def sample_exponential(lam: Any, shape: Any = None, dtype: Any = None) -> ndarray:
    """For each rate, random numbers of `shape`."""

def sample_gamma(alpha: Any, beta: Any, shape: Any = None, dtype: Any = None) -> ndarray:
    """For each shape and scale of a gamma distribution, random numbers of `shape`."""

def sample_generalized_negative_binomial(
    mu: Any,
    alpha: Any,
    shape: Any = None,
    dtype: Any = None,
) -> ndarray:
    """For each mean and dispersion, random counts of `shape`."""

def sample_multinomial(
    data: Any,
    shape: Any = None,
    get_prob: bool = False,
    dtype: Any = "int32",
) -> Any:
    """Random classes, for each vector of probabilities as many as `shape` says."""

def sample_negative_binomial(k: Any, p: Any, shape: Any = None, dtype: Any = None) -> ndarray:
    """For each pair, random counts of failures before `k` successes of probability `p`."""

def sample_normal(mu: Any, sigma: Any, shape: Any = None, dtype: Any = None) -> ndarray:
    """For each mean and deviation, random numbers of `shape`."""

def sample_poisson(lam: Any, shape: Any = None, dtype: Any = None) -> ndarray:
    """For each mean, random counts of `shape`."""

def sample_uniform(low: Any, high: Any, shape: Any = None, dtype: Any = None) -> ndarray:
    """For each pair of bounds, random numbers of `shape`."""

def scatter_nd(data: Any, indices: Any, shape: Any) -> ndarray:
    """Zeros of `shape` with `data` at places given by the first dimension of `indices`."""

def shape_array(data: Any) -> ndarray:
    """The shape, as an array of int64."""

def shuffle(data: Any) -> ndarray:
    """The rows in random order."""

def sigmoid(data: Any) -> ndarray: ...

def sign(data: Any) -> ndarray: ...

def sin(data: Any) -> ndarray: ...

def sinh(data: Any) -> ndarray: ...

def size_array(data: Any) -> ndarray:
    """The number of elements, as an array of one int64."""

def slice(
    data: Any,
    begin: int | Sequence,
    end: int | Sequence,
    step: int | Sequence = (),
) -> ndarray:
    """The elements from `begin` to `end`, `step` apart, along the leading dimensions."""

def slice_axis(data: Any, axis: int, begin: int, end: int | None) -> ndarray:
    """The elements from `begin` to `end` along one axis."""

def slice_like(data: Any, shape_like: Any, axes: Any = ()) -> ndarray:
    """As many elements along `axes` as `shape_like` has."""

def smooth_l1(data: Any, scalar: float = 1.0) -> ndarray:
    """The absolute value, rounded off to a parabola near zero."""

def softmax(*arguments: Any, **keywords: Any) -> ndarray: ...

def softmax_cross_entropy(data: Any, label: Any) -> ndarray:
    """The sum over examples of minus the logarithm of the label's probability.

    A label that is no class counts as the nearest one, as `pick` has it.
    """

def softmin(data: Any, axis: int = -1, temperature: float | None = None) -> ndarray:
    """The softmax of `-data`."""

def softsign(data: Any) -> ndarray:
    """`data / (1 + |data|)`."""

def sort(data: Any, axis: int = -1, is_ascend: bool = True) -> ndarray:
    """Elements in order along `axis`."""

def space_to_depth(data: Any, block_size: int) -> ndarray:
    """Blocks of pixels moved into channels."""

def split(data: Any, num_outputs: int, axis: int = 1, squeeze_axis: bool = False) -> Any:
    """Equal parts along `axis`; without it if `squeeze_axis`."""

def split_v2(
    ary: Any,
    indices_or_sections: Any,
    axis: int = 0,
    squeeze_axis: bool = False,
) -> ndarray:
    """The parts between indices, or equal parts, along `axis`."""

def sqrt(data: Any) -> ndarray: ...

def square(data: Any) -> ndarray: ...

def squeeze(data: Any, axis: Any = None) -> ndarray:
    """Without dimensions of extent 1."""

def stack(*data: Any, axis: int = 0, num_args: int | None = None) -> ndarray:
    """Arrays joined along a new dimension."""

def stop_gradient(data: Any) -> ndarray:
    """The same elements; no gradient flows through."""

def subtract(lhs: Any, rhs: Any) -> ndarray: ...

def sum(data: Any, axis: Any = None, keepdims: bool = False, exclude: bool = False) -> ndarray: ...

def sum_axis(
    data: Any,
    axis: Any = None,
    keepdims: bool = False,
    exclude: bool = False,
) -> ndarray: ...

def swapaxes(data: Any, dim1: int = 0, dim2: int = 0) -> ndarray:
    """Two dimensions in each other's place."""

def take(a: Any, indices: Any, axis: int = 0, mode: str = "clip") -> ndarray:
    """The rows of `a` that `indices` name along `axis`."""

def tan(data: Any) -> ndarray: ...

def tanh(data: Any) -> ndarray: ...

def tile(data: Any, reps: Any) -> ndarray:
    """`data` repeated as a whole, `reps` times along each axis."""

def topk(data: Any, **options: Any) -> Any:
    """The `k` largest elements along an axis; see `npx.topk`."""

def transpose(data: Any, axes: Any = ()) -> ndarray:
    """The dimensions in another order, reversed by default."""

def trunc(data: Any) -> ndarray: ...

def uniform(
    low: Any = 0.0,
    high: Any = 1.0,
    shape: Any = None,
    dtype: Any = None,
    ctx: Any = None,
) -> ndarray:
    """Uniform random numbers."""

def unravel_index(data: Any, shape: Any) -> ndarray:
    """The index along each axis, for places counted through the whole array."""

def where(condition: Any, x: Any, y: Any) -> ndarray:
    """`x` where `condition` is not 0, else `y`; a one-dimensional condition chooses rows."""

def zeros(shape: Any, ctx: Any = None, dtype: Any = None, **options: Any) -> ndarray:
    """Zeros."""

def zeros_like(data: Any) -> ndarray: ...
