"""kafka-transactions find-hanging, abort and forceTerminateTransaction: finds hanging transactions and aborts them.

A transaction hangs if it is open in a partition for longer than the maximum timeout and no coordinator has the
partition in the transaction. Start at `hanging`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from moldau.cli.tool import ToolError, say
from moldau.cli.transactions.inspection import leader_of, producers_of
from moldau.cli.transactions.tables import HANGING_COLUMNS, render_number, table_lines
from moldau.client.admin import Admin
from moldau.client.wire_admin import (
    ActiveProducer,
    abort_in_partition,
    describe_transaction,
    list_transactions,
    raise_for,
    terminate_transaction,
    transaction_coordinator,
)
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition

__all__ = ["OpenTransaction", "abort", "find", "force_terminate", "hanging"]

MINUTE_MS = 60_000


class OpenTransaction(NamedTuple):
    partition: TopicPartition
    producer: ActiveProducer


def hanging(
    candidates: Iterable[OpenTransaction], known: Mapping[int, frozenset[TopicPartition]]
) -> list[OpenTransaction]:
    """The transactions whose producer no coordinator has, or whose coordinator does not have the partition.

    `known` maps each producer id to the partitions of its transaction.
    """
    return [one for one in candidates if one.partition not in known.get(one.producer.producer_id, frozenset())]


def find(admin: Admin, options: argparse.Namespace) -> None:
    now_ms = int(time.time() * 1000)
    overdue_ms = now_ms - options.max_transaction_timeout * MINUTE_MS
    candidates = [
        OpenTransaction(partition, producer)
        for partition in _partitions(admin, options)
        for producer in producers_of(admin, partition, options.broker_id)
        if producer.transaction_start is not None and producer.last_timestamp_ms < overdue_ms
    ]
    known = _partitions_by_producer(admin, {one.producer.producer_id for one in candidates}) if candidates else {}
    rows = [
        (
            one.partition.topic,
            str(one.partition.partition),
            str(one.producer.producer_id),
            str(one.producer.producer_epoch),
            str(one.producer.coordinator_epoch),
            render_number(one.producer.transaction_start),
            str(one.producer.last_timestamp_ms),
            str((now_ms - one.producer.last_timestamp_ms) // MINUTE_MS),
        )
        for one in hanging(candidates, known)
    ]
    for line in table_lines(HANGING_COLUMNS, rows):
        say(line)


def _partitions(admin: Admin, options: argparse.Namespace) -> list[TopicPartition]:
    if options.topic is None and options.broker_id is None:
        raise ToolError("find-hanging looks at one topic or one broker: give --topic or --broker-id")
    if options.partition is not None and options.topic is None:
        raise ToolError("--partition needs --topic")
    names = [options.topic] if options.topic is not None else admin.topic_names()
    return [
        TopicPartition(topic.name, one.partition)
        for topic in admin.describe_topics(names)
        for one in topic.partitions
        if (options.partition is None or one.partition == options.partition)
        and (options.broker_id is None or options.broker_id in one.replicas)
    ]


def _partitions_by_producer(admin: Admin, producer_ids: set[int]) -> dict[int, frozenset[TopicPartition]]:
    found = {}
    for node in admin.describe_cluster().nodes:
        with admin.wire(node.id) as client:
            for one in list_transactions(client):
                if one.producer_id in producer_ids:
                    described = describe_transaction(client, one.transactional_id)
                    found[one.producer_id] = frozenset(described.partitions)
    return found


def abort(admin: Admin, options: argparse.Namespace) -> None:
    partition = TopicPartition(options.topic, options.partition)
    if options.start_offset is not None:
        producer = _producer_at(admin, partition, options.start_offset)
    elif None in (options.producer_id, options.producer_epoch, options.coordinator_epoch):
        raise ToolError("give --start-offset, or all of --producer-id, --producer-epoch and --coordinator-epoch")
    else:
        producer = ActiveProducer(options.producer_id, options.producer_epoch, -1, -1, options.coordinator_epoch, None)
    with admin.wire(leader_of(admin, partition)) as client:
        abort_in_partition(client, partition, producer)


def _producer_at(admin: Admin, partition: TopicPartition, start_offset: int) -> ActiveProducer:
    for producer in producers_of(admin, partition):
        if producer.transaction_start == start_offset:
            return producer
    raise ToolError(f"Could not find any open transactions starting at offset {start_offset} on partition {partition}")


def force_terminate(admin: Admin, options: argparse.Namespace) -> None:
    with admin.wire() as client:
        coordinator = transaction_coordinator(client, options.transactional_id)
    with admin.wire(coordinator) as client:
        describe_transaction(client, options.transactional_id)  # fails for an unknown id, which the next call creates
        code = terminate_transaction(client, options.transactional_id)
    # CONCURRENT_TRANSACTIONS means that the transaction is being aborted, as requested.
    if code != ErrorCode.CONCURRENT_TRANSACTIONS:
        raise_for(code, about=options.transactional_id)
