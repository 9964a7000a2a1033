"""Shared libraries out of objects, loaded by the system's own loader."""

import ctypes

import pytest

from heterosis.backends.native.codegen.target import FALLBACK
from heterosis.backends.native.compile.compiler import compile_object, host_target
from heterosis.backends.native.export.elf import shared_library
from heterosis.runtime.errors import UnsupportedError

pytestmark = pytest.mark.skipif(
    host_target().triple != FALLBACK.triple, reason="libraries are written for x86-64"
)

_FIRST = """
declare double @floor(double)
declare ptr @memset(ptr, i32, i64)
declare i64 @second(i64)
@data = external hidden global i8
@counter = internal global i64 40
@chosen = internal constant [2 x ptr] [ptr @first, ptr @second]

define double @rounded(double %x) {
  %y = call double @floor(double %x)
  ret double %y
}
define void @filled(ptr %at, i64 %count) {
  call ptr @memset(ptr %at, i32 7, i64 %count)
  ret void
}
define i64 @first(i64 %x) { ret i64 %x }
define i64 @through(i64 %which, i64 %x) {
  %at = getelementptr ptr, ptr @chosen, i64 %which
  %f = load ptr, ptr %at
  %y = call i64 %f(i64 %x)
  ret i64 %y
}
define i64 @counted() {
  %n = load i64, ptr @counter
  %m = add i64 %n, 1
  store i64 %m, ptr @counter
  ret i64 %m
}
define i8 @item(i64 %i) {
  %at = getelementptr i8, ptr @data, i64 %i
  %x = load i8, ptr %at
  ret i8 %x
}
define ptr @handed() { ret ptr @data }
"""
_SECOND = "define i64 @second(i64 %x) { %y = mul i64 %x, 2\n ret i64 %y }"
_SHOWN = ["rounded", "filled", "through", "counted", "item", "handed"]


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    objects = [compile_object(text, FALLBACK) for text in (_FIRST, _SECOND)]
    path = tmp_path_factory.mktemp("elf") / "libsample.so"
    path.write_bytes(shared_library(objects, _SHOWN, {"data": b"abc"}, "libsample.so"))
    return ctypes.CDLL(str(path))


def test_functions_of_the_c_library_are_found_when_it_is_loaded(loaded):
    loaded.rounded.restype, loaded.rounded.argtypes = ctypes.c_double, [ctypes.c_double]
    assert loaded.rounded(-2.5) == -3.0
    memory = ctypes.create_string_buffer(b"......", 6)
    loaded.filled(memory, 3)
    assert memory.raw == b"\7\7\7..."


def test_objects_find_each_other_through_addresses_and_calls(loaded):
    assert [loaded.through(which, 21) for which in (0, 1)] == [21, 42]


def test_variables_can_be_written_and_data_be_read(loaded):
    assert [loaded.counted(), loaded.counted()] == [41, 42]
    assert bytes(loaded.item(i) for i in range(3)) == b"abc"
    loaded.handed.restype = ctypes.c_void_p
    assert loaded.handed() % 64 == 0


def test_what_is_not_exported_is_not_shown(loaded):
    assert not hasattr(loaded, "second")


def test_what_nobody_has_is_refused_by_name():
    text = "declare i64 @nowhere()\ndefine i64 @f() { %x = call i64 @nowhere()\n ret i64 %x }"
    with pytest.raises(UnsupportedError, match="calls nowhere"):
        shared_library([compile_object(text, FALLBACK)], ["f"], {}, "libsample.so")


def test_objects_for_other_processors_are_refused():
    with pytest.raises(UnsupportedError, match="machine 243"):
        shared_library(
            [b"\x7fELF\x02\x01".ljust(18, b"\0") + b"\xf3".ljust(60, b"\0")], [], {}, "x"
        )
