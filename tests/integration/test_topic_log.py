"""A log of services on real brokers: it reads its own writes, shuts older writers out, and outlives its broker."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tests.integration.killable import KillableBroker

from moldau.client.admin import Admin
from moldau.client.coordination.state_topic import StateTopic
from moldau.client.coordination.topic_log import LogRecord, LogWrite, RecordTooLargeError, TopicLog, TopicLogError
from moldau.client.errors import ClientError, FencedError
from moldau.core.errors import StartupError
from moldau.testing import Broker

logger = logging.getLogger("tests.topic_log_on_brokers")
_numbers = count()


@pytest.fixture
def name() -> str:
    return f"log-{next(_numbers)}"


@pytest.fixture
def killable(tmp_path: Path) -> Iterator[KillableBroker]:
    broker = KillableBroker(tmp_path, {})
    broker.start()
    yield broker
    broker.close()


def topic_at(
    servers: str,
    name: str,
    *,
    partitions: int = 1,
    timeout_ms: int = 20_000,
    transactional_id: str | None = None,
    is_compacted: bool = True,
) -> StateTopic:
    return StateTopic(
        name=name,
        servers=servers,
        client_id="tests",
        logger=logger,
        timeout_ms=timeout_ms,
        partitions=partitions,
        transactional_id=transactional_id,
        is_compacted=is_compacted,
    )


class Service:
    def __init__(self, topic: StateTopic, *, marker: bytes | None = None) -> None:
        self.values: dict[bytes | None, bytes | None] = {}
        self.seen: list[tuple[int, int]] = []
        self.log = TopicLog(topic, self._apply, timeout_ms=topic.timeout_ms, marker=marker, logger=logger)

    def _apply(self, record: LogRecord) -> None:
        self.seen.append((record.partition, record.offset))
        self.values[record.key] = record.value

    async def put(self, key: bytes, value: bytes | None) -> None:
        await self.log.append([LogWrite(key, value)])


@asynccontextmanager
async def running(*services: Service) -> AsyncIterator[None]:
    try:
        for service in services:
            await service.log.start(60)
        yield
    finally:
        for service in services:
            await service.log.stop(10)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.01)


def run(story: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(story())  # type: ignore[arg-type]


def test_the_topic_is_made_and_every_own_write_is_applied_once(broker: Broker, name: str) -> None:
    topic = topic_at(broker.bootstrap_servers, name, partitions=3)

    async def story() -> None:
        first, second = Service(topic), Service(topic)
        async with running(first, second):
            for number in range(30):
                await first.put(b"k%d" % number, b"v%d" % number)
                assert first.values[b"k%d" % number] == b"v%d" % number
            await second.log.read_to_end()
            assert second.values == first.values
            assert len(first.seen) == len(set(first.seen)) == 30
            assert len({partition for partition, _ in first.seen}) == 3, "keys decide"
        restarted = Service(topic)
        async with running(restarted):
            assert restarted.values == first.values

    run(story)
    admin = Admin(broker.bootstrap_servers)
    assert len(admin.describe_topics([name])[0].partitions) == 3
    policy = {entry.name: entry.value for entry in admin.describe_configs("topic", [name])[name]}["cleanup.policy"]
    assert policy == "compact"


def test_a_topic_that_is_not_compacted_keeps_all_records(broker: Broker, name: str) -> None:
    async def story() -> None:
        async with running(Service(topic_at(broker.bootstrap_servers, name, is_compacted=False))):
            pass

    run(story)
    admin = Admin(broker.bootstrap_servers)
    configs = {entry.name: entry.value for entry in admin.describe_configs("topic", [name])[name]}
    assert (configs["cleanup.policy"], configs["retention.ms"]) == ("delete", "-1")


def test_a_topic_that_would_delete_records_is_refused(broker: Broker, name: str) -> None:
    Admin(broker.bootstrap_servers).create_topic(name, partitions=1, replication_factor=1, configs={})

    async def story() -> None:
        with pytest.raises(StartupError, match=r"retention.ms=604800000.*--add-config retention.ms=-1"):
            async with running(Service(topic_at(broker.bootstrap_servers, name, is_compacted=False))):
                pass

    run(story)


def test_keys_go_where_other_clients_put_them(broker: Broker, name: str) -> None:
    """Compaction works per partition: with another one, two records of a key would both stay."""
    topic = topic_at(broker.bootstrap_servers, name, partitions=5)

    async def story() -> None:
        service = Service(topic)
        async with running(service):
            producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "partitioner": "murmur2_random"})
            placed = {}
            for number in range(20):
                offsets = await service.log.append([LogWrite(b"k%d" % number, b"ours")])
                producer.produce(
                    name,
                    b"theirs",
                    b"k%d" % number,
                    on_delivery=lambda _, message: placed.update({message.key(): message.partition()}),
                )
                assert producer.flush(30) == 0
                assert {placed[b"k%d" % number]} == set(offsets)

    run(story)


def test_a_topic_for_ordered_records_must_have_one_partition(broker: Broker, name: str) -> None:
    Admin(broker.bootstrap_servers).create_topic(
        name, partitions=2, replication_factor=1, configs={"cleanup.policy": "compact"}
    )

    async def story() -> None:
        service = Service(topic_at(broker.bootstrap_servers, name))
        with pytest.raises(StartupError, match=f"topic {name} has 2 partitions"):
            async with running(service):
                pass

    run(story)


@pytest.mark.parametrize("transactional_id", [None, "large"])
def test_a_record_that_is_too_large_is_refused_and_the_next_one_is_taken(
    broker: Broker, name: str, transactional_id: str | None
) -> None:
    async def story() -> None:
        service = Service(topic_at(broker.bootstrap_servers, name, transactional_id=transactional_id))
        async with running(service):
            await service.log.become_writer()
            with pytest.raises(RecordTooLargeError, match="2000001 bytes"):
                await service.log.append([LogWrite(b"s", b"small"), LogWrite(b"k", b"x" * 2_000_000)])
            await service.put(b"k", b"v")
            assert service.values == {b"k": b"v"}, "of a refused append nothing is written"

    run(story)


def test_a_new_writer_shuts_the_old_one_out(broker: Broker, name: str) -> None:
    topic = topic_at(broker.bootstrap_servers, name, transactional_id=f"{name}-writer")

    async def story() -> None:
        old, new, reader = Service(topic), Service(topic), Service(topic)
        async with running(old, new, reader):
            await old.log.become_writer()
            await old.put(b"k", b"1")
            await new.log.become_writer()
            assert new.values == {b"k": b"1"}
            with pytest.raises(FencedError):
                await old.put(b"k", b"too late")
            assert not old.log.is_writer
            await new.log.append([LogWrite(b"k", b"2"), LogWrite(b"other", b"2")])
            await reader.log.read_to_end()
            assert reader.values == {b"k": b"2", b"other": b"2"}
            await old.log.become_writer()
            await old.put(b"k", b"3")
            await until(lambda: all(one.values == {b"k": b"3", b"other": b"2"} for one in (old, new, reader)))

    run(story)


def test_what_a_dead_writer_left_open_is_never_applied(broker: Broker, name: str) -> None:
    topic = topic_at(broker.bootstrap_servers, name, transactional_id=f"{name}-writer")

    async def story() -> None:
        service = Service(topic)
        async with running(service):
            dead = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": f"{name}-writer"})
            dead.init_transactions(30)
            dead.begin_transaction()
            dead.produce(name, b"half", b"k", 0)
            assert dead.flush(30) == 0
            await service.log.become_writer()
            assert service.values == {}
            await service.put(b"k", b"whole")
            assert service.values == {b"k": b"whole"}

    run(story)


@pytest.mark.parametrize("transactional_id", [None, "killed"])
def test_a_log_outlives_its_broker(
    killable: KillableBroker, caplog: pytest.LogCaptureFixture, transactional_id: str | None
) -> None:
    """Killed and started again: the state stays, writes are refused in time, then all goes on; few lines say so."""
    topic = topic_at(killable.bootstrap_servers, "log", timeout_ms=1000, transactional_id=transactional_id)

    async def story() -> None:
        service = Service(topic)
        async with running(service):
            await _insist(service.log.become_writer)
            await _insist(lambda: service.put(b"before", b"1"))
            killable.kill()
            with pytest.raises(TopicLogError):
                await service.put(b"during", b"2")
            assert service.values == {b"before": b"1"}
            await asyncio.to_thread(killable.start)
            await _insist(service.log.become_writer)
            await _insist(lambda: service.put(b"after", b"3"))
            assert service.values.pop(b"during", b"2") == b"2", "its outcome was unknown"
            assert service.values == {b"before": b"1", b"after": b"3"}
            assert len(service.seen) == len(set(service.seen))

    run(story)
    # A fenced transactional producer cannot be ended (tests/open_clients.py); other tests need not read its reminders.
    logger.disabled = transactional_id is not None
    lines = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert sum("is not available: Connection refused" in line for line in lines) <= 1, lines
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


async def _insist(action: Callable[[], Awaitable[object]]) -> None:
    """As a service does after an outage: again, until it works."""
    async with asyncio.timeout(60):
        while True:
            try:
                await action()
                return
            except ClientError:
                await asyncio.sleep(0.05)
