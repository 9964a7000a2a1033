"""Libraries for another family of processors, run in an emulator."""

import shutil
import subprocess
from pathlib import Path

import numpy
import pytest

import heterosis
from heterosis import np
from heterosis.runtime.errors import ArgumentError
from tests.frontends import FRONTENDS
from tests.frontends.check import HEADER
from tests.frontends.models import (
    convolution_net,
    embedding,
    mlp,
    random,
    recurrent_net,
    until_small,
)

_COMPILER, _EMULATOR = "aarch64-linux-gnu-gcc", "qemu-aarch64"
_RUN = (_EMULATOR, "-L", "/usr/aarch64-linux-gnu")

MODELS = {
    "mlp": (mlp, [random(1, 512)], {}),
    "mlp of 64, threads, a file": (mlp, [random(64, 512)], {"threads": 2, "weights": "file"}),
    "convolution net": (convolution_net, [random(2, 1, 28, 28)], {}),
    "recurrent net": (recurrent_net, [random(7, 3, 8)], {}),
    "embedding": (embedding, [np.array([[1, 5, 19]], dtype="int32")], {}),
    "loop": (lambda: until_small, [random(5)], {}),
    "float16": (lambda: lambda x: x * x + 1, [random(40).astype("float16")], {}),
    "half products": (
        lambda: lambda x: np.matmul(x, np.ones((40, 30), dtype="float16")),
        [random(20, 40).astype("float16")], {},
    ),
    "roundings": (lambda: lambda x: (np.floor(x), np.fmod(x, 0.3)), [random(37)], {}),
    "in order": (lambda: np.sort, [random(100)], {}),
    "sizes": (mlp, [random(5, 512)], {"dynamic": {"x": (0,)}}, ["5"]),
    "floats of sizes": (
        lambda: lambda x: x * (1.0 / x.shape[0]), [random(7, 3)], {"dynamic": True}, ["7", "3"],
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    for command in (_COMPILER, _EMULATOR):
        if not shutil.which(command):
            pytest.skip(f"there is no {command}: apt-get install qemu-user gcc-aarch64-linux-gnu")
    folder = tmp_path_factory.mktemp("built")

    def built(source):
        program = folder / source.stem
        options = ["-std=gnu11", "-O1", f"-I{HEADER}", source, "-ldl", "-pthread", "-o", program]
        subprocess.run([_COMPILER, *options], check=True)
        return program

    return built


@pytest.fixture(scope="module")
def run_files(build):
    return build(FRONTENDS / "c" / "run_files.c")


@pytest.mark.parametrize("label", MODELS)
def test_the_same_numbers_up_to_rounding(label, run_files, tmp_path):
    make, inputs, options, *sizes = MODELS[label]
    function = make()
    expected = function(*inputs)
    expected = expected if isinstance(expected, tuple) else (expected,)
    path, _ = heterosis.export(
        function, tmp_path / "model", *inputs, target="aarch64-linux", **options
    )
    for i, array in enumerate(inputs):
        (tmp_path / f"input{i}").write_bytes(array.asnumpy().tobytes())
    words = [run_files, path, tmp_path, "1", *(sizes[0] if sizes else [])]
    subprocess.run([*_RUN, *words], check=True, capture_output=True)
    for i, ours in enumerate(expected):
        found = numpy.fromfile(tmp_path / f"output{i}", ours.dtype).reshape(ours.shape)
        tolerance = 1e-2 if ours.dtype == numpy.float16 else 1e-5
        numpy.testing.assert_allclose(found, ours.asnumpy(), rtol=tolerance, atol=tolerance)


def test_threads_of_a_pool(build, tmp_path):
    stress = build(Path(__file__).with_name("stress.c"))
    path, _ = heterosis.export(
        lambda x: np.tanh(x) * 2, tmp_path / "net", random(100, 300), threads=3,
        target="aarch64-linux",
    )  # fmt: skip
    command = [*_RUN, stress, path, "4", "1"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert "aarch64-linux: " in done.stdout
    assert "a pool of 3" in done.stdout


def test_one_family_for_a_library(tmp_path):
    with pytest.raises(ArgumentError, match="a library is for one family"):
        heterosis.export(
            lambda x: x, tmp_path / "net", random(3), target=("x86-64", "aarch64-linux")
        )
