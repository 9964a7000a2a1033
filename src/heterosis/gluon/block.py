"""Blocks: layers and models, made of parameters and other blocks."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from heterosis import npx
from heterosis.gluon import loading, naming, structure
from heterosis.gluon.hooks import HookHandle
from heterosis.gluon.parameter import Contexts, Parameter
from heterosis.gluon.parameter_dict import ParameterDict
from heterosis.gluon.summary import print_summary
from heterosis.gluon.utils import indented
from heterosis.runtime.arguments import described
from heterosis.runtime.errors import ArgumentError, ArgumentTypeError, UnsupportedError
from heterosis.runtime.placing import beside, is_elsewhere


def of_any_parameters(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method that blocks define with the parameters they take: type checkers let them."""
    return method


class Block:
    """A layer or a model. Derive from it, make layers in `__init__`, and define `forward`.

    Blocks and parameters assigned to attributes belong to the block. `prefix` starts the names of
    all that is inside; `params` is another block's dictionary of parameters to share.
    """

    # What calling a block reads of it, whatever its own code names.
    _read_by_capture = frozenset(
        ("forward", "hybrid_forward", "_children", "_reg_params", "_forward_hooks",
         "_forward_pre_hooks")
    )  # fmt: skip
    is_sequence = False  # whether a summary leaves the block out and shows its parts only

    def __init__(self, prefix: str | None = None, params: ParameterDict | None = None):
        self._prefix, self._params = _named(prefix, params, self._alias())
        self.prefix_given = prefix
        self._name = self._prefix.removesuffix("_")
        self._scope = naming.NameScope(self)
        self._children: dict[str, Block] = {}
        self._reg_params: dict[str, Parameter] = {}
        self._forward_hooks: dict[int, Callable[..., Any]] = {}
        self._forward_pre_hooks: dict[int, Callable[..., Any]] = {}

    def _alias(self) -> str:
        """What names of blocks of this class start with."""
        return type(self).__name__.lower()

    def __repr__(self) -> str:
        members = ((k, v) for k, v in self.__dict__.items() if isinstance(v, Block))
        return framed(self, members)

    def __setattr__(self, name: str, value: Any) -> None:
        existing = self.__dict__.get(name)
        if isinstance(existing, Parameter | Block) and not isinstance(value, type(existing)):
            raise ArgumentTypeError(
                f"Changing attribute type for {name} from {type(existing)} to {type(value)} is "
                "not allowed: it is part of the model."
            )
        if isinstance(value, Block):
            self.register_child(value, name)
        elif isinstance(value, Parameter):
            self._register_parameter(name, value)
        object.__setattr__(self, name, value)

    def _register_parameter(self, name: str, parameter: Parameter) -> None:
        if self._reg_params.get(name, parameter) is not parameter:
            raise ArgumentError(
                f"{self.name}.{name} is a parameter already and cannot be replaced. Share "
                "parameters with the argument `params` when the block is made."
            )
        if not parameter.listed:  # made by gluon.Parameter: else no trainer would know of it
            self._params.adopt(name, parameter)
        parameter.belongs_to(f"{type(self).__name__} '{self._name}'")
        self._reg_params[name] = parameter

    # -- names and parts --------------------------------------------------------------------------

    @property
    def prefix(self) -> str:
        """What the names of all parts start with."""
        return self._prefix

    @property
    def name(self) -> str:
        """The prefix without its last underscore."""
        return self._name

    @property
    def params(self) -> ParameterDict:
        """The parameters of this block itself, without those of its children."""
        return self._params

    def take_name(self, name: str) -> None:
        """Rename the block and its own parameters, not its children."""
        self._name, self._prefix = name, name + "_" if name else ""
        self._params.rename(self._prefix)

    def name_scope(self) -> naming.NameScope:
        """A scope for `with`: blocks made inside are named as parts of this one."""
        return self._scope

    def register_child(self, block: Block, name: str | None = None) -> None:
        """Make `block` a part; blocks assigned to attributes are so already."""
        self._children[str(len(self._children)) if name is None else name] = block

    def apply(self, fn: Callable[[Block], Any]) -> Block:
        """Call `fn` with every part, then with the block itself; returns the block."""
        for child in self._children.values():
            child.apply(fn)
        fn(self)
        return self

    # -- parameters -------------------------------------------------------------------------------

    def collect_params(self, select: str | None = None) -> ParameterDict:
        """All parameters inside; those whose names match the regular expression `select`."""
        self._check_containers()
        matches = re.compile(select).match if select else lambda name: True
        found = ParameterDict(self._params.prefix)
        found.update({name: p for name, p in self.params.items() if matches(name)})
        for child in self._children.values():
            found.update(child.collect_params(select))
        return found

    def _check_containers(self) -> None:
        """Warn of blocks and parameters in lists and dictionaries: they are not registered."""
        children = set(map(id, self._children.values()))
        for name, value in self.__dict__.items():
            if name == "_children" or not isinstance(value, list | tuple | dict):
                continue
            parts = list(_parts_in(value))
            if any(isinstance(part, Parameter) and not part.listed for part in parts):
                warnings.warn(
                    f"{type(self).__name__}.{name} holds a Parameter that is not part of the "
                    "model: make it with self.params.get(name, ...), or assign it to an attribute.",
                    stacklevel=3,
                )
            if any(isinstance(part, Block) and id(part) not in children for part in parts):
                warnings.warn(
                    f'"{type(self).__name__}.{name}" is an unregistered container with Blocks. '
                    "Blocks in a list, tuple or dict are not part of the model: use "
                    "register_child(), nn.Sequential or nn.HybridSequential.",
                    stacklevel=3,
                )

    def _collect_params_with_prefix(self, prefix: str = "") -> dict[str, Parameter]:
        """The parameters by where they are: names of attributes and children, joined by dots."""
        prefix = prefix + "." if prefix else ""
        found = {prefix + name: p for name, p in self._reg_params.items()}
        for name, child in self._children.items():
            found |= child._collect_params_with_prefix(prefix + name)
        return found

    def initialize(
        self, init: Any = None, ctx: Contexts = None, verbose: bool = False,
        force_reinit: bool = False,
    ) -> None:  # fmt: skip
        """Initialise all parameters; `init` (uniform by default) serves those without their own."""
        self.collect_params().initialize(init, ctx, verbose, force_reinit)

    def cast(self, dtype: Any) -> None:
        """Convert all parameters to another element type."""
        for child in self._children.values():
            child.cast(dtype)
        for parameter in self.params.values():
            parameter.cast(dtype)

    # -- files ------------------------------------------------------------------------------------

    def save_parameters(self, filename: str, deduplicate: bool = False) -> None:
        """Write all parameters to a file; with `deduplicate`, shared ones once only."""
        parameters = self._collect_params_with_prefix()
        if deduplicate:
            last = {id(p): name for name, p in parameters.items()}
            parameters = {name: parameters[name] for name in last.values()}
        npx.save(filename, {name: p.merged_data() for name, p in parameters.items()})

    def load_parameters(
        self, filename: str, ctx: Contexts = None, allow_missing: bool = False,
        ignore_extra: bool = False, cast_dtype: bool = False, dtype_source: str = "current",
    ) -> None:  # fmt: skip
        """Read parameters from a file: all, or none and an error that lists what does not fit."""
        arrays = loading.read(filename)
        parameters = self._collect_params_with_prefix()
        if arrays and not any("." in name or name in parameters for name in arrays):
            self.collect_params().load_dict(  # names of parameters instead of places
                arrays, ctx, allow_missing, ignore_extra, self._file_prefix(arrays), filename,
                cast_dtype, dtype_source,
            )  # fmt: skip
            return
        loading.load_all(
            parameters, arrays, filename, ctx, allow_missing=allow_missing,
            ignore_extra=ignore_extra, cast_dtype=cast_dtype, dtype_source=dtype_source,
        )  # fmt: skip

    def _file_prefix(self, names: Iterable[str]) -> str:
        """What to put before a file's names: full ones ('arg:dense0_weight') need nothing."""
        full = any(name.removeprefix("arg:") in self.collect_params() for name in names)
        return "" if full else self.prefix

    def save_params(self, filename: str) -> None:
        """Deprecated: use `save_parameters`."""
        warnings.warn("save_params: the name now is save_parameters.", stacklevel=2)
        self.collect_params().save(filename, strip_prefix=self.prefix)

    def load_params(
        self, filename: str, ctx: Contexts = None, allow_missing: bool = False,
        ignore_extra: bool = False,
    ) -> None:  # fmt: skip
        """Deprecated: use `load_parameters`."""
        warnings.warn("load_params: the name now is load_parameters.", stacklevel=2)
        self.load_parameters(filename, ctx, allow_missing, ignore_extra)

    def save(self, prefix: str) -> None:
        """Write the names of all parts and the parameters: `<prefix>-model.json` and `.params`."""
        structure.save(self, f"{prefix}-model.json")
        self.save_parameters(f"{prefix}-model.params")

    def load(self, prefix: str) -> None:
        """Read what `save` wrote into a block made in the same way: names and parameters."""
        saved = structure.read(self, f"{prefix}-model.json")
        self.load_parameters(f"{prefix}-model.params")
        structure.rename(self, saved)

    # -- running ----------------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if is_elsewhere(args):
            with beside(args[0]):
                return self(*args, **kwargs)
        if self._forward_pre_hooks:
            for hook in tuple(self._forward_pre_hooks.values()):
                hook(self, args)
        result = self.forward(*args, **kwargs)
        if self._forward_hooks:
            for hook in tuple(self._forward_hooks.values()):
                hook(self, args, result)
        return result

    @of_any_parameters
    def forward(self, *args: Any) -> Any:
        """The computation; every block defines its own."""
        raise UnsupportedError(
            f"{type(self).__name__} defines no forward(self, *inputs): write the computation there."
        )

    def hybridize(self, active: bool = True, **kwargs: Any) -> None:
        """Hybridize the children that can be; see `HybridBlock.hybridize`."""
        for child in self._children.values():
            child.hybridize(active, **kwargs)

    def register_forward_pre_hook(self, hook: Callable[[Block, tuple], None]) -> HookHandle:
        """Call `hook(block, inputs)` before every forward; the handle takes it away again."""
        return HookHandle(self._forward_pre_hooks, hook)

    def register_forward_hook(self, hook: Callable[[Block, tuple, Any], None]) -> HookHandle:
        """Call `hook(block, inputs, outputs)` after every forward; the handle takes it away."""
        return HookHandle(self._forward_hooks, hook)

    def register_op_hook(self, callback: Callable[..., None], monitor_all: bool = False) -> None:
        """Remember a monitor of operations in compiled blocks; imperative ones have none."""
        for child in self._children.values():
            child.register_op_hook(callback, monitor_all)

    def summary(self, *inputs: Any) -> None:
        """Print the layers, their outputs' shapes and their numbers of parameters."""
        print_summary(self, inputs)


def _named(
    prefix: str | None, params: ParameterDict | None, kind: str
) -> tuple[str, ParameterDict]:
    """The full prefix and the dictionary of parameters of a new block."""
    if not isinstance(prefix, str | None):
        raise ArgumentTypeError(f"prefix is {described(prefix)}; expected a string or None.")
    if not isinstance(params, ParameterDict | None):
        raise ArgumentTypeError(
            f"params is {described(params)}; expected the ParameterDict of another block, as "
            "block.params or block.collect_params() give it, or None."
        )
    scope = naming.current_scope()
    own = naming.next_prefix(kind) if prefix is None else prefix
    full = scope.block.prefix + own if scope else own
    if params is not None:
        return full, ParameterDict(params.prefix, params)
    if scope is None:
        return full, ParameterDict(full)
    outer = scope.block.params
    return full, ParameterDict(outer.prefix + own, outer.shared)


def _parts_in(value: Any) -> Iterator[Block | Parameter]:
    if isinstance(value, Block | Parameter):
        yield value
    elif isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            yield from _parts_in(item)


def framed(block: Block, members: Iterable[tuple[str, Block]]) -> str:
    """How a block with members is printed."""
    lines = "\n".join(f"  ({key}): {indented(repr(member))}" for key, member in members)
    return f"{type(block).__name__}(\n{lines}\n)"


__all__ = ["Block"]
