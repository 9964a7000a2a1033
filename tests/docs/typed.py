"""What type checkers find the types of public names to be: checked by them, and never run."""

from collections.abc import Callable
from typing import Any

from typing_extensions import assert_type

import heterosis
from heterosis import autograd, gluon, nd, np, npx
from heterosis.capture import Compiled
from heterosis.gluon import nn
from heterosis.typing import ArrayLike, DTypeLike

x = np.array([[1, 2], [3, 4]], dtype=np.float32)
assert_type(x, np.ndarray)
assert_type(np.exp(x), np.ndarray)
assert_type(np.add(x, 1, out=x, where=x > 0, dtype="float32"), np.ndarray)
assert_type(np.ones((2, 3)) @ x.T + 1, np.ndarray)
assert_type(x.sum(axis=(0, 1), keepdims=True), np.ndarray)
assert_type(x.shape, tuple[int, ...])
assert_type(npx.softmax(x, axis=-1), np.ndarray)
assert_type(np.linalg.inv(x), np.ndarray)
assert_type(nd.broadcast_add(x, x), np.ndarray)
assert_type(x.astype("float64").asnumpy().tobytes(), bytes)
assert_type(np.concatenate([x, x], axis=0), np.ndarray)


@heterosis.hybridize
def bare(a: np.ndarray, scale: float = 1.0) -> np.ndarray:
    return a * scale


@heterosis.hybridize(dynamic="auto", check=True)
def with_options(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return a, a + 1


assert_type(bare(x, scale=2.0), np.ndarray)
assert_type(bare.captures, int)
assert_type(with_options(x), tuple[np.ndarray, np.ndarray])
assert_type(heterosis.hybridize(nn.Dense(3)), nn.Dense)


class Model:
    @heterosis.hybridize
    def predict(self, a: np.ndarray) -> np.ndarray:
        return a


assert_type(Model().predict(x), np.ndarray)


class Net(gluon.HybridBlock):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Dense(4)

    def forward(self, x: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
        y: np.ndarray = self.first(x)
        return y if mask is None else y * mask


class Older(gluon.HybridBlock):
    def hybrid_forward(self, F: Any, x: np.ndarray, weight: np.ndarray | None = None) -> Any:
        return F.relu(x)


def step(net: gluon.Block, trainer: gluon.Trainer, loss: gluon.loss.Loss) -> None:
    with autograd.record():
        value = loss(net(x), x)
    value.backward()
    trainer.step(2)


def mean(values: ArrayLike, dtype: DTypeLike | None = None) -> np.ndarray:
    return np.mean(values, dtype=dtype)


takes: Callable[[np.ndarray], np.ndarray] = heterosis.hybridize(mean)
loaded: Compiled[..., Any] = heterosis.load("file")
