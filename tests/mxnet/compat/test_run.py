"""`python -m heterosis run`: scripts run as Python runs them, with `import mxnet` answered."""

import pytest

from tests.mxnet.compat.programs import ARGUMENTS, PROGRAMS
from tests.processes import run_python


@pytest.fixture
def run(tmp_path):
    def run(text, *arguments):
        (tmp_path / "script.py").write_text(text)
        return run_python("-m", "heterosis", "run", "script.py", *arguments, folder=tmp_path)

    return run


@pytest.mark.lengthy
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_run_unchanged(run, name):
    text, expected = PROGRAMS[name]
    done = run(text, *ARGUMENTS.get(name, ()))
    assert (done.stderr, done.stdout) == ("", expected)


@pytest.mark.lengthy
def test_the_script_finds_itself_as_python_says(run, tmp_path):
    (tmp_path / "beside.py").write_text("word = 'beside'")
    done = run(
        "import sys, beside, pickle\n"
        "class Mine: pass\n"
        "pickle.loads(pickle.dumps(Mine()))\n"
        "print(__name__, __file__, sys.argv, beside.word, sys.modules['__main__'].Mine is Mine)",
        "--help", "-x",
    )  # fmt: skip
    path = tmp_path / "script.py"
    assert done.stdout == f"__main__ {path} ['script.py', '--help', '-x'] beside True\n"


@pytest.mark.lengthy
def test_tracebacks_begin_in_the_script(run):
    done = run("def fail():\n    raise KeyError('gone')\n\nfail()\n")
    lines = done.stderr.splitlines()
    assert done.returncode == 1
    assert lines[0].startswith("Traceback")
    assert "script.py" in lines[1]
    assert lines[-1] == "KeyError: 'gone'"
    assert "heterosis" not in done.stderr


@pytest.mark.lengthy
def test_our_errors_have_a_traceback_too(run):
    done = run("from mxnet import np\nnp.ones((2, 3)) @ np.ones((2, 3))\n")
    assert done.returncode == 1
    assert "script.py" in done.stderr.splitlines()[1]
    assert "ShapeError" in done.stderr


@pytest.mark.lengthy
def test_faulty_syntax_is_shown_as_python_shows_it(run, tmp_path):
    done = run("a b\n")
    python = run_python("script.py", folder=tmp_path)
    assert (done.returncode, done.stderr) == (python.returncode, python.stderr)


@pytest.mark.lengthy
@pytest.mark.parametrize(
    "end, status",
    [("sys.exit(7)", 7), ("sys.exit()", 0), ("sys.exit('sorry')", 1),
     ("raise KeyboardInterrupt", 130)],
)  # fmt: skip
def test_the_exit_status_is_the_scripts(run, end, status):
    assert run(f"import sys\n{end}\n").returncode == status


@pytest.mark.lengthy
def test_a_missing_script_is_named(tmp_path):
    done = run_python("-m", "heterosis", "run", "nowhere.py", folder=tmp_path)
    assert done.returncode == 2
    assert "nowhere.py" in done.stderr
