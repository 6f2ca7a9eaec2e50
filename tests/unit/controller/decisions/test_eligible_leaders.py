"""Eligible leader replicas: who leaves the ISR below the minimum may lead again, and who may have lost records not."""

from __future__ import annotations

import uuid

import pytest

from moldau.controller.broker_sessions import BrokerSessions, Heartbeat
from moldau.controller.decisions.brokers import BrokerRegistration
from moldau.controller.decisions.configs import ConfigOp, ConfigOpType, ResourceChange, decide_config_changes
from moldau.controller.decisions.elections import leave, return_to
from moldau.controller.decisions.eligible_leaders import enabling, first_records
from moldau.controller.features import ELIGIBLE_LEADER_REPLICAS, METADATA_VERSION
from moldau.controller.image import (
    CLUSTER_DEFAULT,
    BrokerImage,
    ConfigResource,
    Endpoint,
    MetadataImage,
    PartitionImage,
    TopicImage,
)
from moldau.controller.replay import replay_records
from moldau.core.config import BrokerConfig
from moldau.core.errors import ErrorCode
from moldau.protocol.metadata_records import ClearElrRecord, ConfigRecord, FeatureLevelRecord, MetadataRecord

TOPIC_ID = uuid.UUID(int=700)
TOPIC, BROKER = 2, 4


class Cluster:
    """Three brokers with one partition; brokers go and come back."""

    def __init__(self, min_isr: int = 2) -> None:
        self.sessions = BrokerSessions(session_timeout_ms=1000, may_lose_data=lambda topic: False)
        members = (1, 2, 3)
        self.image = MetadataImage(
            topics={
                "t": TopicImage(
                    "t",
                    TOPIC_ID,
                    {0: PartitionImage(members, members, 1, directories=tuple(map(_directory, members)))},
                )
            },
            topic_names={TOPIC_ID: "t"},
            brokers={
                one: BrokerImage(one, one, uuid.UUID(int=one), {}, is_fenced=False, log_dirs=(_directory(one),))
                for one in members
            },
        )
        self.commit([FeatureLevelRecord(name=ELIGIBLE_LEADER_REPLICAS, feature_level=1)])
        self.commit(enabling(self.image, min_isr))

    def commit(self, records: list[MetadataRecord]) -> None:
        self.image = replay_records(self.image, records, offset=self.image.offset + 10, epoch=1).image

    def kill(self, node_id: int) -> None:
        self.commit(self.sessions.fence(self.image, node_id))

    def come_back(self, node_id: int, *, is_orderly: bool) -> None:
        known = self.image.brokers[node_id]
        broker = BrokerRegistration(
            node_id,
            uuid.uuid4(),
            (Endpoint("P", "h", 1),),
            None,
            known.log_dirs,
            known.epoch if is_orderly else -1,
        )
        epoch = self.image.offset + 1
        records, error = self.sessions.register(self.image, broker, epoch, 10_000)
        assert error is ErrorCode.NONE
        self.commit(records)
        beat = Heartbeat(node_id, epoch, self.image.offset, want_fence=False, want_shut_down=False)
        self.commit(self.sessions.heartbeat(self.image, beat, 10_000)[0])

    @property
    def partition(self) -> PartitionImage:
        return self.image.topics["t"].partitions[0]

    def alter(self, resource: ConfigResource, op: ConfigOp) -> tuple[list[MetadataRecord], ErrorCode]:
        decision = decide_config_changes(self.image, [ResourceChange(resource, (op,))], BrokerConfig({}))
        return decision.records, decision.results[0].error


def _directory(node_id: int) -> uuid.UUID:
    return uuid.UUID(int=1000 + node_id)


def test_below_the_minimum_those_that_leave_the_isr_stay_eligible_and_lead_when_nobody_else_is_left() -> None:
    cluster = Cluster()
    cluster.kill(2)
    assert (cluster.partition.isr, cluster.partition.eligible_leader_replicas) == ((1, 3), ())
    cluster.kill(3)
    assert (cluster.partition.isr, cluster.partition.eligible_leader_replicas) == ((1,), (3,))
    cluster.kill(1)
    now = cluster.partition
    assert (now.leader, now.isr, now.eligible_leader_replicas, now.last_known_elr) == (-1, (), (1, 3), (1,))

    cluster.come_back(2, is_orderly=True)
    assert cluster.partition.leader == -1
    cluster.come_back(3, is_orderly=True)
    now = cluster.partition
    assert (now.leader, now.isr, now.eligible_leader_replicas, now.last_known_elr) == (3, (3,), (1,), ())
    assert now.leader_recovery_state == 0


def test_who_ended_without_order_is_not_eligible_and_the_last_leader_leads_again() -> None:
    cluster = Cluster()
    for one in (2, 3, 1):
        cluster.kill(one)
    cluster.come_back(3, is_orderly=False)
    assert (cluster.partition.leader, cluster.partition.eligible_leader_replicas) == (-1, (1,))
    cluster.come_back(1, is_orderly=False)
    now = cluster.partition
    assert (now.leader, now.isr, now.eligible_leader_replicas) == (1, (1,), ())
    assert now.leader_recovery_state == 1, "it may lack records, and says so"


def test_the_last_leader_does_not_lead_from_an_empty_disk() -> None:
    cluster = Cluster(min_isr=1)
    for one in (2, 3, 1):
        cluster.kill(one)
    brokers = {**cluster.image.brokers, 1: cluster.image.brokers[1]._replace(log_dirs=(uuid.UUID(int=5000),))}
    cluster.image = MetadataImage(
        **{name: getattr(cluster.image, name) for name in MetadataImage.__slots__ if name != "brokers"},
        brokers=brokers,
    )
    cluster.come_back(1, is_orderly=False)
    assert cluster.partition.leader == -1


def test_a_partition_that_was_without_a_leader_before_the_feature_remembers_who_was_in_sync() -> None:
    cluster = Cluster()
    cluster.commit([FeatureLevelRecord(name=ELIGIBLE_LEADER_REPLICAS, feature_level=0)])
    for one in (1, 2, 3):
        cluster.kill(one)
    cluster.commit([FeatureLevelRecord(name=ELIGIBLE_LEADER_REPLICAS, feature_level=1)])
    cluster.come_back(3, is_orderly=False)
    assert (cluster.partition.leader, cluster.partition.leader_recovery_state) == (3, 1)


def test_enough_replicas_in_sync_clear_the_eligible_ones() -> None:
    cluster = Cluster(min_isr=1)
    cluster.kill(1)
    cluster.kill(2)
    assert (cluster.partition.isr, cluster.partition.eligible_leader_replicas) == ((3,), ())


def test_without_the_feature_the_last_in_sync_stays_in_the_isr() -> None:
    cluster = Cluster()
    cluster.commit([FeatureLevelRecord(name=ELIGIBLE_LEADER_REPLICAS, feature_level=0)])
    for one in (1, 2, 3):
        cluster.kill(one)
    assert (cluster.partition.leader, cluster.partition.isr) == (-1, (3,))
    assert not list(return_to(cluster.image, 1))
    assert not list(leave(cluster.image, 3))


@pytest.mark.parametrize("resource", [CLUSTER_DEFAULT, ConfigResource(TOPIC, "t")])
def test_another_minimum_clears_the_eligible_replicas_where_somebody_leads(resource: ConfigResource) -> None:
    cluster = Cluster()
    cluster.kill(2)
    cluster.kill(3)
    records, error = cluster.alter(resource, ConfigOp("min.insync.replicas", ConfigOpType.SET, "1"))
    assert error is ErrorCode.NONE
    assert [type(one) for one in records] == [ConfigRecord, ClearElrRecord]
    cluster.commit(records)
    assert (cluster.partition.isr, cluster.partition.eligible_leader_replicas) == ((1,), ())


def test_without_a_leader_nothing_was_committed_so_the_eligible_replicas_stay() -> None:
    cluster = Cluster()
    for one in (2, 3, 1):
        cluster.kill(one)
    records, _ = cluster.alter(CLUSTER_DEFAULT, ConfigOp("min.insync.replicas", ConfigOpType.SET, "1"))
    cluster.commit(records)
    assert cluster.partition.eligible_leader_replicas == (1, 3)


def test_the_minimum_belongs_to_the_cluster() -> None:
    cluster = Cluster()
    assert cluster.image.cluster_config["min.insync.replicas"] == "2"
    own = ConfigResource(BROKER, "1")
    assert cluster.alter(own, ConfigOp("min.insync.replicas", ConfigOpType.SET, "1"))[1] is ErrorCode.INVALID_CONFIG
    delete = ConfigOp("min.insync.replicas", ConfigOpType.DELETE)
    assert cluster.alter(CLUSTER_DEFAULT, delete)[1] is ErrorCode.INVALID_CONFIG
    cluster.commit([ConfigRecord(resource_type=BROKER, resource_name="1", name="min.insync.replicas", value="3")])
    assert [one.resource_name for one in enabling(cluster.image, 2) if isinstance(one, ConfigRecord)] == ["1"]


@pytest.mark.parametrize(
    ("levels", "begins"),
    [
        ({METADATA_VERSION: 25}, True),
        ({METADATA_VERSION: 21}, False),
        ({METADATA_VERSION: 25, ELIGIBLE_LEADER_REPLICAS: 0}, False),
    ],
)
def test_a_new_cluster_keeps_eligible_leaders_unless_it_was_formatted_otherwise(
    levels: dict[str, int], begins: bool
) -> None:
    given: list[MetadataRecord] = [FeatureLevelRecord(name=name, feature_level=level) for name, level in levels.items()]
    assert bool(first_records(given, 2)) is begins
