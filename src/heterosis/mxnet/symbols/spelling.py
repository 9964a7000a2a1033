"""How MXNet names what records have other names for. What stands in no table has one name in both.

An operator's name in symbol files is `names["mxnet"]` of its record.
"""

from __future__ import annotations

# A record's parameters under MXNet's names; None: MXNet has no such attribute.
PARAMETERS: dict[str, dict[str, str | None]] = {
    "batch_norm": {"training": None},
    "full_like": {"order": None, "ctx": None, "shape": None},
    "ones": {"order": None, "ctx": None},
    "pad": {"constant_values": "constant_value", "end_values": None, "reflect_type": None},
    "swapaxes": {"axis1": "dim1", "axis2": "dim2"},
    "tensorsolve": {"axes": "a_axes"},
    "zeros": {"order": None, "ctx": None},
}

# Attributes that say nothing about what is computed.
IDLE = {
    "ctx", "cudnn_off", "cudnn_tune", "forward_stype", "init_output", "lazy_update",
    "max_calib_range", "min_calib_range", "num_args", "optimize", "workspace",
}  # fmt: skip

# Operations of two operands, whose operator with a number is `_npi_<name>_scalar`.
WITH_NUMBER = {
    "add", "subtract", "multiply", "true_divide", "mod", "power", "maximum", "minimum", "equal",
    "not_equal", "less", "less_equal", "greater", "greater_equal", "bitwise_and", "bitwise_or",
    "bitwise_xor", "lcm", "hypot", "arctan2", "copysign", "ldexp",
}  # fmt: skip

# With the number on the left: another operator; else `_npi_r<name>_scalar`.
TURNED = {
    **{name: name for name in ("add", "multiply", "maximum", "minimum", "equal", "not_equal")},
    **{name: name for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "lcm", "hypot")},
    "less": "greater", "greater": "less",
    "less_equal": "greater_equal", "greater_equal": "less_equal",
}  # fmt: skip

# Older operators on two arrays and on an array and a number, between underscores.
OLDER = {
    "plus": "add", "minus": "subtract", "mul": "multiply", "div": "true_divide", "mod": "mod",
    "power": "power", "maximum": "maximum", "minimum": "minimum", "hypot": "hypot",
}  # fmt: skip
OLDER_TRUTHS = {
    "equal": "equal", "not_equal": "not_equal", "greater": "greater", "lesser": "less",
    "greater_equal": "greater_equal", "lesser_equal": "less_equal", "logical_and": "logical_and",
    "logical_or": "logical_or", "logical_xor": "logical_xor",
}  # fmt: skip
