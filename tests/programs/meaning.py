"""What a program means: its evaluation with NumPy, and how far rounding may move it.

Each step is computed in float64 from operands of the element types that the program has, and
rounded once. Noise of the size of the allowed errors, at every step that rounds, shows by how much
a result may differ from this: what is sensitive to rounding spreads, and what is not stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import count
from typing import Any

import numpy

from heterosis.ir.types import DEFAULT_FLOAT, is_float, numpy_dtype, promote
from heterosis.ops import REGISTRY
from tests.programs.program import ACCUMULATES, EXACT, Array, Program, Step, leaves
from tests.programs.statements import Block, Called, Choice, Control, Leave, Loop, Tried

ENDLESS = 100  # turns that no loop takes
UNITS = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-23, "float64": 2.0**-52}


@dataclass
class Call:
    """What one call leaves behind, as NumPy arrays: results, arguments, arrays outside."""

    results: list[numpy.ndarray]
    arguments: list[numpy.ndarray]
    outside: list[numpy.ndarray]
    gradients: list[numpy.ndarray] = field(default_factory=list)
    aliases: list[numpy.ndarray] = field(default_factory=list)  # what changes with each result
    error: str = ""  # of an index that is refused; there are no results then
    printed: list[str] = field(default_factory=list)  # the beginnings of the lines

    def arrays(self) -> list[tuple[str, numpy.ndarray]]:
        """All of them with their names for messages."""
        named = (
            ("result", self.results),
            ("argument", self.arguments),
            ("outside", self.outside),
            ("what changes with result", self.aliases),
        )
        return [(f"{what} {i}", a) for what, arrays in named for i, a in enumerate(arrays)]


def evaluate(
    program: Program,
    given: Mapping[str, Array],
    outside: Mapping[str, numpy.ndarray],
    noise: numpy.random.Generator | None = None,
    moved: tuple[str, numpy.ndarray] | None = None,
    last: bool = False,
) -> Call:
    """One call with NumPy. `outside` is changed where the program writes to it; `moved` is added to
    a variable before it is recorded."""
    arguments = made(given, numpy, outside)
    values = arguments | dict(outside) | dict(program.numbers)
    error = ""
    _PRINTED.clear()
    with numpy.errstate(all="ignore"):
        try:
            for i, step in enumerate(program.steps):
                if i == program.recorded_from and moved is not None:
                    values[moved[0]] = numpy.asarray(values[moved[0]] + moved[1])
                perform(step, values, noise)
        except IndexError:
            if not _is_refused(program, given):
                raise
            error = "IndexError"
    if moved is not None and program.recorded_from >= len(program.steps):
        values[moved[0]] = values[moved[0]] + moved[1]
    returned = [] if error else [values[name] for name in leaves(program.returned)]
    arrays = (returned, list(arguments.values()), list(outside.values()))
    call = Call(*([numpy.array(a) for a in of] for of in arrays), error=error, printed=[*_PRINTED])
    if last and program.mode == "plain" and not program.has_control:
        call.aliases = [
            numpy.array(changed) for changed in aliases(returned, [a for of in arrays for a in of])
        ]
    return call


def _is_refused(program: Program, given: Mapping[str, Array]) -> bool:
    """Whether a call has an index that may be out of bounds."""
    return any(given.get(name) is array for name, array in program.refused.items())


def aliases(results: Sequence[Any], arrays: Sequence[Any]) -> Iterator[list[bool]]:
    """For each result, which of the arrays change when it is written to."""
    for number, result in enumerate(results):
        before = [numpy.array(_elements(a)) for a in arrays]
        if result.size:
            result[...] = _marker(result, number)
        after = [_elements(a) for a in arrays]
        yield [not numpy.array_equal(*pair) for pair in zip(before, after, strict=True)]


def _marker(result: Any, number: int) -> Any:
    """A number that an array does not hold everywhere."""
    dtype = str(result.dtype)
    if dtype == "bool":
        return not bool(_elements(result).reshape(-1)[0])
    return 50 + number


def _elements(array: Any) -> numpy.ndarray:
    """The elements, as numbers that equal themselves."""
    found = array.asnumpy() if hasattr(array, "asnumpy") else numpy.asarray(array)
    return numpy.nan_to_num(found.astype("float64"), posinf=1e300, neginf=-1e300, nan=1e200)


def evaluate_all(program: Program) -> dict[str, Any]:
    """Every value of a program, as it was when it was made."""
    values = values_given(program)
    found = {}
    with numpy.errstate(all="ignore"):
        for step in program.steps:
            perform(step, values, None)
            found |= {name: numpy.array(values[name]) for name in step.results}
    return values | found


def is_sound(program: Program) -> bool:
    """Whether its choices give arrays of one type, and its loops carry on what they began with."""
    types: dict[str, set[Any]] = {}
    for seed in range(8 if program.has_control else 0):
        rng = numpy.random.default_rng(seed)

        def decided(step: Step, rng: numpy.random.Generator = rng) -> Step:
            truth = isinstance(step, Choice) and rng.random() < 0.5
            free = isinstance(step, Choice | Leave)
            return replace(step, test=_constant(truth=truth)) if free else step

        values = values_given(program)
        with numpy.errstate(all="ignore"):
            for step in program.steps:
                perform(step.each(decided), values, None)
        for step in program.within():
            carried = zip(step.names, step.starts, strict=False) if isinstance(step, Loop) else ()
            for name, other in (*((n, n) for n in step.results), *carried):
                if isinstance(values.get(other), numpy.ndarray):
                    types.setdefault(name, set()).add((values[other].dtype, values[other].shape))
    return all(len(found) == 1 for found in types.values())


def _constant(*, truth: bool) -> Step:
    return Step("test", str(truth), (), None, "bool")


def values_given(program: Program) -> dict[str, Any]:
    """What a program begins with."""
    outside = made(program.outside, numpy)
    return made(program.arguments, numpy, outside) | outside | dict(program.numbers)


def made(
    arrays: Mapping[str, Array], module: Any, around: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The arrays of a description, fresh; `module` is NumPy or ours. Some may be parts of arrays
    that are `around`."""
    found: dict[str, Any] = {}
    for name, array in arrays.items():
        if array.part is not None:
            found[name] = eval(array.part, {"np": module, **(around or {})}, found)
        elif module is numpy:
            found[name] = array.elements.copy()
        else:
            found[name] = module.array(array.elements)
    return found


def perform(step: Step, values: dict[str, Any], noise: numpy.random.Generator | None) -> None:
    """One step on the values of those before it."""
    if isinstance(step, Control):
        _decide(step, values, noise)
        return
    operands = [values[name] for name in step.operands]
    if step.is_write:
        _write(step, operands, noise)
    elif step.is_view:
        found = eval(_code(step, "eval"), NAMESPACE | _named(operands))
        if not isinstance(found, numpy.ndarray):
            raise TypeError(f"{step.text}: NumPy gives a number, no view")
        if any(o.flags.writeable for o in operands):  # NumPy's diagonals are for reading only
            found.flags.writeable = True
        values[step.result] = found
    else:
        values[step.result] = _computed(step, operands, noise)


class Left(Exception):
    """A turn of a loop has been left, and with `break` the loop."""


Noise = numpy.random.Generator | None


def _decide(step: Control, values: dict[str, Any], noise: Noise) -> None:
    """A step with steps inside."""
    if isinstance(step, Loop):
        _repeat(step, values, noise)
    elif isinstance(step, Choice):
        block = step.blocks[0 if _holds(step.test, values, noise) else 1]
        values.update(zip(step.names, _run(block, values, noise), strict=True))
    elif isinstance(step, Tried):
        values.update(zip(step.names, _tried(step, values, noise), strict=True))
    elif isinstance(step, Called):
        values.update(zip(step.names, _run(step.blocks[0], values, noise), strict=True))
    elif _holds(step.test, values, noise):
        raise Left(step.text)


def _holds(test: Step | None, values: dict[str, Any], noise: Noise) -> bool:
    return test is None or bool(_computed(test, [values[n] for n in test.operands], noise))


def _run(block: Block, values: dict[str, Any], noise: Noise) -> list[Any]:
    """What a block hands on."""
    for step in block.steps:
        perform(step, values, noise)
    return [values[name] for name in block.returned]


def _tried(step: Tried, values: dict[str, Any], noise: Noise) -> list[Any]:
    try:
        return _run(step.blocks[0], values, noise)
    except (IndexError, KeyError, ZeroDivisionError, ValueError):
        return _run(step.blocks[1], values, noise)


def _repeat(step: Loop, values: dict[str, Any], noise: Noise) -> None:
    values.update(zip(step.carried, [values[name] for name in step.starts], strict=True))
    outputs: list[list[Any]] = []
    data = [values[name] for name in step.data]
    for turn in range(len(data[0]) if data else ENDLESS + 1):
        if turn == ENDLESS:
            raise ValueError("a loop without an end")
        if turn == step.most or not _holds(step.test, values, noise):
            break
        row = -1 - turn if step.text == "backwards" else turn
        values.update(zip(step.rows, (array[row, ...] for array in data), strict=True))
        try:
            found = _run(step.blocks[0], values, noise)
        except Left as left:
            if str(left) == "break":
                break
            continue
        values.update(zip(step.carried, found, strict=False))
        outputs.append([numpy.array(a) for a in found[len(step.carried) :]])
    left = 0 if step.most is None else step.most - len(outputs)
    for name, *column in zip(step.outputs, *outputs, strict=True):
        values[name] = numpy.stack([*column, *[numpy.zeros_like(column[0])] * left])


def _write(step: Step, operands: list[Any], noise: numpy.random.Generator | None) -> None:
    target = operands[0]
    before = target.copy()
    exec(_code(step, "exec"), NAMESPACE | _named(operands))  # noqa: S102
    if noise is not None and step.rounding != EXACT and is_float(target.dtype.name):
        wide = target.astype("float64")
        shaken = _shaken(wide, UNITS[target.dtype.name] * step.ulps, noise)
        target[...] = numpy.where(before == target, wide, shaken).astype(target.dtype)


def _computed(
    step: Step, operands: list[Any], noise: numpy.random.Generator | None
) -> numpy.ndarray:
    dtype = step.dtype or _result_type(operands)
    near = UNITS.get(dtype, UNITS["float32"]) * step.ulps
    wide = [
        o if i in step.whole else _wide(o, step.dtype is not None and is_float(step.dtype))
        for i, o in enumerate(operands)
    ]
    if noise is not None:
        # A number takes the element type of the arrays; its rounding may be all that is left.
        unit = UNITS.get(dtype, UNITS["float32"])
        wide = [o * (1 + unit * noise.uniform(-1, 1)) if _rounds(o, dtype) else o for o in wide]
    if noise is not None and step.rounding == ACCUMULATES:
        # The error of a long sum follows its partial sums, which are larger than its terms.
        longest = max((n for o in wide for n in numpy.shape(o)), default=1)
        growth = near * longest**0.5 / 8
        wide = [_shaken(o, max(near, growth), noise) for o in wide]
        if growth > near:  # what does not cancel: all terms alike
            factor = 1 + growth * noise.uniform(-1, 1)
            wide = [_times(o, factor) for o in wide]
    found = numpy.asarray(eval(_code(step, "eval"), NAMESPACE | _named(wide)))
    if noise is not None and step.rounding != EXACT:
        found = _shaken(found, near, noise)
        if step.absolute and found.dtype == "float64":
            unit = UNITS.get(dtype, UNITS["float32"])
            found = found + step.absolute * unit * noise.uniform(-1, 1, found.shape)
    if step.dtype is None and not is_float(found.dtype.name):
        return numpy.array(found, order="C")  # as results are here: reshaping them shows them
    return numpy.array(found, dtype=numpy_dtype(dtype), order="C")


def _result_type(operands: list[Any]) -> str:
    found = None
    for operand in operands:
        if isinstance(operand, numpy.ndarray | numpy.generic) and is_float(operand.dtype.name):
            found = operand.dtype.name if found is None else promote(found, operand.dtype.name)
    return found or DEFAULT_FLOAT


def _rounds(operand: Any, dtype: str) -> bool:
    """Whether it is a number of Python's that `dtype` does not hold."""
    return type(operand) is float and operand != float(numpy_dtype(dtype).type(operand))


def _wide(operand: Any, to_float: bool) -> Any:
    if isinstance(operand, numpy.ndarray) and (to_float or is_float(operand.dtype.name)):
        return numpy.asarray(operand).astype("float64")
    return operand


def _shaken(values: Any, near: float, noise: numpy.random.Generator) -> Any:
    """Floats, each times another number near 1."""
    if not isinstance(values, numpy.ndarray) or values.dtype != "float64":
        return values
    return numpy.asarray(values * (1 + near * noise.uniform(-1, 1, values.shape)))


def _times(values: Any, factor: float) -> Any:
    return values * factor if getattr(values, "dtype", None) == "float64" else values


def _named(operands: list[Any]) -> dict[str, Any]:
    return {f"_{i}": operand for i, operand in enumerate(operands)}


@cache
def _compiled(text: str, count: int, how: str) -> Any:
    return compile(text.format(*(f"_{i}" for i in range(count))), text, how)


def _code(step: Step, how: str) -> Any:
    return _compiled(step.meaning or step.text, len(step.operands), how)


def _softmax(x: Any, length: Any = None, axis: int = -1, **more: Any) -> Any:
    """The reference makes zeros of what is no number, for the sake of empty rows."""
    if length is not None:
        return REGISTRY["softmax"].numpy(x, length, axis=axis, **more)
    x = x / (more.get("temperature") or 1)
    e = numpy.exp(x - x.max(axis, keepdims=True, initial=-numpy.inf))
    return e / e.sum(axis, keepdims=True)


def _softmin(x: Any, axis: int = -1, **more: Any) -> Any:
    return _softmax(-x, None, axis, **more)


def _log_softmax(x: Any, axis: int = -1, **more: Any) -> Any:
    x = x / (more.get("temperature") or 1)
    x = x - x.max(axis, keepdims=True, initial=-numpy.inf)
    return x - numpy.log(numpy.exp(x).sum(axis, keepdims=True))


def _gammaln(x: Any) -> Any:
    """The reference makes minus infinity of itself, and C's standard infinity."""
    return numpy.where(numpy.isneginf(x), numpy.inf, REGISTRY["gammaln"].numpy(x))


def _quantiles(name: str) -> Any:
    """The reference has no number for an infinity that stands right at the place."""
    reference = REGISTRY[name].numpy

    def quantile(x: Any, q: Any, **more: Any) -> Any:
        ways = ({}, {"interpolation": "lower"}, {"interpolation": "higher"})
        found, low, high = (reference(x, q, **more | way) for way in ways)
        return numpy.where(numpy.isnan(found) & (low == high), low, found)

    return quantile


def _without_blas(function: Any) -> Any:
    """A product of NumPy's own loops: BLAS leaves out what it multiplies with zero, NaN too."""

    def product(*operands: Any, **attributes: Any) -> Any:
        wide = [numpy.asarray(o) for o in operands]
        if not any(is_float(o.dtype.name) for o in wide):
            return function(*operands, **attributes)
        found = function(*(o.astype("longdouble") for o in wide), **attributes)
        return numpy.asarray(found).astype("float64")

    return product


_INSTEAD = {
    **{name: _without_blas(REGISTRY[name].numpy) for name in ("dot", "inner", "matmul", "vdot")},
    "quantile": _quantiles("quantile"),
    "percentile": _quantiles("percentile"),
    "softmax": _softmax,
    "softmin": _softmin,
    "log_softmax": _log_softmax,
    "gammaln": _gammaln,
}


def _reference(name: str) -> Any:
    return _INSTEAD.get(name) or REGISTRY[name].numpy


class _Module:
    """A module of ours as NumPy would have it: the references of its operations."""

    def __init__(self, name: str):
        for record in REGISTRY.values():
            if record.numpy is not None and name in record.public:
                for known_as in (record.name, *record.aliases):
                    setattr(self, known_as, _reference(record.name))


def _moved(x: Any, near: float, seed: int) -> Any:
    """Floats and parts of their powers of two, which are the same for all floats close by."""
    x = numpy.asarray(x)
    if x.dtype.kind != "f":
        return x
    power = numpy.ldexp(1.0, numpy.frexp(x)[1])
    return x + near * power * numpy.random.default_rng(seed).uniform(-1, 1, x.shape)


def _rounded(x: Any, dtype: str) -> Any:
    """Elements as a type has them."""
    return numpy.asarray(x).astype(numpy_dtype(dtype)).astype("float64")


_PRINTED: list[str] = []  # by the call that is evaluated


def _other_elements(x: Any) -> Any:
    """An array of the same type that differs everywhere, but where there is no number."""
    return ~x if x.dtype == bool else (x + 1).astype(x.dtype)


NAMESPACE: dict[str, Any] = {
    "other_elements": _other_elements,
    "printed": _PRINTED.append,
    "np": numpy,
    "npx": _Module("npx"),
    "numpy": numpy,
    "reference": _reference,
    "moved": _moved,
    "rounded": _rounded,
}


# -- tolerance -------------------------------------------------------------------------------------


class Expected:
    """What every way of running a program must give, call by call, and how near it must come."""

    FEW, MANY = 4, 24  # runs with noise: at first, and before anything is called different

    def __init__(self, program: Program, calls: list[Mapping[str, Array]]):
        self.program, self.calls = program, calls
        self.base = self._run(None)
        self._noisy: list[list[Call]] = []
        self._seeds = count()

    def _run(self, noise: numpy.random.Generator | None) -> list[Call]:
        outside = made(self.program.outside, numpy)
        last = len(self.calls) - 1
        return [
            evaluate(self.program.at(turn), given, outside, noise, last=turn == last)
            for turn, given in enumerate(self.calls)
        ]

    def noisy(self, many: int) -> list[list[Call]]:
        """Runs with noise, the same for every comparison."""
        while len(self._noisy) < many:
            try:
                self._noisy.append(self._run(numpy.random.default_rng(next(self._seeds))))
            except (ValueError, IndexError):
                many -= 1  # an argument that may not be larger than 1 is, by its noise
        return self._noisy
