"""Random functions that print, raise and assert within choices and loops that arrays decide, as
text: what they tell, in which order, and how they end, is to be the same however they run.

The numbers are small integers in floats, so that no way of running rounds. Loops count their turns.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy

_NAMES = ("a", "b", "c")
_WRITTEN = "d"  # by no other name, or it could not be told what a write changes
_ERRORS = ("ValueError", "KeyError", "RuntimeError", "ZeroDivisionError", "Own")
_DEEPEST = 3


class Writer:
    """Writes one function, line by line."""

    def __init__(self, rng: numpy.random.Generator):
        self._rng = rng
        self._marks = 0  # what prints and errors are told apart by
        self._counters = 0
        self._helpers: list[str] = []

    def source(self) -> str:
        """The module's text: `program(a, b)`, what it calls before it."""
        body = ["c, d = a * 1, b * 0", *self._block(0, self._whole(3, 7), loop=False)]
        lines = ["def program(a, b):", *_indented([*body, "return a, b, c, d * 1"])]
        return "\n".join([*self._helpers, *lines]) + "\n"

    # -- choosing -----------------------------------------------------------------------------

    def _whole(self, low: int, high: int) -> int:
        return int(self._rng.integers(low, high + 1))

    def _chance(self, part: float) -> bool:
        return bool(self._rng.random() < part)

    def _of(self, *choices: str) -> str:
        return choices[self._whole(0, len(choices) - 1)]

    def _mark(self) -> int:
        self._marks += 1
        return self._marks

    # -- expressions --------------------------------------------------------------------------

    def _value(self) -> str:
        one, other = self._of(*_NAMES), self._of(*_NAMES, "1", "2", f"{_WRITTEN} * 1")
        return self._of(f"{one} + {other}", f"{one} - {other}", f"{one}[::-1]", f"-{one}",
                        f"np.minimum({one}, {other})", f"np.where({one} > 0, {one}, {other})",
                        f"{one} % 5")  # fmt: skip

    def _test(self) -> str:
        name, bound = self._of(*_NAMES), self._whole(-4, 6)
        test = self._of(
            f"{name}.sum() > {bound}", f"{name}.max() < {bound}", f"{name}[0] == {bound}",
            f"{name}.min() <= {self._of(*_NAMES)}.max() - {bound}", f"not {name}[1] >= {bound}",
            f"{bound} < {name}[2] < {bound + 4}",
        )  # fmt: skip
        if self._chance(0.25):
            test = f"{test} {self._of('and', 'or')} {self._of(*_NAMES)}.sum() > {bound - 2}"
        return test

    # -- statements ---------------------------------------------------------------------------

    def _block(self, depth: int, many: int, *, loop: bool) -> list[str]:
        lines = [line for _ in range(many) for line in self._statement(depth, loop=loop)]
        return lines or ["pass"]

    def _statement(self, depth: int, *, loop: bool) -> list[str]:
        kinds = ["assign", "assign", "write", "print", "print", "assert", "raise", "call"]
        if depth < _DEEPEST:
            kinds += ["choice", "choice", "choice", "while", "rows", "range", "finally"]
        if loop:
            kinds += ["leave"]
        if depth > 0:
            kinds += ["return"]
        found: list[str] = getattr(self, f"_{self._of(*kinds)}")(depth, loop)
        return found

    def _assign(self, depth: int, loop: bool) -> list[str]:
        return [f"{self._of(*_NAMES)} = {self._value()}"]

    def _write(self, depth: int, loop: bool) -> list[str]:
        place = _WRITTEN + self._of("[0]", "[1:]", "[...]", "[::2]")
        return [f"{place} {self._of('=', '+=', '-=')} {self._whole(1, 4)}"]

    def _print(self, depth: int, loop: bool) -> list[str]:
        values = ", ".join(self._of(*_NAMES, _WRITTEN) for _ in range(self._whole(0, 2)))
        return [f"npx.print({self._mark()}{', ' if values else ''}{values})"]

    def _assert(self, depth: int, loop: bool) -> list[str]:
        message = f", 'broken {self._mark()}'" if self._chance(0.8) else ""
        name = self._of(*_NAMES)
        usual = self._of(f"{name}.sum() < 40", f"{name}.max() > -30", f"{name}[0] != 11")
        return [f"assert {usual if self._chance(0.7) else self._test()}{message}"]

    def _raise(self, depth: int, loop: bool) -> list[str]:
        error = self._of(*_ERRORS)
        given = f"('stopped {self._mark()}')" if self._chance(0.8) else ""
        rare = f"{self._of(*_NAMES)}[{self._whole(0, 2)}] == {self._whole(5, 9)}"
        test = rare if self._chance(0.7) else self._test()
        return [f"if {test}:", *_indented([f"raise {error}{given}"])]

    def _call(self, depth: int, loop: bool) -> list[str]:
        """A function that may print, raise, and return early."""
        if depth > 1 or len(self._helpers) > 30:
            return self._print(depth, loop)
        number = self._mark()
        name, result = f"called_{number}", self._of(*_NAMES)
        body = ["c, d = a * 1, b * 0", *self._block(_DEEPEST - 1, self._whole(1, 4), loop=False)]
        ending = f"return {self._of(*_NAMES)}"
        body = [
            line.replace("return a, b, c, d * 1", f"return {self._of(*_NAMES)}") for line in body
        ]
        self._helpers += [f"def {name}(a, b):", *_indented([*body, ending])]
        return [f"{result} = {name}({self._of(*_NAMES)}, {self._of(*_NAMES)})"]

    def _choice(self, depth: int, loop: bool) -> list[str]:
        lines: list[str] = []
        for i in range(self._whole(1, 2)):
            block = self._block(depth + 1, self._whole(1, 3), loop=loop)
            lines += [f"{'elif' if i else 'if'} {self._test()}:", *_indented(block)]
        if self._chance(0.6):
            block = self._block(depth + 1, self._whole(1, 3), loop=loop)
            lines += ["else:", *_indented(block)]
        return lines

    def _while(self, depth: int, loop: bool) -> list[str]:
        self._counters += 1
        counter = f"turns_{self._counters}"
        block = self._block(depth + 1, self._whole(1, 3), loop=True)
        test = f"{counter} < {self._whole(1, 4)}"
        if self._chance(0.6):
            test += f" and {self._of(*_NAMES)}.sum() < {self._whole(5, 30)}"
        head = [f"{counter} = np.array(0)", f"while {test}:"]
        return [*head, *_indented([f"{counter} = {counter} + 1", *block])]

    def _rows(self, depth: int, loop: bool) -> list[str]:
        name, row = self._of(*_NAMES), f"row_{self._mark()}"
        block = self._block(depth + 1, self._whole(1, 3), loop=True)
        return [f"for {row} in {name} + 0:", *_indented([f"b = b + {row} % 3", *block])]

    def _range(self, depth: int, loop: bool) -> list[str]:
        turn = f"turn_{self._mark()}"
        bound = self._of("2", "3", f"np.abs({self._of(*_NAMES)}[0]).astype('int64') % 4")
        block = self._block(depth + 1, self._whole(1, 3), loop=True)
        return [f"for {turn} in range({bound}):", *_indented([f"a = a + {turn}", *block])]

    def _finally(self, depth: int, loop: bool) -> list[str]:
        block = self._block(depth + 1, self._whole(1, 2), loop=False)
        block = [line for line in block if "return" not in line]
        return ["try:", *_indented(["a = a + 1", *_complete(block)]),
                "finally:", *_indented(self._print(depth, loop))]  # fmt: skip

    def _leave(self, depth: int, loop: bool) -> list[str]:
        return [f"if {self._test()}:", *_indented([self._of("break", "continue")])]

    def _return(self, depth: int, loop: bool) -> list[str]:
        return [f"if {self._test()}:", *_indented(["return a, b, c, d * 1"])]


def _indented(lines: list[str]) -> Iterator[str]:
    return ("    " + line for line in lines)


def _complete(lines: list[str]) -> list[str]:
    """Lines from which some were left out, with something in each block."""
    found: list[str] = []
    for i, line in enumerate(lines):
        found.append(line)
        own = len(line) - len(line.lstrip())
        following = lines[i + 1] if i + 1 < len(lines) else ""
        if line.endswith(":") and len(following) - len(following.lstrip()) <= own:
            found.append(" " * (own + 4) + "pass")
    return found


def source(seed: int) -> str:
    """The text of the function with this number."""
    return Writer(numpy.random.default_rng(seed)).source()
