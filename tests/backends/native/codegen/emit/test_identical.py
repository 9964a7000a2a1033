"""Functions that do the same are compiled once."""

from __future__ import annotations

import ctypes

from heterosis import _core
from heterosis.backends.native.codegen.emit.builder import I64, Module, constant
from heterosis.backends.native.codegen.emit.identical import renamed, stand_ins
from heterosis.backends.native.compile.compiler import compile_object, host_target


def function(name: str, body: str) -> str:
    return f"define internal i64 @{name}() {{ {body} }}"


def found(texts: dict[str, str], inside: set[str] | None = None) -> dict[str, str]:
    given = {name: function(name, body) for name, body in texts.items()}
    return stand_ins(given, set(texts) if inside is None else inside)


def test_equal_ones_are_one():
    assert found({"a": "ret i64 1", "b": "ret i64 1", "c": "ret i64 2"}) == {"b": "a"}


def test_callers_of_equal_ones_are_equal():
    texts = {
        "top": "call @f.1 call @f.2",
        "f.1": "call @g.1",
        "f.2": "call @g.2",
        "g.1": "ret",
        "g.2": "ret",
    }
    stands = found(texts)
    assert stands == {"f.2": "f.1", "g.2": "g.1"}
    assert renamed(texts["top"], stands) == "call @f.1 call @f.1"


def test_one_that_calls_itself():
    assert found({"a": "call @a", "b": "call @b", "c": "call @a"}) == {"b": "a"}


def test_tables_are_no_functions():
    assert found({"a": "load @numbers1", "b": "load @numbers2"}) == {}


def test_what_others_know_stays():
    assert found({"a": "ret", "b": "ret"}, inside={"a"}) == {}


def test_tables_of_functions_follow():
    module = Module()
    for name in ("a", "b"):
        module.function(name, [], I64).ret(constant(I64, 1))
    module.pointers("both", ["@a", "@b", "null"])
    assert "[ptr @a, ptr @a, ptr null]" in module.text()


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
