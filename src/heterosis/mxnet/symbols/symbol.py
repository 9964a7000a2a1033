"""Symbols: programs as values, made of named operators, that can be composed, saved and run."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from heterosis import np
from heterosis.io.atomic import written
from heterosis.mxnet.graph import Entry, Node, reached, rebuilt, variable
from heterosis.mxnet.operators.lookup import states
from heterosis.mxnet.operators.table import row_of
from heterosis.mxnet.symbols import files, inference
from heterosis.mxnet.symbols.executor import Executor
from heterosis.ops.record import Composed, Record
from heterosis.runtime.errors import ArgumentError, MissingAttributeError
from heterosis.runtime.placing import placed

if TYPE_CHECKING:
    from heterosis._stubs.symbols import SymbolMethods
else:  # `composition` adds the methods
    SymbolMethods = object

Shapes = tuple[list[Any] | None, list[Any] | None, list[Any] | None]


_OF_ARRAYS = ("shape", "dtype", "ndim", "size", "item")


# Attributes that files have between underscores.
HIDDEN = ("ctx_group", "force_mirroring", "lr_mult", "mirror_stage", "wd_mult")


def _with_both_names(attributes: Mapping[str, str]) -> dict[str, str]:
    shown = dict(attributes)
    for name in HIDDEN:
        for given, other in ((name, f"__{name}__"), (f"__{name}__", name)):
            if given in attributes:
                shown.setdefault(other, attributes[given])
    return shown


class Symbol(Composed, SymbolMethods):
    """One or more results of a graph of operators."""

    __module__ = "heterosis.symbol.symbol"  # where users find it, as MXNet's do

    def __init__(self, entries: Sequence[Entry]):
        self.entries = tuple(entries)

    # -- what it is made of -----------------------------------------------------------------------

    @property
    def name(self) -> str | None:
        """The name of the operator or variable; None for a group."""
        nodes = {entry.node for entry in self.entries}
        return next(iter(nodes)).name if len(nodes) == 1 else None

    def __repr__(self) -> str:
        if self.name is None:
            return f"<Symbol group [{', '.join(e.node.name for e in self.entries)}]>"
        return f"<Symbol {self.name}>"

    def __getattr__(self, name: str) -> Any:
        if name in _OF_ARRAYS:
            raise MissingAttributeError(
                f"a Symbol has no {name}: it stands for a program, not for values. Its shapes come "
                "from infer_shape(), its values from eval() or bind(). A block takes arrays; "
                "hybridize it, call it and export it to have its symbol."
            )
        raise MissingAttributeError(f"a Symbol has no attribute {name!r}")

    def _composed(
        self, record: Record, arguments: Mapping[str, Any], further: Mapping[str, Any]
    ) -> Symbol:
        from heterosis.mxnet.symbols.composition import called

        return called(record, arguments, further)

    def list_inputs(self) -> list[str]:
        """The names of all variables, in the order in which they are used."""
        return [node.name for node in reached(self.entries) if node.is_variable]

    def list_arguments(self) -> list[str]:
        """The names of the variables that are no states."""
        written_to = {node.name for node in states(reached(self.entries))}
        return [name for name in self.list_inputs() if name not in written_to]

    def list_auxiliary_states(self) -> list[str]:
        """The names of the variables that operators write to, such as moving averages."""
        written_to = {node.name for node in states(reached(self.entries))}
        return [name for name in self.list_inputs() if name in written_to]

    def batch_norm_parameters(self) -> list[str]:
        """The names of the variables that go into batch normalisation."""
        nodes = [node for node in reached(self.entries) if row_of(node.operator).states]
        return [e.node.name for node in nodes for e in node.inputs[1:] if e.node.is_variable]

    def list_outputs(self) -> list[str]:
        """The names of the results."""
        return [entry.name for entry in self.entries]

    def get_internals(self) -> Symbol:
        """All results of all nodes, as a group: `internals['fc1_output']` picks one."""
        nodes = reached(self.entries)
        return Symbol([Entry(node, i) for node in nodes for i in range(node.outputs)])

    def get_children(self) -> Symbol | None:
        """The inputs of the last operators, as a group; None for a variable."""
        nodes = dict.fromkeys(entry.node for entry in self.entries)
        found = [entry for node in nodes for entry in node.inputs]
        return Symbol(found) if found else None

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Symbol]:
        return (Symbol([entry]) for entry in self.entries)

    def __getitem__(self, key: int | str | slice) -> Symbol:
        if isinstance(key, str):
            places = [i for i, name in enumerate(self.list_outputs()) if name == key]
            if len(places) != 1:
                raise ArgumentError(
                    f"{len(places)} outputs have the name {key!r}; list_outputs() tells the names."
                )
            key = places[0]
        found = self.entries[key]
        return Symbol(found if isinstance(key, slice) else [found])

    # -- attributes -------------------------------------------------------------------------------

    def attr(self, key: str) -> str | None:
        """An attribute's text; None if it has none."""
        return self.list_attr().get(key)

    def list_attr(self) -> dict[str, str]:
        """The attributes of the operator or variable; some have two names, one in files."""
        return _with_both_names(self._only_node("list_attr").attributes)

    def attr_dict(self) -> dict[str, dict[str, str]]:
        """The attributes of all nodes that have any, by name."""
        nodes = reached(self.entries)
        return {n.name: _with_both_names(n.attributes) for n in nodes if n.attributes}

    def _only_node(self, what: str) -> Node:
        nodes = {entry.node for entry in self.entries}
        if len(nodes) != 1:
            raise ArgumentError(f"{what}: this is a group of {len(self)}; choose one with [...].")
        return next(iter(nodes))

    # -- shapes and types -------------------------------------------------------------------------

    def infer_shape(self, *shapes: Any, **named: Any) -> Shapes:
        """Shapes of the arguments, the results and the states, from those of some arguments."""
        given = self._by_name("infer_shape", shapes, named)
        return inference.shapes_of(self, {k: tuple(v) for k, v in given.items()})

    def infer_shape_partial(self, *shapes: Any, **named: Any) -> Shapes:
        """As `infer_shape`, and three times None where too little is known."""
        return inference.shapes_of(self, self._by_name("infer_shape", shapes, named), partial=True)

    def infer_type(self, *dtypes: Any, **named: Any) -> Shapes:
        """Element types of the arguments, the results and the states. All arguments have one."""
        return inference.types_of(self, self._by_name("infer_type", dtypes, named))

    def infer_type_partial(self, *dtypes: Any, **named: Any) -> Shapes:
        """As `infer_type`."""
        return self.infer_type(*dtypes, **named)

    def _by_name(self, what: str, listed: tuple, named: Mapping[str, Any]) -> dict[str, Any]:
        if listed and named:
            raise ArgumentError(f"{what}: give arguments by position or by name, not both.")
        names = self.list_arguments()
        if len(listed) > len(names):
            raise ArgumentError(f"{what}: {len(listed)} given for {len(names)} arguments {names}.")
        given = dict(zip(names, listed, strict=False)) | dict(named)
        strange = [name for name in given if name not in self.list_inputs()]
        if strange:
            raise ArgumentError(f"{what}: {strange} are no arguments; there are {names}.")
        return {name: value for name, value in given.items() if value is not None}

    # -- files ------------------------------------------------------------------------------------

    def tojson(self, remove_amp_cast: bool = True) -> str:
        """The text of a symbol file."""
        return files.text_of(self.entries)

    def save(self, fname: str | os.PathLike[str], remove_amp_cast: bool = True) -> None:
        """Write a symbol file; a crash leaves an older one whole."""
        with written(fname) as file:
            file.write(files.content_of(self.entries))

    def debug_str(self) -> str:
        """The nodes as text, one a line."""
        lines = []
        for node in reached(self.entries):
            inputs = ", ".join(entry.name for entry in node.inputs)
            facts = ", ".join(f"{k}={v}" for k, v in node.attributes.items())
            lines.append(f"{node.name} = {node.operator}({inputs}) {facts}".rstrip())
        return "\n".join(lines)

    # -- running ----------------------------------------------------------------------------------

    def bind(
        self, ctx: Any = None, args: Any = None, args_grad: Any = None, grad_req: Any = "write",
        aux_states: Any = None, group2ctx: Any = None, shared_exec: Any = None,
    ) -> Executor:  # fmt: skip
        """The symbol with arrays for its arguments and states: by name, or in their order."""
        return Executor(self, args, args_grad, grad_req, aux_states)

    @placed
    def simple_bind(
        self, ctx: Any = None, grad_req: Any = "write", type_dict: Any = None, **shapes: Any
    ) -> Executor:
        """The symbol with arrays of zeros, whose shapes follow from the given ones. All have the
        element type that `type_dict` has for the first, but for those that have one of their own.
        """
        found, types = self.infer_shape(**shapes), inference.types_of(self, type_dict or {})
        arguments, states_ = (_zeros(found[i], types[i]) for i in (0, 2))
        gradients = [np.zeros_like(array) for array in arguments]
        return Executor(self, arguments, gradients, grad_req, states_)

    def eval(self, ctx: Any = None, **arrays: Any) -> list[Any]:
        """The results for these arrays, by name."""
        given = {k: v for k, v in arrays.items() if k in self.list_arguments()}
        return Executor(self, given, None, "null", arrays).forward()

    # -- composition ------------------------------------------------------------------------------

    def __call__(self, *inputs: Symbol, name: str | None = None, **named: Symbol) -> Symbol:
        """The same operators on other symbols in place of variables."""
        given = self._by_name("a call of a symbol", inputs, named)
        nodes = {node.name: node for node in reached(self.entries) if node.is_variable}
        return Symbol(rebuilt(self.entries, {nodes[k]: s.only_entry() for k, s in given.items()}))

    def only_entry(self) -> Entry:
        """The one result; raises for groups."""
        if len(self.entries) != 1:
            raise ArgumentError(
                f"a group of {len(self)} results where one is expected; choose one with [...]."
            )
        return self.entries[0]

    def __copy__(self) -> Symbol:
        return Symbol(self.entries)

    def as_np_ndarray(self) -> Symbol:
        """The symbol itself: there is one kind."""
        return self

    def as_nd_ndarray(self) -> Symbol:
        """The symbol itself: there is one kind."""
        return self

    def __hash__(self) -> int:
        return id(self)

    def __bool__(self) -> bool:
        raise ArgumentError(
            "a symbol has no value, so it is neither true nor false; eval() runs it."
        )


def _zeros(shapes: Sequence[tuple[int, ...]], types: Sequence[Any] | None) -> list[Any]:
    """Arrays of zeros; of float32 where no types are known."""
    pairs = zip(shapes, types or ["float32"] * len(shapes), strict=True)
    return [np.zeros(shape, dtype=dtype) for shape, dtype in pairs]


def var(
    name: str, attr: Mapping[str, str] | None = None, shape: Any = None, lr_mult: Any = None,
    wd_mult: Any = None, dtype: Any = None, init: Any = None, stype: Any = None,
    profiler_scope: Any = None, **attributes: str,
) -> Symbol:  # fmt: skip
    """A symbol for an array that is given later, under this name."""
    if not isinstance(name, str):
        raise ArgumentError(f"var: the name is {name!r}; expected a text.")
    facts = dict(attr or {}) | attributes
    for key, value in (("shape", shape), ("lr_mult", lr_mult), ("wd_mult", wd_mult)):
        if value is not None:
            facts[f"__{key}__"] = str(tuple(value) if key == "shape" else value)
    if dtype is not None:
        facts["__dtype__"] = str(inference.number_of(dtype))
    if init is not None:
        facts["__init__"] = init if isinstance(init, str) else init.dumps()
    return Symbol([variable(name, facts)])


def group(symbols: Sequence[Symbol], create_fn: Any = None) -> Symbol:
    """One symbol with the results of several."""
    if not symbols or not all(isinstance(symbol, Symbol) for symbol in symbols):
        raise ArgumentError(f"Group: got {symbols!r}; expected symbols.")
    return Symbol([entry for symbol in symbols for entry in symbol.entries])


def load(fname: str | os.PathLike[str]) -> Symbol:
    """Read a symbol file that `save`, `HybridBlock.export` or MXNet wrote."""
    return Symbol(files.loaded(fname)[0])


def load_json(json_str: str) -> Symbol:
    """Read the text of a symbol file."""
    return Symbol(files.parsed(json_str, "the text"))


__all__ = ["Symbol", "group", "load", "load_json", "var"]
