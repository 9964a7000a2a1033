"""What editors and type checkers see: of the documents' programs, and of each name."""

import inspect
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

import heterosis
from heterosis import gluon, nd, np, npx
from heterosis.ops import REGISTRY
from tests.docs.language_server import LanguageServer
from tests.docs.programs import ROOT, documents, program

sys.path.insert(0, str(ROOT / "docs"))
import make_stubs  # pyright: ignore[reportMissingImports]

PACKAGE = Path(heterosis.__file__).parents[1]
_WRONG = {
    "np.onse((2, 3))": "onse",
    "np.ones((2, 3)).nope()": "nope",
    "heterosis.hybridise(lambda x: x)": "hybridise",
    "np.exp(x=np.ones(3), wher=True)": "wher",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The programs, each in a file, and how checkers find the package."""
    made = tmp_path_factory.mktemp("programs")
    for name, path in documents().items():
        (made / f"{name}.py").write_text(program(path))
    shutil.copy(ROOT / "tests" / "docs" / "typed.py", made)
    # A page shows the same function before and after.
    options = {"extraPaths": [str(PACKAGE)], "reportRedeclaration": False}
    (made / "pyrightconfig.json").write_text(json.dumps(options))
    installed = PACKAGE.name == "site-packages"
    path = "" if installed else f"mypy_path = {PACKAGE}\n"
    (made / "mypy.ini").write_text(
        f"[mypy]\n{path}follow_imports = silent\ndisable_error_code = no-redef\n"
    )
    return made


def _mypy(folder, *files):
    return _checked(folder, "-m", "mypy", "--config-file", "mypy.ini", *files)


def _pyright(folder, *files):
    return _checked(folder, "-m", "pyright", "--pythonpath", sys.executable, *files)


def _checked(folder, *arguments):
    environment = {k: v for k, v in os.environ.items() if k not in ("MYPYPATH", "PYTHONPATH")}
    if PACKAGE.name != "site-packages" and arguments[1] == "pyright":
        environment["PYTHONPATH"] = str(PACKAGE)
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment,
        capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.lengthy
@pytest.mark.parametrize("checker", [_mypy, _pyright])
def test_the_documents_programs_have_no_errors_of_types(folder, checker):
    done = checker(folder, *sorted(p.name for p in folder.glob("*.py")))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.lengthy
@pytest.mark.parametrize("checker", [_mypy, _pyright])
def test_mistakes_are_found(folder, tmp_path, checker):
    for name in ("mypy.ini", "pyrightconfig.json"):
        shutil.copy(folder / name, tmp_path)
    lines = ["import heterosis", "from heterosis import np", *_WRONG]
    (tmp_path / "wrong.py").write_text("\n".join(lines) + "\n")
    printed = checker(tmp_path, "wrong.py").stdout
    for line, name in enumerate(_WRONG.values(), 3):
        assert any(f"wrong.py:{line}:" in said and name in said for said in printed.splitlines())


def test_the_stubs_say_what_the_records_say(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["make_stubs.py", "--check"])
    assert make_stubs.main() == 0, capsys.readouterr().out


def test_a_stub_that_differs_from_its_record_is_found(monkeypatch, tmp_path, capsys):
    for path in make_stubs.FOLDER.glob("*.pyi"):
        text = path.read_text().replace("temperature: float | None", "temperature: int | None")
        (tmp_path / path.name).write_text(text)
    monkeypatch.setattr(make_stubs, "FOLDER", tmp_path)
    monkeypatch.setattr(sys, "argv", ["make_stubs.py", "--check"])
    assert make_stubs.main() == 1
    assert "npx.pyi" in capsys.readouterr().out


@pytest.mark.parametrize("module", [heterosis, np, npx, nd, gluon], ids=lambda m: m.__name__)
def test_dir_shows_what_is_public_and_nothing_else(module):
    names = [name for name in dir(module) if name != "__version__"]
    assert not [name for name in names if name.startswith("_")]
    for name in names:
        member = getattr(module, name)
        if inspect.ismodule(member):  # those that are documented, not those a module is made of
            assert name in getattr(module, "__all__", ("linalg", "random"))
    assert set(getattr(module, "__all__", ())) <= set(dir(module))


def test_dir_shows_every_operation():
    for module, name in ((np, "np"), (npx, "npx")):
        public = {record.name for record in REGISTRY.values() if name in record.public}
        assert public <= set(dir(module))


@pytest.mark.lengthy
def test_an_editor_lists_functions_methods_and_their_documentation(folder):
    text = "from heterosis import np\nx = np.ones(3)\nnp.\nx.\n"
    with LanguageServer(folder, PACKAGE) as server:
        server.open("edited.py", text)
        functions, methods = server.completions(2, 3), server.completions(3, 2)
        assert {name for name, r in REGISTRY.items() if "np" in r.public} <= set(functions)
        assert {name for name, r in REGISTRY.items() if "ndarray" in r.public} <= set(methods)
        assert {"asnumpy", "attach_grad", "backward", "shape"} <= set(methods)
        unknown = {name for name in functions if name[0] != "_"} - set(dir(np)) - set(dir(numpy))
        assert not unknown
        for name in ("exp", "concatenate", "where"):
            shown = server.documentation(functions[name])
            assert inspect.getdoc(getattr(np, name)).split("\n")[0] in shown.replace("\\", "")
