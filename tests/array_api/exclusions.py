"""Tests of the standard's suite that fail here, each with the reason.

A row is a regular expression that a test's name, with its parameters, holds. A test that is named
and passes fails, and so does a run of the whole suite in which a row names none.
"""

_NO_COMPLEX = "there are no complex numbers: array programs of MXNet's have none"

EXCLUSIONS = {
    # Names and programs with complex numbers, which the suite cannot be told to leave out.
    r"test_has_names\[fft-": f"{_NO_COMPLEX}, and so no extension for Fourier transforms",
    r"test_special_cases.py::test_unary\[.*real\(x_i\)": _NO_COMPLEX,
    r"test_vecdot_conj": _NO_COMPLEX,
    # What operators on arrays give stands in `np`, which follows NumPy.
    r"floor_?div(ide)?(__)?\(x1_i is .infinity and isfinite\(x2_i\)": (
        "as in NumPy and in Python infinity // x is NaN"
    ),
    r"floor_?div(ide)?(__)?\(isfinite\(x1_i\) and x1_i . 0 and x2_i is .infinity\) -> -0": (
        "as in NumPy and in Python x // infinity is -1 where the signs differ"
    ),
}
