"""Parameters from files: everything is checked before anything is changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from heterosis import np, npx
from heterosis.gluon.parameter import Contexts, Parameter, listed_contexts
from heterosis.gluon.utils import listed
from heterosis.runtime.errors import ArgumentError


def read(filename: str) -> dict[str, np.ndarray]:
    """The arrays in a file by name."""
    found = npx.load(filename)
    if not isinstance(found, dict):
        if found:
            raise ArgumentError(
                f"{filename} holds {len(found)} arrays without names; parameters are found by name."
            )
        return {}
    return found


def load_all(
    parameters: Mapping[str, Parameter],
    arrays: Mapping[str, np.ndarray],
    source: str,
    ctx: Contexts,
    *,
    allow_missing: bool,
    ignore_extra: bool,
    cast_dtype: bool,
    dtype_source: str,
) -> None:
    """Give each parameter the array of its name, or raise one error with all that is wrong."""
    if dtype_source not in ("current", "saved"):
        raise ArgumentError(f"dtype_source={dtype_source!r}; expected 'current' or 'saved'.")
    if ctx is not None:
        listed_contexts(ctx)
    problems = [
        *([] if allow_missing else _missing(parameters, arrays)),
        *([] if ignore_extra else _extra(parameters, arrays)),
        *_unfit(parameters, arrays, cast_dtype and dtype_source == "current",
                cast_dtype and dtype_source == "saved"),
    ]  # fmt: skip
    _refuse(problems, source)
    for name, array in arrays.items():
        if name in parameters:
            parameters[name].load(array, ctx, dtype_source=dtype_source if cast_dtype else "")


def check_all(
    parameters: Mapping[str, Parameter], arrays: Mapping[str, np.ndarray], source: str
) -> None:
    """Raise one error with all that is wrong, unless names, shapes and element types are equal."""
    problems = [*_missing(parameters, arrays), *_extra(parameters, arrays)]
    _refuse([*problems, *_unfit(parameters, arrays)], source)


def _refuse(problems: list[str], source: str) -> None:
    if problems:
        raise ArgumentError(
            f"{source} does not fit the network; nothing was loaded:\n  " + "\n  ".join(problems)
        )


def _missing(parameters: Mapping[str, Parameter], arrays: Mapping[str, Any]) -> list[str]:
    """A shared parameter is there if it is there under one of its names."""
    there = {id(p) for name, p in parameters.items() if name in arrays}
    names = [name for name, p in parameters.items() if id(p) not in there]
    if not names:
        return []
    remedy = f"the file has {listed(arrays)}; allow_missing=True leaves them as they are"
    return [f"missing: {', '.join(map(repr, names))} ({remedy})"]


def _extra(parameters: Mapping[str, Parameter], arrays: Mapping[str, Any]) -> list[str]:
    names = [name for name in arrays if name not in parameters]
    if not names:
        return []
    remedy = f"it has {listed(parameters)}; ignore_extra=True leaves them out"
    return [f"not in the network: {', '.join(map(repr, names))} ({remedy})"]


def _unfit(
    parameters: Mapping[str, Parameter], arrays: Mapping[str, np.ndarray], *casts: bool
) -> list[str]:
    found = []
    for name, array in arrays.items():
        problem = parameters[name].load_problem(array, any(casts)) if name in parameters else None
        if problem:
            found.append(f"{name!r}: {problem}")
    return found
