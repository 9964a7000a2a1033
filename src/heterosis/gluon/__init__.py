"""Models and their parts, and data for them."""

from heterosis.gluon import data as data
