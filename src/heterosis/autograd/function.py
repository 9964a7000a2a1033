"""Operations whose gradient the user writes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from heterosis import _core
from heterosis.autograd.tape import Node, Source, source_of
from heterosis.ir.types import is_float
from heterosis.ops.creation import full
from heterosis.runtime import modes
from heterosis.runtime.errors import AutogradError, UnsupportedError

ndarray = _core.ndarray


class Function:
    """An operation of your own: override `forward` and `backward`, make an instance, call it once.

    `backward` gets the gradient of each result and returns that of each argument.
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
        recording = modes.is_recording()
        with modes.switched(recording=False):
            outputs = self.forward(*inputs)
        sources = tuple(map(source_of, inputs))
        if recording and any(s is not None for s in sources):
            outputs = self._noted(sources, inputs, outputs)
        return outputs

    def _noted(self, sources: tuple[Source | None, ...], inputs: Any, outputs: Any) -> Any:
        single = not isinstance(outputs, list | tuple)
        # An input handed back as it came keeps its own place in the record.
        fresh = [o._alias() for o in ((outputs,) if single else outputs)]
        node = _FunctionNode(self, sources, fresh)
        node.attach(fresh, (i for i, o in enumerate(fresh) if is_float(o._dtype_name)))
        return fresh[0] if single else type(outputs)(fresh)


class _FunctionNode(Node):
    __slots__ = ("function",)

    def __init__(
        self, function: Function, sources: tuple[Source | None, ...], results: Sequence[Any]
    ):
        types = tuple((r._dtype_name, r.shape) for r in results)
        super().__init__(type(function).__name__, sources, types)
        self.function: Function | None = function

    def pull(self, received: list[Any], again: bool) -> Iterable[tuple[Source, Any]]:
        if self.function is None:
            raise AutogradError(
                f"backward: the record of {self.name} is gone, since backward has been here "
                "before. Keep it with backward(retain_graph=True)."
            )
        given = [
            full(shape, 0.0, dtype) if cotangent is None else cotangent
            for cotangent, (dtype, shape) in zip(received, self.results, strict=True)
        ]
        found = self.function.backward(*given)
        found = found if isinstance(found, list | tuple) else (found,)
        if len(found) != len(self.sources):
            raise AutogradError(
                f"{self.name}.backward returned {len(found)} gradients for {len(self.sources)} "
                "arguments; return one for each."
            )
        pairs = zip(self.sources, found, strict=True)
        return [(s, g) for s, g in pairs if s is not None and g is not None]

    def release(self) -> None:
        super().release()
        self.function = None
