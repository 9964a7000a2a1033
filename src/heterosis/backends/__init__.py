"""Back ends: what turns programs into something that runs.

A program and its derivatives are compiled by one back end, which `hybridize(backend=...)` names.
Operations that are called one by one run on the native one. What is on a GPU, XLA's computes.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from heterosis import _core
from heterosis.runtime.context import set_gpus
from heterosis.runtime.errors import ArgumentError, MissingPackageError, UnsupportedError
from heterosis.runtime.settings import settings

if TYPE_CHECKING:
    import numpy

    from heterosis.ir.primitives.families import Elementwise, Primitive
    from heterosis.ir.program import Program, Value
    from heterosis.ir.strided import Strided

NATIVE, XLA = "native", "xla"
INSIDE, FILE = "inside", "file"  # where the parameters of a library are


class Executable(NamedTuple):
    """A compiled program. `run(operands)` gives its results, an array each.

    Operands are arrays, and Python's numbers for the inputs that are numbers. Results have memory
    of their own; whoever captured the program sees to those that share an operand's. A `plan`
    makes them so by itself: the core runs it without Python.
    """

    run: Callable[[Sequence[Any]], tuple[Any, ...]]
    plan: _core.Plan | None = None


class SizedExecutable(ABC):
    """A compiled program whose extents are open."""

    @abstractmethod
    def at(self, values: Mapping[str, int]) -> Executable:
        """What runs it where the names of its sizes have these values."""

    @property
    def plans(self) -> tuple[tuple[str, ...], _core.SizedPlans] | None:
        """What gives the core plans for the values of these names, in order, without Python."""
        return None


class _EachSize(SizedExecutable):
    """A program that is compiled for every size by itself."""

    def __init__(
        self,
        backend: Backend,
        program: Program,
        layouts: Sequence[Strided | None],
        fixed: Collection[int],
        written: Mapping[int, int],
    ):
        self.backend, self.program, self.layouts = backend, program, layouts
        self.fixed, self.written = fixed, written

    def at(self, values: Mapping[str, int]) -> Executable:
        from heterosis.ir import resizing

        program = resizing.resized(self.program, resizing.at(values), calls=False)
        layouts = resizing.without_gaps(program, self.layouts)
        return self.backend.compile_writing(program, layouts, self.fixed, self.written)


class Entry(NamedTuple):
    """A program to be exported under a name, for callers who give the `inputs`: a label, the value
    in the program, and its position among the program's inputs, or -1 if nothing depends on it.
    The other inputs are the arrays that are `held`, by position, and floats that follow from sizes,
    as expressions of Python. `outputs` are labels.

    The extents that it leaves open have names; `values` are ones for which the `conditions` hold.
    For others there may be `special` programs, of the same inputs and outputs, in which some of the
    names are `ones`."""

    name: str
    program: Program
    inputs: tuple[tuple[str, Value, int], ...]
    held: Mapping[int, _core.ndarray]
    outputs: tuple[str, ...]
    floats: Mapping[int, str] = {}
    values: Mapping[str, int] = {}
    conditions: tuple[str, ...] = ()
    ones: tuple[str, ...] = ()
    special: tuple[Entry, ...] = ()


class LibraryOptions(NamedTuple):
    """For what `targets` (kinds of processors; none: this one's) a library is written, how many
    `threads` may share a run, and whether its parameters are `INSIDE` or in a `FILE`."""

    targets: tuple[str, ...] = ()
    threads: int = 1
    weights: str = INSIDE


class JoinedExecutable(ABC):
    """A program compiled for several processes, which all run it together."""

    @property
    @abstractmethod
    def text(self) -> str:
        """What is run, in the back end's own language: with what the processes send."""

    @abstractmethod
    def run(self, operands: Sequence[Any]) -> tuple[Any, ...]:
        """Its results, whole in every process. Operands that are split are this process's part."""

    @abstractmethod
    def note_written(self) -> None:
        """Take note that what a run gives has been written into operands, as in all processes."""


class Processes(ABC):
    """Processes that run programs as one, each with a part of the batch."""

    rank: int
    num_workers: int
    devices_each: int  # of every process

    @abstractmethod
    def compile(self, program: Program, split: Collection[int]) -> JoinedExecutable:
        """How to run `program`, whose inputs at the positions `split` are divided along their first
        axis, a part a process."""

    @abstractmethod
    def agree(self, call: str, numbers: str = "", *, flag: bool = False) -> bool:
        """Raise in all processes unless each of them is about to make the same call with the same
        numbers; gives whether any has the flag."""

    @abstractmethod
    def added_up(self, mine: numpy.ndarray) -> numpy.ndarray:
        """The sum over all processes."""

    @abstractmethod
    def of_one(self, root: int, mine: numpy.ndarray) -> numpy.ndarray:
        """What the process `root` gives."""

    @abstractmethod
    def from_parts(self, part: _core.ndarray, shape: tuple[int, ...]) -> _core.ndarray:
        """The array of all processes, of that shape, of which each gives its rows."""

    @abstractmethod
    def divide(self, array: _core.ndarray) -> None:
        """Let each process keep its rows alone of an array that all have together."""

    @abstractmethod
    def leave(self) -> None:
        """End what joins them."""


class Backend(ABC):
    """Compiles programs for some machine."""

    @abstractmethod
    def compile(
        self, program: Program, layouts: Sequence[Strided], fixed: Collection[int] = ()
    ) -> Executable:
        """How to run `program`, which is closed and well formed, on inputs that lie as `layouts`
        say.

        Inputs at the positions `fixed` seldom change, as parameters, and where there are some, no
        gradients will be asked for: what depends on these alone may be computed once, and again
        when one was written to.
        """

    def compile_writing(
        self,
        program: Program,
        layouts: Sequence[Strided],
        fixed: Collection[int],
        written: Mapping[int, int],
    ) -> Executable:
        """The same, where after every run results take the places of inputs, which nobody reads in
        between: their memory may become results'. `written` has the positions of these results by
        those of the inputs, each of which shares its memory with no other."""
        return self.compile(program, layouts, fixed)

    def compile_sized(
        self,
        program: Program,
        layouts: Sequence[Strided | None],
        fixed: Collection[int] = (),
        written: Mapping[int, int] = MappingProxyType({}),
    ) -> SizedExecutable:
        """How to run `program` at any values of its sizes. Where no layout is given, the input
        lies without gaps."""
        return _EachSize(self, program, layouts, fixed, written)

    def library(
        self, entries: Sequence[Entry], name: str, options: LibraryOptions
    ) -> dict[str, bytes]:
        """Files by their names: a shared library that runs these programs without Python, and its
        header in C."""
        raise UnsupportedError(
            f"export: the back end {type(self).__name__} writes no libraries. Export what was "
            "hybridized for the native one."
        )

    def join(self, coordinator: str, num_workers: int, rank: int) -> Processes:
        """Join so many processes, of which this one is number `rank`, through an address of the
        first one's."""
        raise UnsupportedError(
            f"the back end {type(self).__name__} runs in one process alone. Use backend='xla', or "
            "a kvstore, 'mpi'."
        )

    @property
    def processes(self) -> Processes:
        """Those that have been joined."""
        raise UnsupportedError(
            f"hybridize: a sharding is for backend='xla'; {type(self).__name__} runs programs in "
            "one process."
        )

    @abstractmethod
    def has(self, primitive: Primitive) -> bool:
        """Whether programs may contain `primitive`."""

    @abstractmethod
    def is_dear(self, primitive: Elementwise) -> bool:
        """Whether an element takes longer to compute than to write and read: derivatives then get
        it from the run of their program, and else compute it again."""


class EagerBackend(Backend):
    """Runs single operations, too, as plans that the core keeps by their signatures."""

    @abstractmethod
    def plan(
        self,
        program: Program,
        layouts: Sequence[Strided],
        targets: Sequence[Strided] | None,
        *,
        views: bool,
        in_place: bool = False,
    ) -> _core.Plan:
        """How to run `program`, of one operation, on operands that lie as `layouts` say.

        With `targets`, arrays that lie so are written instead of new ones. With `in_place`, the one
        of them is the first operand, and keeps what the program leaves as it is. With `views`,
        results that only rearrange an operand share its memory.
        """


def _native() -> Backend:
    from heterosis.backends.native import Native

    return Native()


def _xla() -> Backend:
    from heterosis.backends.xla import Xla

    return Xla()


_makers: dict[str, Callable[[], Backend]] = {NATIVE: _native, XLA: _xla}
_made: dict[str, Backend] = {}


def register(name: str, make: Callable[[], Backend]) -> None:
    """Let `hybridize(backend=name)` compile by what `make()` gives, called on first use."""
    _makers[name] = make
    _made.pop(name, None)


def names() -> tuple[str, ...]:
    """The back ends that there are."""
    return tuple(_makers)


def available() -> tuple[str, ...]:
    """Those of which everything that they need is installed."""
    return tuple(filter(_is_available, _makers))


def _is_available(name: str) -> bool:
    try:
        named(name)
    except MissingPackageError:
        return False
    return True


def named(name: str) -> Backend:
    """The back end of that name."""
    if name not in _made:
        if name not in _makers:
            raise ArgumentError(
                f"there is no back end {name!r}; known are {', '.join(map(repr, _makers))}. Give "
                "one of these to hybridize, or make yours known with heterosis.backends.register."
            )
        _made.setdefault(name, _makers[name]())  # of threads that come at once, one is first
    return _made[name]


def here(name: str) -> Backend:
    """The back end of that name for arrays of the current context; those on GPUs are XLA's."""
    found = of_device(_core.current_device())
    if found is not None and name not in (NATIVE, XLA):
        raise UnsupportedError(
            f"the back end {name!r} computes in main memory, and the arguments are on a GPU. Call "
            "with arrays that are there, or hybridize without naming a back end."
        )
    return found or named(name)


def eager(device: int) -> EagerBackend:
    """The back end of operations that are called one by one, on arrays of this device."""
    return of_device(device) or cast(EagerBackend, named(NATIVE))


_remote: dict[int, EagerBackend] = {}


def of_device(device: int) -> EagerBackend | None:
    """The one back end that computes on a device, if that has memory of its own."""
    if device < _core.first_remote:
        return None
    if device not in _remote:
        from heterosis.backends.xla.remote import Remote

        _remote.setdefault(device, Remote(device))
    return _remote[device]


# What a GPU's driver makes, NVIDIA's or AMD's: without them JAX is not asked, which takes its time.
_DRIVERS = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")


def _count_gpus() -> int:
    if not settings.stand_in_gpus and not any(map(os.path.exists, _DRIVERS)):
        return 0
    try:
        return len(_gpus().devices())
    except ImportError:  # no JAX
        return 0


def wait_all() -> None:
    """Until all that has been begun, here and on GPUs, is done."""
    _core.wait_all()
    if _remote:
        _gpus().wait_all()


def _gpus() -> Any:
    from heterosis.backends.xla import gpus

    return gpus


set_gpus(_count_gpus, lambda number: _gpus().room(number))
_core.set_hook("brought", lambda array, number: _gpus().brought(array, number))
_core.set_hook("wait_remote", lambda array: _gpus().wait(array))
_core.set_hook("remote_dlpack_device", lambda array: _gpus().dlpack_device(array))
_core.set_hook("remote_dlpack", lambda array: _gpus().to_dlpack(array))
