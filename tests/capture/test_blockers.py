"""What cannot be a part of a program: each has an error of its own, with the user's line, why, the
cure, and the heading of the page that tells more."""

import dataclasses
import functools
import io
import logging
import math
import pdb  # noqa: T100 - it is what is tested
import pickle
import pprint
import re
import string
import sys
import traceback
from pathlib import Path

import numpy
import pytest

import heterosis
from heterosis import np, npx
from heterosis.capture import blockers
from heterosis.capture.blockers import (
    BLOCKERS,
    COMPARED,
    CONDITION,
    CONVERTED,
    EXTENT,
    FILE,
    HASHED,
    HOST,
    INDEX,
    LEAKED,
    LIBRARY,
    MEMBER,
    NUMBER,
    SHAPE,
    TEXT,
)
from heterosis.runtime.errors import CaptureError

pytestmark = pytest.mark.filterwarnings("ignore::heterosis.runtime.errors.CaptureWarning")
X = numpy.linspace(0, 2, 6, dtype="float32").reshape(2, 3)
PAGE = Path(__file__).parents[2] / blockers.PAGE


def _comprehension(x):
    return sum([row for row in x if row.sum() > 0])


def _generator(x):
    def rows():
        for row in x:
            if row.sum() > 0:
                yield row

    return sum(rows())


class Operator:
    def __matmul__(self, x):
        return x if x.sum() > 0 else -x


def _source_is_not_known(x):
    names = {}
    exec("def f(x):\n    return x if x.sum() > 0 else -x\n", names)  # noqa: S102
    return names["f"](x)


def _numpy_is_written_to(x):
    found = numpy.zeros((2, 3))
    found[...] = x
    return x


def _a_text_for_later(x):
    text = f"x is {x}"
    print(text)
    return x


def _a_number_is_a_text(x):
    count = 2 if x.sum() > 0 else 10
    return x * len(str(count))


def _in_a_branch(x):
    if x.sum() > 0:
        return np.array(x.asnumpy())
    return x


def _in_a_turn(x):
    y = x
    while y.sum() < 10:
        y = y + x.tolist()[0][0]
    return y


def _asserted(x):
    assert x.sum() < 100, f"too large: {x.sum():.2f}"
    return x


ROWS = [
    (lambda x: x.asnumpy(), CONVERTED),
    (lambda x: x.tolist(), CONVERTED),
    (_in_a_branch, CONVERTED),
    (_in_a_turn, CONVERTED),
    (lambda x: x.wait_to_read(), CONVERTED),
    (lambda x: memoryview(x), CONVERTED),
    (lambda x: pickle.dumps(x), CONVERTED),
    (lambda x: x * x.sum().item(), NUMBER),
    (lambda x: x * float(x.sum()), NUMBER),
    (lambda x: x * int(x.sum()), NUMBER),
    (lambda x: x * bool(x.sum()), NUMBER),
    (lambda x: x * math.exp(x.sum()), NUMBER),
    (lambda x: numpy.array(x), LIBRARY),
    (lambda x: numpy.asarray(x).sum() * x, LIBRARY),
    (lambda x: numpy.float32(x.sum()) * x, LIBRARY),
    (_numpy_is_written_to, LIBRARY),
    (lambda x: x * np.array_equal(x, x), HOST),
    (lambda x: x[: x.sum().astype("int64")], EXTENT),
    (lambda x: np.arange(x.sum().astype("int64")), EXTENT),
    (lambda x: np.zeros(x.sum().astype("int64")), EXTENT),
    (lambda x: x.reshape(x.sum().astype("int64"), -1), EXTENT),
    (lambda x: np.linspace(0, 1, x.sum().astype("int64")), EXTENT),
    (lambda x: np.random.uniform(size=x.sum().astype("int64")), EXTENT),
    (lambda x: x.sum(axis=x.argmax()), EXTENT),
    (lambda x: npx.one_hot(x[0].astype("int64"), x.max().astype("int64")), EXTENT),
    (lambda x: np.bincount(x[0].astype("int64")), SHAPE),
    (lambda x: x[x > 0], SHAPE),
    (lambda x: x * len(x[x > 0]), SHAPE),
    (lambda x: np.unique(x), SHAPE),
    (lambda x: np.nonzero(x), SHAPE),
    (lambda x: x.nonzero(), SHAPE),
    (lambda x: np.where(x > 0), SHAPE),
    (lambda x: np.argwhere(x), SHAPE),
    (lambda x: np.compress(x[:, 0] > 0, x, axis=0), SHAPE),
    (lambda x: np.repeat(x, x[0].astype("int64"), axis=1), SHAPE),
    (lambda x: x.repeat(x.sum().astype("int64")), SHAPE),
    (_comprehension, CONDITION),
    (_generator, CONDITION),
    (_source_is_not_known, CONDITION),
    (lambda x: Operator() @ x, CONDITION),
    (lambda x: sum(sorted([x.sum(), x.max()])) * x, COMPARED),
    (lambda x: max(x[0]) * x, COMPARED),
    (lambda x: min([x.sum(), x.max()], key=abs) * x, COMPARED),
    (lambda x: x if x.sum() in [0.0, 1.0] else -x, MEMBER),
    (lambda x: x if 0.5 in x else -x, MEMBER),
    (lambda x: [x, x * 2][x.argmax()], INDEX),
    (lambda x: x * len(f"{x.sum():.3f}"), TEXT),
    (lambda x: x * len("%.3f" % x.sum()), TEXT),  # noqa: UP031 - it is what is tested
    (lambda x: x * len("{:.2f}".format(x.sum())), TEXT),  # noqa: UP032
    (_asserted, TEXT),
    (lambda x: x * len(str(x)), TEXT),
    (lambda x: x * len(repr(x)), TEXT),
    (lambda x: x * len(f"{x}"), TEXT),
    (lambda x: x * len("%s" % x), TEXT),  # noqa: UP031
    (lambda x: x * len("{}".format(x)), TEXT),  # noqa: UP032
    (lambda x: x * len(str([x, 1])), TEXT),
    (lambda x: x * len("".join(map(str, [x, x]))), TEXT),
    (lambda x: sum(sorted([x, x], key=str)), TEXT),
    (_a_text_for_later, TEXT),
    (_a_number_is_a_text, TEXT),
    (lambda x: npx.save("x.params", {"x": x}), FILE),
    (lambda x: np.save("x.npy", x), FILE),
    (lambda x: x * hash(x), HASHED),
    (lambda x: {x: 1}, HASHED),
    (lambda x: x if x.sum() in {0.0: 1} else -x, HASHED),
]


@pytest.mark.parametrize("function, blocker", ROWS)
def test_each_has_an_error_of_its_own(function, blocker, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CaptureError) as caught:
        heterosis.hybridize(function)(np.array(X))
    message = str(caught.value)
    place, why, cure, page, *_ = message.split("\n")
    assert re.match(rf"({__file__}|<string>):\d+ in ", place)
    assert re.sub(r"an array \w+\[[\d, ]*\]", "{array}", why) == f"  {blocker.why}"
    assert cure == f"  {blocker.cure}"
    assert page == f"  More: {blockers.PAGE}, '{blocker.heading}'."
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("function, blocker", ROWS)
def test_no_frame_of_ours_stands_below_the_users(function, blocker, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CaptureError) as caught:
        heterosis.hybridize(function)(np.array(X))
    last = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert last.filename in (__file__, "<string>")


def test_the_expression_is_shown():
    def function(x):
        y = x * 2
        return y - float(y.mean())

    with pytest.raises(CaptureError) as caught:
        heterosis.hybridize(function)(np.array(X))
    first = str(caught.value).partition("\n")[0]
    line = function.__code__.co_firstlineno + 2
    assert first.startswith(f"{__file__}:{line} in test_the_expression_is_shown.function: ")
    assert first.endswith(": float(y.mean())" if sys.version_info >= (3, 11) else "(y.mean())")


def test_where_a_library_reads_the_users_line_is_shown():
    def function(x):
        return x * len(string.Template("$x").substitute(x=x))

    with pytest.raises(CaptureError, match="A text with digits") as caught:
        heterosis.hybridize(function)(np.array(X))
    assert str(caught.value).startswith(f"{__file__}:{function.__code__.co_firstlineno + 1} in ")


@dataclasses.dataclass
class _Held:
    x: object


def _shown(x):
    print(x, f"{x}", "%s" % x, "{}".format(x), [x], _Held(x))  # noqa: UP031, UP032
    pprint.pprint(x)
    for row in np.ones((9, 2)):
        print(row, f"{row!r}")
    logging.getLogger(__name__).warning("%s", x)


def test_texts_for_people_show_types(capsys, caplog):
    heterosis.hybridize(_shown)(np.array(X))
    text = "<array float32[2, 3] of a program>"
    row = "<array float32[2] of a program>"
    *lines, last = capsys.readouterr().out.splitlines()
    assert lines == [" ".join([*[text] * 4, f"[{text}]", f"_Held(x={text})"]), text]
    assert last == f"{row} {row}"
    assert text in caplog.text


def test_the_message_of_an_error_shows_types():
    def function(x):
        raise ValueError(f"{x}")

    with pytest.raises(ValueError, match=r"^<array float32\[2, 3\] of a program>$"):
        heterosis.hybridize(function)(np.array(X))


def test_a_text_of_an_array_that_is_known_is_watched():
    known = np.array([1.0, 2.0])
    function = heterosis.hybridize(lambda x: x * len(str(known)))
    assert function(np.array([1.0])).item() == len(str(known))
    known[0] = 1.5
    assert function(np.array([1.0])).item() == len(str(known))


def test_a_debugger_looks_at_arrays():
    found = io.StringIO()

    def function(x):
        debugger = pdb.Pdb(stdin=io.StringIO("p x\ncontinue\n"), stdout=found, nosigint=True)
        debugger.set_trace()
        return x * 2

    before = sys.gettrace()
    try:
        heterosis.hybridize(function)(np.array(X))
    finally:
        sys.settrace(before)
    assert "<array float32[2, 3] of a program>" in found.getvalue()


def test_the_page_has_all():
    text = PAGE.read_text()
    assert re.findall(r"^### (.*)$", text, re.MULTILINE) == [one.heading for one in BLOCKERS]
    for one in BLOCKERS:
        section = text.partition(f"### {one.heading}\n")[2].partition("\n### ")[0]
        shown = " ".join(section.split())
        assert f"More: {blockers.PAGE}, '{one.heading}'." in shown
        assert "**Why.**" in section
        assert "**Cure.**" in section


# -- arrays that leak ------------------------------------------------------------------------------


class Box:
    pass


def _by_attribute(x, box):
    box.kept = x * 2
    return x


def _by_list(x, box):
    box.items.append(x * 2)
    box.kept = box.items[0]
    return x


def _the_argument(x, box):
    box.kept = x
    return x


def _by_closure(x, box):
    y = x * 2
    box.get = lambda: y
    return x


@pytest.mark.parametrize("function", [_by_attribute, _by_list, _the_argument, _by_closure])
@pytest.mark.parametrize(
    "read", [lambda y: y.asnumpy(), lambda y: (y + 1).asnumpy(), lambda y: print(y)]
)
def test_what_has_leaked_says_so(function, read):
    box = Box()
    box.items = []
    heterosis.hybridize(functools.partial(function, box=box))(np.array(X))
    array = box.get() if hasattr(box, "get") else box.kept
    with pytest.raises(CaptureError) as caught:
        read(array)
    place, why, cure, page = str(caught.value).split("\n")
    assert re.fullmatch(r"An array of \w+, made at \S+.py:\d+", place)
    assert __file__ in place or function is _the_argument
    assert why == f"  {LEAKED.why}".replace("{array}", "an array float32[2, 3]")
    assert cure == f"  {LEAKED.cure}"
    assert page == f"  More: {blockers.PAGE}, '{LEAKED.heading}'."


def test_what_leaks_into_another_program():
    box = Box()
    heterosis.hybridize(lambda x: _by_attribute(x, box))(np.array(X))
    with pytest.raises(CaptureError, match="it has leaked"):
        heterosis.hybridize(lambda x: x + box.kept)(np.array(X)).asnumpy()


def test_what_leaks_from_one_branch_into_the_other():
    def function(x):
        kept = functools.cache(lambda k: x * k)
        return kept(2) if x.sum() > 0 else kept(2) * 3

    with pytest.raises(CaptureError, match="it has leaked"):
        heterosis.hybridize(function)(np.array(X)).asnumpy()
