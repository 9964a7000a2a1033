"""Damaged files of every kind that is read. `python -m tests.damage --help`."""
