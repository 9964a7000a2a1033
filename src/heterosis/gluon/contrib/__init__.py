"""What MXNet kept under `contrib`: further layers, and the estimator."""

from heterosis.gluon.contrib import estimator, nn

__all__ = ["estimator", "nn"]
