"""Choices and loops."""
