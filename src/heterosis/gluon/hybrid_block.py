"""Blocks that can be captured as a whole: `hybrid_forward(F, x, ...)` or a plain `forward(x)`."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Sequence
from typing import Any

from heterosis import _core, autograd, backends, capture, ndarray, symbol
from heterosis.capture.compiled import Call
from heterosis.gluon.block import Block, of_any_parameters
from heterosis.gluon.parameter import Parameter, initializing, zeros_in
from heterosis.gluon.parameter_dict import ParameterDict
from heterosis.io.atomic import written
from heterosis.ir.types import is_float
from heterosis.mxnet.symbols.composition import PROCESSOR
from heterosis.runtime.errors import ArgumentError, UnsupportedError
from heterosis.runtime.placing import beside, is_elsewhere

_NO_ARRAYS: tuple[tuple[int, int], dict[str, Any]] = ((-1, 0), {})


class HybridBlock(Block):
    """A block whose computation does not depend on values, so that it can be compiled whole.

    Define `hybrid_forward(self, F, x, ..., weight)`, where `F` has the operations and each of the
    block's own parameters comes as an argument of its name; or define `forward(self, x, ...)`.
    """

    def __init__(self, prefix: str | None = None, params: ParameterDict | None = None):
        super().__init__(prefix, params)
        self._active = False
        self._compiled: capture.Compiled[..., Any] | None = None
        self._replay: Any = None  # what runs the compiled program, while the block is hybridized
        # The parameters' arrays, and when and where these are valid.
        self._arrays: tuple[tuple[int, int], dict[str, Any]] = _NO_ARRAYS
        self._flags: dict[str, Any] = {}
        self._callback: tuple[Callable[..., None], bool] | None = None
        if type(self).infer_shape is not HybridBlock.infer_shape:
            self._own_rule = self.register_forward_pre_hook(_apply_own_rule)

    def register_child(self, block: Block, name: str | None = None) -> None:
        """Make `block` a part; it must be a HybridBlock."""
        if not isinstance(block, HybridBlock):
            raise ArgumentError(
                f"{type(self).__name__}: its parts must be HybridBlocks, to be compiled with it, "
                f"and got a {type(block).__name__}. Derive that class from HybridBlock (for "
                "Sequential there is HybridSequential), or put both into a plain Block."
            )
        super().register_child(block, name)

    def _register_parameter(self, name: str, parameter: Parameter) -> None:
        super()._register_parameter(name, parameter)
        self._arrays = _NO_ARRAYS

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_replay": None, "_arrays": _NO_ARRAYS}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        compiled = self._compiled
        function = getattr(compiled, "function", None)
        if compiled is not None and getattr(function, "__self__", self) is not self:
            self._compile(compiled.backend, compiled.dynamic, compiled.check)  # a shallow copy
        if self._active and self._compiled:
            vars(self)["_replay"] = self._compiled.replay

    # -- running ----------------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if is_elsewhere(args):
            with beside(args[0]):
                return self(*args, **kwargs)
        if _core.is_capturing():
            run = self._captured_forward
        else:
            run = self.forward if self._replay is None else self._replay
        if self._forward_pre_hooks or self._forward_hooks:
            return self._call_with_hooks(run, args, kwargs)
        return run(*args, **kwargs)

    def _call_with_hooks(
        self, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        for hook in tuple(self._forward_pre_hooks.values()):
            hook(self, args)
        result = run(*args, **kwargs)
        for hook in tuple(self._forward_hooks.values()):
            hook(self, args, result)
        return result

    def _captured_forward(self, *args: Any, **kwargs: Any) -> Any:
        """`forward`, as a part of the program that is captured."""
        capture.depend_on_all(self)
        for parameter in self._reg_params.values():
            capture.depend_on(parameter, "_data")
        with capture.scope(self._prefix):
            return capture.opened(self.forward)(*args, **kwargs)

    def _captured_call(self, *args: Any, **kwargs: Any) -> Any:
        """A `__call__` of the class's own, which goes on to `_captured_forward`."""
        capture.depend_on_all(self)
        return capture.opened(self.__call__)(*args, **kwargs)

    @of_any_parameters
    def forward(self, x: Any, *args: Any) -> Any:
        """Run `hybrid_forward` with the block's parameters."""
        at = Parameter.replaced, _core.current_device()
        known_at, arrays = self._arrays  # at once: other threads may put others there
        if known_at != at:
            arrays = {
                name: p.unsized() if p._data is None else p.data()
                for name, p in self._reg_params.items()
            }
            self._arrays = at, arrays
        F = symbol if _core.is_capturing() else ndarray
        run = capture.opened(self.hybrid_forward) if _core.is_capturing() else self.hybrid_forward
        return run(F, x, *args, **arrays)

    @of_any_parameters
    def hybrid_forward(self, F: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        """The computation on inputs and own parameters; `F` has `np`, `npx` and operators."""
        raise UnsupportedError(
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
        self, active: bool = True, backend: str | None = backends.NATIVE, clear: bool = True,
        static_alloc: bool = False, static_shape: bool = False, inline_limit: int = 2,
        forward_bulk_size: int | None = None, backward_bulk_size: int | None = None,
        check: bool = False, dynamic: capture.Dynamic = "auto", **kwargs: Any,
    ) -> None:  # fmt: skip
        """Compile the block as a whole at its next call, or with `active=False` no longer.

        The program is captured anew for inputs of other types, and when parameters get other
        arrays. Extents of inputs that vary stay open, as far as `dynamic` lets them: see
        `heterosis.hybridize`.
        `backend` names what compiles it: "native", which Gluon calls "MKLDNN", "xla", which needs
        JAX, or one that was made known with `heterosis.backends.register`. With `check`, the first
        runs are compared with what the block gives imperatively; `CheckError` names the first
        operation that differs. The other flags are Gluon's, and TensorFlow's `jit_compile`; memory
        is planned and reused whatever they say.
        """
        backend = backends.NATIVE if backend in (None, PROCESSOR) else backend
        backends.named(backend)  # an unknown one is refused here and not at the first call
        if kwargs.get("sharding") is not None:
            raise ArgumentError(
                f"{type(self).__name__}.hybridize: a sharding is for functions. Hybridize one that "
                "calls the block, as a whole step of training: "
                "heterosis.hybridize(step, backend='xla', sharding=...)."
            )
        self._active = active
        self._flags = {
            "static_alloc": static_alloc, "static_shape": static_shape,
            "inline_limit": inline_limit, "forward_bulk_size": forward_bulk_size,
            "backward_bulk_size": backward_bulk_size, "check": check, **kwargs,
        }  # fmt: skip
        if active and (clear or not self._is_compiled(backend, dynamic, check)):
            self._compile(backend, dynamic, check)
        self._replay = self._compiled.replay if active and self._compiled else None
        super().hybridize(active, backend=backend, clear=clear, dynamic=dynamic, **self._flags)

    def _compile(self, backend: str, dynamic: capture.Dynamic, check: bool) -> None:
        self._compiled = capture.Compiled(
            self._captured_forward, backend, dynamic, check=check,
            imperative=self._imperative_forward, parameters=self._arguments,
        )  # fmt: skip

    def _is_compiled(self, *how: Any) -> bool:
        compiled = self._compiled
        return compiled is not None and (compiled.backend, compiled.dynamic, compiled.check) == how

    def _imperative_forward(self, *args: Any, **kwargs: Any) -> Any:
        """`forward`, which may be another one by now."""
        return self.forward(*args, **kwargs)

    def register_op_hook(self, callback: Callable[..., None], monitor_all: bool = False) -> None:
        """Remember a monitor of operations in compiled blocks; imperative ones have none."""
        self._callback = (callback, monitor_all)
        super().register_op_hook(callback, monitor_all)

    def optimize_for(self, x: Any, *args: Any, backend: str | None = None, **options: Any) -> None:
        """Hybridize the block for a back end, and compile it for arguments like these."""
        self.hybridize(backend=backend or "", **options)
        self(x, *args)

    def export(
        self, path: str, epoch: int = 0, remove_amp_cast: bool = True, format: str = "symbol"
    ) -> tuple[str, str]:
        """Write what the block predicts, for MXNet and for `SymbolBlock.imports`.

        The program goes to `<path>-symbol.json`, the parameters to `<path>-0000.params` (with the
        epoch's number); both names are returned. The block must have been hybridized and called.
        With the `format` "native", `heterosis.export` writes a library instead.
        """
        if format == "native":
            return self.export_native(path)
        if format != "symbol":
            raise ArgumentError(
                f"export: got format={format!r}; expected 'symbol', the two files of MXNet, or "
                "'native', a library that needs no Python."
            )
        return self._export_symbol(path, epoch)

    def _export_symbol(self, path: str, epoch: int) -> tuple[str, str]:
        from heterosis.gluon.exporting import export  # many tables, which few programs need

        return export(self, path, epoch)

    def export_native(
        self,
        path: str | os.PathLike[str],
        /,
        *inputs: Any,
        options: backends.LibraryOptions | None = None,
        dynamic: capture.Dynamic | None = None,
    ) -> tuple[str, str]:
        """Write the library that `heterosis.export` describes."""
        from heterosis.capture.exporting import export

        self._complete(inputs, {})
        compiled, arguments = self._to_write((inputs, {}))
        return export(
            compiled, path, (inputs, {}), options or backends.LibraryOptions(), arguments,
            "forward", dynamic,
        )  # fmt: skip

    def entry_of(self, *inputs: Any, dynamic: capture.Dynamic | None = None) -> backends.Entry:
        """What the block predicts, as a program that a file can hold: see `capture.entry_of`."""
        from heterosis.capture.exporting import entry_of

        self._complete(inputs, {})
        compiled, arguments = self._to_write((inputs, {}))
        return entry_of(compiled, (inputs, {}), arguments, "forward", dynamic)

    def save(self, prefix: str, *inputs: Any, **keywords: Any) -> None:
        """Write the names of all parts and the parameters: `<prefix>-model.json` and `.params`.

        A hybridized block also writes `prefix` itself, with what it computes: see `save_program`.
        """
        program = self._program(inputs, keywords) if self._active or inputs or keywords else None
        super().save(prefix)
        if program is not None:
            self._write(prefix, program)

    def save_program(self, path: str | os.PathLike[str], /, *inputs: Any, **keywords: Any) -> None:
        """Write what the block predicts, for `heterosis.load`: it needs no Python of the block.

        In the file is a program for each kind of inputs that the hybridized block was called with,
        and one for `inputs` and `keywords` if they are given. A class with a `__call__` of its own
        has other arguments there than its `forward`: with `inputs`, it is what they alone call.
        """
        self._write(path, self._program(inputs, keywords))

    def _program(self, inputs: tuple[Any, ...], keywords: dict[str, Any]) -> bytes:
        from heterosis.capture.saving import packed

        self._complete(inputs, keywords)
        parameters = self.collect_params().values()
        compiled, arguments = self._to_write((inputs, keywords))
        names = {p.name: p._data for p in parameters if p._data is not None}
        return packed(compiled, (inputs, keywords), arguments, self.name, names)

    def _to_write(self, sample: Call) -> tuple[capture.Compiled[..., Any], inspect.Signature]:
        """What is written with a sample of arguments, or without, and what it is called with."""
        forward = self._compiled or capture.Compiled(
            self._captured_forward, parameters=self._arguments
        )
        if type(self).__call__ is HybridBlock.__call__ or not any(sample):
            return forward, self._arguments()
        signature = inspect.signature(self.__call__)
        call = capture.Compiled(
            self._captured_call, forward.backend, forward.dynamic, parameters=lambda: signature
        )
        return call, signature

    def _complete(self, inputs: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        """Complete the parameters' shapes by a call, if there are inputs for one."""
        parameters = self.collect_params().values()
        if (inputs or keywords) and any(p._data is None for p in parameters):
            with autograd.pause():
                self(*inputs, **keywords)

    def _arguments(self) -> inspect.Signature:
        """What the block is called with."""
        if type(self).forward is not HybridBlock.forward:
            return inspect.signature(self.forward)
        _, *parameters = inspect.signature(self.hybrid_forward).parameters.values()
        mine = [p for p in parameters if p.kind != p.VAR_KEYWORD and p.name not in self._reg_params]
        return inspect.Signature(mine)

    def _arguments_named(self, names: Sequence[str]) -> inspect.Signature:
        """What the block is called with, under the names that a file has; by place alone, if they
        are not all such as Python has."""
        if not all(name.isidentifier() for name in names):
            return HybridBlock._arguments(self)
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        return inspect.Signature([inspect.Parameter(name, kind) for name in names])

    @staticmethod
    def _write(path: str | os.PathLike[str], program: bytes) -> None:
        with written(path) as file:
            file.write(program)


def _apply_own_rule(block: HybridBlock, inputs: tuple[Any, ...]) -> None:
    """Complete the shapes of a block that knows how; once they are, it is not asked again."""
    parameters = block._reg_params.values()
    with initializing:  # of threads that call at once, one asks
        if any(not p.is_sized for p in parameters):
            block.infer_shape(*inputs)
        for parameter in parameters:
            parameter.finish_deferred_init()
        block._own_rule.detach()
