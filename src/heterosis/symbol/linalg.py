"""MXNet's `sym.linalg`: the operators of linear algebra on symbols, without the start of their
names."""

from heterosis.mxnet.symbols import composition as _composition
from heterosis.ndarray import linalg as _linalg

globals().update({name: _composition.function(f"linalg_{name}") for name in _linalg.__all__})

__all__ = list(_linalg.__all__)
