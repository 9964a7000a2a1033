"""The layout of `core/abi.h`, as the code generator sees it. Change both together."""

from __future__ import annotations

from collections.abc import Sequence

from heterosis.backends.native.codegen.emit.builder import I64, PTR, Function, Size, Type, Value

# Fields of `hx_call` and `hx_runtime`: every one is eight bytes wide.
_CALL = {"buffers": 0, "integers": 1, "scalars": 2, "workspace": 3, "runtime": 4}
_RUNTIME = {"pool": 0, "parallel_for": 1, "workers": 2}

ENTRY = "entry"  # the function that a plan runs
LOOP_BODY_PARAMETERS = [("context", PTR), ("begin", I64), ("end", I64), ("worker", I64)]


def _field(f: Function, struct: Value, slot: Size, type_: Type = PTR) -> Value:
    """A field, read once a function if the function's first block, which all others follow,
    reads it: nothing ever changes while the function runs."""
    return f.once((struct, slot, type_), lambda: f.load(type_, f.offset(PTR, struct, slot)))


def buffers(f: Function, call: Value) -> Value:
    """The addresses of the inputs and outputs."""
    return _field(f, call, _CALL["buffers"])


def buffer(f: Function, call: Value, index: int) -> Value:
    """The address of the first element of input or output number `index`."""
    return _field(f, buffers(f, call), index)


def integer(f: Function, call: Value, index: int) -> Value:
    """Size or stride number `index` of a function that is compiled for any size."""
    return _field(f, _field(f, call, _CALL["integers"]), index, I64)


def integers(f: Function, call: Value) -> Value:
    """Where all sizes and strides are."""
    return _field(f, call, _CALL["integers"])


def scalar(f: Function, call: Value, index: Size, type_: Type) -> Value:
    """Number argument `index`, stored as an int64 or a double: `type_` says which."""
    return _field(f, _field(f, call, _CALL["scalars"]), index, type_)


def workspace(f: Function, call: Value) -> Value:
    """The address of the scratch memory that the plan asked for."""
    return _field(f, call, _CALL["workspace"])


def with_workspace(
    f: Function, call: Value, workspace: Value, further: Sequence[Value] = ()
) -> Value:
    """The call with other scratch memory, and with `further` words behind its fields: a copy that
    lives until the function returns."""
    return _copy(f, call, "workspace", workspace, further)


def with_buffers(f: Function, call: Value, buffers: Value) -> Value:
    """The call with other inputs and outputs: a copy that lives until the function returns."""
    return _copy(f, call, "buffers", buffers)


def _copy(
    f: Function, call: Value, changed: str, value: Value, further: Sequence[Value] = ()
) -> Value:
    copy = f.allocate(PTR, len(_CALL) + len(further))
    for slot, word in enumerate(further, len(_CALL)):
        f.store(word, f.offset(PTR, copy, slot))
    for name, slot in _CALL.items():
        own = value if name == changed else _field(f, call, slot)
        f.store(own, f.offset(PTR, copy, slot))
    return copy


def further(f: Function, call: Value, index: int, type_: Type) -> Value:
    """Word number `index` behind the fields of a call that `with_workspace` made."""
    return _field(f, call, len(_CALL) + index, type_)


def set_integers(f: Function, copy: Value, integers: Value) -> None:
    """Give a copied call other sizes and strides."""
    f.store(integers, f.offset(PTR, copy, _CALL["integers"]))


def workers(f: Function, call: Value) -> Value:
    """How many shares of a parallel loop may run at the same time."""
    return _field(f, _field(f, call, _CALL["runtime"]), _RUNTIME["workers"], I64)


def grain_of(f: Function, work: Size, worth: int) -> Size:
    """How many turns of a loop, each of so much work, are worth a thread: one or more."""
    return f.max_size(1, f.div_size(worth, f.max_size(1, work)))


def parallel_for(
    f: Function,
    call: Value,
    body: str | Value,
    context: Value,
    count: Value | int,
    grain: Value | int,
) -> None:
    """Run `body`, one of the module's functions by name or the address of one, over `[0, count)`,
    shared between the pool's threads."""
    runtime = _field(f, call, _CALL["runtime"])
    pool = _field(f, runtime, _RUNTIME["pool"])
    entry = _field(f, runtime, _RUNTIME["parallel_for"])
    address = Value(PTR, f"@{body}") if isinstance(body, str) else body
    f.call_pointer(entry, [pool, address, context, f.i64(count), f.i64(grain)])
