"""Operations whose gradient the user writes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from heterosis import _core
from heterosis.autograd.conditional import Received, in_any_case
from heterosis.autograd.tape import (
    Entry,
    Node,
    ResultType,
    Source,
    full,
)
from heterosis.ir.types import is_float
from heterosis.ops.array import shape as shapes
from heterosis.ops.record import as_users_call
from heterosis.runtime import modes
from heterosis.runtime.errors import AutogradError, ShapeError, UnsupportedError

ndarray = _core.ndarray

_broadcast_to = as_users_call(shapes.broadcast_to)


class Function:
    """An operation of your own: override `forward` and `backward`, make an instance, call it once.

    `backward` gets the gradient of each result and returns that of each argument. In a hybridized
    function both become part of the program.
    """

    def __init__(self) -> None:
        self._used = False
        self.saved_tensors: tuple[Any, ...] = ()

    def save_for_backward(self, *arrays: Any) -> None:
        """Keep arrays, for `backward` to find in `saved_tensors`."""
        self.saved_tensors = arrays

    def forward(self, *inputs: Any) -> Any:
        """The results for `inputs`."""
        raise UnsupportedError(f"{type(self).__name__} does not override forward.")

    def backward(self, *output_grads: Any) -> Any:
        """What `inputs` receive for what the results receive."""
        raise UnsupportedError(f"{type(self).__name__} does not override backward.")

    def __call__(self, *inputs: Any) -> Any:
        if self._used:
            raise AutogradError(
                f"{type(self).__name__}: an instance can be called once, since it keeps what its "
                "backward needs. Make a new one for each call."
            )
        self._used = True
        if modes.is_capturing():
            (embed,) = _embed
            return embed(self, inputs)
        return recorded(self, inputs)


_embed: list[Callable[[Function, tuple[Any, ...]], Any]] = []


def set_embed(embed: Callable[[Function, tuple[Any, ...]], Any]) -> None:
    """`embed(function, inputs)` makes a call part of the program that is being captured."""
    _embed[:] = [embed]


def recorded(function: Function, inputs: tuple[Any, ...]) -> Any:
    """The results of `function`, with a place in the record if gradients flow to `inputs`."""
    before = dict(vars(function))
    sources = _core.followed(type(function).__name__, inputs, None)
    with modes.switched(recording=False):
        outputs = function.forward(*inputs)
    if not modes.is_recording() or all(s is None for s in sources):
        return outputs
    single = not isinstance(outputs, list | tuple)
    results = (outputs,) if single else tuple(outputs)
    # An input handed back as it came keeps its own place in the record.
    fresh = [o._alias() for o in results]
    kept = _Kept(function, before, inputs, results)
    node = _FunctionNode(function, sources, list(map(described, inputs)), fresh, kept)
    _core.attach(node, fresh, [i for i, o in enumerate(fresh) if is_float(o._dtype_name)])
    return fresh[0] if single else type(outputs)(fresh)


def described(argument: Any) -> ResultType | None:
    """Element type and shape; None for what is no array."""
    return (argument._dtype_name, argument.shape) if isinstance(argument, ndarray) else None


def gradients_of(name: str, found: Any, arguments: Sequence[ResultType | None]) -> list[Any]:
    """What `backward` returned: for each argument an array like it, or None."""
    found = found if isinstance(found, list | tuple) else (found,)
    if len(found) != len(arguments):
        raise AutogradError(
            f"{name}.backward returned {len(found)} gradients for {len(arguments)} arguments; "
            "return one for each."
        )
    pairs = zip(found, arguments, strict=True)
    return [None if g is None or like is None else _fitting(name, g, like) for g, like in pairs]


def _fitting(name: str, gradient: Any, like: ResultType) -> Any:
    dtype, shape = like
    if not isinstance(gradient, ndarray):
        return full(shape, gradient, dtype)
    try:
        repeated = gradient if gradient.shape == shape else _broadcast_to(gradient, shape)
    except ShapeError:
        raise AutogradError(
            f"{name}.backward returned a gradient of shape {gradient.shape} for an argument of "
            f"shape {shape}; return one of the argument's shape."
        ) from None
    return repeated if repeated._dtype_name == dtype else repeated.astype(dtype)


class _Kept:
    """The arrays that `forward` left for `backward`: what they are, and their versions."""

    def __init__(
        self, function: Function, before: dict[str, Any], inputs: Sequence[Any], results: Any
    ):
        known = {id(value) for value in before.values()} | set(map(id, inputs))
        places = {id(result): i for i, result in enumerate(results)}
        arrays = [a for a in _held(function) if id(a) not in known]
        self.results = {id(a): places[id(a)] for a in arrays if id(a) in places}
        self.others = [
            a for a in arrays if id(a) not in places and a._autograd is None
            and is_float(a._dtype_name)
        ]  # fmt: skip
        self.versions = [(a, a._version) for a in function.saved_tensors if _is_array(a)]

    def check(self, name: str) -> None:
        """Raise if what `backward` needs is no longer there."""
        for array, version in self.versions:
            if array._version != version:
                raise AutogradError(
                    f"backward: {name} has saved an array of shape {array.shape} that was written "
                    "to since. Save a copy, or compute a new array instead."
                )

    def check_again(self, name: str) -> None:
        """Raise if gradients of gradients would miss what `forward` has computed."""
        for array in self.others:
            raise AutogradError(
                f"{name}: its forward leaves an array of shape {array.shape} to its backward that "
                "is neither an argument nor a result, and a gradient of the gradient would take it "
                "for constant. Compute it in backward, from arguments and results; or hybridize "
                "the function that calls it."
            )


def _held(function: Function) -> list[Any]:
    values = [v for name, v in vars(function).items() if name != "saved_tensors"]
    return [v for v in (*function.saved_tensors, *values) if _is_array(v)]


def _is_array(value: Any) -> bool:
    return isinstance(value, ndarray)


@contextmanager
def replaced(function: Function, by: Callable[[Any], Any]) -> Iterator[None]:
    """Within the block, `function` holds `by(array)` in place of each array that it holds."""

    def one(value: Any) -> Any:
        return by(value) if _is_array(value) else value

    before = dict(vars(function))
    for name, value in before.items():
        setattr(function, name, tuple(map(one, value)) if name == "saved_tensors" else one(value))
    try:
        yield
    finally:
        vars(function).update(before)


class _FunctionNode(Node):
    __slots__ = ("arguments", "function", "kept")

    def __init__(
        self,
        function: Function,
        sources: tuple[Source | None, ...],
        arguments: list[ResultType | None],
        results: Sequence[Any],
        kept: _Kept,
    ):
        types = tuple((r._dtype_name, r.shape) for r in results)
        super().__init__(type(function).__name__, sources, types)
        self.function: Function | None = function
        self.arguments = arguments
        self.kept: _Kept | None = kept

    def pull(
        self, received: Sequence[Received | None], again: bool
    ) -> Iterable[tuple[Source, Received]]:
        function, kept = self.function, self.kept
        if function is None or kept is None:
            raise AutogradError(
                f"backward: the record of {self.name} is gone, since backward has been here "
                "before. Keep it with backward(retain_graph=True)."
            )
        kept.check(self.name)
        given = [
            full(shape, 0.0, dtype) if cotangent is None else in_any_case(cotangent)
            for cotangent, (dtype, shape) in zip(received, self.results, strict=True)
        ]
        if again:
            kept.check_again(self.name)
            with replaced(function, lambda array: self._as_result(array, kept.results)):
                found = function.backward(*given)
        else:
            found = function.backward(*given)
        gradients = gradients_of(self.name, found, self.arguments)
        pairs = zip(self.sources, gradients, strict=True)
        return [(s, g) for s, g in pairs if s is not None and g is not None]

    def _as_result(self, array: Any, places: dict[int, int]) -> Any:
        """`array` as gradients of gradients should see it."""
        place = places.get(id(array))
        if place is None:
            return array
        alias = array._alias()
        alias._autograd = Entry(self, place, alias._version)
        return alias

    def release(self) -> None:
        super().release()
        self.function, self.kept = None, None
