"""Choices and loops of symbols: composed, run, stored, read, and refused."""

import json

import numpy
import pytest

from heterosis import autograd, gluon, np
from heterosis import symbol as sym
from heterosis.runtime.errors import ArgumentError, FormatError, UnsupportedError
from tests.mxnet.symbols import controlled

HERE = "tests.mxnet.symbols.controlled"
X, Y, W = (controlled.numbers(name) for name in "xyw")


def _expected(program):
    """The program on arrays, on which the functions run at once."""
    found = program(_Arrays(), *map(np.array, (X, Y, W)))
    return [a.asnumpy() for one in found for a in (one if isinstance(one, list) else [one])]


class _Arrays:
    """The operators of symbols, on arrays."""

    def __getattr__(self, name):
        from heterosis import nd

        return getattr(nd, name)


def _equal(found, expected):
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        numpy.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("program", controlled.PROGRAMS)
def test_symbols_compute_what_arrays_do(program, tmp_path):
    symbol = controlled.composed(sym, program)
    given = {name: np.array(controlled.numbers(name)) for name in symbol.list_arguments()}
    _equal([a.asnumpy() for a in symbol.eval(**given)], _expected(program))
    again = sym.load_json(symbol.tojson())
    assert again.tojson() == symbol.tojson()
    _equal([a.asnumpy() for a in again.eval(**given)], _expected(program))


@pytest.mark.parametrize("program", controlled.PROGRAMS)
def test_blocks_of_symbols_are_hybridized_with_gradients(program):
    symbol = controlled.composed(sym, program)
    names = symbol.list_arguments()
    block = gluon.SymbolBlock(symbol, [sym.var(name) for name in names])
    gradients = []
    for hybridized in (False, True):
        block.hybridize(active=hybridized)
        given = [np.array(controlled.numbers(name)) for name in names]
        for array in given:
            array.attach_grad()
        with autograd.record():
            found = block(*given)
            total = sum(np.sum(a * a) for a in (found if isinstance(found, list) else [found]))
        total.backward()
        gradients.append([array.grad.asnumpy() for array in given])
    _equal(*gradients)


def test_files_say_it_as_mxnet_does():
    table = json.loads(controlled.composed(sym, controlled.row_by_row).tojson())
    (node,) = (n for n in table["nodes"] if n["op"] == "_foreach")
    assert node["attrs"] == {
        "in_data_locs": "[0]", "in_state_locs": "[1]", "num_args": "5", "num_out_data": "1",
        "num_outputs": "2", "remain_locs": "[2, 3]",
    }  # fmt: skip
    (graph,) = node["subgraphs"]
    inner = [graph["nodes"][i]["name"] for i in graph["arg_nodes"]]
    assert inner[:3] == ["x-0", "y-0", "w"]
    assert len(node["inputs"]) == len(inner)


def test_what_is_around_stays_there():
    x = sym.var("x")
    twice = x * 2
    outputs, _ = sym.contrib.foreach(lambda row, s: (row + twice, s + row), twice, sym.var("s"))
    operators = [n["op"] for n in json.loads(outputs.tojson())["nodes"]]
    assert operators.count("_npi_multiply_scalar") == 1


def test_the_same_symbol_begins_two_variables():
    x = sym.var("x")

    def body(a, b):
        return [], [a + x, b * 2]

    _, (a, b) = sym.contrib.while_loop(lambda a, b: sym.sum(a) < 20, body, [x, x], 4)
    found = sym.Group([a, b]).eval(x=np.array([1.0, 2.0]))
    _equal([a.asnumpy() for a in found], [[5, 10], [16, 32]])


def test_no_turn_gives_zeros():
    outputs, last = sym.contrib.while_loop(
        lambda a: sym.sum(a) < 0, lambda a: (a * 2, [a + 1]), [sym.var("x")], 3
    )
    found = sym.Group([outputs, *last]).eval(x=np.array([1.0, 2.0]))
    _equal([a.asnumpy() for a in found], [numpy.zeros((3, 2)), [1, 2]])


@pytest.mark.parametrize(
    "compose, why",
    [
        (lambda x: sym.contrib.foreach(lambda r, s: (s * 2, s), x, x), "is not used"),
        (lambda x: sym.contrib.foreach(lambda r, s: (r, [s, s]), x, x), "2 states; expected 1"),
        (lambda x: sym.contrib.cond(x, lambda: [x, x], lambda: x), "2 symbols, and else_func 1"),
        (lambda x: sym.contrib.while_loop(lambda a: a, lambda a: (a, a), x), "max_iterations"),
    ],
)
def test_what_cannot_be_is_refused(compose, why):
    with pytest.raises(ArgumentError, match=why):
        compose(sym.var("x"))


def _damaged(change):
    table = json.loads(controlled.composed(sym, controlled.row_by_row).tojson())
    (node,) = (n for n in table["nodes"] if n["op"] == "_foreach")
    change(node)
    return json.dumps(table)


@pytest.mark.parametrize(
    "change",
    [
        lambda node: node.pop("subgraphs"),
        lambda node: node.update(subgraphs=7),
        lambda node: node.update(subgraphs=[7]),
        lambda node: node.update(subgraphs=node["subgraphs"] * 2),
        lambda node: node["attrs"].update(in_data_locs="[9]"),
        lambda node: node["attrs"].update(in_data_locs="x"),
        lambda node: node["attrs"].update(remain_locs="[0, 0]"),
        lambda node: node["attrs"].update(num_outputs="x"),
        lambda node: node["attrs"].update(num_out_data="7"),
        lambda node: node["attrs"].pop("in_state_locs"),
        lambda node: node["subgraphs"][0]["heads"].clear(),
        lambda node: node["subgraphs"][0]["nodes"][-1].update(inputs=[[99, 0, 0]]),
    ],
)
def test_damaged_files_are_refused(change):
    with pytest.raises((ArgumentError, FormatError)):
        symbol = sym.load_json(_damaged(change))
        symbol.eval(x=np.array(X), y=np.array(Y), w=np.array(W))


class _Controlled(gluon.HybridBlock):
    def hybrid_forward(self, F, x):
        rows, last = F.contrib.foreach(lambda row, s: (row * s, s + row), x, x[0])
        chosen = F.contrib.cond(x.sum() > 0, lambda: x * 2, lambda: x - 1)

        def turn(i, t):
            return t, [i + 1, F.contrib.cond(t.sum() > 9, lambda: t - 1, lambda: t * 2 + x)]

        turns, (_, state) = F.contrib.while_loop(lambda i, t: i < 3, turn, [F.np.array(0.0), x], 5)
        unbounded = F.npx.while_loop(lambda t: t.sum() < 30, lambda t: ([], t + 1), x)[1]
        return rows, last, chosen, turns, state, unbounded


def _operators(table):
    for node in table["nodes"]:
        yield node["op"]
        for graph in node.get("subgraphs", ()):
            yield from _operators(graph)


def test_exported_blocks_have_choices_and_loops(tmp_path):
    block = _Controlled()
    block.hybridize()
    found = block(np.array(X))
    path, _ = block.export(str(tmp_path / "block"))
    with open(path) as file:
        operators = list(_operators(json.load(file)))
    assert [operators.count(name) for name in ("_foreach", "_cond", "_while_loop")] == [1, 2, 2]
    again = gluon.SymbolBlock.imports(path, ["data"], str(tmp_path / "block-0000.params"))
    for shift in (0, 1, -2):
        found, other = block(np.array(X + shift)), again(np.array(X + shift))
        _equal([a.asnumpy() for a in other], [a.asnumpy() for a in found])


class _Strange(gluon.HybridBlock):
    def hybrid_forward(self, F, x):
        return F.contrib.cond(x.sum() > 0, lambda: F.np.logaddexp(x, x), lambda: x)


def test_what_a_branch_has_no_operator_for_is_named(tmp_path):
    block = _Strange()
    block.hybridize()
    block(np.array(X))
    with pytest.raises(UnsupportedError, match="logaddexp"):
        block.export(str(tmp_path / "block"))


def test_mxnet_runs_ours_and_we_run_what_it_has_written(mxnet, tmp_path):
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    for folder in (ours, theirs):
        folder.mkdir()
    controlled.written(sym, str(ours))
    mxnet.call(HERE, "in_mxnet", "write", str(theirs))
    for folder in (ours, theirs):
        here = controlled.results(sym, None, np.array, str(folder))
        there = mxnet.call(HERE, "in_mxnet", "run", str(folder))
        for program in controlled.PROGRAMS:
            name = program.__name__
            _equal(here[name], _expected(program))
            _equal(there[name], _expected(program))
