"""Every client reads what every client wrote, with every codec, in one order.

All of them write to the same partition, so each reader meets each writer's batches in one pass.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from tests.compat.brokers import Endpoint
from tests.compat.clients import CODECS, CONSUMERS, PRODUCERS, Line
from tests.oracle.apache_kafka import needs_apache_kafka

from moldau.protocol.record_batch import CODEC_MASK, LOG_OVERHEAD, BatchHeader

LINES_PER_BATCH = 3
TOPIC = "every-client-every-codec"
CLIENTS = ["librdkafka", "kafka-python", "kcat", pytest.param("java", marks=pytest.mark.java)]


def need(client: str) -> None:
    if client == "java":
        needs_apache_kafka()
    if client == "kcat" and shutil.which("kcat") is None:
        pytest.skip("no kcat on PATH")


def lines_of(client: str, codec: str) -> list[Line]:
    # Long and repetitive, so that every codec makes it smaller and no client gives up on compressing.
    return [Line(f"{client}-{i}", f"{codec} {i} " + "moldau " * 50) for i in range(LINES_PER_BATCH)]


@pytest.fixture(scope="module")
def topic(endpoint: Endpoint) -> str:
    admin = AdminClient({"bootstrap.servers": endpoint.bootstrap})
    admin.create_topics([NewTopic(TOPIC, num_partitions=1, replication_factor=1)])[TOPIC].result(30)
    return TOPIC


@pytest.fixture(scope="module")
def written(topic: str) -> dict[tuple[str, str], list[Line]]:
    """What has been written so far, by client and codec, in order; the producing tests fill it."""
    return {}


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_produces_with_a_codec_and_the_log_keeps_it_so(
    client: str, codec: str, endpoint: Endpoint, topic: str, written: dict[tuple[str, str], list[Line]]
) -> None:
    need(client)
    lines = lines_of(client, codec)
    before = len(codecs_in_log(endpoint, topic))

    PRODUCERS[client](endpoint.bootstrap, topic, codec, lines)

    written[client, codec] = lines
    new = codecs_in_log(endpoint, topic)[before:]
    assert new
    assert set(new) == {codec}


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_reads_what_all_of_them_wrote(
    client: str, endpoint: Endpoint, topic: str, written: Mapping[tuple[str, str], list[Line]]
) -> None:
    need(client)
    expected = [line for lines in written.values() for line in lines]
    if not expected:
        pytest.skip("no client has written anything")

    assert CONSUMERS[client](endpoint.bootstrap, topic, len(expected)) == expected


def codecs_in_log(endpoint: Endpoint, topic: str) -> list[str]:
    """The codec of each batch on disk, from the batch headers of the partition's only segment."""
    return [CODECS[header.attributes & CODEC_MASK] for header in headers(endpoint.log_dir / f"{topic}-0")]


def headers(partition: Path) -> list[BatchHeader]:
    segment = partition / f"{0:020}.log"
    data = segment.read_bytes() if segment.exists() else b""
    found, position = [], 0
    while position < len(data):
        found.append(BatchHeader.at(data, position))
        position += LOG_OVERHEAD + found[-1].batch_length
    return found
