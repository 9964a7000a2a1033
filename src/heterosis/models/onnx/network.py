"""Networks that came as ONNX files."""

from __future__ import annotations

import inspect
from typing import Any

import numpy

from heterosis import np
from heterosis.gluon.hybrid_block import HybridBlock
from heterosis.io.files import FileName
from heterosis.models.onnx import format as onnx_format
from heterosis.models.onnx.evaluation import Plan
from heterosis.models.onnx.values import Stored
from heterosis.runtime.errors import ArgumentError

_FEW = 16  # integers of which there are so few are sizes and axes rather than tables


def from_onnx(source: FileName | bytes) -> OnnxNetwork:
    """The network in an ONNX file, or in its bytes: a block like any other.

    It can be called, hybridized, trained and exported. Arrays of floats in the file are its
    parameters.
    """
    return OnnxNetwork(onnx_format.read(source))


class OnnxNetwork(HybridBlock):
    """A block that computes the graph of an ONNX model."""

    def __init__(self, model: onnx_format.Model):
        super().__init__(prefix="", params=None)  # parameters have the file's names
        self._plan = Plan(model)
        self._names = [i.name for i in model.graph.inputs]
        self._stored: dict[str, Any] = {}
        for name, host in model.graph.arrays.items():
            self._stored[name] = self._stored_array(name, host)

    def _stored_array(self, name: str, host: numpy.ndarray) -> Any:
        few = host.dtype.kind in "iub" and host.size <= _FEW
        if few or host.ndim == 0 or host.size == 0:
            return host  # exponents, bounds, sizes, axes, what is left out: nothing that is trained
        trained = host.dtype.kind not in "iub"
        dtype = str(host.dtype)
        parameter = self.params.get(
            name, shape=host.shape, dtype=dtype, init="zeros",
            grad_req="write" if trained else "null", differentiable=trained,
        )  # fmt: skip
        parameter.initialize()
        parameter.set_data(np.array(host, dtype=dtype))
        self._reg_params[name] = parameter
        return Stored(host, parameter.data)

    @property
    def inputs(self) -> list[str]:
        """The names of the inputs, in their order."""
        return list(self._names)

    @property
    def outputs(self) -> list[str]:
        """The names of the outputs, in their order."""
        return list(self._plan.model.graph.outputs)

    def forward(self, *arrays: Any) -> Any:
        """The outputs for the inputs, in their order; a tuple if there are several."""
        if len(arrays) != len(self._names):
            raise ArgumentError(
                f"OnnxNetwork: {len(arrays)} inputs; expected {len(self._names)}: {self._names}."
            )
        found = self._plan.run({**self._stored, **dict(zip(self._names, arrays, strict=True))})
        return found[0] if len(found) == 1 else tuple(found)

    def _arguments(self) -> inspect.Signature:
        if not all(name.isidentifier() for name in self._names):
            return super()._arguments()
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        return inspect.Signature([inspect.Parameter(name, kind) for name in self._names])

    def __repr__(self) -> str:
        graph = self._plan.model.graph
        inputs, outputs = ", ".join(self._names), ", ".join(graph.outputs)
        return f"OnnxNetwork({inputs} -> {outputs}, {len(graph.nodes)} nodes)"
