"""Graphs of operators as values: composed, captured, written to files, read and run."""
