"""kafka-transactions list, describe and describe-producers: the state in coordinators and partitions."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

from moldau.cli.tool import ToolError, say
from moldau.cli.transactions.tables import (
    LIST_COLUMNS,
    PRODUCER_COLUMNS,
    TRANSACTION_COLUMNS,
    render_number,
    table_lines,
)
from moldau.client.admin import Admin
from moldau.client.wire_admin import (
    ActiveProducer,
    active_producers,
    describe_transaction,
    list_transactions,
    transaction_coordinator,
)
from moldau.core.ids import TopicPartition

__all__ = ["describe", "describe_producers", "leader_of", "list_all", "producers_of"]


def list_all(admin: Admin, options: argparse.Namespace) -> None:
    rows = []
    for node in admin.describe_cluster().nodes:
        with admin.wire(node.id) as client:
            found = list_transactions(
                client, longer_than_ms=options.duration_filter, pattern=options.transactional_id_pattern
            )
        rows += [(one.transactional_id, str(node.id), str(one.producer_id), one.state) for one in found]
    _show(LIST_COLUMNS, rows)


def describe(admin: Admin, options: argparse.Namespace) -> None:
    with admin.wire() as client:
        coordinator = transaction_coordinator(client, options.transactional_id)
    with admin.wire(coordinator) as client:
        found = describe_transaction(client, options.transactional_id)
    duration_ms = None if found.start_ms is None else int(time.time() * 1000) - found.start_ms
    row = (
        str(coordinator),
        options.transactional_id,
        str(found.producer_id),
        str(found.producer_epoch),
        found.state,
        str(found.timeout_ms),
        render_number(found.start_ms),
        render_number(duration_ms),
        ",".join(map(str, found.partitions)),
    )
    _show(TRANSACTION_COLUMNS, [row])


def describe_producers(admin: Admin, options: argparse.Namespace) -> None:
    partition = TopicPartition(options.topic, options.partition)
    rows = [
        (
            str(one.producer_id),
            str(one.producer_epoch),
            str(one.coordinator_epoch),
            str(one.last_sequence),
            str(one.last_timestamp_ms),
            render_number(one.transaction_start),
        )
        for one in producers_of(admin, partition, options.broker_id)
    ]
    _show(PRODUCER_COLUMNS, rows)


def producers_of(admin: Admin, partition: TopicPartition, broker_id: int | None = None) -> list[ActiveProducer]:
    """The active producers of a partition, from the given broker or the partition's leader."""
    with admin.wire(leader_of(admin, partition) if broker_id is None else broker_id) as client:
        return active_producers(client, partition)


def leader_of(admin: Admin, partition: TopicPartition) -> int:
    (topic,) = admin.describe_topics([partition.topic])
    for one in topic.partitions:
        if one.partition == partition.partition and one.leader is not None:
            return one.leader
    raise ToolError(f"there is no leader of {partition}")


def _show(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    for line in table_lines(columns, rows):
        say(line)
