"""Calls with wrong arguments: every public name, a table of values that nobody should pass.

`python -m tests.bad_calls --count 100000` hunts; `test_bad_calls.py` runs a fixed part of it. A
call is a line of Python, so that what is reported can be pasted.
"""
