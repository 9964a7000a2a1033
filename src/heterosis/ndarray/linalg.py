"""MXNet's `nd.linalg`: its operators of linear algebra, without the start of their names."""

from heterosis.mxnet.operators import OPERATORS as _OPERATORS

_PREFIX = "linalg_"
globals().update(
    {
        name.removeprefix(_PREFIX): run
        for name, run in _OPERATORS.items()
        if name.startswith(_PREFIX)
    }
)

__all__ = [name.removeprefix(_PREFIX) for name in _OPERATORS if name.startswith(_PREFIX)]
