"""What is asked here and of MXNet 1.9.1, whose answers stand in mxnet.json (see mxnet_side.py).

Data are made by a formula, so that none need be stored; this file needs NumPy alone.
"""

import numpy

SHAPES = ((3, 4), (5,))
STEPS = 4


def series(shape, phase, low=-1.0, high=1.0):
    """Numbers between two bounds in no order that matters."""
    count = int(numpy.prod(shape))
    wave = numpy.sin(numpy.arange(1, count + 1) * 12.9898 + phase * 4.1414)
    return (low + (high - low) * (wave + 1) / 2).reshape(shape).astype("float32")


# -- optimisers: (name, arguments); a case called "half ..." has float16 weights ------------------

_ALL = {"wd": 0.2, "clip_gradient": 0.4, "rescale_grad": 0.7}
_SOME = {"wd": 0.1, "clip_gradient": 0.5, "rescale_grad": 1.5}
OPTIMIZERS = {
    "sgd": ("sgd", {"learning_rate": 0.1}),
    "sgd wd clip": ("sgd", {"learning_rate": 0.1, **_ALL}),
    "sgd momentum": ("sgd", {"learning_rate": 0.1, "momentum": 0.9, **_SOME}),
    "ccsgd": ("ccsgd", {"learning_rate": 0.1, "momentum": 0.5}),
    "nag": ("nag", {"learning_rate": 0.1, "momentum": 0.9, **_SOME}),
    "nag plain": ("nag", {"learning_rate": 0.1, "wd": 0.1}),
    "signum": ("signum", {"learning_rate": 0.1, "wd_lh": 0.2, **_SOME}),
    "signsgd": ("signum", {"learning_rate": 0.1, "momentum": 0.0, "wd": 0.1}),
    "dcasgd": ("dcasgd", {"learning_rate": 0.1, "lamda": 0.3, **_SOME}),
    "adam": ("adam", {"learning_rate": 0.1}),
    "adam wd clip": ("adam", {"learning_rate": 0.1, "beta1": 0.8, "epsilon": 1e-3, **_ALL}),
    "adamax": ("adamax", {"learning_rate": 0.1, **_ALL}),
    "nadam": ("nadam", {"learning_rate": 0.1, **_ALL}),
    "adagrad": ("adagrad", {"learning_rate": 0.1, **_ALL}),
    "adadelta": ("adadelta", {**_ALL, "wd": 0.01}),
    "rmsprop": ("rmsprop", {"learning_rate": 0.1, "clip_weights": 0.8, **_ALL}),
    "rmsprop epsilon": ("rmsprop", {"learning_rate": 0.1, "epsilon": 0.1}),
    "rmsprop centered": (
        "rmsprop",
        {"learning_rate": 0.02, "centered": True, "epsilon": 0.01, "clip_weights": 0.9, **_ALL},
    ),
    "ftrl": ("ftrl", {"learning_rate": 0.2, "lamda1": 0.3, **_ALL}),
    "ftml": ("ftml", {"learning_rate": 0.1, **_ALL}),
    "lamb": ("lamb", {"learning_rate": 0.1, **_ALL}),
    "lamb bounds": (
        "lamb",
        {
            "learning_rate": 0.1,
            "wd": 0.1,
            "bias_correction": False,
            "lower_bound": 1.9,
            "upper_bound": 2.0,
        },
    ),
    "lars": (
        "lars",
        {
            "learning_rate": 0.5,
            "momentum": 0.9,
            "wd": 0.1,
            "eta": 0.5,
            "eps": 1e-3,
            "rescale_grad": 0.7,
        },
    ),
    "lars plain": ("lars", {"learning_rate": 0.5, "eta": 0.5, "clip_gradient": 0.6}),
    "lars scheduled": ("lars", {"momentum": 0.9, "eta": 0.5, "schedule": True}),
    "lbsgd": (
        "lbsgd",
        {
            "learning_rate": 0.1,
            "momentum": 0.9,
            "wd": 0.1,
            "updates_per_epoch": 2,
            "batch_scale": 2,
        },
    ),
    "lbsgd lars": ("lbsgd", {"learning_rate": 0.1, "warmup_strategy": "lars", "wd": 0.1}),
    "test": ("test", {"rescale_grad": 0.5}),
    "multipliers": (
        "sgd",
        {"learning_rate": 0.1, "wd": 0.5, "param_idx2name": {0: "a_weight", 1: "b_bias"}},
    ),
    "begin": ("adam", {"learning_rate": 0.1, "begin_num_update": 10}),
    "scheduled": ("adam", {"learning_rate": 0.2, "schedule": True}),
    "half sgd": ("sgd", {"learning_rate": 0.1, "momentum": 0.9, "wd": 0.1}),
    "half adam": ("adam", {"learning_rate": 0.1}),
    "half nag": ("nag", {"learning_rate": 0.1, "momentum": 0.9}),
    "half lamb": ("lamb", {"learning_rate": 0.1}),
}


def updated(library, array, name):
    """The weights after a few updates, and the updater: `library` is MXNet or ours."""
    kind, arguments = OPTIMIZERS[name]
    arguments = dict(arguments)
    if arguments.pop("schedule", False):
        rate = arguments.setdefault("learning_rate", 0.2)
        arguments["lr_scheduler"] = library.lr_scheduler.FactorScheduler(1, 0.5, base_lr=rate)
    if name.startswith("half"):
        arguments["multi_precision"] = True
    optimizer = library.optimizer.create(kind, **arguments)
    if name == "multipliers":
        optimizer.set_lr_mult({"b_bias": 2.0})
    updater = library.optimizer.get_updater(optimizer)
    dtype = "float16" if name.startswith("half") else "float32"
    weights = [array(series(shape, i).astype(dtype)) for i, shape in enumerate(SHAPES)]
    for step in range(STEPS):
        more = [array(g.astype(dtype)) for g in gradients(step)]
        updater([0, 1], more, weights)
    return weights, updater


def gradients(step):
    return [series(shape, 10 + 3 * step + i) for i, shape in enumerate(SHAPES)]


# -- learning rates -------------------------------------------------------------------------------

SCHEDULERS = {
    "factor": ("FactorScheduler", {"step": 3, "factor": 0.5, "base_lr": 0.8}),
    "factor stop": ("FactorScheduler", {"step": 1, "factor": 0.1, "stop_factor_lr": 0.05}),
    "factor warmup": (
        "FactorScheduler",
        {"step": 2, "factor": 0.5, "warmup_steps": 4, "warmup_begin_lr": 0.001},
    ),
    "factors": ("MultiFactorScheduler", {"step": [2, 5, 6], "factor": 0.5, "base_lr": 0.8}),
    "poly": ("PolyScheduler", {"max_update": 8, "base_lr": 0.8, "final_lr": 0.1}),
    "poly warmup": (
        "PolyScheduler",
        {
            "max_update": 9,
            "base_lr": 0.8,
            "pwr": 1.5,
            "warmup_steps": 3,
            "warmup_begin_lr": 0.2,
            "warmup_mode": "constant",
        },
    ),
    "cosine": (
        "CosineScheduler",
        {"max_update": 9, "base_lr": 0.8, "final_lr": 0.1, "warmup_steps": 2},
    ),
}
UPDATES = range(12)

# -- losses: (class, arguments, names of arrays) --------------------------------------------------

_LOGITS = series((4, 5), 0, -3, 3)
ARRAYS = {
    "pred": _LOGITS,
    "cube": series((2, 3, 4), 7, -2, 2),
    "cube label": series((2, 3, 4), 8, -2, 2),
    "cube weights": series((2, 1, 1), 9, 0, 1),
    "label": series((4, 5), 1, -3, 3),
    "row label": series((20,), 1, -3, 3),
    "weights": series((4, 1), 2, 0, 1),
    "classes": numpy.array([1, 4, 0, 2], "float32"),
    "binary": numpy.array([1, 0, 1, 1], "float32"),
    "ones": (series((4, 5), 3) > 0).astype("float32"),
    "signs": numpy.sign(series((4, 5), 3)),
    "probabilities": series((4, 5), 4, 0.1, 0.9),
    "shares": numpy.exp(_LOGITS) / numpy.exp(_LOGITS).sum(1, keepdims=True),
    "positive": series((5,), 5, 0.5, 2),
    "counts": numpy.round(series((4, 5), 6, 0, 6)),
    "other": series((4, 5), 11, -2, 2),
    "sides": numpy.array([1, -1, -1, 1], "float32"),
    "sounds": series((2, 7, 4), 12, -2, 2),
    "words": numpy.array([[0, 1, 1], [2, 0, -1]], "float32"),
    "sound lengths": numpy.array([7, 5], "float32"),
    "word lengths": numpy.array([3, 1], "float32"),
}
LOSSES = {
    "l2": ("L2Loss", {}, ("pred", "label")),
    "l2 weights": ("L2Loss", {"weight": 3.0}, ("cube", "cube label", "cube weights")),
    "l2 rows": ("L2Loss", {}, ("pred", "row label")),
    "l1": ("L1Loss", {"weight": 0.5}, ("pred", "label", "weights")),
    "l1 batch axis": ("L1Loss", {"batch_axis": 1}, ("cube", "cube label")),
    "sigmoid": ("SigmoidBCELoss", {}, ("pred", "ones", "weights")),
    "sigmoid probabilities": (
        "SigmoidBinaryCrossEntropyLoss",
        {"from_sigmoid": True},
        ("probabilities", "ones"),
    ),
    "sigmoid positive": ("SigmoidBCELoss", {}, ("pred", "ones", "weights", "positive")),
    "sigmoid both": (
        "SigmoidBCELoss",
        {"from_sigmoid": True},
        ("probabilities", "ones", "weights", "positive"),
    ),
    "softmax": ("SoftmaxCELoss", {}, ("pred", "classes")),
    "softmax weights": (
        "SoftmaxCrossEntropyLoss",
        {"weight": 2},
        ("pred", "classes", "weights"),
    ),
    "softmax dense": ("SoftmaxCELoss", {"sparse_label": False}, ("pred", "probabilities")),
    "softmax axis": (
        "SoftmaxCELoss",
        {"axis": 1, "sparse_label": False},
        ("cube", "cube label"),
    ),
    "softmax logits": ("SoftmaxCELoss", {"from_logits": True}, ("probabilities", "classes")),
    "kl": ("KLDivLoss", {}, ("label", "shares")),
    "kl softmax": ("KLDivLoss", {"from_logits": False}, ("label", "shares", "weights")),
    "ctc": ("CTCLoss", {}, ("sounds", "words")),
    "ctc lengths": ("CTCLoss", {}, ("sounds", "words", "sound lengths", "word lengths")),
    "huber": ("HuberLoss", {"rho": 0.7}, ("pred", "label", "weights")),
    "hinge": ("HingeLoss", {"margin": 2}, ("pred", "signs")),
    "squared hinge": ("SquaredHingeLoss", {}, ("pred", "signs", "weights")),
    "logistic": ("LogisticLoss", {}, ("pred", "signs")),
    "logistic binary": ("LogisticLoss", {"label_format": "binary"}, ("pred", "ones")),
    "triplet": ("TripletLoss", {"margin": 3}, ("pred", "label", "other")),
    "poisson": ("PoissonNLLLoss", {}, ("pred", "counts", "weights")),
    "poisson rates": (
        "PoissonNLLLoss",
        {"from_logits": False},
        ("probabilities", "counts"),
    ),
    "cosine": ("CosineEmbeddingLoss", {"margin": -0.3}, ("pred", "other", "sides")),
    "sdml": ("SDMLLoss", {}, ("pred", "other")),
}

# -- metrics: (name, arguments, names of labels, names of predictions) ----------------------------

METRICS = {
    "accuracy": ("acc", {}, "classes", ("pred", "shares", "probabilities")),
    "accuracy of classes": ("accuracy", {}, "classes", ("binary", "classes")),
    "top 2": ("top_k_accuracy", {"top_k": 2}, "classes", ("pred", "other")),
    "top 3": ("top_k_acc", {"top_k": 3}, "classes", ("label", "other")),
    "f1": ("f1", {}, "binary", ("pred", "other", "label")),
    "f1 micro": ("f1", {"average": "micro"}, "binary", ("pred", "other", "label")),
    "mcc": ("mcc", {}, "binary", ("pred", "other", "label")),
    "mcc micro": ("mcc", {"average": "micro"}, "binary", ("pred", "other", "label")),
    "mae": ("mae", {}, "label", ("pred", "other")),
    "mse": ("mse", {}, "label", ("pred", "other")),
    "rmse": ("rmse", {}, "label", ("pred", "other")),
    "mae of rows": ("mae", {}, "classes", ("binary", "sides")),
    "cross-entropy": ("ce", {}, "classes", ("shares", "probabilities")),
    "likelihood": ("nll_loss", {"eps": 0.1}, "classes", ("shares", "probabilities")),
    "perplexity": ("perplexity", {"ignore_label": None}, "classes", ("shares", "probabilities")),
    "perplexity ignoring": (
        "perplexity",
        {"ignore_label": 4},
        "classes",
        ("shares", "probabilities"),
    ),
    "pearson": ("pearsonr", {}, "label", ("pred", "other")),
    "pearson micro": (
        "pearsonr",
        {"average": "micro"},
        "label",
        ("pred", "other", "probabilities"),
    ),
    "pcc": ("pcc", {}, "classes", ("pred", "shares", "other")),
    "loss": ("loss", {}, "label", ("pred", "other")),
}


def measured(library, array, name):
    """Values after each batch: since the reset that follows the first one, and of all."""
    kind, arguments, label, preds = METRICS[name]
    metric = library.metric.create(kind, **arguments)
    values = []
    for i, pred in enumerate(preds):
        metric.update([array(ARRAYS[label])], [array(ARRAYS[pred])])
        values.append(metric.get()[1])
        if i == 0 and "micro" not in name:
            metric.reset_local()
    return [*map(float, values), float(metric.get_global()[1])]


# -- initialisers that draw no numbers: (name, arguments, parameter, shape) -----------------------

INITIALIZERS = {
    "zero": ("zeros", {}, "a_weight", (2, 3)),
    "one": ("ones", {}, "a_weight", (2, 3)),
    "constant": ("constant", {"value": 2.5}, "a_weight", (2, 3)),
    "bilinear": ("bilinear", {}, "a_weight", (2, 1, 4, 4)),
    "bilinear odd": ("bilinear", {}, "a_weight", (1, 2, 3, 3)),
    "lstm bias": ("lstmbias", {"forget_bias": 1.5}, "a_weight", (8,)),
    "bias": ("xavier", {}, "a_bias", (3,)),
    "gamma": ("xavier", {}, "a_gamma", (3,)),
    "beta": ("xavier", {}, "a_beta", (3,)),
    "minimum": ("xavier", {}, "a_min", (3,)),
    "maximum": ("xavier", {}, "a_max", (3,)),
}
