"""Runs the MLP that README.md exports: python run_mlp.py libmy_mlp.so."""

import sys

import numpy
from heterosis_library import Library

mlp = Library(sys.argv[1] if len(sys.argv) > 1 else "libmy_mlp.so")
x = (numpy.arange(512) % 7).astype("float32").reshape(1, 512) / numpy.float32(7)
sys.stdout.write(" ".join(number.hex() for number in mlp(x)[0].tolist()) + "\n")
