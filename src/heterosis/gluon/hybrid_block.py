"""Blocks that can be captured as a whole: `hybrid_forward(F, x, ...)` or a plain `forward(x)`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from heterosis import autograd
from heterosis import ndarray as F
from heterosis.gluon.block import Block
from heterosis.gluon.parameter import zeros_in
from heterosis.gluon.parameter_dict import ParameterDict
from heterosis.ir.types import is_float
from heterosis.runtime.errors import ArgumentError, UnsupportedError

_warned: list[str] = []


class HybridBlock(Block):
    """A block whose computation does not depend on values, so that it can be compiled whole.

    Define `hybrid_forward(self, F, x, ..., weight)`, where `F` has the operations and each of the
    block's own parameters comes as an argument of its name; or define `forward(self, x, ...)`.
    """

    def __init__(self, prefix: str | None = None, params: ParameterDict | None = None):
        super().__init__(prefix, params)
        self._active = False
        self._flags: dict[str, Any] = {}
        self._callback: tuple[Callable[..., None], bool] | None = None
        if type(self).infer_shape is not HybridBlock.infer_shape:
            self._own_rule = self.register_forward_pre_hook(_apply_own_rule)

    def register_child(self, block: Block, name: str | None = None) -> None:
        """Make `block` a part; it must be a HybridBlock."""
        if not isinstance(block, HybridBlock):
            raise ArgumentError(
                f"Children of HybridBlock must also be HybridBlock, but {block} has type "
                f"{type(block)}. If you are using Sequential, please try HybridSequential instead."
            )
        super().register_child(block, name)

    # -- running ----------------------------------------------------------------------------------

    def forward(self, x: Any, *args: Any) -> Any:
        """Run `hybrid_forward` with the block's parameters."""
        if not self._reg_params:
            return self.hybrid_forward(F, x, *args)
        parameters = {
            name: p.unsized() if p._data is None else p._data
            for name, p in self._reg_params.items()
        }
        return self.hybrid_forward(F, x, *args, **parameters)

    def hybrid_forward(self, F: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        """The computation on inputs and own parameters; `F` has `np`, `npx` and operators."""
        raise NotImplementedError(
            f"{type(self).__name__} defines no hybrid_forward(self, F, x, ...) and no "
            "forward(self, x, ...): write the computation in one of them."
        )

    def infer_shape(self, *args: Any) -> None:
        """Complete the shapes of all parameters from inputs of the right shapes.

        Blocks may define it to set the shapes of their own parameters; the others run forward
        once, without recording, and leave parameters that were not initialised so.
        """
        with zeros_in(self.collect_params().values()), autograd.pause():
            self.forward(*args)

    def infer_type(self, *args: Any) -> None:
        """Give all parameters the element type of the first input, if that is a float."""
        if is_float(args[0].dtype.name):
            self.cast(args[0].dtype)

    # -- capture ----------------------------------------------------------------------------------

    def hybridize(
        self, active: bool = True, backend: str | None = None, clear: bool = True,
        static_alloc: bool = False, static_shape: bool = False, inline_limit: int = 2,
        forward_bulk_size: int | None = None, backward_bulk_size: int | None = None,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        """Ask for the block to be compiled as a whole, with these wishes.

        This version keeps the wishes and runs the block imperatively, with the same results.
        """
        self._active = active
        self._flags = {
            "backend": backend, "static_alloc": static_alloc, "static_shape": static_shape,
            "inline_limit": inline_limit, "forward_bulk_size": forward_bulk_size,
            "backward_bulk_size": backward_bulk_size, **kwargs,
        }  # fmt: skip
        if active:
            _warn_once()
        super().hybridize(active, clear=clear, **self._flags)

    def register_op_hook(self, callback: Callable[..., None], monitor_all: bool = False) -> None:
        """Remember a monitor of operations in compiled blocks; imperative ones have none."""
        self._callback = (callback, monitor_all)
        super().register_op_hook(callback, monitor_all)

    def optimize_for(self, x: Any, *args: Any, backend: str | None = None, **options: Any) -> None:
        """Raises: there are no other back ends in this version."""
        if not backend:
            raise ArgumentError('optimize_for: give the name of a back end, backend="...".')
        raise UnsupportedError(
            f"optimize_for: there is no back end {backend!r}; call hybridize() instead."
        )

    def export(self, path: str, epoch: int = 0, remove_amp_cast: bool = True) -> None:
        """Raises: exporting needs captured blocks, which are not there yet."""
        raise UnsupportedError(
            f"{type(self).__name__}.export: programs cannot be written to files yet. "
            "save_parameters keeps the parameters; make the network from its Python code."
        )


class SymbolBlock(HybridBlock):
    """A block from a symbol file. Raises: symbol files cannot be read yet."""

    def __init__(self, outputs: Any, inputs: Any, params: ParameterDict | None = None):
        raise UnsupportedError(
            "SymbolBlock: symbols are not there yet. Make the network from its Python code, and "
            "read its parameters with load_parameters."
        )

    @staticmethod
    def imports(
        symbol_file: str, input_names: str | list[str], param_file: str | None = None,
        ctx: Any = None, allow_missing: bool = False, ignore_extra: bool = False,
    ) -> SymbolBlock:  # fmt: skip
        """Raises: symbol files cannot be read yet."""
        return SymbolBlock(symbol_file, input_names)

    def reset_ctx(self, ctx: Any) -> None:
        """Move all parameters to other contexts."""
        self.collect_params().reset_ctx(ctx)


def _apply_own_rule(block: HybridBlock, inputs: tuple[Any, ...]) -> None:
    """Complete the shapes of a block that knows how; once they are, it is not asked again."""
    parameters = block._reg_params.values()
    if any(not p.is_sized for p in parameters):
        block.infer_shape(*inputs)
    for parameter in parameters:
        parameter.finish_deferred_init()
    block._own_rule.detach()


def _warn_once() -> None:
    """One warning a process: programs hybridize in loops."""
    if not _warned:
        _warned.append("hybridize")
        warnings.warn(
            "hybridize: blocks run imperatively in this version; results are the same.",
            stacklevel=3,
        )
