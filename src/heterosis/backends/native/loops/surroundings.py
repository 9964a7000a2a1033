"""What a nest in the making asks of the scheduler that makes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence
from typing import Protocol

from heterosis.backends.native.codegen.kernel import Place
from heterosis.backends.native.codegen.nest import Nest
from heterosis.ir.program import Value
from heterosis.ir.types import TensorType


class Surroundings(Protocol):
    """What has been computed, where it stands, and which values are to be kept in memory."""

    places: dict[Value, Place]
    numbers: dict[Value, int]
    runs: Counter[Value]  # in how many nests each reduction runs

    @property
    def kept(self) -> Container[Value]:
        """The values to be kept in memory."""

    def place(self, value: Value) -> Place:
        """Where `value` stands in memory; computed into the workspace on first need."""

    def whole(self, value: Value) -> Place:
        """Where `value` stands, views of memory left as they are."""

    def room(self, value: Value) -> Place:
        """Where a value will stand that has not been computed."""

    def temporary(self, type_: TensorType) -> Place:
        """Room for a whole value in the workspace."""

    def append(self, nest: Nest, kept: Sequence[int]) -> None:
        """Run `nest` next, unless its loops have no points."""
