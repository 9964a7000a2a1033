"""Tests of the standard's suite that fail, each with the reason."""

EXCLUSIONS: dict[str, str] = {}
