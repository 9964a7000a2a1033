"""What the documents say is true: their code runs and prints what is shown, and the tour is what
happens."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from heterosis.ops import REGISTRY
from tests.ops.harness import LAYOUTS, arguments, call, check, reference

ROOT = Path(__file__).parents[2]
DOCUMENTS = ["README.md", "CONTRIBUTING.md"]
DOCUMENTS += sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("docs/*.md"))


def _examples(document: str) -> dict[str, str]:
    text = (ROOT / document).read_text()
    return dict(re.findall(r"<!-- example: (\w+) -->\n```python\n(.*?)```", text, re.DOTALL))


@pytest.fixture
def bell():
    """The worked example of CONTRIBUTING, registered until the test ends."""
    names = {}
    exec(_examples("CONTRIBUTING.md")["operation"], names)  # noqa: S102
    yield names
    del REGISTRY["bell"]


def test_the_example_operation_works_as_shown(bell):
    exec(_examples("CONTRIBUTING.md")["use"], bell)  # noqa: S102


def test_the_example_operation_passes_the_tests_of_every_operation(bell):
    record = REGISTRY["bell"]
    for case in record.samples.cases:
        arrays, attributes = arguments(record, case, "float32")
        for layout in LAYOUTS:
            got = call(record, arrays, attributes, layout)
            check(got, reference(record, arrays, attributes, got), record)


def test_the_example_operation_is_one_loop(bell):
    from heterosis.backends.native.codegen.kernel import Machine
    from heterosis.backends.native.compile.compiler import host_target
    from heterosis.backends.native.schedule.schedule import schedule
    from heterosis.ir.program import INPUT, Program, apply
    from heterosis.ir.strided import Strided
    from heterosis.ir.types import TensorType

    x = apply(INPUT, (), TensorType((3,), "float32"))
    program = Program((x,), (bell["bell"](x, 2.0),))
    planned = schedule(
        program, [Strided.contiguous((3,))], [None], Machine(host_target(), 1), views=False
    )
    assert len(planned.kernels) == 1


def _run(*arguments):
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_chart_of_the_first_page_shows_what_was_measured():
    _run("docs/make_chart.py", "--check")


@pytest.mark.lengthy
def test_the_tour_is_true():
    _run("docs/make_tour.py", "--check")


@pytest.mark.lengthy
def test_the_list_of_what_differs_from_mxnet_is_up_to_date():
    """What we give; where MXNet is at hand, what it gives too."""
    _run("docs/make_deviations.py", "--check")


@pytest.mark.lengthy
@pytest.mark.parametrize("document", DOCUMENTS)
def test_examples_print_what_is_shown(document):
    if document in ("docs/xla.md", "docs/many_machines.md"):
        pytest.importorskip("jax", reason="pip install 'heterosis[xla]'")
    _run("docs/make_examples.py", "--check", document)


def test_a_wrong_output_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(1)\n```\n\n```output\n2\n```\n")
    command = [sys.executable, ROOT / "docs" / "make_examples.py", "--check", page]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "-2\n+1\n" in done.stdout


_READ_ONLY = ["benchmarks/README.md"]
_READ_ONLY += sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("frontends/*/README.md"))
_READ_ONLY += sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("docs/??/*.md"))


@pytest.mark.parametrize("document", [*DOCUMENTS, *_READ_ONLY])
def test_links_lead_somewhere(document):
    path = ROOT / document
    for link in re.findall(r"\]\(([^)#]+)[^)]*\)", path.read_text()):
        assert "://" in link or (path.parent / link).exists(), link


@pytest.mark.lengthy
def test_the_site_is_built_without_a_warning(tmp_path):
    """Links between pages, and to headings, are checked by the builder."""
    for package in ("sphinx", "myst_parser", "furo"):
        pytest.importorskip(package, reason="pip install '.[docs]'")
    trees, site = str(tmp_path / "trees"), tmp_path / "site"
    _run("-m", "sphinx", "-W", "--keep-going", "-q", "-d", trees, "docs", str(site))
    reference = (site / "reference.html").read_text()
    public = [name for name, record in REGISTRY.items() if "np" in record.public]
    assert [name for name in public if f'<span class="pre">{name}' not in reference] == []
    pages = {path.name for path in (site / "functions").glob("*.html")}
    assert {f"np.{name}.html" for name in public} <= pages
    assert set(re.findall(r'href="functions/([^"#]+)"', reference)) == pages
    shown = (site / "functions" / "np.exp.html").read_text()
    assert "an array or a number" in shown and "_npi_exp" in shown and "Example" in shown
    assert 'id="searchbox"' in shown or "sidebar-search" in shown
    assert "theme-toggle" in shown  # light and dark
    for language in ("vi", "pt", "zh", "id"):
        translated = (site / language / "hybrid.html").read_text()
        assert f'lang="{language}"' in translated
        assert re.search(r'<a [^>]*href="[^"]*_downloads/[^"]*hybrid\.ipynb"', translated)
