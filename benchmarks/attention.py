"""Attention, and its gradients, side by side: python benchmarks/attention.py

Queries, keys and values of (batch, heads, rows, columns), in float32, on which each library's own
function is called: compiled, and for PyTorch as it is too. All start from the same numbers, and
gradients are those of the sum of squares of the result, to all three.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy
import runner


class Case(NamedTuple):
    shape: tuple[int, int, int, int]
    is_causal: bool
    with_gradients: bool

    @property
    def name(self) -> str:
        size = " x ".join(map(str, self.shape))
        extra = ", causal" * self.is_causal + ", with gradients" * self.with_gradients
        return f"{size}{extra}"


_SHAPES = {"small": (1, 4, 64, 64), "batch": (8, 8, 128, 64), "long": (1, 8, 1024, 64)}
CASES = {
    f"{name}{'-causal' * is_causal}{'-gradients' * gradients}": Case(shape, is_causal, gradients)
    for name, shape in _SHAPES.items()
    for is_causal in (False, True)
    for gradients in (False, True)
}


def _inputs(case: Case) -> list[numpy.ndarray]:
    generator = numpy.random.default_rng(0)
    return [generator.standard_normal(case.shape).astype("float32") for _ in range(3)]


# -- contenders: what is called, and what its results are as arrays of NumPy's ------------------


def _heterosis(case: Case):
    import heterosis
    from heterosis import autograd, np, npx

    given = [np.array(x) for x in _inputs(case)]

    @heterosis.hybridize
    def attention(q, k, v):
        found = npx.scaled_dot_product_attention(q, k, v, is_causal=case.is_causal)
        return (found**2).sum() if case.with_gradients else found

    if not case.with_gradients:
        return heterosis.__version__, lambda: [attention(*given)], _ours, npx.waitall

    for x in given:
        x.attach_grad()

    def run():
        with autograd.record():
            found = attention(*given)
        found.backward()
        return [x.grad for x in given]

    return heterosis.__version__, run, _ours, npx.waitall


def _ours(found):
    return [x.asnumpy() for x in found]


def _torch(case: Case, compiled: bool):
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    torch.set_num_threads(torch.get_num_threads())
    given = [torch.tensor(x, requires_grad=case.with_gradients) for x in _inputs(case)]

    def attention(q, k, v):
        found = scaled_dot_product_attention(q, k, v, is_causal=case.is_causal)
        return (found**2).sum() if case.with_gradients else found

    called = torch.compile(attention) if compiled else attention

    def run():
        if case.with_gradients:
            return torch.autograd.grad(called(*given), given)
        with torch.no_grad():
            return [called(*given)]

    return torch.__version__, run, lambda found: [x.numpy() for x in found], lambda: None


def _jax(case: Case):
    import jax
    import jax.numpy as jnp

    # JAX has heads behind rows.
    given = [jnp.asarray(x.transpose(0, 2, 1, 3)) for x in _inputs(case)]

    def attention(q, k, v):
        return jax.nn.dot_product_attention(q, k, v, is_causal=case.is_causal)

    if case.with_gradients:
        run = jax.jit(jax.grad(lambda *x: (attention(*x) ** 2).sum(), argnums=(0, 1, 2)))
    else:
        run = jax.jit(lambda *x: [attention(*x)])

    def arrays(found):
        return [numpy.asarray(x).transpose(0, 2, 1, 3) for x in found]

    return jax.__version__, lambda: jax.block_until_ready(run(*given)), arrays, lambda: None


def measure(contender: str, model: str) -> dict:
    """Seconds of a call, and of the first one, and a figure of the results."""
    case = CASES[model]
    version, call, arrays, wait = {
        "heterosis": lambda: _heterosis(case),
        "torch": lambda: _torch(case, compiled=False),
        "torch compile": lambda: _torch(case, compiled=True),
        "jax": lambda: _jax(case),
    }[contender]()
    start = time.perf_counter()
    found = arrays(call())
    first = time.perf_counter() - start
    value = float(sum(numpy.abs(x).sum(dtype="float64") for x in found))
    cases = {case.name: (runner.seconds_a_call(call, wait), value)}
    return {"version": version, "cases": cases, "first": {case.name: first}}


if __name__ == "__main__":
    runner.main(
        __file__,
        measure,
        contenders=("heterosis", "torch", "torch compile", "jax"),
        models=tuple(CASES),
    )
