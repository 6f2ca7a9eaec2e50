"""The same admin requests to Apache Kafka and to moldau: the same codes, settings, sources and synonyms.

Messages are in our own words and not compared. Where moldau answers differently on purpose, the case says so.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from tests.oracle.apache_kafka import ApacheKafka, needs_apache_kafka, run_tool

from moldau.client.wire import WireClient
from moldau.protocol.api import ApiKey
from moldau.protocol.messages import Message
from moldau.testing import Broker

pytestmark = pytest.mark.java

SETTINGS = {"log.retention.hours": "100", "log.segment.bytes": "1000000000", "node.id": "1"}
OURS_ONLY = {
    "moldau.flush.on.ack",
    "moldau.validate.records",
    "confluent.key.schema.validation",
    "confluent.key.subject.name.strategy",
    "confluent.value.schema.validation",
    "confluent.value.subject.name.strategy",
}
"""Two of our own, and four that only Confluent's broker knows."""
NOT_ALIKE = {"local.retention.ms", "local.retention.bytes", "min.insync.replicas"}
"""Tiered storage's broker-wide defaults do not exist here, so the first two have no synonym. Kafka 4.3 sets the
third for the whole cluster when it formats with eligible leader replicas."""
SET, DELETE, APPEND = 0, 1, 2


class Pair(NamedTuple):
    kafka: WireClient
    moldau: WireClient


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    needs_apache_kafka()
    with ApacheKafka(None, SETTINGS) as kafka, Broker(SETTINGS) as moldau:
        host, _, port = kafka.bootstrap.rpartition(":")
        with WireClient(host, int(port)) as theirs, WireClient("127.0.0.1", moldau.port) as ours:
            for client in (theirs, ours):
                created = topic("known", 3, 1, configs={"retention.ms": "1000", "cleanup.policy": "compact"})
                assert create(client, created) == [("known", 0)]
                assert create(client, topic("dot.ted", 1, 1)) == [("dot.ted", 0)]
            yield Pair(theirs, ours)


def topic(
    name: str,
    partitions: int = -1,
    replication_factor: int = -1,
    *,
    assignments: dict[int, list[int]] | None = None,
    configs: dict[str, str | None] | None = None,
) -> Message:
    return Message(
        name=name,
        num_partitions=partitions,
        replication_factor=replication_factor,
        assignments=[Message(partition_index=key, broker_ids=value) for key, value in (assignments or {}).items()],
        configs=[Message(name=key, value=value) for key, value in (configs or {}).items()],
    )


def create(client: WireClient, *topics: Message) -> list[tuple[str, int]]:
    request = Message(topics=list(topics), timeout_ms=10_000, validate_only=False)
    return [(one.name, one.error_code) for one in client.send(ApiKey.CREATE_TOPICS, request, 7).topics]


def alter(client: WireClient, kind: int, name: str, *ops: tuple[str, int, str | None]) -> int:
    configs = [Message(name=key, config_operation=op, value=value) for key, op, value in ops]
    resource = Message(resource_type=kind, resource_name=name, configs=configs)
    request = Message(resources=[resource], validate_only=False)
    code: int = client.send(ApiKey.INCREMENTAL_ALTER_CONFIGS, request, 1).responses[0].error_code
    return code


def describe(client: WireClient, kind: int, name: str) -> Message:
    resource = Message(resource_type=kind, resource_name=name, configuration_keys=None)
    request = Message(resources=[resource], include_synonyms=True, include_documentation=False)
    (result,) = client.send(ApiKey.DESCRIBE_CONFIGS, request, 4).results
    return result


Entry = tuple[str | None, bool, int, bool, int, list[tuple[str, str | None, int]]]


def entries(result: Message) -> dict[str, Entry]:
    return {
        one.name: (
            one.value,
            one.read_only,
            one.config_source,
            one.is_sensitive,
            one.config_type,
            [(synonym.name, synonym.value, synonym.source) for synonym in one.synonyms],
        )
        for one in result.configs
    }


@pytest.mark.parametrize(
    "wanted",
    [
        topic("known", 1, 1),
        topic("dot_ted", 1, 1),
        topic("a b", 1, 1),
        topic("", 1, 1),
        topic("..", 1, 1),
        topic("x" * 250, 1, 1),
        topic("p0", 0, 1),
        topic("p-2", -2, 1),
        topic("rf0", 1, 0),
        topic("rf-2", 1, -2),
        topic("rf2", 1, 2),
        topic("many", 10_001, 1),
        topic("defaults"),
        topic("unknown-key", 1, 1, configs={"no.such": "1"}),
        topic("null", 1, 1, configs={"retention.ms": None}),
        topic("no-number", 1, 1, configs={"retention.ms": "x"}),
        topic("too-low", 1, 1, configs={"retention.ms": "-5"}),
        topic("lags", 1, 1, configs={"min.compaction.lag.ms": "2", "max.compaction.lag.ms": "1"}),
        topic("both", 1, 1, assignments={0: [1]}),
        topic("assigned", assignments={0: [1], 1: [1]}),
        topic("gap", assignments={1: [1]}),
        topic("twice", assignments={0: [1, 1]}),
        topic("nobody", assignments={0: [9]}),
        topic("empty", assignments={0: []}),
    ],
    ids=lambda wanted: wanted.name[:20] or "no-name",
)
def test_topics_are_created_or_refused_alike(pair: Pair, wanted: Message) -> None:
    assert create(pair.moldau, wanted) == create(pair.kafka, wanted)


def test_a_name_asked_for_twice_is_refused_alike(pair: Pair) -> None:
    wanted = topic("double", 1, 1)
    assert create(pair.moldau, wanted, wanted) == create(pair.kafka, wanted, wanted)


@pytest.mark.parametrize(
    ("name", "count", "assignments"),
    [
        ("known", 3, None),
        ("known", 2, None),
        ("known", 0, None),
        ("nowhere", 3, None),
        ("known", 5, [[1]]),
        ("known", 4, [[9]]),
        ("dot.ted", 2, [[1]]),
    ],
)
def test_topics_grow_or_not_alike(pair: Pair, name: str, count: int, assignments: list[list[int]] | None) -> None:
    given = None if assignments is None else [Message(broker_ids=one) for one in assignments]
    more = Message(name=name, count=count, assignments=given)
    request = Message(topics=[more], timeout_ms=10_000, validate_only=False)
    theirs, ours = (
        [(one.name, one.error_code) for one in client.send(ApiKey.CREATE_PARTITIONS, request, 3).results]
        for client in pair
    )
    assert ours == theirs


@pytest.mark.parametrize(
    "refs",
    [
        [("nowhere", None)],
        [(None, uuid.UUID(int=12345))],
        [("known", uuid.UUID(int=12345))],
        [(None, None)],
        [("known", None), ("known", None)],
    ],
)
def test_topics_are_not_deleted_alike(pair: Pair, refs: list[tuple[str | None, uuid.UUID | None]]) -> None:
    request = Message(topics=[Message(name=name, topic_id=topic_id) for name, topic_id in refs], timeout_ms=10_000)
    theirs, ours = (
        [(one.name, one.error_code) for one in client.send(ApiKey.DELETE_TOPICS, request, 6).responses]
        for client in pair
    )
    assert ours == theirs


@pytest.mark.parametrize(
    ("kind", "name", "op"),
    [
        (2, "dot.ted", ("segment.ms", SET, "5000")),
        (2, "dot.ted", ("cleanup.policy", APPEND, "compact")),
        (2, "dot.ted", ("flush.ms", DELETE, None)),
        (2, "dot.ted", ("no.such", SET, "1")),
        (2, "dot.ted", ("no.such", DELETE, None)),
        (2, "dot.ted", ("segment.ms", SET, None)),
        (2, "dot.ted", ("segment.ms", SET, "x")),
        (2, "dot.ted", ("segment.ms", APPEND, "1")),
        (2, "dot.ted", ("min.insync.replicas", SET, "0")),
        (2, "nowhere", ("segment.ms", SET, "1")),
        (4, "1", ("num.partitions", SET, "3")),
        (4, "1", ("message.max.bytes", SET, "x")),
        (4, "1", ("message.max.bytes", SET, "-5")),
        (4, "1", ("num.io.threads", SET, "100")),
        (4, "1", ("log.retention.ms", SET, "86400000")),
        (4, "", ("message.max.bytes", SET, "2000000")),
        (4, "9", ("message.max.bytes", SET, "5")),
        (4, "x", ("message.max.bytes", SET, "5")),
        (8, "1", ("no.such.logger", SET, "INFO")),
        (8, "1", ("root", SET, "LOUD")),
        (8, "1", ("root", DELETE, None)),
        (99, "x", ("a", SET, "1")),
    ],
)
def test_settings_are_altered_or_refused_alike(
    pair: Pair, kind: int, name: str, op: tuple[str, int, str | None]
) -> None:
    assert alter(pair.moldau, kind, name, op) == alter(pair.kafka, kind, name, op)


@pytest.mark.parametrize("name", ["known", "dot.ted"])
def test_topic_settings_have_the_same_values_sources_and_synonyms(pair: Pair, name: str) -> None:
    """After the changes above: own values, dynamic ones of the broker and of the cluster, the file, the defaults."""
    theirs, ours = (entries(describe(client, 2, name)) for client in pair)
    assert set(ours) - set(theirs) == OURS_ONLY
    different = {key for key in theirs if theirs[key] != ours[key]} - NOT_ALIKE
    assert {key: (theirs[key], ours[key]) for key in different} == {}


def test_broker_settings_have_the_same_values_types_and_modes(pair: Pair) -> None:
    theirs, ours = (entries(describe(client, 4, "1")) for client in pair)
    on_purpose = {
        *(name for name in theirs if name.startswith(("listener", "advertised.", "controller.", "sasl.", "log.dir"))),
        # A dynamic log.retention.ms makes Kafka show the default beside the file's source.
        *("log.retention.hours", "config.providers", "min.insync.replicas"),
        *("broker.id", "node.id", "process.roles", "metric.reporters", "principal.builder.class"),
        *("offsets.topic.num.partitions", "transaction.state.log.num.partitions"),
        *("group.coordinator.rebalance.protocols", "group.coordinator.append.linger.ms", "replica.selector.class"),
    }
    different = {key for key in theirs.keys() & ours.keys() if theirs[key] != ours[key]} - on_purpose
    assert {key: (theirs[key], ours[key]) for key in different} == {}


def test_the_clusters_dynamic_settings_are_the_same(pair: Pair) -> None:
    theirs, ours = (entries(describe(client, 4, "")) for client in pair)
    theirs.pop("min.insync.replicas", None)
    assert ours == theirs


@pytest.mark.parametrize(("kind", "name"), [(2, "nowhere"), (2, "a b"), (4, "9"), (4, "x"), (99, "x")])
def test_unknown_resources_are_refused_alike(pair: Pair, kind: int, name: str) -> None:
    theirs, ours = (describe(client, kind, name).error_code for client in pair)
    assert ours == theirs


def test_kafkas_own_tool_decodes_our_metadata_log_and_snapshot() -> None:
    needs_apache_kafka()
    with Broker() as broker:
        with WireClient("127.0.0.1", broker.port) as client:
            create(client, topic("decoded", 2, 1, configs={"retention.ms": "1000"}))
        broker.restart()
        assert broker.node is not None
        assert broker.node.broker is not None
        assert broker.node._controller is not None
        broker.node._controller.metadata_log.save_snapshot(broker.node.broker.image)
        folder = broker.data / "__cluster_metadata-0"
        files = [*folder.glob("*.log"), *folder.glob("*.checkpoint")]
        assert len(files) == 2
        for file in files:
            done = run_tool(
                "org.apache.kafka.tools.DumpLogSegments", ["--cluster-metadata-decoder", "--files", str(file)]
            )
            assert done.returncode == 0, done.stderr
            assert '"type":"PARTITION_RECORD","version":2' in done.stdout
            assert '"name":"retention.ms","value":"1000"' in done.stdout
            assert "isvalid: false" not in done.stdout
            assert "Could not decode" not in done.stdout


@pytest.mark.parametrize(
    ("name", "number", "replicas"),
    [
        ("known", 0, [1]),
        ("known", 0, []),
        ("known", 0, None),
        ("known", 0, [1, 1]),
        ("known", 0, [-1]),
        ("known", 0, [1, 2]),
        ("known", 9, [1]),
        ("unknown", 0, [1]),
    ],
)
@pytest.mark.parametrize("may_change_factor", [True, False])
def test_reassignments(pair: Pair, name: str, number: int, replicas: list[int] | None, may_change_factor: bool) -> None:
    request = Message(
        timeout_ms=10_000,
        allow_replication_factor_change=may_change_factor,
        topics=[Message(name=name, partitions=[Message(partition_index=number, replicas=replicas)])],
    )

    def outcome(client: WireClient) -> list[object]:
        answer = client.send(ApiKey.ALTER_PARTITION_REASSIGNMENTS, request)
        codes = [(topic.name, [one.error_code for one in topic.partitions]) for topic in answer.responses]
        listed = client.send(ApiKey.LIST_PARTITION_REASSIGNMENTS, Message(timeout_ms=10_000, topics=None))
        return [answer.error_code, answer.allow_replication_factor_change, codes, listed.error_code, listed.topics]

    assert outcome(pair.moldau) == outcome(pair.kafka)
