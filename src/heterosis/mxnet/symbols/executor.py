"""A symbol with arrays: compiled at the first run, as a hybridized function is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from heterosis import autograd, capture, np
from heterosis.mxnet.symbols.evaluation import Plan
from heterosis.runtime.errors import ArgumentError

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
