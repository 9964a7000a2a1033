"""The same expressions here and in MXNet 1.9.1, where an interpreter that has it is named."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy
import pytest

from heterosis import np, npx
from tests.differential.deviations import DEVIATIONS
from tests.differential.expressions import DRAWN, SETUP, expressions

VARIABLE = "HETEROSIS_MXNET_PYTHON"
SECONDS = 120
TOLERANCE = {"float16": 2e-3, "float32": 2e-5, "float64": 2e-5}
ORACLE = Path(__file__).with_name("oracle.py")
AGREEING = [e for e in expressions() + DRAWN if e not in DEVIATIONS]
ALL = [*AGREEING, *DEVIATIONS]


def why_not(python: str | None) -> str | None:
    """Why MXNet cannot be asked through this interpreter; nothing if it can."""
    if not python:
        return f"{VARIABLE} is not set: it names a Python that has mxnet 1.9.1"
    if not Path(python).is_file():
        return f"{VARIABLE}={python} is no file"
    return None


@pytest.fixture(scope="module")
def answers(tmp_path_factory) -> dict[str, Any]:
    """What MXNet says to each expression: an error, or arrays and texts."""
    python = os.environ.get(VARIABLE)
    if why_not(python):
        pytest.skip(why_not(python))
    to = tmp_path_factory.mktemp("oracle") / "answers.npz"
    job = json.dumps({"setup": SETUP, "expressions": ALL})
    subprocess.run(
        [python, str(ORACLE), str(to)], input=job, text=True, check=True, timeout=SECONDS
    )
    with numpy.load(to) as stored:
        facts = json.loads(str(stored["facts"]))
        return {e: _parts(stored, i, facts[i]) for i, e in enumerate(ALL)}


def _parts(stored: Any, index: int, facts: dict[str, Any]) -> Any:
    if "error" in facts:
        return facts["error"]
    parts = enumerate(facts["parts"])
    return [fact if isinstance(fact, str) else stored[f"{index}.{i}"] for i, fact in parts]


def ours(expression: str) -> list[Any]:
    """Our answer in the same form."""
    space: dict[str, Any] = {"np": np, "npx": npx, "onp": numpy}
    exec(SETUP, space)  # noqa: S102
    return [_comparable(part) for part in _leaves(eval(expression, space))]


def _comparable(part: Any) -> Any:
    if part is None or isinstance(part, str):
        return str(part)
    return part.asnumpy() if isinstance(part, np.ndarray) else numpy.asarray(part)


def _leaves(result: Any) -> list[Any]:
    if isinstance(result, list | tuple):
        return [leaf for item in result for leaf in _leaves(item)]
    return [result]


def differences(got: list[Any], expected: list[Any] | str, *, values: bool) -> str | None:
    """How two answers differ; nothing where they agree."""
    if isinstance(expected, str):
        return f"MXNet raises {expected}"
    if len(got) != len(expected):
        return f"{len(got)} results, and {len(expected)} in MXNet"
    found = (_difference(a, b, values) for a, b in zip(got, expected, strict=True))
    return next((text for text in found if text), None)


def _difference(a: Any, b: Any, values: bool) -> str | None:
    if isinstance(a, str) or isinstance(b, str):
        return None if isinstance(a, str) and a == str(b) else f"{a!r}, and {b!r} in MXNet"
    if (a.dtype, a.shape) != (b.dtype, b.shape):
        return f"{a.dtype}{a.shape}, and {b.dtype}{b.shape} in MXNet"
    near = TOLERANCE.get(a.dtype.name, 0)
    if values and not numpy.allclose(a, b, rtol=near, atol=near, equal_nan=near > 0):
        return f"{a!r}, and {b!r} in MXNet"
    return None


@pytest.mark.parametrize("expression", AGREEING)
def test_agrees(answers, expression):
    found = differences(ours(expression), answers[expression], values=expression not in DRAWN)
    assert found is None, f"{expression}: {found}"


@pytest.mark.parametrize("expression", DEVIATIONS)
def test_deviations_are_still_deviations(answers, expression):
    assert differences(ours(expression), answers[expression], values=True)


def test_the_reason_for_skipping_is_told(tmp_path):
    assert VARIABLE in why_not(None)
    assert "no file" in why_not(str(tmp_path / "python"))
    assert why_not(str(ORACLE)) is None
