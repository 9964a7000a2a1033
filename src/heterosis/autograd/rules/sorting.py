"""Derivatives of sorting. Elements are sorted as integers: gradients go from place to place
instead, as the records of operations say."""

from heterosis.autograd.rules.table import piecewise_constant
from heterosis.ir.primitives.sorting import EXTREME_PLACES, FIRST_PLACES, SEARCH, SORT_PLACES

piecewise_constant(SORT_PLACES, FIRST_PLACES, SEARCH)  # of which only the places are used
piecewise_constant(EXTREME_PLACES)
