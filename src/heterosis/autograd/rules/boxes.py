"""Derivatives of work on boxes: its results are numbers of places, and of classes."""

from heterosis.autograd.rules.table import piecewise_constant
from heterosis.ir.primitives.boxes import MATCH_BOXES, SUPPRESS_BOXES

piecewise_constant(MATCH_BOXES, SUPPRESS_BOXES)
