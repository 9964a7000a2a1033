"""Products with what ONNX Runtime's graphs have behind them."""

from __future__ import annotations

from typing import Any

from heterosis import np, npx
from heterosis.models.onnx.operators.activations import MICROSOFT, leaky_relu
from heterosis.models.onnx.operators.products import gemm
from heterosis.models.onnx.operators.table import operator
from heterosis.runtime.errors import UnsupportedError


def activated(y: Any, activation: str, parameters: list[float]) -> Any:
    """What an activation in the attributes of a fused operator makes of its result."""
    match activation, parameters:
        case "", _:
            return y
        case "Relu", _:
            return npx.relu(y)
        case "Sigmoid", _:
            return npx.sigmoid(y)
        case "Tanh", _:
            return np.tanh(y)
        case "LeakyRelu", [alpha]:
            return leaky_relu(y, alpha)
        case "Clip", [low, high]:
            return np.clip(y, low, high)
        case "HardSigmoid", [alpha, beta]:
            return npx.hard_sigmoid(y, alpha, beta)
    raise UnsupportedError(f"activation={activation!r} with parameters {parameters}.")


@operator("FusedMatMul", domain=MICROSOFT)
def _fused_matmul(
    a: Any, b: Any, *, alpha: float = 1.0, transA: int = 0, transB: int = 0
) -> Any:  # fmt: skip
    a = np.swapaxes(a, -1, -2) if transA and a.ndim > 1 else a
    b = np.swapaxes(b, -1, -2) if transB and b.ndim > 1 else b
    y = np.matmul(a, b)
    return y if alpha == 1 else y * alpha


@operator("FusedGemm", domain=MICROSOFT)
def _fused_gemm(
    a: Any, b: Any, c: Any = None,
    *, alpha: float = 1.0, beta: float = 1.0, transA: int = 0, transB: int = 0,
    activation: str = "", activation_alpha: float | None = None,
    activation_beta: float | None = None, activation_gamma: float | None = None,
) -> Any:  # fmt: skip
    y = gemm(a, b, c, alpha=alpha, beta=beta, transA=transA, transB=transB)
    given = [n for n in (activation_alpha, activation_beta, activation_gamma) if n is not None]
    return activated(y, activation, given)
