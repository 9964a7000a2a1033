"""Training in one call, with a history that can be plotted and checkpoints to go on from."""

from heterosis.gluon.training.averaging import ExponentialMovingAverage
from heterosis.gluon.training.fitting import fit
from heterosis.gluon.training.history import History

__all__ = ["ExponentialMovingAverage", "History", "fit"]
