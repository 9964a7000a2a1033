"""What needs the elements of an array while a program is captured, and what to write instead.

The core tells only that elements are read. Who reads them, and why, follows from where that is:
from the functions of ours between the user's line and the reading, and from the expression there.
"""

from __future__ import annotations

import ast
import dis
import itertools
import linecache
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from types import CodeType, FrameType, TracebackType
from typing import TypeVar

from heterosis.capture.reach import Users
from heterosis.capture.syntax import FLOW
from heterosis.ir.types import TensorType
from heterosis.runtime.errors import CaptureError, HeterosisError
from heterosis.runtime.lines import PACKAGE

PAGE = "docs/blockers.md"
E = TypeVar("E", bound=HeterosisError)

_AS_IT_IS = (
    "This function is called by Python itself, or by a library: its statements are left as they "
    "are."
)


@dataclass(frozen=True)
class Blocker:
    """One kind: its heading on the page, why it cannot be a part of a program, and the cure."""

    heading: str
    why: str
    cure: str

    def message(self, place: str, type_: object) -> str:
        """What is raised: the user's line, why, what to do, and where there is more."""
        return (
            f"{place}\n  {self.why.format(array=f'an array {type_}')}\n  {self.cure}\n"
            f"  More: {PAGE}, '{self.heading}'."
        )


_NONE_YET = "and while the program is captured there are none yet"

CONVERTED = Blocker(
    "An array becomes NumPy's, or a list",
    f"This needs the elements of {{array}}, {_NONE_YET}.",
    "Compute with the functions of np and npx, which become part of the program, and convert what "
    "the hybridized function returns. To see elements in every run, npx.print(x).",
)
NUMBER = Blocker(
    "An array becomes a number",
    f"A number of Python's needs the elements of {{array}}, {_NONE_YET}.",
    "Leave it an array: one without dimensions adds, multiplies and compares as a number does, and "
    "np has the functions of math.",
)
LIBRARY = Blocker(
    "A function of NumPy, or of another library",
    f"A function that is none of ours needs the elements of {{array}}, {_NONE_YET}.",
    "Take the function of that name from np or npx, or call it on what the hybridized function "
    "returns.",
)
HOST = Blocker(
    "A function that runs outside of programs",
    f"This function has no operation: it runs at once, on the elements of {{array}}, {_NONE_YET}.",
    "Write it with operations of np and npx, or call it on what the hybridized function returns.",
)
EXTENT = Blocker(
    "A number of elements, an axis or a size is an array",
    "How large a result is has to be known when the program is captured, and {array} has no "
    "elements yet.",
    "Give a number of Python's, from a shape or an argument; or keep the whole array and mask it: "
    "np.where(np.arange(len(x)) < n, x, 0).",
)
SHAPE = Blocker(
    "A shape depends on values",
    "How many elements this gives depends on those of {array}, and the shapes of a program are "
    "known when it is captured.",
    "Keep the shape and choose within: np.where(mask, x, 0), x * mask, (x * mask).sum(). Or select "
    "behind the hybridized function.",
)
CONDITION = Blocker(
    "An if that cannot become a choice",
    "Whether this holds depends on {array}, which has no elements yet, and it stands where no "
    "choice can be made of it.",
    "Write an if, while or for statement in a function of your own, or np.where.",
)
COMPARED = Blocker(
    "Python sorts or compares arrays",
    "In which order these come depends on {array}, which has no elements yet.",
    "Use np.sort, np.argsort, np.maximum and np.minimum, x.max() and x.min().",
)
MEMBER = Blocker(
    "in asks what an array holds",
    "Whether something is in there depends on {array}, which has no elements yet.",
    "Compare with arrays: (x == value).any().",
)
INDEX = Blocker(
    "An item of a list is chosen by an array",
    "Which item this is depends on {array}, which has no elements yet.",
    "Make one array of the items, np.stack(items)[n], or write an if.",
)
TEXT = Blocker(
    "An array is formatted",
    f"A text with digits needs the elements of {{array}}, {_NONE_YET}.",
    "npx.print(x) prints in every run. Format what the hybridized function returns.",
)
FILE = Blocker(
    "A file is written",
    f"Writing to a file needs the elements of {{array}}, {_NONE_YET}; and it would happen once.",
    "Save what the hybridized function returns.",
)
LEAKED = Blocker(
    "An array has leaked",
    "It is {array}, which was a value of a program while that was captured, and never holds "
    "elements. Now it is read: it has leaked, through an attribute, a list, or a global or a "
    "closure's variable.",
    "Return it from the hybridized function, and keep what the call returns.",
)
HASHED = Blocker(
    "An array is a key",
    "Arrays have no hash: which key it is would depend on elements, and while a program is "
    "captured there are none yet.",
    "Use numbers, texts or tuples of these as keys; choose among arrays with np.where or an if.",
)
BLOCKERS = (
    CONVERTED, NUMBER, LIBRARY, HOST, EXTENT, SHAPE, CONDITION, COMPARED, MEMBER, INDEX, TEXT, FILE,
    LEAKED, HASHED,
)  # fmt: skip

# By the function of ours that the user has called, or that does what the user has written.
_BY_FUNCTION = {
    "asnumpy": CONVERTED, "tolist": CONVERTED, "reduce_": CONVERTED, "dlpack": CONVERTED,
    "as_numpy": LIBRARY, "contains": MEMBER, "save": FILE, "load": HOST, "load_parameters": HOST,
    "format_array": TEXT, "to_text": TEXT, "representation": TEXT,
    "bincount": SHAPE, "unique": SHAPE, "nonzero": SHAPE, "argwhere": SHAPE, "flatnonzero": SHAPE,
    "where": SHAPE, "repeat": SHAPE, "boolean_mask": SHAPE,
}  # fmt: skip
_OF_HOST = {
    "compress": SHAPE, "extract": SHAPE, "delete": SHAPE, "trim_zeros": SHAPE, "union1d": SHAPE,
    "intersect1d": SHAPE, "setdiff1d": SHAPE, "setxor1d": SHAPE, "unique_values": SHAPE,
    "save": FILE, "savetxt": FILE, "savez": FILE,
}  # fmt: skip
_BY_CALL = {
    "float": NUMBER, "int": NUMBER, "bool": NUMBER, "complex": NUMBER, "item": NUMBER,
    "sorted": COMPARED, "max": COMPARED, "min": COMPARED, "sort": COMPARED,
    "memoryview": CONVERTED, "wait_to_read": CONVERTED, "format": TEXT,
}  # fmt: skip


_BY_INSTRUCTION = {
    "CONTAINS_OP": MEMBER, "BINARY_SUBSCR": INDEX, "BINARY_OP": TEXT, "BINARY_MODULO": TEXT,
}  # fmt: skip


def read_error(type_: TensorType) -> CaptureError:
    """What is raised where the elements of an array of a type are read."""
    frame, names = _user_frame()
    text = expression(frame)
    blocker = _blocker(names, _instruction(frame), text, type_)
    reason = f"\n  {_AS_IT_IS}" if blocker is CONDITION and not _is_rewritten(frame) else ""
    users = _users(frame)
    place = _place(users, text if users is frame else expression(users))
    error = CaptureError(blocker.message(place, type_) + reason)
    # The user's frame is told of, also where somebody catches the error before it gets there.
    return error.with_traceback(TracebackType(None, frame, max(frame.f_lasti, 0), frame.f_lineno))


def is_operator() -> bool:
    """Whether the user's line computes with an operator, or compares, and calls no function."""
    name = _instruction(_user_frame()[0])
    return name.startswith(("BINARY_", "INPLACE_", "COMPARE_")) and name != "BINARY_SUBSCR"


def is_condition(error: HeterosisError) -> bool:
    """Whether it tells of an `if` that is left as it is."""
    return f"More: {PAGE}, '{CONDITION.heading}'." in str(error)


def leaked_message(type_: TensorType, function: str, line: str) -> str:
    """What reading an array says whose capture has ended; a line of `function` has made it."""
    head, tail = _LEAKED  # every array of a capture gets one
    return f"An array of {function}, made at {line}{head}an array {type_}{tail}"


_LEAKED = LEAKED.message("", "{array}").split("an array {array}")


def hash_error(error: TypeError) -> CaptureError:
    """What is raised where an array is to be a key, which has raised an error."""
    entry = [entry for entry in _entries(error) if not _is_ours(entry.tb_frame)][-1]
    text = expression(entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    place = _place(entry.tb_frame, text, entry.tb_lineno)
    return CaptureError(HASHED.message(place, "")).with_traceback(error.__traceback__)


# -- who reads -------------------------------------------------------------------------------------


def _user_frame() -> tuple[FrameType, list[str]]:
    """The user's frame, and the functions of ours that it has called, that one first."""
    frame = sys._getframe(1)
    names: list[str] = []
    while frame.f_back is not None and _is_ours(frame):
        name = frame.f_code.co_name
        if not frame.f_code.co_filename.startswith(_CAPTURE) and name not in _READING:
            names.insert(0, name)
        frame = frame.f_back
    return frame, names


def _users(frame: FrameType) -> FrameType:
    """The nearest frame of users' code, where one of a library reads elements; the frame itself, if
    there is none."""
    one: FrameType | None = frame
    while one is not None and not _USERS.is_module(str(one.f_globals.get("__name__"))):
        one = one.f_back
    return one or frame


def _is_ours(frame: FrameType) -> bool:
    """Whether code is ours, also what dataclasses have made of it."""
    module = str(frame.f_globals.get("__name__"))
    return frame.f_code.co_filename.startswith(PACKAGE) or module.startswith("heterosis.")


def _blocker(names: Sequence[str], instruction: str, text: str, type_: TensorType) -> Blocker:
    for name in names:
        if name in _BY_FUNCTION:
            return _BY_FUNCTION[name]
    called = _called(text)
    if "call_on_host" in names:
        return _OF_HOST.get(called.rpartition(".")[2], HOST)
    if "getitem" in names:
        return SHAPE if type_.dtype == "bool" else EXTENT
    if names not in ([], ["item"]):
        return EXTENT
    if "CALL" in instruction:  # of something that is none of ours
        module, _, name = called.rpartition(".")
        return NUMBER if module == "math" else _BY_CALL.get(name, NUMBER if names else LIBRARY)
    return _BY_INSTRUCTION.get(instruction, CONDITION) if names else LIBRARY


def _instruction(frame: FrameType) -> str:
    """What Python does there."""
    return dis.opname[frame.f_code.co_code[frame.f_lasti]] if frame.f_lasti >= 0 else ""


def _called(text: str) -> str:
    """The function that an expression calls; nothing, if that is no name."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        return ""
    return ast.unparse(tree.func) if isinstance(tree, ast.Call) else ""


def _is_rewritten(frame: FrameType) -> bool:
    """Whether statements there have become calls; a comprehension is a part of what is around."""
    code = frame.f_code
    return FLOW in (*code.co_freevars, *code.co_cellvars) or code.co_name.startswith("<")


# -- the user's line -------------------------------------------------------------------------------


def _place(frame: FrameType, text: str, line: int = 0) -> str:
    code = frame.f_code
    return f"{code.co_filename}:{line or frame.f_lineno} in {_path(code)}: {_shortened(text)}"


def _path(code: CodeType) -> str:
    """Where a function stands: the names around it, and its own."""
    return getattr(code, "co_qualname", code.co_name).replace(".<locals>", "")


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 3]}..."


def expression(frame: FrameType, lasti: int = -1, line: int = 0) -> str:
    """What the frame computes now, or at an instruction; its line, where that is not known."""
    code = frame.f_code
    lines = linecache.getlines(code.co_filename, frame.f_globals)
    first: int | None = line or frame.f_lineno
    last = start = end = None
    if sys.version_info >= (3, 11):
        at = (frame.f_lasti if lasti < 0 else lasti) // 2
        first, last, start, end = next(itertools.islice(code.co_positions(), at, None))
    if not first or first > len(lines):
        return ""
    if last is None or start is None or end is None:
        return lines[first - 1].strip()
    found = [line.encode() for line in lines[first - 1 : last]]
    found[-1] = found[-1][:end]
    found[0] = found[0][start:]
    # Of a call that has been put in place of what the user wrote, Python takes the place for empty.
    return b"".join(found).decode(errors="replace").strip() or lines[first - 1].strip()


def without_inner_frames(error: BaseException) -> None:
    """Leave our frames below the user's last one out of the traceback, and between the user's."""
    entries = _entries(error)
    users = list({id(one.tb_frame): one for one in entries if not _is_ours(one.tb_frame)}.values())
    chain: TracebackType | None = None
    for entry in reversed(users):
        chain = TracebackType(chain, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    if chain is not None:
        error.__traceback__ = chain


def with_users_line(error: E) -> E:
    """An error of a capture whose message begins with the user's line: the one at work in the
    function, or the one that has called it."""
    message = str(error)
    if _PLACE.match(message):
        return error
    entries = [one for one in _entries(error) if not _is_ours(one.tb_frame)]
    if entries:
        frame, lasti, line = entries[-1].tb_frame, entries[-1].tb_lasti, entries[-1].tb_lineno
    else:
        frame = _user_frame()[0]
        lasti, line = frame.f_lasti, frame.f_lineno
    place = _place(frame, expression(frame, lasti, line), line)
    error.args = (f"{place}\n  {message}",)
    return error


def _entries(error: BaseException) -> list[TracebackType]:
    entries, entry = [], error.__traceback__
    while entry is not None:
        entries.append(entry)
        entry = entry.tb_next
    return entries


_PLACE = re.compile(r"\S.*:\d+ in ")
_USERS = Users(frozenset())
_READING = ("shared", "to_numpy")  # of whatever reads elements
_CAPTURE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_LONGEST = 90
