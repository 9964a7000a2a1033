"""The operation record: one place that says everything about an operation.

A record is made from a Python function on program values. Calling the operation with arrays runs
it; calling it with program values, inside another operation or a capture, adds it to their program.
"""

from __future__ import annotations

import copyreg
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeAlias, TypeVar, cast

from heterosis import _core
from heterosis.ir import views
from heterosis.ir.calls import Call, collected, note
from heterosis.ir.program import INPUT, NUMBER, Program, Value, apply, constant, extent
from heterosis.ir.strided import Strided
from heterosis.ir.traced_sizes import is_traced
from heterosis.ir.types import TensorType, dtype_name
from heterosis.ops import eager
from heterosis.ops.samples import Samples
from heterosis.ops.unsized import Unsized, settled
from heterosis.passes.halves import rounded
from heterosis.runtime.arguments import described, did_you_mean, expectations, refused, wanted
from heterosis.runtime.errors import (
    ArgumentTypeError,
    DTypeError,
    HeterosisError,
    MissingAttributeError,
)
from heterosis.runtime.kinds import Kind

# How a parameter is used; the numbers are those of `Use` in core/python/operation_type.cpp.
ARRAY, ATTRIBUTE, SEQUENCE, KEY = range(4)
_USE_OF_ANNOTATION = {inspect.Parameter.empty: ARRAY, "Operands": SEQUENCE, "Key": KEY}
# Annotations that say the same as none: arrays, as the operation's program has them. They are there
# for who reads and checks the program; users, who give arrays, are not shown them.
_OF_ARRAYS = frozenset(("Value", "Value | None", "Array", "Array | None", Value, Value | None))

P = ParamSpec("P")
R = TypeVar("R")

REGISTRY: dict[str, Record] = {}


if TYPE_CHECKING:  # what the operation's program is given
    Operands: TypeAlias = Sequence[Value]
    Key: TypeAlias = Any  # a value; None in a signature stands for a fresh one
else:

    class Operands(tuple):
        """Annotation of a parameter that takes a sequence of arrays."""

    class Key(int):
        """Annotation of a parameter that the core fills with a fresh key for random numbers."""


class Composed:
    """What stands for an array in a program of another kind, which operations are added to."""

    def _composed(
        self, record: Record, arguments: Mapping[str, Any], further: Mapping[str, Any]
    ) -> Any:
        """What an operation gives for arguments among which this is; `further` ones, which stand
        in no signature, are None where they are not given."""
        raise NotImplementedError


def default(number: float) -> Value:
    """A number for where no array is given: a value, like the array, when the operation runs."""
    return cast("Value", number)


class Parameter(NamedTuple):
    """What `inspect.Parameter` says, found without the time that `inspect.signature` takes."""

    name: str
    default: Any
    annotation: Any


def _parameters(function: Callable[..., Any]) -> list[Parameter]:
    while hasattr(function, "__wrapped__"):
        _hide_values(function)
        function = function.__wrapped__
    _hide_values(function)
    code, empty = function.__code__, inspect.Parameter.empty
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    given = function.__defaults__ or ()
    defaults = dict(zip(names[code.co_argcount - len(given) :], given, strict=False))
    defaults |= function.__kwdefaults__ or {}
    annotations = function.__annotations__
    return [Parameter(n, defaults.get(n, empty), annotations.get(n, empty)) for n in names]


def _hide_values(function: Callable[..., Any]) -> None:
    """Leave just those annotations that tell users something: of attributes."""
    annotations = function.__annotations__
    for name in [n for n, kind in annotations.items() if n == "return" or kind in _OF_ARRAYS]:
        del annotations[name]


@dataclass(eq=False)
class Record:
    """What the registry knows of one operation."""

    name: str
    function: Callable[..., Any]
    numpy: Callable[..., Any] | None = None  # the reference that tests compare with
    samples: Samples | None = None  # how tests make arguments
    names: Mapping[str, str] = field(default_factory=dict)  # in other systems
    public: tuple[str, ...] = ("np",)  # the modules, and "ndarray", whose users find it there
    aliases: tuple[str, ...] = ()  # further names there
    views: bool = False  # a result that only rearranges an operand shares its memory
    gradient: Callable[..., Any] | None = None  # better than what follows from its primitives
    piecewise_constant: str = ""  # why the derivative is zero wherever there is one
    stops_gradients: bool = False  # whether it is there to keep gradients from its operands
    casts_freely: bool = False  # may round on the way into `out`, as assignment does
    in_place: bool = False  # with `out=` its first operand, writes only what changes
    many: Callable[..., Any] | None = None  # runs it on more arrays than the core takes at once
    compares: bool = False  # takes every integer, also those that no element type holds
    with_none: bool | None = None  # what comparing any element with None gives
    operation: Any = None
    combine_at: Callable[..., None] | None = None  # `at` of NumPy's ufuncs

    def __post_init__(self) -> None:
        # What editors are told of the results; what users see of the function does not have it.
        self.returns = self.function.__annotations__.get("return")
        self.parameters = _parameters(self.function)
        self.uses = [_USE_OF_ANNOTATION.get(p.annotation, ATTRIBUTE) for p in self.parameters]
        described = tuple(_describe(p, u) for p, u in zip(self.parameters, self.uses, strict=True))
        self.operation = _core.Operation(self, self.name, described)

    @cached_property
    def signature(self) -> inspect.Signature:
        """For what does not fit the fast path, and for error messages."""
        return inspect.signature(self.function)

    @property
    def at(self) -> Callable[..., None]:
        """`at(a, indices, b)`: elements of `a` at places combined with `b`, in place."""
        if self.combine_at is None:
            have = sorted(name for name, record in REGISTRY.items() if record.combine_at)
            raise MissingAttributeError(f"{self.name} has no `at`: {', '.join(have)} have one.")
        return self.combine_at

    @cached_property
    def documentation(self) -> str:
        """What users read as the operation's `__doc__`."""
        return inspect.getdoc(self.function) or ""

    @cached_property
    def _kinds(self) -> dict[int, tuple[str, Kind]]:
        """What attributes admit, by position; element types have many names and their own check."""
        found = expectations(self.function).kinds
        return {
            i: (parameter.name, found[parameter.name])
            for i, (parameter, use) in enumerate(zip(self.parameters, self.uses, strict=True))
            if use == ATTRIBUTE and parameter.name in found and parameter.name != "dtype"
        }

    # -- called by the core -------------------------------------------------------------------

    def plan(
        self,
        operands: list[Any],
        attributes: tuple[Any, ...],
        outs: list[Any] | None,
        device: int = 0,
    ) -> Any:
        """The plan for operands of these types and layouts on a device, written into `outs` if
        given."""
        self._check(attributes)
        _, layouts, program = self.program(operands, attributes)
        return eager.plan(
            program,
            tuple(layout for layout in layouts if layout is not None),
            outs,
            views=self.views,
            freely=self.casts_freely,
            in_place=self.in_place and outs is not None,
            device=device,
        )

    def slow(self, *arguments: Any, **keywords: Any) -> Any:
        """What the core's fast path does not do: program values, other libraries' arrays."""
        try:
            return self._slow(arguments, keywords)
        except Exception as error:
            other = refused(self.function, arguments, keywords, error, self.name)
            if other is error:
                raise
            raise other from other.__cause__

    def _slow(self, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        where = keywords.pop("where", True) if "where" not in self.signature.parameters else True
        dtype = keywords.pop("dtype", None) if "dtype" not in self.signature.parameters else None
        out = keywords.pop("out", None) if "out" not in self.signature.parameters else None
        bound = self._bind(arguments, keywords)
        if any(isinstance(v, Unsized) for v in _leaves(bound.arguments.values())):
            bound.apply_defaults()
            bound.arguments.update(settled(self.name, dict(bound.arguments)))
        stands = next(
            (v for v in _leaves(bound.arguments.values()) if isinstance(v, Composed)), None
        )
        if stands is not None:
            further = {"out": out, "dtype": dtype, "where": None if where is True else where}
            bound.apply_defaults()
            return stands._composed(self, bound.arguments, further)
        if isinstance(out, Unsized):
            out = out.made
        if any(isinstance(v, Value) for v in _leaves(bound.arguments.values())):
            return self._trace_call(bound)
        return eager.call_again(self, bound, out=out, where=where, dtype=dtype)

    def program(
        self, operands: Sequence[Any], attributes: Sequence[Any]
    ) -> tuple[tuple[Value | None, ...], tuple[Strided | None, ...], Program]:
        """Values and layouts of the operands, and the operation's program on them."""
        values, layouts = zip(*map(_input, operands), strict=True) if operands else ((), ())
        traced_on = tuple(map(_known, operands, values))
        call = self.called(values, tuple(attributes), on=traced_on)
        return values, layouts, Program(call.inputs, call.results, self.name, (call,))

    # -- tracing ------------------------------------------------------------------------------

    def operand_uses(self, attributes: Sequence[Any]) -> Iterator[int]:
        """How each operand is used: ARRAY or KEY."""
        for use, given in zip(self.uses, attributes, strict=True):
            if use == SEQUENCE:
                yield from (ARRAY for _ in range(given))
            elif use != ATTRIBUTE:
                yield use

    def arguments(
        self, operands: Iterable[Any], attributes: Sequence[Any]
    ) -> Iterator[tuple[Parameter, int, Any]]:
        """Each parameter with its use and what a call gave: an attribute, an operand, or a tuple of
        operands where there is a sequence. Attributes come in the order of parameters, with the
        number of arrays where a sequence is."""
        waiting = iter(operands)
        for parameter, use, given in zip(self.parameters, self.uses, attributes, strict=True):
            if use == SEQUENCE:
                yield parameter, use, tuple(next(waiting) for _ in range(given))
            else:
                yield parameter, use, given if use == ATTRIBUTE else next(waiting)

    def called(
        self,
        values: tuple[Value | None, ...],
        attributes: tuple[Any, ...],
        *,
        on: tuple[Value | None, ...] | None = None,
        scope: str = "",
        line: str = "",
    ) -> Call:
        """A call on the given values and attributes; traced `on` others that stand for them."""
        with collected() as steps:
            results = self.traced(values if on is None else on, attributes)
        given = zip(self.parameters, attributes, strict=True)
        attributes = tuple(attribute_value(parameter.name, value) for parameter, value in given)
        return Call(
            self.name, values, attributes, results, scope=scope, line=line, steps=tuple(steps)
        )

    def traced(
        self, values: Iterable[Value | None], attributes: Sequence[Any]
    ) -> tuple[Value, ...]:
        """The operation's program on the given values and attributes."""
        arguments: list[Any] = []
        values = tuple(values)
        for parameter, use, given in self.arguments(values, attributes):
            if use == ATTRIBUTE:
                arguments.append(attribute_value(parameter.name, given))
            elif use == SEQUENCE:
                arguments.append(self._check_items(parameter, given))
            else:
                arguments.append(self._check_present(parameter, given))
        return rounded(_as_tuple(self._apply(arguments)), values)

    def _trace_call(self, bound: inspect.BoundArguments) -> Any:
        bound.apply_defaults()
        self._check([bound.arguments[parameter.name] for parameter in self.parameters])
        beside = eager.partner(self, bound.arguments.items())
        arguments: list[Any] = []
        for parameter, use in zip(self.parameters, self.uses, strict=True):
            given = bound.arguments.get(parameter.name, parameter.default)
            if use == ARRAY:
                given = eager.fitting_number(self, given, beside, _unsigned)
                value = as_value(self.name, given)
                arguments.append(self._check_present(parameter, value))
            elif use == SEQUENCE:
                fitting = (eager.fitting_number(self, item, beside, _unsigned) for item in given)
                items = tuple(as_value(self.name, item) for item in fitting)
                arguments.append(self._check_items(parameter, items))
            else:
                arguments.append(attribute_value(parameter.name, given))
        return self._apply(arguments)

    def _apply(self, arguments: list[Any]) -> Any:
        if self.with_none is not None and any(a is None for a in arguments):
            shape = next((a.shape for a in arguments if a is not None), ())
            return views.broadcast(constant(self.with_none, "bool"), shape)
        if not self.has_own_gradient:
            return self._call_function(arguments)
        with collected():  # what it is made of is not differentiated
            result = self._call_function(arguments)
        operands, attributes = self._taken_apart(arguments)
        note(Call(self.name, operands, attributes, _as_tuple(result)))
        return result

    def _taken_apart(
        self, arguments: Sequence[Any]
    ) -> tuple[tuple[Value | None, ...], tuple[Any, ...]]:
        """Operands and attributes, as calls have them, of what the function is given."""
        operands: list[Value | None] = []
        attributes: list[Any] = []
        for use, given in zip(self.uses, arguments, strict=True):
            operands += given if use == SEQUENCE else () if use == ATTRIBUTE else (given,)
            attributes.append(
                given if use == ATTRIBUTE else len(given) if use == SEQUENCE else None
            )
        return tuple(operands), tuple(attributes)

    def _call_function(self, arguments: list[Any]) -> Any:
        try:
            return self.function(*arguments)
        except Exception as error:
            # An argument of a kind that nobody thought of; the cause is shown below the message.
            other = refused(self.function, arguments, {}, error, self.name)
            if other is error:
                raise
            raise other from other.__cause__

    def _check(self, attributes: Sequence[Any]) -> None:
        """Attributes are of the kinds that their annotations say."""
        for position, (name, kind) in self._kinds.items():
            given = attributes[position]
            if not kind.accepts(given):
                raise ArgumentTypeError(
                    f"{self.name}: {name} is {described(given)}; expected {wanted(kind, given)}."
                )

    @property
    def has_own_gradient(self) -> bool:
        """Whether gradients do not follow from the primitives that it is made of."""
        return self.gradient is not None or bool(self.piecewise_constant) or self.stops_gradients

    def pull(
        self,
        operands: Sequence[Value | None],
        attributes: Sequence[Any],
        results: Sequence[Value],
        received: Sequence[Value | None],
    ) -> Sequence[Value | None]:
        """What the operands of a call that there are receive, by the record's own gradient.

        `gradient(g, y, *arguments)` gives the array argument's cotangent, or a tuple with one for
        each; `g` and `y` are tuples where there are several results.
        """
        if self.gradient is None:
            return [None for operand in operands if operand is not None]
        given = [argument for _, _, argument in self.arguments(operands, attributes)]
        g = tuple(
            _zeros(y) if own is None else own for own, y in zip(received, results, strict=True)
        )
        one = len(results) == 1
        found = self.gradient(g[0] if one else g, results[0] if one else results, *given)
        return found if isinstance(found, tuple) else (found,)

    def _check_present(self, parameter: Parameter, value: Value | None) -> Value | None:
        if value is None and parameter.default is not None and self.with_none is None:
            raise DTypeError(
                f"{self.name}: {parameter.name} is None; expected an array or a number."
            )
        return value

    def _check_items(
        self, parameter: Parameter, items: tuple[Value | None, ...]
    ) -> tuple[Value | None, ...]:
        for i, item in enumerate(items):
            if item is None:
                raise DTypeError(
                    f"{self.name}: {parameter.name}[{i}] is None; expected an array or a number."
                )
        return items

    def _bind(self, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> inspect.BoundArguments:
        try:
            return self.signature.bind(*arguments, **keywords)
        except TypeError as error:
            unknown = next((n for n in keywords if n not in self.signature.parameters), "")
            question = did_you_mean(unknown, self.signature.parameters) if unknown else ""
            raise ArgumentTypeError(f"{self.name}{self.signature}: {error}.{question}") from None


def operation(**facts: Any) -> Callable[[Callable[P, R]], _core.Operation[P, R]]:
    """Register a function on program values as an operation; the result is what users call.

    Parameters without annotation, and those that are annotated `Value`, are arrays; `Operands` and
    `Key` mark sequences of arrays and random keys; every other annotation marks an attribute, a
    Python value fixed in the program.
    """

    def register(function: Callable[P, R]) -> _core.Operation[P, R]:
        name = facts.pop("name", function.__name__.rstrip("_"))
        if name in REGISTRY:
            raise HeterosisError(f"operation {name!r} is registered twice; rename one of them.")
        record = REGISTRY[name] = Record(name, function, **facts)
        return cast("_core.Operation[P, R]", record.operation)

    return register


def _operation_named(name: str) -> _core.Operation[..., Any]:
    return cast("_core.Operation[..., Any]", REGISTRY[name].operation)


copyreg.pickle(_core.Operation, lambda made: (_operation_named, (made.record.name,)))


def as_users_call(operation_: _core.Operation[..., Any]) -> Callable[..., Any]:
    """An operation as it is called with arrays, where numbers and `out` are welcome."""
    return operation_


def gradient_of(operation_: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make the decorated function the gradient of an operation that exists: see `Record._mark`."""

    def register(rule: Callable[..., Any]) -> Callable[..., Any]:
        operation_.record.gradient = rule
        return rule

    return register


def as_value(operation_name: str, given: Any) -> Value | None:
    """An operand of a traced operation: a program value, or a number as a constant."""
    if given is None or isinstance(given, Value):
        return given
    if isinstance(given, bool):
        return constant(given, "bool", weak=True)
    if isinstance(given, int) and is_traced(given):
        return extent(given)
    if isinstance(given, int):
        eager.check_range(operation_name, given)
        return constant(given, "int64", weak=True)
    if isinstance(given, float):
        return constant(given, "float64", weak=True)
    raise DTypeError(
        f"{operation_name}: cannot use {type(given).__name__} inside a program; "
        "pass an array or a number."
    )


def _unsigned(number: int) -> Value:
    return constant(number, "uint64")


def attribute_value(name: str, given: Any) -> Any:
    """An attribute as operations see it: element types by name."""
    return dtype_name(given) if name == "dtype" and given is not None else given


def _describe(parameter: Parameter, use: int) -> tuple[str, int, Any, bool]:
    required = parameter.default is inspect.Parameter.empty and use != KEY
    default = None if parameter.default is inspect.Parameter.empty else parameter.default
    return parameter.name, use, default, required


def _input(operand: Any) -> tuple[Value | None, Strided | None]:
    """A program input for one operand as the core describes it."""
    if operand is None:
        return None, None
    if isinstance(operand, str | int):
        dtype = operand if isinstance(operand, str) else "int64"
        return apply(NUMBER, (), TensorType((), dtype, weak=True)), Strided((), ())
    dtype, shape, strides = operand
    return apply(INPUT, (), TensorType(shape, dtype)), Strided(shape, strides)


def _known(operand: Any, value: Value | None) -> Value | None:
    """What an operation is traced on for one operand: the core hands over the number itself where
    the type of an array beside it does not hold it."""
    return constant(operand, "int64", weak=True) if isinstance(operand, int) else value


def _leaves(arguments: Iterable[Any]) -> Iterable[Any]:
    for argument in arguments:
        if isinstance(argument, tuple | list):
            yield from argument
        else:
            yield argument


def _is_value(given: Any) -> bool:
    return isinstance(given, Value)


def _values(arguments: Iterable[Any]) -> Iterator[Value]:
    return filter(_is_value, _leaves(arguments))


# `rules.zeros` converts a number that adapts. Folded, both are the same; but the text of a program
# is the key of what is compiled, and with the other one gradients by record would have new keys.
def _zeros(like: Value) -> Value:
    return views.broadcast(constant(0.0, like.dtype), like.shape)


def _as_tuple(result: Any) -> tuple[Value, ...]:
    return tuple(result) if isinstance(result, tuple | list) else (result,)


def public_names(module: str) -> dict[str, Any]:
    """The operations that users find in `module`, under all their names."""
    found: dict[str, Any] = {}
    for record in REGISTRY.values():
        if module in record.public:
            found |= dict.fromkeys((record.name, *record.aliases), record.operation)
    return found
