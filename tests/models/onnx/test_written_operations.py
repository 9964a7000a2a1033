"""Every operation, written as ONNX: ONNX's own evaluator and our reading of the file agree."""

import pytest

import heterosis
from heterosis import np
from heterosis.ops import REGISTRY
from heterosis.ops.record import ARRAY, SEQUENCE
from heterosis.runtime.errors import UnsupportedError
from tests.capture.calls import sampled
from tests.models.onnx.written import check_same, evaluated, listed, read_again, written
from tests.ops.harness import arguments, cases

# Primitives that ONNX has no operators for: operations that need them are refused.
LOST = {
    "correlate", "erfinv", "exponent", "gamma", "gammaln", "gcd", "inverse", "lcm", "ldexp", "lu",
    "mantissa", "singular", "singular_values", "solve", "spacing",
}  # fmt: skip
NOT_A_RESULT = {"asserted"}  # it checks what a program goes on with


class Call:
    """A case of an operation as a function of its arrays, one after another."""

    def __init__(self, record, case, dtype):
        self.record = record
        self.arrays = []
        given, self.attributes = arguments(record, case, dtype)
        names = [
            p.name
            for p, use in zip(record.parameters, record.uses, strict=True)
            if use in (ARRAY, SEQUENCE)
        ]
        self.places = dict(zip(names, map(self._placed, given), strict=False))

    def _placed(self, given):
        if isinstance(given, list):
            return [self._placed(item) for item in given]
        if not hasattr(given, "dtype"):
            return lambda arrays: given
        self.arrays.append(given)
        position = len(self.arrays) - 1
        return lambda arrays: arrays[position]

    def __call__(self, *arrays):
        def taken(place):
            return [taken(one) for one in place] if isinstance(place, list) else place(arrays)

        given = {name: taken(place) for name, place in self.places.items()}
        return self.record.operation(**given, **self.attributes)


FURTHER = ("float16", "uint8", "bool", "float64", "bfloat16", "int64")


def rows():
    """Every operation: with the types that programs are mostly of, and with another one."""
    known = dict.fromkeys(sampled())
    for i, (name, record) in enumerate(sorted(REGISTRY.items())):
        if record.samples:
            turned = (*FURTHER[i % len(FURTHER) :], *FURTHER)
            more = [d for d in turned if d in record.samples.dtypes][:1]
            known |= dict.fromkeys((name, dtype) for dtype in more)
    return [one for one in cases(REGISTRY) if one in known]


@pytest.mark.each("name")
@pytest.mark.parametrize("name, dtype", rows())
def test_every_operation(name, dtype, some, tmp_path):
    record = REGISTRY[name]
    path = tmp_path / "one.onnx"
    for case in some(record.samples.cases):
        call = Call(record, case, dtype)
        ours = [np.array(a, dtype=a.dtype) for a in call.arrays]
        function = heterosis.hybridize(lambda *arrays, call=call: call(*arrays))
        wanted = [r.asnumpy() for r in listed(function(*ours))]
        try:
            model = written(function, path, *ours)
        except UnsupportedError as error:
            assert name in NOT_A_RESULT or any(f"{lost} (" in str(error) for lost in LOST)
            continue
        ulps, absolute = record.samples.ulps, record.samples.absolute
        check_same(read_again(path, call.arrays), wanted, max(ulps, 8), max(absolute, 8))
        got = evaluated(model, call.arrays)
        if got is not None:
            check_same(got, wanted, max(ulps, 8), max(absolute, 8))
