"""The image that `frontends/cpp/Dockerfile` describes, made without Docker: its steps run here, and
what it copies into an empty image is the root of a process."""

import os
import re
import shutil
import subprocess

import numpy
import pytest

import heterosis
from heterosis import np
from tests.frontends import FRONTENDS
from tests.frontends.models import mlp

_MOST_BYTES = 6_000_000  # of an image: that of the page has 4.2 MB


def _stages(folder):
    """The commands of the Dockerfile by stage, each with what it is given."""
    text = (folder / "Dockerfile").read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    stages = []
    for line in lines:
        command, _, given = line.partition(" ")
        if command == "FROM":
            stages.append([])
        stages[-1].append((command, given))
    return stages


@pytest.mark.lengthy
@pytest.mark.skipif(not shutil.which("g++"), reason="there is no g++")
def test_an_image_from_nothing(tmp_path):
    x = np.array((numpy.arange(512) % 7).astype("float32") / numpy.float32(7)).reshape(1, 512)
    net = mlp()
    expected = heterosis.hybridize(net)(x).asnumpy().ravel()
    heterosis.export(net, tmp_path / "my_mlp", x)
    for path in (FRONTENDS / "cpp").iterdir():
        shutil.copy(path, tmp_path)
    build, image = _stages(tmp_path)
    assert image[0] == ("FROM", "scratch")
    installed, *steps = (given for command, given in build if command == "RUN")
    assert re.match("apt-get update && apt-get install .* g\\+\\+", installed)  # as it is here
    for step in steps:
        subprocess.run(["sh", "-ec", step], cwd=tmp_path, check=True)
    (copied,) = (given for command, given in image if command == "COPY")
    assert copied == "--from=build /work/root /"
    root = tmp_path / "root"
    files = [path for path in root.rglob("*") if path.is_file()]
    assert {"run_mlp", "libmy_mlp.so"} < {path.name for path in files}
    assert sum(path.stat().st_size for path in files) < _MOST_BYTES
    (command,) = (given for command, given in image if command == "CMD")
    (program,) = re.findall('"(.*?)"', command)
    shown = _run_in(root, program)
    assert [float.fromhex(word) for word in shown.split()] == list(map(float, expected))


def _run_in(root, program):
    """What a program prints that has this folder as its whole file system."""
    if os.geteuid():
        if not shutil.which("unshare"):
            pytest.skip("another root needs root, or unshare")
        words = ["unshare", "--map-root-user", "--root", str(root), program]
    else:
        words = ["chroot", str(root), program]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
