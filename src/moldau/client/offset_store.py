"""Offsets stored outside the cluster, together with the results of processing: both change in one transaction.

A crash can leave Kafka's committed offsets behind the results. Where results go into a database, the offset can be
written with them, so that every record takes effect exactly once. Start at `SqliteOffsetStore`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from moldau.client.errors import ClientError
from moldau.client.rebalancing import RebalanceListener
from moldau.client.records import Record
from moldau.core.ids import TopicPartition

__all__ = ["AlreadyProcessedError", "OffsetStore", "SeekToStored", "SqliteOffsetStore"]


class AlreadyProcessedError(ClientError):
    """The store is past this record: another consumer has processed it, or this one has before."""


class OffsetStore(Protocol):
    """Remembers, for one group, the offset of the next record to process in each partition."""

    def load(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, int]:
        """The stored offsets; partitions never saved are left out."""
        ...

    def save(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Remember these offsets, durably, before returning."""
        ...


class SeekToStored(RebalanceListener):
    """Starts every assigned partition at its stored offset.

        consumer.subscribe(["payments"], listener=SeekToStored(store))

    Partitions the store does not know start at the group's committed offset, or as `auto.offset.reset` says:
    use `earliest` with a store that starts empty. Commits to Kafka are not needed with a store, so give the consumer
    `enable.auto.commit=false`.
    """

    def __init__(self, store: OffsetStore) -> None:
        self._store = store

    def partitions_assigned(self, consumer: Any, partitions: set[TopicPartition]) -> None:
        for partition, offset in self._store.load(partitions).items():
            consumer.seek(partition, offset)


class SqliteOffsetStore:
    """Offsets in a table of an SQLite database, written in one transaction with the application's own tables.

        with SqliteOffsetStore("results.db", group="billing") as store:
            consumer.subscribe(["payments"], listener=SeekToStored(store))
            for record in consumer:
                with store.transaction(record) as database:
                    database.execute("INSERT INTO payments VALUES (?, ?)", (record.key, record.value))

    `location` is a file, made when it does not exist. `group` keeps the offsets of several applications apart.
    Belongs to one thread, as the consumer does; several stores may share a file. A consumer that has lost its
    partitions without knowing does no harm: its late transactions are rejected, because the store is already past
    their records.
    """

    def __init__(self, location: str | Path, *, group: str) -> None:
        self.group = group
        self.database = sqlite3.connect(location, isolation_level=None, timeout=30)
        self.database.execute("PRAGMA journal_mode = WAL")
        self.database.execute("PRAGMA synchronous = FULL")
        self.database.execute(
            """CREATE TABLE IF NOT EXISTS consumer_offsets (
                   consumer_group TEXT NOT NULL, topic TEXT NOT NULL, partition_id INTEGER NOT NULL,
                   next_offset INTEGER NOT NULL, PRIMARY KEY (consumer_group, topic, partition_id))"""
        )

    def load(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """The stored offsets; partitions never saved are left out."""
        found = {partition: self._stored_offset(partition) for partition in partitions}
        return {partition: offset for partition, offset in found.items() if offset is not None}

    def save(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Set these offsets, forwards or backwards; inside a transaction together with it, else at once."""
        self.database.executemany(
            """INSERT INTO consumer_offsets VALUES (?, ?, ?, ?)
               ON CONFLICT (consumer_group, topic, partition_id) DO UPDATE SET next_offset = excluded.next_offset""",
            [(self.group, at.topic, at.partition, offset) for at, offset in offsets.items()],
        )

    @contextmanager
    def transaction(self, *records: Record[Any, Any]) -> Iterator[sqlite3.Connection]:
        """A transaction around the block, which also stores the offsets after these records.

        Committed at the end of the block and rolled back when an exception leaves it. Raises `AlreadyProcessedError`
        before the block where the store is past one of the records; then continue with the next record.
        The block must not commit, nor call `executescript`, which does.
        """
        self.database.execute("BEGIN IMMEDIATE")
        try:
            self.save(self._offsets_after(records))
            yield self.database
            if not self.database.in_transaction:
                raise ClientError("the block has ended the transaction itself: results and offsets may be inconsistent")
            self.database.execute("COMMIT")
        except BaseException:
            # SQLite may have rolled back by itself, for example when the disk is full.
            if self.database.in_transaction:
                self.database.execute("ROLLBACK")
            raise

    def close(self) -> None:
        self.database.close()

    def __enter__(self) -> SqliteOffsetStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _stored_offset(self, partition: TopicPartition) -> int | None:
        row = self.database.execute(
            "SELECT next_offset FROM consumer_offsets WHERE consumer_group = ? AND topic = ? AND partition_id = ?",
            (self.group, *partition),
        ).fetchone()
        return None if row is None else int(row[0])

    def _offsets_after(self, records: Collection[Record[Any, Any]]) -> dict[TopicPartition, int]:
        """The next offset of each partition after these records; they must be in order and without duplicates."""
        offsets: dict[TopicPartition, int] = {}
        for record in records:
            at = record.topic_partition
            stored = offsets.get(at, self._stored_offset(at))
            if stored is not None and record.offset < stored:
                raise AlreadyProcessedError(f"{at}: record {record.offset} was processed before; {stored} is next")
            offsets[at] = record.offset + 1
        return offsets
