"""One append: written, published and committed the same way, whoever makes it and in whichever thread."""

from __future__ import annotations

import asyncio
import struct
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from moldau.broker.coordination.coordinator_log import PartitionAppender
from moldau.broker.coordination.transaction_markers import Marker, Markers
from moldau.broker.data.data_plane import DataPlane
from moldau.broker.handlers.api_00_produce import ProduceHandler
from moldau.broker.partition import NotLeaderError, Partition, PartitionEvents, Topic, when_all_committed
from moldau.broker.partitions import Partitions
from moldau.broker.stats import BrokerStats
from moldau.controller.image import PartitionImage
from moldau.coordinator.runtime.outcome import CoordinatorRecord
from moldau.core.config import BrokerConfig
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition
from moldau.log.config import LogConfig
from moldau.log.manager import LogManager
from moldau.protocol.produce import decode_produce_request
from moldau.protocol.record_batch import HEADER
from moldau.protocol.records import Record, encode_batch
from moldau.testing.clock import ManualClock

NODE = 1
BATCH = encode_batch([Record(number, 0, b"k", b"v") for number in range(3)], base_timestamp=0)


class Hooks:
    """Stands in for the broker around a partition: syncs and timers happen when the test says so."""

    def __init__(self) -> None:
        self.woken = 0
        self.syncs: list[tuple[list[Any], Callable[[], None]]] = []
        self.timers: dict[float, Callable[[], None]] = {}
        self.events = PartitionEvents(self._wake, self._flush_then, self._call_at)

    def _wake(self, _: Partition) -> None:
        self.woken += 1

    def _flush_then(self, logs: Any, then: Callable[[], None]) -> None:
        self.syncs.append((list(logs), then))

    def _call_at(self, deadline: float, action: Callable[[], None]) -> Any:
        self.timers[deadline] = action
        return SimpleNamespace(cancel=lambda: self.timers.pop(deadline, None))

    def sync(self) -> None:
        syncs, self.syncs = self.syncs, []
        for logs, then in syncs:
            for log in logs:
                log.flush()
            then()


def image(*, isr: tuple[int, ...] = (NODE,), leader: int = NODE, epoch: int = 0) -> PartitionImage:
    return PartitionImage(replicas=(1, 2, 3)[: max(len(isr), 1)], isr=isr, leader=leader, leader_epoch=epoch)


@pytest.fixture
def logs(tmp_path: Path) -> Iterator[LogManager]:
    manager = LogManager([str(tmp_path)], clock=ManualClock(), config_of=lambda topic: LogConfig())
    manager.open()
    yield manager
    manager.close()


class Scene:
    def __init__(self, logs: LogManager, config: LogConfig, *, isr: tuple[int, ...] = (NODE,)) -> None:
        self.hooks = Hooks()
        self.topic = Topic("t", uuid.uuid4(), config)
        log = logs.create(TopicPartition("t", len(logs)))
        log.config = config
        self.partition = Partition(self.topic, log.topic_partition.partition, log, self.hooks.events)
        self.topic.partitions[self.partition.index] = self.partition
        self.partition.lead_or_follow(image(isr=isr), NODE)
        self.hooks.woken = 0
        self.codes: list[ErrorCode] = []

    def append(self) -> int:
        """Append and publish one batch of three records; the offset behind it."""
        batch = bytearray(BATCH)
        base_offset = self.partition.append(memoryview(batch), HEADER.unpack_from(batch), 0)
        self.partition.publish(3, len(batch))
        return base_offset + 3


def test_an_append_is_seen_by_readers_only_when_it_is_published(logs: LogManager) -> None:
    scene = Scene(logs, LogConfig())
    partition = scene.partition
    partition.waiting.add(object())  # type: ignore[arg-type]
    batch = bytearray(BATCH)
    assert partition.append(memoryview(batch), HEADER.unpack_from(batch), 0) == 0
    assert (partition.log.log_end_offset, partition.log.high_watermark, scene.hooks.woken) == (3, 0, 0)
    partition.publish(3, len(batch))
    assert (partition.log.high_watermark, scene.hooks.woken) == (3, 1)
    stats = scene.topic.stats
    assert (stats.produce_requests, stats.messages_in, stats.bytes_in) == (1, 3, len(BATCH))


def test_only_the_leader_appends(logs: LogManager) -> None:
    scene = Scene(logs, LogConfig())
    scene.partition.lead_or_follow(image(leader=2, epoch=1), NODE)
    with pytest.raises(NotLeaderError):
        scene.append()
    assert scene.partition.log.log_end_offset == 0


def test_without_replicas_and_syncs_an_append_is_committed_at_once(logs: LogManager) -> None:
    scene = Scene(logs, LogConfig())
    assert scene.partition.is_committed_at_once
    scene.partition.when_committed(scene.append(), None, scene.codes.append)
    assert (scene.codes, scene.hooks.syncs) == ([ErrorCode.NONE], [])


def test_a_topic_that_acknowledges_what_is_on_disk_waits_for_the_sync(logs: LogManager) -> None:
    scene = Scene(logs, LogConfig(moldau_flush_on_ack=True))
    assert not scene.partition.is_committed_at_once
    end_offset = scene.append()
    scene.partition.when_committed(end_offset, None, scene.codes.append)
    assert scene.codes == []
    scene.hooks.sync()
    assert scene.codes == [ErrorCode.NONE]
    # What is on disk is not synced again.
    scene.partition.when_committed(end_offset, None, scene.codes.append)
    assert (scene.codes, scene.hooks.syncs) == ([ErrorCode.NONE] * 2, [])


def test_flush_messages_makes_every_so_many_records_wait(logs: LogManager) -> None:
    scene = Scene(logs, LogConfig(flush_messages=6))
    scene.partition.log.events.on_flush_due = lambda log: None
    scene.partition.when_committed(scene.append(), None, scene.codes.append)
    assert scene.codes == [ErrorCode.NONE]
    scene.partition.when_committed(scene.append(), None, scene.codes.append)
    assert len(scene.codes) == 1
    scene.hooks.sync()
    assert len(scene.codes) == 2


def test_with_other_replicas_the_high_watermark_is_waited_for(logs: LogManager) -> None:
    scene = Scene(logs, LogConfig(), isr=(1, 2))
    first, second = scene.append(), scene.append()
    scene.partition.when_committed(second, 9.0, scene.codes.append)
    scene.partition.when_committed(first, 8.0, scene.codes.append)
    assert (scene.codes, scene.partition.log.high_watermark) == ([], 0)
    scene.partition.log.high_watermark = first
    scene.partition.on_watermark()
    assert (scene.codes, list(scene.hooks.timers)) == ([ErrorCode.NONE], [8.0])
    scene.hooks.timers.pop(8.0)()
    assert (scene.codes, list(scene.hooks.timers)) == ([ErrorCode.NONE], [9.0]), "one timer, for the next deadline"
    scene.partition.log.high_watermark = second
    scene.partition.on_watermark()
    scene.hooks.timers.pop(9.0)()
    assert (scene.codes, scene.hooks.timers) == ([ErrorCode.NONE] * 2, {})


def test_replicas_are_waited_for_until_the_deadline(logs: LogManager) -> None:
    scene = Scene(logs, LogConfig(), isr=(1, 2))
    scene.partition.when_committed(scene.append(), 9.0, scene.codes.append)
    scene.hooks.timers[9.0]()
    assert scene.codes == [ErrorCode.REQUEST_TIMED_OUT]
    scene.partition.log.high_watermark = 3
    scene.partition.on_watermark()
    assert len(scene.codes) == 1


def test_whoever_waits_hears_that_the_leader_has_changed(logs: LogManager) -> None:
    scene = Scene(logs, LogConfig(), isr=(1, 2))
    scene.partition.when_committed(scene.append(), None, scene.codes.append)
    scene.partition.lead_or_follow(image(leader=2, isr=(1, 2), epoch=1), NODE)
    assert scene.codes == [ErrorCode.NOT_LEADER_OR_FOLLOWER]


def test_when_the_other_replicas_fall_out_of_sync_the_leader_alone_commits(logs: LogManager) -> None:
    scene = Scene(logs, LogConfig(), isr=(1, 2))
    scene.partition.when_committed(scene.append(), None, scene.codes.append)
    scene.partition.lead_or_follow(image(isr=(1,)), NODE)
    assert scene.codes == [ErrorCode.NONE]


def test_too_few_replicas_after_the_append_are_told(logs: LogManager) -> None:
    scene = Scene(logs, LogConfig(min_insync_replicas=2), isr=(1, 2))
    scene.partition.when_committed(scene.append(), None, scene.codes.append)
    shrunk = PartitionImage(replicas=(1, 2), isr=(1,), leader=NODE, leader_epoch=0)
    scene.partition.lead_or_follow(shrunk, NODE)
    assert scene.codes == [ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND]


def test_a_callback_that_fails_keeps_nobody_else_waiting(logs: LogManager, caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene(logs, LogConfig(), isr=(1, 2))
    end_offset = scene.append()
    scene.partition.when_committed(end_offset, None, lambda code: 1 // 0)  # type: ignore[arg-type,return-value]
    scene.partition.when_committed(end_offset, None, scene.codes.append)
    scene.partition.lead_or_follow(image(isr=(1,)), NODE)
    assert scene.codes == [ErrorCode.NONE]
    assert "an acknowledgement failed" in caplog.text


def test_several_partitions_share_one_sync_and_each_has_its_code(logs: LogManager) -> None:
    safe, other = Scene(logs, LogConfig(moldau_flush_on_ack=True)), Scene(logs, LogConfig(moldau_flush_on_ack=True))
    waits = [(safe.partition, safe.append()), (other.partition, other.append())]
    told: list[list[ErrorCode]] = []
    when_all_committed(waits, None, lambda codes: told.append(list(codes)))
    assert ([len(each) for each, _ in safe.hooks.syncs], other.hooks.syncs, told) == ([2], [], [])
    other.partition.leave()
    safe.hooks.sync()
    assert told == [[ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER]]


# --- the four who append ------------------------------------------------------------------------------------


class Connection:
    listener_name = "PLAINTEXT"
    is_closed = False

    def __init__(self) -> None:
        self.completed = 0

    def on_slot_complete(self) -> None:
        self.completed += 1


def produce_frame(batch: bytes, *, acks: int = -1, timeout_ms: int = 30_000) -> bytearray:
    """One batch for partition 0 of `t`, in version 7, without a client id."""
    request = struct.pack(">hhiih", -1, acks, timeout_ms, 1, 1) + b"t" + struct.pack(">iii", 1, 0, len(batch)) + batch
    return bytearray(struct.pack(">hhih", 0, 7, 1, -1) + request)


class Writers:
    """A data plane with one topic, and everybody who appends to it."""

    def __init__(self, logs: LogManager, *, in_thread: bool, config: LogConfig | None = None) -> None:
        self.partitions = Partitions(NODE, logs, lambda topic: config or LogConfig())
        broker: Any = SimpleNamespace(
            partitions=self.partitions,
            clock=logs.clock,
            schema_ids=None,
            stats=BrokerStats(),
            node_id=NODE,
            controller=None,
            config=BrokerConfig({"moldau.append.thread": str(in_thread).lower()}),
        )
        self.data_plane = DataPlane(broker, asyncio.get_running_loop(), print)
        topic_image: Any = SimpleNamespace(topic_id=uuid.uuid4(), partitions={0: image()})
        self.partitions.follow("t", topic_image)
        partition = self.partitions.get(TopicPartition("t", 0))
        assert partition is not None
        self.partition = partition
        self._appender = PartitionAppender(broker, partition, 0)
        self._markers = Markers(broker)
        self._handler = ProduceHandler(
            broker, self.data_plane.slow_appends, self.data_plane.produce, asyncio.get_running_loop()
        )
        self._connection: Any = Connection()
        self.answers: list[object] = []

    def plain(self) -> None:
        frame = produce_frame(BATCH)
        self._note(self._handler(self._connection, memoryview(frame), 0, 10, len(frame), 7, 1))

    def careful(self) -> None:
        frame = produce_frame(BATCH)
        view = memoryview(frame)
        request = decode_produce_request(view, 10, len(frame), 7)
        self._note(self.data_plane.produce.handle(self._connection, view, 0, request, 7, 1))

    def coordinator(self) -> None:
        records = [CoordinatorRecord(b"k", b"v")] * 3
        self._appender.append(records, None, lambda error: self._appender.when_committed(lambda: self._note(error)))

    def marker(self) -> None:
        self._markers.write(TopicPartition("t", 0), Marker(7, 0, 0, is_commit=True), self._note)

    def _note(self, answer: object) -> None:
        if not hasattr(answer, "is_complete"):
            self.answers.append(answer)

    @property
    def answered(self) -> int:
        return len(self.answers) + int(self._connection.completed)


WRITERS = {"plain": 3, "careful": 3, "coordinator": 3, "marker": 1}
"""Who appends, and how many records each time."""


@pytest.mark.parametrize("flush_on_ack", [False, True])
@pytest.mark.parametrize("in_thread", [False, True])
@pytest.mark.parametrize(("writer", "records"), WRITERS.items())
def test_all_ways_to_append_leave_the_same_behind(
    logs: LogManager, writer: str, records: int, in_thread: bool, flush_on_ack: bool
) -> None:
    async def story() -> None:
        writers = Writers(logs, in_thread=in_thread, config=LogConfig(moldau_flush_on_ack=flush_on_ack))
        await asyncio.sleep(0)  # readers are woken for the new leader
        partition = writers.partition
        woken: list[Partition] = []
        partition.events.wake_readers = woken.append
        partition.waiting.add(object())  # type: ignore[arg-type]
        for count in (1, 2):
            getattr(writers, writer)()
            while writers.answered < count:
                await asyncio.sleep(0.001)
            log, stats = partition.log, partition.topic.stats
            assert log.log_end_offset == log.high_watermark == count * records
            assert (stats.produce_requests, stats.messages_in) == (count, count * records)
            assert stats.bytes_in == log.size_in_bytes
            assert woken == [partition] * count
            assert not flush_on_ack or log.recovery_point == log.log_end_offset
        await writers.data_plane.close()

    asyncio.run(asyncio.wait_for(story(), 20))


ERROR_CODE_AT = 4 + 4 + 4 + 2 + 1 + 4 + 4
"""Where a reply of version 7 for one partition of `t` has its code."""


@pytest.mark.parametrize("is_short", [True, False])
def test_a_replicated_produce_is_answered_as_its_acks_ask_on_the_short_way_as_on_the_long(
    logs: LogManager, is_short: bool
) -> None:
    async def story() -> None:
        writers = Writers(logs, in_thread=False, config=LogConfig(min_insync_replicas=2))
        partition = writers.partition
        partition.lead_or_follow(image(isr=(1, 2, 3), epoch=1)._replace(partition_epoch=1), NODE)
        assert partition.is_plain_shared
        partition.is_plain_shared = is_short
        leading = partition.leading
        assert leading is not None

        def send(acks: int, timeout_ms: int = 30_000) -> Any:
            frame = produce_frame(BATCH, acks=acks, timeout_ms=timeout_ms)
            return writers._handler(writers._connection, memoryview(frame), 0, 10, len(frame), 7, 1)

        def code(answer: Any) -> int:
            data = answer if isinstance(answer, bytes) else answer.reply
            return int(struct.unpack_from(">h", data, ERROR_CODE_AT)[0])

        def fetched(node_id: int) -> None:
            end = partition.log.log_end_offset
            leading.on_fetch(node_id, end, -1, leader_end=end, now_ms=0)
            partition.advance()

        waiting = send(-1)
        fetched(2)
        assert not waiting.is_complete
        fetched(3)
        assert (waiting.is_complete, code(waiting), partition.log.high_watermark) == (True, 0, 3)
        soon = send(1)
        assert isinstance(soon, bytes) or soon.is_complete
        assert code(soon) == 0
        assert send(0) is None
        late = send(-1, timeout_ms=1)
        while not late.is_complete:
            await asyncio.sleep(0.001)
        assert code(late) == ErrorCode.REQUEST_TIMED_OUT
        assert partition.log.log_end_offset == 12

        waiting = send(-1)
        partition.lead_or_follow(image(isr=(1, 2, 3), epoch=1)._replace(isr=(1,), partition_epoch=2), NODE)
        assert code(waiting) == ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        if not is_short:
            partition.is_plain_shared = False
        assert code(send(-1)) == ErrorCode.NOT_ENOUGH_REPLICAS
        assert partition.log.log_end_offset == 15, "nothing is appended then"
        await writers.data_plane.close()

    asyncio.run(asyncio.wait_for(story(), 20))


def test_a_coordinator_that_appended_nothing_new_does_not_sync_again(logs: LogManager) -> None:
    """Heartbeats are answered from what was committed before."""

    async def story() -> None:
        writers = Writers(logs, in_thread=False, config=LogConfig(moldau_flush_on_ack=True))
        writers.coordinator()
        while not writers.answers:
            await asyncio.sleep(0.001)
        rounds = writers.data_plane.group_commit.rounds
        writers._appender.when_committed(lambda: writers.answers.append("at once"))
        assert (writers.answers, writers.data_plane.group_commit.rounds) == ([None, "at once"], rounds)
        await writers.data_plane.close()

    asyncio.run(asyncio.wait_for(story(), 20))
