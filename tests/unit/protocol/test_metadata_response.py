"""The hand-written encoder of Metadata responses gives, in every version, what the schemas give."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.protocol.api import ApiKey
from moldau.protocol.hot_fields import NodeEndpoint
from moldau.protocol.messages import Message, encode_response
from moldau.protocol.metadata_response import (
    MetadataPartition,
    PartitionEncoder,
    encode_metadata_response,
    encode_metadata_topic,
)

VERSIONS = range(14)
int32 = st.integers(-(2**31), 2**31 - 1)
ids = st.lists(int32, max_size=4)
names = st.text(st.characters(exclude_categories=["Cs"]), max_size=140)

partitions = st.builds(MetadataPartition, st.integers(-1, 100), int32, int32, int32, ids, ids, ids)
topics = st.tuples(
    st.integers(-1, 100),
    names,
    st.one_of(st.none(), st.uuids().filter(lambda one: one.int != 0)),
    st.booleans(),
    st.lists(partitions, max_size=3),
    int32,
)
brokers = st.builds(NodeEndpoint, int32, names, int32, st.one_of(st.none(), names))


def expected(
    version: int, nodes: list[NodeEndpoint], told: list[tuple], cluster_id: str | None, error_code: int = 0
) -> bytes:  # type: ignore[type-arg]
    response = Message(
        throttle_time_ms=0,
        brokers=[Message(**one._asdict()) for one in nodes],
        cluster_id=cluster_id,
        controller_id=5,
        topics=[
            Message(
                error_code=error,
                name=name,
                topic_id=topic_id,
                is_internal=is_internal,
                partitions=[
                    Message(
                        error_code=one.error_code,
                        partition_index=one.number,
                        leader_id=one.leader_id,
                        leader_epoch=one.leader_epoch,
                        replica_nodes=list(one.replicas),
                        isr_nodes=list(one.isr),
                        offline_replicas=list(one.offline_replicas),
                    )
                    for one in inner
                ],
                topic_authorized_operations=operations,
            )
            for error, name, topic_id, is_internal, inner, operations in told
        ],
        cluster_authorized_operations=77,
        error_code=error_code,
    )
    return encode_response(ApiKey.METADATA, version, response)


def encoded(
    version: int, nodes: list[NodeEndpoint], told: list[tuple], cluster_id: str | None, error_code: int = 0
) -> bytes:  # type: ignore[type-arg]
    encoder = PartitionEncoder(version)
    return encode_metadata_response(
        version,
        brokers=nodes,
        cluster_id=cluster_id,
        controller_id=5,
        topics=[
            encode_metadata_topic(
                version,
                error_code=error,
                name=name,
                topic_id=topic_id,
                is_internal=is_internal,
                partitions=[encoder.encode(one) for one in inner],
                operations=operations,
            )
            for error, name, topic_id, is_internal, inner, operations in told
        ],
        operations=77,
        error_code=error_code,
    )


@pytest.mark.parametrize("version", VERSIONS)
@given(nodes=st.lists(brokers, max_size=3), told=st.lists(topics, max_size=3), cluster_id=st.one_of(st.none(), names))
def test_it_gives_what_the_schemas_give(
    version: int,
    nodes: list[NodeEndpoint],
    told: list[tuple],
    cluster_id: str | None,  # type: ignore[type-arg]
) -> None:
    assert encoded(version, nodes, told, cluster_id, 3) == expected(version, nodes, told, cluster_id, 3)


@pytest.mark.parametrize("version", [12, 13])
def test_a_topic_may_lack_its_name(version: int) -> None:
    told = [(100, None, uuid.UUID(int=7), False, [], 0)]
    assert encoded(version, [], told, None) == expected(version, [], told, None)


@pytest.mark.parametrize("version", VERSIONS)
def test_more_elements_than_one_byte_counts(version: int) -> None:
    many = [MetadataPartition(0, number, 1, 4, (1, 2, 3), (1, 2), (3,)) for number in range(300)]
    told = [(0, f"t{index}", uuid.UUID(int=index + 1), False, many if index < 2 else [], 0) for index in range(200)]
    assert encoded(version, [], told, "c") == expected(version, [], told, "c")
