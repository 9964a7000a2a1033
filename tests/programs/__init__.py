"""Random programs: what they are, how they are made, run, compared and shrunk.

`python -m tests.programs --seconds 3600` hunts; `test_programs.py` runs some hundred of them.
"""
