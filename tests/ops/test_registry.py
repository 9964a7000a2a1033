"""Every operation, element type, shape class and memory layout against NumPy."""

import pytest

from heterosis.ops import REGISTRY
from heterosis.ops.record import KEY
from tests.ops.harness import LAYOUTS, arguments, call, cases, check, reference


@pytest.mark.parametrize("name, dtype", list(cases(REGISTRY)))
def test_matches_numpy(name, dtype):
    record = REGISTRY[name]
    for case in record.samples.cases:
        arrays, attributes = arguments(record, case, dtype)
        for layout in LAYOUTS:
            got = call(record, arrays, attributes, layout)
            check(got, reference(record, arrays, attributes, got), record)


def test_every_operation_has_samples_and_a_reference():
    exempt = {"copy", "assign", "astype", "stop_gradient"}  # tests/np/test_convert.py
    # Results that are not unique: tests/np/test_linalg.py and, for random ones, test_random.py.
    exempt |= {"cholesky", "qr", "svd", "eigh", "eigvalsh", "eig", "eigvals", "least_squares"}
    exempt |= {n for n, r in REGISTRY.items() if KEY in r.uses}
    exempt |= {"multibox_target", "multibox_detection"}  # test_network.py: they need proper boxes
    exempt |= {"rnn", "rnn_layer"}  # test_rnn.py
    missing = [n for n, r in REGISTRY.items() if not (r.samples and r.numpy) and n not in exempt]
    assert not missing
