"""The machine code that comes with the package: found, distrusted, never written to."""

from __future__ import annotations

import ctypes
import os

import pytest

from heterosis.backends.native.codegen.kernel import Machine
from heterosis.backends.native.compile import object_cache
from heterosis.backends.native.compile.compiler import compile_object, family, host_target
from heterosis.backends.native.compile.object_cache import ObjectCache
from heterosis.backends.native.compile.shipped import Archive
from heterosis.backends.native.compile.single import code_for
from heterosis.ops import REGISTRY
from heterosis.ops.record import ARRAY, ATTRIBUTE


def constant_function(number: int) -> str:
    return f"define i64 @answer() {{ ret i64 {number} }}"


def answer(cache: ObjectCache, number: int) -> int:
    loaded = cache.load(f"answer {number}", lambda: constant_function(number))
    return ctypes.CFUNCTYPE(ctypes.c_int64)(loaded.address("answer"))()


@pytest.fixture(autouse=True)
def fixed_sources(monkeypatch):
    monkeypatch.setattr(object_cache, "_sources_signature", lambda: b"s" * 32)


@pytest.fixture
def cache_of(tmp_path):
    """Makes a cache over an empty directory of the user's, and the archive."""

    def make() -> ObjectCache:
        folder = tmp_path / f"user{len(list(tmp_path.iterdir()))}"
        folder.mkdir(mode=0o700)
        return ObjectCache(str(folder), archive=Archive(str(tmp_path / "archive")))

    return make


@pytest.fixture
def archive(cache_of, tmp_path):
    """An archive with two functions: the answers 1 and 2."""
    cache, entries = cache_of(), {}
    for number in (1, 2):
        key = cache.key(f"answer {number}", host_target())
        code = compile_object(constant_function(number), host_target())
        entries[key] = object_cache.pack(key, code)
    path = tmp_path / "archive"
    Archive.write(str(path), entries)
    path.chmod(0o644)
    return path


def test_found_without_compiling_and_without_being_kept_again(cache_of, archive):
    cache = cache_of()
    assert [answer(cache, n) for n in (1, 2, 3)] == [1, 2, 3]
    assert (cache.counters.disk_hits, cache.counters.compiles) == (2, 1)
    (only,) = [name for name in os.listdir(cache.directory) if name.startswith(kept(cache, 3))]
    assert not [name for name in os.listdir(cache.directory) if name.startswith(kept(cache, 1))]
    assert only.endswith(".o")


def kept(cache: ObjectCache, number: int) -> str:
    return cache.key(f"answer {number}", host_target()).hex()


def test_the_users_entry_comes_first(cache_of, archive):
    cache = cache_of()
    cache.write(cache.key("answer 1", host_target()),
                compile_object(constant_function(10), host_target()))  # fmt: skip
    assert answer(cache, 1) == 10


def test_off_is_off(archive):
    cache = ObjectCache(None, archive=Archive(str(archive)))
    assert answer(cache, 1) == 1
    assert cache.counters.compiles == 1


def test_of_other_sources_nothing_is_found(cache_of, archive, monkeypatch):
    cache = cache_of()
    monkeypatch.setattr(object_cache, "_sources_content", lambda: b"t" * 32)
    assert answer(cache, 1) == 1
    assert cache.counters.compiles == 1


# -- distrust -------------------------------------------------------------------------------------


@pytest.mark.lengthy
def test_every_byte_counts(cache_of, archive):
    """Whatever is changed or cut: the answer is right, and what is not whole is compiled."""
    content = archive.read_bytes()
    size = len(content)
    for at in (*range(150), *range(150, size, 97), size - 1):
        archive.write_bytes(content[:at] + bytes([content[at] ^ 0x41]) + content[at + 1 :])
        cache = cache_of()
        assert [answer(cache, n) for n in (1, 2)] == [1, 2], at
        assert cache.counters.compiles >= (at < 12), at
        archive.write_bytes(content[:at])
        cache = cache_of()
        assert [answer(cache, n) for n in (1, 2)] == [1, 2], at
        assert cache.counters.compiles >= 1, at


def test_an_entry_under_another_key_is_not_taken(cache_of, archive):
    cache = cache_of()
    one, two = (cache.key(f"answer {n}", host_target()) for n in (1, 2))
    entries = {key: Archive(str(archive)).read(key) for key in (one, two)}
    Archive.write(str(archive), {one: entries[two], two: entries[one]})
    archive.chmod(0o644)
    assert [answer(cache, n) for n in (1, 2)] == [1, 2]
    assert cache.counters.compiles == 2


@pytest.mark.parametrize("mode", [0o646, 0o666, 0o602])
def test_a_file_that_others_may_write_to_is_not_read(cache_of, archive, mode):
    archive.chmod(mode)
    cache = cache_of()
    assert answer(cache, 1) == 1
    assert cache.counters.compiles == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_file_of_another_owner_is_not_read(cache_of, archive):
    os.chown(archive, 12345, 12345)
    cache = cache_of()
    assert answer(cache, 1) == 1
    assert cache.counters.compiles == 1


def test_what_is_no_file_does_not_hold_us(cache_of, tmp_path):
    os.mkfifo(tmp_path / "archive")
    cache = cache_of()
    assert answer(cache, 1) == 1
    assert cache.counters.compiles == 1


# -- the same keys everywhere ---------------------------------------------------------------------


def test_equal_entries_make_equal_files(archive, tmp_path):
    whole = Archive(str(archive))
    entries = {key: whole.read(key) for key in reversed(whole.keys())}
    Archive.write(str(tmp_path / "again"), entries)
    assert (tmp_path / "again").read_bytes() == archive.read_bytes()


@pytest.mark.parametrize("name", ["add", "exp", "sum", "softmax", "sort", "argsort", "var"])
@pytest.mark.parametrize("target", family(), ids=lambda target: target.name)
def test_code_is_found_whatever_the_size_and_the_number_of_threads(name, target):
    record = REGISTRY[name]
    pairs = zip(record.parameters, record.uses)
    attributes = [p.default if use == ATTRIBUTE else None for p, use in pairs]
    keys = set()
    for rows, columns in ((70, 70), (2, 3), (5, 1000)):
        operand = "float32", (rows, columns), (columns, 1)
        operands = [operand for use in record.uses if use == ARRAY]
        _, layouts, program = record.program(operands, attributes)
        for threads in (1, 2, 3, 64):
            machine = Machine(target, threads)
            keys.add(code_for(program, layouts, None, machine, views=record.views).key)
    assert len(keys) == 1 and keys != {"()"}
