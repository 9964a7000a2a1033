"""From Python to programs: `hybridize` runs a function once to capture what it computes, compiles
that as a whole, and from then on makes one native call of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar, overload

from heterosis.autograd import function as _function
from heterosis.backends import NATIVE as _NATIVE
from heterosis.backends import Entry
from heterosis.capture import control as _control
from heterosis.capture import functions as _functions
from heterosis.capture import hooks as _hooks
from heterosis.capture import statements as _statements
from heterosis.capture import texts as _texts
from heterosis.capture.active import (
    count_from,
    depend_on,
    depend_on_all,
    opened,
    require,
    scope,
    supplied,
    written_where,
)
from heterosis.capture.attempts import capture
from heterosis.capture.compiled import Compiled
from heterosis.capture.open_sizes import Dynamic
from heterosis.runtime.arguments import check_members as _check_members
from heterosis.runtime.errors import ArgumentError

if TYPE_CHECKING:
    from heterosis.capture.loading import Loaded
    from heterosis.capture.sharded import Sharding

_hooks.install()
_control.install()
_statements.install()
_texts.install()
_function.set_embed(_functions.embedded)


class _Hybridizable(Protocol):
    """A block: what hybridizes itself."""

    def hybridize(self, active: bool = True, **flags: Any) -> None: ...


_P = ParamSpec("_P")
_R = TypeVar("_R")
_Block = TypeVar("_Block", bound=_Hybridizable)


@overload
def hybridize(
    function: None = None,
    *,
    backend: str = ...,
    dynamic: Dynamic = ...,
    check: bool = ...,
    sharding: Sharding | None = ...,
    **flags: Any,
) -> Callable[[Callable[_P, _R]], Compiled[_P, _R]]: ...
@overload
def hybridize(
    function: _Block,
    *,
    backend: str = ...,
    dynamic: Dynamic = ...,
    check: bool = ...,
    **flags: Any,
) -> _Block: ...
@overload
def hybridize(
    function: Callable[_P, _R],
    *,
    backend: str = ...,
    dynamic: Dynamic = ...,
    check: bool = ...,
    sharding: Sharding | None = ...,
    **flags: Any,
) -> Compiled[_P, _R]: ...
def hybridize(
    function: Any = None,
    *,
    backend: str = _NATIVE,
    dynamic: Any = "auto",
    check: bool = False,
    sharding: Sharding | None = None,
    **flags: Any,
) -> Any:
    """`function` of arrays, compiled: call it, or write `@hybridize` above its definition.

    It is captured at its first call, and again for arguments of other types, or values that are
    no arrays. The second call in which an extent is another one captures a program that leaves it
    open, for all that come then. `dynamic=True` leaves all extents open at once,
    `dynamic={"x": (0,)}` those of axes of parameters, and `dynamic=False` none. A block is
    hybridized itself, and returned. `backend` names what compiles the program and its derivatives:
    "native", for this processor, "xla", which needs JAX, or one that was made known with
    `heterosis.backends.register`. What other hybridized functions call becomes part of theirs.
    Flags that others know, as `jit_compile`, are taken and change nothing.

    With `check`, the first runs of each program are compared with what the function gives as Python
    runs it; `CheckError` names the first operation that differs.

    With a `sharding`, several processes call the function together, each with its part of the
    batch, and it computes what one process would of the whole: see `heterosis.distributed`.
    """
    if function is None:
        return lambda given: hybridize(
            given, backend=backend, dynamic=dynamic, check=check, sharding=sharding, **flags
        )
    if sharding is not None:
        from heterosis.capture.sharded import sharded

        return sharded(function, backend, sharding, dynamic, check)
    if hasattr(function, "hybridize"):
        function.hybridize(backend=backend, dynamic=dynamic, check=check, **flags)
        return function
    if not callable(function):
        raise ArgumentError(
            f"hybridize: got {function!r}; expected a function of arrays, or a HybridBlock."
        )
    if isinstance(function, Compiled):
        return function.compiled_by(backend, check=check)
    return Compiled(function, backend, dynamic, check=check)


def save(net: Any, path: str | os.PathLike[str], /, *inputs: Any, **keywords: Any) -> None:
    """Write what `net`, a function or a block, computes, to a file for `load`.

    The file has a program for each kind of arguments that a hybridized `net` was called with, and
    one for `inputs` and `keywords` if they are given; their elements do not matter.
    """
    if hasattr(net, "save_program"):
        net.save_program(path, *inputs, **keywords)
    else:
        compiled = net if isinstance(net, Compiled) else hybridize(net)
        compiled.save(path, *inputs, **keywords)


def export(
    net: Any,
    path: str | os.PathLike[str],
    /,
    *inputs: Any,
    target: str | Sequence[str] | None = None,
    threads: int = 1,
    weights: str = "inside",
    dynamic: Dynamic | None = None,
) -> tuple[str, str]:
    """Write what `net`, a function or a block, predicts as a library that needs no Python.

    For a path that ends in `my_mlp` these are `libmy_mlp.so`, `my_mlp.h` and `heterosis.h`; the
    names of the first two are returned. There is an entry for each kind of arguments that a
    hybridized `net` was called with, and one for `inputs` if they are given. The library holds
    the parameters and needs libc and libm at most. It runs on processors like this one, or those
    of a `target`: "x86-64", "x86-64-v3" (AVX2), "x86-64-v4" (AVX-512) or "aarch64-linux". With
    several, in a tuple, it holds code and parameters for each, and chooses where it runs. At most
    `threads` may share a run, one unless said otherwise; results are those of as many here. With
    `weights="file"` the parameters are in `libmy_mlp.weights`, which is mapped into memory.

    Extents are those of the inputs, unless `dynamic`, here or of `hybridize`, is True, or axes by
    the names of parameters, as {"x": (0,)}: then programs take all sizes that they can.
    """
    from heterosis.capture.exporting import export, options_of

    options = options_of(target, threads, weights)
    if hasattr(net, "export_native"):
        return net.export_native(path, *inputs, options=options, dynamic=dynamic)  # type: ignore[no-any-return]

    compiled = net if isinstance(net, Compiled) else hybridize(net)
    return export(compiled, path, (inputs, {}), options, dynamic=dynamic)


def entry_of(net: Any, *inputs: Any, dynamic: Dynamic | None = None) -> Entry:
    """What `net`, a function or a block, predicts for `inputs`, or for what it was called with: one
    program, for files that hold one."""
    from heterosis.capture.exporting import entry_of

    if hasattr(net, "entry_of"):
        return net.entry_of(*inputs, dynamic=dynamic)  # type: ignore[no-any-return]
    compiled = net if isinstance(net, Compiled) else hybridize(net)
    return entry_of(compiled, (inputs, {}), dynamic=dynamic)


def load(path: str | os.PathLike[str]) -> Loaded:
    """A callable that computes what was saved, the same bit for bit, without the Python of it.

    Its arguments have the names that they had. `inputs` and `outputs` describe the arrays.
    """
    from heterosis.capture.loading import load

    return load(path)


_check_members(globals())

__all__ = [
    "Compiled", "Dynamic", "Entry", "capture", "count_from", "depend_on", "depend_on_all",
    "entry_of", "export", "hybridize", "load", "opened", "require", "save", "scope", "supplied",
    "written_where",
]  # fmt: skip
