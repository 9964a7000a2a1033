"""Derivatives of work on boxes: its results are numbers of places, and of classes."""

from heterosis.autograd.rules.table import piecewise_constant
from heterosis.ir.primitives.boxes import MATCH, SUPPRESS

piecewise_constant(MATCH, SUPPRESS)
