"""The back end that hands programs to XLA, through JAX: `hybridize(backend='xla')`.

JAX comes with `pip install 'heterosis[xla]'`, and is imported when this back end is first asked
for. A program is taken as the passes for any back end leave it; each primitive is a row of
`jax.lax`, and XLA compiles the whole.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from heterosis.backends import Backend, Executable, Processes
from heterosis.ir.primitives.families import Elementwise, Primitive
from heterosis.ir.program import Program
from heterosis.ir.strided import Strided
from heterosis.ir.types import DTYPES
from heterosis.runtime.errors import ArgumentError, MissingPackageError, UninitializedError

# Elementwise work that XLA computes again wherever it fuses.
_CHEAP = frozenset(
    (
        "absolute", "add", "copy", "equal", "greater", "greater_equal", "less", "less_equal",
        "maximum", "minimum", "multiply", "negative", "not_equal", "reciprocal", "select", "sign",
        "sqrt", "subtract", "true_divide", *(f"to_{dtype}" for dtype in DTYPES),
    )
)  # fmt: skip


class Xla(Backend):
    """Compiles for the processor, by XLA's compiler for it."""

    def __init__(self) -> None:
        _check_installed()
        self._processes: Processes | None = None
        from heterosis.backends.xla import tables

        tables.load()

    def compile(
        self, program: Program, layouts: Sequence[Strided], fixed: Collection[int] = ()
    ) -> Executable:
        """A function of arrays that share their memory with JAX's, which waits for its results."""
        from heterosis.backends.xla.executable import Runner

        return Executable(Runner(program, fixed).run)

    def join(self, coordinator: str, num_workers: int, rank: int) -> Processes:
        from heterosis.backends.xla.joined import Joined

        if self._processes is not None:
            raise ArgumentError(
                "distributed.initialize: this process has been joined to others before, and can be "
                "but once. Call it at the beginning of the program alone."
            )
        self._processes = Joined(coordinator, num_workers, rank)
        return self._processes

    @property
    def processes(self) -> Processes:
        if self._processes is None:
            raise UninitializedError(
                "no processes have been joined: call heterosis.distributed.initialize() at the "
                "beginning of the program."
            )
        return self._processes

    def has(self, primitive: Primitive) -> bool:
        """Whether there is a row for it."""
        from heterosis.backends.xla import tables

        return tables.has(primitive)

    def is_dear(self, primitive: Elementwise) -> bool:
        """All but arithmetic and choices."""
        return primitive.name not in _CHEAP


def _check_installed() -> None:
    try:
        import jax  # noqa: F401
    except ImportError as error:
        raise MissingPackageError(
            "the back end 'xla' needs JAX, 0.8 or newer, which is not installed here. Install it "
            "with: pip install 'heterosis[xla]'"
        ) from error
