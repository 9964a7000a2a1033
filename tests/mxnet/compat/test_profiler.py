"""The profiler and the timers measure what programs ask them to."""

import json
import re
import threading
import time

import pytest

import heterosis
from heterosis import np, npx, profiler
from heterosis.runtime.errors import ArgumentError
from heterosis.utils import Benchmark, Timer


@pytest.fixture
def profile(tmp_path):
    """A running profiler, and the file that it writes to."""
    path = tmp_path / "profile.json"
    profiler.set_config(filename=path, profile_all=True, aggregate_stats=True)
    profiler.dumps(reset=True)
    profiler.set_state("run")
    yield path
    profiler.set_state("stop")
    profiler.dumps(reset=True)


def _summary():
    return json.loads(profiler.dumps(format="json"))


def test_scopes_are_timed(profile):
    domain = profiler.Domain("mine")
    for scope in (domain.new_task("work"), domain.new_frame("round"), profiler.Event("moment")):
        scope.start()
        time.sleep(0.002)
        scope.stop()
        with scope:
            pass
    times = _summary()["Time"]
    for category, name in (("mine", "work"), ("mine,frame", "round"), ("event", "moment")):
        row = times[category][name]
        assert row["Count"] == 2
        assert row["Max"] >= 2 > row["Min"]
        assert row["Total"] == pytest.approx(row["Avg"] * 2)


def test_counters_keep_their_values(profile):
    counter = profiler.Domain("mine").new_counter("items", 5)
    counter += 3
    counter -= 1
    counter.increment(2)
    assert counter.value == 9
    row = _summary()["Counters"]["mine"]["items"]
    assert (row["Count"], row["Last"], row["Min"], row["Max"]) == (4, 9, 5, 9)


def test_the_engines_counters_are_sampled(profile):
    with profiler.Event("work"):
        (npx.relu(npx.arange_like(npx.one_hot(1, 3))) + 1).wait_to_read()
    engine = _summary()["Counters"]["engine"]["operations run"]
    assert engine["Last"] >= engine["Min"] + 3


def test_the_file_is_a_chrome_trace(profile):
    domain = profiler.Domain("mine")
    with domain.new_task("work"):
        domain.new_marker("here").mark("thread")
    thread = threading.Thread(target=lambda: profiler.Event("aside").__enter__().stop())
    thread.start()
    thread.join()
    profiler.dump()
    events = json.loads(profile.read_text())["traceEvents"]
    named = {event["name"]: event for event in events}
    assert named["work"]["ph"] == "X"
    assert named["work"]["dur"] >= 0
    assert named["here"]["s"] == "t"
    assert named["work"]["ts"] <= named["here"]["ts"] <= named["work"]["ts"] + named["work"]["dur"]
    assert named["aside"]["tid"] != named["work"]["tid"]
    assert not _summary()["Time"]


def test_nothing_is_recorded_while_it_rests(profile):
    profiler.pause()
    with profiler.Event("paused"):
        pass
    profiler.resume()
    profiler.profiler_set_state("stop")
    with profiler.Event("stopped"):
        pass
    assert not _summary()["Time"]


def test_the_table_is_sorted(profile):
    for name, count in (("few", 1), ("many", 3)):
        for _ in range(count):
            with profiler.Event(name):
                pass
    table = profiler.dumps(sort_by="count", ascending=True)
    assert table.index("few") < table.index("many")


@pytest.mark.parametrize(
    "call",
    [
        lambda: profiler.set_config(file="x"),
        lambda: profiler.set_state("go"),
        lambda: profiler.dumps(format="xml"),
        lambda: profiler.dumps(sort_by="name"),
        lambda: profiler.profiler_set_config(mode="none"),
        lambda: profiler.Domain("d").new_marker("m").mark("house"),
    ],
)
def test_wrong_words_are_refused(call):
    with pytest.raises(ArgumentError, match="expected"):
        call()


def test_a_timer_keeps_its_runs():
    timer = Timer()
    time.sleep(0.002)
    first = timer.stop()
    timer.start()
    second = timer.stop()
    assert first >= 0.002 > second >= 0
    assert timer.times == [first, second]
    assert timer.sum() == first + second
    assert timer.avg() == (first + second) / 2
    assert timer.cumsum() == [first, first + second]


def test_a_timer_without_runs_has_no_mean():
    with pytest.raises(ArgumentError, match=r"call stop\(\) first"):
        Timer().avg()


def test_a_benchmark_prints_its_seconds(capsys):
    with Benchmark("work") as benchmark:
        time.sleep(0.002)
    assert re.fullmatch(r"work: 0\.\d{4} sec\n", capsys.readouterr().out)
    assert benchmark.timer.sum() >= 0.002
    with Benchmark():
        pass
    assert capsys.readouterr().out.startswith("Done: ")


def test_operations_are_timed_wherever_they_run(profile):
    small, large = np.ones((4,)), np.ones((300, 300))
    for _ in range(3):
        small + 1
        large @ large
    npx.waitall()
    times = _summary()["Time"]["operator"]
    assert times["add"]["Count"] == times["matmul"]["Count"] == 3
    assert times["matmul"]["Avg"] > times["add"]["Avg"] > 0
    profiler.pause()
    small + 1
    profiler.resume()
    assert _summary()["Time"]["operator"]["add"]["Count"] == 3
    profiler.dump(finished=False)
    with open(profile) as file:
        events = [e for e in json.load(file)["traceEvents"] if e["cat"] == "operator"]
    assert {e["name"] for e in events} == {"ones", "add", "matmul"}
    assert all(e["ph"] == "X" and e["dur"] >= 0 and e["args"]["waited"] >= 0 for e in events)


def test_a_hybridized_program_is_one_operation(profile):
    double = heterosis.hybridize(lambda x: (x * 2).sum() + 1)
    double(np.ones((4,)))
    npx.waitall()
    assert _summary()["Time"]["operator"]["<lambda>"]["Count"] == 1
