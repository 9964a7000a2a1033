"""What this library was built with, by MXNet's names of features."""

from __future__ import annotations

from typing import NamedTuple

from heterosis import _core
from heterosis.runtime.errors import ArgumentError

_PROCESSOR = {
    "CPU_SSE": "sse2",
    "CPU_SSE2": "sse2",
    "CPU_SSE3": "sse4.1",
    "CPU_SSE4_1": "sse4.1",
    "CPU_SSE4_2": "avx",
    "CPU_SSE4A": "sse4a",
    "CPU_AVX": "avx",
    "CPU_AVX2": "avx2",
    "F16C": "f16c",
    "SSE": "sse2",
}  # what the processor has at least, if it has the second
_PRESENT = ("BLAS_OPEN", "LAPACK", "PROFILER", "CXX14", "INT64_TENSOR_SIZE")
_ABSENT = (
    "CUDA", "CUDNN", "NCCL", "CUDA_RTC", "TENSORRT", "OPENMP", "JEMALLOC", "BLAS_ATLAS", "BLAS_MKL",
    "BLAS_APPLE", "MKLDNN", "OPENCV", "CAFFE", "DIST_KVSTORE", "SIGNAL_HANDLER", "DEBUG", "TVM_OP",
)  # fmt: skip


class Feature(NamedTuple):
    """A feature's name, and whether it is there."""

    name: str
    enabled: bool

    def __repr__(self) -> str:
        return f"{'✔' if self.enabled else '✖'} {self.name}"


def feature_list() -> list[Feature]:
    """All features that MXNet has names for; operations use what the processor has."""
    extensions = set(_core.cpu_features())
    found = {name: extension in extensions for name, extension in _PROCESSOR.items()}
    found |= dict.fromkeys(_PRESENT, True) | dict.fromkeys(_ABSENT, False)
    return [Feature(name, enabled) for name, enabled in found.items()]


class Features(dict[str, Feature]):
    """The features by name."""

    def __init__(self) -> None:
        super().__init__((feature.name, feature) for feature in feature_list())

    def __repr__(self) -> str:
        return str(list(self.values()))

    def is_enabled(self, feature_name: str) -> bool:
        """Whether a feature is there, its name in capitals or not."""
        name = feature_name.upper()
        if name not in self:
            raise ArgumentError(f"{name!r} is no feature; known are {', '.join(self)}.")
        return self[name].enabled


__all__ = ["Feature", "Features", "feature_list"]
