"""Apache Kafka's Java tools do their work on moldau: one run of each. `java/side_by_side.py` compares their words."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from tests.compat.brokers import Endpoint
from tests.compat.clients import Line, produce_with_librdkafka
from tests.oracle.apache_kafka import needs_apache_kafka, run_tool

pytestmark = pytest.mark.java


def say(tool: str, endpoint: Endpoint, *arguments: str) -> str:
    done = run_tool(tool, ["--bootstrap-server", endpoint.bootstrap, *arguments])
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def topic(endpoint: Endpoint) -> str:
    """A topic with ten records in its only partition."""
    needs_apache_kafka()
    admin = AdminClient({"bootstrap.servers": endpoint.bootstrap})
    admin.create_topics([NewTopic("tools", num_partitions=1, replication_factor=1)])["tools"].result(30)
    produce_with_librdkafka(endpoint.bootstrap, "tools", "none", [Line(f"key-{i}", f"value-{i}") for i in range(10)])
    return "tools"


def test_topics_are_created_and_described(endpoint: Endpoint, topic: str) -> None:
    tool = "org.apache.kafka.tools.TopicCommand"

    created = say(tool, endpoint, "--create", "--topic", "made-by-java", "--config", "segment.ms=5000")
    described = say(tool, endpoint, "--describe", "--topic", "made-by-java")

    assert created == "Created topic made-by-java.\n"
    header, *partitions = described.splitlines()
    assert "PartitionCount: 4\tReplicationFactor: 1\tConfigs: " in header
    assert "segment.ms=5000" in header
    assert len(partitions) == 4


def test_configs_are_changed_and_described(endpoint: Endpoint, topic: str) -> None:
    tool, entity = "kafka.admin.ConfigCommand", ("--entity-type", "topics", "--entity-name", topic)

    say(tool, endpoint, "--alter", *entity, "--add-config", "cleanup.policy=[compact,delete]")
    described = say(tool, endpoint, "--describe", *entity)

    assert "DYNAMIC_TOPIC_CONFIG:cleanup.policy=compact,delete, DEFAULT_CONFIG:log.cleanup.policy=delete" in described


def test_records_are_deleted_and_offsets_follow(endpoint: Endpoint, topic: str, tmp_path: Path) -> None:
    wanted = tmp_path / "offsets.json"
    wanted.write_text(json.dumps({"partitions": [{"topic": topic, "partition": 0, "offset": 4}], "version": 1}))

    deleted = say("org.apache.kafka.tools.DeleteRecordsCommand", endpoint, "--offset-json-file", str(wanted))
    earliest = say("org.apache.kafka.tools.GetOffsetShell", endpoint, "--topic", topic, "--time", "earliest")

    assert f"partition: {topic}-0\tlow_watermark: 4" in deleted
    assert earliest == f"{topic}:0:4\n"


def test_log_dirs_show_the_partition_and_its_size(endpoint: Endpoint, topic: str) -> None:
    said = say("org.apache.kafka.tools.LogDirsCommand", endpoint, "--describe", "--topic-list", topic)

    (broker,) = json.loads(said.splitlines()[-1])["brokers"]
    (partition,) = broker["logDirs"][0]["partitions"]
    assert partition["partition"] == f"{topic}-0"
    assert partition["size"] > 0


def test_api_versions_are_listed(endpoint: Endpoint, topic: str) -> None:
    said = say("org.apache.kafka.tools.BrokerApiVersionsCommand", endpoint)

    assert re.search(r"^\tProduce\(0\): 0 to \d+ \[usable: \d+\]", said, re.MULTILINE)
    assert re.search(r"^\tFetch\(1\): \d+ to \d+ \[usable: \d+\]", said, re.MULTILINE)


def test_the_performance_producer_is_acknowledged(endpoint: Endpoint, topic: str) -> None:
    load = ("--topic", "performance", "--num-records", "20000", "--record-size", "200", "--throughput", "-1")

    said = say("org.apache.kafka.tools.ProducerPerformance", endpoint, *load)

    assert said.splitlines()[-1].startswith("20000 records sent, ")
