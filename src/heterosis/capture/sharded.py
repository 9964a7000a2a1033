"""Functions that several processes call together, each with its part of the batch, and that compute
what one process would of the whole."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from heterosis import _core, backends
from heterosis.autograd import tape
from heterosis.capture import trees
from heterosis.capture.captured import Argument, Captured, Window
from heterosis.capture.compiled import Compiled, P, R
from heterosis.capture.open_sizes import AUTO, Dynamic
from heterosis.capture.programs import Call, Program
from heterosis.ir import program as ir
from heterosis.ir.primitives.families import Elementwise, Primitive
from heterosis.ir.strided import Strided
from heterosis.runtime import modes
from heterosis.runtime.errors import ArgumentError, CaptureError, ShapeError, UnsupportedError

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass(frozen=True)
class Sharding:
    """How the arguments of a function are divided among processes.

    `batch` names the parameters of which each process gives its part: rows of arrays whose first
    axes, one behind the other, are those of the whole batch. Without it, all arrays among the
    arguments are parts. Everything else is whole, and the same in every process.
    """

    batch: str | Sequence[str] | None = None

    def parts(self, parameters: inspect.Signature, call: Call) -> frozenset[int]:
        """The positions, among all arrays of a call, of those that are parts."""
        arrays = list(trees.arrays_in(call))
        if self.batch is None:
            return frozenset(range(len(arrays)))
        bound = parameters.bind(*call[0], **call[1]).arguments
        names = (self.batch,) if isinstance(self.batch, str) else self.batch
        unknown = [name for name in names if name not in bound]
        if unknown:
            raise ArgumentError(
                f"Sharding: there is no argument {unknown[0]!r}; expected names among "
                f"{', '.join(bound)}."
            )
        named = {id(one) for name in names for one in trees.arrays_in(bound[name])}
        return frozenset(i for i, array in enumerate(arrays) if id(array) in named)


class Sharded(Compiled[P, R]):
    """`function`, compiled for all processes together. It is captured for the whole batch, of which
    a call gives a part; what it returns is of the whole batch, and the same in every process."""

    # What Python would compute is of this process's part.
    _is_written_in_python = False

    def __init__(self, function: Callable[P, R], backend: str, sharding: Sharding):
        self.sharding = sharding
        backends.named(backend).processes  # noqa: B018 - raises unless they have been joined
        super().__init__(function, backend, dynamic=False)

    @property
    def processes(self) -> backends.Processes:
        return backends.named(self.backend).processes

    @property
    def texts(self) -> list[str]:
        """The programs as the back end compiles them, with what the processes send to each other;
        the latest at the end."""
        programs = (program for alike in self._programs.values() for program in alike)
        return [one.backend.made.text for one in programs if isinstance(one, _Step)]

    def _call(self, *arguments: Any, **keywords: Any) -> Any:
        if modes.is_capturing():
            raise CaptureError(
                f"{self!r} is for all processes together, and cannot be a part of another program. "
                "Hybridize the outer function alone, with a sharding."
            )
        if modes.is_recording():
            raise UnsupportedError(
                f"{self!r} is called within autograd.record(), and gradients do not flow from what "
                "all processes compute together. Record inside: let the function be the whole step "
                "of training, with backward() and trainer.step()."
            )
        return super()._call(*arguments, **keywords)

    def _seen(self, call: Call) -> Call:
        """A call with arrays of the whole batch, without elements, in place of parts."""
        parts = self.sharding.parts(self.parameters, call)
        arrays = enumerate(trees.arrays_in(call))
        whole = iter([self._whole(array) if i in parts else array for i, array in arrays])
        found: Call = trees.replaced(call, lambda array: next(whole))
        return found

    def _whole(self, part: Any) -> Any:
        processes = self.processes
        if part.ndim == 0 or part.shape[0] % processes.devices_each:
            raise ShapeError(
                f"{self!r}: an argument of shape {part.shape} is to be a part of a batch; expected "
                "a first axis that its rows are counted along, of an extent that "
                f"{processes.devices_each} devices of this process can share. Name the arguments "
                "that are parts with Sharding(batch=...)."
            )
        if tape.source_of(part) is not None:
            raise UnsupportedError(
                f"{self!r}: an argument of shape {part.shape} is a part of a batch, and has a "
                "gradient, which would be of the whole batch. Pass x.detach()."
            )
        shape = part.shape[0] * processes.num_workers, *part.shape[1:]
        message = "this array stands for those of all processes, which are in none of them"
        return _core.unreadable(part._dtype_name, shape, message)

    def _compiled(self, captured: Captured, seen: Sequence[Any], arrays: Sequence[Any]) -> Program:
        parts = {i for i, array in enumerate(arrays) if seen[i] is not array}
        split = frozenset(
            i
            for i, source in enumerate(captured.sources)
            if isinstance(source, Argument) and source.position in parts
        )
        self._check_parts(captured, split)
        return _Step(captured, seen, backends.named(self.backend), split)

    def compiled_by(self, backend: str, *, check: bool = False) -> Self:
        if backend != self.backend or check:
            raise ArgumentError(
                f"{self!r} is for all processes together, by backend={self.backend!r}. Hybridize "
                "the function that it was made of."
            )
        return self

    def _check_parts(self, captured: Captured, split: Collection[int]) -> None:
        """Refuse what would be in memory of which this process has a part alone."""
        parts = {captured.sources[i] for i in split}
        if any(write.source in parts for write in captured.writes):
            self._refuse("writes to an argument")
        for leaf in trees.leaves(captured.result):
            base = leaf.base if isinstance(leaf, Window) else leaf
            if isinstance(base, Argument) and base in parts:
                self._refuse("returns an argument, or views of one that share its memory")
        if captured.leaves_record():
            raise UnsupportedError(
                f"{self!r} leaves results behind that gradients can flow from, and between "
                "processes they do not. Call backward() inside, or return loss.detach()."
            )

    def _refuse(self, what: str) -> NoReturn:
        raise UnsupportedError(
            f"{self!r} {what}: this is a part of a batch, and what the function computes is of the "
            "whole batch. Work on a copy, np.copy(x); the result is then whole in every process."
        )

    def _like(self, function: Callable[..., Any]) -> Compiled[..., Any]:
        return Sharded(function, self.backend, self.sharding)


class _Together(backends.Backend):
    """A back end for programs of all processes, whose inputs at some positions are split."""

    def __init__(self, of: backends.Backend, split: Collection[int]):
        self._of, self._split = of, split
        self.made: backends.JoinedExecutable

    def compile(
        self, program: ir.Program, layouts: Sequence[Strided], fixed: Collection[int] = ()
    ) -> backends.Executable:
        self.made = self._of.processes.compile(program, self._split)
        return backends.Executable(self.made.run)

    def has(self, primitive: Primitive) -> bool:
        return self._of.has(primitive)

    def is_dear(self, primitive: Elementwise) -> bool:
        return self._of.is_dear(primitive)


class _Step(Program):
    """A program of all processes. It is planned for the whole batch, and run with parts."""

    backend: _Together

    def __init__(
        self,
        captured: Captured,
        seen: Sequence[Any],
        backend: backends.Backend,
        split: Collection[int],
    ):
        super().__init__(captured, seen, _Together(backend, split))
        # What rearranges a part is computed, of the whole.
        self._views = {i: view for i, view in self._views.items() if view[0] not in split}

    def run(
        self,
        arguments: Sequence[Any],
        operands: Sequence[Any] | None = None,
        call: tuple[tuple[Any, ...], dict[str, Any]] = ((), {}),
    ) -> Any:
        found = super().run(arguments, operands, call)
        self.backend.made.note_written()
        return found


def sharded(
    function: Any, backend: str, sharding: Any, dynamic: Dynamic, check: bool
) -> Sharded[..., Any]:
    """What `hybridize` makes of a function for all processes."""
    if not isinstance(sharding, Sharding):
        raise ArgumentError(
            f"hybridize: got sharding={sharding!r}; expected a heterosis.distributed.Sharding."
        )
    if not callable(function) or hasattr(function, "hybridize"):
        raise ArgumentError(
            f"hybridize: got {type(function).__name__} and a sharding, which is for functions. "
            "Write one that calls the block, with the loss, backward() and trainer.step() in it "
            "where it is to be trained."
        )
    if check or dynamic not in (AUTO, False):
        raise ArgumentError(
            "hybridize: check=True and dynamic= do not go with a sharding: a function for all "
            "processes is captured for every size by itself, and is compared with nothing."
        )
    written = function.function if isinstance(function, Compiled) else function
    return Sharded(written, backend, sharding)
