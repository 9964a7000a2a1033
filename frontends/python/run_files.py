"""Runs a program on arrays in files, for ../check.sh.

python run_files.py LIBRARY FOLDER CALLS [SIZE...]
"""

import sys
import time
from pathlib import Path

import numpy
from heterosis_library import Library

path, folder, calls = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
entry = next(iter(Library(path).entries.values()))
sizes = dict(zip((size.name for size in entry.sizes), map(int, sys.argv[4:]), strict=True))
inputs = [
    numpy.fromfile(folder / f"input{i}", array.numpy_dtype).reshape(
        [sizes.get(extent, extent) for extent in array.shape]
    )
    for i, array in enumerate(entry.inputs)
]
made = entry(*inputs)
for i, array in enumerate(made if isinstance(made, tuple) else (made,)):
    (folder / f"output{i}").write_bytes(array.tobytes())
before = time.perf_counter()
for _ in range(calls):
    entry(*inputs)
sys.stdout.write(f"{(time.perf_counter() - before) / calls * 1e6}\n")
