"""Blocks are numbered from 0 in every test, and hybridizing has warned already."""

from collections import Counter

import pytest

from heterosis.gluon import hybrid_block, naming


@pytest.fixture(autouse=True)
def fresh_names(monkeypatch):
    monkeypatch.setattr(naming._current, "counts", Counter())
    monkeypatch.setattr(hybrid_block, "_warned", ["hybridize"])
