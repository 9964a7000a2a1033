"""Every error class of the framework. A message says what was given, expected, and what to do."""

from __future__ import annotations

from numpy.linalg import LinAlgError


class HeterosisError(Exception):
    """The base of all errors that the framework raises itself."""


class ShapeError(HeterosisError, ValueError):
    """Shapes that do not fit the operation or each other."""


class AxisError(ShapeError, IndexError):
    """An axis outside an array's dimensions."""


class DTypeError(HeterosisError, TypeError):
    """An element type that the operation does not take."""


class ArgumentError(HeterosisError, ValueError):
    """An argument's value outside what the operation takes."""


class ArgumentTypeError(ArgumentError, TypeError):
    """An argument of another kind than the function takes, one too many, or of another name."""


class UnknownKeyError(ArgumentError, KeyError):
    """A name or key that nothing goes by."""

    __str__ = Exception.__str__  # KeyError shows its message in quotes


class MissingAttributeError(ArgumentTypeError, AttributeError):
    """An attribute that objects of another kind have, and this one has not."""


class ZeroStepError(ArgumentError, ZeroDivisionError):
    """A step of 0, which leads nowhere."""


class ZeroWeightError(ArgumentError, ZeroDivisionError):
    """Weights that add up to 0, by which nothing can be divided."""


class IndexingError(HeterosisError, IndexError):
    """An index outside an array, or of a kind that cannot index."""


class LinearAlgebraError(HeterosisError, ArithmeticError, LinAlgError):
    """A matrix without the property that the factorisation needs. Also NumPy's `LinAlgError`."""


class FormatError(HeterosisError, ValueError):
    """Bytes or a file that are not what they should be, or damaged; nothing has been loaded."""


class FileError(HeterosisError, OSError):
    """A file that cannot be opened, read or written; `errno` says why."""


class MissingFileError(FileError, FileNotFoundError):
    """A file that is not there."""


class OutOfMemoryError(HeterosisError, MemoryError):
    """No room for an array; those that exist are unharmed."""


class ScheduleError(HeterosisError, AssertionError):
    """Kernels that do not compute their program: a fault of the framework, which HETEROSIS_CHECK=1
    looks for. Please report it with the program."""


class ProgramError(HeterosisError, ValueError):
    """A text that is no program, or a program whose nodes are not what their primitives say."""


class AutogradError(HeterosisError, RuntimeError):
    """Gradients asked for where nothing, or not enough, has been recorded."""


class CaptureError(HeterosisError, RuntimeError):
    """Something that a program cannot contain, met while one was captured."""


class CaptureWarning(HeterosisError, UserWarning):
    """Something that happens while a function is captured, and not when its program runs."""


class CheckError(HeterosisError, AssertionError):
    """A program that does not give what its function gives, found by `hybridize(check=True)`."""


class UnsupportedError(HeterosisError, NotImplementedError):
    """Something that is not there yet; the message names the way around it."""


class UninitializedError(HeterosisError, RuntimeError):
    """A parameter used before it has values."""


class DeferredInitializationError(UninitializedError):
    """A parameter used before the first forward pass has completed its shape."""

    array: object = None  # what stands for it, where that is known


class StaleGradientError(HeterosisError, UserWarning):
    """A gradient that backward has not written since the last step."""


class MissingPackageError(HeterosisError, ImportError):
    """A package that an optional part of the framework needs is not installed."""


class CommunicationError(HeterosisError, RuntimeError):
    """Processes that train together and have not found each other, or do not do the same."""


class WorkerError(HeterosisError, RuntimeError):
    """A worker process of a DataLoader that ended, or what went wrong in it."""


class WorkerTimeoutError(WorkerError, TimeoutError):
    """A batch that did not come from its worker in time."""


def check_axis(operation: str, axis: int, ndim: int) -> int:
    """`axis` counted from the front."""
    if not -ndim <= axis < ndim:
        raise AxisError(
            f"{operation}: axis {axis} is out of bounds for an array of {ndim} dimensions; "
            f"expected {-ndim} <= axis < {ndim}."
        )
    return axis + ndim if axis < 0 else axis


def check_axes(operation: str, axis: int | tuple[int, ...] | None, ndim: int) -> tuple[int, ...]:
    """The axes that `axis` names, sorted, each once; `None` names all."""
    if axis is None:
        return tuple(range(ndim))
    axes = [check_axis(operation, a, ndim) for a in (axis if isinstance(axis, tuple) else (axis,))]
    if len(set(axes)) != len(axes):
        raise AxisError(f"{operation}: axis {axis} names a dimension twice; name each one once.")
    return tuple(sorted(axes))
