"""One seed gives one sequence of random numbers: eager, hybridized, and when called again."""

import inspect
from functools import partial

import numpy
import pytest

import heterosis
from heterosis import autograd, gluon, np, npx
from heterosis import ndarray as nd
from heterosis.gluon.data.vision import transforms
from heterosis.ops import REGISTRY
from heterosis.ops.record import KEY
from heterosis.runtime.errors import CaptureError, HeterosisError
from tests.capture.comparison import leaves

_rates = np.array([[0.5, 1.0, 2.0], [3.0, 0.25, 9.0]])
_chances = np.array([[0.25, 0.5, 0.25], [0.125, 0.125, 0.75]])
_image = np.array(numpy.random.default_rng(3).integers(0, 256, (6, 7, 3)), dtype="uint8")


def _shuffled(x):
    np.random.shuffle(x)
    return x


def _into(draw):
    def run():
        out = np.zeros((3, 4))
        draw(out)
        return out

    return run


# What is drawn, by the names of modules and functions there.
_BY_SIZE = (
    "logistic", "gumbel", "laplace", "exponential", "rayleigh", "lognormal", "normal", "uniform",
    "poisson", "random", "ranf", "sample", "random_sample", "standard_normal",
    "standard_exponential", "standard_cauchy",
)  # fmt: skip
NP = {name: lambda f: f(size=(3, 5)) for name in _BY_SIZE} | {
    "bernoulli": lambda f: f(0.25, size=(3, 5)),
    "beta": lambda f: f(_rates, 2.0),
    "binomial": lambda f: f(9, 0.25, size=(40,)),
    "chisquare": lambda f: f(_rates),
    "choice": lambda f: (
        f(9, (4,), replace=False),
        f(_rates[0], (5,)),
        f(3, (4,), p=_chances[0]),
        f(3, (2,), False, _chances[0]),
    ),
    "dirichlet": lambda f: f(_rates[0], (4,)),
    "f": lambda f: f(3.0, 4.0, (7,)),
    "gamma": lambda f: f(_rates, 2.0),
    "geometric": lambda f: f(0.25, (9,)),
    "multinomial": lambda f: f(10, _chances[0], (3,)),
    "multivariate_normal": lambda f: f(np.zeros(2), np.eye(2), (3,)),
    "negative_binomial": lambda f: f(3, 0.5, (9,)),
    "pareto": lambda f: f(3.0, (9,)),
    "permutation": lambda f: (f(9), f(np.arange(12).reshape(6, 2)), f(np.ones((1, 2)))),
    "power": lambda f: f(_rates),
    "rand": lambda f: f(3, 4),
    "randint": lambda f: (f(3, 9, (7,)), f(100)),
    "randn": lambda f: f(3, 4),
    "random_integers": lambda f: f(3, 9, (7,)),
    "shuffle": lambda f: [_shuffled(np.arange(n)) for n in (1, 2, 3, 9)],
    "standard_gamma": lambda f: f(2.0, (3, 4)),
    "standard_t": lambda f: f(4.0, (3, 4)),
    "triangular": lambda f: f(0, 1, 3, (4,)),
    "weibull": lambda f: f(3.0, (4,)),
}
ND = {
    "exponential": lambda f: (f(2.0, shape=(3,)), f(_rates, shape=(2,))),
    "gamma": lambda f: (f(2.0, 3.0, shape=(3,)), f(_rates, _rates)),
    "generalized_negative_binomial": lambda f: (f(2.0, 0.5, shape=(9,)), f(_rates, _rates)),
    "multinomial": lambda f: f(_chances, shape=(4,), get_prob=True),
    "negative_binomial": lambda f: (f(2, 0.5, shape=(9,)), f(np.array([2.0]), np.array([0.5]))),
    "normal": lambda f: (f(shape=(3,)), f(_rates, _rates, shape=(2,))),
    "poisson": lambda f: (f(3.0, shape=(9,)), f(_rates)),
    "randint": lambda f: f(2, 90, shape=(9,)),
    "randn": lambda f: f(2, 3),
    "shuffle": lambda f: f(np.arange(9)),
    "uniform": lambda f: (f(shape=(3,)), f(_rates, _rates * 2, shape=(2,))),
}
NPX = {
    "bernoulli": NP["bernoulli"],
    "normal_n": lambda f: f(_rates, 1.0, (2,)),
    "uniform_n": lambda f: f(_rates, 9.0, (2,)),
}
_MODULES = {"np": (np.random, NP), "nd": (nd.random, ND), "npx": (npx.random, NPX)}
_STATE = {"seed", "get_state", "set_state"}

LAYERS = {
    "Dropout": lambda: gluon.nn.Dropout(0.5),
    "Dropout(axes)": lambda: gluon.nn.Dropout(0.5, axes=(0,)),
    "LSTM": lambda: gluon.rnn.LSTM(4, 2, dropout=0.5),
    "GRU": lambda: gluon.rnn.GRU(4, 3, dropout=0.25),
}

# Operations with a key that no function above reaches.
_DIRECT = {
    "dropout": lambda f: f(_rates, 0.5),
    "attention_with_dropout": lambda f: f(_rates, _rates, _rates, None, 0.5),
    "random_leaky_relu": lambda f: f(-_rates),
    "random_flip_left_right": lambda f: [f(_image) for _ in range(4)],
    "random_flip_top_bottom": lambda f: [f(_image) for _ in range(4)],
    "random_brightness": lambda f: f(_image, 0.5, 1.5),
    "random_contrast": lambda f: f(_image, 0.5, 1.5),
    "random_saturation": lambda f: f(_image, 0.5, 1.5),
    "random_hue": lambda f: f(_image, 0.5, 1.5),
    "random_lighting": lambda f: f(_image, 0.5),
    "sgld_update": lambda f: f(_rates, _chances, 0.1, 0.0),
}
_INTO = {
    "uniform": lambda out: np.random.uniform(size=(3, 4), out=out),
    "normal": lambda out: np.random.normal(size=(3, 4), out=out[::-1]),
    "parameters beside out": lambda out: np.random.normal(out, out + 1, out=out),
    "rows of a view": lambda out: np.random.shuffle(out.T),
    "rows of a part": lambda out: np.random.shuffle(out[1:]),
    "overlapping": lambda out: REGISTRY["random_shuffled"].operation(out[::-1], out=out),
}


def calls():
    """Every row as its name and a function without arguments."""
    for module, (home, table) in _MODULES.items():
        for name, row in table.items():
            yield f"{module}.{name}", partial(row, getattr(home, name))
    for name, row in _DIRECT.items():
        yield name, partial(row, REGISTRY[name].operation)
    for name, draw in _INTO.items():
        yield f"into {name}", _into(draw)


def _sequence(run):
    """What three calls after one seed give, and where the generator stands then."""
    np.random.seed(11)
    found = [[x.asnumpy() for x in leaves(run())] for _ in range(3)]
    return found, np.random.get_state()


def agree(eager, compiled, equal=numpy.testing.assert_array_equal):
    """Three calls after one seed give equal numbers, and leave the generator in one state."""
    wanted, state = _sequence(eager)
    for _ in range(2):
        found, now = _sequence(compiled)
        assert now == state
        for one, other in zip(found, wanted, strict=True):
            for x, y in zip(one, other, strict=True):
                equal(x, y)


@pytest.mark.parametrize("name, run", [pytest.param(*row, id=row[0]) for row in calls()])
def test_functions(name, run):
    with autograd.train_mode():
        agree(run, heterosis.hybridize(run))


@pytest.mark.parametrize("name", list(LAYERS))
def test_layers(name):
    layer = LAYERS[name]()
    layer.initialize()
    x = np.ones((5, 4, 4))
    layer(x)
    compiled = heterosis.hybridize(lambda: layer(x))
    with autograd.train_mode():
        agree(lambda: layer(x), compiled)


_PYTHON_S = {
    "random_crop": lambda: npx.image.random_crop(_image, (3, 3)),
    "random_size_crop": lambda: npx.image.random_size_crop(_image, (3, 3), 0.5, (0.9, 1.1)),
    "random_rotate": lambda: npx.image.random_rotate(_image.transpose(2, 0, 1) / 255, (0, 40)),
    "random_color_jitter": lambda: npx.image.random_color_jitter(_image, 0.5, 0.5, 0.5, 0.5),
    "RandomRotation": lambda: transforms.RandomRotation((0, 40))(_image.transpose(2, 0, 1) / 255),
    "RandomApply": lambda: transforms.RandomApply(transforms.ToTensor())(_image),
}


@pytest.mark.parametrize("name", list(_PYTHON_S))
def test_numbers_that_python_draws_are_not_compiled_in(name):
    _PYTHON_S[name]()
    with pytest.raises(CaptureError, match=f"{name}.* draws numbers in Python"):
        heterosis.hybridize(_PYTHON_S[name])()


@pytest.mark.main_memory("its picture is there")
def test_one_step_of_colours_has_no_order():
    one = partial(npx.image.random_color_jitter, _image, 0.5)
    with autograd.train_mode():
        agree(one, heterosis.hybridize(one))


def test_calls_that_fail_draw_nothing():
    np.random.seed(11)
    before = np.random.get_state()
    for wrong in (
        lambda: np.random.normal(np.ones(3), np.ones(4)),
        lambda: np.random.uniform(size=(3,), out=np.ones(4)),
        lambda: np.random.uniform(size=(1 << 40, 1 << 40)),
    ):
        with pytest.raises(HeterosisError):
            wrong()
    assert np.random.get_state() == before


def _draws(member):
    is_function = callable(member) and not inspect.isclass(member)
    named = is_function and not member.__name__.startswith("_")
    return named and member.__module__ == np.random.__name__


def test_every_random_function_has_a_row():
    for home, table in _MODULES.values():
        own = {name for name, member in vars(home).items() if _draws(member)}
        names = own if home is np.random else set(home.__all__)
        assert names - _STATE == set(table)


@pytest.mark.lengthy
def test_every_operation_with_a_key_is_drawn_from(monkeypatch):
    keyed = {name for name, record in REGISTRY.items() if KEY in record.uses}
    seen = set()
    for name in keyed:
        record = REGISTRY[name]

        def noted(values, attributes, record=record, traced=record.traced):
            seen.add(record.name)
            return traced(values, attributes)

        monkeypatch.setattr(record, "traced", noted)
    with autograd.train_mode():
        for _, run in calls():
            heterosis.hybridize(run)()
    assert seen == keyed
