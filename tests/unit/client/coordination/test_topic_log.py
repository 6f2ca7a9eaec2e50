from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from tests.unit.client.coordination.fake_topic import FakeTopic

from moldau.client.coordination.topic_log import LogRecord, LogWrite, TopicLog, TopicLogError, TopicLogTimeoutError
from moldau.client.errors import ClientError, FencedError

MARKER = b"noop"
LONG_MS = 30_000
logger = logging.getLogger("tests.topic_log")


class Service:
    """State that only `apply` changes: the last value of each key, and everything in order."""

    def __init__(self, topic: FakeTopic, *, timeout_ms: int = LONG_MS, marker: bytes | None = None) -> None:
        self.values: dict[bytes | None, bytes | None] = {}
        self.seen: list[tuple[int, int]] = []
        self.log = TopicLog(topic, self._apply, timeout_ms=timeout_ms, marker=marker, logger=logger)

    def _apply(self, record: LogRecord) -> None:
        self.seen.append((record.partition, record.offset))
        if record.value == b"poison":
            raise ValueError("this record cannot be applied")
        self.values[record.key] = record.value

    async def put(self, key: bytes, value: bytes | None) -> None:
        await self.log.append([LogWrite(key, value)])


@asynccontextmanager
async def running(*services: Service) -> AsyncIterator[None]:
    try:
        for service in services:
            await service.log.start(30)
        yield
    finally:
        for service in services:
            await service.log.stop(30)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.001)


def run(story: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(story())  # type: ignore[arg-type]


def test_all_that_is_there_is_applied_before_the_start_ends() -> None:
    topic = FakeTopic(partitions=3)
    for number in range(50):
        topic.store(LogWrite(b"%d" % (number % 7), b"%d" % number))

    async def story() -> None:
        service = Service(topic)
        async with running(service):
            assert service.log.is_ready
            assert service.log.cluster_id == "fake-cluster"
            assert len(service.seen) == len(set(service.seen)) == 50
            assert service.values == {b"%d" % (number % 7): b"%d" % number for number in range(50)}

    run(story)


@pytest.mark.parametrize("partitions", [1, 3])
def test_an_append_ends_when_its_records_were_applied_once(partitions: int) -> None:
    topic = FakeTopic(partitions)

    async def story() -> None:
        service, other = Service(topic), Service(topic)
        async with running(service, other):
            for number in range(20):
                offsets = await service.log.append([LogWrite(b"k%d" % number, b"v"), LogWrite(b"last", b"%d" % number)])
                assert service.values[b"last"] == b"%d" % number, "read back before the append ends"
                assert set(offsets.items()) <= set(service.seen)
            assert sorted(service.seen) == sorted(set(service.seen))
            assert len(service.seen) == 40
            await until(lambda: other.values == service.values)

    run(story)


def test_an_append_that_is_not_read_back_is_refused_in_time() -> None:
    topic = FakeTopic()

    async def story() -> None:
        service = Service(topic, timeout_ms=1)
        async with running(service):
            topic.are_reads_held = True
            with pytest.raises(TopicLogTimeoutError, match="in time"):
                await service.put(b"k", b"v")
            topic.are_reads_held = False
            await until(lambda: service.values == {b"k": b"v"})

    run(story)


def test_while_brokers_are_away_writes_are_refused_and_what_was_not_sent_is_never_written() -> None:
    topic = FakeTopic()

    async def story() -> None:
        service = Service(topic, timeout_ms=1)
        async with running(service):
            await service.put(b"a", b"1")
            topic.are_brokers_away = True
            outcomes = await asyncio.gather(
                *(service.put(b"b", b"%d" % number) for number in range(10)), return_exceptions=True
            )
            assert all(isinstance(outcome, TopicLogTimeoutError) for outcome in outcomes)
            assert service.values == {b"a": b"1"}, "the state stays as it was"
            topic.are_brokers_away = False
            await service.put(b"c", b"2")
            assert service.values[b"c"] == b"2"
            assert len(topic.partitions[0]) <= 1 + 10 + 1
            assert [write.key for write in topic.partitions[0]].count(b"c") == 1

    run(story)


def test_writes_that_wait_for_one_under_way_are_written_together() -> None:
    topic = FakeTopic()

    async def story() -> None:
        service = Service(topic)
        async with running(service):
            topic.are_brokers_away = True
            writes = [asyncio.ensure_future(service.put(b"%d" % number, b"v")) for number in range(50)]
            await asyncio.sleep(0)
            topic.are_brokers_away = False
            await asyncio.gather(*writes)
            assert topic.largest_write > 1
            assert len(service.values) == 50

    run(story)


def test_a_reader_that_fails_is_replaced_where_it_was(caplog: pytest.LogCaptureFixture) -> None:
    topic = FakeTopic()

    async def story() -> None:
        service = Service(topic)
        async with running(service):
            await service.put(b"a", b"1")
            with topic.changed:
                topic.read_failures = [ClientError("refused"), *2 * [RuntimeError("unforeseen")]]
            await until(lambda: not topic.read_failures)
            await service.put(b"b", b"2")
            assert service.seen == [(0, 0), (0, 1)], "nothing is applied twice, nothing is lost"
            assert topic.opened_readers[1:] == [{0: 1}] * 3

    run(story)
    lines = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert sum("topic memory cannot be reached: refused" in line for line in lines) == 1
    assert sum("reading the topic memory failed" in line for line in lines) == 1, "with a traceback"
    assert sum("is reached again" in line for line in lines) == 1


def test_a_writer_that_broke_is_replaced() -> None:
    topic = FakeTopic()

    async def story() -> None:
        service = Service(topic)
        async with running(service):
            topic.write_failures = [RuntimeError("unforeseen")]
            with pytest.raises(TopicLogError, match="unforeseen"):
                await service.put(b"a", b"1")
            await service.put(b"b", b"2")
            assert topic.opened_writers == 2
            assert service.values == {b"b": b"2"}

    run(story)


def test_a_record_that_cannot_be_applied_is_logged_and_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    topic = FakeTopic()
    topic.store(LogWrite(b"a", b"poison"))
    topic.store(LogWrite(b"b", b"2"))

    async def story() -> None:
        service = Service(topic)
        async with running(service):
            assert service.values == {b"b": b"2"}
            assert service.log.applied_offset == 1

    run(story)
    assert "record 0 of memory-0 could not be applied and is skipped" in caplog.text


def test_nothing_is_applied_while_somebody_looks_at_the_state() -> None:
    topic = FakeTopic()

    async def story() -> None:
        service = Service(topic)
        async with running(service):
            with service.log.hold_back():
                write = asyncio.ensure_future(service.put(b"k", b"v"))
                await until(lambda: len(topic.partitions[0]) == 1)
                for _ in range(20):
                    await asyncio.sleep(0.001)
                assert service.values == {}
                assert not write.done()
            await write
            assert service.values == {b"k": b"v"}

    run(story)


def test_a_long_replay_does_not_run_away_from_the_event_loop() -> None:
    topic = FakeTopic()

    async def story() -> None:
        service = Service(topic)
        async with running(service):
            with service.log.hold_back():
                for number in range(300):
                    topic.store(LogWrite(b"%d" % number, b"v"))
                await until(lambda: len(service.log._held_back) >= 8)
                await asyncio.sleep(0.02)
                assert len(service.log._held_back) <= 8
            await service.log.read_to_end()
            assert len(service.values) == 300

    run(story)


@pytest.mark.parametrize("marker", [None, MARKER])
def test_catching_up_applies_what_others_wrote_and_costs_nothing_the_second_time(marker: bytes | None) -> None:
    topic = FakeTopic()

    async def story() -> None:
        service = Service(topic, marker=marker)
        async with running(service):
            topic.store(LogWrite(b"foreign", b"1"))
            await service.log.catch_up()
            assert service.values[b"foreign"] == b"1"
            length = len(topic.partitions[0])
            await service.log.catch_up()
            assert len(topic.partitions[0]) == length
            topic.store(LogWrite(b"foreign", b"2"))
            service.log.forget_end()
            await service.log.catch_up()
            assert service.values[b"foreign"] == b"2"
            assert [write.key for write in topic.partitions[0]].count(MARKER) == (0 if marker is None else 2)

    run(story)


def test_the_end_is_looked_for_again_after_a_write_of_unknown_outcome() -> None:
    topic = FakeTopic()

    async def story() -> None:
        service = Service(topic, marker=MARKER)
        async with running(service):
            await service.log.catch_up()
            topic.write_failures = [TopicLogError("nobody knows")]
            with pytest.raises(TopicLogError, match="nobody knows"):
                await service.put(b"k", b"v")
            await service.log.catch_up()
            assert [write.key for write in topic.partitions[0]].count(MARKER) == 2

    run(story)


def test_of_two_writers_the_older_one_is_fenced_and_can_take_over_again() -> None:
    topic = FakeTopic(is_exclusive=True)

    async def story() -> None:
        old, new = Service(topic), Service(topic)
        async with running(old, new):
            with pytest.raises(FencedError, match="take over first"):
                await old.put(b"k", b"0")
            await old.log.become_writer()
            await old.put(b"k", b"1")
            await new.log.become_writer()
            assert new.values == {b"k": b"1"}, "the successor knows all that was written before"
            with pytest.raises(FencedError):
                await old.put(b"k", b"old")
            assert not old.log.is_writer
            await new.put(b"k", b"2")
            await old.log.become_writer()
            assert old.values == {b"k": b"2"}
            await old.put(b"k", b"3")
            with pytest.raises(FencedError):
                await new.put(b"k", b"new")
        assert [write.value for write in topic.partitions[0]] == [b"1", b"2", b"3"]

    run(story)


def test_a_log_that_waits_for_brokers_says_so_and_can_be_stopped(caplog: pytest.LogCaptureFixture) -> None:
    topic = FakeTopic()
    topic.are_brokers_away = True

    async def story() -> None:
        service = Service(topic)
        starting = asyncio.ensure_future(service.log.start(60))
        await until(lambda: "waiting for brokers at fake:9092" in caplog.text)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        await service.log.stop(30)

    with caplog.at_level(logging.INFO):
        run(story)
    assert caplog.text.count("waiting for brokers") == 1


def test_who_waits_when_the_log_is_stopped_is_told() -> None:
    topic = FakeTopic()

    async def story() -> None:
        service = Service(topic)
        async with running(service):
            topic.are_reads_held = True
            write = asyncio.ensure_future(service.put(b"k", b"v"))
            await until(lambda: len(topic.partitions[0]) == 1)
            await service.log.stop(30)
            with pytest.raises(TopicLogError, match="stopped"):
                await write

    run(story)
