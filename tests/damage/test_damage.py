"""Files of every kind, damaged in every way: refused by name, or read; nothing else happens."""

import pytest

from tests.damage.child import case
from tests.damage.damages import DAMAGES
from tests.damage.hunt import hunt
from tests.damage.readers import KINDS


@pytest.mark.lengthy
def test_damaged_files_are_refused_or_read():
    report = hunt(0, len(KINDS) * len(DAMAGES))
    assert report.files == len(KINDS) * len(DAMAGES)
    assert not report.failures, report.text()
    assert all(found["refused"] for kind, found in report.outcomes.items() if "kept" not in kind)
    assert max(report.peaks.values()) < 2 << 30


def test_every_kind_meets_every_damage():
    pairs = {case(number) for number in range(len(KINDS) * len(DAMAGES))}
    assert pairs == {(kind, damage) for kind in KINDS for damage in DAMAGES}


_PLANTED = """
import os, sys, time
from pathlib import Path
from tests.damage import child, readers

def read(folder):
    FAULT

child.SECONDS = 1
child._check_intact = lambda *given: None
names = list(child.KINDS)
child.KINDS.clear()
child.KINDS["planted"] = readers.Kind(lambda folder: [(folder / "x").write_text("7") and "x"], read)
child.main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
"""

_FAULTS = {
    "crash": "os.abort()",
    "hang": "time.sleep(60)",
    "foreign": "[][0]",
    "no room": "readers.np.ones(1 << 40)",
    "refused": "readers.npx.load(folder / 'x')",
    "read": "pass",
}


@pytest.mark.lengthy
@pytest.mark.parametrize("outcome", _FAULTS)
def test_the_hunt_finds_what_goes_wrong(outcome, tmp_path):
    program = tmp_path / "planted.py"
    program.write_text(_PLANTED.replace("FAULT", _FAULTS[outcome]))
    report = hunt(0, 2, [str(program)])
    assert report.files == 2
    assert sum(found[outcome] for found in report.outcomes.values()) == 2
    assert bool(report.failures) == (outcome in ("crash", "hang", "foreign"))
    if report.failures:
        assert ("planted.py" in report.text()) == (outcome != "no room")
