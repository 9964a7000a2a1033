"""MXNet's answers that lie beside the tests, so that they can be compared with where it is not.

`python -m tests.differential.stored [FILE ...]` asks again and writes them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy

from tests.differential.mxnet_process import ROOT, MXNetProcess

# The files, and which functions answer in MXNet's interpreter.
FILES = {
    "tests/gluon/contrib/mxnet_estimator.json": (
        "tests.gluon.contrib.estimator_cases",
        "mxnet_answers",
    ),
    "tests/gluon/mxnet_values.json": ("tests.gluon.cases", "mxnet_answers"),
    "tests/gluon/model_zoo/mxnet_zoo.json": ("tests.gluon.model_zoo.zoo", "mxnet_answers"),
    "tests/image/mxnet.npz": ("tests.image.mxnet_side", "answers"),
    "tests/mxnet/operators/mxnet_values.json": ("tests.mxnet.operators.cases", "mxnet_answers"),
    "tests/train/mxnet.json": ("tests.train.mxnet_side", "answers"),
}


def stored(file: str) -> Any:
    """The answers in a file."""
    path = ROOT / file
    return json.loads(path.read_text()) if path.suffix == ".json" else dict(numpy.load(path))


def asked(mxnet: MXNetProcess, file: str) -> Any:
    """The answers that MXNet gives; image files that it is to decode are those of its last."""
    given = []
    if file.endswith(".npz"):
        kept = stored(file)
        given = [{k.removeprefix("file_"): a for k, a in kept.items() if k.startswith("file_")}]
    return mxnet.call(*FILES[file], *given)


def write(path: Path, answers: Any) -> None:
    """Store answers: of JSON the first two levels of dictionaries, a line for each entry."""
    if path.suffix == ".npz":
        numpy.savez_compressed(path, **answers)
        return
    parts = [f"{json.dumps(name)}: {_lines(part)}" for name, part in answers.items()]
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n")


def _lines(part: Any) -> str:
    if not isinstance(part, dict) and not isinstance(part[0], dict):
        return _compact(part)
    if isinstance(part, list):
        return "[\n" + ",\n".join(map(_compact, part)) + "\n]"
    return "{\n" + ",\n".join(f"{json.dumps(k)}: {_compact(v)}" for k, v in part.items()) + "\n}"


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def main(files: Sequence[str]) -> None:
    """Ask for some files' answers, or for all."""
    with closing(MXNetProcess()) as mxnet:
        for file in files or FILES:
            write(ROOT / file, asked(mxnet, file))


if __name__ == "__main__":
    main(sys.argv[1:])
