"""Networks that came as ONNX files."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy

from heterosis import np
from heterosis.gluon.hybrid_block import HybridBlock
from heterosis.io.files import FileName
from heterosis.ir.types import is_float
from heterosis.models.onnx import format as onnx_format
from heterosis.models.onnx.evaluation import Plan
from heterosis.models.onnx.format import Graph, Input
from heterosis.models.onnx.values import Stored
from heterosis.runtime.errors import ArgumentError, DTypeError, ShapeError

_FEW = 16  # integers of which there are so few are sizes and axes rather than tables
_SOME = 8  # a size that none is known of, and the next ones
_CARRIED = 1024  # elements of arrays that are kept as they were in the file, beside the parameter


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
        self._described = model.graph.inputs
        fixed = _statistics(model.graph)
        self._stored = {
            name: self._placed(name, host, name not in fixed)
            for name, host in model.graph.arrays.items()
        }
        self._plan = Plan(replace(model, graph=replace(model.graph, arrays={})))

    def _placed(self, name: str, host: numpy.ndarray, trained: bool) -> Any:
        few = host.dtype.kind in "iub" and host.size <= _FEW
        if few or host.ndim == 0 or host.size == 0:
            return host  # exponents, bounds, sizes, axes, what is left out: nothing that is trained
        trained = trained and host.dtype.kind not in "iub"
        dtype = str(host.dtype)
        parameter = self.params.get(
            name, shape=host.shape, dtype=dtype, init="zeros",
            grad_req="write" if trained else "null", differentiable=trained,
        )  # fmt: skip
        parameter.initialize()
        parameter.set_data(np.array(host, dtype=dtype))
        self._reg_params[name] = parameter
        if host.size <= _CARRIED:
            return Stored(lambda: host, parameter.data)
        return Stored(lambda: parameter.data().asnumpy(), parameter.data)

    @property
    def inputs(self) -> list[str]:
        """The names of the inputs, in their order."""
        return [given.name for given in self._described]

    @property
    def outputs(self) -> list[str]:
        """The names of the outputs, in their order."""
        return list(self._plan.model.graph.outputs)

    def samples(self, sizes: Mapping[str, int]) -> tuple[list[np.ndarray], dict[str, list[int]]]:
        """Inputs as the file describes them, with these sizes, by their names in the file, and of
        each the axes whose sizes have names alone: some number stands there."""
        names = {n for i in self._described for n in i.shape or () if isinstance(n, str)}
        if not sizes.keys() <= names:
            raise ArgumentError(
                f"sizes {sorted(sizes)}; the file has open ones with the names {sorted(names)}."
            )
        left = sorted(names - set(sizes))
        known = dict(sizes) | {name: _SOME + place for place, name in enumerate(left)}
        arrays, axes = [], {}
        for given in self._described:
            if given.shape is None or given.dtype is None:
                raise ArgumentError(
                    f"the file does not tell the shape and the type of input {given.name!r}: call "
                    "heterosis.export with an array for each input."
                )
            shape = tuple(known[n] if isinstance(n, str) else n for n in given.shape)
            arrays.append(np.zeros(shape, dtype=given.dtype))
            axes[given.name] = [axis for axis, n in enumerate(given.shape) if n in left]
        return arrays, axes

    def forward(self, *arrays: Any) -> Any:
        """The outputs for the inputs, in their order; a tuple if there are several."""
        if len(arrays) != len(self._described):
            raise ArgumentError(
                f"OnnxNetwork: {len(arrays)} inputs; expected {len(self.inputs)}: {self.inputs}."
            )
        for array, described in zip(arrays, self._described, strict=True):
            if isinstance(array, np.ndarray):
                _check(array, described)
        found = self._plan.run({**self._stored, **dict(zip(self.inputs, arrays, strict=True))})
        return found[0] if len(found) == 1 else tuple(found)

    def _arguments(self) -> inspect.Signature:
        return self._arguments_named(self.inputs)

    def __repr__(self) -> str:
        graph = self._plan.model.graph
        inputs, outputs = ", ".join(self.inputs), ", ".join(graph.outputs)
        return f"OnnxNetwork({inputs} -> {outputs}, {len(graph.nodes)} nodes)"


def _statistics(graph: Graph) -> set[str]:
    """The means and variances that batch normalisation has found, which are not trained."""
    nodes = (node for node in graph.nodes if node.operator == "BatchNormalization")
    return {name for node in nodes for name in node.inputs[3:5]}


def _check(array: np.ndarray, described: Input) -> None:
    """Refuse what the network is not made for. Floats may be of another width: a network can be
    cast."""
    dtype, shape = described.dtype, described.shape
    if dtype is not None and array.dtype != dtype and not (is_float(dtype) and _is_float(array)):
        raise DTypeError(
            f"OnnxNetwork: input {described.name!r} is of type {array.dtype}; expected {dtype}. "
            f"Convert it: x.astype({dtype!r})."
        )
    if shape is not None and not _fits(array.shape, shape):
        raise ShapeError(
            f"OnnxNetwork: input {described.name!r} has shape {array.shape}; expected "
            f"({', '.join(map(str, shape))}), where names are any numbers. The file fixes the "
            "others; export it with dynamic ones."
        )


def _is_float(array: np.ndarray) -> bool:
    return is_float(str(array.dtype))


def _fits(shape: tuple[int, ...], expected: tuple[int | str, ...]) -> bool:
    return len(shape) == len(expected) and all(
        isinstance(wanted, str) or n == wanted for n, wanted in zip(shape, expected, strict=True)
    )
