"""What runs random programs sees what is wrong: differences, lost writes, crashes, gradients."""

import itertools

import numpy
import pytest

from tests.programs import generate, gradients, layers, places
from tests.programs.check import Failure, check
from tests.programs.comparison import differences
from tests.programs.draft import Draft
from tests.programs.meaning import Call, Expected
from tests.programs.needed import without_idle_refusals
from tests.programs.process import Worker
from tests.programs.program import ACCUMULATES, ROUNDS, Array, Program, Step
from tests.programs.shrink import shrunk


def _program(*steps, returned=("v0",), mode="plain"):
    elements = numpy.array([0.5, 1.5, -2.0], "float32")
    argument = Array(elements, differentiable=mode == "gradient")
    return Program({"x0": argument}, steps, list(returned), mode=mode)


TANH = Step("unary", "np.tanh({0})", ("x0",), "v0", rounding=ROUNDS)
SUM = Step("reduction", "np.sum({0})", ("v0",), "v1", rounding=ACCUMULATES)
WRITE = Step("write", "{0}[1:] = 2", ("x0",))


def test_the_same_seed_gives_the_same_program():
    one, other = generate.program(3, 17), generate.program(3, 17)
    assert one.source() == other.source()
    numpy.testing.assert_equal(
        [a.elements for a in one.arguments.values()],
        [a.elements for a in other.arguments.values()],
    )


def test_every_layer_can_be_made():
    """A step that NumPy refuses is left out without a word: none is refused always."""
    made = dict.fromkeys(layers.LAYERS, False)
    for seed, layer in itertools.product(range(5), made):
        draft = Draft(numpy.random.default_rng(seed), seed, ["float32"], "plain", special=False)
        draft.argument((3, 4), "float32", -1, 1)
        made[layer] |= layer(draft) is not None
    assert all(made.values()), [layer.__name__ for layer, once in made.items() if not once]


def _changed(call, kind, position, by):
    arrays = {k: [a.copy() for a in getattr(call, k)] for k in ("results", "arguments", "outside")}
    arrays[kind][0][position] += by
    return Call(**arrays, aliases=call.aliases)


@pytest.mark.parametrize(
    "kind, by, wrong",
    [("results", 2e-7, False), ("results", 1e-5, True), ("arguments", 1e-5, True)],
)
def test_differences_beyond_rounding_are_told(kind, by, wrong):
    program = _program(TANH, WRITE)
    expected = Expected(program, [program.arguments])
    found = [_changed(expected.base[0], kind, 0, by)]
    assert bool(list(differences(found, expected, expected.base))) == wrong


def test_what_is_sensitive_to_rounding_may_differ_by_more():
    less = Step("binary", "{0} - 0.4621171", ("v0",), "v1", rounding=ROUNDS)
    program = _program(TANH, less, returned=["v1"])
    expected = Expected(program, [program.arguments])
    found = [_changed(expected.base[0], "results", 0, 1e-7)]  # of 6e-8
    assert not list(differences(found, expected, expected.base))


def test_a_number_is_rounded_as_the_arrays_beside_it_are():
    less = Step("outside", "{1} - {0}", ("x0", "k0"), "v0", rounding=ROUNDS)
    arguments = {"x0": Array(numpy.array([0.09975], "float32"))}
    program = Program(arguments, (less,), ["v0"], numbers={"k0": 0.1})
    expected = Expected(program, [program.arguments])
    found = [_changed(expected.base[0], "results", 0, 1.5e-9)]  # float32 holds 0.1 and 1.5e-9
    assert not list(differences(found, expected, expected.base))


def test_writes_and_aliases_are_part_of_the_meaning():
    view = Step("view", "{0}[::-1]", ("x0",), "v0")
    call = Expected(_program(view, WRITE), [_program(view).arguments]).base[0]
    assert call.results[0].tolist() == [2.0, 2.0, 0.5]
    assert call.aliases[0].tolist() == [True, True]


@pytest.mark.lengthy
def test_a_crash_is_told_and_survived():
    worker = Worker()
    crash = Step("unary", "__import__('os').abort()", (), "v1", meaning="np.zeros(3)")
    failures = check(_program(TANH, crash), [worker], ["eager", "hybridized"])
    assert {f.told for f in failures} == {"SIGABRT: "}
    assert not check(_program(TANH), [worker], ["eager", "hybridized"])
    worker.close()


def test_an_error_of_one_way_is_told():
    worker = Worker()
    capturing = "heterosis.runtime.modes.is_capturing()"
    step = Step("unary", f"{{0}} / (1 / (1 - {capturing}))", ("x0",), "v0", meaning="{0} * 1")
    failures = check(_program(step), [worker], ["eager", "hybridized"])
    assert [(f.way, f.category) for f in failures] == [("hybridized", "ZeroDivisionError")]
    worker.close()


def test_wrong_gradients_are_told():
    program = _program(TANH, mode="gradient")
    given = program.arguments["x0"].elements
    right = gradients.weights((3,)) * (1 - numpy.tanh(given) ** 2)
    for factor, wrong in ((1, False), (1.1, True), (0, True)):
        found = [Call([], [], [], [numpy.float32(factor * right)])]
        assert bool(list(gradients.wrong(program, [program.arguments], found))) == wrong


def test_gradients_are_differentiated_again():
    worker = Worker()
    program = _program(TANH, mode="gradient").change(twice=True)
    given = program.arguments["x0"].elements.astype("float64")
    slope = 1 - numpy.tanh(given) ** 2
    right = gradients.weights((3,)) ** 2 * -2 * numpy.tanh(given) * slope
    found = worker.run(program, [program.arguments], ["eager", "hybridized"])
    for (call,) in found.values():
        numpy.testing.assert_allclose(call.gradients[0], right, 1e-4)
    worker.close()


def test_programs_shrink_to_what_fails():
    program = _program(TANH, WRITE, SUM, returned=["v1", "x0", "v0"])
    small = shrunk(program, lambda p: any("tanh" in step.text for step in p.steps))
    assert [step.text for step in small.steps] == ["np.tanh({0})"]
    assert "v0 = np.tanh(x0)" in small.source()


def test_a_shrunk_program_names_the_command_that_finds_it(monkeypatch):
    monkeypatch.setenv("HETEROSIS_CHECK", "1")
    program = generate.program(3, 17, ["unary"])
    small = shrunk(program, lambda p: len(p.steps) > 0)
    told = Failure(small, "xla", "avx2", "wrong", Worker("avx2", turned=True).flags).report()
    command = (
        "python -m tests.programs --seed 3 --only 17 --kinds unary --targets avx2 --turned --xla"
    )
    assert f"# HETEROSIS_CHECK=1 {command}\n" in told


@pytest.mark.parametrize("place", places.PLACES, ids=lambda place: place.read)
def test_a_number_is_read_as_it_was_set(place):
    values = {places.FLOAT: (2.5, 0.0, -1.5, 2.5), places.COUNT: (2, 0, 3, 2)}
    name, found = place.read.replace("@", "7"), {"numpy": numpy, "__name__": "program"}
    exec("\n".join(places.made({name: 0})), found)  # noqa: S102
    for value in values.get(place.takes, (2.5, 0, None, "text", True, slice(1), 2.5)):
        exec("\n".join(places.numbers_set({name: value})), found)  # noqa: S102
        read = eval(name, found)
        assert (read, type(read)) == (value, type(value))


READ = Step("refused", "{0}[{1}]", ("x0", "x1"), "v0", "float32", whole=(1,))
PUT = Step("refused", "{0}[{1}] = 1", ("x0", "x1"), whole=(1,))
PRINT = Step("printed", "npx.print('p7', {0})", ("v0",), meaning="printed('p7')")


def _refusing(*steps, returned):
    program = _program(*steps, returned=returned)
    good, bad = Array(numpy.array(1)), Array(numpy.array(3))
    return program.change(arguments={**program.arguments, "x1": good}, refused={"x1": bad})


def test_a_refused_index_ends_a_call_and_what_was_written_stays():
    program = _refusing(WRITE, READ, returned=["v0"])
    calls = [program.arguments, {**program.arguments, **program.refused}]
    good, bad = Expected(program, calls).base
    assert (good.error, bad.error, bad.results) == ("", "IndexError", [])
    assert bad.arguments[0].tolist() == [0.5, 2, 2]
    found = Call(bad.results, [a + 1 for a in bad.arguments], [], error=bad.error)
    expected = Expected(program, calls)
    assert list(differences([good, found], expected, expected.base))
    assert list(differences([good, good], expected, expected.base))


@pytest.mark.parametrize(
    "steps, returned, idle",
    [
        ([READ], ["v0"], 0),
        ([READ], ["x0"], 1),
        ([READ, PRINT], ["x0"], 0),
        ([PUT], ["x1"], 0),  # to an argument
        ([TANH, Step("view", "{0}[1:]", ("v0",), "v1"),
          Step("refused", "{0}[{1}] = 1", ("v0", "x1"))], ["v1"], 0),
        ([TANH, Step("unary", "{0} * 2", ("v0",), "v1"),
          Step("refused", "{0}[{1}] = 1", ("v0", "x1"))], ["v1"], 1),
        ([PUT, Step("write", "{0}[...] = 2", ("x0",))], ["x1"], 1),
    ],
)  # fmt: skip
def test_an_index_that_nothing_needs_refuses_nothing(steps, returned, idle):
    program = _refusing(*steps, returned=returned)
    bad = {**program.arguments, **program.refused}
    changed = without_idle_refusals(program, [program.arguments, bad])
    assert sum(a is not b for a, b in zip(program.steps, changed.steps, strict=True)) == idle


def test_lines_that_are_printed_are_compared():
    program = _program(TANH, PRINT)
    expected = Expected(program, [program.arguments])
    (call,) = expected.base
    assert call.printed == ["p7"]
    silent = Call(call.results, call.arguments, call.outside, aliases=call.aliases)
    assert list(differences([silent], expected, expected.base))
