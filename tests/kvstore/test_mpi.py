"""Stores that join processes, in several of them, and what they say of an MPI that is not well."""

import json

import pytest

from heterosis import kvstore
from heterosis.kvstore import world
from heterosis.runtime.errors import CommunicationError, MissingPackageError, UnsupportedError
from tests.kvstore.launch import mpiexec

EXAMPLE = "examples/many_processes.py"


@pytest.mark.slow
@pytest.mark.parametrize("count", [pytest.param(2, id="two"), pytest.param(3, id="three")])
def test_calls_in_several_processes(count):
    done = mpiexec(count, "-m", "tests.kvstore.joined")
    assert done.returncode == 0 and "passed 18" in done.stdout, done.stdout + done.stderr


@pytest.mark.slow
def test_calls_where_only_the_main_thread_may_send():
    done = mpiexec(2, "-m", "tests.kvstore.joined", MPI4PY_RC_THREAD_LEVEL="funneled")
    assert done.returncode == 0 and "passed 17" in done.stdout, done.stdout + done.stderr


@pytest.mark.lengthy
def test_exchanges_run_beside_the_backward_pass(tmp_path):
    done = mpiexec(2, "-m", "tests.kvstore.overlapping", str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    for rank in range(2):
        events = json.loads((tmp_path / f"{rank}.json").read_text())["traceEvents"]
        (lane,) = [e["tid"] for e in events if e["ph"] == "M"]
        operations = [e for e in events if e["ph"] == "X"]
        exchanges = [e for e in operations if e["name"] == "exchange"]
        assert len(exchanges) == 6
        assert {e["name"] for e in operations if e["tid"] == lane} == {"exchange"}
        backward = [e for e in operations if "backward" in e["name"]]
        assert any(_meet(e, b) for e in exchanges for b in backward), operations


def _meet(a, b):
    return a["ts"] < b["ts"] + b["dur"] and b["ts"] < a["ts"] + a["dur"]


@pytest.mark.parametrize("last", ["", "store.sum([1])"])
def test_what_is_queued_at_the_end_is_not_lost(last):
    program = (
        "from heterosis import kvstore, np; store = kvstore.create('mpi')\n"
        "for key in 'ab': store.exchange([key], [[np.ones(3)]])\n"
        "array = np.ones(3); store.exchange('ab'[store.rank], [[array]])\n"
    )
    done = mpiexec(2, "-c", program + last)
    assert done.returncode != 0 and "the processes do not do the same" in done.stderr, done.stderr


@pytest.mark.lengthy
def test_what_is_queued_at_the_end_is_sent(tmp_path):
    program = (
        "import atexit, pathlib, sys; from heterosis import kvstore, np\n"
        "store = kvstore.create('mpi'); file = pathlib.Path(sys.argv[1], str(store.rank))\n"
        "for _ in range(2): array = np.ones(3); store.exchange(['a'], [[array]])\n"
        "atexit.register(lambda: file.write_text(str(int(array.sum()))))"
    )
    done = mpiexec(2, "-c", program, str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert [(tmp_path / rank).read_text() for rank in "01"] == ["6", "6"]


def losses(path):
    return dict(line.split() for line in path.read_text().splitlines())


COUNTS = (2, pytest.param(4, marks=pytest.mark.release))


@pytest.mark.lengthy
@pytest.mark.parametrize("count", COUNTS)
def test_losses_are_those_of_one_process_and_a_killed_run_goes_on_exactly(count, tmp_path):
    check_example(count, tmp_path)


def check_example(count, tmp_path, *how):
    command = [EXAMPLE, "--quick", *how, "--losses"]
    for n, given in ((1, [EXAMPLE, "--quick", "--losses"]), (count, command)):
        done = mpiexec(n, *given, str(tmp_path / f"{n}"))
        assert done.returncode == 0, done.stdout + done.stderr
    one, several = losses(tmp_path / "1"), losses(tmp_path / f"{count}")
    assert len(one) == 32 and {s: float(v) for s, v in several.items()} == pytest.approx(
        {s: float(v) for s, v in one.items()}, rel=1e-6, abs=1e-6
    )
    resumed = [*command, str(tmp_path / "k"), "--checkpoints", str(tmp_path / "checkpoints")]
    assert mpiexec(count, *resumed, "--kill-at", "18").returncode != 0
    assert len(losses(tmp_path / "k")) < len(several)
    done = mpiexec(count, *resumed)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = (tmp_path / "k").read_text().splitlines()
    assert set(lines) == {f"{step} {value}" for step, value in several.items()}  # to the last bit
    assert lines[-1].startswith("32 ") and len(lines) < 2 * len(several)


def test_an_error_in_one_process_ends_all():
    program = (
        "from heterosis import kvstore; store = kvstore.create('mpi')\n"
        "if store.rank == 1: raise ValueError('mine')\n"
        "store.sum([1])"
    )
    done = mpiexec(2, "-c", program)
    assert done.returncode != 0 and "ValueError: mine" in done.stderr, done.stderr


def test_a_launcher_of_another_mpi_is_told_of():
    done = mpiexec(2, "-c", "from heterosis import kvstore; kvstore.create('mpi')",
                   OMPI_COMM_WORLD_SIZE="4")  # fmt: skip
    assert done.returncode != 0
    assert "started 4 processes (OMPI_COMM_WORLD_SIZE=4), and MPI has found 2" in done.stderr


ENVIRONMENTS = {
    "alone": (1, {}, None),
    "mpich": (4, {"PMI_SIZE": "4"}, None),
    "open mpi, each alone": (1, {"OMPI_COMM_WORLD_SIZE": "4"}, "Open MPI has started 4"),
    "mpich, each alone": (1, {"PMI_SIZE": "2"}, "MPICH or Intel MPI has started 2"),
    "slurm, each alone": (1, {"SLURM_STEP_NUM_TASKS": "8"}, "srun has started 8"),
    "mpiexec in a step of slurm's": (8, {"PMI_SIZE": "8", "SLURM_STEP_NUM_TASKS": "2"}, None),
    "batch script": (1, {"SLURM_NTASKS": "8"}, None),
}


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_sizes_are_compared_with_the_launchers(name):
    size, environment, message = ENVIRONMENTS[name]
    if message is None:
        world.check_size(size, environment, "MPI 4")
    else:
        with pytest.raises(CommunicationError, match=f"{message}.*MPI has found 1.*MPI 4"):
            world.check_size(size, environment, "MPI 4\nmore")


class Deaf:
    """A communicator that leaves sums undone."""

    size, rank = 2, 0

    def Allreduce(self, send, receive):  # noqa: N802
        pass


class Constants:
    IN_PLACE = None


def test_sums_that_are_wrong_are_told_of():
    with pytest.raises(CommunicationError, match=r"added up 1, 2, ..., 2 and got 1.0; expected 3"):
        world.check_sums(Deaf(), Constants)


def test_without_the_package(monkeypatch):
    monkeypatch.setattr(world, "_joined", [])
    monkeypatch.setitem(__import__("sys").modules, "mpi4py", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'heterosis\[mpi\]'"):
        kvstore.create("dist_sync")


@pytest.mark.parametrize(
    "name, reason", [("dist_async", "older values"), ("p3", "servers"), ("byteps", "servers")]
)
def test_what_is_not_there_is_refused_with_the_reason(name, reason):
    with pytest.raises(UnsupportedError, match=reason):
        kvstore.create(name)
