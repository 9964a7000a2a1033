"""What editors read of names that are made while a program runs."""

# Made by docs/make_stubs.py: change the record of an operation, and run it again.
# mypy: allow-any-generics
