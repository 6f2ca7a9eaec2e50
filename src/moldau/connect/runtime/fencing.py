"""Fences tasks: whoever still has their transactional ids cannot write any more. Start at `fence_tasks`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from moldau.client.connection import build, log_report
from moldau.client.transactions import Transactions
from moldau.connect.runtime.client_settings import ClientSettings
from moldau.connect.runtime.secrets import Secrets

__all__ = ["fence_tasks"]

PATIENCE_S = 30.0


def fence_tasks(worker: Mapping[str, str], transactional_ids: Sequence[str]) -> None:
    """Take the ids over for a moment; raises `ClientError` where that fails. Blocks."""
    from confluent_kafka import Producer

    clients = ClientSettings(Secrets(worker).resolve(worker), {})
    for one in transactional_ids:
        properties = {**clients.producer(f"connect-fencing-{one}"), "transactional.id": one}
        producer: Producer
        producer, _ = build(Producer, "producer", properties, report=log_report, title=f"fencing of {one}")
        Transactions(producer, lambda: None, lambda: None, PATIENCE_S).start()
        del producer
