"""Offsets in SQLite change together with the results, or not at all."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.client import AlreadyProcessedError, ClientError, Record, SeekToStored, SqliteOffsetStore, TopicPartition

ZERO, ONE = TopicPartition("t", 0), TopicPartition("t", 1)


def record(offset: int, partition: int = 0) -> Record[str, str]:
    return Record("t", partition, offset, 0, None, f"value {offset}")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteOffsetStore]:
    with SqliteOffsetStore(tmp_path / "results.db", group="g") as opened:
        opened.database.execute("CREATE TABLE results (value TEXT)")
        yield opened


def results(store: SqliteOffsetStore) -> list[str]:
    return [row[0] for row in store.database.execute("SELECT value FROM results ORDER BY rowid")]


def test_results_and_offset_are_stored_together(store: SqliteOffsetStore) -> None:
    with store.transaction(record(4)) as database:
        database.execute("INSERT INTO results VALUES ('a')")
    assert (results(store), store.load([ZERO, ONE])) == (["a"], {ZERO: 5})


def test_an_error_undoes_both(store: SqliteOffsetStore) -> None:
    def process() -> None:
        with store.transaction(record(4)) as database:
            database.execute("INSERT INTO results VALUES ('a')")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        process()
    assert (results(store), store.load([ZERO])) == ([], {})


def test_a_block_that_commits_by_itself_is_told(store: SqliteOffsetStore) -> None:
    with pytest.raises(ClientError, match="ended the transaction itself"), store.transaction(record(4)) as database:
        database.commit()


def test_a_record_is_not_processed_twice(store: SqliteOffsetStore) -> None:
    with store.transaction(record(4)):
        pass
    with (
        pytest.raises(AlreadyProcessedError, match="t-0: record 4 was processed before; 5 is next"),
        store.transaction(record(4)),
    ):
        pytest.fail("the block must not be entered")
    with store.transaction(record(9)):
        pass
    assert store.load([ZERO]) == {ZERO: 10}


def test_a_batch_advances_every_partition_it_touches(store: SqliteOffsetStore) -> None:
    with store.transaction(record(1), record(7, partition=1), record(2)):
        pass
    assert store.load([ZERO, ONE]) == {ZERO: 3, ONE: 8}


def test_groups_do_not_see_each_other(store: SqliteOffsetStore, tmp_path: Path) -> None:
    with store.transaction(record(4)):
        pass
    with SqliteOffsetStore(tmp_path / "results.db", group="other") as other:
        assert other.load([ZERO]) == {}


def test_offsets_survive_and_may_be_set_back(store: SqliteOffsetStore, tmp_path: Path) -> None:
    store.save({ZERO: 100})
    store.save({ZERO: 3})
    with SqliteOffsetStore(tmp_path / "results.db", group="g") as again:
        assert again.load([ZERO]) == {ZERO: 3}


def test_a_late_consumer_finds_the_store_locked_or_past_its_record(store: SqliteOffsetStore, tmp_path: Path) -> None:
    with SqliteOffsetStore(tmp_path / "results.db", group="g") as late:
        late.database.execute("PRAGMA busy_timeout = 0")
        with (
            store.transaction(record(4)),
            pytest.raises(sqlite3.OperationalError, match="locked"),
            late.transaction(record(4)),
        ):
            pytest.fail("the block must not be entered")
        with pytest.raises(AlreadyProcessedError), late.transaction(record(4)):
            pytest.fail("the block must not be entered")


def test_the_listener_seeks_to_what_is_stored(store: SqliteOffsetStore) -> None:
    class Seeking:
        def __init__(self) -> None:
            self.sought: dict[TopicPartition, int] = {}

        def seek(self, partition: TopicPartition, offset: int) -> None:
            self.sought[partition] = offset

    store.save({ZERO: 12})
    consumer = Seeking()
    SeekToStored(store).partitions_assigned(consumer, {ZERO, ONE})
    assert consumer.sought == {ZERO: 12}
