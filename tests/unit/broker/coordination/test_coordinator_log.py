"""Loading a coordinator from its log gives what replaying every record one by one would give."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.broker.coordination.coordinator_log import replay_log
from moldau.coordinator.group.group_core import GroupCore
from moldau.coordinator.group.offsets import OffsetToCommit, commit_record
from moldau.coordinator.group.settings import GroupSettings
from moldau.coordinator.runtime.outcome import CoordinatorRecord, Producer
from moldau.core.ids import TopicPartition
from moldau.log.checked_read import extent_of
from moldau.log.config import LogConfig
from moldau.log.manager import LogManager
from moldau.log.partition_log import PartitionLog
from moldau.protocol.record_batch import HEADER, TRANSACTIONAL_BIT
from moldau.protocol.records import ControlType, Record, encode_batch, end_transaction_marker
from moldau.testing.clock import ManualClock

PLACE = TopicPartition("__consumer_offsets", 0)

COMMITS = st.builds(
    OffsetToCommit,
    topic=st.sampled_from("tu"),
    partition=st.integers(0, 1),
    offset=st.integers(0, 100),
    leader_epoch=st.just(-1),
    metadata=st.just(""),
    expire_ms=st.none(),
)
STEPS = st.one_of(
    st.tuples(st.just("commit"), st.sampled_from("gh"), COMMITS, st.sampled_from([None, 1, 2])),
    st.tuples(st.just("delete"), st.sampled_from("gh"), COMMITS),
    st.tuples(st.just("end"), st.sampled_from([1, 2]), st.booleans()),
)


@pytest.fixture(scope="module")
def logs() -> Iterator[LogManager]:
    with tempfile.TemporaryDirectory() as folder:
        manager = LogManager([folder], clock=ManualClock(), config_of=lambda topic: LogConfig())
        manager.open()
        yield manager
        manager.close()


def new_core() -> GroupCore:
    return GroupCore(GroupSettings, lambda: "id")


def append(log: PartitionLog, batch: bytes) -> None:
    writable = bytearray(batch)
    log.append(memoryview(writable), HEADER.unpack_from(writable), 0, 0)


def write(log: PartitionLog, core: GroupCore, record: CoordinatorRecord, producer: Producer | None) -> None:
    core.replay(record.key, record.value, producer)
    append(
        log,
        encode_batch(
            [Record(0, 0, record.key, record.value)],
            base_timestamp=0,
            attributes=0 if producer is None else TRANSACTIONAL_BIT,
            producer_id=-1 if producer is None else producer.producer_id,
            producer_epoch=-1 if producer is None else producer.producer_epoch,
        ),
    )


def known(core: GroupCore) -> dict[str, dict[tuple[str, int], int]]:
    return {
        group: {place: committed.offset for place, committed in core.offsets.of(group).items()} for group in core.groups
    }


@settings(max_examples=200, deadline=None)
@given(steps=st.lists(STEPS, max_size=25), read_bytes=st.sampled_from([1, 300, 1_000_000]))
def test_loading_equals_replaying_one_by_one(logs: LogManager, steps: list[tuple], read_bytes: int) -> None:  # type: ignore[type-arg]
    log = logs.create(PLACE)
    try:
        live = new_core()
        for kind, *what in steps:
            if kind == "commit":
                group, commit, producer_id = what
                producer = None if producer_id is None else Producer(producer_id, 0)
                write(log, live, commit_record(group, commit, 0), producer)
            elif kind == "delete":
                group, commit = what
                for record in live.offsets.tombstones(group, [(commit.topic, commit.partition)]):
                    write(log, live, record, None)
            else:
                producer_id, is_commit = what
                live.replay_marker(producer_id, 0, is_commit)
                marker = ControlType.COMMIT if is_commit else ControlType.ABORT
                append(
                    log,
                    end_transaction_marker(
                        marker, timestamp=0, producer_id=producer_id, producer_epoch=0, coordinator_epoch=0
                    ),
                )
        loaded = new_core()
        replay_log(log, loaded, extent_of(log), lambda: True, read_bytes=read_bytes)
        for core in (loaded, live):
            core.on_loaded(0)  # groups that are nothing without their offsets go
        assert known(loaded) == known(live)
        for group in live.groups:
            assert loaded.offsets.has_undecided(group) == live.offsets.has_undecided(group)
    finally:
        logs.delete(PLACE)


def test_loading_stops_when_it_is_no_longer_wanted(logs: LogManager) -> None:
    log = logs.create(PLACE)
    try:
        write(log, new_core(), commit_record("g", OffsetToCommit("t", 0, 1), 0), None)
        loaded = new_core()
        replay_log(log, loaded, extent_of(log), lambda: False)
        assert not loaded.groups
    finally:
        logs.delete(PLACE)
