"""The admin APIs answer by answer, in every version they announce, against a real broker."""

from __future__ import annotations

import socket
import struct
import time
import uuid
from collections.abc import Iterator

import pytest

from moldau.broker.router import ROUTES
from moldau.client.wire import WireClient
from moldau.core.errors import ErrorCode
from moldau.protocol.api import ApiKey, encode_request_header
from moldau.protocol.messages import Message, decode_response
from moldau.server.metadata_versions import features_at
from moldau.testing import Broker

NOT_ASKED = -(2**31)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"log.retention.hours": "168"}) as running:
        yield running


@pytest.fixture
def client(broker: Broker) -> Iterator[WireClient]:
    with WireClient("127.0.0.1", broker.port) as connected:
        yield connected


def create(client: WireClient, name: str, partitions: int = 1, **configs: str) -> uuid.UUID:
    topic = Message(
        name=name,
        num_partitions=partitions,
        replication_factor=1,
        assignments=[],
        configs=[Message(name=key.replace("_", "."), value=value) for key, value in configs.items()],
    )
    reply = client.send(ApiKey.CREATE_TOPICS, Message(topics=[topic], timeout_ms=5000, validate_only=False))
    (created,) = reply.topics
    assert created.error_code == 0, created.error_message
    topic_id: uuid.UUID = created.topic_id
    return topic_id


def described(client: WireClient, kind: int, name: str, keys: list[str] | None = None) -> Message:
    resource = Message(resource_type=kind, resource_name=name, configuration_keys=keys)
    request = Message(resources=[resource], include_synonyms=True, include_documentation=True)
    (result,) = client.send(ApiKey.DESCRIBE_CONFIGS, request).results
    return result


def altered(client: WireClient, kind: int, name: str, *ops: tuple[str, int, str | None]) -> Message:
    configs = [Message(name=key, config_operation=op, value=value) for key, op, value in ops]
    request = Message(resources=[Message(resource_type=kind, resource_name=name, configs=configs)], validate_only=False)
    (result,) = client.send(ApiKey.INCREMENTAL_ALTER_CONFIGS, request).responses
    return result


def metadata(client: WireClient, version: int, topics: list[Message] | None, **more: bool) -> Message:
    request = Message(topics=topics, **{"allow_auto_topic_creation": False, **more})
    return client.send(ApiKey.METADATA, request, version)


def test_what_is_announced_has_a_handler_and_nothing_else_is(client: WireClient) -> None:
    announced = client.api_versions()
    assert set(announced) == set(ROUTES)
    assert announced[ApiKey.PRODUCE] == (0, 13)
    assert announced[ApiKey.METADATA] == (0, 13)


def test_features_tell_what_exists(client: WireClient) -> None:
    software = Message(client_software_name="test", client_software_version="1.0")
    newest = client.send(ApiKey.API_VERSIONS, software, 4)
    assert {one.name: one.max_version_level for one in newest.finalized_features} == {
        "metadata.version": 25,
        **{name: level for name, level in features_at(25).items() if level > 0},
    }
    assert {one.name: (one.min_version, one.max_version) for one in newest.supported_features}["metadata.version"] == (
        7,
        25,
    )
    # Older clients reject features that begin at level 0, so they are not told of them.
    assert [one.name for one in client.send(ApiKey.API_VERSIONS, software, 3).supported_features] == [
        "metadata.version"
    ]


def test_a_client_without_a_proper_name_is_refused(client: WireClient) -> None:
    software = Message(client_software_name="-bad-", client_software_version="1.0")
    assert client.send(ApiKey.API_VERSIONS, software, 3).error_code == ErrorCode.INVALID_REQUEST


def test_a_version_from_the_future_is_answered_in_version_0_and_the_connection_stays(broker: Broker) -> None:
    with socket.create_connection(("127.0.0.1", broker.port)) as connection, connection.makefile("rb") as replies:
        for correlation_id in (7, 8):
            header = encode_request_header(ApiKey.API_VERSIONS, 99, correlation_id, "x")
            connection.sendall(struct.pack(">i", len(header)) + header)
            (size,) = struct.unpack(">i", replies.read(4))
            frame = replies.read(size)
            assert struct.unpack_from(">i", frame) == (correlation_id,)
            reply = decode_response(ApiKey.API_VERSIONS, 0, frame[4:])
            assert reply.error_code == ErrorCode.UNSUPPORTED_VERSION
            assert len(reply.api_keys) == len(ROUTES)


@pytest.mark.parametrize("version", range(14))
def test_metadata_tells_topics_in_every_version(client: WireClient, version: int) -> None:
    name = f"every-version-{version}"
    create(client, name, partitions=2)
    reply = metadata(client, version, [Message(name=name, topic_id=None)])
    (topic,) = reply.topics
    assert (topic.error_code, topic.name, len(topic.partitions)) == (0, name, 2)
    assert [(one.leader_id, one.replica_nodes, one.isr_nodes) for one in topic.partitions] == [(1, [1], [1])] * 2
    (node,) = reply.brokers
    assert (node.node_id, node.host) == (1, "127.0.0.1")


def test_all_topics_are_asked_for_with_null_or_in_version_0_with_nothing(client: WireClient) -> None:
    create(client, "among-all")
    assert "among-all" in {topic.name for topic in metadata(client, 0, []).topics}
    assert "among-all" in {topic.name for topic in metadata(client, 12, None).topics}
    assert metadata(client, 12, []).topics == []


def test_topics_are_found_by_id_from_version_12_on(client: WireClient) -> None:
    topic_id = create(client, "by-id")
    (found,) = metadata(client, 12, [Message(name=None, topic_id=topic_id)]).topics
    assert (found.error_code, found.name) == (0, "by-id")
    (missing,) = metadata(client, 12, [Message(name=None, topic_id=uuid.uuid4())]).topics
    assert (missing.error_code, missing.name) == (ErrorCode.UNKNOWN_TOPIC_ID, None)
    (too_early,) = metadata(client, 10, [Message(name="by-id", topic_id=topic_id)]).topics
    assert too_early.error_code == ErrorCode.INVALID_REQUEST


def test_an_unknown_topic_is_created_on_demand_and_there_at_the_next_question(client: WireClient) -> None:
    wanted = [Message(name="on-demand", topic_id=None)]
    (refused,) = metadata(client, 12, wanted).topics
    assert refused.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    (first,) = metadata(client, 12, wanted, allow_auto_topic_creation=True).topics
    assert first.error_code == ErrorCode.LEADER_NOT_AVAILABLE
    (second,) = metadata(client, 12, wanted, allow_auto_topic_creation=True).topics
    assert (second.error_code, len(second.partitions)) == (0, 1)


def test_names_no_topic_can_have_are_not_created(client: WireClient) -> None:
    wanted = [Message(name="no good", topic_id=None), Message(name="__consumer_offsets", topic_id=None)]
    errors = [topic.error_code for topic in metadata(client, 12, wanted, allow_auto_topic_creation=True).topics]
    assert errors == [ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_operations_are_told_when_asked_for(client: WireClient) -> None:
    create(client, "operations")
    asked = metadata(
        client,
        9,
        [Message(name="operations")],
        include_cluster_authorized_operations=True,
        include_topic_authorized_operations=True,
    )
    assert (asked.cluster_authorized_operations, asked.topics[0].topic_authorized_operations) == (8096, 3576)
    silent = metadata(client, 9, [Message(name="operations")])
    assert silent.topics[0].topic_authorized_operations == NOT_ASKED


@pytest.mark.parametrize("version", range(2, 8))
def test_topics_are_created_in_every_version(client: WireClient, version: int) -> None:
    topic = Message(name=f"created-{version}", num_partitions=3, replication_factor=1, assignments=[], configs=[])
    reply = client.send(ApiKey.CREATE_TOPICS, Message(topics=[topic], timeout_ms=5000, validate_only=False), version)
    (created,) = reply.topics
    assert created.error_code == 0
    if version >= 5:
        assert (created.num_partitions, created.replication_factor) == (3, 1)
        assert {config.name: config.value for config in created.configs}["retention.ms"] == "604800000"
    if version >= 7:
        assert created.topic_id is not None


@pytest.mark.parametrize("version", range(1, 7))
def test_topics_are_deleted_in_every_version(client: WireClient, broker: Broker, version: int) -> None:
    name = f"deleted-{version}"
    create(client, name)
    request = Message(topics=[Message(name=name, topic_id=None)], topic_names=[name], timeout_ms=5000)
    (deleted,) = client.send(ApiKey.DELETE_TOPICS, request, version).responses
    assert (deleted.error_code, deleted.name) == (0, name)
    (gone,) = metadata(client, 12, [Message(name=name, topic_id=None)]).topics
    assert gone.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    folders = [folder.name for folder in broker.data.iterdir()]
    assert f"{name}-0" not in folders
    assert [folder for folder in folders if folder.startswith(f"{name}-0.") and folder.endswith("-delete")]


@pytest.mark.parametrize(("version", "error"), [(2, ErrorCode.INVALID_REQUEST), (6, ErrorCode.TOPIC_DELETION_DISABLED)])
def test_deletion_can_be_forbidden(version: int, error: ErrorCode) -> None:
    with Broker({"delete.topic.enable": "false"}) as careful, WireClient("127.0.0.1", careful.port) as client:
        create(client, "kept")
        request = Message(topics=[Message(name="kept", topic_id=None)], topic_names=["kept"], timeout_ms=5000)
        assert [one.error_code for one in client.send(ApiKey.DELETE_TOPICS, request, version).responses] == [error]


def test_partitions_are_added_and_can_be_used_at_once(client: WireClient, broker: Broker) -> None:
    create(client, "growing", partitions=1)
    more = Message(name="growing", count=3, assignments=None)
    request = Message(topics=[more], timeout_ms=5000, validate_only=False)
    assert [one.error_code for one in client.send(ApiKey.CREATE_PARTITIONS, request).results] == [0]
    assert (broker.data / "growing-2").is_dir()
    (again,) = client.send(ApiKey.CREATE_PARTITIONS, request).results
    assert (again.error_code, again.error_message) == (
        ErrorCode.INVALID_PARTITIONS,
        "Topic already has 3 partition(s).",
    )


def test_topic_settings_are_described_with_their_origin(client: WireClient) -> None:
    create(client, "settings", segment_bytes="1000")
    result = described(client, 2, "settings", ["segment.bytes", "min.insync.replicas"])
    configs = {config.name: config for config in result.configs}
    assert set(configs) == {"segment.bytes", "min.insync.replicas"}
    own = configs["segment.bytes"]
    assert (own.value, own.config_source, own.config_type, own.read_only) == ("1000", 1, 3, False)
    assert [(one.name, one.value, one.source) for one in own.synonyms] == [
        ("segment.bytes", "1000", 1),
        ("log.segment.bytes", "1073741824", 5),
    ]
    assert own.documentation
    assert configs["min.insync.replicas"].config_source == 5


def test_an_altered_topic_setting_is_in_force_when_the_answer_comes(client: WireClient, broker: Broker) -> None:
    create(client, "altered", segment_bytes="1000")
    result = altered(client, 2, "altered", ("retention.ms", 0, "5000"), ("segment.bytes", 1, None))
    assert result.error_code == 0
    assert broker.node is not None
    assert broker.node.broker is not None
    topic = broker.node.broker.partitions.topic("altered")
    assert topic is not None
    assert (topic.config.retention_ms, topic.config.segment_bytes) == (5000, 1_073_741_824)
    assert topic.partitions[0].log.config is topic.config


def test_a_dynamic_broker_setting_reaches_topics_that_inherit_it(client: WireClient) -> None:
    create(client, "heir")
    create(client, "owner", max_message_bytes="5000")
    assert altered(client, 4, "", ("message.max.bytes", 0, "2000")).error_code == 0
    assert altered(client, 4, "1", ("message.max.bytes", 0, "3000")).error_code == 0
    try:
        heir, owner = (described(client, 2, name, ["max.message.bytes"]).configs[0] for name in ("heir", "owner"))
        assert (heir.value, heir.config_source) == ("3000", 2)
        assert [(one.name, one.source) for one in heir.synonyms] == [
            ("message.max.bytes", 2),
            ("message.max.bytes", 3),
            ("message.max.bytes", 5),
        ]
        assert (owner.value, owner.config_source) == ("5000", 1)
        assert [config.name for config in described(client, 4, "").configs] == ["message.max.bytes"]
    finally:
        for name in ("", "1"):
            altered(client, 4, name, ("message.max.bytes", 1, None))


def test_the_older_api_replaces_all_settings(client: WireClient) -> None:
    create(client, "replaced", segment_bytes="1000", retention_ms="1")
    configs = [Message(name="retention.ms", value="2")]
    request = Message(
        resources=[Message(resource_type=2, resource_name="replaced", configs=configs)], validate_only=False
    )
    assert [one.error_code for one in client.send(ApiKey.ALTER_CONFIGS, request).responses] == [0]
    result = described(client, 2, "replaced")
    assert {one.name: one.value for one in result.configs if one.config_source == 1} == {"retention.ms": "2"}


@pytest.mark.parametrize(
    ("kind", "name", "error"),
    [
        (2, "nowhere", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (2, "no good", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (4, "99", ErrorCode.INVALID_REQUEST),
        (99, "x", ErrorCode.INVALID_REQUEST),
    ],
)
def test_resources_nobody_has_are_refused(client: WireClient, kind: int, name: str, error: ErrorCode) -> None:
    assert described(client, kind, name).error_code == error
    assert altered(client, kind, name, ("message.max.bytes", 0, "5")).error_code == error


def test_read_only_broker_settings_cannot_be_altered(client: WireClient) -> None:
    refused = altered(client, 4, "1", ("num.partitions", 0, "3"))
    assert (refused.error_code, refused.error_message) == (
        ErrorCode.INVALID_REQUEST,
        "Cannot update these configs dynamically: Set(num.partitions)",
    )


def test_log_levels_are_a_resource(client: WireClient) -> None:
    assert altered(client, 8, "1", ("moldau.log", 0, "DEBUG")).error_code == 0
    assert {one.name: one.value for one in described(client, 8, "1").configs}["moldau.log"] == "DEBUG"
    assert altered(client, 8, "1", ("moldau.log", 1, None)).error_code == 0
    assert altered(client, 8, "1", ("root", 1, None)).error_code == ErrorCode.INVALID_REQUEST
    assert altered(client, 8, "1", ("moldau.log", 0, "LOUD")).error_code == ErrorCode.INVALID_CONFIG


@pytest.mark.parametrize("version", range(1, 5))
def test_log_dirs_tell_sizes(client: WireClient, broker: Broker, version: int) -> None:
    create(client, f"sized-{version}", partitions=2)
    asked = [Message(topic=f"sized-{version}", partitions=[0, 1, 7])]
    (folder,) = client.send(ApiKey.DESCRIBE_LOG_DIRS, Message(topics=asked), version).results
    assert (folder.error_code, folder.log_dir) == (0, str(broker.data))
    (topic,) = folder.topics
    assert [(one.partition_index, one.partition_size, one.offset_lag) for one in topic.partitions] == [
        (0, 0, 0),
        (1, 0, 0),
    ]
    if version >= 4:
        assert folder.total_bytes >= folder.usable_bytes > 0


def test_the_cluster_is_described_to_clients_and_controllers_are_elsewhere(client: WireClient) -> None:
    asked = Message(include_cluster_authorized_operations=True, endpoint_type=1, include_fenced_brokers=True)
    reply = client.send(ApiKey.DESCRIBE_CLUSTER, asked, 2)
    assert [(one.broker_id, one.is_fenced) for one in reply.brokers] == [(1, False)]
    assert (reply.controller_id, reply.cluster_authorized_operations) == (1, 8096)
    for endpoint_type, error in ((2, ErrorCode.MISMATCHED_ENDPOINT_TYPE), (7, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)):
        asked = Message(endpoint_type=endpoint_type, include_fenced_brokers=False)
        assert client.send(ApiKey.DESCRIBE_CLUSTER, asked, 2).error_code == error


def test_topics_are_described_page_by_page(client: WireClient) -> None:
    create(client, "page-a", partitions=3)
    create(client, "page-b", partitions=2)
    names = [Message(name=name) for name in ("page-b", "page-a", "page-none")]
    pages, cursor = [], None
    while True:
        request = Message(topics=names, response_partition_limit=2, cursor=cursor)
        reply = client.send(ApiKey.DESCRIBE_TOPIC_PARTITIONS, request)
        pages.append([(one.name, [partition.partition_index for partition in one.partitions]) for one in reply.topics])
        cursor = reply.next_cursor
        if cursor is None:
            break
    assert pages == [
        [("page-a", [0, 1])],
        [("page-a", [2]), ("page-b", [0])],
        [("page-b", [1]), ("page-none", [])],
    ]


def test_the_quorum_of_one_is_described(client: WireClient) -> None:
    asked = [
        Message(topic_name=name, partitions=[Message(partition_index=0)]) for name in ("__cluster_metadata", "other")
    ]
    ours, other = client.send(ApiKey.DESCRIBE_QUORUM, Message(topics=asked)).topics
    (partition,) = ours.partitions
    assert (partition.error_code, partition.leader_id, partition.leader_epoch) == (0, 1, 1)
    assert [voter.replica_id for voter in partition.current_voters] == [1]
    assert other.partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_resources_with_settings_are_listed(client: WireClient) -> None:
    create(client, "listed")
    reply = client.send(ApiKey.LIST_CONFIG_RESOURCES, Message(resource_types=[2, 4]), 1)
    found = {(one.resource_type, one.resource_name) for one in reply.config_resources}
    assert {(2, "listed"), (4, "1")} <= found
    assert client.send(ApiKey.LIST_CONFIG_RESOURCES, Message(), 0).config_resources == []
    unknown = client.send(ApiKey.LIST_CONFIG_RESOURCES, Message(resource_types=[99]), 1)
    assert unknown.error_code == ErrorCode.UNSUPPORTED_VERSION


def found_coordinators(client: WireClient, **asked: object) -> list[tuple[int, int]]:
    """Ask until the coordinators' topic is there: the first answer may be that it is not yet."""
    deadline = time.monotonic() + 30
    while True:
        reply = client.send(ApiKey.FIND_COORDINATOR, Message(**asked), 6)
        found = [(one.error_code, one.node_id) for one in reply.coordinators]
        if all(code != ErrorCode.COORDINATOR_NOT_AVAILABLE for code, _ in found) or time.monotonic() > deadline:
            return found
        time.sleep(0.02)


@pytest.mark.parametrize("key_type", [0, 1])
def test_this_broker_coordinates_every_group_and_transaction(client: WireClient, key_type: int) -> None:
    assert found_coordinators(client, key_type=key_type, coordinator_keys=["a", "b"]) == [(0, 1), (0, 1)]
    old = client.send(ApiKey.FIND_COORDINATOR, Message(key="g", key_type=key_type), 2)
    assert (old.error_code, old.node_id) == (ErrorCode.NONE, 1)


def test_elections_and_moves_have_nothing_to_do_on_one_broker(client: WireClient) -> None:
    create(client, "elected")
    asked = [Message(topic="elected", partitions=[0, 9])]
    reply = client.send(ApiKey.ELECT_LEADERS, Message(election_type=0, topic_partitions=asked, timeout_ms=100), 2)
    assert [one.error_code for one in reply.replica_election_results[0].partition_result] == [
        ErrorCode.ELECTION_NOT_NEEDED,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    everything = client.send(ApiKey.ELECT_LEADERS, Message(election_type=0, topic_partitions=None, timeout_ms=100), 2)
    assert everything.replica_election_results == []
    assert client.send(ApiKey.LIST_PARTITION_REASSIGNMENTS, Message(timeout_ms=100, topics=None)).topics == []


def test_topics_settings_and_epochs_survive_a_restart() -> None:
    with Broker() as broker:
        with WireClient("127.0.0.1", broker.port) as client:
            topic_id = create(client, "lasting", partitions=2, retention_ms="5000")
            assert altered(client, 4, "", ("log.segment.bytes", 0, "2000")).error_code == 0
        for start in (1, 2):
            broker.restart()
            with WireClient("127.0.0.1", broker.port) as client:
                (topic,) = metadata(client, 12, [Message(name="lasting", topic_id=None)]).topics
                assert topic.topic_id == topic_id
                assert [one.leader_epoch for one in topic.partitions] == [start, start]
                configs = {one.name: one.value for one in described(client, 2, "lasting").configs}
                assert (configs["retention.ms"], configs["segment.bytes"]) == ("5000", "2000")
