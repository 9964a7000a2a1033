"""Parameters of known models, from files that are already on this machine."""

from __future__ import annotations

import glob
import os
from typing import Any

from heterosis.gluon.block import Block
from heterosis.gluon.parameter import Contexts
from heterosis.runtime.errors import UnsupportedError

ROOT = os.path.join("~", ".mxnet", "models")


def finished(
    net: Block, name: str, pretrained: bool = False, ctx: Contexts = None, root: str | None = None
) -> Any:
    """The net, its parameters read from `root` if `pretrained`."""
    if pretrained:
        net.load_parameters(find(name, root or ROOT), ctx=ctx)
    return net


def find(name: str, root: str) -> str:
    """The file with a model's parameters: `name.params`, or MXNet's `name-<8 digits>.params`."""
    folder = os.path.expanduser(root)
    plain = os.path.join(folder, f"{name}.params")
    hashed = sorted(glob.glob(os.path.join(glob.escape(folder), f"{name}-????????.params")))
    for path in [plain, *hashed]:
        if os.path.exists(path):
            return path
    raise UnsupportedError(
        f"pretrained=True: there is no {plain}, and nothing is fetched from the network. Where "
        f"MXNet 1.x is installed, `mxnet.gluon.model_zoo.vision.get_model({name!r}, "
        f"pretrained=True)` downloads it as {name}-<8 digits>.params; copy that file to {folder}, "
        "or give root='its folder'. Any .params file with this network's names is read by "
        "net.load_parameters(file)."
    )
