"""The package as it is installed and started: command line, import, stub, files."""

import importlib.metadata
import json
import os
import pathlib
import subprocess
import sys

import pytest

import heterosis
from heterosis import _core, cli, demo
from heterosis.backends.native.compile import object_cache, shipped
from heterosis.backends.native.compile.compiler import family


def _python(*arguments: str, **settings: object) -> subprocess.CompletedProcess:
    command = [sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, **settings)


@pytest.mark.lengthy
def test_the_demo_shows_timings_and_draws_them(tmp_path):
    pytest.importorskip("matplotlib")
    chart = tmp_path / "chart.png"
    done = _python("-m", "heterosis", "demo", "--calls", "3", "--chart", str(chart))
    assert done.returncode == 0, done.stderr
    for row in ("imperative", "hybridized", "exported, loaded back", "NumPy"):
        assert row in done.stdout
    assert f"Chart: {chart}" in done.stdout
    assert chart.read_bytes().startswith(b"\x89PNG")


@pytest.mark.lengthy
def test_the_demo_measures_peers_with_the_benchmark_of_a_clone(tmp_path):
    (tmp_path / "src" / "heterosis").mkdir(parents=True)
    (tmp_path / "benchmarks").mkdir()
    result = {"seconds": {"MLP": {"abacus": [0.5]}}, "versions": {"abacus": "7"}}
    program = f"import sys; open(sys.argv[4], 'w').write({json.dumps({'results': [result]})!r})"
    (tmp_path / "benchmarks" / "mlp.py").write_text(program)
    command = ("-m", "heterosis", "demo", "--calls", "3", "--peers", "--chart", "no/x")
    done = _python(*command, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "abacus" in done.stdout and "500000.00" in done.stdout
    assert "No chart: " in done.stdout


def test_the_demo_says_where_peers_are_measured(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(demo, "_BENCHMARK", pathlib.Path("nowhere.py"))
    demo.run(calls=3, chart=str(tmp_path / "chart.png"), peers=True)
    assert "No peers: nowhere.py measures them" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [[], ["dance"], ["demo", "--calls", "0"]])
def test_a_wrong_command_line_is_refused(arguments):
    with pytest.raises(SystemExit) as caught:
        cli.main(arguments)
    assert caught.value.code == 2


def test_import_leaves_heavy_modules_out():
    heavy = ("llvmlite", "rich", "scipy", "scipy_openblas32")
    program = f"import sys, heterosis; print([m for m in {heavy} if m in sys.modules])"
    assert _python("-c", program).stdout == "[]\n"


@pytest.mark.lengthy
def test_a_warm_start_leaves_the_compiler_out(tmp_path, monkeypatch):
    monkeypatch.setenv("HETEROSIS_CACHE", str(tmp_path))
    program = (  # on a type for which nothing comes compiled
        "import sys; from heterosis import np; np.array([1], dtype='uint16') + 1; "
        "print('llvmlite' in sys.modules)"
    )
    assert _python("-c", program).stdout == "True\n"
    assert _python("-c", program).stdout == "False\n"


def test_the_stub_names_what_the_core_has():
    stub = heterosis.__file__.replace("__init__.py", "_core.pyi")
    with open(stub) as file:
        text = file.read()
    public = [name for name in vars(_core) if not name.startswith("__")]
    told = ("def {}(", "class {}", "\n{}: ")
    assert [n for n in public if not any(one.format(n) in text for one in told)] == []


def _installed() -> list[str]:
    try:
        files = importlib.metadata.files("heterosis") or []
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("runs from the source tree, not installed")
    return [str(file) for file in files]


def _brings_machine_code() -> bool:
    """Packages may be built without, by HETEROSIS_PRECOMPILE=OFF."""
    found = any(file.endswith(".objects") for file in _installed())
    asked = "HETEROSIS_PRECOMPILE=ON" in os.environ.get("SKBUILD_CMAKE_DEFINE", "")
    assert found or not asked, "the build was to bring machine code"
    return found


def test_the_wheel_holds_the_package_and_nothing_else():
    files = [f for f in _installed() if "__pycache__" not in f and not f.startswith("../")]
    assert {f.split("/")[0].split("-")[0] for f in files} == {"heterosis"}
    suffixes = {f.rsplit(".", 1)[-1] for f in files if f.startswith("heterosis/")}
    built = {"objects"} if _brings_machine_code() else set()
    assert suffixes == {"h", "json", "py", "pyi", "typed", "so"} | built


def test_common_operations_come_compiled_with_an_installed_package(tmp_path, monkeypatch):
    if not _brings_machine_code():
        pytest.skip("installed without machine code")
    monkeypatch.setenv("HETEROSIS_CACHE", str(tmp_path))
    program = """
import sys
from heterosis import np, npx
x = np.ones((3, 4))
y = npx.softmax(np.exp(x - x.max(axis=1, keepdims=True)) @ np.ones((4, 2)))
assert y.sum() > 2.9 and (np.arange(3) + 1).sum() == 6
print("llvmlite" in sys.modules)
"""
    done = _python("-c", program)
    assert (done.stdout, done.stderr) == ("False\n", "")


def test_what_comes_compiled_is_whole_for_every_target():
    if not _brings_machine_code():
        pytest.skip("installed without machine code")
    for target in family():
        archive = shipped.Archive(shipped.path_of(target))
        keys = archive.keys()
        assert len(keys) > 500
        payloads = [object_cache._unpack(archive.read(key), key) for key in keys]
        assert all(payloads)
        for payload in payloads[::50]:
            object_cache._loaded(payload)  # whatever it calls is there


def test_versions_agree():
    _installed()
    assert importlib.metadata.version("heterosis") == heterosis.__version__
