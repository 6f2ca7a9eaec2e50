"""The metrics of a worker, by the names that Kafka Connect's have in Prometheus. Start at `connect_families`."""

from __future__ import annotations

from collections.abc import Iterator

from moldau.connect.worker.herder import Herder
from moldau.core.prometheus import MetricFamily, MetricType, Series, metric_name

__all__ = ["connect_families"]

_ERRORS = frozenset(
    {
        "total-record-failures",
        "total-records-skipped",
        "total-retries",
        "total-errors-logged",
        "last-error-timestamp",
        "deadletterqueue-produce-requests",
    }
)


def connect_families(herder: Herder) -> Iterator[MetricFamily]:
    """Of the worker, and of the connectors and tasks that run on it."""
    assignment = herder.assignment
    yield _gauge("kafka_connect_worker_connector_count", "Connectors on this worker.", len(assignment.connectors))
    yield _gauge("kafka_connect_worker_task_count", "Tasks on this worker.", len(assignment.tasks))
    yield _gauge("kafka_connect_worker_rebalance_leader", "Whether this worker leads.", int(herder.is_leader))
    yield MetricFamily(
        "kafka_connect_connector_status",
        MetricType.GAUGE,
        "The state of each connector.",
        [
            Series((("connector", name), ("status", status.state.lower())), 1)
            for name, status in sorted(herder.statuses.connectors.items())
            if name in assignment.connectors
        ],
    )
    series: dict[str, list[Series]] = {}
    for task in sorted(assignment.tasks):
        labels = (("connector", task.connector), ("task", str(task.task)))
        status = herder.statuses.tasks.get(task)
        if status is not None:
            one = Series((*labels, ("status", status.state.lower())), 1)
            series.setdefault("kafka_connect_connector_task_status", []).append(one)
        found = herder.task_report(task)
        report = found["report"] if found is not None else None
        for name, value in (report or {}).get("metrics", {}).items():
            series.setdefault(_name(name), []).append(Series(labels, value))
    for name, rows in series.items():
        kind = MetricType.COUNTER if name.endswith("_total") else MetricType.GAUGE
        yield MetricFamily(name, kind, "", rows)


def _name(metric: str) -> str:
    if metric in _ERRORS:
        return metric_name(f"kafka_connect_task_error_{metric}")
    group = "sink_task" if metric.startswith(("sink-", "put-", "partition-")) else "source_task"
    if metric.startswith("offset-commit"):
        group = "connector_task"
    return metric_name(f"kafka_connect_{group}_{metric}")


def _gauge(name: str, text: str, value: float) -> MetricFamily:
    return MetricFamily(name, MetricType.GAUGE, text, [Series((), value)])
