"""Runs in turns: warm up once, then each workload on one broker and the other, quiet before each.

The order flips from round to round, so that neither broker always profits from being second.
Start at `measure_all`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median

from bench.brokers import BrokerError, BrokerProcess
from bench.clients import ClientError
from bench.machine import settle
from bench.workloads import Load, Scale, Workload, end_to_end, small_requests

__all__ = ["Results", "measure_all", "medians", "warm_up"]

Results = dict[str, dict[str, list[dict[str, float]]]]
"""Workload, broker, then one set of numbers per round."""


def warm_up(brokers: Sequence[BrokerProcess], scale: Scale) -> None:
    """Send enough through each broker for a JVM to have compiled its hot paths."""
    for broker in brokers:
        topic = "bench-warm-up"
        broker.create_topic(topic, 6, file_delete_delay_ms=100)
        for size in (1000, 100):
            Load(size=size, partitions=6).produce(broker, topic, scale.warm_up_bytes // 2)
        broker.delete_topic(topic)
        # Paths of their own for the JVM's compiler: requests of one record, and fetches that wait.
        small_requests(10, 1, broker, scale)
        end_to_end(1000, broker, scale)


def measure_all(
    workloads: Sequence[Workload],
    brokers: Sequence[BrokerProcess],
    scale: Scale,
    results: Results,
    say: Callable[[str], None],
) -> None:
    """Measure every workload into `results`; one that fails on a broker is reported and leaves a gap, not a crash."""
    for workload in workloads:
        results[workload.name] = {broker.name: [] for broker in brokers}
        for round_number in range(scale.rounds):
            order = brokers if round_number % 2 == 0 else list(reversed(brokers))
            for broker in order:
                if not settle(scale.settle_s):
                    say("  the machine did not get quiet; measuring all the same")
                try:
                    numbers = workload.measure(broker, scale)
                except (BrokerError, ClientError) as error:
                    say(f"  {workload.title}: {broker.name} failed: {error}")
                    continue
                results[workload.name][broker.name].append(numbers)
                shown = ", ".join(f"{numbers[m.key]:.4g} {m.unit}" for m in workload.metrics)
                say(f"  {workload.title}: {broker.name} {shown}")


def medians(runs: Sequence[dict[str, float]]) -> dict[str, float]:
    """Metric by metric over the rounds; empty where nothing was measured."""
    return {key: median(run[key] for run in runs) for key in (runs[0] if runs else {})}
