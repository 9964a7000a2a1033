"""Functions that do the same are compiled once."""

from __future__ import annotations

import ctypes

from heterosis import _core
from heterosis.codegen.builder import I64, Module, constant
from heterosis.codegen.compiler import compile_object, host_target
from heterosis.codegen.identical import merged


def function(name: str, body: str) -> str:
    return f"define internal i64 @{name}() {{ {body} }}"


def names(texts: dict[str, str], inside: set[str] | None = None) -> list[str]:
    given = {name: function(name, body) for name, body in texts.items()}
    found = merged(given, set(texts) if inside is None else inside)
    return [text[text.index("@") + 1 : text.index("(")] for text in found]


def test_equal_ones_are_one():
    assert names({"a": "ret i64 1", "b": "ret i64 1", "c": "ret i64 2"}) == ["a", "c"]


def test_callers_of_equal_ones_are_equal():
    texts = {
        "top": "call @f.1 call @f.2",
        "f.1": "call @g.1",
        "f.2": "call @g.2",
        "g.1": "ret",
        "g.2": "ret",
    }
    assert names(texts) == ["top", "f.1", "g.1"]
    made = merged({name: function(name, body) for name, body in texts.items()}, set(texts))
    assert "call @f.1 call @f.1" in made[0]


def test_one_that_calls_itself():
    assert names({"a": "call @a", "b": "call @b", "c": "call @a"}) == ["a", "c"]


def test_tables_are_no_functions():
    assert names({"a": "load @numbers1", "b": "load @numbers2"}) == ["a", "b"]


def test_what_others_know_stays():
    assert names({"a": "ret", "b": "ret"}, inside={"a"}) == ["a", "b"]


def test_a_module_runs_all_the_same():
    module = Module()
    whole = module.function("whole", [], I64, linkage="")
    parts = [whole.call(f"part{i}", [], I64) for i in range(3)]
    whole.ret(whole.add(whole.add(parts[0], parts[1]), parts[2]))
    for i in range(3):
        part = module.function(f"part{i}", [], I64)
        part.ret(constant(I64, 10 if i < 2 else 1))
    assert module.text().count("define") == 3
    loaded = _core.load_object(compile_object(module.text(), host_target()))
    assert ctypes.CFUNCTYPE(ctypes.c_int64)(loaded.address("whole"))() == 21
