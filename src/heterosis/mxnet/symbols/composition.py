"""Operators on symbols: `FullyConnected(data=x, num_hidden=10, name='fc1')` adds a node.

The same names on arrays run at once, or become part of the program that is captured: they are the
operators of `heterosis.ndarray` then.
"""

from __future__ import annotations

import functools
import inspect
import itertools
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from typing import Any

from heterosis import ndarray
from heterosis.ir.types import dtype_name
from heterosis.mxnet.attributes import encoded
from heterosis.mxnet.graph import Entry, Node, variable
from heterosis.mxnet.operators import lookup
from heterosis.mxnet.operators.arithmetic import BINARY, WITH_NUMBER, number_attributes
from heterosis.mxnet.operators.table import IDLE, RECORDS, ROWS, renamed, row_of
from heterosis.mxnet.operators.writing import NAMED, WRITERS
from heterosis.mxnet.symbols.symbol import HIDDEN, Symbol
from heterosis.ops.record import ARRAY, KEY, REGISTRY, SEQUENCE, Record
from heterosis.runtime import modes
from heterosis.runtime.errors import ArgumentError, UnsupportedError

_counters: dict[str, itertools.count[int]] = defaultdict(itertools.count)


@cache
def function(name: str) -> Callable[..., Any] | None:
    """The operator `name` on symbols or arrays; None if there is none."""
    if lookup.found(name) is None:
        return None
    is_layer = row_of(name).is_layer

    def run(*arguments: Any, **keywords: Any) -> Any:
        values = [*arguments, *keywords.values()]
        symbolic = any(isinstance(v, Symbol) for item in values for v in _listed(item))
        if symbolic or (is_layer and not modes.is_capturing() and not _arrays(values)):
            return _composed(name, arguments, keywords)
        return getattr(ndarray, name.lstrip("_"))(*arguments, **keywords)

    run.__name__ = run.__qualname__ = name
    run.__doc__ = inspect.getdoc(lookup.found(name))
    return run


def either(operator: str, immediate: Callable[..., Any]) -> Callable[..., Any]:
    """What composes an operator of symbols, and is `immediate` for arrays."""
    compose = function(operator)

    @functools.wraps(immediate)
    def run(*arguments: Any, **keywords: Any) -> Any:
        given = [item for value in (*arguments, *keywords.values()) for item in _listed(value)]
        symbolic = any(isinstance(item, Symbol) for item in given)
        return (compose if compose and symbolic else immediate)(*arguments, **keywords)

    return run


def _listed(item: Any) -> Sequence[Any]:
    return item if isinstance(item, list | tuple) else (item,)


def _arrays(values: Sequence[Any]) -> bool:
    return any(isinstance(v, ndarray.NDArray) for v in values)


def _composed(operator: str, arguments: tuple, keywords: dict[str, Any]) -> Symbol:
    name, attr = keywords.pop("name", None), keywords.pop("attr", None)
    flat = [item for argument in arguments for item in _listed(argument)]
    inputs = [item for item in flat if isinstance(item, Symbol)]
    names = _parameters(operator)
    attributes = {k: v for k, v in keywords.items() if not isinstance(v, Symbol) and v is not None}
    rest = [item for item in arguments if not any(isinstance(i, Symbol) for i in _listed(item))]
    attributes |= dict(zip(names[len(inputs) :], rest, strict=False))
    name = name or _fresh(operator)
    given = dict(zip(names, inputs, strict=False)) if names else {}
    given |= {k: v for k, v in keywords.items() if isinstance(v, Symbol)}
    if len(inputs) > len(given) or any(p not in names for p in given):
        ordered = inputs + [v for k, v in keywords.items() if isinstance(v, Symbol)]
        attributes.setdefault("num_args", len(ordered))
    else:
        ordered = _completed(operator, name, names, given, attributes, attr)
    texts = {k: _text(k, v) for k, v in attributes.items()} | (attr or {})
    return made(operator, [symbol.only_entry() for symbol in ordered], texts, name)


# Of those that captured programs write in a way of their own, what is an operator as it stands.
_AS_IT_STANDS = {
    *NAMED, *WITH_NUMBER, "activation", "all", "any", "cast", "clip", "concatenate",
    "convolution", "cumsum", "deconvolution", "embedding", "expand_dims", "flip",
    "fully_connected", "max", "mean", "min", "pad", "prod", "reshape", "sort", "sum",
    "transpose",
}  # fmt: skip


def called(record: Record, arguments: Mapping[str, Any], further: Mapping[str, Any]) -> Symbol:
    """The operator that an operation of `np` or `npx` is, on symbols: all its arrays are symbols,
    and numbers beside them attributes."""
    operator = record.names.get("mxnet") or NAMED.get(record.name)
    told = [name for name, given in further.items() if given is not None]
    if record.name in WRITERS.keys() - _AS_IT_STANDS:
        operator = None
    if operator is None or told:
        raise UnsupportedError(
            f"{record.name}: a symbol is among the arguments, and symbols have no operator that "
            f"{'takes ' + told[0] if told else 'does the same'}. See the functions of sym, or "
            "write a HybridBlock on arrays and export it."
        )
    if record.name in WITH_NUMBER:
        return _combined(record.name, *arguments.values())
    uses = {p.name: use for p, use in zip(record.parameters, record.uses, strict=True)}
    names, symbols, attributes = renamed(record), list[Symbol](), dict[str, Any]()
    given: dict[str, Symbol] = {}
    for parameter, value in arguments.items():
        items = _listed(value) if uses[parameter] == SEQUENCE else (value,)
        if any(isinstance(item, ndarray.NDArray) for item in items):
            raise ArgumentError(
                f"{record.name}: {parameter} is an array, and others are symbols; give a symbol "
                "for it, such as sym.var(...), and the array when it is run. A block takes arrays; "
                "hybridize it, call it and export it to have its symbol."
            )
        if uses[parameter] == SEQUENCE:
            symbols += items
            attributes["num_args"] = len(items)
        elif isinstance(value, Symbol):
            given[parameter] = value
        elif (
            value is not None
            and uses[parameter] != KEY
            and names.get(parameter, parameter) not in (None, *IDLE)
        ):
            attributes[names.get(parameter, parameter)] = value
    name = _fresh(operator)
    symbols += _completed(operator, name, list(uses), given, attributes)
    texts = {k: _text(k, v) for k, v in attributes.items()}
    return made(operator, [symbol.only_entry() for symbol in symbols], texts, name)


def _text(name: str, value: Any) -> str:
    """An attribute as files have it; an element type may be a class of NumPy's."""
    return dtype_name(value) if name == "dtype" and not isinstance(value, str) else encoded(value)


def _completed(
    operator: str, name: str, names: Sequence[str], given: dict[str, Symbol],
    attributes: dict[str, Any], attr: dict[str, str] | None = None,
) -> list[Symbol]:  # fmt: skip
    """The inputs in order, with variables for those of a layer that are not given. What is said of
    the layer's training, such as `lr_mult`, counts for these."""
    row = row_of(operator)
    of_training = {k: v for k, v in (attr or {}).items() if k.strip("_") in HIDDEN}
    for parameter in _inputs(operator) if row.is_layer else ():
        wanted = row.wanted.get(parameter)
        if parameter not in given and (wanted is None or wanted(attributes)):
            given[parameter] = Symbol([variable(f"{name}_{parameter}", dict(of_training))])
    return [given[parameter] for parameter in names if parameter in given]


def _parameters(operator: str) -> list[str]:
    """The names of an operator's parameters, none if it takes any number of arrays."""
    record = RECORDS.get(operator)
    if record is not None:
        return [p.name for p in record.parameters]
    found = _signature(operator)
    if any(p.kind == p.VAR_POSITIONAL for p in found):
        return []
    return [p.name for p in found if p.kind == p.POSITIONAL_OR_KEYWORD]


def _signature(operator: str) -> Collection[inspect.Parameter]:
    return inspect.signature(lookup.found(operator)).parameters.values()


def _inputs(operator: str) -> list[str]:
    """The arrays among the parameters of a layer."""
    record = RECORDS.get(operator)
    if record is None:
        found = [p for p in _signature(operator) if p.kind == p.POSITIONAL_OR_KEYWORD]
        return [p.name for p in found if p.default is p.empty]
    pairs = zip(record.parameters, record.uses, strict=True)
    return [p.name for p, use in pairs if use == ARRAY and not isinstance(p.default, float)]


def _fresh(operator: str) -> str:
    stem = operator.lower().lstrip("_")
    return f"{stem}{next(_counters[stem])}"


def made(
    operator: str, inputs: Sequence[Entry], attributes: dict[str, str], name: str | None
) -> Symbol:
    """The results of a new node."""
    count = lookup.output_count(operator, attributes)
    node = Node(operator, name or _fresh(operator), attributes, tuple(inputs), count)
    return Symbol([Entry(node, i) for i in range(count)])


def binary(name: str, operation: str) -> Callable[[Any, Any], Any]:
    """An operation of two symbols, or of a symbol and a number on either side; else of arrays."""

    def run(left: Any, right: Any) -> Any:
        if not isinstance(left, Symbol) and not isinstance(right, Symbol):
            return getattr(ndarray, name)(left, right)
        return _combined(operation, left, right)

    run.__name__ = run.__qualname__ = name
    return run


def _combined(operation: str, left: Any, right: Any) -> Symbol:
    symbols = [isinstance(side, Symbol) for side in (left, right)]
    if all(symbols):
        operator = REGISTRY[operation].names["mxnet"]
        return made(operator, [left.only_entry(), right.only_entry()], {}, None)
    number, symbol = (right, left) if symbols[0] else (left, right)
    if not isinstance(number, int | float):
        raise ArgumentError(
            f"{operation}: {number!r} beside a symbol; expected a symbol or a number."
        )
    on_right, on_left = WITH_NUMBER[operation]
    texts = {name: str(value) for name, value in number_attributes(number).items()}
    return made(on_right if symbols[0] else on_left, [symbol.only_entry()], texts, None)


def creation(name: str, operator: str) -> Callable[..., Any]:
    """A symbol that makes an array; while a program is captured, the array itself."""
    has_own = row_of(operator).run is not None
    names = [p.name for p in _signature(operator)] if has_own else _parameters(operator)

    def run(*arguments: Any, **keywords: Any) -> Any:
        if modes.is_capturing():
            return getattr(ndarray, name)(*arguments, **keywords)
        title = keywords.pop("name", None)
        facts = dict(zip(names, arguments, strict=False)) | keywords
        if "val" in facts:  # as `full` calls what files call its value
            facts["value"] = facts.pop("val")
        texts = {k: _text(k, v) for k, v in facts.items() if v is not None}
        return made(operator, [], texts, title or _fresh(name))

    run.__name__ = run.__qualname__ = name
    return run


def functions() -> dict[str, Callable[..., Any]]:
    """The functions of `sym` that do not compose the operators of their own names."""
    found = {name: binary(name, operation) for name, operation in BINARY.items()}
    for row in dict.fromkeys(ROWS.values()):
        if row.symbol:
            operator = row.stored[0]
            make = creation(row.symbol, operator) if row.creates else function(operator)
            found[row.symbol] = make
        elif row.creates:
            found |= {name: creation(name, f"_{row.names[0]}") for name in row.names}
    return found


# -- what symbols get from here -------------------------------------------------------------------

_SIGNS = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "true_divide", "mod": "mod",
    "pow": "power",
}  # fmt: skip
_COMPARISONS = {
    "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater",
    "ge": "greater_equal",
}  # fmt: skip
_VALUES = "a symbol has no values; bind or eval gives some"
# Methods that only say, as MXNet's do, that a symbol has no such thing; and what to do instead.
_REFUSED = {
    **dict.fromkeys(("as_in_context", "asnumpy", "asscalar", "backward", "detach"), _VALUES),
    "wait_to_read": _VALUES,
    "gradient": "bind the symbol with args_grad, and call forward(is_train=True) and backward",
}
PROCESSOR = "MKLDNN"  # what MXNet calls the back end that compiles for the processor


def _check_back_end(what: str, backend: str | None) -> None:
    """Symbols are compiled for the processor, by whoever runs them."""
    if backend != PROCESSOR:
        raise UnsupportedError(
            f"{what}: symbols know no back end {backend!r}, only {PROCESSOR!r}, the processor's; "
            "bind and SymbolBlock compile for it without being told."
        )


def _for_back_end(name: str) -> Callable[..., Symbol]:
    def run(self: Symbol, backend: str, *arguments: Any, **options: Any) -> Symbol:
        _check_back_end(name, backend)
        return self

    run.__name__, run.__doc__ = name, "The symbol itself: it is compiled as a whole when it runs."
    return run


def _method(name: str, operator: str) -> Callable[..., Symbol]:
    def run(self: Symbol, *arguments: Any, **keywords: Any) -> Symbol:
        return function(operator)(self, *arguments, **keywords)

    run.__name__, run.__doc__ = name, f"The operator {operator} on this symbol."
    return run


def _refused(name: str, advice: str) -> Callable[..., Any]:
    def run(self: Symbol, *arguments: Any, **keywords: Any) -> Any:
        raise UnsupportedError(f"symbols have no {name}(): {advice}.")

    run.__name__, run.__doc__ = name, f"Raises: {advice}."
    return run


def _signed(name: str, turned: bool) -> Callable[[Symbol, Any], Any]:
    def combine(self: Symbol, other: Any) -> Any:
        if not isinstance(other, int | float | Symbol):
            return NotImplemented
        return _combined(name, other, self) if turned else _combined(name, self, other)

    return combine


for _short, _name in (_SIGNS | _COMPARISONS).items():
    setattr(Symbol, f"__{_short}__", _signed(_name, False))
for _short, _name in _SIGNS.items():
    setattr(Symbol, f"__r{_short}__", _signed(_name, True))
for _row in dict.fromkeys(ROWS.values()):
    if _row.method:
        _name = _row.names[0] if _row.method is True else _row.method
        setattr(Symbol, _name, _method(_name, _name if _name in _row.names else _row.names[0]))
for _name in ("get_backend_symbol", "optimize_for"):
    setattr(Symbol, _name, _for_back_end(_name))
for _name, _advice in _REFUSED.items():
    setattr(Symbol, _name, _refused(_name, _advice))
_NEGATIVE = REGISTRY["negative"].names["mxnet"]
Symbol.__neg__ = lambda self: made(_NEGATIVE, [self.only_entry()], {}, None)
Symbol.__abs__ = Symbol.abs
