"""Dictionaries of parameters by name."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, KeysView, Mapping, Sequence, ValuesView
from typing import Any

import numpy

from heterosis import initializer, np, npx
from heterosis.gluon import loading
from heterosis.gluon.parameter import Constant, Contexts, Parameter
from heterosis.gluon.utils import indented
from heterosis.ir.types import dtype_name
from heterosis.runtime.context import Context
from heterosis.runtime.errors import ArgumentError, UnknownKeyError

_ATTRIBUTES = ("shape", "dtype", "init", "grad_req", "lr_mult", "wd_mult")


class ParameterDict:
    """Parameters by name, in the order they were made; names start with `prefix`.

    `get` looks in `shared` before it makes a new parameter: so blocks share parameters.
    """

    def __init__(self, prefix: str = "", shared: ParameterDict | None = None):
        self._prefix, self.shared = prefix, shared
        self._params: dict[str, Parameter] = {}

    def __repr__(self) -> str:
        lines = "\n".join("  " + indented(repr(p), 4) for p in self.values())
        return f"{self._prefix + ' ' if self._prefix else ''}(\n{lines}\n)"

    def __getitem__(self, key: str) -> Parameter:
        return self._params[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._params)

    def __len__(self) -> int:
        return len(self._params)

    def __contains__(self, key: object) -> bool:
        return key in self._params

    def items(self) -> ItemsView[str, Parameter]:
        """Names and parameters."""
        return self._params.items()

    def keys(self) -> KeysView[str]:
        """The full names."""
        return self._params.keys()

    def values(self) -> ValuesView[Parameter]:
        """The parameters."""
        return self._params.values()

    @property
    def prefix(self) -> str:
        """What the names of new parameters start with."""
        return self._prefix

    # -- making parameters ------------------------------------------------------------------------

    def get(self, name: str, **attributes: Any) -> Parameter:
        """The parameter `prefix + name`, made with the attributes if there is none.

        An existing one must agree with the attributes; unknown extents of its shape are completed.
        """
        name = self._prefix + name
        parameter = self._found(name)
        if parameter is None:
            parameter = Parameter(name, **attributes)
            self._list(parameter)
            return parameter
        for key, value in attributes.items():
            _agree(parameter, key, value)
        return parameter

    def get_constant(self, name: str, value: Any = None) -> Constant:
        """The constant `prefix + name`, made from `value` if there is none."""
        name = self._prefix + name
        parameter = self._found(name)
        if parameter is None:
            if value is None:
                raise UnknownKeyError(f"there is no constant {name!r}; give a value to make one.")
            parameter = Constant(name, value)
            self._list(parameter)
        elif not isinstance(parameter, Constant):
            raise ArgumentError(f"{name!r} is a parameter already, and no constant; rename one.")
        elif value is not None and not _same(parameter.value, value):
            raise ArgumentError(f"constant {name!r} exists with another value; rename one of them.")
        return parameter

    def adopt(self, name: str, parameter: Parameter) -> None:
        """Take in a parameter that was made without a dictionary, and call it `prefix + name`."""
        name = self._prefix + name
        if self._found(name) is not None:
            raise ArgumentError(f"there is a parameter {name!r} already; rename one of them.")
        parameter.name = name
        self._list(parameter)

    def _list(self, parameter: Parameter) -> None:
        parameter.listed = True
        self._params[parameter.name] = parameter

    def _found(self, name: str) -> Parameter | None:
        if name not in self._params and self.shared is not None and name in self.shared:
            self._params[name] = self.shared[name]
        return self._params.get(name)

    def update(self, other: ParameterDict | Mapping[str, Parameter]) -> None:
        """Take in all parameters of `other`; a name must not mean two parameters."""
        for name, parameter in other.items():
            if self._params.get(name, parameter) is not parameter:
                raise ArgumentError(
                    f"two parameters have the name {name!r}: make the blocks in different name "
                    "scopes, or give them prefixes."
                )
        for parameter in other.values():
            parameter.listed = True
        self._params.update(other.items())

    def rename(self, prefix: str) -> None:
        """Put another prefix in front of all names that start with the present one."""
        old, self._prefix = self._prefix, prefix
        for name, parameter in list(self._params.items()):
            if name.startswith(old):
                del self._params[name]
                parameter.name = prefix + name[len(old) :]
                self._params[parameter.name] = parameter

    # -- all at once ------------------------------------------------------------------------------

    def initialize(
        self, init: Any = None, ctx: Contexts = None, verbose: bool = False,
        force_reinit: bool = False,
    ) -> None:  # fmt: skip
        """Initialise all parameters; `init` (uniform by default) serves those without their own."""
        init = initializer.Uniform() if init is None else initializer.create(init)
        if verbose:
            init.set_verbosity(verbose=True)
        for parameter in self.values():
            parameter.initialize(None, ctx, init, force_reinit)

    def zero_grad(self) -> None:
        """Set all gradients to 0."""
        for parameter in self.values():
            parameter.zero_grad()

    def reset_ctx(self, ctx: Contexts) -> None:
        """Move all parameters to other contexts."""
        for parameter in self.values():
            parameter.reset_ctx(ctx)

    def list_ctx(self) -> list[Context]:
        """The contexts that the parameters are initialised on."""
        return list({ctx for parameter in self.values() for ctx in parameter.list_ctx()})

    def setattr(self, name: str, value: Any) -> None:
        """Set an attribute, such as grad_req, of all parameters."""
        for parameter in self.values():
            setattr(parameter, name, value)

    # -- files ------------------------------------------------------------------------------------

    def save(self, filename: str, strip_prefix: str = "") -> None:
        """Write all parameters to a file, under their names without `strip_prefix`."""
        strangers = [name for name in self if not name.startswith(strip_prefix)]
        if strangers:
            raise ArgumentError(
                f"save: the names {strangers} do not start with strip_prefix={strip_prefix!r}; "
                "use Block.save_parameters, which does not depend on names."
            )
        start = len(strip_prefix)
        npx.save(filename, {name[start:]: p.merged_data() for name, p in self.items()})

    def load(
        self, filename: str, ctx: Contexts = None, allow_missing: bool = False,
        ignore_extra: bool = False, restore_prefix: str = "", cast_dtype: bool = False,
        dtype_source: str = "current",
    ) -> None:  # fmt: skip
        """Read parameters from a file whose names lack `restore_prefix`; all or nothing."""
        self.load_dict(
            loading.read(filename), ctx, allow_missing, ignore_extra, restore_prefix, filename,
            cast_dtype, dtype_source,
        )  # fmt: skip

    def load_dict(
        self, param_dict: Mapping[str, np.ndarray] | Sequence[tuple[str, np.ndarray]],
        ctx: Contexts = None, allow_missing: bool = False, ignore_extra: bool = False,
        restore_prefix: str = "", filename: str | None = None, cast_dtype: bool = False,
        dtype_source: str = "current",
    ) -> None:  # fmt: skip
        """Take values by name ('arg:' and 'aux:' in front are dropped); all or nothing."""
        given = {restore_prefix + _bare(name): array for name, array in dict(param_dict).items()}
        loading.load_all(
            self._params, given, filename or "param_dict", ctx, allow_missing=allow_missing,
            ignore_extra=ignore_extra, cast_dtype=cast_dtype, dtype_source=dtype_source,
        )  # fmt: skip


def _bare(name: str) -> str:
    return name[4:] if name.startswith(("arg:", "aux:")) else name


def _same(a: np.ndarray, b: Any) -> bool:
    b = b.asnumpy() if isinstance(b, np.ndarray) else numpy.asarray(b, dtype=a.dtype)
    return numpy.array_equal(a.asnumpy(), b)


def _agree(parameter: Parameter, key: str, value: Any) -> None:
    """Complete an attribute of an existing parameter, or raise if it says something else."""
    existing = getattr(parameter, key, None)
    if existing is None:
        setattr(parameter, key, value)
    elif key == "shape":
        parameter.shape = _merged(parameter, value)
    elif key == "dtype":
        if dtype_name(value) != dtype_name(existing):
            raise _disagreement(parameter, key, value, existing)
    elif key in _ATTRIBUTES and value is not None and value != existing:
        raise _disagreement(parameter, key, value, existing)


def _merged(parameter: Parameter, shape: int | tuple[int, ...]) -> tuple[int, ...]:
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    known = parameter.shape
    if len(shape) != len(known) or any(
        a != b and a > 0 and b > 0 for a, b in zip(shape, known, strict=True)
    ):
        raise _disagreement(parameter, "shape", shape, known)
    return tuple(a if a > 0 else b for a, b in zip(shape, known, strict=True))


def _disagreement(parameter: Parameter, key: str, value: Any, existing: Any) -> ArgumentError:
    return ArgumentError(
        f"parameter {parameter.name!r} exists with {key}={existing!r}, and {value!r} is asked for. "
        "Parameters can be shared between layers of the same sizes only."
    )


__all__ = ["ParameterDict"]
