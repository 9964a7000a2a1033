"""What the documents say is true: their code runs, and the tour is what happens."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from heterosis.ops import REGISTRY
from tests.ops.harness import LAYOUTS, arguments, call, check, reference

ROOT = Path(__file__).parents[2]


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
    from heterosis.codegen.compiler import host_target
    from heterosis.codegen.kernel import Machine
    from heterosis.ir.program import INPUT, Program, apply
    from heterosis.ir.strided import Strided
    from heterosis.ir.types import TensorType
    from heterosis.passes.schedule import schedule

    x = apply(INPUT, (), TensorType((3,), "float32"))
    program = Program((x,), (bell["bell"](x, 2.0),))
    planned = schedule(
        program, [Strided.contiguous((3,))], [None], Machine(host_target(), 1), views=False
    )
    assert len(planned.kernels) == 1


def test_the_tour_is_true():
    command = [sys.executable, str(ROOT / "docs" / "make_tour.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_readme_examples_run():
    text = (ROOT / "README.md").read_text()
    examples = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    for example in examples:
        done = subprocess.run(
            [sys.executable, "-c", example], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
    assert len(examples) == 2


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md", "benchmarks/README.md"])
def test_links_lead_somewhere(document):
    path = ROOT / document
    for link in re.findall(r"\]\(([^)#]+)\)", path.read_text()):
        assert "://" in link or (path.parent / link).exists(), link
