"""Descriptions of groups, for ListGroups and DescribeGroups. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from moldau.coordinator.group.classic.group import ClassicGroup, ClassicState
from moldau.coordinator.group.group import Group

__all__ = ["DescribedGroup", "DescribedMember", "ListedGroup", "described_classic", "list_groups"]


class ListedGroup(NamedTuple):
    group_id: str
    protocol_type: str
    state: str
    kind: str


class DescribedMember(NamedTuple):
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


class DescribedGroup(NamedTuple):
    state: str
    protocol_type: str
    protocol_name: str
    members: tuple[DescribedMember, ...]


def list_groups(groups: Iterable[Group], states: Collection[str], kinds: Collection[str]) -> list[ListedGroup]:
    """Groups in one of the states and of one of the types, both in lower case; an empty filter matches all."""
    return [
        ListedGroup(group.group_id, group.protocol_type_name, group.state_name, group.kind)
        for group in groups
        if (not states or group.state_name.lower() in states) and (not kinds or group.kind in kinds)
    ]


def described_classic(group: Group | None) -> DescribedGroup | None:
    """A group of the classic protocol; metadata and assignments are included while the group is stable."""
    if not isinstance(group, ClassicGroup):
        return None
    is_stable = group.state is ClassicState.STABLE
    return DescribedGroup(
        group.state_name,
        group.protocol_type_name,
        (group.protocol_name or "") if is_stable else "",
        tuple(
            DescribedMember(
                one.member_id,
                one.group_instance_id,
                one.client_id,
                one.client_host,
                one.metadata_for(group.protocol_name) if is_stable else b"",
                one.assignment if is_stable else b"",
            )
            for one in group.members.values()
        ),
    )
