"""Offsets in a table of the target database, written in the transaction of the rows. Start at `OffsetTable`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlalchemy.engine import Connection

from moldau.connect.api.records import SinkRecord
from moldau.connect.connectors.jdbc.database import Database
from moldau.connect.connectors.jdbc.writing import write_statement
from moldau.core.ids import TopicPartition

__all__ = ["OffsetTable"]

KEYS = ("connector", "topic", "part")


class OffsetTable:
    """The next offset of each partition that a connector has written rows of."""

    def __init__(self, database: Database, name: str, connector: str) -> None:
        self._database = database
        self._table = tuple(name.split("."))
        self._connector = connector
        self._next: dict[TopicPartition, int] = {}

    def load(self, connection: Connection, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """What is stored for these partitions; the table is created if it is missing."""
        quote, mark = self._database.quote, self._database.mark
        table = ".".join(quote(part) for part in self._table)
        columns = [f"{quote(name)} VARCHAR(249) NOT NULL" for name in KEYS[:2]]
        columns += [f"{quote('part')} INTEGER NOT NULL", f"{quote('next_offset')} BIGINT NOT NULL"]
        key = ", ".join(quote(name) for name in KEYS)
        connection.exec_driver_sql(f"CREATE TABLE IF NOT EXISTS {table} ({', '.join(columns)}, PRIMARY KEY ({key}))")
        rows = connection.exec_driver_sql(
            f"SELECT topic, part, next_offset FROM {table} WHERE connector = {mark}", (self._connector,)
        )
        stored = {TopicPartition(topic, part): int(offset) for topic, part, offset in rows}
        found = {one: stored[one] for one in partitions if one in stored}
        self._next.update(found)
        return found

    def unseen(self, records: Sequence[SinkRecord]) -> list[SinkRecord]:
        """Without those whose rows are there already."""
        return [one for one in records if one.offset >= self._next.get(one.topic_partition, 0)]

    def save(self, connection: Connection, records: Sequence[SinkRecord]) -> None:
        """Write the offsets after these records."""
        ends = {one.topic_partition: one.offset + 1 for one in records}
        if ends:
            text = write_statement(self._database, "upsert", self._table, KEYS, ("next_offset",))
            rows = [(self._connector, one.topic, one.partition, end) for one, end in ends.items()]
            connection.exec_driver_sql(text, rows)

    def commit(self, records: Sequence[SinkRecord]) -> None:
        """The transaction with these records is done."""
        self._next.update({one.topic_partition: one.offset + 1 for one in records})
