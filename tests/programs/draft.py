"""A program that is being made: it is run with NumPy as it grows, so that its values are known."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy

from heterosis.ir.types import UNSIGNED, is_float, numpy_dtype
from tests.programs.meaning import Left, perform
from tests.programs.places import fitting
from tests.programs.program import Array, Program, Step
from tests.programs.statements import Control, Leave

LARGEST = 150_000  # elements of any value


class Draft:
    """Arguments, steps and the values that they have."""

    def __init__(
        self,
        rng: numpy.random.Generator,
        turn: int,
        dtypes: Sequence[str],
        mode: str,
        *,
        special: bool,
    ):
        self.turn = turn  # so that all programs together take all turns
        self.rng, self.dtypes, self.mode, self.special = rng, dtypes, mode, special
        self.arguments: dict[str, Array] = {}
        self.outside: dict[str, Array] = {}
        self.numbers: dict[str, float] = {}
        self.changes: dict[str, float] = {}
        self.steps: list[Step] = []  # of the block that is being made
        self.made = 0  # steps that there are, in all blocks
        self.refused: dict[str, Array] = {}
        self.depth = 0  # of blocks
        self.is_tried = False  # whether errors of what is made are caught
        self.can_leave = False  # whether it stands in a statement that repeats it
        # Whether a name cannot be assigned to where the draft stands.
        self.is_kept: Callable[[str], bool] = lambda name: False
        self.values: dict[str, Any] = {}

    # -- choices ----------------------------------------------------------------------------------

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def among(self, items: Sequence[Any]) -> Any:
        """One of the items, as it is."""
        return items[int(self.rng.integers(len(items)))]

    def in_turn(self, items: Sequence[Any]) -> Any:
        """One of the items: programs and their steps take turns."""
        return items[(2 * self.turn + self.made) % len(items)]

    def whole(self, low: int, high: int) -> int:
        """From `low` to `high`, both included."""
        return int(self.rng.integers(low, high + 1))

    def dtype(self) -> str:
        return self.among(self.dtypes)

    def arrays(self) -> list[str]:
        """The names of all arrays, the latest last."""
        return [n for n, v in self.values.items() if isinstance(v, numpy.ndarray | numpy.generic)]

    def pick(self, fits: Callable[[numpy.ndarray], bool] = lambda a: True) -> str | None:
        """An array that fits, rather a late one."""
        names = [n for n in self.arrays() if fits(self.values[n])]
        if not names:
            return None
        weights = numpy.arange(1, len(names) + 1, dtype=float)
        return names[int(self.rng.choice(len(names), p=weights / weights.sum()))]

    def writable(self, fits: Callable[[numpy.ndarray], bool] = lambda a: True) -> str | None:
        """An array to write to: seldom a variable, which is refused; none where that is caught."""
        held = {"gradient": self.arguments, "inside": self.outside}.get(self.mode, {})
        allowed = self.chance(0.1) and not self.is_tried
        return self.pick(
            lambda a: (
                a.size > 0
                and fits(a)
                and (allowed or not any(numpy.may_share_memory(a, self.values[n]) for n in held))
            )
        )

    def dtype_of(self, name: str) -> str:
        return self.values[name].dtype.name

    def shape_of(self, name: str) -> tuple[int, ...]:
        return self.values[name].shape

    def is_float(self, name: str) -> bool:
        return is_float(self.dtype_of(name))

    # -- additions --------------------------------------------------------------------------------

    def elements(self, shape: tuple[int, ...], dtype: str, low: float = -2, high: float = 2) -> Any:
        """Random elements; special ones among them, where the draft is of that kind."""
        if dtype == "bool":
            return numpy.asarray(self.rng.random(shape) < 0.5)
        if not is_float(dtype):
            least = max(low, 0) if dtype in UNSIGNED else low
            found = self.rng.integers(int(least), max(int(high), int(least)) + 1, shape)
            return numpy.asarray(found, dtype=dtype)
        found = numpy.asarray(self.rng.uniform(low, high, shape))
        if self.special and found.size:
            chosen = self.rng.random(shape) < 0.25
            special = self.rng.choice([0.0, -0.0, numpy.inf, -numpy.inf, numpy.nan, 1.0], shape)
            found = numpy.where(chosen, special, found)
        return found.astype(numpy_dtype(dtype))

    def argument(self, shape: tuple[int, ...], dtype: str, low: float = -2, high: float = 2) -> str:
        """One more argument."""
        name = f"x{len(self.arguments)}"
        self.arguments[name] = Array(self.elements(shape, dtype, low, high))
        self.values[name] = self.arguments[name].elements.copy()
        return name

    def part_argument(self, part: str) -> str:
        """One more argument that shares its memory with another one."""
        name = f"x{len(self.arguments)}"
        self.arguments[name] = Array(part=part)
        self.values[name] = eval(part, {"np": numpy}, self.values)
        return name

    def constant(self, shape: tuple[int, ...], dtype: str, low: float = -2, high: float = 2) -> str:
        """One more array from outside."""
        name = f"c{len(self.outside)}"
        self.outside[name] = Array(self.elements(shape, dtype, low, high))
        self.values[name] = self.outside[name].elements.copy()
        return name

    def number(self, value: float) -> str:
        """One more Python number from outside."""
        name = f"k{len(self.numbers)}"
        self.numbers[name] = self.values[name] = value
        return name

    def changing(self, value: Any, later: Any) -> str:
        """One more value that the function reads outside, and that changes between calls."""
        name = self.among(fitting((value, later))).read.replace("@", str(len(self.numbers)))
        self.numbers[name] = self.values[name] = value
        self.changes[name] = later
        return name

    def step(
        self, kind: str, text: str, *operands: str, writes: bool = False, **more: Any
    ) -> str | None:
        """One more step, if it can be: the name of its result."""
        if writes and text.startswith("{0} ") and self.is_kept(operands[0]):
            return None
        result = None if writes else f"v{self.made}"
        made_step = Step(kind, text, operands, result, **more)
        saved = self.values[operands[0]].copy() if writes else None
        try:
            with numpy.errstate(all="ignore"):
                perform(made_step, self.values, None)
        except Exception:  # noqa: BLE001 - NumPy refuses: the step cannot be
            self.values.pop(result, None)
            if writes and self.values[operands[0]].flags.writeable:
                self.values[operands[0]][...] = saved
            return None
        if not writes and not self._is_wanted(self.values[result]):
            del self.values[result]
            return None
        self.add(made_step)
        return result

    def add(self, step: Step) -> None:
        """One more step, whose results are known."""
        self.steps.append(step)
        self.made += 1

    def fresh(self) -> str:
        """A name that no step has."""
        self.made += 1
        return f"v{self.made - 1}"

    @contextmanager
    def block(self, *, is_function: bool) -> Iterator[list[Step]]:
        """Within, steps go into a list; behind it, all arrays are what they were before."""
        steps, values, is_kept = self.steps, self.values, self.is_kept
        before = self.is_tried, self.can_leave
        restore = self._restorer()
        self.steps, self.values = [], dict(values)
        self.depth += 1
        if is_function:
            self.is_kept = lambda name: name in values or name[0] != "v"
            self.can_leave = False
        else:
            self.is_kept = lambda name: name in self.outside or is_kept(name)
        try:
            yield self.steps
        finally:
            restore()
            self.depth -= 1
            self.is_tried, self.can_leave = before
            self.steps, self.values, self.is_kept = steps, values, is_kept
            for arrays in (self.arguments, self.outside):
                for name in arrays.keys() - values.keys():
                    values[name] = arrays[name].elements.copy()
            values.update(self.numbers)

    def control(self, step: Control) -> None:
        """A step with steps inside, if it can be: its results are known then."""
        step = step.closed()
        restore, values = self._restorer(), dict(self.values)
        try:
            with numpy.errstate(all="ignore"):
                try:
                    perform(step, values, None)
                except Left:  # the turn of a loop that it stands in
                    restore()
                    perform(step.each(_staying), values, None)
        except Exception:  # noqa: BLE001 - NumPy refuses: the step cannot be
            restore()
            return
        known = {n: values[n] for n in step.arrays(self.numbers) if self._is_wanted(values[n])}
        if step.names and not known:
            restore()
            return
        self.values.update(known)
        self.add(step)

    def _restorer(self) -> Callable[[], None]:
        """What gives all arrays the elements again that they have now."""
        arrays = [v for v in self.values.values() if isinstance(v, numpy.ndarray)]
        saved = [(array, array.copy()) for array in arrays if array.flags.writeable]

        def restore() -> None:
            for array, elements in saved:
                array[...] = elements

        return restore

    def _is_wanted(self, value: Any) -> bool:
        return (
            isinstance(value, numpy.ndarray | numpy.generic)
            and value.size <= LARGEST
            and value.ndim <= 5
        )

    def is_known(self, name: str) -> bool:
        """Whether NumPy gives the same numbers: it does not for what random numbers go into."""
        unknown: set[str | None] = set()
        for step in self.steps:
            if not step.known or not unknown.isdisjoint(step.operands):
                unknown.update(step.results, step.operands[:1] if step.is_write else ())
        return name not in unknown

    def view(self, text: str, *operands: str) -> str | None:
        """One more view. NumPy's would be no view but a number, if all axes had one."""
        meaning = f"{text[:-1]}, ...]" if text.endswith("]") and "..." not in text else None
        return self.step("view", text, *operands, meaning=meaning)

    def differentiate(self) -> None:
        """Let gradients flow to the arguments, or to the arrays outside."""
        for arrays in ({"gradient": self.arguments, "inside": self.outside}.get(self.mode, {}),):
            for name, array in arrays.items():
                if array.elements is not None and is_float(array.elements.dtype.name):
                    arrays[name] = replace(array, differentiable=True)

    def program(self, returned: Any, recorded_from: int, origin: str) -> Program:
        """What has been made."""
        return Program(
            self.arguments,
            tuple(self.steps),
            returned,
            self.outside,
            self.numbers,
            self.changes,
            refused=self.refused,
            mode=self.mode,
            recorded_from=recorded_from,
            origin=origin,
        )


def _staying(step: Step) -> Step:
    """The step without leaving the turn of a loop."""
    if not isinstance(step, Leave):
        return step
    return replace(step, test=Step("test", "False", (), None, "bool"))
