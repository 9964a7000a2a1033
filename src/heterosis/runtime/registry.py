"""Classes by name, so that a string or a line of JSON can stand for an object."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from typing import Any

from heterosis.runtime.errors import ArgumentError


class Registry:
    """The subclasses of one class by their names in lower case."""

    def __init__(self, base: type, kind: str):
        self.base, self.kind = base, kind
        self.classes: dict[str, type] = {}

    def register(self, made: type, name: str | None = None) -> type:
        """Let `create` find a class, under its own name unless another is given."""
        if not (isinstance(made, type) and issubclass(made, self.base)):
            raise ArgumentError(
                f"register: {made!r} is no {self.kind}; derive it from {self.base.__name__}."
            )
        name = (name or made.__name__).lower()
        if name in self.classes:
            warnings.warn(f"the {self.kind} {name!r} is registered anew.", stacklevel=2)
        self.classes[name] = made
        return made

    def alias(self, *names: str) -> Callable[[type], type]:
        """Let `create` find the decorated class under further names."""

        def register(made: type) -> type:
            for name in names:
                self.register(made, name)
            return made

        return register

    def create(self, *arguments: Any, **keywords: Any) -> Any:
        """An object by its class's name, or by JSON: `["name", {...}]` or `{"...": ...}`."""
        if not arguments and self.kind not in keywords:
            raise ArgumentError(f"create: no {self.kind} is named; known are {self._known()}.")
        given, *rest = arguments or (keywords.pop(self.kind),)
        if isinstance(given, self.base):
            self._check_alone(given, rest, keywords)
            return given
        if isinstance(given, dict) and all(isinstance(key, str) for key in given):
            return self.create(**given)
        if not isinstance(given, str):
            raise ArgumentError(
                f"create: {given!r} names no {self.kind}; expected a string or an object of "
                f"{self.base.__name__}."
            )
        if given.startswith(("[", "{")):
            self._check_alone(given, rest, keywords)
            return self._from_json(given)
        return self.find(given)(*rest, **keywords)

    def find(self, name: str) -> type:
        """The class of that name."""
        try:
            return self.classes[name.lower()]
        except KeyError:
            raise ArgumentError(
                f"no {self.kind} is called {name!r}; known are {self._known()}. Classes of your "
                "own are made known with register."
            ) from None

    def _known(self) -> str:
        return ", ".join(sorted(self.classes))

    def _from_json(self, text: str) -> Any:
        try:
            given = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ArgumentError(f"create: {text[:200]!r} is no JSON: {error}.") from None
        if isinstance(given, dict) and all(isinstance(key, str) for key in given):
            return self.create(**given)
        if [type(part) for part in given] != [str, dict]:
            raise ArgumentError(f'create: {text[:200]!r}; expected JSON ["name", {{...}}].')
        name, keywords = given
        return self.create(name, **keywords)

    def _check_alone(self, given: Any, rest: Any, keywords: Any) -> None:
        if rest or keywords:
            raise ArgumentError(
                f"create: {given!r} says all; further arguments have no place. Leave them out, "
                "or give the name of a class."
            )
