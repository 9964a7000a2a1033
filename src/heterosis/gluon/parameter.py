"""Parameters: the arrays that a block learns, and constants beside them."""

from __future__ import annotations

import copy
import itertools
import operator
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy

from heterosis import autograd, capture, initializer, np, symbol
from heterosis.ir.types import dtype_name
from heterosis.ops.unsized import UNKNOWN, Unsized
from heterosis.runtime import forks, modes
from heterosis.runtime.arguments import described
from heterosis.runtime.context import (
    Context,
    check_context,
    context_of_device,
    current_context,
    number_named,
    number_of,
)
from heterosis.runtime.errors import (
    ArgumentError,
    DeferredInitializationError,
    ShapeError,
    UninitializedError,
    UnsupportedError,
)
from heterosis.runtime.kinds import is_integer

Shape = tuple[int, ...]
Contexts = Context | Sequence[Context] | None

_GRADIENT_REQUESTS = ("write", "add", "null")
_STORAGE_TYPES = ("default", "row_sparse", "csr")


# Held while a parameter gets its first array: of threads that call a network at once, one makes it,
# and the others find it whole.
initializing = forks.ReleasedLock()
_replacements = itertools.count(1)


@dataclass(frozen=True)
class _Deferred:
    """An initialisation that waits for the shape."""

    init: Any
    contexts: list[Context]
    default_init: Any
    data: Any = None


class Parameter:
    """An array that a block learns, and its gradient.

    Extents of `shape` that are 0 or -1 are unknown: with `allow_deferred_init`, the first forward
    pass completes them. `grad_req` says what backward does with the gradient: 'write', 'add' to
    it, or 'null' for none. `lr_mult` and `wd_mult` scale the optimizer's rates for this parameter.
    Gradients are dense whatever `grad_stype` says. On several contexts it has an array on each.
    """

    replaced = 0  # another number whenever any parameter has got another array

    def __init__(
        self,
        name: str,
        grad_req: str = "write",
        shape: int | Shape | None = None,
        dtype: Any = numpy.float32,
        lr_mult: float = 1.0,
        wd_mult: float = 1.0,
        init: Any = None,
        allow_deferred_init: bool = False,
        differentiable: bool = True,
        stype: str = "default",
        grad_stype: str = "default",
    ):
        _check_storage(name, stype, grad_stype)
        _check_truths(name, allow_deferred_init=allow_deferred_init, differentiable=differentiable)
        self.name = name
        self.lr_mult, self.wd_mult = lr_mult, wd_mult
        self.init = init
        self._shape: Shape | None = None
        if shape is not None:
            self._shape = _extents(name, shape)
        self._dtype = dtype
        self._differentiable = differentiable
        self._allow_deferred_init = allow_deferred_init
        self._grad_req: str | None = None
        self._data: np.ndarray | None = None
        self._grad: np.ndarray | None = None
        self._used = 0  # the version of the gradient that has been used for an update
        self._contexts: list[Context] = []
        self._others: tuple[Parameter, ...] = ()  # itself, on each further context
        self._deferred: _Deferred | None = None
        self._owner = ""  # the block that it belongs to, for messages
        self.listed = False  # whether it has its name from a ParameterDict
        self._trainer: Any = None
        self.grad_req = grad_req

    def __repr__(self) -> str:
        return f"{type(self).__name__} {self.name} (shape={self.shape}, dtype={self.dtype})"

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        """A parameter of the same name with its own values and gradient, and no trainer."""
        made = memo[id(self)] = copy.copy(self)
        made._trainer = None
        if self._data is not None:
            with autograd.pause():
                made._start(np.copy(self._data), self._contexts)
                for own, other in zip(self._everywhere(), made._everywhere(), strict=True):
                    other._data[...] = own._data
                    if own._grad is not None:
                        other._grad[...] = own._grad
        return made

    # -- what is known before there are values ----------------------------------------------------

    @property
    def grad_req(self) -> str:
        """'write', 'add' or 'null': what backward does with the gradient."""
        return self._grad_req or "null"

    @grad_req.setter
    def grad_req(self, request: str) -> None:
        if not isinstance(request, str) or request not in _GRADIENT_REQUESTS:
            raise ArgumentError(
                f"Parameter {self.name!r}: grad_req={request!r}; expected 'write', 'add' or 'null'."
            )
        request = request if self._differentiable else "null"
        if request == self._grad_req:
            return
        self._grad_req = request
        for other in self._others:
            other.grad_req = request
        if self._data is None:
            return
        if request == "null":
            self._grad = None
            self._hold(self._data.detach())
        else:
            self._attach_gradient(self._data)

    @property
    def dtype(self) -> Any:
        """The element type; setting it casts."""
        return self._dtype

    @dtype.setter
    def dtype(self, dtype: Any) -> None:
        self.cast(dtype)

    @property
    def shape(self) -> Shape | None:
        """The shape, -1 where an extent is unknown; None if nothing is known."""
        if self._shape is None:
            return None
        return tuple(n if n != 0 else UNKNOWN for n in self._shape)

    @shape.setter
    def shape(self, shape: Shape) -> None:
        if self._shape is not None and not compatible(self._shape, shape):
            raise ShapeError(
                f"{self._described()} has shape {self.shape}; shape {tuple(shape)} does not agree "
                "with it."
            )
        self._shape = tuple(map(operator.index, shape))  # an open extent is known from here on

    @property
    def is_sized(self) -> bool:
        """Whether every extent of the shape is known."""
        return self._shape is not None and all(n > 0 for n in self._shape)

    @property
    def has_data(self) -> bool:
        """Whether there are values, rather than an initialisation that waits for the shape."""
        return self._data is not None

    # -- giving values ----------------------------------------------------------------------------

    def initialize(
        self,
        init: Any = None,
        ctx: Contexts = None,
        default_init: Any = None,
        force_reinit: bool = False,
    ) -> None:
        """Give the parameter values, drawn by `init`, its own `init`, or `default_init`."""
        if self._data is not None and not force_reinit:
            warnings.warn(
                f"initialize: parameter '{self.name}' keeps the values that it has; "
                "force_reinit=True gives it new ones.",
                stacklevel=2,
            )
            return
        if self._data is not None:
            modes.refuse_in_capture(
                f"initialize(force_reinit=True) of the parameter '{self.name}'", "Call it outside."
            )
        default_init = initializer.Uniform() if default_init is None else default_init
        chosen = next((i for i in (init, self.init) if i is not None), default_init)
        if not self.is_sized and not self._allow_deferred_init:
            raise ShapeError(
                f"{self._described()} cannot be initialised: its shape {self.shape} is not fully "
                "known. Give all extents, or allow_deferred_init=True."
            )
        self._grad, self._others = None, ()
        self._hold(None)
        self._deferred = _Deferred(chosen, listed_contexts(ctx), default_init)
        if self.is_sized:
            self.finish_deferred_init()

    def finish_deferred_init(self) -> None:
        """Carry out an initialisation that has waited for the shape."""
        if self._deferred is None:
            return
        with initializing:
            waiting = self._deferred
            if waiting is None:  # another thread was first
                return
            if not self.is_sized:
                raise self._unready()
            with modes.switched(recording=False, capturing=False):  # no part of anybody's program
                with waiting.contexts[0]:
                    data = self._drawn(waiting) if waiting.data is None else waiting.data
                self._start(data, waiting.contexts)

    def _drawn(self, waiting: _Deferred) -> np.ndarray:
        data = np.zeros(self._shape, self.dtype)
        name = initializer.InitDesc(self.name, {"__init__": waiting.init})
        initializer.create(waiting.default_init)(name, data)
        return data

    def _start(self, data: np.ndarray, contexts: list[Context]) -> None:
        self._contexts, self._grad = contexts, None
        own = data.as_in_context(contexts[0])
        if self.grad_req != "null":
            self._attach_gradient(own)
        self._others = tuple(self._elsewhere(data, ctx) for ctx in contexts[1:])
        self._hold(own)  # last: whoever finds it takes the parameter for whole
        self._deferred = None

    def _elsewhere(self, data: np.ndarray, ctx: Context) -> Parameter:
        """The parameter on a further context."""
        other = copy.copy(self)
        other._others = ()
        other._start(data.copyto(ctx), [ctx])
        return other

    def _everywhere(self) -> tuple[Parameter, ...]:
        """The parameter on each of its contexts."""
        return (self, *self._others)

    def _on(self, ctx: Context | None) -> Parameter:
        """The parameter on a context; without one, on the current one if it is on several."""
        if ctx is None and not self._others:
            return self
        capture.depend_on(self, "_others")
        number = number_named(ctx)
        for one in self._everywhere():
            if number_of(one._contexts[0]) == number:
                return one
        raise UninitializedError(
            f"{self._described()} is not on {context_of_device(number)}: it was initialised on "
            f"{', '.join(map(str, self._contexts))}. Name that context in initialize or reset_ctx, "
            "or call the network with arrays that are where the parameter is."
        )

    def _hold(self, data: np.ndarray | None) -> None:
        """Let another array, or none, be the parameter's."""
        self._data = data
        Parameter.replaced = next(_replacements)  # no number is used twice, whatever threads do

    def _attach_gradient(self, data: np.ndarray) -> None:
        autograd.check_float(self._described(), data)
        self._grad = np.zeros_like(data)
        autograd.mark_variables([data], [self._grad], self.grad_req)
        self._used = self._grad._version

    def unsized(self) -> Unsized | np.ndarray:
        """What stands for the array in a forward pass that completes its shape."""
        with initializing:
            if self._data is not None:  # another thread has completed it
                return self.data()
            if self._deferred is None:
                raise self._unready()
            return Unsized(self._described(), self.shape, self._settle)

    def _settle(self, shape: Shape) -> np.ndarray:
        with initializing:
            if self._data is None:  # else settled by an earlier use in the same pass
                self.shape = shape
                self.finish_deferred_init()
        return self._on(None)._data

    def load(self, data: np.ndarray, ctx: Contexts = None, *, dtype_source: str = "") -> None:
        """Take values from a file; `load_problem` has found nothing against them.

        With `dtype_source` 'saved', the parameter gets the element type of the values; else the
        values are converted.
        """
        if dtype_source == "saved":
            self.cast(data.dtype)
        self.shape = data.shape
        if self._data is not None:
            self.set_data(data)
            return
        contexts = self._deferred.contexts if self._deferred else listed_contexts(ctx)
        with autograd.pause():
            self._start(np.array(data, dtype=self.dtype), contexts)  # a copy, also on its context

    def load_problem(self, data: np.ndarray, cast_dtype: bool) -> str | None:
        """Why the values do not fit this parameter; None if they do."""
        if self._shape is not None and not compatible(self._shape, data.shape):
            return f"shape {tuple(data.shape)}, expected {self.shape}"
        name = dtype_name(self.dtype)
        if not cast_dtype and dtype_name(data.dtype) != name:
            return f"dtype {dtype_name(data.dtype)}, expected {name} (or set cast_dtype=True)"
        return None

    # -- the values -------------------------------------------------------------------------------

    def data(self, ctx: Context | None = None) -> np.ndarray:
        """The parameter's array; of several, that on `ctx`, or on the current context."""
        if self._data is None:
            raise self._unready()
        return self._on(ctx)._array()

    def _array(self) -> np.ndarray:
        """The array on the parameter's first context."""
        capture.depend_on(self, "_data", "_grad")
        return self._data

    def _placed(self) -> tuple[Parameter, ...]:
        """The parameter on each of its contexts, which are known."""
        if self._data is None:
            raise self._unready()
        capture.depend_on(self, "_others")
        return self._everywhere()

    def list_data(self) -> list[np.ndarray]:
        """The array on each context."""
        return [one._array() for one in self._placed()]

    def merged_data(self) -> np.ndarray:
        """One array for all contexts, as files have it: those of running statistics, which each
        context has of its own part of the batches, are averaged."""
        arrays = self.list_data()
        first, *others = (array.as_in_context(arrays[0].ctx) for array in arrays)
        if self.grad_req != "null" or all(np.array_equal(first, other) for other in others):
            return first
        with autograd.pause():
            return (sum(others, first) / len(arrays)).astype(first.dtype)

    def set_data(self, data: Any) -> None:
        """Write new values into the parameter; they are kept if it is not initialised yet."""
        data = np.asarray(data, dtype=None if hasattr(data, "dtype") else self.dtype)
        self.shape = data.shape
        if self._data is not None:
            with autograd.pause():
                for one in self._everywhere():
                    one._data[...] = data
        elif self._deferred is not None:
            values = np.array(data, dtype=self.dtype)
            self._deferred = replace(self._deferred, data=values)
        else:
            raise self._unready()

    def grad(self, ctx: Context | None = None) -> np.ndarray:
        """The gradient's array, which backward writes; of several as `data` says."""
        self.data(ctx)
        return self._on(ctx)._gradient()

    def _gradient(self) -> np.ndarray:
        """The gradient on the parameter's first context."""
        if self._grad is None:
            raise ArgumentError(
                f"{self._described()} has no gradient: its grad_req is 'null'. Set grad_req to "
                "'write' or 'add' before the forward pass."
            )
        capture.depend_on(self, "_grad")
        return self._grad

    def list_grad(self) -> list[np.ndarray]:
        """The gradient on each context."""
        return [one._gradient() for one in self._placed()]

    def zero_grad(self) -> None:
        """Set the gradient to 0, if there is one."""
        if self._grad is None:
            return
        fresh = self.has_fresh_grad
        with autograd.pause():
            for one in self._everywhere():
                one._grad[...] = 0
        if not fresh:
            self.mark_used()

    @property
    def has_fresh_grad(self) -> bool:
        """Whether the gradient, on all contexts, has been written since the last update."""
        return all(one._gradient()._version != one._used for one in self._everywhere())

    def fresh_where(self) -> list[np.ndarray]:
        """What has to hold for the gradient to be fresh, of a function that is being captured and
        writes it in a branch: the program computes it from here on."""
        if not modes.is_capturing():
            return []
        everywhere = self._everywhere()
        truths = [capture.written_where(one._gradient(), one._used) for one in everywhere]
        return [truth for truth in truths if truth is not None]

    def mark_used(self) -> None:
        """From now on the gradient is stale, until it is written again."""
        for one in self._everywhere():
            one._used = one._gradient()._version

    def cast(self, dtype: Any) -> None:
        """Convert values and gradient to another element type."""
        self._dtype = dtype
        for other in self._others:
            other.cast(dtype)
        if self._data is None or dtype_name(dtype) == dtype_name(self._data.dtype):
            return
        with autograd.pause():
            gradient = self._grad
            self._hold(self._data.astype(dtype))
            if gradient is not None:
                self._attach_gradient(self._data)
                self._grad[...] = gradient.astype(dtype)

    # -- contexts ---------------------------------------------------------------------------------

    def list_ctx(self) -> list[Context]:
        """The contexts that the parameter is initialised on."""
        if self._data is not None:
            return self._contexts
        if self._deferred is not None:
            return self._deferred.contexts
        raise self._unready()

    def reset_ctx(self, ctx: Contexts) -> None:
        """Move to other contexts. Gradients start anew there."""
        contexts = listed_contexts(ctx)
        if contexts == self.list_ctx():
            return
        if self._deferred is not None:
            self._deferred = replace(self._deferred, contexts=contexts)
            return
        with autograd.pause():
            self._start(self.merged_data(), contexts)

    # -- what does not exist here -----------------------------------------------------------------

    def row_sparse_data(self, row_id: Any) -> np.ndarray:
        """Raises: parameters are dense."""
        raise UnsupportedError(
            f"{self._described()} is dense; use data() and index it: data()[row_id]."
        )

    def list_row_sparse_data(self, row_id: Any) -> list[np.ndarray]:
        """Raises: parameters are dense."""
        raise UnsupportedError(f"{self._described()} is dense; use list_data().")

    def var(self) -> Any:
        """A symbol for the parameter's array: a variable of its name."""
        told = isinstance(self.init, str) or hasattr(self.init, "dumps")
        return symbol.var(
            self.name, shape=self.shape, dtype=self.dtype, lr_mult=self.lr_mult,
            wd_mult=self.wd_mult, init=self.init if told else None,
        )  # fmt: skip

    # -- messages ---------------------------------------------------------------------------------

    def belongs_to(self, owner: str) -> None:
        """Remember the first block that registers the parameter, for messages."""
        self._owner = self._owner or owner

    def _described(self) -> str:
        of = f" of {self._owner}" if self._owner else ""
        return f"parameter '{self.name}'{of}"

    def _unready(self) -> UninitializedError:
        described = self._described()
        described = described[0].upper() + described[1:]
        if self._deferred is not None:
            return DeferredInitializationError(
                f"{described} has no values yet: the first forward pass completes its shape "
                f"{self.shape}. Call the network on a batch of data first, or give the layer its "
                "input size (in_units, in_channels, input_size) when it is made."
            )
        return UninitializedError(
            f"{described} has not been initialized. Call initialize() or load_parameters() on the "
            "whole network first; net.params has only the parameters of the outermost block, "
            "net.collect_params() has them all."
        )


class Constant(Parameter):
    """An array that belongs to a block and is not learned; `set_data` changes it."""

    def __init__(self, name: str, value: Any):
        self.value = value if isinstance(value, np.ndarray) else np.array(value)
        super().__init__(name, "null", self.value.shape, self.value.dtype, differentiable=False)

    @property
    def is_sized(self) -> bool:
        """Always true: the value has a shape."""
        return True

    @property
    def grad_req(self) -> str:
        """Always 'null': constants have no gradient."""
        return "null"

    @grad_req.setter
    def grad_req(self, request: str) -> None:
        if request != "null":
            warnings.warn(
                f"grad_req={request!r} has no effect on '{self.name}': a constant has no gradient, "
                "and its grad_req stays 'null'.",
                stacklevel=2,
            )

    def _drawn(self, waiting: _Deferred) -> np.ndarray:
        return np.array(self.value, dtype=self.dtype)


@contextmanager
def zeros_in(parameters: Iterable[Parameter]) -> Iterator[None]:
    """Inside, parameters without values hold zeros; what stays is their completed shapes."""
    with initializing:
        waiting = [(p, p._deferred) for p in parameters if p._data is None]
        for parameter, _ in waiting:
            parameter._deferred = _Deferred("zeros", [current_context()], "zeros")
            if parameter.is_sized:
                parameter.finish_deferred_init()
        try:
            yield
        finally:
            for parameter, deferred in waiting:
                parameter._grad = None
                parameter._hold(None)
                parameter._deferred = deferred


def compatible(known: Shape, shape: Sequence[int]) -> bool:
    """Whether `shape` has the extents that are known: 0 and -1 are not."""
    if len(known) != len(shape):
        return False
    return all(k in (UNKNOWN, 0, n) for k, n in zip(known, shape, strict=True))


def listed_contexts(ctx: Contexts) -> list[Context]:
    """The distinct contexts that are given, the current one for None; all must be usable."""
    if ctx is None:
        ctx = [current_context()]
    given = [ctx] if isinstance(ctx, Context) else list(ctx)
    return list(dict.fromkeys(check_context(c) for c in given))


def _extents(name: str, shape: Any) -> Shape:
    """A parameter's shape, some of it perhaps unknown."""
    items = shape if isinstance(shape, Sequence) and not isinstance(shape, str) else (shape,)
    if not all(type(n) is int or is_integer(n) for n in items):
        raise ShapeError(
            f"Parameter {name!r}: shape is {described(shape)}; expected integers, 0 or -1 where an "
            "extent is not known yet."
        )
    return tuple(items)


def _check_truths(name: str, **given: Any) -> None:
    for argument, value in given.items():
        if not isinstance(value, bool | int | numpy.bool_):
            raise ArgumentError(
                f"Parameter {name!r}: {argument} is {described(value)}; expected True or False."
            )


def _check_storage(name: str, stype: str, grad_stype: str) -> None:
    for given in (stype, grad_stype):
        if not isinstance(given, str) or given not in _STORAGE_TYPES:
            raise ArgumentError(
                f"Parameter {name!r}: storage type {described(given)}; "
                f"expected one of {_STORAGE_TYPES}."
            )
    if stype != "default":
        raise UnsupportedError(
            f"Parameter {name!r}: stype={stype!r}: parameters are dense here; leave stype out."
        )


__all__ = ["Constant", "DeferredInitializationError", "Parameter"]
