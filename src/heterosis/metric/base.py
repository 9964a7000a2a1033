"""What metrics share: sums over batches, since the last reset and since the very start."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from heterosis import _core
from heterosis.autograd import is_recording
from heterosis.np import asarray
from heterosis.runtime.context import cpu
from heterosis.runtime.errors import ArgumentError, ShapeError, UnsupportedError
from heterosis.runtime.modes import refuse_in_capture
from heterosis.runtime.registry import Registry

Names = Sequence[str] | None
Number = float | _core.ndarray  # a sum of arrays is not waited for until it is read


def check_label_shapes(
    labels: Any, preds: Any, wrap: bool = False, shape: bool = False
) -> tuple[Any, Any]:
    """Check for equal lengths, or shapes; with `wrap`, single arrays become lists of one."""
    given = (labels.shape, preds.shape) if shape else (len(labels), len(preds))
    if given[0] != given[1]:
        what = "shape" if shape else "length"
        raise ShapeError(
            f"labels have the {what} {given[0]} and predictions {given[1]}; they must be equal."
        )
    if wrap:
        labels, preds = ([x] if isinstance(x, _core.ndarray) else x for x in (labels, preds))
    return labels, preds


def pairs(labels: Any, preds: Any) -> Iterator[tuple[_core.ndarray, _core.ndarray]]:
    """Labels with their predictions, one pair an output, as arrays."""
    labels, preds = check_label_shapes(labels, preds, wrap=True)
    for label, pred in zip(labels, preds, strict=True):
        yield taken(label), taken(pred)


def taken(given: Any) -> _core.ndarray:
    """An array to measure, with the others on one context; its sums must not keep a recording
    alive."""
    _refuse_in_capture()
    array = asarray(given).as_in_context(cpu())
    return array.detach() if is_recording() else array


def _refuse_in_capture() -> None:
    refuse_in_capture(
        "The update of a metric",
        "Return what it is given, and call it with that, outside.",
    )


class EvalMetric:
    """The base of all metrics. A subclass defines `update(labels, preds)`.

    `output_names` and `label_names` choose from dictionaries given to `update_dict`.
    """

    num_inst: Number
    sum_metric: Number
    global_num_inst: Number
    global_sum_metric: Number

    def __init__(
        self,
        name: str,
        output_names: Names = None,
        label_names: Names = None,
        **kwargs: Any,
    ):
        self.name = str(name)
        self.output_names, self.label_names = output_names, label_names
        self._has_global_stats = kwargs.pop("has_global_stats", False)
        self._kwargs = kwargs
        self.reset()

    def __str__(self) -> str:
        return f"EvalMetric: {dict(self.get_name_value())}"

    def get_config(self) -> dict[str, Any]:
        """What `create` needs to make such a metric."""
        return self._kwargs | {
            "metric": type(self).__name__,
            "name": self.name,
            "output_names": self.output_names,
            "label_names": self.label_names,
        }

    def update_dict(self, label: Mapping[str, Any], pred: Mapping[str, Any]) -> None:
        """`update` with arrays by name."""
        self.update(_chosen(label, self.label_names), _chosen(pred, self.output_names))

    def update(self, labels: Any, preds: Any) -> None:
        """Take a batch into account: arrays, or lists with one for each output."""
        raise UnsupportedError(f"{type(self).__name__} has to define update(labels, preds).")

    def _add(self, total: Number, count: Number = 1) -> None:
        """Take a result into account."""
        _refuse_in_capture()
        self.sum_metric += total
        self.global_sum_metric += total
        self.num_inst += count
        self.global_num_inst += count

    def reset(self) -> None:
        """Forget all batches."""
        self.global_num_inst = 0
        self.global_sum_metric = 0.0
        self.reset_local()

    def reset_local(self) -> None:
        """Forget all batches but for the global result."""
        self.num_inst = 0
        self.sum_metric = 0.0

    def _result(self, total: Number, count: Number) -> float:
        return float(total) / float(count) if float(count) else float("nan")

    def get(self) -> tuple[Any, Any]:
        """The name and the value since the last reset; NaN without any batch."""
        return self.name, self._result(self.sum_metric, self.num_inst)

    def get_global(self) -> tuple[Any, Any]:
        """The name and the value that `reset_local` does not touch."""
        if not self._has_global_stats:
            return self.get()
        return self.name, self._result(self.global_sum_metric, self.global_num_inst)

    def get_name_value(self) -> list[tuple[str, float]]:
        """What `get` gives, as pairs."""
        return _as_pairs(*self.get())

    def get_global_name_value(self) -> list[tuple[str, float]]:
        """What `get_global` gives, as pairs."""
        return _as_pairs(*self.get_global())


def _chosen(arrays: Mapping[str, Any], names: Names) -> list[Any]:
    return list(arrays.values()) if names is None else [arrays[name] for name in names]


def _as_pairs(name: Any, value: Any) -> list[tuple[str, float]]:
    return list(zip(_as_list(name), _as_list(value), strict=True))


def _as_list(given: Any) -> list[Any]:
    return given if isinstance(given, list) else [given]


_registry = Registry(EvalMetric, "metric")
alias = _registry.alias


def register(klass: type) -> type:
    """Let `create` find a class by its name in lower case."""
    return _registry.register(klass)


def create(metric: Any, *args: Any, **kwargs: Any) -> Any:
    """A metric by name, by its configuration, from a function, or of a list of all these."""
    if isinstance(metric, list):
        return CompositeEvalMetric([create(one, *args, **kwargs) for one in metric])
    if callable(metric):
        return CustomMetric(metric, *args, **kwargs)
    return _registry.create(metric, *args, **kwargs)


@register
@alias("composite")
class CompositeEvalMetric(EvalMetric):
    """Several metrics as one, whose results are lists."""

    def __init__(
        self,
        metrics: Sequence[Any] | None = None,
        name: str = "composite",
        output_names: Names = None,
        label_names: Names = None,
    ):
        self.metrics = [create(metric) for metric in metrics or ()]
        super().__init__(name, output_names, label_names, has_global_stats=True)

    def add(self, metric: Any) -> None:
        """Take a further metric in."""
        self.metrics.append(create(metric))

    def get_metric(self, index: int) -> EvalMetric:
        """One of the metrics."""
        if not -len(self.metrics) <= index < len(self.metrics):
            raise ArgumentError(
                f"get_metric: index {index} is out of range; there are {len(self.metrics)} metrics."
            )
        return self.metrics[index]

    def update_dict(self, label: Mapping[str, Any], pred: Mapping[str, Any]) -> None:
        def kept(arrays: Mapping[str, Any], names: Names) -> dict[str, Any]:
            return {n: a for n, a in arrays.items() if names is None or n in names}

        label, pred = kept(label, self.label_names), kept(pred, self.output_names)
        for metric in self.metrics:
            metric.update_dict(label, pred)

    def update(self, labels: Any, preds: Any) -> None:
        for metric in self.metrics:
            metric.update(labels, preds)

    def reset(self) -> None:
        for metric in self.metrics:
            metric.reset()

    def reset_local(self) -> None:
        for metric in self.metrics:
            metric.reset_local()

    def get(self) -> tuple[list[str], list[float]]:
        return _joined(metric.get() for metric in self.metrics)

    def get_global(self) -> tuple[list[str], list[float]]:
        return _joined(metric.get_global() for metric in self.metrics)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"metrics": [m.get_config() for m in self.metrics]}


def _joined(results: Iterator[tuple[Any, Any]]) -> tuple[list[str], list[float]]:
    pairs_ = [pair for result in results for pair in _as_pairs(*result)]
    return [name for name, _ in pairs_], [value for _, value in pairs_]


@register
class CustomMetric(EvalMetric):
    """The mean of a function of NumPy arrays, `feval(label, pred)`.

    The function gives a value for a batch, or the pair of a sum and a count. It needs values, so
    every batch is waited for. With `allow_extra_outputs`, predictions without labels are left out.
    """

    def __init__(
        self,
        feval: Callable[[Any, Any], Any],
        name: str | None = None,
        allow_extra_outputs: bool = False,
        output_names: Names = None,
        label_names: Names = None,
    ):
        if name is None:
            name = getattr(feval, "__name__", type(feval).__name__)
            name = f"custom({name})" if "<" in name else name
        self._feval, self._allow_extra_outputs = feval, allow_extra_outputs
        super().__init__(
            name,
            output_names,
            label_names,
            feval=feval,
            allow_extra_outputs=allow_extra_outputs,
            has_global_stats=True,
        )

    def update(self, labels: Any, preds: Any) -> None:
        if self._allow_extra_outputs:
            labels, preds = ([x] if isinstance(x, _core.ndarray) else x for x in (labels, preds))
            preds = preds[: len(labels)]
        for label, pred in pairs(labels, preds):
            result = self._feval(label.asnumpy(), pred.asnumpy())
            self._add(*(result if isinstance(result, tuple) else (result,)))

    def get_config(self) -> dict[str, Any]:
        raise UnsupportedError("a CustomMetric is a function, which no configuration describes.")


def np(
    numpy_feval: Callable[[Any, Any], Any],
    name: str | None = None,
    allow_extra_outputs: bool = False,
) -> CustomMetric:
    """A metric from a function of NumPy arrays, `numpy_feval(label, pred)`."""
    return CustomMetric(numpy_feval, name, allow_extra_outputs)
