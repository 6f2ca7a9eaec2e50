"""Commits, producers and silent consumers across a death: the old state or the new one, never something between."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer
from tests.integration.both_brokers import create_topic
from tests.integration.group_members import RETRIED, coordinator_is_ready, fetch_offsets
from tests.integration.killable import KillableBroker
from tests.integration.server_process import wait_until

from moldau.client.errors import UnreachableError
from moldau.client.wire import WireClient
from moldau.core.errors import ErrorCode
from moldau.protocol.api import ApiKey
from moldau.protocol.messages import Message
from moldau.protocol.records import Record, encode_batch
from moldau.testing import Broker

PARTITIONS = 5
TOPIC, GROUP = "orders", "billing"


@pytest.fixture
def killable(tmp_path: Path) -> Iterator[KillableBroker]:
    broker = KillableBroker(tmp_path, {"group.initial.rebalance.delay.ms": "0"})
    broker.start()
    yield broker
    broker.close()


def connect(broker: KillableBroker) -> WireClient:
    return WireClient("127.0.0.1", broker.port)


# Offsets


def commit_to_all(wire: WireClient, offset: int) -> None:
    """One request for all partitions; raises `UnreachableError` where no answer comes."""
    partitions = [
        Message(partition_index=number, committed_offset=offset, committed_leader_epoch=-1, committed_metadata="")
        for number in range(PARTITIONS)
    ]
    request = Message(
        group_id=GROUP,
        generation_id_or_member_epoch=-1,
        member_id="",
        group_instance_id=None,
        topics=[Message(name=TOPIC, partitions=partitions)],
    )
    (topic,) = wire.send(ApiKey.OFFSET_COMMIT, request, 9).topics
    assert {one.error_code for one in topic.partitions} == {ErrorCode.NONE}


def committed(wire: WireClient) -> set[int]:
    while (found := fetch_offsets(wire, GROUP, TOPIC, list(range(PARTITIONS)))).error_code in RETRIED:
        continue
    return {one.committed_offset for one in found.topics[0].partitions}


def test_a_kill_in_the_middle_of_commits_leaves_the_old_or_the_new_offsets(killable: KillableBroker) -> None:
    chance = random.Random(5)
    with connect(killable) as wire:
        create_topic(wire, TOPIC, PARTITIONS)
        coordinator_is_ready(wire, GROUP)
    acknowledged = -1
    for _ in range(6):
        killer = threading.Timer(chance.uniform(0.05, 0.3), killable.kill)
        with connect(killable) as wire:
            killer.start()
            try:
                while True:
                    commit_to_all(wire, acknowledged + 1)
                    acknowledged += 1
            except UnreachableError:
                killer.join()
        killable.start()
        with connect(killable) as wire:
            (offset,) = committed(wire)
        assert offset in (acknowledged, acknowledged + 1)
        acknowledged = offset
    assert acknowledged > 20


# Idempotent producers


def append(wire: WireClient, producer_id: int, sequence: int) -> tuple[int, int]:
    """One record with this sequence; returns the error code and the offset."""
    batch = encode_batch(
        [Record(0, 0, None, b"%d" % sequence)],
        base_timestamp=int(time.time() * 1000),
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=sequence,
    )
    partition = Message(index=0, records=batch)
    topic = Message(name=TOPIC, topic_id=None, partition_data=[partition])
    request = Message(transactional_id=None, acks=-1, timeout_ms=30_000, topic_data=[topic])
    (answer,) = wire.send(ApiKey.PRODUCE, request, 9).responses[0].partition_responses
    return answer.error_code, answer.base_offset


def test_an_idempotent_producer_is_known_again_after_a_kill(killable: KillableBroker) -> None:
    with connect(killable) as wire:
        create_topic(wire, TOPIC)
        init = Message(transactional_id=None, transaction_timeout_ms=60_000, producer_id=-1, producer_epoch=-1)
        producer_id = wire.send(ApiKey.INIT_PRODUCER_ID, init).producer_id
        assert [append(wire, producer_id, sequence) for sequence in range(7)] == [(0, offset) for offset in range(7)]
    killable.kill()
    killable.start()
    with connect(killable) as wire:
        # The last five batches are remembered, with the offsets they were given.
        assert [append(wire, producer_id, sequence) for sequence in range(2, 7)] == [(0, n) for n in range(2, 7)]
        assert append(wire, producer_id, 8)[0] == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert append(wire, producer_id, 7) == (0, 7)
        second = wire.send(ApiKey.INIT_PRODUCER_ID, init).producer_id
        assert second > producer_id


# Consumers that stop polling


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_consumer_that_stops_polling_is_replaced(protocol: str) -> None:
    settings = {"bootstrap.servers": "", "group.id": GROUP, "auto.offset.reset": "earliest", "log_level": "0"}
    if protocol == "consumer":
        settings["group.protocol"] = "consumer"
    else:
        settings |= {"session.timeout.ms": "1500", "heartbeat.interval.ms": "300"}
    limits = {"group.min.session.timeout.ms": "1000", "group.consumer.min.heartbeat.interval.ms": "100"}
    with Broker({**limits, "group.consumer.heartbeat.interval.ms": "200"}) as broker:
        with WireClient("127.0.0.1", broker.port) as wire:
            create_topic(wire, TOPIC, 2)
        settings["bootstrap.servers"] = broker.bootstrap_servers
        silent = Consumer({**settings, "max.poll.interval.ms": 2000})
        silent.subscribe([TOPIC])
        wait_until(lambda: silent.poll(0.05) or len(silent.assignment()) == 2, what="the first one's assignment")

        successor = Consumer({**settings, "max.poll.interval.ms": 60_000})
        successor.subscribe([TOPIC])
        wait_until(lambda: successor.poll(0.05) or len(successor.assignment()) == 2, what="the successor's assignment")

        silent.poll(0)
        successor.close()
        silent.close()
