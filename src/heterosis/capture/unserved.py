"""What an exported program will not serve though it was asked to: told when it is written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from heterosis.capture.compiled import Compiled
from heterosis.capture.open_calls import OpenCall
from heterosis.capture.open_sizes import Axis, Dynamic, axes_of
from heterosis.capture.programs import Call
from heterosis.runtime.warning import warn_user


class Unserved:
    """Warnings on the program of a name, whose calls have these arrays, each with its label."""

    def __init__(self, name: str, arrays: Sequence[tuple[str, Any]]):
        self._name, self._arrays = name, arrays

    def tell_of_closed(
        self, compiled: Compiled[..., Any], dynamic: Dynamic, call: Call, found: OpenCall | None
    ) -> None:
        """Warn of axes that the user has named, and that have one extent in what was found; where
        all were asked for, only if none is open: many have to be what they are."""
        if isinstance(dynamic, str) or dynamic is False:
            return
        asked = axes_of(dynamic, compiled.parameters, *call) or set()
        if found is None:
            closed, why = asked, list(compiled.captures_why)[-1:]
        else:
            assert found.captured.conditions is not None, "some extents are open"
            fixed = found.captured.conditions.fixed
            names = {axis: name for axis, name in found.names.items() if name in fixed}
            closed = asked & names.keys() if dynamic is not True else set()
            why = sorted({fixed[names[axis]] for axis in closed})
        if closed:
            extents = ", ".join(
                f"{self._arrays[i][1].shape[axis]} on axis {axis} of {self._arrays[i][0]}"
                for i, axis in sorted(closed)
            )
            self._warn(f"only {extents}, which may not stay open", "; ".join(why))

    def tell_of_ones(self, found: OpenCall, ones: tuple[str, ...], why: Exception | str) -> None:
        """Warn of sizes that may not be 1, some of them together."""
        axes = (axis for axis, name in found.names.items() if name in ones)
        self._warn(f"no calls with 1 on {self._shown(axes)}", str(why))

    def tell_of_equal(self, found: OpenCall) -> None:
        """Warn of axes of one array that have one size, since they are equal in the call."""
        named: dict[tuple[int, str], list[Axis]] = {}
        for axis, name in found.names.items():
            if name in found.values:
                named.setdefault((axis[0], name), []).append(axis)
        for axes in named.values():
            if len(axes) > 1:
                self._warn(
                    f"only equal extents on {self._shown(axes)}",
                    "they are equal in the sample inputs. Give some that differ there, unless the "
                    "extents have to be equal.",
                )

    def tell_of_others(self, found: OpenCall, special: Sequence[OpenCall]) -> None:
        """Warn of sizes that are another program: as another way through the function."""
        unheld = found.unheld(special)
        if unheld is not None:
            values, why = unheld
            shown = ", ".join(f"{name} = {value}" for name, value in values.items())
            self._warn(
                f"no sizes like {shown}, for which it is another program",
                f"this one holds where {why}. Export one more, with sample inputs of such sizes.",
            )

    def _shown(self, axes: Iterable[Axis]) -> str:
        return " and ".join(f"axis {axis} of {self._arrays[i][0]}" for i, axis in sorted(axes))

    def _warn(self, what: str, why: str) -> None:
        warn_user(f"{self._name}: what is exported serves {what}: {why}")
