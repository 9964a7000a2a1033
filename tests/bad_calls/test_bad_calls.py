"""Bad calls end in errors of the framework, in time, and leave the process alive."""

import pickle
import random
import warnings
from decimal import Decimal
from fractions import Fraction

import pytest

import heterosis
from heterosis import gluon, lr_scheduler, np, npx, optimizer
from heterosis.gluon import nn, rnn
from heterosis.ir.program import constant
from heterosis.ops import REGISTRY
from heterosis.ops.record import ATTRIBUTE
from heterosis.runtime.arguments import did_you_mean, expectations
from heterosis.runtime.errors import ArgumentError, ArgumentTypeError, HeterosisError
from heterosis.runtime.kinds import kind_of
from tests.bad_calls import calls
from tests.bad_calls.child import reports
from tests.bad_calls.targets import namespace, targets
from tests.bad_calls.values import BAD

_CALLS = 1500  # of the hunt, in the suite


@pytest.mark.lengthy
def test_the_hunt_finds_nothing():
    found = [r for r in reports(0, _CALLS, seed=1) if r.kind not in _GOOD]
    assert not found, "\n".join(f"{r.text}\n    {r.error} ({r.place})" for r in found[:10])


_GOOD = (calls.FINE, calls.OURS, calls.PYTHONS)


def test_every_module_is_called():
    """The walk reaches every public module, and bad values reach every kind of parameter."""
    heads = {t.text.rpartition(".")[0] for t in targets()}
    assert {"np", "npx", "nd", "sym", "gluon.nn", "gluon.loss", "optimizer", "metric"} <= heads
    assert len(targets()) > 1000


def test_calls_follow_from_the_seed():
    table = targets()
    texts = [calls.bad_call(table[7], random.Random("1:2")) for _ in range(2)]
    assert texts[0] == texts[1]


def test_values_can_be_made():
    names = namespace()
    for text in BAD:
        eval(text, dict(names))


@pytest.mark.parametrize(
    "text, kind",
    [
        ("np.ones(3).item(0)", calls.FINE),
        ("np.ones(3, 4, 5, 6, 7, 8, 9, 10)", calls.OURS),
        ("[].index(1)", calls.FOREIGN),
        ("heterosis.nothing", calls.FOREIGN),
    ],
)
def test_outcomes_are_told_apart(text, kind):
    assert calls.outcome(text, namespace()).kind == kind


EXAMPLES = {
    # What was given: the message.
    "gluon.nn.Dense('a')": "Dense: units is 'a'; expected an integer",
    "gluon.nn.Dense(0)": "Dense: units is 0; expected an integer, at least 1",
    "gluon.nn.Dense(True)": "Dense: units is True; expected an integer",
    "gluon.nn.Dense(3, prefix=1)": "prefix is 1; expected a string or None",
    "gluon.nn.Dense(3, params=[1])": "params is .*; expected the ParameterDict",
    "gluon.nn.Dense(3, unit=3)": "no argument 'unit'; .* Did you mean units?",
    "gluon.nn.Dense()": "missing a required argument: 'units'",
    "gluon.nn.Conv2D(3, 3, groups=False)": "groups is False; expected an integer, at least 1",
    "gluon.nn.Conv2D(3, 'a')": "kernel_size is 'a'; expected an integer or a sequence of integers",
    "gluon.rnn.GRU(3, num_layers=2**70)": "num_layers is 11805.*; expected an integer, at least 1",
    "gluon.rnn.GRU(3, num_layers=2**30)": "num_layers=1073741824; expected at most",
    "optimizer.create('adam', lr=1)": "Adam: .*no argument 'lr'.* Did you mean learning_rate?",
    "optimizer.Adam(beta1='a')": "Adam: beta1 is 'a'; expected a number",
    "metric.TopKAccuracy('a')": "TopKAccuracy: top_k is 'a'; expected an integer",
    "np.sum(np.ones(3), axis='a')": "sum: axis is 'a'; expected an integer, a tuple of integers",
    "np.sum(np.ones(3), axs=0)": "unexpected keyword argument 'axs'. Did you mean axis?",
    "np.ones(3).reshape([])": "reshape: cannot give 3 elements",
    "np.array_split(np.ones(3), 2**40)": "1099511627776 sections",
    "np.take(np.ones(3), [nan])": "an index is NaN",
    "np.take(np.ones(3), [1e30])": "an index is NaN or larger",
    "np.ones(3, dtype='int32') + 2**63": "9223372036854775808 does not fit into 64 bits",
    "np.add([1], 2, out=1)": "add: out is 1; expected an array",
    "image.ResizeAug('a')": "ResizeAug: size is 'a'; expected an integer",
    "nd.CTCLoss(1, 2)": "CTCLoss|ctc_loss",
    "np.std(np.ones(3), ddof=-(2**63))": "in the arithmetic of sizes",
    "sym.var('a').split(2**31)": "2147483648 results; expected 1 to",
    "np.zeros((3, 2**63))": "shape is .*; expected an integer or a tuple of integers, of 64 bits",
    "np.einsum('ij,jk->ik', 2**63)": "does not fit into 64 bits",
    "gluon.Parameter('w', numpy.ones(2))": "grad_req",
    "initializer.create({1: 'a'})": "names no initializer",
    "np.ones(3)[-2**70]": "an index of more than 64 bits",
    "np.ndarray((2,), [])": "dtype|element type|cannot take",
    "np.set_printoptions(-1)": "precision",
    "np.linalg.qr(np.ones((2, 2)), mode=3)": "qr",
}


@pytest.mark.parametrize("text", EXAMPLES)
def test_messages(text):
    with pytest.raises(HeterosisError, match=EXAMPLES[text]):
        eval(text, namespace())


def test_errors_are_pythons_too():
    with pytest.raises(TypeError):
        nn.Dense("a")
    with pytest.raises(ValueError, match="units"):
        nn.Dense("a")
    with pytest.raises(KeyError):
        gluon.ParameterDict()["a"]


def test_errors_of_users_stay():
    """What a function that a user passed raises is not the framework's to explain."""

    def broken(x):
        return {}["missing"]

    with pytest.raises(KeyError) as caught:
        nn.Lambda(broken)(np.ones(3))
    assert not isinstance(caught.value, HeterosisError)

    class Mine(nn.HybridBlock):
        def __init__(self, width: str):
            super().__init__()
            self.width = width

        def forward(self, x):
            return x.nothing

    with pytest.raises(AttributeError, match="nothing"):
        Mine(3)(np.ones(3))  # annotations of users are theirs


def test_numbers_beyond_64_bits_are_floats_beside_floats():
    x = np.ones(3)
    expected = [float(2**63)] * 3
    assert (x + 2**63).tolist() == heterosis.hybridize(lambda a: a + 2**63)(x).tolist() == expected


def test_an_lr_scheduler_is_any_callable():
    trainer_rate = optimizer.SGD(lr_scheduler=lambda count: 0.5 / (count + 1))
    assert trainer_rate.learning_rate == 0.5
    scheduler = lr_scheduler.FactorScheduler(2, base_lr=0.3)
    with warnings.catch_warnings(record=True) as met:
        warnings.simplefilter("always")
        optimizer.SGD(learning_rate=0.2, lr_scheduler=scheduler)
    assert scheduler.base_lr == 0.2 and met[0].filename == __file__


def test_a_scheduler_reaches_any_update_at_once():
    scheduler = lr_scheduler.FactorScheduler(2, factor=0.5, base_lr=1.0, stop_factor_lr=0.1)
    assert scheduler(2**70) == 0.1
    assert [lr_scheduler.FactorScheduler(2, 0.5, base_lr=1.0)(n) for n in (1, 2, 3, 5)] == [
        1.0, 1.0, 0.5, 0.25,
    ]  # fmt: skip


def test_print_options_in_order():
    before = np.get_printoptions()["precision"]
    with np.printoptions(2):
        assert repr(np.array([1.23456])) == "array([1.23])"
    assert np.get_printoptions()["precision"] == before


@pytest.mark.lengthy
def test_long_chains_need_no_deep_stack():
    def chain(x):
        for _ in range(1200):
            x = x * 0.999 + 0.001
        return x

    x = np.array([2.0, 3.0])
    assert heterosis.hybridize(chain)(x).tolist() == pytest.approx(chain(x).tolist())


def test_every_attribute_that_is_annotated_is_checked():
    """A new operation is covered without a line of its own."""
    without = []
    for record in REGISTRY.values():
        kinds = expectations(record.function).kinds
        for parameter, use in zip(record.parameters, record.uses, strict=True):
            loose = parameter.annotation in ("Any", "dtype") or "Any" in str(parameter.annotation)
            if use == ATTRIBUTE and not loose and parameter.name not in kinds:
                without.append(f"{record.name}.{parameter.name}: {parameter.annotation}")
    assert not without


KINDS = {
    "int": ([1, -5], [True, 1.0, "1", None, 2**63]),
    "float": ([1, 0.5, float("nan")], [True, "1", None, 1j]),
    "bool": ([True, 0, 1], [2, "True", None]),
    "str | None": (["a", None], [1, b"a"]),
    "tuple[int, ...]": ([(), (1, 2), [3]], [(1.5,), "ab", 1]),
    "tuple[int, int]": ([(1, 2)], [(1,), (1, "a"), 1]),
    "int | tuple[int, ...] | None": ([1, (1, 2), None], [1.5, ("a",)]),
    "Sequence[str]": ([["a"], ()], ["a", [1]]),
    "Callable[[int], float]": ([len], [1]),
    "dict[str, Any] | None": ([{}, None], [[]]),
    "Natural": ([0, 1], [-1, True, 2**60]),
    "Positive": ([1], [0, 1.0]),
    "type": ([int], [1]),
}


@pytest.mark.parametrize("annotation", KINDS)
def test_kinds(annotation):
    fit, misfit = KINDS[annotation]
    kind = kind_of(annotation, {})
    assert all(map(kind.accepts, fit)) and not any(map(kind.accepts, misfit))


def test_arguments_behind_any_number_of_others_go_by_name():
    def function(*data: object, count: int = 0) -> None: ...

    assert expectations(function).misfit(("any", "thing"), {"count": 1}) is None
    assert expectations(function).misfit(("any",), {"count": "two"}).startswith("count is 'two'")


def test_what_has_no_kind_admits_everything():
    assert kind_of("Any", {}) is None and kind_of("int | Any", {}) is None


def test_names_that_were_meant():
    assert did_you_mean("lr", ["beta1", "learning_rate"]) == " Did you mean learning_rate?"
    assert did_you_mean("xyz", ["beta1"]) == ""


def test_checked_functions_are_functions():
    assert (np.zeros is heterosis.np.zeros and "shape" in repr(np.split)) or np.split.__name__
    assert pickle.loads(pickle.dumps(np.split))(np.ones(2), 2)[0].tolist() == [1]
    assert rnn.LSTM.__init__.__doc__ == rnn.LSTM.__init__.__wrapped__.__doc__


def test_too_many_attributes_for_a_class():
    with pytest.raises(ArgumentTypeError, match="it takes"):
        lr_scheduler.PolyScheduler(9, 0.1, 2, 0, 0, 0, "linear", 8, 9)
    with pytest.raises(ArgumentError):
        lr_scheduler.FactorScheduler("a")


def test_integers_that_no_float_holds():
    """Among floats, also where a damaged file gives them to an operation."""
    assert constant(2**1023, "float32").node.attributes["value"] == 2.0**1023
    with pytest.raises(ArgumentError, match="an integer of 1329 bits"):
        constant(10**400, "float32")
    ones = np.ones((3,))
    assert npx.batch_norm(np.ones((2, 3)), *[ones] * 4, eps=2**1023).tolist() == [[1] * 3] * 2


@pytest.mark.parametrize(
    "call", [lambda: np.hamming(1j, None), lambda: np.hsplit(np.ones((2, 3)), 1j)]
)
def test_complex_attributes_are_refused_at_once(call):
    """Nothing takes them, and what is handed on and on ends in Python's limit of recursion."""
    with pytest.raises(HeterosisError, match="1j; expected a number"):
        call()


def test_fractions_are_numbers():
    x, ones = np.ones((2, 3)), np.ones((3,))
    found = [
        npx.batch_norm(x, ones, ones, ones * 0, ones, eps=eps, fix_gamma=False)
        for eps in (3.0, Fraction(3), Decimal(3))
    ]
    assert found[0].tolist() == found[1].tolist() == found[2].tolist() == [[1.5] * 3] * 2
