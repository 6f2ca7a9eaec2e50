"""The group APIs answer by answer, in every version they announce, against a real broker."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.raw_client import RawClient
from tests.integration.server_process import wait_until

from moldau.broker.router import ROUTES
from moldau.client.wire import WireClient
from moldau.core.errors import ErrorCode
from moldau.protocol.api import ApiKey
from moldau.protocol.messages import Message
from moldau.testing import Broker

SUBSCRIPTION = b"\x00\x01\x00\x00\x00\x01\x00\x01t\x00\x00\x00\x00"
names = (f"g{number}" for number in itertools.count())


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


@pytest.fixture(scope="module")
def topic_id(broker: Broker) -> uuid.UUID:
    with WireClient("127.0.0.1", broker.port) as client:
        topic = Message(name="t", num_partitions=2, replication_factor=1, assignments=[], configs=[])
        reply = client.send(ApiKey.CREATE_TOPICS, Message(topics=[topic], timeout_ms=5000, validate_only=False))
        found: uuid.UUID = reply.topics[0].topic_id
        return found


@pytest.fixture
def client(broker: Broker, topic_id: uuid.UUID) -> Iterator[WireClient]:
    with WireClient("127.0.0.1", broker.port) as connected:
        connected.send(ApiKey.FIND_COORDINATOR, Message(key="g", key_type=0, coordinator_keys=["g"]))
        yield connected


@pytest.fixture
def group() -> str:
    return next(names)


def versions(api_key: int) -> range:
    return range(ROUTES[api_key].first, ROUTES[api_key].last + 1)


def join(client: WireClient, group: str, version: int, member_id: str = "", **changed: object) -> Message:
    request = Message(
        group_id=group,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id=member_id,
        group_instance_id=None,
        protocol_type="consumer",
        protocols=[Message(name="range", metadata=SUBSCRIPTION)],
        reason=None,
    )
    request.__dict__.update(changed)
    return client.send(ApiKey.JOIN_GROUP, request, version)


def joined(client: WireClient, group: str) -> str:
    """The only member of a stable group."""
    reply = join(client, group, 3)
    assert reply.error_code == 0
    sync(client, group, 5, reply.member_id, 1)
    member_id: str = reply.member_id
    return member_id


def sync(client: WireClient, group: str, version: int, member_id: str, generation: int, **changed: object) -> Message:
    request = Message(
        group_id=group,
        generation_id=generation,
        member_id=member_id,
        group_instance_id=None,
        protocol_type="consumer",
        protocol_name="range",
        assignments=[Message(member_id=member_id, assignment=b"everything")],
    )
    request.__dict__.update(changed)
    return client.send(ApiKey.SYNC_GROUP, request, version)


def heartbeat(client: WireClient, group: str, member_id: str, generation: int, version: int = 4) -> int:
    request = Message(group_id=group, generation_id=generation, member_id=member_id, group_instance_id=None)
    code: int = client.send(ApiKey.HEARTBEAT, request, version).error_code
    return code


def commit(
    client: WireClient,
    group: str,
    topic_id: uuid.UUID | None,
    *,
    version: int = 9,
    member_id: str = "",
    generation: int = -1,
    offset: int = 7,
    topic: str = "t",
    partition: int = 1,
    metadata: str | None = "note",
) -> int:
    partitions = [
        Message(
            partition_index=partition,
            committed_offset=offset,
            committed_leader_epoch=0,
            committed_metadata=metadata,
        )
    ]
    request = Message(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        group_instance_id=None,
        retention_time_ms=-1,
        topics=[Message(name=topic, topic_id=topic_id, partitions=partitions)],
    )
    reply = client.send(ApiKey.OFFSET_COMMIT, request, version)
    (answered,) = reply.topics
    assert answered.topic_id == topic_id if version >= 10 else answered.name == topic
    code: int = answered.partitions[0].error_code
    return code


def fetch(
    client: WireClient, group: str, topic_id: uuid.UUID | None, version: int, *, everything: bool = False
) -> Message:
    """What OffsetFetch says of the group."""
    topics = None if everything else [Message(name="t", topic_id=topic_id, partition_indexes=[0, 1])]
    one = Message(group_id=group, topics=topics, member_id=None, member_epoch=-1)
    request = Message(group_id=group, topics=topics, groups=[one], require_stable=True)
    reply = client.send(ApiKey.OFFSET_FETCH, request, version)
    return reply.groups[0] if version >= 8 else reply


# --- finding the coordinator ----------------------------------------------------------------------------


@pytest.mark.parametrize("version", versions(10))
def test_every_group_is_coordinated_here(client: WireClient, broker: Broker, version: int) -> None:
    reply = client.send(ApiKey.FIND_COORDINATOR, Message(key="any", key_type=0, coordinator_keys=["any", ""]), version)
    for found in reply.coordinators if version >= 4 else [reply]:
        assert (found.error_code, found.node_id, found.host, found.port) == (0, 1, "127.0.0.1", broker.port)


def test_a_kind_of_coordinator_nobody_knows_is_an_invalid_request(client: WireClient) -> None:
    reply = client.send(ApiKey.FIND_COORDINATOR, Message(key="g", key_type=9), 3)
    assert reply.error_code == ErrorCode.INVALID_REQUEST
    share = client.send(ApiKey.FIND_COORDINATOR, Message(key_type=2, coordinator_keys=["g"]), 5)
    assert share.coordinators[0].error_code == ErrorCode.INVALID_REQUEST


def test_offsets_are_kept_in_fifty_compacted_partitions(client: WireClient) -> None:
    (topic,) = client.send(ApiKey.METADATA, Message(topics=[Message(name="__consumer_offsets", topic_id=None)])).topics
    assert (len(topic.partitions), topic.is_internal) == (50, True)
    resource = Message(
        resource_type=2,
        resource_name="__consumer_offsets",
        configuration_keys=["cleanup.policy", "compression.type", "segment.bytes"],
    )
    (described,) = client.send(ApiKey.DESCRIBE_CONFIGS, Message(resources=[resource])).results
    assert {one.name: one.value for one in described.configs} == {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": "104857600",
    }


# --- membership -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", versions(11))
def test_join_in_every_version(client: WireClient, group: str, version: int) -> None:
    reply = join(client, group, version)
    if version >= 4:
        assert reply.error_code == ErrorCode.MEMBER_ID_REQUIRED
        reply = join(client, group, version, reply.member_id)
    assert (reply.error_code, reply.generation_id, reply.protocol_name) == (0, 1, "range")
    assert reply.leader == reply.member_id == reply.members[0].member_id
    assert reply.members[0].metadata == SUBSCRIPTION
    assert not reply.skip_assignment


@pytest.mark.parametrize("version", versions(11))
def test_a_refused_join_in_every_version(client: WireClient, group: str, version: int) -> None:
    reply = join(client, group, version, session_timeout_ms=1)
    assert (reply.error_code, reply.generation_id) == (ErrorCode.INVALID_SESSION_TIMEOUT, -1)
    assert reply.protocol_name == (None if version >= 7 else "")


@pytest.mark.parametrize("version", versions(14))
def test_sync_in_every_version(client: WireClient, group: str, version: int) -> None:
    member_id = join(client, group, 3).member_id
    assert sync(client, group, version, member_id, 5).error_code == ErrorCode.ILLEGAL_GENERATION
    reply = sync(client, group, version, member_id, 1)
    assert (reply.error_code, reply.assignment) == (0, b"everything")
    if version >= 5:
        assert (reply.protocol_type, reply.protocol_name) == ("consumer", "range")
        other = sync(client, group, version, member_id, 1, protocol_name="sticky")
        assert other.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize("version", versions(12))
def test_heartbeat_in_every_version(client: WireClient, group: str, version: int) -> None:
    member_id = joined(client, group)
    assert heartbeat(client, group, member_id, 1, version) == 0
    assert heartbeat(client, group, member_id, 0, version) == ErrorCode.ILLEGAL_GENERATION
    assert heartbeat(client, group, "stranger", 1, version) == ErrorCode.UNKNOWN_MEMBER_ID
    assert heartbeat(client, "no such group", member_id, 1, version) == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("version", versions(13))
def test_leave_in_every_version(client: WireClient, group: str, version: int) -> None:
    member_id = joined(client, group)

    def leave(group_id: str, who: str) -> Message:
        member = Message(member_id=who, group_instance_id=None, reason=None)
        return client.send(ApiKey.LEAVE_GROUP, Message(group_id=group_id, member_id=who, members=[member]), version)

    def code(reply: Message) -> int:
        found: int = reply.members[0].error_code if version >= 3 else reply.error_code
        return found

    assert code(leave("no such group", member_id)) == ErrorCode.UNKNOWN_MEMBER_ID
    assert code(leave(group, "stranger")) == ErrorCode.UNKNOWN_MEMBER_ID
    assert code(leave(group, member_id)) == 0
    assert heartbeat(client, group, member_id, 1) == ErrorCode.UNKNOWN_MEMBER_ID


# --- offsets --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", versions(8))
def test_commit_in_every_version(client: WireClient, group: str, topic_id: uuid.UUID, version: int) -> None:
    assert commit(client, group, topic_id, version=version, metadata=None) == 0
    found = fetch(client, group, topic_id, 8).topics[0].partitions
    assert [(one.partition_index, one.committed_offset, one.metadata) for one in found] == [(0, -1, ""), (1, 7, "")]


@pytest.mark.parametrize("version", versions(9))
def test_fetch_in_every_version(client: WireClient, group: str, topic_id: uuid.UUID, version: int) -> None:
    commit(client, group, topic_id)
    for everything in (False, True) if version >= 2 else (False,):
        reply = fetch(client, group, topic_id, version, everything=everything)
        (topic,) = reply.topics
        assert topic.topic_id == topic_id if version >= 10 else topic.name == "t"
        found = {one.partition_index: one for one in topic.partitions}
        assert (found[1].committed_offset, found[1].metadata, found[1].error_code) == (7, "note", 0)
        assert found[1].committed_leader_epoch == (0 if version >= 5 else -1)
        if everything:
            assert set(found) == {1}
        else:
            assert (found[0].committed_offset, found[0].metadata, found[0].error_code) == (-1, "", 0)


@pytest.mark.parametrize("version", versions(9))
def test_an_unknown_group_has_committed_nothing(client: WireClient, topic_id: uuid.UUID, version: int) -> None:
    reply = fetch(client, "nobody", topic_id, version)
    assert [one.committed_offset for one in reply.topics[0].partitions] == [-1, -1]
    if version >= 2:
        assert reply.error_code == 0


def test_topics_by_an_unknown_id(client: WireClient, group: str) -> None:
    unknown = uuid.uuid4()
    assert commit(client, group, unknown, version=10) == ErrorCode.UNKNOWN_TOPIC_ID
    (topic,) = fetch(client, group, unknown, 10).topics
    assert {one.error_code for one in topic.partitions} == {ErrorCode.UNKNOWN_TOPIC_ID}


def test_a_commit_that_must_not_be(client: WireClient, group: str, topic_id: uuid.UUID) -> None:
    assert commit(client, group, topic_id, topic="nowhere") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert commit(client, group, topic_id, partition=2) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert commit(client, group, topic_id, metadata="x" * 4097) == ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert commit(client, group, topic_id, generation=1, version=8) == ErrorCode.ILLEGAL_GENERATION
    assert commit(client, group, topic_id, generation=1, version=9) == ErrorCode.GROUP_ID_NOT_FOUND
    member_id = joined(client, group)
    assert commit(client, group, topic_id) == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(client, group, topic_id, member_id="stranger", generation=1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(client, group, topic_id, member_id=member_id, generation=2) == ErrorCode.ILLEGAL_GENERATION
    assert commit(client, group, topic_id, member_id=member_id, generation=1) == 0


# --- operators ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", versions(15))
def test_describe_in_every_version(client: WireClient, group: str, version: int) -> None:
    member_id = joined(client, group)
    request = Message(groups=[group, "nobody", ""], include_authorized_operations=True)
    found, missing, nameless = client.send(ApiKey.DESCRIBE_GROUPS, request, version).groups
    assert (found.error_code, found.group_state, found.protocol_type, found.protocol_data) == (
        0,
        "Stable",
        "consumer",
        "range",
    )
    (member,) = found.members
    assert (member.member_id, member.client_host) == (member_id, "/127.0.0.1")
    assert (member.member_metadata, member.member_assignment) == (SUBSCRIPTION, b"everything")
    assert missing.group_state == "Dead"
    assert missing.error_code == (ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else 0)
    assert nameless.error_code == ErrorCode.INVALID_GROUP_ID
    if version >= 3:
        assert found.authorized_operations > 0


@pytest.mark.parametrize("version", versions(16))
def test_list_in_every_version(client: WireClient, group: str, topic_id: uuid.UUID, version: int) -> None:
    joined(client, group)
    alone = next(names)
    commit(client, alone, topic_id)

    def listed(states: list[str], types: list[str]) -> dict[str, Message]:
        reply = client.send(ApiKey.LIST_GROUPS, Message(states_filter=states, types_filter=types), version)
        assert reply.error_code == 0
        return {one.group_id: one for one in reply.groups}

    found = listed([], [])
    assert (found[group].protocol_type, found[alone].protocol_type) == ("consumer", "")
    if version >= 4:
        assert found[group].group_state == "Stable"
        assert group in (stable := listed(["sTABLE"], []))
        assert alone not in stable
        assert not listed(["nonsense"], [])
    if version >= 5:
        assert found[group].group_type == "classic"
        assert group in listed([], ["Classic"])
        assert group not in listed([], ["consumer"])


@pytest.mark.parametrize("version", versions(42))
def test_delete_groups_in_every_version(client: WireClient, group: str, topic_id: uuid.UUID, version: int) -> None:
    alone = next(names)
    joined(client, group)
    commit(client, alone, topic_id)
    asked = [group, alone, "nobody", ""]
    reply = client.send(ApiKey.DELETE_GROUPS, Message(groups_names=asked), version)
    assert [(one.group_id, one.error_code) for one in reply.results] == [
        (group, ErrorCode.NON_EMPTY_GROUP),
        (alone, 0),
        ("nobody", ErrorCode.GROUP_ID_NOT_FOUND),
        ("", ErrorCode.INVALID_GROUP_ID),
    ]
    assert [one.committed_offset for one in fetch(client, alone, topic_id, 8).topics[0].partitions] == [-1, -1]


def test_delete_offsets(client: WireClient, group: str, topic_id: uuid.UUID) -> None:
    def delete(group_id: str, topic: str = "t") -> Message:
        topics = [Message(name=topic, partitions=[Message(partition_index=1)])]
        return client.send(ApiKey.OFFSET_DELETE, Message(group_id=group_id, topics=topics))

    assert delete("nobody").error_code == ErrorCode.GROUP_ID_NOT_FOUND
    member_id = joined(client, group)
    commit(client, group, topic_id, member_id=member_id, generation=1)
    (subscribed,) = delete(group).topics
    assert subscribed.partitions[0].error_code == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    alone = next(names)
    commit(client, alone, topic_id)
    assert delete(alone, "nowhere").topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert delete(alone).topics[0].partitions[0].error_code == 0
    assert fetch(client, alone, topic_id, 8, everything=True).topics == []


def test_offsets_in_a_deleted_topic_are_gone(client: WireClient, group: str) -> None:
    topic = Message(name="brief", num_partitions=1, replication_factor=1, assignments=[], configs=[])
    client.send(ApiKey.CREATE_TOPICS, Message(topics=[topic], timeout_ms=5000, validate_only=False))
    assert commit(client, group, None, topic="brief", partition=0) == 0
    client.send(ApiKey.DELETE_TOPICS, Message(topics=[Message(name="brief", topic_id=None)], timeout_ms=5000))
    assert fetch(client, group, None, 8, everything=True).topics == []


def test_replies_wait_for_the_disk_where_acknowledged_means_on_disk() -> None:
    with Broker({"moldau.flush.on.ack": "true"}) as broker, WireClient("127.0.0.1", broker.port) as client:
        topic = Message(name="t", num_partitions=2, replication_factor=1, assignments=[], configs=[])
        client.send(ApiKey.CREATE_TOPICS, Message(topics=[topic], timeout_ms=5000, validate_only=False))
        client.send(ApiKey.FIND_COORDINATOR, Message(key_type=0, coordinator_keys=["g"]))
        member_id = joined(client, "g")
        for offset in range(20):
            assert commit(client, "g", None, member_id=member_id, generation=1, offset=offset) == 0
        assert heartbeat(client, "g", member_id, 1) == 0
        assert fetch(client, "g", None, 8).topics[0].partitions[1].committed_offset == 19
        assert broker.node is not None
        assert broker.node.broker is not None
        assert broker.node.broker.data_plane.group_commit.rounds >= 20


def test_a_coordinator_without_its_topic_is_not_available(caplog: pytest.LogCaptureFixture) -> None:
    with (
        Broker({"offsets.topic.replication.factor": "3"}) as broker,
        WireClient("127.0.0.1", broker.port) as client,
    ):
        for _ in range(3):
            reply = client.send(ApiKey.FIND_COORDINATOR, Message(key_type=0, coordinator_keys=["g"]), 4)
            assert reply.coordinators[0].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert heartbeat(client, "g", "m", 1) == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert client.send(ApiKey.LIST_GROUPS, Message(states_filter=[], types_filter=[])).groups == []
    told = [one for one in caplog.messages if "__consumer_offsets could not be created" in one]
    assert len(told) == 1


def test_whoever_waits_when_the_broker_stops_is_sent_elsewhere(tmp_path: Path) -> None:
    with Broker({"group.initial.rebalance.delay.ms": "600000"}, data=tmp_path / "data") as broker:
        client = RawClient(broker.port)
        client.ask(10, 4, Message(key_type=0, coordinator_keys=["g"]))
        request = Message(
            group_id="g",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            member_id="",
            protocol_type="consumer",
            protocols=[Message(name="range", metadata=SUBSCRIPTION)],
        )
        client.send(client.frame(11, 3, request))
        waiting = broker.node.broker.coordinators.groups.shards.values()  # type: ignore[union-attr]
        wait_until(lambda: any(shard.waiting for shard in waiting), what="the join to be waiting")
    with client:
        assert client.receive(11, 3).error_code == ErrorCode.NOT_COORDINATOR
