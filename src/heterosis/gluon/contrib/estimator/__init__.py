"""Training and validation loops, with handlers that are called at every step."""

from heterosis.gluon.contrib.estimator import batch_processor, estimator, event_handler
from heterosis.gluon.contrib.estimator.batch_processor import BatchProcessor
from heterosis.gluon.contrib.estimator.estimator import Estimator
from heterosis.gluon.contrib.estimator.event_handler import (
    BatchBegin,
    BatchEnd,
    CheckpointHandler,
    EarlyStoppingHandler,
    EpochBegin,
    EpochEnd,
    GradientUpdateHandler,
    LoggingHandler,
    MetricHandler,
    StoppingHandler,
    TrainBegin,
    TrainEnd,
    ValidationHandler,
)
from heterosis.runtime.arguments import check_members as _check_members

_check_members(globals())

__all__ = [
    "BatchBegin",
    "BatchEnd",
    "BatchProcessor",
    "CheckpointHandler",
    "EarlyStoppingHandler",
    "EpochBegin",
    "EpochEnd",
    "Estimator",
    "GradientUpdateHandler",
    "LoggingHandler",
    "MetricHandler",
    "StoppingHandler",
    "TrainBegin",
    "TrainEnd",
    "ValidationHandler",
    "batch_processor",
    "estimator",
    "event_handler",
]
