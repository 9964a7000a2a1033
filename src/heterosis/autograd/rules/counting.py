"""Derivatives of counting, and of finding what is true: there are none."""

from heterosis.autograd.rules.table import piecewise_constant
from heterosis.ir.primitives.counting import OCCURRENCES, TRUE_PLACES

piecewise_constant(OCCURRENCES, TRUE_PLACES)
