"""Expressions over `F`'s operators, for MXNet and for us.

What MXNet gives stands in mxnet_values.json; the file imports nothing of ours, so that MXNet's
Python can run it. `x`, `y` are (2, 3, 4), `m` is
(3, 4), `v` is (3,), `p` is like `x` and positive, `i` holds whole numbers below 3, `image` is
(1, 4, 4, 4), and `s` is symmetric and positive definite.
"""

import numpy

EXPRESSIONS = [
    # elements
    "F.relu(x)", "F.sigmoid(data=x)", "F.rsqrt(p)", "F.rcbrt(p)", "F.reciprocal(p)", "F.erf(x)",
    "F.softsign(x)", "F.hard_sigmoid(x, alpha=0.3)", "F.smooth_l1(x, scalar=1.5)", "F.round(x * 3)",
    "F.rint(x * 3)", "F.gammaln(p)", "F.logical_not(F.relu(x))", "F.clip(x, -0.5, 0.5)",
    "F.broadcast_add(x, m.expand_dims(0))", "F.broadcast_sub(x, m.expand_dims(0))",
    "F.broadcast_mul(x, y)", "F.broadcast_div(x, p)", "F.broadcast_power(p, y)",
    "F.broadcast_mod(x, p)", "F.broadcast_maximum(x, y)", "F.broadcast_hypot(x, y)",
    "F.broadcast_equal(x, x)", "F.broadcast_lesser(x, y)", "F.broadcast_greater_equal(x, y)",
    "F.broadcast_logical_and(x, y)", "F.elemwise_add(x, y, name='sum')", "F.elemwise_sub(x, y)",
    "F.elemwise_mul(x, y)", "F.elemwise_div(x, p)", "F.add_n(x, y, p)", "F.where(x > 0, x, y)",
    "F.where(v > 0, m, -m)", "F.maximum(x, 0.1)", "F.Cast(x * 3, dtype='int32')",
    "F.identity(x)", "F.BlockGrad(x)", "F.zeros_like(x)", "F.ones_like(x)", "F.abs(x)",
    # reductions and products
    "F.sum(x, axis=(0, 2))", "F.sum(x, axis=1, exclude=True)", "F.mean(x, axis=1, keepdims=True)",
    "F.max(x, axis=-1)", "F.min(x, axis=0)", "F.prod(x, axis=2)", "F.nansum(x, axis=1)",
    "F.norm(x, axis=1)", "F.norm(x, ord=1, axis=(1, 2))", "F.argmax(x, axis=1)",
    "F.argmin(x, axis=2, keepdims=True)", "F.argmax_channel(m)", "F.argsort(m)",
    "F.argsort(m, axis=0, is_ascend=False)", "F.sort(m, axis=0)", "F.sort(m, is_ascend=False)",
    "F.topk(m, k=2)", "F.topk(m, k=2, ret_typ='value', axis=0)", "F.cumsum(x, axis=1)",
    "F.dot(m, m, transpose_b=True)", "F.dot(m, m, transpose_a=True)", "F.dot(x, m.T)",
    "F.dot(p, v[:2], transpose_a=True)", "F.dot(m, x, transpose_b=True)",
    "F.dot(x, F.ones((2, 5, 2)), transpose_a=True)", "F.dot(v, m.T, transpose_b=True)",
    "F.dot(x, y, transpose_b=True)",
    "F.batch_dot(x, y, transpose_b=True)", "F.linalg_gemm2(x, y, transpose_a=True, alpha=2.0)",
    "F.linalg_syrk(m, alpha=0.5)", "F.linalg_potrf(s)", "F.linalg_potri(s)", "F.linalg_det(s)",
    "F.linalg_inverse(s)", "F.linalg_slogdet(s)[1]", "F.linalg_sumlogdiag(s)",
    "F.linalg_trmm(s, m)", "F.linalg_trmm(s, m, lower=False, transpose=True)",
    "F.linalg_trmm(s, m.T, rightside=True)", "F.linalg_trsm(s, m, alpha=2.0)",
    "F.linalg_trsm(s, m.T, rightside=True, transpose=True)", "F.linalg_gelqf(s[:2])[0]",
    "F.linalg_gelqf(s[:2])[1]", "F.linalg_extractdiag(s, offset=1)",
    "F.linalg_makediag(m, offset=-1)",
    "F.linalg_extracttrian(s, offset=-1)", "F.linalg_extracttrian(s, lower=False)",
    "F.linalg_maketrian(v)", "F.linalg_maketrian(v, offset=1)", "F.khatri_rao(m, m * 2)",
    "F.all_finite(x)", "F.multi_sum_sq(x, v, num_arrays=2)", "F.fill_element_0index(m, v, i)",
    "F.SoftmaxOutput(m, i)", "F.LogisticRegressionOutput(m, m)",
    "F.linalg_gemm(m, m.T, m[:, :3], beta=2.0)",
    "F.moments(x, axes=(0, 2))[1]",
    # shapes
    "F.reshape(x, shape=(-1, 0))", "F.reshape(x, shape=(0, -3))", "F.reshape(x, shape=(-2, 1))",
    "F.reshape(x, shape=(0, 0, -4, 2, -1))", "F.Reshape(x, shape=(-1, 6), reverse=True)",
    "F.reshape(x, shape=(-3, 0), reverse=True)", "F.Flatten(x)", "F.transpose(x)",
    "F.transpose(x, axes=(1, 0, 2))", "F.expand_dims(x, axis=1)", "F.swapaxes(x, 0, 2)",
    "F.SwapAxis(x, dim1=1, dim2=2)", "F.slice(x, begin=(0, 1), end=(1, None), step=(1, 1))",
    "F.slice(m, begin=(None, 3), end=(None, 0), step=(1, -1))",
    "F.slice_axis(x, axis=2, begin=1, end=None)", "F.slice_axis(x, axis=-1, begin=-3, end=-1)",
    "F.slice_like(x, m.expand_dims(0), axes=(0,))", "F.concat(x, y)", "F.Concat(x, y, dim=2)",
    "F.stack(x, y, axis=1)", "F.split(x, num_outputs=2, axis=2)[1]",
    "F.SliceChannel(x, num_outputs=3, squeeze_axis=True)[2]", "F.split(x, num_outputs=1, axis=0)",
    "F.tile(m, reps=(2, 1, 2))", "F.repeat(m, repeats=2, axis=1)", "F.reverse(x, axis=1)",
    "F.flip(m, axis=0)", "F.broadcast_to(m.expand_dims(0), shape=(2, 0, 0))",
    "F.broadcast_axis(m.expand_dims(0), axis=0, size=3)", "F.broadcast_like(m.expand_dims(0), x)",
    "F.reshape_like(x, y)", "F.shape_array(x)", "F.size_array(x)", "F.depth_to_space(image, 2)",
    "F.space_to_depth(image, 2)", "F.diag(m, k=1)", "F.diag(v)", "F.squeeze(x.expand_dims(0))",
    "F.pad(image, mode='constant', pad_width=(0, 0, 0, 0, 1, 2, 0, 1), constant_value=2.0)",
    "F.Pad(image, mode='reflect', pad_width=(0, 0, 0, 0, 1, 1, 2, 1))",
    "F.pad(image, mode='edge', pad_width=(0, 0, 0, 0, 1, 0, 0, 1))", "F.Crop(image, h_w=(2, 3))",
    "F.Crop(image, h_w=(2, 2), center_crop=True)",
    # elements by index, and sequences
    "F.take(m, i)", "F.take(m, i, axis=1, mode='wrap')", "F.batch_take(m, i.astype('int32'))",
    "F.pick(m, i)",
    "F.pick(x, i.reshape((1, 3)).tile((2, 1)), keepdims=True)", "F.one_hot(i, 4, on_value=2.0)",
    "F.gather_nd(m, F.stack(i, i))", "F.scatter_nd(v, F.stack(i, i), shape=(3, 4))",
    "F.Embedding(i, m, input_dim=3, output_dim=4)", "F.unravel_index(i * 4, shape=(3, 4))",
    "F.ravel_multi_index(F.stack(i, i), shape=(3, 4))",
    "F.SequenceMask(x, i, use_sequence_length=True, value=-1.0)",
    "F.SequenceLast(x, F.minimum(i, 1) + 1, use_sequence_length=True)", "F.SequenceLast(x)",
    "F.SequenceReverse(x, F.minimum(i, 1) + 1, use_sequence_length=True)", "F.SequenceReverse(x)",
    # layers
    "F.FullyConnected(x, F.ones((2, 12)), F.ones((2,)), num_hidden=2)", "F.Activation(x, 'tanh')",
    "F.LeakyReLU(x, act_type='elu', slope=0.3)", "F.softmax(x, axis=1)", "F.log_softmax(x)",
    "F.softmin(x, axis=0)", "F.SoftmaxActivation(image, mode='channel')", "F.SoftmaxActivation(m)",
    "F.softmax_cross_entropy(m, i)", "F.L2Normalization(x)", "F.L2Normalization(x, mode='channel')",
    "F.L2Normalization(image, mode='spatial')", "F.LRN(image, nsize=3, alpha=0.1, knorm=1.0)",
    "F.UpSampling(image, scale=2, sample_type='nearest')",
    "F.UpSampling(F.ones((1, 3, 2, 2)), image, scale=4, sample_type='nearest', num_args=2)",
    ("F.UpSampling(image, image * 2, scale=2, sample_type='nearest', num_args=2, "
     "multi_input_mode='sum')"),
    # a number where a sequence of one is meant
    "F.reshape(m, 12)", "F.Reshape(m, -1)", "F.transpose(v, 0)", "F.slice(v, 1, 3)",
    "F.slice(v, 2, 0, -1)", "F.crop(m, 0, 1)", "F.broadcast_to(F.ones((1,)), 3)",
    "F.scatter_nd(v, i.reshape((1, 3)), 4)", "F.unravel_index(i, 4)",
    "F.ravel_multi_index(i.reshape((1, 3)), 4)",
    "F.norm(x, 1, axis=1)", "F.norm(x, axis=(0, 1))", "F.add_n(m, m, m)",
    "F.InstanceNorm(x, v, v, eps=0.01)",
    "F.LayerNorm(x, m[0], m[1])", "F.GroupNorm(image, F.ones((2,)), F.zeros((2,)), num_groups=2)",
    "F.SoftmaxActivation(x)", "F.SoftmaxActivation(image)", "F.SoftmaxActivation(v)",
    "F.Softmax(m, i)",
    "F.Convolution(image, F.ones((2, 4, 2, 2)), num_filter=2, kernel=(2, 2), no_bias=True)",
    ("F.Convolution(image, F.ones((4, 2, 2, 2)), F.ones((4,)), num_filter=4, kernel=(2, 2), "
     "num_group=2, pad=(1, 0), stride=(2, 1))"),
    "F.Deconvolution(image, F.ones((4, 2, 2, 2)), num_filter=2, kernel=(2, 2), stride=(2, 2))",
    "F.Pooling(image, kernel=(2, 2))",
    "F.Pooling(image, kernel=(3, 3), stride=(2, 2), pooling_convention='full')",
    "F.Pooling(image, kernel=(2, 2), pool_type='avg', pad=(1, 1))",
    "F.Pooling(image, global_pool=True, pool_type='sum')",
    "F.ROIPooling(image, F.array([[0, 0, 0, 3, 3]]), pooled_size=(2, 2), spatial_scale=1.0)",
    "F.BatchNorm(image, F.ones((4,)), F.zeros((4,)), F.zeros((4,)), F.ones((4,)))",
    ("F.BatchNorm(image, F.ones((4,)) * 2, F.ones((4,)), F.ones((4,)), F.ones((4,)), "
     "fix_gamma=False, eps=0.1)"),
    "F.Dropout(x, p=0.5)", "F.LeakyReLU(x)", "F.LeakyReLU(x, F.ones((3,)) * 0.3, act_type='prelu')",
    "F.LeakyReLU(x, act_type='gelu')", "F.LeakyReLU(x, act_type='selu')",
    "F.Activation(x, act_type='softsign')", "F.LinearRegressionOutput(m, m)",
    "F.MAERegressionOutput(m, m)", "F.MakeLoss(m)", "F.make_loss(m)",
    "F.ctc_loss(x, F.array([[1, 2], [2, 1], [1, 1]])[:, :1])",
    "F.softmax(x, axis=0, temperature=2.0)", "F.log_softmax(x, axis=0)",
    "F.LayerNorm(x, v, v, axis=1)", "F.Embedding(i, m, input_dim=3, output_dim=4, dtype='float32')",
    # further names
    "F.ElementWiseSum(x, y, p)", "F.amp_cast(x, dtype='float16')", "F.arccosh(p + 1)",
    "F.modulo(x, p)", "F.broadcast_axes(m.expand_dims(0), axis=0, size=2)",
    "F.broadcast_greater(x, y)", "F.broadcast_lesser_equal(x, y)", "F.broadcast_logical_or(x, y)",
    "F.broadcast_logical_xor(x, F.relu(y))", "F.broadcast_minimum(x, y)", "F.broadcast_minus(x, y)",
    "F.broadcast_not_equal(x, y)", "F.broadcast_plus(x, y)", "F.choose_element_0index(m, i)",
    "F.crop(x, begin=(0, 1), end=(1, 3))", "F.lesser(x, y)", "F.lesser_equal(x, 0.5)",
    "F.logical_or(x, y)", "F.logical_xor(x, 0.0)", "F.max_axis(x, axis=1)",
    "F.min_axis(x, axis=(0, 1))", "F.sum_axis(x, axis=2)", "F.nanprod(x, axis=1)",
    "F.multi_all_finite(x, y, num_arrays=2)", "F.split_v2(x, 2, axis=2)[1]",
    "F.split_v2(x, (1, 3), axis=2)[1]", "F.hard_sigmoid(x)", "F.smooth_l1(x)",
    "F.logical_and(x, y)", "F.concat(x, y, dim=0)", "F.stack(x, y)",
    "F.clip(x, a_min=0.0, a_max=1.0)", "F.tile(v, reps=(2,))", "F.repeat(m, repeats=2)",
    "F.norm(x, axis=(0, 2))", "F.mean(x, axis=1, exclude=True)", "F.topk(m, k=2, ret_typ='mask')",
    "F.topk(m, k=2, ret_typ='both')[1]", "F.topk(m, is_ascend=True)",
    "F.argsort(m, axis=1, dtype='int32')", "F.argmax(x, axis=1, keepdims=True)",
    "F.cast(x * 5, dtype='uint8')", "F.one_hot(i, 3, dtype='int32')",
    "F.pick(m, i, axis=1, mode='wrap')", "F.take(m, i * 2, mode='clip')",
    "F.slice_like(x, F.zeros((1, 2, 2)))", "F.linalg_gemm2(m, m, transpose_b=True)",
    "F.linalg_syrk(m, transpose=True)", "F.diag(m)", "F.diag(m, k=-1)",
    "F.reshape(x, shape=(0, -1))", "F.reshape(x, shape=(-4, 1, 2, -2))",
    "F.space_to_depth(image, 4)", "F.swapaxes(x, dim1=0, dim2=1)", "F.ones_like(x) * 2",
    "F.full((2, 2), 1.5)", "F.linspace(0, 1, 3)", "F.arange(5)", "F.arange(0, 1, 0.25)",
    "F.eye(3, k=1)", "F.empty((0, 2))", "F.zeros((1,), dtype='int32')",
    "F.moments(x, axes=(0,))[0]", "F.square(m)", "F.cbrt(x)", "F.sign(x)", "F.fix(x * 3)",
    "F.trunc(x * 3)", "F.degrees(x)", "F.expm1(x)", "F.log1p(p)", "F.log2(p)", "F.log10(p)",
    "F.power(p, 2)", "F.power(2, x)", "F.maximum(x, y)", "F.minimum(x, 0.1)", "F.add(x, 1)",
    "F.subtract(1, x)", "F.divide(x, p)", "F.multiply(x, 2)", "F.equal(x, x)", "F.not_equal(x, y)",
    "F.greater(x, 0)", "F.greater_equal(x, y)", "F.where(m > 0, m, F.zeros_like(m))",
    "F.shape_array(m)", "F.batch_dot(x, y, transpose_a=True)",
    # contrib
    "F.contrib.isnan(x)", "F.contrib.isinf(x)", "F.contrib.isfinite(i.astype('int32'))",
    "F.contrib.quadratic(x, a=2.0, b=-1.0, c=0.5)", "F.contrib.gradientmultiplier(x, scalar=3.0)",
    "F.contrib.round_ste(x * 2)", "F.contrib.round_ste(i - 0.5)", "F.contrib.sign_ste(x)",
    "F.contrib.index_array(x)", "F.contrib.index_array(x, axes=(2, 0))",
    "F.contrib.index_copy(m, i[:2], m[1:])", "F.contrib.boolean_mask(m, i)",
    "F.contrib.div_sqrt_dim(x)",
    "F.contrib.interleaved_matmul_selfatt_qk(F.concat(x, y, p, dim=2), heads=2)",
    "F.contrib.interleaved_matmul_selfatt_valatt(F.concat(x, y, p, dim=2), F.ones((6, 2, 2)), 2)",
    "F.contrib.interleaved_matmul_encdec_qk(x, F.concat(y, p, dim=2), heads=2)",
    "F.contrib.interleaved_matmul_encdec_valatt(F.concat(y, p, dim=2), F.ones((6, 3, 2)), heads=2)",
    "F.contrib.AdaptiveAvgPooling2D(image)", "F.contrib.AdaptiveAvgPooling2D(image, output_size=3)",
    "F.contrib.AdaptiveAvgPooling2D(image, output_size=(2, 5))",
    "F.contrib.BilinearResize2D(image, height=3, width=7)",
    "F.contrib.BilinearResize2D(image, height=3, width=7, align_corners=False)",
    "F.contrib.BilinearResize2D(image, scale_height=2.0, scale_width=0.6)",
    "F.contrib.BilinearResize2D(image[:, :, :3], None, 1, 1, 2.0, 2.0, mode='odd_scale')",
    "F.contrib.BilinearResize2D(image[:, :, 1:], mode='to_even_down')",
    "F.contrib.BilinearResize2D(image[:, :, 1:], mode='to_even_up')",
    "F.contrib.BilinearResize2D(image[:, :, 1:], mode='to_odd_down')",
    "F.contrib.BilinearResize2D(image[:, :, 1:], mode='to_odd_up')",
    "F.contrib.BilinearResize2D(image, image[:, :, 1:], mode='like')",
    "F.contrib.box_iou(F.cumsum(p, axis=2), F.cumsum(p[0] * 0.8, axis=1))",
    "F.contrib.box_iou(p, p[0], format='center')", "F.contrib.box_iou(m, x)",
    "F.contrib.CTCLoss(x, m[:, :1] * 0 + 1)",
    # making arrays
    "F.zeros((2, 3))", "F.ones(2)", "F.full((2,), 3)", "F.arange(1, 6, 2, repeat=2)", "F.eye(2, 3)",
]  # fmt: skip


def numbers(shape, start=0.0):
    """Fixed numbers between -1 and 1."""
    place = numpy.arange(numpy.prod(shape))
    return numpy.sin(1.7 * place + start).reshape(shape).astype("float32")


def arrays(make):
    """The names that expressions use."""
    found = {
        "x": numbers((2, 3, 4)), "y": numbers((2, 3, 4), 0.5), "m": numbers((3, 4), 0.2),
        "v": numbers((3,), 0.3), "p": numbers((2, 3, 4), 0.1) + 1.2,
        "i": numpy.array([2, 0, 1], "float32"), "image": numbers((1, 4, 4, 4), 0.4),
        "s": numpy.array([[4, 1, 0.5], [1, 3, 0.2], [0.5, 0.2, 2]], "float32"),
    }  # fmt: skip
    return {name: make(array) for name, array in found.items()}


def facts(expression, scope):
    """Element type, shape and elements of an expression's value."""
    value = eval(expression, scope)
    value = value[0] if isinstance(value, list) else value
    array = value.asnumpy()
    numbers_ = [float(f"{n:.6g}") for n in array.astype("float64").ravel()]
    return [array.dtype.name, list(array.shape), numbers_]


def mxnet_answers():
    """What MXNet's operators give; arrays without dimensions are on."""
    import mxnet as mx

    mx.npx.reset_np()
    mx.util.set_np_shape(True)
    scope = {"F": mx.nd, **arrays(mx.nd.array)}
    return {expression: facts(expression, scope) for expression in EXPRESSIONS}
