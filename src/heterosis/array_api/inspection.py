"""What the namespace can do, as programs for any array library ask for it."""

from __future__ import annotations

import numpy

from heterosis.array_api.data_types import STANDARD, kinds_named
from heterosis.ir.types import DEFAULT_FLOAT, numpy_dtype
from heterosis.runtime.context import Context, check_context, cpu


class Inspection:
    """What `__array_namespace_info__()` gives."""

    def capabilities(self) -> dict[str, bool | int | None]:
        """Which of the standard's options there are; arrays have at most 32 dimensions."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 32}

    def default_device(self) -> Context:
        """Main memory."""
        return cpu()

    def devices(self) -> list[Context]:
        """Where arrays can live: main memory."""
        return [cpu()]

    def default_dtypes(self, *, device: Context | None = None) -> dict[str, numpy.dtype]:
        """The types of what is made without saying one."""
        check_context(device)
        return {
            "real floating": numpy_dtype(DEFAULT_FLOAT),
            "integral": numpy_dtype("int64"),
            "indexing": numpy_dtype("int64"),
        }

    def dtypes(
        self, *, device: Context | None = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, numpy.dtype]:
        """The standard's types that there are, by name, of all kinds or of those asked for."""
        check_context(device)
        asked = tuple(STANDARD) if kind is None else (kind,) if isinstance(kind, str) else kind
        kinds = [one for name in asked for one in kinds_named(name)]
        return {name: numpy_dtype(name) for one in kinds for name in STANDARD[one]}


def __array_namespace_info__() -> Inspection:  # noqa: N807 - the standard's name
    """What the namespace can do."""
    return Inspection()
