"""A disk that makes writers wait holds up producers, and nobody else."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.integration.raw_client import RawClient, batch_of, produce_request

from moldau.log.files import Files
from moldau.protocol.messages import Message
from moldau.protocol.records import decode_records, split_batches
from moldau.testing.broker import Broker

PRODUCE, METADATA = 0, 3
STALL_S = 0.15
LARGE = 100_000


class StallingFiles(Files):
    """As a kernel that stops writers until the disk has caught up."""

    is_stalling = False

    def write(self, fd: int, data: Any) -> int:  # type: ignore[override]
        if self.is_stalling and len(data) >= LARGE:
            time.sleep(STALL_S)
        return os.write(fd, data)


@pytest.fixture
def files() -> StallingFiles:
    return StallingFiles()


@pytest.fixture
def broker(files: StallingFiles) -> Iterator[Broker]:
    with Broker(files=files) as running:
        yield running


def test_others_are_served_while_appends_wait_for_the_disk(broker: Broker, files: StallingFiles) -> None:
    with RawClient(broker.port) as producer, RawClient(broker.port) as other:
        producer.create_topic("slow", partitions=2)
        files.is_stalling = True
        # The first large write stops the loop, as nothing could know; those after it are a thread's business.
        producer.produce("slow", batch_of(b"0", bytes(LARGE)))
        for number in range(1, 8):
            batch = batch_of(b"%d" % number, bytes(LARGE if number % 2 else 10))
            producer.send(producer.frame(PRODUCE, 9, produce_request("slow", batch)))
        waits = []
        for _ in range(30):
            began = time.monotonic()
            other.ask(METADATA, 9, Message(topics=[], allow_auto_topic_creation=False))
            waits.append(time.monotonic() - began)
        offsets = [producer.receive(PRODUCE, 9).responses[0].partition_responses[0].base_offset for _ in range(7)]

        assert sum(wait > STALL_S / 2 for wait in waits) <= 2
        assert offsets == [2, 4, 6, 8, 10, 12, 14]
        records = producer.fetch("slow", 0).records
        read = [record.value for header, batch in split_batches(records) for record in decode_records(batch, header)]
        assert read[::2] == [b"%d" % number for number in range(8)]


def test_the_loop_appends_again_when_the_disk_keeps_up(broker: Broker, files: StallingFiles) -> None:
    assert broker.node is not None
    assert broker.node.broker is not None
    slow_appends = broker.node.broker.data_plane.slow_appends
    with RawClient(broker.port) as producer:
        producer.create_topic("slow")
        files.is_stalling = True
        producer.produce("slow", batch_of(bytes(LARGE)))
        assert slow_appends.is_on
        files.is_stalling = False
        deadline = time.monotonic() + 20
        sent = 1
        while slow_appends.is_on and time.monotonic() < deadline:
            assert producer.produce("slow", batch_of(b"x")).base_offset == sent
            sent += 1
        assert not slow_appends.is_on
        assert producer.produce("slow", batch_of(b"x")).base_offset == sent


def test_a_topic_deleted_meanwhile_refuses_what_was_still_waiting(broker: Broker, files: StallingFiles) -> None:
    with RawClient(broker.port) as producer, RawClient(broker.port) as admin:
        producer.create_topic("doomed")
        files.is_stalling = True
        for number in range(6):
            request = produce_request("doomed", batch_of(b"%d" % number, bytes(LARGE)))
            producer.send(producer.frame(PRODUCE, 9, request))
        deleted = admin.ask(20, 4, Message(topic_names=["doomed"], timeout_ms=10_000))
        assert deleted.responses[0].error_code == 0
        codes = [producer.receive(PRODUCE, 9).responses[0].partition_responses[0].error_code for _ in range(6)]
        assert codes[0] == 0
        assert set(codes) <= {0, 3, 6}
        assert codes == sorted(codes, key=bool)
