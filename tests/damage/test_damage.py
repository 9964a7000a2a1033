"""Files of every kind, damaged in every way: refused by name, or read; nothing else happens."""

from tests.damage.child import case
from tests.damage.damages import DAMAGES
from tests.damage.hunt import hunt
from tests.damage.readers import KINDS


def test_damaged_files_are_refused_or_read():
    report = hunt(0, len(KINDS) * len(DAMAGES))
    assert report.files == len(KINDS) * len(DAMAGES)
    assert not report.failures, report.text()
    assert all(found["refused"] for kind, found in report.outcomes.items() if "kept" not in kind)
    assert max(report.peaks.values()) < 2 << 30


def test_every_kind_meets_every_damage():
    pairs = {case(number) for number in range(len(KINDS) * len(DAMAGES))}
    assert pairs == {(kind, damage) for kind in KINDS for damage in DAMAGES}
