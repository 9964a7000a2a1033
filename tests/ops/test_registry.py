"""Every operation, element type, shape class and memory layout against NumPy."""

import re
from itertools import product
from pathlib import Path

import pytest

from heterosis.ir.types import DTYPES
from heterosis.ops import REGISTRY
from heterosis.ops.record import KEY
from tests.capture import test_operations
from tests.capture.calls import sampled
from tests.ops.harness import LAYOUTS, arguments, call, cases, check, reference
from tests.processes import run_python


@pytest.mark.each("name")
@pytest.mark.parametrize("name, dtype", list(cases(REGISTRY)))
def test_matches_numpy(name, dtype, some, release):
    record = REGISTRY[name]
    for layout, case in some(list(_laid_out(record.samples, dtype, all_of_them=release))):
        arrays, attributes = arguments(record, case, dtype)
        got = call(record, arrays, attributes, layout)
        check(got, reference(record, arrays, attributes, got), record)


def _laid_out(samples, dtype, *, all_of_them):
    """Each case in all layouts, or in one: they take turns, and begin with another one for each
    element type, so that three types bring each case into all of them."""
    begin = samples.dtypes.index(dtype)
    for (i, case), (j, layout) in product(enumerate(samples.cases), enumerate(LAYOUTS)):
        if all_of_them or (begin + i) % len(LAYOUTS) == j:
            yield layout, case


@pytest.mark.lengthy
def test_quick_runs_every_operation():
    """Against NumPy, with all element types among them, and hybridized."""
    options = ("--quick", "--collect-only", "-q", "-p", "no:cacheprovider")
    files = (__file__, test_operations.__file__)
    done = run_python("-m", "pytest", *options, *files, folder=Path(__file__).parents[2])
    rows = set(re.findall(r"test_matches_numpy\[(\w+)-(\w+)\]", done.stdout))
    assert sorted(name for name, _ in rows) == sorted({name for name, _ in cases(REGISTRY)})
    assert {dtype for _, dtype in rows} == set(DTYPES)
    hybridized = set(re.findall(r"test_results\[(\w+)-\w+\]", done.stdout))
    assert hybridized == {name for name, _ in sampled()}


def test_every_operation_has_samples_and_a_reference():
    exempt = {"copy", "assign", "astype", "stop_gradient"}  # tests/np/test_convert.py
    # Results that are not unique: linalg/test_factorizations.py and tests/np/test_random.py.
    exempt |= {"cholesky", "qr", "svd", "eigh", "eigvalsh", "eig", "eigvals", "least_squares"}
    exempt |= {n for n, r in REGISTRY.items() if KEY in r.uses}
    exempt |= {"multibox_target", "multibox_detection"}  # vision/test_boxes.py
    exempt |= {"rnn", "rnn_layer"}  # nn/test_rnn.py
    exempt |= {"normalized"}  # a part of batch_norm, layer_norm and their like, which have both
    exempt |= {"log_sum"}  # what logaddexp, which has both, does to arrays of one type
    missing = [n for n, r in REGISTRY.items() if not (r.samples and r.numpy) and n not in exempt]
    assert not missing
