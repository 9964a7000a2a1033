"""The native core: arrays, dependency engine, dispatch, memory, code loading.

Element types go by name ("float32"); strides and offsets count elements unless said otherwise.
"""

from collections.abc import Callable, Iterator, Sequence
from inspect import Signature
from typing import Any, Generic, ParamSpec, TypeAlias, TypedDict, TypeVar, final

import numpy
from typing_extensions import Self

from heterosis._stubs.methods import ArrayMethods

# -- arrays ---------------------------------------------------------------------------------------

class ndarray(ArrayMethods):
    """An n-dimensional array, computed asynchronously."""

    __hash__: None  # type: ignore[assignment]
    _autograd: Any
    _is_detached: bool  # whether what recorded calls write to its memory is not its own

    def __new__(cls, *arguments: Any, **keywords: Any) -> Self: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def ndim(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def itemsize(self) -> int: ...
    @property
    def dtype(self) -> numpy.dtype[Any]: ...
    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one index to the next, a dimension."""
    @property
    def T(self) -> ndarray: ...
    @property
    def _dtype_name(self) -> str: ...
    @property
    def _element_strides(self) -> tuple[int, ...]: ...
    @property
    def _contiguous(self) -> bool:
        """Row-major without gaps."""
    @property
    def _ready(self) -> bool:
        """Whether all queued writes are done."""
    @property
    def _device(self) -> int:
        """The number of its context."""
    _elements: Any  # what has its memory's elements, where that is on a device
    @property
    def _storage_nbytes(self) -> int:
        """Bytes of its memory."""
    @property
    def _dlpack_device(self) -> tuple[int, int]:
        """DLPack's numbers for its device."""
    @property
    def _storage_id(self) -> int:
        """Equal for views of one memory."""
    @property
    def _version(self) -> int:
        """How many writes into its memory were issued."""
    @property
    def _state(self) -> tuple[int, ...] | None:
        """What differs once its elements may be others; None where others hold its address, and may
        write them unseen."""
    @property
    def _covers_storage(self) -> bool:
        """Whether it is no part of more."""
    _is_followed: bool  # whether a recorded call has written into its memory
    _has_variable: bool  # whether its memory is that of a variable, which gradients are left for
    def _alias(self) -> ndarray:
        """The same array as an object that no gradient flows through."""
    def _count_write(self) -> None:
        """Note a write that the core has not made."""

    def _view(self, key: Any) -> ndarray:
        """The view that a basic key selects, which no gradient flows through."""
    def wait_to_read(self) -> None:
        """Wait until all queued writes are done; raises what went wrong in them."""
    def _number(self) -> bool | int | float | None:
        """The only element; None of several, and where it has to be read through NumPy."""
    def _address(self, writable: bool) -> int:
        """Address of the first element, ready to be read or written."""
    def __dlpack__(self, **keywords: Any) -> Any: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[ndarray]: ...
    def __getitem__(self, key: Any) -> ndarray: ...
    def __setitem__(self, key: Any, value: Any) -> None: ...
    def __bool__(self) -> bool: ...
    def __int__(self) -> int: ...
    def __float__(self) -> float: ...
    def __index__(self) -> int: ...
    def __add__(self, other: Any) -> ndarray: ...
    def __radd__(self, other: Any) -> ndarray: ...
    def __iadd__(self, other: Any) -> Self: ...
    def __sub__(self, other: Any) -> ndarray: ...
    def __rsub__(self, other: Any) -> ndarray: ...
    def __isub__(self, other: Any) -> Self: ...
    def __mul__(self, other: Any) -> ndarray: ...
    def __rmul__(self, other: Any) -> ndarray: ...
    def __imul__(self, other: Any) -> Self: ...
    def __truediv__(self, other: Any) -> ndarray: ...
    def __rtruediv__(self, other: Any) -> ndarray: ...
    def __itruediv__(self, other: Any) -> Self: ...
    def __floordiv__(self, other: Any) -> ndarray: ...
    def __rfloordiv__(self, other: Any) -> ndarray: ...
    def __ifloordiv__(self, other: Any) -> Self: ...
    def __mod__(self, other: Any) -> ndarray: ...
    def __rmod__(self, other: Any) -> ndarray: ...
    def __imod__(self, other: Any) -> Self: ...
    def __pow__(self, other: Any) -> ndarray: ...
    def __rpow__(self, other: Any) -> ndarray: ...
    def __ipow__(self, other: Any) -> Self: ...
    def __matmul__(self, other: Any) -> ndarray: ...
    def __rmatmul__(self, other: Any) -> ndarray: ...
    def __and__(self, other: Any) -> ndarray: ...
    def __rand__(self, other: Any) -> ndarray: ...
    def __iand__(self, other: Any) -> Self: ...
    def __or__(self, other: Any) -> ndarray: ...
    def __ror__(self, other: Any) -> ndarray: ...
    def __ior__(self, other: Any) -> Self: ...
    def __xor__(self, other: Any) -> ndarray: ...
    def __rxor__(self, other: Any) -> ndarray: ...
    def __ixor__(self, other: Any) -> Self: ...
    def __lshift__(self, other: Any) -> ndarray: ...
    def __rlshift__(self, other: Any) -> ndarray: ...
    def __ilshift__(self, other: Any) -> Self: ...
    def __rshift__(self, other: Any) -> ndarray: ...
    def __rrshift__(self, other: Any) -> ndarray: ...
    def __irshift__(self, other: Any) -> Self: ...
    def __neg__(self) -> ndarray: ...
    def __pos__(self) -> ndarray: ...
    def __abs__(self) -> ndarray: ...
    def __invert__(self) -> ndarray: ...
    def __lt__(self, other: Any) -> ndarray: ...
    def __le__(self, other: Any) -> ndarray: ...
    def __eq__(self, other: object) -> ndarray: ...  # type: ignore[override]
    def __ne__(self, other: object) -> ndarray: ...  # type: ignore[override]
    def __gt__(self, other: Any) -> ndarray: ...
    def __ge__(self, other: Any) -> ndarray: ...

def array_from_bytes(
    source: bytes | memoryview | numpy.ndarray[Any, Any], dtype: str, shape: Sequence[int]
) -> ndarray:
    """A new array with the bytes of `source`, which lie in row-major order without gaps."""

def empty(dtype: str, shape: Sequence[int]) -> ndarray:
    """A new array whose elements are not set."""

def unreadable(
    dtype: str, shape: Sequence[int], message: str, extents: tuple[int, ...] | None = None
) -> ndarray:
    """An array without elements: reading it raises a CaptureError with `message`.

    With `extents`, these are its shape, integers that follow from sizes: they are `shape` in the
    call at hand."""

def view(base: ndarray, shape: Sequence[int], strides: Sequence[int], offset: int) -> ndarray:
    """Another view of the same memory, which it must not leave."""

def reinterpret(source: ndarray, dtype: str) -> ndarray:
    """The same bits as elements of another type of the same width."""

def from_dlpack(capsule: Any) -> ndarray:
    """An array over the memory of a DLPack capsule."""

# -- operations -----------------------------------------------------------------------------------

_P = ParamSpec("_P")
_R = TypeVar("_R")

class _Record(Generic[_P, _R]):
    """`heterosis.ops.record.Record`."""

    @property
    def function(self) -> Callable[_P, _R]: ...
    def __getattr__(self, name: str) -> Any: ...
    def __setattr__(self, name: str, value: Any) -> None: ...

class Operation(Generic[_P, _R]):
    """A callable that dispatches: known signatures run without entering Python."""

    __name__: str
    __qualname__: str
    __signature__: Signature
    def __new__(
        cls, record: Any, name: str, parameters: tuple[tuple[str, int, Any, bool], ...]
    ) -> Self: ...
    def __call__(self, *arguments: _P.args, **keywords: _P.kwargs) -> _R: ...
    def each(self, calls: Sequence[tuple[tuple[Any, ...], Any]]) -> None:
        """Call with every (positional arguments, out) of a list: one native call."""
    def __get__(self, instance: Any, owner: type | None = None, /) -> Callable[..., Any]: ...
    @property
    def record(self) -> _Record[_P, _R]:
        """What the operation is: the registry's record."""
    @property
    def at(self) -> Callable[[ndarray, Any, Any], None]:
        """`at(a, indices, b)`: elements of `a` at places combined with `b`, in place."""
    @property
    def plans(self) -> int:
        """Signatures seen so far."""

class Plan:
    """How to run an operation on operands of one signature."""

_Result: TypeAlias = tuple[str, Sequence[int], int, Sequence[int], int]

def make_plan(
    operation: str,
    function: Function | None,
    integers: Sequence[int],
    workspace: int,
    nanoseconds: float,
    elementwise: bool,
    results: list[_Result],
    failures: list[tuple[str, str]],
    in_place: bool,
    over: Sequence[int],
    /,
) -> Plan:
    """A plan that calls `function`, and keeps its machine code; None where nothing is to be run.

    A result is (dtype, shape, operand it is a view of or -1, strides, offset); a failure is
    (error class, message) for the codes 1, 2, ... in the low 16 bits of what the function returns.
    `in_place`: it changes its first operand where that stands. `over` has, for each result, which
    array may become it where that stands, or -1; nothing, if there are none.
    """

def make_remote_plan(
    operation: str,
    function: Callable[[tuple[ndarray, ...], tuple[Any, ...], tuple[ndarray, ...]], None],
    reals: list[bool],
    results: list[tuple[str, tuple[int, ...], int, tuple[int, ...], int]],
) -> Plan:
    """What `function(arrays, numbers, results)` runs, on a device: it sets the `_elements` of the
    results that are no views; `reals` says which numbers are floats."""

def fail_as(array: ndarray, other: ndarray) -> None:
    """Let reads of an array on a device raise what those of `other` do."""

first_remote: int  # the number of the first device that has memory of its own
of_processes: int  # that of the device of arrays that several processes have together

def with_preparation(
    plan: Plan, preparation: Plan, ahead: Sequence[int], own: Sequence[int]
) -> Plan:
    """A plan that runs `plan` on the arrays at the positions `own`, and on the results of
    `preparation` for all: made anew where those at the positions `ahead` have changed. Positions
    count arrays alone."""

_Words: TypeAlias = Sequence[int]  # as `heterosis.ir.formulas` makes them

class Prepared:
    """What is computed ahead of plans that share it, when the first of them has run."""

class SizedPlans:
    """Plans for ranges of sizes, `most` of them: the newest are asked first. `prove` is called with
    the range and the sizes of each plan."""

    def __init__(
        self, most: int, prove: Callable[[int, Sequence[int]], None] | None, /
    ) -> None: ...
    def add(
        self,
        sizes: int,
        table: _Words,
        conditions: int,
        plan: tuple[Any, ...],
        preparation: tuple[Any, ...] | None,
        prepared: Prepared | None,
        ahead: Sequence[int],
        own: Sequence[int],
        /,
    ) -> None:
        """Add a range of so many sizes, which holds where the first rows of the table do.

        A plan has the fields of `make_plan`, with words in place of numbers; a failure has texts,
        and the numbers between these."""

    def at(self, sizes: Sequence[int], /) -> tuple[Plan | None, int]:
        """The plan for sizes, None if it has no room, and which range they are in; -1 for none."""

def evaluated(sizes: Sequence[int], table: _Words, /) -> list[int] | None:
    """The results of a table of formulas; None if they do not hold, or are too large."""

def run_plan(plan: Plan, operands: Sequence[ndarray | float | None]) -> tuple[ndarray, ...]:
    """The results of a plan that no operation keeps."""

def is_recording() -> bool:
    """Whether operations of this thread are recorded for gradients."""

def set_recording(on: bool) -> None: ...
def is_training() -> bool:
    """Whether this thread computes for training."""

def set_training(on: bool) -> None: ...
def is_imperative() -> bool:
    """Whether this thread runs hybridized functions as Python does, with no program."""

def set_imperative(on: bool) -> None: ...

class Guards:
    """What a program was made of, each row a kind, a place and what was there.

    ("namespace", dict or class, [(name[, value]), ...], names): no other of the names is there;
    ("dict", dict, items); ("cell", cell[, value]); ("slot", object, name[, value]);
    ("sequence", list, set or deque, items); ("buffer", exporter, bytes); ("array", array, bytes).
    Values are the same if they are one object, or equal numbers, texts, and tuples of such.
    """

    def __init__(self, rows: Sequence[tuple[Any, ...]]) -> None: ...
    def holds(self) -> bool:
        """Whether everything is as it was."""

class Checked:
    """A function as it is; what it raises, `refuse(function, arguments, keywords, error)` turns
    into what callers see. `expect(function)` gives for each parameter its name, the types that it
    surely admits (None: everything), and the least integer, alone and in a tuple of integers,
    or None; of other arguments `look(function, arguments, keywords)` decides before the call,
    by raising."""

    __wrapped__: Callable[..., Any]
    def __init__(
        self,
        function: Callable[..., Any],
        refuse: Callable[
            [Callable[..., Any], tuple[Any, ...], dict[str, Any], BaseException], BaseException
        ],
        expect: Callable[
            [Callable[..., Any]],
            Sequence[tuple[str, tuple[type, ...] | None, int | None, int | None]],
        ] = ...,
        look: Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any]], None] = ...,
    ) -> None: ...
    def __call__(self, *arguments: Any, **keywords: Any) -> Any: ...

# What the core is told of a program: sources, what is returned, writes, supply, record, guards,
# constants.
#
# Sources are positions of arguments, arrays from outside, None for random keys, and for numbers
# ("supplied", position) and ("known", position). What is returned is ("array", i), a result of the
# plan or, as -1 - i, an input; ("constant", object); ("tuple", items), ("list", items) or
# ("dict", items, keys). Writes are a result, the input that it is written into, and whether
# gradients flow there. `supply` gives the supplied numbers of a run, `record` is told of inputs and
# results; with `constants`, arguments must be no variables.
_Told: TypeAlias = tuple[Any, ...]

class Replay:
    """Calls that captured programs serve; `slow` is called where none does."""

    def __init__(self, slow: Callable[..., Any]) -> None: ...
    def __call__(self, *arguments: Any, **keywords: Any) -> Any: ...
    def add(
        self,
        arguments: tuple[Any, ...],
        keywords: dict[str, Any],
        plan: Plan,
        numbers: Sequence[float],
        program: _Told,
        /,
    ) -> bool:
        """Serve calls with arguments like these while the guards hold; False if that cannot be. The
        numbers are those that are known."""

    def add_open(
        self,
        arguments: tuple[Any, ...],
        keywords: dict[str, Any],
        places: Sequence[tuple[int, int, int]],
        least: int,
        most: int,
        names: int,
        table: _Words,
        plans: SizedPlans,
        planned: Sequence[int],
        numbers: _Words,
        program: _Told,
        example: Any,
        /,
    ) -> bool:
        """The same for arguments with other numbers at some places.

        A place is an array, a dimension and the number of its name; or -1, a position among
        Python's numbers, and the name. Of so many names, of which sizes are from `least` to below
        `most`, the table has what must hold, and the numbers that are known; `planned` are those
        that the plans are for."""

    def served(self) -> list[tuple[Any, dict[int, int]]]:
        """The examples of open programs that have served calls, each with the sizes of one by the
        numbers of their names."""

def is_capturing() -> bool:
    """Whether operations of this thread become part of a program instead of being run."""

def set_capturing(on: bool) -> None: ...
def switch_modes(
    recording: object, training: object, capturing: object, imperative: object, /
) -> tuple[bool, bool, bool, bool]:
    """Set those that are not None, to the truth of what is given; returns how all four were."""

def set_operator(name: str, operation: Operation[..., Any]) -> None:
    """Let arrays' operator `name` call `operation`."""

def note_views_of(operations: Sequence[Operation[..., Any]]) -> None:
    """Tell the hook `view_written` of writes into views that these operations make, transposing and
    indexing included; without operations, of none."""

def hand_over(given: list[Any], array: ndarray) -> bool:
    """Give the elements of the only array of a list to another array, and empty the list, if nobody
    else has it, and it could stand where the other one does: whether that has been done."""

@final
class Entry:
    """A result of a node of the tape, as it was when `version` writes into its memory had been
    issued."""

    node: Any
    index: int
    version: int
    def __init__(self, node: Any, index: int, version: int, /) -> None: ...

def followed(name: str, operands: Sequence[Any], result: Any) -> tuple[Any, ...]:
    """What gradient recording keeps of each operand of a call, None of what is no array. The hook
    "check_operand" raises where gradients could not follow to what an operand holds; it is asked of
    those of which this is in doubt. One that is the `result` has been written to once more."""

def attach(node: Any, results: Sequence[ndarray], positions: list[int]) -> None:
    """Let gradients that reach the results at these positions go to `node`."""

def as_now(values: Sequence[Any]) -> tuple[Any, ...]:
    """Each array as it is now: a pair of itself, as an object that no gradient flows through, and
    its version; other values as they are."""

def unchanged(name: str, held: Sequence[Any]) -> list[Any]:
    """The arrays of such pairs, which a derivative of the call `name` needs as they were; the hook
    "changed_since" raises where one has been written to since."""

def strides_of(values: Sequence[Any]) -> tuple[tuple[int, ...] | None, ...]:
    """Strides in elements of each of some values; None of what is no array."""

def tell_of_write(array: ndarray) -> None:
    """Call the hook `view_written` if the array is a view that is told of."""

def set_hook(name: str, function: Any) -> None:
    """Give the core a Python function for what it does not do itself."""

def set_error_class(kind: str, error_class: type[BaseException]) -> None:
    """Give the core the class that it raises for a kind of error."""

def set_package_folder(folder: str) -> None:
    """Lines in files under `folder` are not the user's: errors name the first line outside."""

# -- the engine -----------------------------------------------------------------------------------

class EngineCounters(TypedDict):
    executed: int
    skipped: int
    inlined: int
    outstanding_tasks: int
    outstanding_bytes: int
    peak_tasks: int
    peak_bytes: int

def wait_all() -> None:
    """Wait until nothing is queued or running; raises the first error not reported yet."""

def set_profiling(on: bool) -> None:
    """Note when operations run, or no longer."""

def take_profile() -> list[tuple[str, int, int, int, int, bool]]:
    """Operations that ran since the last time: name, nanoseconds of the monotonic clock when it
    was issued, began and ended, the thread, and whether that is the lane's."""

def engine_counters() -> EngineCounters: ...
def reset_engine_peaks() -> None: ...
def set_engine_bounds(tasks: int, bytes: int) -> None:
    """How much may be outstanding before the front end waits."""

def set_inline_nanoseconds(limit: float) -> None:
    """Work estimated above this is queued; smaller work with ready inputs runs at once."""

def inline_nanoseconds() -> float: ...
def current_device() -> int:
    """The number of the context that the calling thread makes arrays on."""

def set_current_device(device: int) -> None: ...
def device_of(name: str, arrays: list[ndarray]) -> int:
    """The device that all arrays are on, the current one if there are none; raises, in the name of
    who asks, where they are on several."""

def call_in_lane(
    operation: str,
    function: Callable[[memoryview | None, str | None], object],
    array: ndarray,
    order: ndarray,
) -> None:
    """Queue a call of `function` on the lane, a thread that computes nothing, as a write of `array`
    and of `order`: calls with the same `order` come one after the other. The array has no gaps.

    It is given the array's memory, which it may write until it returns, and no error; or None, and
    what the error says that the array holds. What it raises is the array's error then.
    """

def threads() -> int:
    """Threads that may compute at once."""

def set_threads(count: int) -> None: ...
def intra_op_threads() -> int:
    """Of these, the threads that may share one kernel's work."""

def set_intra_op_threads(count: int) -> None: ...
def shutdown() -> None:
    """Finish what is queued and end the threads."""

def hold_front_lock() -> None:
    """Keep other threads out of the core until `release_front_lock`, around a fork.

    Nothing where Python's interpreter lock does so."""

def release_front_lock() -> None: ...

# -- memory ---------------------------------------------------------------------------------------

class MemoryCounters(TypedDict):
    live: int
    peak: int
    cached: int
    limit: int
    cache_limit: int

def memory_counters() -> MemoryCounters:
    """Bytes: in arrays now, at most, kept for reuse, and the bounds on the first and the third."""

def reset_memory_peak() -> None: ...
def set_memory_limit(bytes: int) -> None: ...
def set_memory_cache_limit(bytes: int) -> None: ...
def empty_memory_cache() -> None: ...

# -- random numbers -------------------------------------------------------------------------------

def seed(seed: int) -> None:
    """Start the sequence of keys anew."""

def random_key() -> int:
    """The next key."""

def random_state() -> tuple[int, int]:
    """(seed, keys drawn since)."""

def restore_random_state(seed: int, drawn: int) -> None: ...

# -- machine code ---------------------------------------------------------------------------------

class LoadError(RuntimeError):
    """An object file that cannot be loaded."""

class Function:
    """Machine code that plans call: it stays as long as this, or one of them, does."""

    @property
    def address(self) -> int: ...

class LoadedObject:
    """Machine code in memory; its addresses are valid while it lives."""

    def address(self, name: str) -> int:
        """The address of an external symbol it defines."""
    def function(self, name: str) -> Function:
        """The function that an external symbol is, for plans: it keeps the code."""
    @property
    def is_used(self) -> bool:
        """Whether a function of it is held, by a plan or here: it may be called."""
    @property
    def symbols(self) -> list[tuple[str, int, int]]:
        """(name, address, bytes) of its external symbols and its internal functions."""
    @property
    def size(self) -> int:
        """Bytes of memory it holds, in whole pages."""

def load_object(file: bytes) -> LoadedObject:
    """Put a relocatable ELF object for this processor into executable memory."""

def register_symbol(name: str, address: int) -> None:
    """Let objects loaded from now on call `address`."""

def cpu_features() -> list[str]:
    """Instruction set extensions at hand, in LLVM's names."""

def relocation_types(machine: int) -> list[tuple[int, str]]:
    """The (type, name) of the relocations that can be loaded for an ELF machine number."""
