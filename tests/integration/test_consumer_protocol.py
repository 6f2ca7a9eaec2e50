"""The consumer protocol of KIP-848 with librdkafka: shared, moved, resumed; judged by the describe API."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from tests.integration.consumer_groups import (
    QUICK,
    create_topic,
    describe,
    heartbeat,
    join,
    new_consumer,
    owners,
    poll_until,
    produce,
    wire,
)

from moldau.cli.storage.command import main as kafka_storage
from moldau.client.wire import WireClient
from moldau.controller.features import SUPPORTED, FeatureRange
from moldau.core.errors import ErrorCode
from moldau.protocol.api import ApiKey
from moldau.protocol.messages import Message
from moldau.testing import Broker


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(QUICK) as running:
        create_topic(running, "t", 6)
        yield running


@pytest.fixture
def client(broker: Broker) -> Iterator[WireClient]:
    with wire(broker) as connected:
        yield connected


def is_settled(client: WireClient, members: int, partitions: int = 6) -> bool:
    group = describe(client)
    return group.group_state == "Stable" and len(group.members) == members and len(owners(group)) == partitions


def loads(client: WireClient) -> list[int]:
    return sorted(Counter(owners(describe(client)).values()).values())


@pytest.mark.parametrize("assignor", ["uniform", "range"])
def test_three_consumers_share_six_partitions_one_stops_one_comes(
    broker: Broker, client: WireClient, assignor: str
) -> None:
    seen: list[int] = []
    consumers = [new_consumer(broker, ["t"], group_remote_assignor=assignor) for _ in range(3)]
    poll_until(consumers, lambda: is_settled(client, 3), seen)
    assert loads(client) == [2, 2, 2]
    assert describe(client).assignor_name == assignor
    produce(broker, "t", range(60), 6)
    poll_until(consumers, lambda: len(seen) >= 60, seen)
    consumers.pop().close()
    poll_until(consumers, lambda: is_settled(client, 2), seen)
    assert loads(client) == [3, 3]
    consumers.append(new_consumer(broker, ["t"], group_remote_assignor=assignor))
    poll_until(consumers, lambda: is_settled(client, 3), seen)
    produce(broker, "t", range(60, 120), 6)
    poll_until(consumers, lambda: set(seen) == set(range(120)), seen)
    for consumer in consumers:
        consumer.close()
    assert describe(client).group_state == "Empty"


def test_consumers_beyond_the_partitions_stay_idle(broker: Broker, client: WireClient) -> None:
    create_topic(broker, "narrow", 1)
    consumers = [new_consumer(broker, ["narrow"]) for _ in range(3)]
    poll_until(consumers, lambda: is_settled(client, 3, 1))
    assert sorted(len(consumer.assignment()) for consumer in consumers) == [0, 0, 1]
    for consumer in consumers:
        consumer.close()


def test_a_member_that_falls_silent_is_replaced(broker: Broker, client: WireClient) -> None:
    join(client, "silent")
    consumer = new_consumer(broker, ["t"])
    poll_until([consumer], lambda: is_settled(client, 1))
    consumer.close()


def test_a_group_resumes_where_it_committed_even_after_a_restart(broker: Broker) -> None:
    produce(broker, "t", range(30), 6)
    seen: list[int] = []
    consumer = new_consumer(broker, ["t"], enable_auto_commit="false")
    poll_until([consumer], lambda: len(seen) == 30, seen)
    consumer.commit(asynchronous=False)
    broker.restart()
    produce(broker, "t", range(30, 42), 6)
    poll_until([consumer], lambda: len(seen) == 42, seen)
    consumer.close()
    again: list[int] = []
    consumer = new_consumer(broker, ["t"])
    poll_until([consumer], lambda: set(again) == set(range(30, 42)), again)
    consumer.close()


def test_a_pattern_finds_topics_made_later(broker: Broker, client: WireClient) -> None:
    consumer = new_consumer(broker, ["^t.*"])
    poll_until([consumer], lambda: is_settled(client, 1))
    create_topic(broker, "two", 2)
    poll_until([consumer], lambda: is_settled(client, 1, 8))
    poll_until([consumer], lambda: {one.topic for one in consumer.assignment()} == {"t", "two"})
    consumer.close()


def test_new_partitions_are_assigned(broker: Broker, client: WireClient) -> None:
    from confluent_kafka.admin import NewPartitions

    consumer = new_consumer(broker, ["t"])
    poll_until([consumer], lambda: is_settled(client, 1))
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    for future in admin.create_partitions([NewPartitions("t", 9)]).values():
        future.result()
    poll_until([consumer], lambda: is_settled(client, 1, 9))
    consumer.close()


def test_a_static_member_that_restarts_moves_nothing(broker: Broker, client: WireClient) -> None:
    first = new_consumer(broker, ["t"], group_instance_id="one")
    second = new_consumer(broker, ["t"], group_instance_id="two")
    poll_until([first, second], lambda: is_settled(client, 2))
    before = {one.partition for one in first.assignment()}
    epoch = describe(client).group_epoch
    first.close()
    first = new_consumer(broker, ["t"], group_instance_id="one")
    poll_until([first, second], lambda: {one.partition for one in first.assignment()} == before)
    assert describe(client).group_epoch == epoch
    first.close()
    second.close()


def test_admin_clients_see_the_group(broker: Broker, client: WireClient) -> None:
    consumer = new_consumer(broker, ["t"], client_id="reader")
    poll_until([consumer], lambda: is_settled(client, 1))
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    described = admin.describe_consumer_groups(["g"])["g"].result()
    assert (described.state.name, described.type.name, described.partition_assignor) == (
        "STABLE",
        "CONSUMER",
        "uniform",
    )
    assert [one.client_id for one in described.members] == ["reader"]
    assert sorted(one.partition for one in described.members[0].assignment.topic_partitions) == [0, 1, 2, 3, 4, 5]
    (listed,) = admin.list_consumer_groups().result().valid
    assert (listed.group_id, listed.state.name, listed.type.name) == ("g", "STABLE", "CONSUMER")
    consumer.close()


# --- the wire ---------------------------------------------------------------------------------------


def test_refusals_on_the_wire(client: WireClient) -> None:
    assert join(client, "m").error_code == ErrorCode.NONE
    assert heartbeat(client, "m", 9).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert heartbeat(client, "x", 1).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert heartbeat(client, "m", -3).error_code == ErrorCode.INVALID_REQUEST
    unknown = describe(client, "nobody")
    assert (unknown.error_code, unknown.error_message) == (ErrorCode.GROUP_ID_NOT_FOUND, "Group nobody not found.")


def test_commits_with_an_old_epoch_are_stale(broker: Broker, client: WireClient) -> None:
    assert join(client, "m").error_code == ErrorCode.NONE
    partition = Message(partition_index=0, committed_offset=1, committed_leader_epoch=-1, committed_metadata="")
    for epoch, version, error in (
        (1, 9, ErrorCode.NONE),
        (0, 9, ErrorCode.STALE_MEMBER_EPOCH),
        (0, 8, ErrorCode.ILLEGAL_GENERATION),
    ):
        request = Message(
            group_id="g",
            generation_id_or_member_epoch=epoch,
            member_id="m",
            group_instance_id=None,
            topics=[Message(name="t", partitions=[partition])],
        )
        (topic,) = client.send(ApiKey.OFFSET_COMMIT, request, version).topics
        assert topic.partitions[0].error_code == error, (epoch, version)


def test_a_broker_that_does_not_offer_the_protocol_says_so() -> None:
    with Broker({**QUICK, "group.coordinator.rebalance.protocols": "classic"}) as broker, wire(broker) as client:
        create_topic(broker, "t", 1)
        assert join(client, "m").error_code == ErrorCode.UNSUPPORTED_VERSION


def test_an_empty_group_changes_protocol_silently(broker: Broker, client: WireClient) -> None:
    for protocol in ("consumer", "classic", "consumer"):
        consumer = Consumer(
            {
                "bootstrap.servers": broker.bootstrap_servers,
                "group.id": "g",
                "group.protocol": protocol,
                "auto.offset.reset": "earliest",
                "log_level": 0,
            }
        )
        consumer.subscribe(["t"])
        poll_until([consumer], lambda reader=consumer: len(reader.assignment()) == 6)  # type: ignore[misc]
        consumer.commit(offsets=[TopicPartition("t", 0, 5)], asynchronous=False)
        assert consumer.committed([TopicPartition("t", 0)])[0].offset == 5
        consumer.close()


def test_a_groups_own_settings_are_told_with_the_next_heartbeat(client: WireClient) -> None:
    assert join(client, "m").heartbeat_interval_ms == 200
    for value, error in (("400", ErrorCode.NONE), ("1", ErrorCode.INVALID_CONFIG)):
        config = Message(name="consumer.heartbeat.interval.ms", config_operation=0, value=value)
        resource = Message(resource_type=32, resource_name="g", configs=[config])
        (reply,) = client.send(
            ApiKey.INCREMENTAL_ALTER_CONFIGS, Message(resources=[resource], validate_only=False)
        ).responses
        assert reply.error_code == error
    assert heartbeat(client, "m", 1).heartbeat_interval_ms == 400
    asked = Message(resource_type=32, resource_name="g", configuration_keys=None)
    (described,) = client.send(ApiKey.DESCRIBE_CONFIGS, Message(resources=[asked])).results
    shown = {one.name: (one.value, one.config_source) for one in described.configs}
    assert shown == {"consumer.heartbeat.interval.ms": ("400", 8), "consumer.session.timeout.ms": ("3000", 5)}


def finalized(broker: Broker) -> dict[str, int]:
    with wire(broker) as client:
        software = Message(client_software_name="test", client_software_version="1.0")
        reply = client.send(ApiKey.API_VERSIONS, software, 4)
        return {one.name: one.max_version_level for one in reply.finalized_features}


def test_a_cluster_of_an_earlier_release_gets_the_feature_at_its_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as earlier:
        earlier.setitem(SUPPORTED, "group.version", FeatureRange(0, 0))
        with Broker(data=tmp_path) as broker:
            assert "group.version" not in finalized(broker)
    with Broker(data=tmp_path) as broker:
        assert finalized(broker)["group.version"] == 1


def test_a_cluster_formatted_without_the_feature_stays_without_it(tmp_path: Path) -> None:
    settings = tmp_path / "server.properties"
    data = tmp_path / "data"
    settings.write_text(f"node.id=1\nlog.dirs={data}\nlisteners=PLAINTEXT://127.0.0.1:0\n")
    assert kafka_storage(["format", "-t", "AAAAAAAAAAAAAAAAAAAAAQ", "-c", str(settings), "-f", "group.version=0"]) == 0
    with Broker(QUICK, data=data) as broker, wire(broker) as client:
        create_topic(broker, "t", 1)
        assert finalized(broker).get("group.version", 0) == 0
        assert join(client, "m").error_code == ErrorCode.UNSUPPORTED_VERSION
