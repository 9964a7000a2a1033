"""What is done otherwise than in MXNet 1.9.1 on purpose: the one list, from which the tables of
docs/from_gluon.md are made.

A row is a piece of code (see answers.py for what it sees) and the reason, under the heading that
it has in the page. To add one: write it here, and let `python docs/make_deviations.py` bring the
page up to date, with HETEROSIS_MXNET_PYTHON set (see environment.sh). What both give is not
written down but run; a row for which both give the same fails.
"""

_TRUNCATES = "float functions of integers give floats, not truncated ones"
_BY_VALUE = "an integer array with a fractional number gives floats"
_NUMPY = "as in NumPy"
_MORE = "works for more arguments"
_MIXED = "element types are promoted"
_NAN = "NaN as in NumPy"
_EMPTY = "empty arrays as in NumPy"
_VIEW = "a view, as in NumPy, not a copy"
_ONE_KIND = "the same array as `mx.np`'s, with NumPy's meaning"
_DERIVED = "the derivative of what the operation gives"
_SHARED = "equal elements share it, as in JAX, PyTorch and TensorFlow"
_LENGTH = "the slope of a length at 0 counts as 0, as in PyTorch"
_NOT_DERIVED = "what has no gradient is an error"
_MEMBER = "the member does what its name says"

DEVIATIONS: dict[str, dict[str, str]] = {
    "Arrays and operations": {
        "npx.pooling(n.reshape(1, 1, 3), kernel=(2,))": _NAN,
        "npx.pooling(c, kernel=(2,), stride=(3,), pad=(1,), pooling_convention='full')": (
            "the largest of no elements is -inf"
        ),
        "npx.convolution(c.astype('float16'), np.ones((1, 3, 2), 'float16'), kernel=(2,), "
        "num_filter=1, no_bias=True)": "half precision works",
        "npx.convolution(c, np.ones((1, 2, 4)), kernel=(2,), num_filter=1, no_bias=True, "
        "layout='NWC')": "channels may come last on processors too",
        "np.sqrt(k)": _TRUNCATES,
        "np.exp(i)": _TRUNCATES,
        "np.sin(j)": _TRUNCATES,
        "np.reciprocal(k)": _TRUNCATES,
        "np.std(j)": _TRUNCATES,
        "np.var(j, axis=1)": _TRUNCATES,
        "np.average(j)": _TRUNCATES,
        "np.linalg.norm(j)": _TRUNCATES,
        "np.fabs(i)": _TRUNCATES,
        "np.hypot(i, 2)": _TRUNCATES,
        "npx.sigmoid(i)": _TRUNCATES,
        "npx.smooth_l1(i)": _TRUNCATES,
        "np.modf(i)": "float functions of integers give float32",
        "np.heaviside(i, 2)": "float functions of integers give float32",
        "np.linalg.norm(1e30 * v)": "as in NumPy: squares overflow in float32",
        "j + 2.5": _BY_VALUE,
        "j * 0.5": _BY_VALUE,
        "j == 2.5": _BY_VALUE,
        "np.maximum(j, 2.5)": _BY_VALUE,
        "np.where(b, j, 1.5)": _BY_VALUE,
        "np.clip(i, 0.5, 1.5)": _BY_VALUE,
        "y = i.copy(); y += 1.5; y": "as in NumPy: the result does not fit into the array",
        "np.where(m > 0, 1, 0)": "as in NumPy: two whole numbers give whole numbers",
        "np.less(i, 0.5)": _BY_VALUE,
        "np.array([1, 2], dtype='uint8') > -1": "numbers are compared as numbers",
        "np.array([1, 2], dtype='uint8') + 300": "as in NumPy: the elements do not hold the number",
        "np.mod(i, 2.5)": _BY_VALUE,
        "np.power(i, 2.5)": _BY_VALUE,
        "np.maximum(m, d[0, 0])": _MIXED,
        "m == d[0, 0]": _MIXED,
        "j / l": _MIXED,
        "np.concatenate([v, l])": _MIXED,
        "np.matmul(j, k.T)": _NUMPY,
        "np.dot(i, i)": _NUMPY,
        "j // 2": _NUMPY,
        "+m": _NUMPY,
        "divmod(v, 2)": _NUMPY,
        "j << 1": _NUMPY,
        "1 & i": _NUMPY,
        "m + [1, 2, 3]": _NUMPY,
        "m + onp.ones(3)": _NUMPY,
        "onp.ones(3) + m": _NUMPY,
        "m == None": _NUMPY,
        "5 in m": _NUMPY,
        "np.cumsum(m, axis=-1)": _NUMPY,
        "np.flip(m, -1)": _NUMPY,
        "np.sum(m, initial=1)": _NUMPY,
        "np.take(v, np.array([-1], dtype='int32'))": _NUMPY,
        "np.deg2rad(m)": _NUMPY,
        "np.linspace([0, 1], [2, 3], 3)": _NUMPY,
        "np.meshgrid(v, i, sparse=True)": _NUMPY,
        "np.zeros_like([1, 2])": _NUMPY,
        "np.array(onp.arange(3, dtype='int16'))": "int16 is an element type here",
        "c[0, [True, False, True]]": "as in NumPy: a list of bools is a mask",
        "np.hsplit(c, 2)": "as in NumPy: parts are of one size",
        "np.pad(v, 1, constant_values=5)": "as in NumPy: the constant is used",
        "np.mean(np.ones(70000, dtype='float16'))": "summed in float32, as in NumPy",
        "np.sign(n)": _NAN,
        "np.sort(np.array([3, float('nan'), 1, float('inf')]))[-1]": _NAN,
        "np.argsort(n)": _NAN,
        "np.unique(n)": _NAN,
        "npx.topk(n)": _NAN,
        "npx.softmax(n)": _NAN,
        "np.mod(m, i)": _NAN,
        "v % 0": _NAN,
        "np.prod(z)": _EMPTY,
        "np.mean(z)": _EMPTY,
        "np.rint(np.array([0.5, 1.5, 2.5]))": "halves go to even, as in NumPy",
        "np.clip(v, 3, -1)": "the upper bound wins, as in NumPy",
        "np.around(j, -1)": "tens are rounded, as in NumPy",
        "np.bincount(i)": "counts are int64, as in NumPy; narrow types overflow",
        "np.average(v, weights=0 * v)": "weights that add up to 0 are an error, as in NumPy",
        "np.percentile(v, [25, 75])": _NUMPY,
        "np.histogram(v, bins=2)": _NUMPY,
        "np.histogram(m, np.array([1, -2, 3]))": "edges that decrease are an error, as in NumPy",
        "np.diff(v, prepend=np.array([1.0]))": _NUMPY,
        "np.linalg.svd(m.T)[1]": _NUMPY,
        "npx.activation(k, 'relu')": _NUMPY,
        "npx.batch_flatten(z[None])": _EMPTY,
        "npx.dropout(np.ones(2), 1, 'always')": "nothing is left, which is 0",
        "m.sin()": _MEMBER,
        "m.abs()": _MEMBER,
        "m.expand_dims(0)": _MEMBER,
        "m.softmax()": _MEMBER,
        "m.zeros_like()": _MEMBER,
        "m.norm()": _MEMBER,
        "w.asscalar()": _MEMBER,
        "m.slice_axis(1, 0, 2)": _MEMBER,
        "np.percentile(m, np.array([[25.0, 75.0]]))": _NUMPY,
        "np.diagflat(w)": _NUMPY,
        "np.linalg.solve(np.stack([s, s]), np.ones((3, 1)))": _NUMPY,
        "npx.fully_connected(z, np.ones((2, 3)), num_hidden=2, no_bias=True)": _EMPTY,
        "npx.roi_pooling(c[None], np.array([[0, 0, 0, 1, 1]]), (1, 1), 2.0)": _MORE,
        "npx.pooling(c, kernel=(2,), pooling_convention='same')": _MORE,
        "m.reshape(-2, 1)": "`reshape` takes `mx.nd`'s codes where NumPy has no meaning for them",
    },
    "Views and what is written into them": {
        "y = m.reshape(3, 2); y[0] = 7; m": _VIEW,
        "y = m.T; y[0] = 7; m": _VIEW,
        "y = np.expand_dims(m, 0); y[:] = 1; m": _VIEW,
        "y = np.squeeze(m[None]); y[:] = 1; m": _VIEW,
        "y = m.swapaxes(0, 1); y[:] = 1; m": _VIEW,
        "y = np.split(v, 2)[0]; y[:] = 9; v": _VIEW,
        "y = np.flip(v); y[0] = 9; v": _VIEW,
    },
    "Gradients": {
        "gradient(np.max, np.array([1.0, 3.0, 3.0]))": _SHARED,
        "gradient(lambda x: x.min(axis=0), np.array([1.0, 1.0, 3.0]))": _SHARED,
        "gradient(np.prod, np.array([0.0, 4.0]))": "right at 0 too",
        "gradient(np.linalg.norm, np.zeros(2))": _LENGTH,
        "gradient(lambda x: np.hypot(x, x), np.zeros(2))": _LENGTH,
        "gradient(lambda x: x ** 0, np.zeros(2))": _DERIVED,
        "gradient(lambda x: np.percentile(x, 50), v)": _DERIVED,
        "gradient(lambda x: np.quantile(x, 0.5), v)": _DERIVED,
        "gradient(lambda x: np.random.gamma(x, 1.0), np.ones(2))": _NOT_DERIVED,
        "gradient(lambda x: x.astype('int32').astype('float32'), v)": (
            "integers have no gradient, and what is computed of them alone has none"
        ),
        "gradient(lambda x: x * 2, i)": "variables are floats; integers are refused",
        "gradient(np.std, v)": _DERIVED,
        "gradient(np.var, v)": _DERIVED,
        "gradient(lambda x: np.linalg.eigvalsh(x)[0], d)": _DERIVED,
        "gradient(np.linalg.pinv, m)": _DERIVED,
        "gradient(np.atleast_2d, v)": _DERIVED,
        "gradient(lambda x: np.rot90(x) * np.rot90(x), m)": _DERIVED,
        "gradient(lambda x, y: npx.smooth_l1(x, y), v, np.array(2.0))": _DERIVED,
        "gradient(lambda x: npx.leaky_relu(x, act_type='selu'), v)": _DERIVED,
        "gradient(lambda x: gluon.nn.AvgPool1D(3, 2, ceil_mode=True)(x), np.ones((1, 1, 6)))": _DERIVED,
        "gradient(lambda x: 0 ** x, np.array([0.5, 2.0]))": _DERIVED,
        "gradient(np.argmax, v)": _NOT_DERIVED,
        "gradient(lambda x: x > 0, v)": _NOT_DERIVED,
        "gradient(np.linalg.eigvals, d)": _NOT_DERIVED,
    },
    "`mx.nd`": {
        "type(nd.ones(2))": "one kind of array",
        "nd.array([1, 2]) > 1": _ONE_KIND,
        "(nd.array([1, 2]) > 0) + (nd.array([3, -4]) > 0)": (
            "truth values are added as in NumPy: count them with `.sum()`, or convert them first"
        ),
        "nd.ones((2, 3)).flatten()": _ONE_KIND,
        "nd.ones((2, 3)).sum()": _ONE_KIND,
        "nd.array([[1, 3, 2]]).argmax(axis=1)": _ONE_KIND,
        "nd.array([3, 1, 2]).argsort()": _ONE_KIND,
        "nd.array([3, 1, 2]).sort()": "sorts in place, as in NumPy",
        "nd.array([[1, 2], [3, 4]]).take(nd.array([1]))": _ONE_KIND,
        "nd.array([0.5, 1.5, 2.5]).round()": _ONE_KIND,
        "nd.ones((2, 3)).norm(1)": "the norm of a matrix, as by `np.linalg.norm`; not `nd.norm`'s",
        "nd.histogram(nd.array([1, 2, 2]), 2)": "counts are integers",
        "(mx.sym.var('x') > 1).eval(x=nd.array([0, 2]))": "one kind of symbol, with NumPy's meaning",
    },
    "Networks, files and training": {
        "network()(mx.sym.var('x').as_np_ndarray()).list_arguments()": (
            "networks are called with arrays; `export` gives their symbols"
        ),
        "written(lambda path: network().export(path))": "the names of the files are returned",
        "written(lambda path: network().save(path))": "the file for `heterosis.load` beside MXNet's",
        "network().optimize_for(np.ones((1, 3)), backend='none')": (
            "a back end that does not exist is an error, not a line in the log"
        ),
        "net = gluon.nn.BatchNormReLU(); net.initialize()\ntrained(lambda: net(v.reshape(2, 2)))": (
            "the layer's rectifier is applied in training"
        ),
        "net = gluon.nn.BatchNorm(in_channels=1); net.initialize()\n"
        "trained(lambda: net(np.array([[1.0], [3.0]]))); net.running_mean.data()": (
            "averages move with a pass in training, not with the way back"
        ),
        "net = gluon.nn.HybridSequential(prefix='')\n"
        "net.scale = gluon.Parameter('scale', shape=(1,)); list(net.collect_params())": (
            "a block's parameters are collected, however they were made"
        ),
        "gluon.loss.L2Loss(batch_axis=1)(np.ones((2, 3)), np.zeros((2, 3)))": (
            "`batch_axis` counts for all arrays"
        ),
        "gradient(lambda x: gluon.loss.SigmoidBCELoss()(x, np.ones((1, 1))), np.zeros((1, 1)))": (
            "the derivative at 0 is that of the curve, -0.5, as in PyTorch"
        ),
        "mx.metric.TopKAccuracy(top_k=3).update([np.zeros(1)], [np.ones((1, 2))])": (
            "fewer classes than k"
        ),
        "mx.gluon.contrib.estimator.EarlyStoppingHandler(mx.metric.Loss()).monitor_op(1, 2)": (
            "`mode='auto'`: less is better for losses"
        ),
        "mx.gluon.contrib.estimator.EarlyStoppingHandler(mx.metric.Loss(), mode='up')": (
            "an unknown mode is an error, not a warning"
        ),
        "checkpoints(['model-epoch1batch60.params'], max_checkpoints=1)": (
            "removing a checkpoint leaves others whose names begin alike"
        ),
        "checkpoints([], max_checkpoints=1, resume_from_checkpoint=True)": (
            "checkpoints found when resuming count"
        ),
    },
    "Data and images": {
        "twice(lambda: list(gluon.data.RandomSampler(9)))": (
            "orders follow the seed of all random numbers, not NumPy's"
        ),
        "npx.image.random_saturation(np.array([[[10, 100, 200]]], dtype='uint8'), 0.5, 0.5)": (
            "grey weighs all three colours, not blue alone"
        ),
        "mx.image.ResizeAug(3)(np.array(onp.arange(48).reshape(4, 4, 3), dtype='uint8'))[1, 1]": (
            "halves are rounded up; OpenCV's vector code rounds them to even"
        ),
        "x = nd.ones((1, 1, 3)); mx.image.BrightnessJitterAug(0.5)(x); (x.asnumpy() == 1).all()": (
            "augmenters leave the image that they are given as it is"
        ),
    },
}
