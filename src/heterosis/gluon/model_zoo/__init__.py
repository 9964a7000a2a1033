"""Known models, ready to be trained or to read their parameters from local files."""

from heterosis.gluon.model_zoo import vision

__all__ = ["vision"]
