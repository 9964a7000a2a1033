"""Saved programs compute the same as what was saved, and damaged files nothing at all."""

import json
import subprocess
import sys

import numpy
import pytest

import heterosis
from heterosis import autograd, gluon, np, npx
from heterosis.capture import capture
from heterosis.gluon import nn, rnn
from heterosis.io.packing import pack, unpack
from heterosis.ir.text import printed
from heterosis.ops import REGISTRY
from heterosis.runtime.errors import (
    ArgumentError,
    CaptureError,
    FormatError,
    UninitializedError,
    UnsupportedError,
)
from tests.capture.calls import CASES, Calls, sampled
from tests.choose import spread


def _array(*shape):
    return np.array(numpy.random.default_rng(0).normal(size=shape), dtype="float32")


def _same(found, wanted):
    """Equal in structure and to the bit."""
    assert type(found) is type(wanted)
    if isinstance(wanted, tuple | list):
        assert len(found) == len(wanted)
        for a, b in zip(found, wanted, strict=True):
            _same(a, b)
    elif isinstance(wanted, dict):
        assert list(found) == list(wanted)
        _same(list(found.values()), list(wanted.values()))
    elif isinstance(wanted, np.ndarray):
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
        assert found.asnumpy().tobytes() == wanted.asnumpy().tobytes()
    else:
        assert found == wanted


def _again(function, path):
    """`function`, saved and loaded."""
    heterosis.save(function, path)
    return heterosis.load(path)


def _mlp():
    net = nn.HybridSequential()
    net.add(nn.Dense(8, activation="relu"), nn.BatchNorm(), nn.Dropout(0.5), nn.Dense(2))
    net.initialize()
    return heterosis.hybridize(net)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "program"


# -- what is saved --------------------------------------------------------------------------------


def test_functions_with_structures_numbers_and_writes(path):
    @heterosis.hybridize
    def step(x, state, scale=2.0, *more, offset, **named):
        y = x[1:, ...] * scale + np.array([1, 2, 3]) + named["bias"]
        y += more[0]
        x[0] = offset
        turned = state["h"][0].T
        turned[0] = y[0, 0]
        return {"y": y, "list": [turned, x]}, ("text", 3, None, True, float("inf")), state["h"][1]

    def arguments():
        given = np.arange(12).reshape(4, 3), {"h": [_array(2, 3), np.zeros((2,))]}, 0.5, _array(3)
        return given, {"offset": 7, "bias": np.ones((3,))}

    given, named = arguments()
    wanted = step(*given, **named)
    loaded = _again(step, path)
    given, named = arguments()
    _same(loaded(*given, **named), wanted)
    assert (given[0][0].asnumpy() == 7).all()
    assert list(loaded.inputs) == [
        "x", "state['h'][0]", "state['h'][1]", "more[0]", "named['bias']"
    ]  # fmt: skip
    assert loaded.signatures[0].values == {"scale": 0.5, "offset": 7}


def test_a_program_for_each_kind_of_arguments(path):
    @heterosis.hybridize(dynamic=False)
    def scaled(x, times=1):
        return x * times

    calls = [(_array(2), 1), (_array(2, 3), 1), (_array(2).astype("float64"), 1), (_array(2), 3)]
    wanted = [scaled(*call) for call in calls]
    loaded = _again(scaled, path)
    assert len(loaded.signatures) == 4
    _same([loaded(*call) for call in calls], wanted)
    _same(loaded(calls[0][0]), wanted[0])  # the default
    _same(loaded(times=3, x=calls[3][0]), wanted[3])
    assert str(loaded.signatures[3]) == "(x: float32[2], times=3) -> (output: float32[2])"
    message = r"(?s)called with \(x: float32\[5\], times=1\); .* \(x: float32\[2\], times=3\) -> "
    with pytest.raises(ArgumentError, match=message):
        loaded(np.ones(5))
    with pytest.raises(ArgumentError, match="missing a required argument: 'x'"):
        loaded()
    _same(loaded(*calls[1]), wanted[1])  # after an error as before


@pytest.mark.parametrize(
    "make, shape",
    [
        (_mlp, (3, 5)),
        (lambda: nn.Conv2D(4, 3, padding=1, activation="relu"), (2, 3, 8, 8)),
        (lambda: nn.Embedding(7, 4), (2, 3)),
    ],
)
def test_blocks(make, shape, path):
    net = make()
    net.initialize(force_reinit=True)
    net.hybridize()
    x = np.abs(_array(*shape))
    wanted = net(x)
    loaded = _again(net, path)
    _same(loaded(x), wanted)
    _same(loaded(x), net(x))
    held = loaded.held()
    assert {name: a.shape for name, a in held.items()} == {
        name: net.collect_params()[name].shape for name in held
    }


@pytest.mark.parametrize("layer", [rnn.LSTM(4, 2, bidirectional=True), rnn.GRU(4), rnn.RNN(4)])
def test_recurrent_layers(layer, path):
    layer.initialize(force_reinit=True)
    layer.hybridize()
    x, states = _array(3, 2, 5), layer.begin_state(2)
    wanted = layer(x, states)
    loaded = _again(layer, path)
    assert list(loaded.inputs)[:2] == ["inputs", "states[0]"]
    _same(loaded(x, states), wanted)


@pytest.mark.main_memory("parameters from MXNet's files are there")
def test_imported_symbols(path, tmp_path):
    """Their inputs keep their names."""
    net, x = _mlp(), _array(3, 5)
    net(x)
    block = gluon.SymbolBlock.imports(*_exported(net, tmp_path))
    block.hybridize()
    wanted = block(x)
    loaded = _again(block, path)
    assert list(loaded.inputs) == ["data"]
    _same(loaded(data=x), wanted)


def _exported(net, folder):
    symbol, arrays = net.export(str(folder / "net"))
    return symbol, "data", arrays


@pytest.mark.lengthy
def test_a_block_trained_and_saved_predicts(path):
    net, x = _mlp(), _array(4, 6)
    with autograd.record():
        net(x).backward()
    loaded = _again(net, path)
    _same(loaded(x), net(x))
    with autograd.train_mode():
        found = loaded(x)
    _same(found, net(x))


def test_the_same_random_numbers(path):
    @heterosis.hybridize
    def noisy(x):
        return x + np.random.normal(size=x.shape), np.random.uniform(size=(2,))

    x = _array(3)
    noisy(x)
    loaded = _again(noisy, path)
    for seed in (1, 2):
        np.random.seed(seed)
        wanted = noisy(x)
        np.random.seed(seed)
        _same(loaded(x), wanted)


def test_state_outside_is_saved_as_it_was(path):
    count = np.zeros((2,))

    @heterosis.hybridize
    def counted(x):
        count[...] = count + 1
        return x + count

    assert counted(np.zeros((2,))).tolist() == [1, 1]
    loaded = _again(counted, path)
    assert [loaded(np.zeros((2,))).tolist() for _ in range(2)] == [[2, 2], [3, 3]]
    assert count.tolist() == [1, 1]


@pytest.mark.parametrize("shape", [(), (1,), (0,), (2, 0), (1, 1)])
def test_arrays_from_outside_of_all_shapes(shape, path):
    outside = _array(*shape)
    uses = (
        lambda x: (outside, x),
        lambda x: (outside.copy(), x),
        lambda x: (_filled(np.zeros(shape), outside), x),
        lambda x: x[: outside.size] + outside.reshape(-1),
    )
    for use in uses:
        compiled = heterosis.hybridize(use)
        wanted = compiled(_array(3))
        _same(_again(compiled, path)(_array(3)), wanted)
        _same(use(_array(3)), wanted)


def _filled(array, value):
    array[...] = value
    return array


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int8", "bool"])
def test_arrays_of_all_types(dtype, path):
    table = np.array([[0, 1], [1, 0]], dtype=dtype)

    @heterosis.hybridize
    def shown(x):
        return np.where(x > 0, table, table.T), table

    wanted = shown(np.array([0, 1]))
    _same(_again(shown, path)(np.array([0, 1])), wanted)


def test_sample_inputs_instead_of_a_call(path):
    def product(x, y):
        return x @ y

    x, y = _array(2, 3), _array(3, 2)
    with pytest.raises(UninitializedError, match=r"product has no program yet: call it once, or"):
        heterosis.save(product, path)
    assert not path.exists()
    heterosis.save(product, path, x, y=y)
    _same(heterosis.load(path)(x, y), heterosis.hybridize(product)(x, y))
    net = nn.Dense(4)  # its shapes are completed by the sample
    net.initialize()
    with pytest.raises(UninitializedError, match="no program yet"):
        heterosis.save(net, path)
    heterosis.save(net, path, x)
    net.hybridize()
    _same(heterosis.load(path)(x=x), net(x))


@pytest.mark.parametrize("layer", [rnn.LSTM, rnn.GRU, rnn.RNN])
def test_sample_inputs_of_a_block_with_a_call_of_its_own(layer, path):
    """The states that the layer's `__call__` makes are part of the program."""
    net, x = layer(4), _array(5, 2, 3)
    net.initialize()
    heterosis.save(net, path, x)
    loaded = heterosis.load(path)
    assert list(loaded.inputs) == ["inputs"]
    _same(loaded(x), net(x))
    states = net.begin_state(2)
    heterosis.save(net, path, x, states=states)
    _same(heterosis.load(path)(x, states=states), net(x, states))


def test_a_hybridized_block_saves_its_parts_too(tmp_path):
    net, x = _mlp(), _array(3, 5)
    with pytest.raises(UninitializedError, match="call it once"):
        net.save(str(tmp_path / "m"))
    assert not list(tmp_path.iterdir())
    net(x)
    net.save(str(tmp_path / "m"))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m", "m-model.json", "m-model.params"]
    other = _mlp()
    other.load(str(tmp_path / "m"))
    _same(other(x), net(x))
    _same(heterosis.load(tmp_path / "m")(x), net(x))


@pytest.mark.lengthy
def test_loaded_programs_in_others(path, tmp_path):
    """A loaded program can be differentiated, be part of another program, and be saved again."""
    net, x = _mlp(), _array(3, 5)
    net(x)
    loaded = _again(net, path)
    _same(_again(loaded, tmp_path / "again")(x), net(x))

    @heterosis.hybridize
    def doubled(x):
        return loaded(x) * 2

    _same(doubled(x), net(x) * 2)
    _same(_again(doubled, tmp_path / "doubled")(x), net(x) * 2)
    gradients = []
    for function in (net, loaded):
        x.attach_grad()
        with autograd.record(train_mode=False):
            y = function(x).sum()
        y.backward()
        gradients.append(x.grad.copy())
    _same(*gradients)


@pytest.mark.lengthy
def test_without_the_source(path):
    net, x = _mlp(), _array(3, 5)
    wanted = net(x)
    heterosis.save(net, path)
    npx.save(str(path) + ".x", {"x": x, "y": wanted})
    code = (
        "import sys, heterosis; from heterosis import npx; d = npx.load(sys.argv[1] + '.x')\n"
        "y = heterosis.load(sys.argv[1])(d['x'])\n"
        "assert y.asnumpy().tobytes() == d['y'].asnumpy().tobytes()\n"
        "assert 'heterosis.gluon' not in sys.modules\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


# Their attributes are programs: a file holds the choice or loop that users write instead.
NOT_SAVED = ("conditional", "scan", "while_loop")


@pytest.mark.parametrize("name, dtype", [one for one in sampled() if one[0] in NOT_SAVED])
def test_programs_as_attributes_are_refused(name, dtype, path):
    calls = Calls(REGISTRY[name], dtype, REGISTRY[name].samples.cases)
    with pytest.raises(UnsupportedError, match=f"{name} cannot be saved: its .* a Program"):
        heterosis.save(calls.single, path, calls.operands())


@pytest.mark.parametrize("name, dtype", [one for one in sampled() if one[0] not in NOT_SAVED])
def test_every_operation_is_the_same_program(name, dtype, path):
    record = REGISTRY[name]
    calls = Calls(record, dtype, spread(record.samples.cases, CASES))

    def all_cases(operands):
        return calls.single(operands)

    operands = calls.operands()
    try:
        wanted = capture(all_cases, (operands,), {})
    except CaptureError:
        pytest.skip("reads elements")
    heterosis.save(all_cases, path, operands)
    found = capture(heterosis.load(path), (operands,), {})
    texts = [printed(one.program, calls=False).text for one in (found, wanted)]  # not the lines
    assert texts[0] == texts[1]


# -- choices and loops ----------------------------------------------------------------------------


@heterosis.hybridize
def _searched(x, limit):
    steps, found, kept, row_sum = 0, x * 0, np.zeros((2, 3)), np.array(0.0)
    while found.sum() < limit:
        if steps % 2 == 0:
            found = found + x
        elif steps > 6:
            found = found + 1e10
        else:
            found = found * 1.5 + np.ones(3)
        for row in kept:
            row_sum = row.sum() + steps
        kept[steps % 2] = found + row_sum
        x[0] += 1
        steps += 1
    return found * 2, steps, kept


def test_statements(path):
    def found(function, limit):
        x = np.arange(3).astype("float32")
        return [*function(x, np.array(limit)), x]

    limits = (-1.0, 5.0, 40.0, 1e9)
    wanted = [found(_searched, limit) for limit in limits]
    heterosis.save(_searched, path)
    loaded = heterosis.load(path)
    _same([found(loaded, limit) for limit in limits], wanted)
    with autograd.record():
        _same([found(loaded, limit) for limit in limits], wanted)


def test_loops_that_change_arrays_from_outside(path):
    state = np.zeros((2, 3))

    @heterosis.hybridize
    def function(x):
        def turn(row, s):
            state[:, 1] += row.sum()
            return state * s, s + row[0]

        made, _ = npx.foreach(turn, x, np.array(1.0))
        return npx.cond(made.sum() > 0, lambda: (made, 3, 1), lambda: (made * 2, 3, made[0, 0, 1]))

    wanted = function(np.ones((4, 3))), function(-np.ones((4, 3)))
    state[:] = 0
    loaded = _again(function, path)
    _same((loaded(np.ones((4, 3))), loaded(-np.ones((4, 3)))), wanted)


# -- what is refused ------------------------------------------------------------------------------


def test_arguments_and_results_that_are_no_data(path):
    @heterosis.hybridize
    def called(x, how):
        return how(x)

    called(np.ones(2), np.exp)
    with pytest.raises(UnsupportedError, match="called: the argument how is, or holds, a "):
        called.save(path)
    with pytest.raises(UnsupportedError, match="the result is, or holds, a object"):
        heterosis.save(lambda x: object(), path, np.ones(2))
    assert not path.exists()


def test_training_is_not_saved(path):
    net = nn.Dense(2, in_units=3)
    net.initialize()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})

    @heterosis.hybridize
    def step(x):
        with autograd.record():
            y = net(x).sum()
        y.backward()
        trainer.step(1)
        return y

    step(_array(2, 3))
    with pytest.raises(UnsupportedError, match="for inference"):
        step.save(path)

    @heterosis.hybridize
    def slope(x):
        x = x.copy()
        x.attach_grad()
        with autograd.record():
            y = x * x
        y.backward()
        return x.grad * 2

    slope(_array(3))
    with pytest.raises(
        UnsupportedError, match=r"operation \w+ cannot be saved: it takes a gradient"
    ):
        slope.save(path)


# -- what is no such file -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """The bytes of a small program."""
    path = tmp_path_factory.mktemp("small") / "f"
    weight = np.array([[1, 2], [3, 4]])
    heterosis.save(lambda x: (x[1:] @ weight + 1).T, path, _array(3, 2))
    return path.read_bytes()


def _refused(data, path, match="Nothing has been loaded"):
    path.write_bytes(data)
    with pytest.raises(FormatError, match=match) as caught:
        heterosis.load(path)
    assert str(path) in str(caught.value)


@pytest.mark.lengthy
def test_every_truncation_is_an_error(small, path):
    for length in range(len(small)):
        _refused(small[:length], path)


@pytest.mark.lengthy
def test_flipped_bytes_never_crash(small, path):
    rng = numpy.random.default_rng(1)
    x, refused = _array(3, 2), 0
    for place in rng.permutation(len(small)):
        broken = bytearray(small)
        broken[place] ^= 1 << rng.integers(8)
        path.write_bytes(broken)
        try:
            loaded = heterosis.load(path)
        except FormatError as error:
            assert "Nothing has been loaded" in str(error)
            refused += 1
            continue
        if str(loaded.signatures[0]) == "(x: float32[3, 2]) -> (output: float32[2, 2])":
            loaded(x).wait_to_read()
    assert refused > len(small) / 2


def _changed(small, change):
    arrays, facts = unpack(small)
    change(facts["heterosis"], facts["heterosis"]["programs"][0])
    return pack(arrays, facts)


def _call(index, **facts):
    return lambda whole, program: program["calls"][index].update(facts)


def _argument(index, **facts):
    return lambda whole, program: program["calls"][index]["arguments"].update(facts)


def _with(**facts):
    return lambda whole, program: program.update(facts)


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda whole, program: whole.update(version=3), "version 3 of the format; expected 1"),
        (lambda whole, program: whole.pop("parameters"), "the head: there is no 'parameters'"),
        (lambda whole, program: whole["programs"].clear(), "there are none"),
        (_call(0, operation="bell"), "program 0: the operation 'bell' is not known here"),
        (_argument(0, a={"array": 9}), r"call 0 \(select_part\): there is no array 9"),
        (_argument(0, a={"array": -1}), "there is no array -1"),
        (_argument(0, a={"array": [1]}), "there is no array"),
        (_argument(0, a={"what": 1}), "the unknown kind of value 'what'"),
        (_argument(0, starts=[3, 0]), r"call 0 \(select_part\): elements 3 to 4"),
        (_argument(0, starts="text"), r"call 0 \(select_part\)"),
        (_argument(0, more=1), r"select_part has no arguments \['more'\]"),
        (_call(1, results=[["float32", [1]]]), r"call 1 \(matmul\): it gives "),
        (_with(inputs=[["float32", [2**40, 2**40]]]), "larger than any memory"),
        (_with(inputs=[["float32", [-1]]]), "an input of the shape"),
        (_with(inputs=[["text", [1]]]), "unknown element type"),
        (_with(inputs=[["float32", [3, 2]]] * 2), "expected each of them once"),
        (_with(held=["other"]), "program 0: there is no 'other'"),
        (_with(result={"array": 99}), "the result: there is no array 99"),
        (_with(arguments={}), "missing a required argument: 'x'"),
        (_with(arguments={"y": {"array": 0}}), "program 0"),
    ],
)
def test_facts_that_cannot_be(small, path, change, message):
    _refused(_changed(small, change), path, message)


@pytest.fixture(scope="module")
def looping(tmp_path_factory):
    """The bytes of a small program with a choice within a loop, and of one without bound."""
    path = tmp_path_factory.mktemp("looping") / "f"

    def function(x):
        def turn(row, s):
            return row * s, npx.cond(s.sum() > 0, lambda: s + row, lambda: s)

        made, s = npx.foreach(turn, x, x[0])
        return made, npx.while_loop(lambda s: s.sum() < 9, lambda s: ([], s + 1), s)[1]

    heterosis.save(function, path, _array(3, 2))
    return path.read_bytes()


def _loop(kind, change):
    def changed(whole, program):
        change(next(call for call in program["calls"] if call.get("control") == kind))

    return changed


def _body(loop):
    return loop["regions"]["body"]


def _nested(loop, depth=10):
    """A loop within its own condition, and so on."""
    for _ in range(depth):
        loop["regions"]["condition"]["calls"].append(json.loads(json.dumps(loop)))


@pytest.mark.parametrize(
    "change, message",
    [
        (_loop("scan", lambda loop: loop.update(control="for")), "there is no 'for'"),
        (_loop("scan", lambda loop: loop["given"].pop("length")), "scan has"),
        (_loop("scan", lambda loop: loop["regions"].clear()), "scan has"),
        (_loop("scan", lambda loop: loop["given"].update(length=[2])), "expected 2 of them"),
        (_loop("scan", lambda loop: loop["given"].update(length=[-1])), "length from 0 on"),
        (_loop("scan", lambda loop: loop["given"].update(length=["3"])), "no array and no number"),
        (_loop("scan", lambda loop: loop["given"].update(length=[3.0])), "a number of them"),
        (_loop("scan", lambda loop: loop["given"].update(states=[])), "there is no array 3"),
        (_loop("scan", lambda loop: _body(loop)["result"].pop()), "it gives"),
        (_loop("scan", lambda loop: _body(loop).update(result=[{"array": 99}])),
         r"\(scan\), body: there is no array 99"),
        (_loop("scan", lambda loop: _body(loop)["calls"][0].update(operation="bell")),
         "the operation 'bell' is not known"),
        (_loop("scan", lambda loop: _body(loop)["calls"][0].update(results=[])),
         r"call \d+ \(scan\), body, call 0 \(\w+\): it gives"),
        (_loop("while_loop", lambda loop: loop["regions"]["condition"].update(result=[True, 1])),
         "too many values"),
        (_loop("while_loop", lambda loop: loop["regions"]["condition"].update(result=[
            {"dict": [["zeros", ["float32", [2**62, 2**62]]]]}])), "larger than any memory"),
        (_loop("while_loop", lambda loop: loop.update(results=[])), "it gives"),
        (_loop("while_loop", _nested), "conditions within conditions"),
    ],
)  # fmt: skip
def test_choices_and_loops_that_cannot_be(looping, path, change, message):
    _refused(_changed(looping, change), path, message)


def test_flipped_bytes_of_loops_never_crash(looping, path):
    rng = numpy.random.default_rng(2)
    for place in rng.permutation(len(looping))[:400]:
        broken = bytearray(looping)
        broken[place] ^= 1 << rng.integers(8)
        path.write_bytes(broken)
        try:
            heterosis.load(path)
        except FormatError as error:
            assert "Nothing has been loaded" in str(error)


def test_claims_without_bytes(small, path):
    head = {"w": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]}}
    text = json.dumps(head).encode()
    _refused(len(text).to_bytes(8, "little") + text + bytes(64), path)
    _refused((2**62).to_bytes(8, "little") + small[8:], path)
    _refused(b"", path)
    deep = pack({}, {"heterosis": 0}).replace(b'"0"', b'"' + b"[" * 100_000 + b'"')
    _refused(deep, path)


def test_a_write_that_fails_leaves_the_old_file(path, monkeypatch):
    heterosis.save(lambda x: x + 1, path, np.ones(2))
    before = path.read_bytes()
    monkeypatch.setattr("os.replace", lambda *names: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError, match="full"):
        heterosis.save(lambda x: x + 2, path, np.ones(2))
    assert path.read_bytes() == before and len(list(path.parent.iterdir())) == 1
