"""The cache of compiled objects: hits, distrust of what lies on disk, sharing, eviction."""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import re
import subprocess
import sys
import threading
import time
import warnings

import pytest

from heterosis._core import LoadError
from heterosis.backends.native.codegen.target import TARGETS
from heterosis.backends.native.compile import object_cache
from heterosis.backends.native.compile.compiler import host_target
from heterosis.backends.native.compile.object_cache import ObjectCache

DAY = 86_400


def constant_function(number: int) -> str:
    return f"define i64 @answer() {{ ret i64 {number} }}"


def answer(cache: ObjectCache, number: int) -> int:
    loaded = cache.load(f"answer {number}", lambda: constant_function(number))
    return ctypes.CFUNCTYPE(ctypes.c_int64)(loaded.address("answer"))()


def never() -> str:
    raise AssertionError("compiled again")


def entries(directory) -> list[str]:
    return sorted(os.listdir(directory))


def entry_of(cache: ObjectCache, number: int) -> str:
    return cache._path(cache.key(f"answer {number}", host_target()))


@pytest.fixture(autouse=True)
def fixed_sources(monkeypatch):
    """The sources may be under edit while the tests run; the tests about that say so."""
    monkeypatch.setattr(object_cache, "_sources_signature", lambda: b"s" * 32)


@pytest.fixture
def directory(tmp_path):
    return str(tmp_path / "a" / "cache")


# -- hits -----------------------------------------------------------------------------------------


def test_memory_then_disk(directory):
    first = ObjectCache(directory)
    assert answer(first, 1) == 1
    loaded = first.load("answer 1", never)
    assert first.load("answer 1", never) is loaded
    counters = first.counters
    assert (counters.compiles, counters.memory_hits, counters.disk_hits) == (1, 2, 0)
    assert counters.compile_seconds > 0

    second = ObjectCache(directory)
    assert answer(second, 1) == 1
    assert (second.counters.compiles, second.counters.disk_hits) == (0, 1)
    assert os.stat(directory).st_mode & 0o777 == 0o700


def test_description_and_target_are_the_key(directory):
    cache = ObjectCache(directory)
    assert [answer(cache, n) for n in (1, 2, 1)] == [1, 2, 1]
    cache.load("answer 1", lambda: constant_function(1), TARGETS["fallback"])
    different = 2 + (host_target().name != "fallback")
    assert cache.counters.compiles == different


def test_without_a_directory():
    cache = ObjectCache(None)
    assert answer(cache, 3) == answer(cache, 3) == 3
    assert cache.counters.memory_hits == 1


def test_failure_leaves_no_trace(directory):
    cache = ObjectCache(directory)
    with pytest.raises(AssertionError):
        cache.load("answer 5", never)
    assert answer(cache, 5) == 5


# -- distrust -------------------------------------------------------------------------------------


def rewrite(change):
    """A damage: replace the content of a file by `change` of it."""

    def damage(path, other):
        with open(path, "rb") as file:
            content = file.read()
        with open(path, "wb") as file:
            file.write(change(content))

    return damage


def flip(at):
    return rewrite(lambda c: c[:at] + bytes([c[at] ^ 1]) + c[at + 1 :])


def copy_of_other(path, other):
    with open(other, "rb") as file:
        content = file.read()
    with open(path, "wb") as file:
        file.write(content)


def replace_by(make):
    def damage(path, other):
        os.unlink(path)
        make(path, other)

    return damage


DAMAGES = {
    "empty": rewrite(lambda c: b""),
    "truncated": rewrite(lambda c: c[:-1]),
    "header only": rewrite(lambda c: c[:80]),
    "longer": rewrite(lambda c: c + b"x"),
    "magic": flip(0),
    "format": flip(8),
    "length": flip(12),
    "key": flip(20),
    "checksum": flip(50),
    "payload": flip(-2),
    "other entry": copy_of_other,
    "group may write": lambda path, other: os.chmod(path, 0o620),
    "all may write": lambda path, other: os.chmod(path, 0o602),
    "link": replace_by(lambda path, other: os.symlink(other, path)),
    "dangling link": replace_by(lambda path, other: os.symlink("nowhere", path)),
    "pipe": replace_by(lambda path, other: os.mkfifo(path)),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_damaged_entry_is_replaced(directory, damage):
    first = ObjectCache(directory)
    answer(first, 1), answer(first, 2)
    damage(entry_of(first, 1), entry_of(first, 2))

    second = ObjectCache(directory)
    assert answer(second, 1) == 1
    assert (second.counters.compiles, second.counters.disk_hits) == (1, 0)

    third = ObjectCache(directory)
    assert (answer(third, 1), answer(third, 2)) == (1, 2)
    assert third.counters.disk_hits == 2


def test_entry_of_another_user_is_not_read(directory, monkeypatch):
    answer(ObjectCache(directory), 1)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    cache = ObjectCache(directory)
    assert answer(cache, 1) == 1
    assert cache.counters.compiles == 1


def test_directory_in_an_entrys_place(directory):
    first = ObjectCache(directory)
    answer(first, 1)
    os.unlink(entry_of(first, 1))
    os.mkdir(entry_of(first, 1))
    with pytest.warns(RuntimeWarning, match="cannot be kept"):
        assert answer(ObjectCache(directory), 1) == 1
    assert not [name for name in entries(directory) if name.endswith(".tmp")]


# -- disks that refuse ----------------------------------------------------------------------------


def test_unwritable_directory_warns_once(tmp_path):
    (tmp_path / "file").write_text("in the way")
    cache = ObjectCache(str(tmp_path / "file" / "cache"))
    with pytest.warns(RuntimeWarning, match="HETEROSIS_CACHE") as caught:
        assert [answer(cache, n) for n in range(3)] == [0, 1, 2]
    assert len(caught) == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_read_only_cache_serves(directory):
    answer(ObjectCache(directory), 1)
    os.chmod(directory, 0o500)
    try:
        cache = ObjectCache(directory)
        assert answer(cache, 1) == 1 and cache.counters.disk_hits == 1
        with pytest.warns(RuntimeWarning):
            assert answer(cache, 2) == 2
    finally:
        os.chmod(directory, 0o700)


def test_full_disk(directory, monkeypatch):
    def half_written(path, data):
        with open(path, "wb") as file:
            file.write(data[:10])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(object_cache, "_write_file", half_written)
    with pytest.warns(RuntimeWarning, match="No space left"):
        assert answer(ObjectCache(directory), 1) == 1
    assert entries(directory) == []


# -- size -----------------------------------------------------------------------------------------


def test_least_recently_used_go_first(directory):
    cache = ObjectCache(directory)
    numbers = range(10)
    for number in numbers:
        answer(cache, number)
        age = (10 - number) * 1000
        os.utime(entry_of(cache, number), (time.time() - age,) * 2)
    foreign = os.path.join(directory, "notes.o")
    with open(foreign, "w") as file:
        file.write("x" * 100_000)
    size = os.path.getsize(entry_of(cache, 9))
    cache.limit = 8 * size
    cache.trim()
    kept = [number for number in numbers if os.path.exists(entry_of(cache, number))]
    assert kept == list(range(10 - len(kept), 10))
    assert 4 <= len(kept) <= 7
    assert os.path.exists(foreign)


def written(directory):
    return sum(os.path.getsize(f"{directory}/{name}") for name in entries(directory))


def test_stores_trim(directory):
    cache = ObjectCache(directory, limit=4000)
    for number in range(30):
        answer(cache, number)
    assert written(directory) < 8000


def store(cache, number, size):
    cache.write(number.to_bytes(32, "big"), bytes(size))


def test_what_many_processes_store_is_trimmed(directory):
    """Each of them stores less than what lies between two looks."""
    for number in range(300):
        store(ObjectCache(directory, limit=64_000), number, 600)
    assert written(directory) < 100_000


def test_few_stores_go_through_the_directory(directory, monkeypatch):
    trims = []
    monkeypatch.setattr(ObjectCache, "trim", lambda cache: trims.append(written(directory)))
    cache = ObjectCache(directory, limit=64_000)
    for number in range(40):
        store(cache, number, 600)
    assert 10 <= len(trims) <= 14
    assert 2000 <= trims[-1] - trims[-2] < 3000


def test_abandoned_temporary_files_go(directory):
    cache = ObjectCache(directory)
    answer(cache, 1)
    old, new = (f"{entry_of(cache, 1)}.{name}.tmp" for name in ("old", "new"))
    for path, age in ((old, 2 * DAY), (new, 0)):
        with open(path, "w"):
            os.utime(path, (time.time() - age,) * 2)
    cache.trim()
    assert not os.path.exists(old) and os.path.exists(new)


@pytest.mark.parametrize("age, touched", [(3600, False), (2 * DAY, True)])
def test_use_is_noted_once_a_day(directory, age, touched):
    cache = ObjectCache(directory)
    answer(cache, 1)
    then = time.time() - age
    os.utime(entry_of(cache, 1), (then, then))
    answer(ObjectCache(directory), 1)
    assert (os.stat(entry_of(cache, 1)).st_mtime > then + 60) is touched


# -- many at once ---------------------------------------------------------------------------------

SHARING = """
import ctypes, sys
from heterosis.backends.native.compile import object_cache
object_cache._sources_signature = lambda: b"s" * 32
cache = object_cache.ObjectCache(sys.argv[1])
for turn in range(3):
    for n in range(20):
        loaded = cache.load(f"answer {n}", lambda: f"define i64 @answer() {{ ret i64 {n} }}")
        assert ctypes.CFUNCTYPE(ctypes.c_int64)(loaded.address("answer"))() == n
    cache = object_cache.ObjectCache(sys.argv[1])
print("llvmlite" in sys.modules)
"""


def start(directory):
    command = [sys.executable, "-c", SHARING, directory]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@pytest.mark.lengthy
def test_processes_share_a_directory(directory):
    running = [start(directory) for _ in range(2)]
    for process in running:
        process.communicate(timeout=120)
        assert process.returncode == 0
    names = entries(directory)
    assert len(names) == 21 and all(name.endswith(".o") for name in names)  # and the sources' one
    assert start(directory).communicate(timeout=120)[0].split() == ["False"]


def test_threads_compile_once(directory):
    cache = ObjectCache(directory)
    found, barrier = [], threading.Barrier(8)

    def work():
        barrier.wait()
        found.append(cache.load("answer 1", lambda: constant_function(1)))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8 and len(set(map(id, found))) == 1
    assert cache.counters.compiles == 1


# -- the lowerings' source ------------------------------------------------------------------------


@pytest.fixture
def sources(tmp_path, monkeypatch):
    """A package of our own in place of the lowerings, and a way to start a process anew."""
    monkeypatch.undo()
    package = tmp_path / "package"
    (package / "ops" / "deep").mkdir(parents=True)
    (package / "ops" / "deep" / "rule.py").write_text("x + 1")
    (package / "ops" / "table.py").write_text("rows")
    monkeypatch.setattr(object_cache, "_PACKAGE", str(package))

    def restart():
        object_cache._sources_signature.cache_clear()
        object_cache._sources_content.cache_clear()
        monkeypatch.setattr(object_cache, "_IMPORTED_AT", time.time_ns() + 10**9)

    restart()
    yield package, restart
    object_cache._sources_signature.cache_clear()
    object_cache._sources_content.cache_clear()


def compiles(directory) -> int:
    cache = ObjectCache(directory)
    assert answer(cache, 1) == 1
    return cache.counters.compiles


def test_changed_source_is_compiled_anew(sources, directory):
    package, restart = sources
    assert (compiles(directory), compiles(directory)) == (1, 0)
    rule = package / "ops" / "deep" / "rule.py"
    before = rule.stat()
    rule.write_text("x + 2")
    os.utime(rule, ns=(before.st_atime_ns, before.st_mtime_ns))  # same size, same time
    restart()
    assert (compiles(directory), compiles(directory)) == (1, 0)
    rule.write_text("x + 1")
    restart()
    assert compiles(directory) == 0
    (package / "ops" / "table.py").rename(package / "ops" / "tables.py")
    restart()
    assert compiles(directory) == 1


@pytest.mark.parametrize("part", object_cache._SHAPING)
def test_every_part_that_shapes_plans_counts(sources, directory, part):
    package, restart = sources
    assert compiles(directory) == 1
    (package / part).mkdir(exist_ok=True)
    (package / part / "new.py").write_text("changed")
    restart()
    assert (compiles(directory), compiles(directory)) == (1, 0)


def test_another_core_runs_no_plans_of_this_one(sources, directory, monkeypatch):
    package, restart = sources
    assert compiles(directory) == 1
    core = package / "_core.so"
    core.write_bytes(b"other code")
    monkeypatch.setattr(object_cache, "_CORE", str(core))
    restart()
    assert (compiles(directory), compiles(directory)) == (1, 0)
    core.write_bytes(b"newer code")
    restart()
    assert (compiles(directory), compiles(directory)) == (1, 0)


def test_nothing_else_of_the_package_shapes_plans():
    """What the parts that count import counts too, but for what users call, files, and what only
    editors read."""
    imports = re.compile(r"^\s*(?:from|import) heterosis\.(\w+)", re.MULTILINE)
    found = set()
    for path, _ in object_cache._sources():
        if path.endswith(".py"):
            with open(path) as file:
                found |= set(imports.findall(file.read()))
    assert found - {"_core", "_stubs", "io"} == set(object_cache._SHAPING)


def test_same_source_elsewhere_shares(sources, directory, monkeypatch):
    package, restart = sources
    assert compiles(directory) == 1
    moved = package.rename(package.parent / "elsewhere")
    monkeypatch.setattr(object_cache, "_PACKAGE", str(moved))
    restart()
    assert compiles(directory) == 0


def test_source_edited_under_a_running_process(sources, directory, monkeypatch):
    """What such a process compiles belongs to no source on disk, so that it is not kept."""
    package, restart = sources
    restart()
    monkeypatch.setattr(object_cache, "_IMPORTED_AT", time.time_ns() - 10**9)
    (package / "ops" / "table.py").write_text("edited")
    assert (compiles(directory), compiles(directory)) == (1, 1)
    assert not os.path.exists(directory)


def test_real_sources_are_found():
    names = {os.path.basename(path) for path, _ in object_cache._sources()}
    assert {"builder.py", "target.py", "object_cache.py"} <= names


# -- settings -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings, expected",
    [
        ({"HETEROSIS_CACHE": "/some/where"}, "/some/where"),
        ({"HETEROSIS_CACHE": "~/mine"}, "/home/u/mine"),
        ({"HETEROSIS_CACHE": "off"}, None),
        ({"XDG_CACHE_HOME": "/xdg"}, "/xdg/heterosis/objects"),
        ({"XDG_CACHE_HOME": "relative"}, "/home/u/.cache/heterosis/objects"),
        ({}, "/home/u/.cache/heterosis/objects"),
    ],
)
def test_directory_setting(monkeypatch, settings, expected):
    for name in ("HETEROSIS_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/home/u")
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    assert object_cache.cache_directory() == expected


def test_default_cache(monkeypatch, directory):
    monkeypatch.setenv("HETEROSIS_CACHE", directory)
    # Another one: the process's own stays, because plans hold addresses of its objects.
    fresh = functools.cache(object_cache.default_cache.__wrapped__)
    monkeypatch.setattr(object_cache, "default_cache", fresh)
    loaded = object_cache.load("answer 9", lambda: constant_function(9))
    assert ctypes.CFUNCTYPE(ctypes.c_int64)(loaded.address("answer"))() == 9
    assert len(entries(directory)) == 2


_WITH_INTERNAL_FUNCTION = """
define internal i64 @six(i64 %n) noinline { %product = mul i64 %n, 6 ret i64 %product }
define i64 @answer(i64 %n) { %product = call i64 @six(i64 %n) ret i64 %product }
"""


def test_perf_learns_names(directory, monkeypatch):
    path = f"/tmp/perf-{os.getpid()}.map"
    monkeypatch.setenv("HETEROSIS_PERF_MAP", "1")
    try:
        loaded = ObjectCache(directory).load("answer", lambda: _WITH_INTERNAL_FUNCTION)
        with open(path) as file:
            told = {name: (int(at, 16), int(size, 16)) for at, size, name in map(str.split, file)}
    finally:
        os.unlink(path)
    assert told["answer"][0] == loaded.address("answer")
    assert told.keys() == {"answer", "six"} and all(size > 0 for _, size in told.values())
    with pytest.raises(LoadError, match="defines no 'six', only: answer"):
        loaded.address("six")


def test_no_warnings_in_the_ordinary_case(directory):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        answer(ObjectCache(directory), 1), answer(ObjectCache(directory), 1)
