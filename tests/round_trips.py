"""A plugin: every program that is captured in the tests is written down, read and checked."""

from collections import Counter

from heterosis.capture import attempts
from heterosis.ir import check, parse

_counts = Counter()
_capture = attempts._captured


def _captured(*arguments, **keywords):
    found, captured = _capture(*arguments, **keywords)
    text = str(captured.program)
    again = parse(text)
    assert str(again) == text
    check(again)
    _counts["programs"] += 1
    _counts["nodes"] += text.count("\n")
    return found, captured


def pytest_configure(config):
    attempts._captured = _captured


def pytest_unconfigure(config):
    attempts._captured = _capture


def pytest_sessionfinish(session):
    """Tell the process that started this one, if there is one, with pytest-xdist."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["round_trips"] = dict(_counts)


def pytest_testnodedown(node):
    output = getattr(node, "workeroutput", {})  # a worker that crashed has none
    _counts.update(output.get("round_trips", {}))


def pytest_terminal_summary(terminalreporter):
    if _counts:
        terminalreporter.write_line(
            f"{_counts['programs']} captured programs of {_counts['nodes']} lines were written "
            "down, read and checked."
        )
