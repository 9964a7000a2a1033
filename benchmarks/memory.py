"""The memory that models need while they run: python benchmarks/memory.py [--models resnet50 ...]

For inference on one image, sentence or batch: the workspace that is planned once and reused by
every call, beside what the arrays between the kernels would take apart, and beside the most of
them that is alive at one time, below which no plan for this order of kernels can be.
"""

from __future__ import annotations

import argparse

import runner
from compile_model import planned
from models import CASES

import heterosis
from heterosis import np, npx

_COLUMNS = ("model", "kernels", "workspace", "least possible", "over it", "all apart", "parameters")


def _row(key: str) -> str:
    from networks_gluon import NETWORKS

    case = CASES[key]
    net, given = NETWORKS[case.network](), case.input()
    net.initialize()
    x = np.array(given, dtype=given.dtype)
    net(x)
    npx.waitall()
    kernels, found = planned(net, x)
    held = sum(p.data().nbytes for p in net.collect_params().values())
    sizes = [f"{n / 1e6:.2f}" for n in (found.planned, found.least)]
    over = f"{100 * (found.planned / max(found.least, 1) - 1):.0f}%"
    apart = [f"{n / 1e6:.2f}" for n in (found.intermediates, held)]
    return " | ".join([case.title, str(kernels), *sizes, over, *apart])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="+", choices=tuple(CASES), default=tuple(CASES))
    heterosis.install_as_mxnet()
    print(runner.heading(), end="\n\nMegabytes.\n\n")
    print(f"| {' | '.join(_COLUMNS)} |\n|---|" + "---:|" * (len(_COLUMNS) - 1))
    for key in parser.parse_args().models:
        print(f"| {_row(key)} |", flush=True)


if __name__ == "__main__":
    main()
