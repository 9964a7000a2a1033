"""Blocks are numbered from 0 in every test."""

from collections import Counter

import pytest

from heterosis.gluon import naming


@pytest.fixture(autouse=True)
def fresh_names(monkeypatch):
    monkeypatch.setattr(naming._current, "counts", Counter())
