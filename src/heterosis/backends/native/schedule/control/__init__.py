"""The kernels of choices and loops: each calls functions of the programs that are its attributes.

Such a function is planned and emitted as that of a whole program is, and gets its operands, results
and workspace in a call of its own.
"""

from heterosis.backends.native.schedule.control import choices, loops, loops_back

__all__ = ["choices", "loops", "loops_back"]
