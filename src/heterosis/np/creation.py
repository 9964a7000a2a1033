"""Making arrays."""

from heterosis.np.convert import array

__all__ = ["array"]
