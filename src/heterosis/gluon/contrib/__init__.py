"""Layers that MXNet kept under `contrib`."""

from heterosis.gluon.contrib import nn

__all__ = ["nn"]
