"""The class of errors that MXNet's programs catch."""

from heterosis.runtime.errors import HeterosisError

MXNetError = HeterosisError

__all__ = ["MXNetError"]
