"""Pages in other languages have the programs of their source, and notebooks those of their pages,
with what they print."""

import json
import sys
from pathlib import Path

import pytest

from tests.docs.programs import ROOT
from tests.processes import run_python

sys.path.insert(0, str(ROOT / "docs"))
import make_notebooks  # pyright: ignore[reportMissingImports]
import make_translations  # pyright: ignore[reportMissingImports]

SOURCE = ROOT / "docs" / "hybrid.md"
LANGUAGES = ["id", "pt", "vi", "zh"]
NOTEBOOKS = [page.with_suffix(".ipynb") for page in make_notebooks.pages()]


def _checked(main, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["make", "--check"])
    return main()


# -- translations ---------------------------------------------------------------------------------


def test_the_translations_have_what_their_sources_have(monkeypatch, capsys):
    assert _checked(make_translations.main, monkeypatch) == 0, capsys.readouterr().out


def test_every_language_is_found():
    assert make_translations.languages() == LANGUAGES
    assert {SOURCE} == set(make_translations.translations().values())


@pytest.mark.parametrize("language", LANGUAGES)
def test_languages_link_to_one_another(language):
    page = ROOT / "docs" / language / "hybrid.md"
    others = [f"](../{other}/hybrid.md)" for other in LANGUAGES if other != language]
    for text, links in (
        (page.read_text(), [*others, "](../hybrid.md)"]),
        (SOURCE.read_text(), [f"]({language}/hybrid.md)"]),
    ):
        assert all(link in text.split("\n## ")[0] for link in links)


@pytest.mark.parametrize("language", LANGUAGES)
def test_comments_are_translated(language):
    """Where a program has comments they differ from the source; what it prints never does."""
    page = ROOT / "docs" / language / SOURCE.name
    ours, theirs = (list(make_notebooks.BLOCK.finditer(p.read_text())) for p in (SOURCE, page))
    assert [block["printed"] for block in ours] == [block["printed"] for block in theirs]
    same = [our["code"] == their["code"] for our, their in zip(ours, theirs, strict=True)]
    comments = ["  # " in block["code"] and block["language"] == "python" for block in ours]
    assert same == [not has for has in comments]


_SOURCE = "# Title\n\n`a` and [b](errors.md)\n\n```python\nx = 1  # one\n```\n\n- c\n"
_RIGHT = "# Título\n\n[b](../errors.md) e `a`\n\n```python\nx = 1  # um\n```\n\n- d\n"


def _translated(folder, text):
    (folder / "pt").mkdir()
    (folder / "page.md").write_text(_SOURCE)
    (folder / "pt" / "page.md").write_text(text)
    return folder / "page.md", folder / "pt" / "page.md"


@pytest.mark.parametrize(
    "right, wrong, says",
    [
        ("`a`", "a", "code: missing ['`a`']"),
        ("errors.md", "ir.md", "links to: missing ['errors.md#'], not in the source ['ir.md#']"),
        ("- d", "d", "lines of tables or lists: missing ['- ']"),
        ("# Título", "## Título", "headings of levels [2], expected [1]"),
    ],
)
def test_other_prose_is_found(tmp_path, right, wrong, says):
    source, page = _translated(tmp_path, _RIGHT)
    assert list(make_translations.differences(source, page)) == []
    page.write_text(_RIGHT.replace(right, wrong))
    assert says in "\n".join(make_translations.differences(source, page))


def test_comments_stay_translated_and_programs_become_those_of_the_source():
    assert make_translations.carried(_SOURCE, _RIGHT) == _RIGHT
    other = _RIGHT.replace("x = 1", "x = 2")
    assert make_translations.carried(_SOURCE, other) == _RIGHT.replace("# um", "# one")


# -- notebooks ------------------------------------------------------------------------------------


def _name(path):
    return path.relative_to(ROOT / "docs").as_posix()


def test_the_notebooks_are_what_their_pages_say(monkeypatch, capsys):
    expected = ["hybrid.ipynb", *(f"{language}/hybrid.ipynb" for language in LANGUAGES)]
    assert [_name(path) for path in NOTEBOOKS] == expected
    assert _checked(make_notebooks.main, monkeypatch) == 0, capsys.readouterr().out


@pytest.mark.lengthy
@pytest.mark.parametrize("path", NOTEBOOKS, ids=_name)
def test_the_cells_of_a_notebook_print_what_it_shows(tmp_path, path):
    done = run_python(str(Path(__file__).parent / "run_notebook.py"), str(path), folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_a_cell_does_not_print_is_found(tmp_path):
    cell = {
        "cell_type": "code",
        "execution_count": 1,
        "metadata": {},
        "outputs": [{"name": "stdout", "output_type": "stream", "text": ["2\n"]}],
        "source": ["print(1)"],
    }
    (tmp_path / "wrong.ipynb").write_text(json.dumps({"cells": [cell]}))
    script = str(Path(__file__).parent / "run_notebook.py")
    done = run_python(script, "wrong.ipynb", folder=tmp_path)
    assert done.returncode == 1
    assert "shows '2\\n', and prints '1\\n'" in done.stdout
