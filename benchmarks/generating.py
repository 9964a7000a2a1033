"""A small GPT writes 63 characters: python benchmarks/generating.py [CONTENDER...]

Each next character is the likeliest one. Once the network is given all characters so far, a context
that grows; once the last one alone, beside a cache of keys and values that is written to at the
place of the character. Told are characters a second in the first pass, compiling included, and in
the best of further ones, how often the function was captured, and the last characters, which are
the same for all contenders. Each has a process of its own, one thread, and an empty cache. JAX has
no arrays that are written to, nor parts of a changing length: its caches go in and out of the
function, and all places are looked at, those to come with a score of -1e9.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

import numpy
import runner

LENGTH, WIDTH, HEADS, LAYERS, CHARACTERS = 64, 128, 4, 4, 65
SHAPES = [
    (CHARACTERS, WIDTH), (LENGTH, WIDTH),
    *(((WIDTH,), (WIDTH,), (WIDTH, 3 * WIDTH), (WIDTH, WIDTH), (WIDTH,), (WIDTH,),
       (WIDTH, 4 * WIDTH), (4 * WIDTH, WIDTH)) * LAYERS),
    (WIDTH, CHARACTERS),
]  # fmt: skip


def values() -> list[numpy.ndarray]:
    """The parameters, the same for all."""
    generator = numpy.random.default_rng(0)
    return [generator.normal(size=shape).astype("float32") * 0.15 for shape in SHAPES]


class Gpt:
    """The network as functions that every contender runs: `softmax` goes along the last axis, and
    `mask` gives what is added to the scores of so many places that look at so many."""

    def __init__(self, parameters, softmax, mask):
        self.parameters, self.softmax, self.mask = parameters, softmax, mask

    def places(self, place, count):
        """What is added to so many characters, the first of which stands at a place."""
        return self.parameters[1][place : place + count]

    def normalized(self, x, scale, shift):
        centred = x - x.mean(-1).reshape(-1, 1)
        return centred * ((centred**2).mean(-1).reshape(-1, 1) + 1e-5) ** -0.5 * scale + shift

    def scores(self, x, kept, place):
        """Of the next character, for rows that begin at a place of the text; `kept(layer, keys,
        values)` gives all keys and values so far."""
        first, given = self.parameters[0], iter(self.parameters[2:])
        count = x.shape[0]
        x = first[x] + self.places(place, count)
        for layer in range(LAYERS):
            parts = self.normalized(x, next(given), next(given)) @ next(given)
            query, key, value = (
                parts[:, i * WIDTH : (i + 1) * WIDTH].reshape(count, HEADS, -1) for i in range(3)
            )
            key, value = kept(layer, key, value)
            found = query.swapaxes(0, 1) @ key.swapaxes(0, 1).swapaxes(1, 2)
            weights = self.softmax(found * (WIDTH // HEADS) ** -0.5 + self.mask(count, key))
            mixed = (weights @ value.swapaxes(0, 1)).swapaxes(0, 1).reshape(count, WIDTH)
            x = x + mixed @ next(given)
            y = self.normalized(x, next(given), next(given)) @ next(given)
            x = x + (y * (y > 0)) @ next(given)
        return x[-1] @ next(given)

    def with_context(self, x):
        """The next character behind all of `x`."""
        return self.scores(x, lambda layer, key, value: (key, value), 0).argmax()

    def with_cache(self, caches, x, place):
        """The next character behind one; `caches` of keys and values are written to at its
        place."""

        def kept(layer, *parts):
            for cache, part in zip(caches, parts, strict=True):
                cache[layer, place : place + 1] = part
            return (cache[layer, : place + 1] for cache in caches)

        return self.scores(x, kept, place).argmax()


# -- contenders: what gives the next character by both ways, and how often it was captured --------


def _heterosis(hybridized: bool):
    import heterosis
    from heterosis import np, npx

    def mask(count, key):
        return (np.tril(np.ones((count, key.shape[0]))) - 1) * 1e9 if count > 1 else 0.0

    net = Gpt([np.array(value) for value in values()], npx.softmax, mask)
    ways = [net.with_context, net.with_cache]
    if hybridized:
        ways = [heterosis.hybridize(way) for way in ways]
    caches = [np.zeros((LAYERS, LENGTH, HEADS, WIDTH // HEADS)) for _ in range(2)]
    return (
        lambda text: ways[0](np.array(text, dtype="int32")).item(),
        lambda text: ways[1](caches, np.array(text[-1:], dtype="int32"), len(text) - 1).item(),
        lambda: [getattr(way, "captures", 0) for way in ways],
    )


def _torch(compiled: bool):
    import torch

    torch.set_grad_enabled(False)

    def mask(count, key):
        return (torch.tril(torch.ones(count, key.shape[0])) - 1) * 1e9 if count > 1 else 0.0

    net = Gpt([*map(torch.from_numpy, values())], lambda x: torch.softmax(x, -1), mask)
    ways = [net.with_context, net.with_cache]
    if compiled:
        ways = [torch.compile(way, dynamic=True) for way in ways]
    caches = [torch.zeros(LAYERS, LENGTH, HEADS, WIDTH // HEADS) for _ in range(2)]

    def captures() -> list[int]:
        from torch._dynamo.utils import counters

        return [counters["stats"]["unique_graphs"]]

    return (
        lambda text: ways[0](torch.tensor(text)).item(),
        lambda text: ways[1](caches, torch.tensor(text[-1:]), len(text) - 1).item(),
        captures if compiled else lambda: [0],
    )


def _jax():
    import jax
    from jax import lax
    from jax import numpy as jnp

    def causal(count, key):
        return (jnp.tril(jnp.ones((count, key.shape[0]))) - 1) * 1e9 if count > 1 else 0.0

    class Functional(Gpt):
        def places(self, place, count):
            return lax.dynamic_slice_in_dim(self.parameters[1], place, count)

        def with_new_caches(self, caches, x, place):
            caches = list(caches)
            self.mask = lambda count, key: jnp.where(jnp.arange(LENGTH) <= place, 0.0, -1e9)

            def kept(layer, *parts):
                for i, part in enumerate(parts):
                    caches[i] = caches[i].at[layer, place].set(part[0])
                return (cache[layer] for cache in caches)

            return self.scores(x, kept, place).argmax(), caches

    parameters = [*map(jnp.asarray, values())]
    context = jax.jit(Gpt(parameters, jax.nn.softmax, causal).with_context)
    cached = jax.jit(Functional(parameters, jax.nn.softmax, None).with_new_caches, donate_argnums=0)
    held = [jnp.zeros((LAYERS, LENGTH, HEADS, WIDTH // HEADS)) for _ in range(2)]

    def next_one(text: list[int]) -> int:
        nonlocal held
        found, held = cached(held, jnp.asarray(text[-1:]), len(text) - 1)
        return int(found)

    return (
        lambda text: int(context(jnp.asarray(text))),
        next_one,
        lambda: [context._cache_size(), cached._cache_size()],
    )


CONTENDERS = {
    "heterosis": lambda: _heterosis(True), "imperative": lambda: _heterosis(False),
    "torch": lambda: _torch(False), "torch compile": lambda: _torch(True), "jax": _jax,
}  # fmt: skip


# -- workers --------------------------------------------------------------------------------------


def _written(call) -> list[int]:
    text = [1]
    while len(text) < LENGTH:
        text.append(call(text))
    return text


def _measure(contender: str) -> dict[str, object]:
    *ways, captures = CONTENDERS[contender]()
    found: dict[str, object] = {}
    for name, call in zip(("context", "cache"), ways, strict=True):
        rates = []
        for _ in range(6):
            start = time.perf_counter()
            text = _written(call)
            rates.append((LENGTH - 1) / (time.perf_counter() - start))
        found |= {f"{name}, first pass": round(rates[0]), f"{name}, best": round(max(rates[1:]))}
        found[f"{name}, text"] = text[-4:]
    return found | {"captures": captures()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("contenders", nargs="*", default=list(CONTENDERS))
    parser.add_argument("--work", choices=CONTENDERS)
    given = parser.parse_args()
    if given.work:
        print(json.dumps(_measure(given.work)))
        return
    print(runner.heading(), end="\n\n")
    for contender in given.contenders:
        python = runner.interpreters().get(contender.split(maxsplit=1)[0], sys.executable)
        with tempfile.TemporaryDirectory() as cache:
            command = [python, os.path.abspath(__file__), "--work", contender]
            caches = {"HETEROSIS_CACHE": cache, "TORCHINDUCTOR_CACHE_DIR": cache}
            environment = runner.environment_of(1) | caches
            output = subprocess.check_output(command, env=environment, text=True)
        print(f"{contender}: {output.splitlines()[-1]}", flush=True)


if __name__ == "__main__":
    main()
