"""A symbol with arrays: compiled at the first run, as a hybridized function is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from heterosis import autograd, capture, np
from heterosis.mxnet.symbols.evaluation import Plan
from heterosis.runtime.errors import ArgumentError, ShapeError

if TYPE_CHECKING:
    from heterosis.mxnet.symbols.symbol import Symbol


class Executor:
    """Runs a symbol on its arrays, `arg_dict` and `aux_dict`, forward and backward.

    `grad_dict` has the arrays that gradients are written to, None where none are.
    """

    def __init__(
        self, symbol: Symbol, args: Any, args_grad: Any, grad_req: Any, aux_states: Any
    ):  # fmt: skip
        self._symbol = symbol
        names, states = symbol.list_arguments(), symbol.list_auxiliary_states()
        self.arg_dict = _by_name("args", names, args)
        self.aux_dict = _by_name("aux_states", states, aux_states)
        requests = {name: _request(grad_req, name, i) for i, name in enumerate(names)}
        self._requests = requests
        gradients = _by_name("args_grad", names, args_grad, partial=True)
        self.grad_dict = {
            name: None if requests[name] == "null" else gradients.get(name) for name in names
        }
        self.outputs: list[Any] = []
        plan = Plan(symbol.entries)
        self._run = capture.Compiled(lambda arrays: plan.run(dict(zip(order, arrays, strict=True))))
        order = [*names, *states]
        for name, gradient in self.grad_dict.items():
            if gradient is not None:
                autograd.mark_variables([self.arg_dict[name]], [gradient], requests[name])

    def forward(self, is_train: bool = False, **arrays: Any) -> list[Any]:
        """The results; `arrays` are written into the arguments of these names first."""
        for name, given in arrays.items():
            if name not in self.arg_dict:
                raise ArgumentError(f"{name!r} is no argument; there are {list(self.arg_dict)}.")
            self.arg_dict[name][...] = given
        feed = [*self.arg_dict.values(), *self.aux_dict.values()]
        if is_train:
            with autograd.record():
                self.outputs = self._run(feed)
        else:
            with autograd.predict_mode():
                self.outputs = self._run(feed)
        return self.outputs

    def backward(self, out_grads: Any = None) -> None:
        """Gradients of the last `forward(is_train=True)`, into `grad_dict`; as often as wanted."""
        if out_grads is not None and not isinstance(out_grads, list | tuple):
            out_grads = [out_grads]
        autograd.backward(self.outputs, out_grads, retain_graph=True)

    def reshape(
        self, partial_shaping: bool = False, allow_up_sizing: bool = False, **shapes: Any
    ) -> Executor:
        """An executor for other shapes of these arguments, on the memory of the arrays here.

        Arrays that have to be larger are new, and zero, which `allow_up_sizing` admits; that those
        change which are not named, `partial_shaping` does.
        """
        wanted, _, states = self._symbol.infer_shape(**shapes)
        pairs = [*zip(self.arg_dict, wanted, strict=True), *zip(self.aux_dict, states, strict=True)]
        arrays = self.arg_dict | self.aux_dict
        for name, shape in pairs:
            before = arrays[name].shape
            if shape != before and name not in shapes and not partial_shaping:
                raise ShapeError(
                    f"reshape: {name!r} has the shape {before}, and these shapes ask for {shape}. "
                    "Check them, or allow it with partial_shaping=True."
                )
            if math.prod(shape) > math.prod(before) and not allow_up_sizing:
                raise ShapeError(
                    f"reshape: {name!r} of shape {before} cannot hold {shape}. Bind the largest "
                    "shapes first, or give it new memory with allow_up_sizing=True."
                )
        resized = {name: _resized(arrays[name], shape) for name, shape in pairs}
        gradients = {
            name: _resized(gradient, resized[name].shape)
            for name, gradient in self.grad_dict.items()
            if gradient is not None
        }
        return Executor(self._symbol, resized, gradients, self._requests, resized)

    @property
    def output_dict(self) -> dict[str, Any]:
        """The results of the last `forward`, by name."""
        return dict(zip(self._symbol.list_outputs(), self.outputs, strict=False))

    @property
    def arg_arrays(self) -> list[Any]:
        """The arguments, in order."""
        return list(self.arg_dict.values())

    @property
    def grad_arrays(self) -> list[Any]:
        """The gradients, None where there is none."""
        return [self.grad_dict[name] for name in self.arg_dict]

    @property
    def aux_arrays(self) -> list[Any]:
        """The states, in order."""
        return list(self.aux_dict.values())

    def copy_params_from(
        self, arg_params: Mapping[str, Any], aux_params: Mapping[str, Any] | None = None,
        allow_extra_params: bool = False,
    ) -> None:  # fmt: skip
        """Write values into arguments and states, by name."""
        for into, values in ((self.arg_dict, arg_params), (self.aux_dict, aux_params or {})):
            strange = [name for name in values if name not in into]
            if strange and not allow_extra_params:
                raise ArgumentError(f"there is nothing of the names {strange} in the symbol.")
        for into, values in ((self.arg_dict, arg_params), (self.aux_dict, aux_params or {})):
            for name, value in values.items():
                if name in into:
                    into[name][...] = value


def _resized(array: Any, shape: tuple[int, ...]) -> Any:
    """The array's first elements in another shape; a new array where it has too few."""
    if array.shape == shape:
        return array
    if array.size < math.prod(shape):
        return np.zeros(shape, dtype=array.dtype)
    return array.reshape(-1)[: math.prod(shape)].reshape(shape)


def _request(grad_req: Any, name: str, place: int) -> str:
    if isinstance(grad_req, str):
        return grad_req
    return grad_req.get(name, "null") if isinstance(grad_req, Mapping) else grad_req[place]


def _by_name(what: str, names: Sequence[str], given: Any, partial: bool = False) -> dict[str, Any]:
    """The arrays for the names, from a mapping or from a sequence in their order."""
    if given is None:
        given = {}
    if not isinstance(given, Mapping):
        if len(given) != len(names):
            raise ArgumentError(f"{what}: {len(given)} arrays for {len(names)} names, {names}.")
        given = {n: array for n, array in zip(names, given, strict=True) if array is not None}
    missing = [name for name in names if name not in given]
    if missing and not partial:
        raise ArgumentError(f"{what}: no arrays for {missing}.")
    return {name: np.asarray(given[name]) for name in names if name in given}
