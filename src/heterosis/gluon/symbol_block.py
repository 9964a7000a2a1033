"""Blocks made of symbols: networks that came as files."""

from __future__ import annotations

import inspect
import os
from collections.abc import Sequence
from typing import Any

from heterosis import symbol
from heterosis.gluon import loading
from heterosis.gluon.hybrid_block import HybridBlock
from heterosis.gluon.parameter import Contexts, Parameter
from heterosis.gluon.parameter_dict import ParameterDict
from heterosis.io import params
from heterosis.mxnet.symbols import files
from heterosis.mxnet.symbols.evaluation import Plan
from heterosis.mxnet.symbols.inference import known_facts
from heterosis.runtime.errors import ArgumentError, FormatError

Symbols = symbol.Symbol | Sequence[Any]


class SymbolBlock(HybridBlock):
    """A block that computes `outputs` from `inputs`, which are variables in them.

    All other variables are its parameters; those that `params` has are shared.
    """

    def __init__(self, outputs: Symbols, inputs: Symbols, params: ParameterDict | None = None):
        super().__init__(prefix="", params=None)
        self._params = ParameterDict("", params)
        self._symbol, self._single = _joined(outputs)
        self._inputs = [_input_name(s) for s in _listed(inputs)]
        strange = [name for name in self._inputs if name not in self._symbol.list_inputs()]
        if strange:
            raise ArgumentError(
                f"SymbolBlock: the inputs {strange} are no variables of the outputs, which have "
                f"{_shortened(self._symbol.list_inputs())}."
            )
        self._plan = Plan(self._symbol.entries)
        self._make_parameters()

    def _make_parameters(self) -> None:
        states = set(self._symbol.list_auxiliary_states())
        facts, attributes = known_facts(self._symbol), self._symbol.attr_dict()
        for name in self._symbol.list_inputs():
            if name in self._inputs:
                continue
            shape, dtype = facts[name]
            frozen = {"grad_req": "null", "differentiable": False} if name in states else {}
            self.params.get(
                name, shape=shape, dtype=dtype or "float32", allow_deferred_init=True,
                init=attributes.get(name, {}).get("__init__"), **frozen,
            )  # fmt: skip
        start = len(os.path.commonprefix(list(self.params)))  # noqa: RUF071 - by letters it shall
        self._reg_params = {name[start:]: p for name, p in self.params.items()}

    @staticmethod
    def imports(
        symbol_file: str, input_names: str | Sequence[str], param_file: str | None = None,
        ctx: Contexts = None, allow_missing: bool = False, ignore_extra: bool = False,
    ) -> SymbolBlock:  # fmt: skip
        """The block that `HybridBlock.export`, here or in MXNet, has written.

        `input_names` are the names of the inputs in the symbol, as a rule 'data'.
        """
        names = [input_names] if isinstance(input_names, str) else list(input_names)
        entries, mark = files.loaded(symbol_file)
        outputs = symbol.Symbol(entries)
        arrays = None
        if param_file is not None:
            _check_pair(symbol_file, mark, param_file)
            arrays = loading.read(param_file)
        block = SymbolBlock(outputs, [symbol.var(name) for name in names])
        if arrays is not None:
            block.collect_params().load_dict(
                arrays, ctx, allow_missing, ignore_extra, filename=param_file, cast_dtype=True,
                dtype_source="saved",
            )  # fmt: skip
        return block

    def forward(self, x: Any, *args: Any) -> Any:
        """The outputs for the inputs, in their order; a list if there are several."""
        given = [array for item in (x, *args) for array in _listed(item)]
        if len(given) != len(self._inputs):
            raise ArgumentError(
                f"SymbolBlock: {len(given)} inputs; expected {len(self._inputs)}: {self._inputs}."
            )
        arrays = dict(zip(self._inputs, given, strict=True))
        for parameter in self.params.values():
            arrays[parameter.name] = _array(parameter)
        found = self._plan.run(arrays)
        return found[0] if self._single else found

    def _arguments(self) -> inspect.Signature:
        calls = self._compiled.examples.values() if self._compiled else ()
        in_lists = any(len(arguments) != len(self._inputs) for arguments, _ in calls)
        return super()._arguments() if in_lists else self._arguments_named(self._inputs)

    def _export_symbol(self, path: str, epoch: int) -> tuple[str, str]:
        from heterosis.gluon.exporting import save

        arrays = {name: p.data() for name, p in self.params.items()}
        return save(self._symbol, arrays, path, epoch)

    def cast(self, dtype: Any) -> None:
        """Convert all parameters to another element type; BatchNorm's stay float32 at least."""
        super().cast(dtype)
        if str(dtype).endswith("float16") or getattr(dtype, "__name__", "") == "float16":
            for name in self._symbol.batch_norm_parameters():
                if name in self.params:
                    self.params[name].cast("float32")

    def reset_ctx(self, ctx: Contexts) -> None:
        """Move all parameters to other contexts."""
        self.collect_params().reset_ctx(ctx)

    def __repr__(self) -> str:
        name, inputs, outputs = type(self).__name__, len(self._inputs), len(self._symbol)
        return f"{name}(\n{self._symbol!r} : {inputs} -> {outputs}\n)"


def _check_pair(symbol_file: str, mark: int, param_file: str) -> None:
    """Refuse files of different exports; those of MXNet carry no mark, and go with any."""
    other = params.mark_of(param_file)
    if mark and other and mark != other:
        raise FormatError(
            f"{symbol_file} and {param_file} do not belong together: they were exported from "
            "different networks. Nothing has been loaded; give both files of one export."
        )


def _array(parameter: Parameter) -> Any:
    return parameter.unsized() if parameter._data is None else parameter.data()


def _listed(given: Any) -> list[Any]:
    """The leaves of nested lists."""
    if isinstance(given, list | tuple):
        return [leaf for item in given for leaf in _listed(item)]
    return [given]


def _joined(outputs: Symbols) -> tuple[symbol.Symbol, bool]:
    """The outputs as one symbol, and whether they are a single result."""
    listed = _listed(outputs)
    joined = symbol.Group(listed)
    return joined, len(joined) == 1


def _input_name(given: Any) -> str:
    entry = given.only_entry() if isinstance(given, symbol.Symbol) else None
    if entry is None or not entry.node.is_variable:
        raise ArgumentError(f"SymbolBlock: the input {given!r} is no variable; use symbol.var.")
    return entry.name


def _shortened(names: list[str]) -> str:
    return ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")


__all__ = ["SymbolBlock"]
