"""Networks as libraries, beside hybridized calls: python benchmarks/libraries.py [MODEL...]

Per model: whether the library gives the same bits, called from Python and from C; what a call takes
hybridized, and from the library in C and in Python, in turns and with one thread (or `--threads`);
the size of the file, and what of it is not parameters.
"""

from __future__ import annotations

import argparse
import functools
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import from_c
from models import CASES
from networks import Case

GPT = Case("small GPT, 64 characters", "gpt", (1, 64), words=65)
CACHED = "cached"  # a small GPT that writes one character, beside a cache of keys and values
MODELS = {name: CASES[name] for name in ("mlp1", "resnet50", "bert", "lstm1", "encoder")} | {
    "gpt": GPT
}
NAMES = (*MODELS, CACHED)
_TARGET = 2.0  # seconds of calls for each way
_ROUNDS = 10


def _network(case: Case):
    """The network with parameters, its input, and the bytes of the parameters."""
    import heterosis

    heterosis.install_as_mxnet()
    from networks_gluon import NETWORKS

    net = NETWORKS[case.network]()
    net.initialize()
    given = case.input()
    x = heterosis.np.array(given, dtype=given.dtype)
    net(x)
    return net, [x], sum(p.data().size * 4 for p in net.collect_params().values())


def _cached_gpt():
    """A step of `generating.py` whose place is an array, so that one program serves all places."""
    import generating

    from heterosis import np, npx

    class Stepping(generating.Gpt):
        def places(self, place, count):
            return self.parameters[1][place]

    parameters = [np.array(value) for value in generating.values()]

    def step(keys, values, character, place):
        behind = np.where(np.arange(generating.LENGTH) <= place, 0.0, -1e9)

        def kept(layer, *parts):
            for cache, part in zip((keys, values), parts):
                cache[layer, place] = part
            return keys[layer], values[layer]

        net = Stepping(parameters, npx.softmax, lambda count, key: behind)
        return net.scores(character, kept, place).argmax()

    shape = (generating.LAYERS, generating.LENGTH, generating.HEADS)
    width = generating.WIDTH // generating.HEADS
    given = [np.random.normal(size=(*shape, width)) for _ in range(2)]
    given += [np.array([number], dtype="int32") for number in (7, 63)]
    return step, given, sum(array.size * 4 for array in parameters)


def _library(path: str):
    """What opens the library as programs without Heterosis do."""
    front_end = os.path.join(os.path.dirname(__file__), "..", "frontends", "python")
    sys.path.insert(0, front_end)
    from heterosis_library import Library

    return Library(path)


def _took(call) -> float:
    """Seconds a call takes."""
    call()
    begin = time.perf_counter()
    call()
    times = max(1, int(_TARGET / _ROUNDS / (time.perf_counter() - begin)))
    begin = time.perf_counter()
    for _ in range(times):
        call()
    return (time.perf_counter() - begin) / times


def _in_turns(measures) -> list[float]:
    """The median of what each measures."""
    found = [[measure() for measure in measures] for _ in range(_ROUNDS)]
    return [statistics.median(column) for column in zip(*found)]


def measured(name: str, threads: int, timed: bool) -> list[str]:
    """The cells of a model's row."""
    import heterosis
    from heterosis import npx

    npx.settings.threads = threads
    made = _cached_gpt() if name == CACHED else _network(MODELS[name])
    function, inputs, parameters = made
    title = "small GPT, one character, cache" if name == CACHED else MODELS[name].title
    given = [array.asnumpy().copy() for array in inputs]
    with tempfile.TemporaryDirectory() as folder:
        path, _ = heterosis.export(
            function, os.path.join(folder, "model"), *inputs, threads=threads
        )
        size, library = os.path.getsize(path), _library(path)
        run = heterosis.hybridize(lambda *arrays: function(*arrays))
        expected = [run(*inputs), *(inputs[:2] if name == CACHED else ())]
        expected = [array.asnumpy().tobytes() for array in expected]
        if _bytes(library(*given)) != expected:
            raise SystemExit(f"{title}: the library gives other numbers")
        cells = [f"{size / 1e6:.2f} MB", f"{(size - parameters) / 1e3:+,.0f} kB"]
        if timed:
            ways = [lambda: (run(*inputs), npx.waitall()), lambda: library(*given)]
            ways = [functools.partial(_took, way) for way in ways]
            in_c = functools.partial(_in_c, Path(folder), path, given, threads, expected)
            ours, from_python, its = _in_turns([*ways, in_c])
            times = [f"{took * 1e3:.3f} ms" for took in (ours, its, from_python)]
            cells = [*times[:2], f"{its / ours:.3f}", times[2], *cells]
    return [title, *cells]


def _in_c(folder: Path, path: str, given, threads: int, expected) -> float:
    """Seconds that a call takes a program in C, which has to compute what is expected."""
    program, inputs, outputs = (folder / n for n in ("call_library", "inputs", "outputs"))
    if not program.exists():
        from_c.built("call_library", folder)
        inputs.write_bytes(b"".join(array.tobytes() for array in given))
    found = from_c.called(program, path, inputs, outputs, threads)["seconds"]
    if outputs.read_bytes() != b"".join(expected):
        raise SystemExit(f"{path}: other numbers from C")
    return found


def _bytes(results) -> list[bytes]:
    results = results if isinstance(results, tuple) else (results,)
    return [array.tobytes() for array in results]


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"of {', '.join(NAMES)}")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--sizes", action="store_true", help="files alone, nothing timed")
    arguments = parser.parse_args()
    if unknown := set(arguments.models) - set(NAMES):
        parser.error(f"there is no {', '.join(unknown)}; expected some of {', '.join(NAMES)}")
    timed = ["hybridized", "library, from C", "ratio", "library, from Python"]
    timed = [] if arguments.sizes else timed
    heads = ["", *timed, "file", "beyond its parameters"]
    print("|", " | ".join(heads), "|")
    print("|" + "---|" * len(heads))
    for name in arguments.models or NAMES:
        row = measured(name, arguments.threads, not arguments.sizes)
        print("|", " | ".join(row), "|", flush=True)


if __name__ == "__main__":
    main()
