"""A plugin: every program that is captured in the tests is written down, read and checked."""

from collections import Counter

from heterosis.capture import trace
from heterosis.ir import check, parse
from heterosis.ir.primitives import PRIMITIVES

_counts = Counter()
_capture = trace._captured


def _primitives_of(program):
    """The table, and primitives of the program that it does not have."""
    found = {node.primitive.name: node.primitive for node in program.nodes()}
    for node in program.nodes():
        combine = node.attributes.get("combine")
        if combine is not None:
            found[combine.name] = combine
    return found | dict(PRIMITIVES)


def _captured(*arguments, **keywords):
    found, captured = _capture(*arguments, **keywords)
    program = captured.program
    text = str(program)
    again = parse(text, _primitives_of(program))
    assert str(again) == text
    check(again)
    _counts["programs"] += 1
    _counts["nodes"] += text.count("\n")
    return found, captured


def pytest_configure(config):
    trace._captured = _captured


def pytest_unconfigure(config):
    trace._captured = _capture


def pytest_sessionfinish(session):
    """Tell the process that started this one, if there is one, with pytest-xdist."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["round_trips"] = dict(_counts)


def pytest_testnodedown(node):
    _counts.update(node.workeroutput.get("round_trips", {}))


def pytest_terminal_summary(terminalreporter):
    if _counts:
        terminalreporter.write_line(
            f"{_counts['programs']} captured programs of {_counts['nodes']} lines were written "
            "down, read and checked."
        )
