"""Which parts of an array have elements in common."""

import itertools
import random

import numpy
import pytest

from heterosis.ir.overlap import are_apart, meetings


def _part(shape, generator):
    """Somewhere in an array: (starts, steps) and a shape."""
    starts, steps, counts = [], [], []
    for extent in shape:
        step = generator.choice([1, 1, 2, 3, -1, -2])
        count = generator.randint(1, max(1, extent // abs(step)))
        reach = (count - 1) * abs(step)
        low = generator.randint(0, extent - 1 - reach) if extent > reach else 0
        starts.append(low if step > 0 else low + reach)
        steps.append(step)
        counts.append(count)
    return (tuple(starts), tuple(steps)), tuple(counts)


def _elements(part, counts, shape):
    starts, steps = part
    indices = [
        [start + step * i for i in range(count)]
        for start, step, count in zip(starts, steps, counts, strict=True)
    ]
    marks = numpy.zeros(shape, bool)
    marks[numpy.ix_(*indices)] = True
    return marks


@pytest.mark.parametrize("shape", [(12,), (5, 7), (3, 4, 5)])
def test_no_meeting_is_missed(shape):
    generator = random.Random(len(shape))
    for _ in range(60):
        parts = [_part(shape, generator) for _ in range(generator.randint(1, 6))]
        places, counts = zip(*parts, strict=True)
        met = meetings(places, counts)
        marks = [_elements(*part, shape) for part in parts]
        for i, j in itertools.combinations(range(len(parts)), 2):
            if (marks[i] & marks[j]).any():
                assert j in met[i] and i in met[j]
        assert are_apart(places, counts) is not any(met)


@pytest.mark.parametrize(
    "places",
    [
        [((i, 0), (1, 1)) for i in range(4000)],  # one behind the other
        [((i, 0), (4000, 1)) for i in range(4000)],  # in turns
        [((0, i), (1, -4000)) for i in range(4000)],
    ],
)
def test_thousands_of_parts(places):
    assert are_apart(places, [(1, 1)] * len(places))
    places.append(places[7])
    assert not are_apart(places, [(1, 1)] * len(places))


def test_numbers_are_all_in_one_place():
    assert meetings([((), ()), ((), ())], [(), ()]) == [[1], [0]]
