"""State that callers of exported libraries own: arrays in, and what they are afterwards, out."""

import numpy
import pytest

import heterosis
from heterosis import np, npx
from heterosis.runtime.errors import UnsupportedError
from tests.frontends import python_front_end
from tests.frontends.models import random

front_end = python_front_end()

LENGTH, WIDTH, HEADS, LAYERS, CHARACTERS = 16, 32, 4, 3, 11
SHAPES = [
    (CHARACTERS, WIDTH), (LENGTH, WIDTH),
    *([(WIDTH, 3 * WIDTH), (WIDTH, WIDTH), (WIDTH, 4 * WIDTH), (4 * WIDTH, WIDTH)] * LAYERS),
    (WIDTH, CHARACTERS),
]  # fmt: skip


@pytest.fixture(autouse=True)
def one_thread():
    before = npx.settings.threads
    npx.settings.threads = 1
    yield
    npx.settings.threads = before


def _gpt():
    """A small GPT that writes one character, given those before by its caches."""
    generator = numpy.random.default_rng(0)
    made = [np.array(generator.normal(size=s).astype("float32") * 0.2) for s in SHAPES]

    def normalized(x):
        centred = x - x.mean()
        return centred * ((centred**2).mean() + 1e-5) ** -0.5

    def step(keys, values, character, place):
        given = iter(made[2:])
        earlier = np.arange(LENGTH) <= place
        x = made[0][character] + made[1][place]
        for layer in range(LAYERS):
            parts = (normalized(x) @ next(given)).reshape(3, HEADS, -1)
            keys[layer, :, place], values[layer, :, place] = parts[1], parts[2]
            scores = (keys[layer] * parts[0].reshape(HEADS, 1, -1)).sum(axis=-1)
            weights = npx.softmax(np.where(earlier, scores * (WIDTH // HEADS) ** -0.5, -1e9))
            mixed = np.matmul(weights.reshape(HEADS, 1, -1), values[layer]).reshape(1, WIDTH)
            x = x + mixed @ next(given)
            x = x + npx.relu(normalized(x) @ next(given)) @ next(given)
        return (x[0] @ next(given)).argmax()

    return step


def _caches():
    return [np.zeros((LAYERS, HEADS, LENGTH, WIDTH // HEADS)) for _ in range(2)]


def _whole(number):
    return np.array([number], dtype="int32")


@pytest.mark.lengthy
def test_a_gpt_with_caches_of_keys_and_values(tmp_path):
    step, caches = _gpt(), _caches()
    path, _ = heterosis.export(step, tmp_path / "gpt", *_caches(), _whole(1), _whole(0))
    library, replay = front_end.Library(path), heterosis.hybridize(step)
    (entry,) = library.entries.values()
    assert [array.name for array in entry.outputs] == ["output", "keys after", "values after"]
    kept = [cache.asnumpy() for cache in caches]
    character, expected, found = 1, [], []
    for place in range(LENGTH):
        given = [_whole(character), _whole(place)]
        expected.append(replay(*caches, *given).item())
        made, *kept = library(*kept, *(array.asnumpy() for array in given))
        found.append(int(made))
        character = found[-1]
        for cache, own in zip(caches, kept, strict=True):
            assert own.tobytes() == cache.asnumpy().tobytes()
    assert found == expected
    assert len(set(found)) > 2


def test_what_a_program_writes_to_is_a_result(tmp_path):
    def move(state, x):
        state[:] = state * 0.5 + x

    path, _ = heterosis.export(move, tmp_path / "move", np.ones(3), random(3))
    found = front_end.Library(path)(numpy.ones(3, "float32"), numpy.arange(3, dtype="float32"))
    assert found.tolist() == [0.5, 1.5, 2.5]


def test_an_argument_that_is_written_to_and_returned_is_what_it_is_afterwards(tmp_path):
    def doubled(x):
        x[:] += x
        return x, x[::2]

    path, _ = heterosis.export(doubled, tmp_path / "doubled", np.ones(3))
    given = numpy.arange(1, 4, dtype="float32")
    found = front_end.Library(path)(given)
    assert [r.tolist() for r in found] == [[2, 4, 6], [2, 6], [2, 4, 6]]


def test_arrays_from_outside_are_not_written_to(tmp_path):
    state = np.zeros(3)

    def writes(x):
        state[:] = x
        return x

    with pytest.raises(UnsupportedError, match=r"Hand them in as arguments"):
        heterosis.export(writes, tmp_path / "model", random(3))
