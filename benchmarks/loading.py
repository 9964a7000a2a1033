"""The time of a batch from a DataLoader, beside PyTorch's and MXNet's: python benchmarks/loading.py

The datasets are the same Python objects for all. A first epoch, which starts the workers, does not
count. "numpy" stacks the samples in the process, without any loader.
"""

from __future__ import annotations

import time

import numpy
import runner

_WORKERS = 2


class Arrays:
    """Samples that are there, and are only picked."""

    def __init__(self, count, *shape):
        generator = numpy.random.default_rng(0)
        self.x = generator.integers(0, 256, (count, *shape), "uint8")
        self.y = generator.integers(0, 10, count)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


class Scaled(Arrays):
    """Samples that are computed."""

    def __getitem__(self, i):
        return self.x[i].astype("float32") / 255, self.y[i]


def numpy_loader(dataset, batch, shuffle, workers):
    def epoch():
        order = numpy.random.permutation(len(dataset)) if shuffle else numpy.arange(len(dataset))
        for start in range(0, len(dataset), batch):
            found = [dataset[i] for i in order[start : start + batch]]
            yield [numpy.stack(parts) for parts in zip(*found)]

    return epoch


def torch_loader(dataset, batch, shuffle, workers):
    from torch.utils.data import DataLoader, TensorDataset

    if type(dataset) is Arrays:
        import torch

        dataset = TensorDataset(torch.from_numpy(dataset.x), torch.from_numpy(dataset.y))
    loader = DataLoader(
        dataset, batch, shuffle, num_workers=workers, persistent_workers=workers > 0
    )
    return lambda: iter(loader)


def gluon_loader(gluon, array, dataset, batch, shuffle, workers):
    if type(dataset) is Arrays:
        dataset = gluon.data.ArrayDataset(array(dataset.x), array(dataset.y))
    loader = gluon.data.DataLoader(dataset, batch, shuffle, num_workers=workers)
    return lambda: iter(loader)


def loaders(contender: str):
    """The version and the function that makes a loader."""
    if contender == "torch":
        import torch

        return torch.__version__, torch_loader
    if contender == "heterosis":
        import heterosis
        from heterosis import gluon, np

        return heterosis.__version__, lambda *a: gluon_loader(gluon, np.array, *a)
    if contender == "mxnet":
        numpy.bool = numpy.bool_  # MXNet 1.9.1 asks for it, NumPy 1.23 warns of it
        import mxnet

        mxnet.npx.set_np()

        def array(x):
            return mxnet.np.array(x, dtype=x.dtype)

        return mxnet.__version__, lambda *a: gluon_loader(mxnet.gluon, array, *a)
    return numpy.__version__, numpy_loader


CASES = {  # dataset, size of a batch, shuffled, workers
    "arrays of 28 x 28 bytes, 256, shuffled": (Arrays(20480, 28, 28, 1), 256, True, 0),
    "computed 28 x 28 floats, 256, 2 workers": (Scaled(10240, 28, 28, 1), 256, True, _WORKERS),
    "computed 3 x 224 x 224 floats, 32, 2 workers": (Scaled(960, 3, 224, 224), 32, False, _WORKERS),
    "computed 3 x 224 x 224 floats, 32, no worker": (Scaled(480, 3, 224, 224), 32, False, 0),
}


def measure(contender: str) -> dict:
    """Seconds a batch and the mean of all data, for every case."""
    version, make = loaders(contender)
    found = {}
    for name, (dataset, batch, shuffle, workers) in CASES.items():
        epoch = make(dataset, batch, shuffle, workers)
        mean = numpy.mean([_as_numpy(x).mean(dtype="float64") for x, _ in epoch()])
        start, count = time.perf_counter(), 0
        for x, _y in epoch():
            _ready(x)
            count += 1
        found[name] = (time.perf_counter() - start) / count, float(mean)
    return {"version": version, "cases": found}


def _ready(x):
    """The batch, when it is there."""
    if hasattr(x, "wait_to_read"):
        x.wait_to_read()
    return x


def _as_numpy(x):
    return x.asnumpy() if hasattr(x, "asnumpy") else numpy.asarray(x)


if __name__ == "__main__":
    runner.main(__file__, measure, rounds=3, threads=(1,))
