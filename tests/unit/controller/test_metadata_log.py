"""The metadata log: what is written is what is replayed, through restarts, snapshots and crashes."""

from __future__ import annotations

import asyncio
import errno
import json
import uuid
from pathlib import Path
from random import Random

import pytest

from moldau.controller.controller import Controller
from moldau.controller.decisions.brokers import BrokerRegistration, registration, unfencing
from moldau.controller.decisions.topics import NewTopic, TopicRef
from moldau.controller.image import ConfigResource, Endpoint, MetadataImage
from moldau.controller.metadata_log import METADATA_PARTITION, MetadataLog
from moldau.controller.quorum.log import QuorumLog
from moldau.controller.quorum.quorum import QuorumOfOne
from moldau.controller.replay import ImageDelta, replay_records
from moldau.controller.snapshots import SnapshotId, decode_snapshot, encode_snapshot, image_records, newest_first
from moldau.core.clock import SystemClock
from moldau.core.config import BrokerConfig
from moldau.core.errors import StartupError
from moldau.log.config import LogConfig
from moldau.log.errors import StorageError
from moldau.log.recovery.loading import create_log, open_log
from moldau.protocol.control_records import encode_control
from moldau.protocol.messages import Message
from moldau.protocol.metadata_records import (
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    MalformedRecordError,
    TopicRecord,
    UserScramCredentialRecord,
)
from moldau.protocol.records import ControlType, decode_records, split_batches
from moldau.raft.effects import ElectionState, SaveElection
from moldau.raft.records import Batch, LeaderChangeRecord
from moldau.testing.power_loss import ForgetfulFiles


def open_metadata(folder: Path, *, segment_bytes: int = 1 << 20, snapshot_after: int = 1 << 30) -> MetadataLog:
    directory = folder / str(METADATA_PARTITION)
    open_or_create = open_log if directory.exists() else create_log
    partition = open_or_create(str(directory), METADATA_PARTITION, LogConfig(segment_bytes=segment_bytes))
    return MetadataLog(partition, SystemClock(), snapshot_after_bytes=snapshot_after, keep_bytes=0)


def joined(log: MetadataLog) -> Controller:
    """Start a node of one on this log, as a server does."""
    image = log.load()
    quorum = QuorumOfOne(log, node_id=1)
    quorum.claim()
    me = BrokerRegistration(
        node_id=1, incarnation_id=uuid.uuid4(), endpoints=[Endpoint("PLAINTEXT", "h", 9092)], log_dirs=[uuid.uuid4()]
    )
    epoch = quorum.next_offset
    records = [registration(me, epoch), *unfencing(image, 1, epoch)]
    controller = Controller(quorum, image, BrokerConfig, random=Random(1))
    controller.apply_committed(records, quorum.append_now(records))
    return controller


def create(controller: Controller, *topics: NewTopic) -> None:
    asyncio.run(controller.create_topics(topics))


def test_a_restart_finds_what_was_committed(tmp_path: Path) -> None:
    controller = joined(open_metadata(tmp_path))
    create(controller, NewTopic(name="a", partitions=3, configs={"segment.ms": "5"}), NewTopic(name="b"))
    assert open_metadata(tmp_path).load() == controller.image


def test_every_start_claims_a_new_epoch_and_opens_one_on_every_partition(tmp_path: Path) -> None:
    create(joined(open_metadata(tmp_path)), NewTopic(name="a", partitions=2))
    for start in (2, 3, 4):
        controller = joined(open_metadata(tmp_path))
        assert controller.quorum.epoch == start
        epochs = {partition.leader_epoch for _, partition in controller.image.partitions()}
        assert epochs == {start - 1}
        assert controller.image.is_alive(1)


def test_an_epoch_is_kept_even_if_the_log_is_lost(tmp_path: Path) -> None:
    joined(open_metadata(tmp_path))
    state = json.loads((tmp_path / str(METADATA_PARTITION) / "quorum-state").read_text())
    assert state == {
        "leaderId": 1,
        "leaderEpoch": 1,
        "votedId": 1,
        "votedDirectoryId": "AAAAAAAAAAAAAAAAAAAAAA",
        "data_version": 1,
    }
    for file in (tmp_path / str(METADATA_PARTITION)).iterdir():
        if file.name != "quorum-state":
            file.unlink()
    assert joined(open_metadata(tmp_path)).quorum.epoch == 2


def test_an_unreadable_quorum_state_stops_the_start(tmp_path: Path) -> None:
    joined(open_metadata(tmp_path))
    (tmp_path / str(METADATA_PARTITION) / "quorum-state").write_text("{")
    with pytest.raises(StartupError, match="quorum-state"):
        joined(open_metadata(tmp_path))


def test_the_leader_change_record_is_what_kafka_would_write(tmp_path: Path) -> None:
    log = open_metadata(tmp_path)
    QuorumLog(log).append(Batch(0, 0, 3, control=(LeaderChangeRecord(7, (7,), (7,)),)))
    part = log.partition.read(0, 1000, 1)
    ((header, batch),) = split_batches(log.partition.files.pread(part.file.fd, part.length, part.position))
    (record,) = decode_records(batch, header)
    assert header.partition_leader_epoch == 3
    assert record.value == encode_control(
        ControlType.LEADER_CHANGE,
        Message(leader_id=7, voters=[Message(voter_id=7)], granting_voters=[Message(voter_id=7)]),
    )


def test_a_snapshot_holds_the_whole_image(tmp_path: Path) -> None:
    log = open_metadata(tmp_path)
    controller = joined(log)
    create(controller, NewTopic(name="a", partitions=3, configs={"segment.ms": "5"}), NewTopic(name="gone"))
    asyncio.run(controller.delete_topics([TopicRef("gone")]))
    asyncio.run(controller.allocate_producer_ids(1))
    scram = UserScramCredentialRecord(
        name="u", mechanism=1, salt=b"s", stored_key=b"k", server_key=b"v", iterations=4096
    )
    records = [scram, FeatureLevelRecord(name="metadata.version", feature_level=25)]
    image = replay_records(controller.image, records, offset=99, epoch=1).image
    batches = list(encode_snapshot(image_records(image), epoch=1, last_timestamp_ms=5, now_ms=6))
    copy = replay_records(MetadataImage(), decode_snapshot(b"".join(batches)), offset=99, epoch=1).image
    assert copy == image
    with pytest.raises(MalformedRecordError):
        decode_snapshot(b"".join(batches[:-1]))


@pytest.mark.parametrize("seed", range(20))
def test_a_snapshot_with_a_flipped_bit_is_not_used(seed: int) -> None:
    records = [FeatureLevelRecord(name="metadata.version", feature_level=27)]
    data = bytearray(b"".join(encode_snapshot(records, epoch=1, last_timestamp_ms=5, now_ms=6)))
    chance = Random(seed)
    data[chance.randrange(17, 61)] ^= 1 << chance.randrange(8)
    with pytest.raises(MalformedRecordError, match="fails its checksum"):
        decode_snapshot(bytes(data))


def test_a_restart_reads_the_snapshot_and_what_came_after(tmp_path: Path) -> None:
    log = open_metadata(tmp_path, segment_bytes=500)
    controller = joined(log)
    create(controller, *(NewTopic(name=f"a{number}") for number in range(20)))
    snapshot = log.save_snapshot(controller.image)
    log.trim()
    assert snapshot == SnapshotId(controller.image.offset + 1, 1)
    create(controller, NewTopic(name="later"))
    assert 0 < log.partition.log_start_offset <= snapshot.end_offset
    assert open_metadata(tmp_path).load() == controller.image


def test_only_the_newest_snapshots_and_the_log_behind_them_are_kept(tmp_path: Path) -> None:
    log = open_metadata(tmp_path, segment_bytes=100)
    controller = joined(log)
    for number in range(5):
        create(controller, NewTopic(name=f"a{number}"))
        log.save_snapshot(controller.image)
        log.trim()
    files = [file.name for file in (tmp_path / str(METADATA_PARTITION)).iterdir()]
    assert len(newest_first(files)) == 2
    assert not [name for name in files if name.endswith(".deleted")]
    newest = newest_first(files)[0]
    (tmp_path / str(METADATA_PARTITION) / f"{newest.end_offset:020d}-{newest.epoch:010d}.checkpoint").write_bytes(b"x")
    assert open_metadata(tmp_path).load() == controller.image


def test_a_snapshot_that_was_never_finished_is_passed_over(tmp_path: Path) -> None:
    log = open_metadata(tmp_path)
    controller = joined(log)
    create(controller, NewTopic(name="a"))
    directory = tmp_path / str(METADATA_PARTITION)
    (directory / "00000000000000000003-0000000001.checkpoint").write_bytes(b"half")
    (directory / "00000000000000000004-0000000001.checkpoint.part").write_bytes(b"half")
    assert open_metadata(tmp_path).load() == controller.image
    assert not list(directory.glob("*.part"))


def test_a_log_without_the_snapshot_it_begins_after_stops_the_start(tmp_path: Path) -> None:
    log = open_metadata(tmp_path, segment_bytes=100)
    controller = joined(log)
    create(controller, NewTopic(name="a"))
    create(controller, NewTopic(name="b"))
    log.save_snapshot(controller.image)
    log.trim()
    for file in (tmp_path / str(METADATA_PARTITION)).glob("*.checkpoint"):
        file.unlink()
    reopened = open_metadata(tmp_path)
    with pytest.raises(StartupError, match="no snapshot"):
        reopened.load()


def test_snapshots_are_listed_newest_first() -> None:
    names = ["00000000000000000009-0000000001.checkpoint", "x.checkpoint", "00000000000000000010-0000000002.checkpoint"]
    assert newest_first(names) == [SnapshotId(10, 2), SnapshotId(9, 1)]


def test_a_transaction_of_metadata_counts_only_once_it_ends(tmp_path: Path) -> None:
    log = open_metadata(tmp_path)
    inside = TopicRecord(name="inside", topic_id=uuid.uuid4())
    log.append([TopicRecord(name="before", topic_id=uuid.uuid4()), BeginTransactionRecord(name="x"), inside], 1)
    assert set(open_metadata(tmp_path).load().topics) == {"before"}
    log.append([EndTransactionRecord()], 1)
    assert set(open_metadata(tmp_path).load().topics) == {"before", "inside"}


def test_subscribers_know_of_a_change_before_its_asker(tmp_path: Path) -> None:
    controller = joined(open_metadata(tmp_path))
    told: list[ImageDelta] = []

    async def listen(delta: ImageDelta) -> None:
        await asyncio.sleep(0)
        told.append(delta)

    controller.subscribe(listen)
    create(controller, NewTopic(name="a", partitions=2))
    (delta,) = told
    assert {str(one) for one in delta.partitions} == {"a-0", "a-1"}


def test_a_change_goes_on_when_its_asker_hangs_up(tmp_path: Path) -> None:
    controller = joined(open_metadata(tmp_path))

    async def run() -> None:
        asker = asyncio.ensure_future(controller.create_topics([NewTopic(name="a")]))
        await asyncio.sleep(0)
        asker.cancel()
        await controller.create_topics([NewTopic(name="b")])

    asyncio.run(run())
    assert set(controller.image.topics) == {"a", "b"}


def test_validate_only_changes_nothing(tmp_path: Path) -> None:
    controller = joined(open_metadata(tmp_path))
    before = controller.image
    (result,) = asyncio.run(controller.create_topics([NewTopic(name="a", partitions=2)], validate_only=True))
    assert (result.partitions, controller.image) == (2, before)


def test_producer_id_blocks_are_never_given_twice(tmp_path: Path) -> None:
    controller = joined(open_metadata(tmp_path))
    assert asyncio.run(controller.allocate_producer_ids(1)) == range(0, 1000)
    again = joined(open_metadata(tmp_path))
    assert asyncio.run(again.allocate_producer_ids(1)) == range(1000, 2000)


def test_settings_of_a_resource_are_gone_when_the_last_is_taken_away() -> None:
    from moldau.protocol.metadata_records import ConfigRecord

    resource = ConfigResource(4, "")
    set_one = ConfigRecord(resource_type=4, resource_name="", name="log.retention.ms", value="5")
    unset = ConfigRecord(resource_type=4, resource_name="", name="log.retention.ms", value=None)
    image = replay_records(MetadataImage(), [set_one], offset=0, epoch=1).image
    assert image.cluster_config == {"log.retention.ms": "5"}
    delta = replay_records(image, [unset], offset=1, epoch=1)
    assert delta.image.configs == {}
    assert delta.configs == {resource}


def test_what_a_killed_process_left_unsynced_is_synced_before_a_node_vouches_for_it(tmp_path: Path) -> None:
    directory = tmp_path / str(METADATA_PARTITION)
    files = ForgetfulFiles(str(tmp_path))
    partition = create_log(str(directory), METADATA_PARTITION, LogConfig(), files=files)
    partition.flush()
    log = MetadataLog(partition, SystemClock(), snapshot_after_bytes=1 << 30, keep_bytes=0)
    log.append([TopicRecord(name="t", topic_id=uuid.UUID(int=1))], 1)
    partition.abandon()

    restarted = MetadataLog(
        open_log(str(directory), METADATA_PARTITION, LogConfig(), files=files),
        SystemClock(),
        snapshot_after_bytes=1 << 30,
        keep_bytes=0,
    )
    QuorumLog(restarted).make_durable()
    restarted.partition.abandon()
    files.lose_power()

    left = open_log(str(directory), METADATA_PARTITION, LogConfig(), files=files)
    assert left.log_end_offset == 1
    left.abandon()
    files.close()


def test_an_election_that_finds_no_room_on_the_disk_may_be_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_metadata(tmp_path)

    def no_room(path: str, data: bytes, **_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", path)

    monkeypatch.setattr(log.partition.files, "atomic_write", no_room)
    with pytest.raises(StorageError, match="election state"):
        QuorumLog(log).carry_out(SaveElection(ElectionState(3, 1)))
    log.partition.close()
