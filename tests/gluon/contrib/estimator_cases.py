"""A tiny problem trained by estimators, MXNet's and ours: which events come, what is measured.

MXNet's answers stand in mxnet_estimator.json; the file imports nothing of ours, so that MXNet's
Python can run it.
"""

import logging
import os
import tempfile

import numpy

DRAWN = numpy.random.RandomState(4)
FEATURES = DRAWN.normal(size=(10, 5)).astype("float32")
LABELS = DRAWN.randint(0, 3, 10).astype("float32")
WEIGHTS = [DRAWN.normal(0, 0.5, size).astype("float32") for size in ((4, 5), (4,), (3, 4), (3,))]
MOMENTS = ("train_begin", "epoch_begin", "batch_begin", "batch_end", "epoch_end", "train_end")


class Problem:
    """The net, the data and the estimator of one case."""

    def __init__(self, scope, array):
        gluon, self.kinds = scope.gluon, scope.gluon.contrib.estimator
        self.folder = tempfile.TemporaryDirectory()
        self.seen = []
        self.net = gluon.nn.HybridSequential()
        self.net.add(gluon.nn.Dense(4, activation="tanh", in_units=5))
        self.net.add(gluon.nn.Dense(3, in_units=4))
        self.net.initialize()
        for parameter, values in zip(self.net.collect_params().values(), WEIGHTS):
            parameter.set_data(array(values))
        data = gluon.data.ArrayDataset(array(FEATURES), array(LABELS))
        self.train = gluon.data.DataLoader(data, batch_size=4)
        data = gluon.data.ArrayDataset(array(FEATURES[:5]), array(LABELS[:5]))
        self.validation = gluon.data.DataLoader(data, batch_size=4)
        trainer = gluon.Trainer(self.net.collect_params(), "sgd", {"learning_rate": 0.5})
        loss = gluon.loss.SoftmaxCrossEntropyLoss()
        self.estimator = self.kinds.Estimator(self.net, loss, trainer=trainer)
        self.estimator.logger.setLevel(logging.ERROR)

    def watcher(self, name, priority=0):
        """A handler that writes down each event, and what the metrics are then."""
        bases = tuple(
            getattr(self.kinds, "".join(part.capitalize() for part in moment.split("_")))
            for moment in MOMENTS
        )
        members = {moment: self._note(name, moment) for moment in MOMENTS}
        made = type("Watcher", bases, members)()
        made.priority = priority
        return made

    def _note(self, name, moment):
        def note(handler, estimator, *args, **kwargs):
            metrics = [m.get()[1] for m in estimator.train_metrics + estimator.val_metrics]
            values = [None if numpy.isnan(v) else round(float(v), 5) for v in metrics]
            self.seen.append([name, moment, sorted(kwargs), values])

        return note

    def fit(self, *handlers, **given):
        self.estimator.fit(self.train, event_handlers=list(handlers), **given)

    def checkpoints(self, monitored=1, **given):
        monitor = self.estimator.train_metrics[monitored]
        return self.kinds.CheckpointHandler(self.folder.name, monitor=monitor, **given)

    def early(self, **given):
        return self.kinds.EarlyStoppingHandler(self.estimator.train_metrics[1], **given)


def by_epochs(p):
    p.fit(p.watcher("late", 10), p.watcher("first", -3000), p.watcher("middle"), epochs=2,
          val_data=p.validation)  # fmt: skip


def by_batches(p):
    p.fit(p.watcher("w"), batches=5)


def without_updates(p):
    """A handler of the user's in the place of the standard one."""
    handler = p.kinds.GradientUpdateHandler()
    handler.batch_end = lambda estimator, **kwargs: None
    p.fit(handler, p.watcher("w"), epochs=1)


def validation_within(p):
    handler = p.kinds.ValidationHandler(
        p.validation, p.estimator.evaluate, epoch_period=None, batch_period=2,
        event_handlers=p.watcher("validation"),
    )  # fmt: skip
    p.fit(handler, p.watcher("w", 5), epochs=2)


def stopped_early(p):
    p.fit(p.early(mode="min", min_delta=0.1, patience=2), p.watcher("w"), epochs=30)


def stopped_at_once(p):
    p.fit(p.early(mode="max", baseline=9.0), p.watcher("w"), epochs=5)


def a_handler_stops(p):
    """True after a batch ends the epoch, and only the epoch."""
    handler = p.watcher("w")
    note = type(handler).batch_end
    type(handler).batch_end = lambda *args, **kwargs: note(*args, **kwargs) or len(p.seen) > 4
    p.fit(handler, epochs=2)


def files_by_epochs(p):
    p.fit(p.checkpoints(max_checkpoints=2, save_best=True, mode="min"), epochs=4)


def files_by_batches(p):
    p.fit(p.checkpoints(epoch_period=None, batch_period=2), batches=5)


def resumed_epochs(p):
    p.fit(p.checkpoints(), epochs=2)
    p.fit(p.checkpoints(resume_from_checkpoint=True), p.watcher("w"), epochs=3)


def resumed_from_nothing(p):
    p.fit(p.checkpoints(resume_from_checkpoint=True), epochs=2)
    p.fit(p.checkpoints(resume_from_checkpoint=True), p.watcher("w"), epochs=3)


def resumed_batches(p):
    p.fit(p.checkpoints(epoch_period=None, batch_period=2), batches=5)
    p.fit(
        p.checkpoints(epoch_period=None, batch_period=2, resume_from_checkpoint=True),
        p.watcher("w"), batches=9,
    )  # fmt: skip


def resumed_too_far(p):
    p.fit(p.checkpoints(), epochs=2)
    p.fit(p.checkpoints(resume_from_checkpoint=True), epochs=2)


def no_length(p):
    p.fit()


def two_lengths(p):
    p.fit(epochs=1, batches=1)


def no_handlers(p):
    p.fit(3, epochs=1)


def no_loader(p):
    p.estimator.fit([1, 2], epochs=1)


def strange_metric(p):
    p.fit(p.kinds.MetricHandler([type(p.estimator.train_metrics[0])()]), epochs=1)


CASES = [
    by_epochs, by_batches, without_updates, validation_within, stopped_early, stopped_at_once,
    a_handler_stops, files_by_epochs, files_by_batches, resumed_epochs, resumed_from_nothing,
    resumed_batches, resumed_too_far, no_length, two_lengths, no_handlers, no_loader,
    strange_metric,
]  # fmt: skip


def facts(case, scope, array):
    """What a case leaves: events with metrics, files, weights, and whether it raised."""
    problem = Problem(scope, array)
    raised = False
    try:
        case(problem)
    except ValueError:
        raised = True
    estimator = problem.estimator
    parameters = problem.net.collect_params().values()
    return {
        "metrics": [m.name for m in estimator.train_metrics + estimator.val_metrics],
        "seen": problem.seen,
        "files": sorted(os.listdir(problem.folder.name)),
        "weights": [round(float(p.data().asnumpy().sum()), 4) for p in parameters],
        "raised": raised,
    }


def mxnet_answers():
    """What MXNet does in each case."""
    import mxnet

    mxnet.npx.reset_np()
    return {case.__name__: facts(case, mxnet, mxnet.nd.array) for case in CASES}
