"""Descriptions of groups of the consumer protocol, for ConsumerGroupDescribe. Pure."""

from __future__ import annotations

from typing import NamedTuple

from moldau.coordinator.group.consumer.assignment import Assignment
from moldau.coordinator.group.consumer.group import ConsumerGroup
from moldau.coordinator.group.consumer.heartbeat import assignor_of
from moldau.coordinator.group.consumer.settings import ConsumerSettings
from moldau.coordinator.group.group import Group

__all__ = ["DescribedConsumer", "DescribedConsumerGroup", "described_consumer_group"]


class DescribedConsumer(NamedTuple):
    member_id: str
    instance_id: str | None
    rack_id: str | None
    member_epoch: int
    client_id: str
    client_host: str
    subscribed_topic_names: tuple[str, ...]
    subscribed_topic_regex: str | None
    assigned: Assignment
    target: Assignment
    uses_classic_protocol: bool


class DescribedConsumerGroup(NamedTuple):
    state: str
    epoch: int
    assignment_epoch: int
    assignor: str
    members: tuple[DescribedConsumer, ...]


def described_consumer_group(group: Group | None, settings: ConsumerSettings) -> DescribedConsumerGroup | None:
    if not isinstance(group, ConsumerGroup):
        return None
    return DescribedConsumerGroup(
        group.state_name,
        group.epoch,
        group.assignment_epoch,
        assignor_of(group, settings),
        tuple(
            DescribedConsumer(
                member.member_id,
                member.metadata.instance_id,
                member.metadata.rack_id,
                member.member_epoch,
                member.metadata.client_id,
                member.metadata.client_host,
                member.metadata.subscribed_topic_names,
                member.metadata.subscribed_topic_regex,
                member.assigned,
                group.target_of(member.member_id),
                member.uses_classic_protocol,
            )
            for member in group.members.values()
        ),
    )
