"""Consumer groups, their members and lags, in version 3. Start at `ConsumerGroups`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from moldau.client.admin import Admin
from moldau.client.errors import ClientError
from moldau.client.groups import GroupDescription, GroupListing, GroupMember, Groups
from moldau.core.ids import TopicPartition
from moldau.http.calls import Answer, Call
from moldau.http.endpoints import Endpoint
from moldau.rest.cluster import LATEST
from moldau.rest.errors import RestError, titled
from moldau.rest.routes.v3_resource import V3Resource

__all__ = ["ConsumerGroups"]

GROUP_NOT_FOUND = 40405
GROUP = "/consumer-groups/{consumer_group_id}"
_WORD_START = re.compile(r"(?<=[a-z])(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class Lag:
    at: TopicPartition
    current: int
    end: int
    member: GroupMember | None

    @property
    def lag(self) -> int:
        return max(0, self.end - self.current)

    @property
    def member_fields(self) -> dict[str, Any]:
        member = self.member
        return {
            "consumer_id": member.member_id if member else "",
            "instance_id": member.instance_id if member else None,
            "client_id": member.client_id if member else "",
        }


class ConsumerGroups(V3Resource):
    def endpoints(self) -> Iterator[Endpoint]:
        row = self.row
        yield row("GET", "/consumer-groups", self.groups, "The consumer groups.")
        yield row("GET", GROUP, self.group, "A consumer group.")
        yield row("GET", f"{GROUP}/consumers", self.consumers, "The members of a group.")
        member = f"{GROUP}/consumers/{{consumer_id}}"
        yield row("GET", member, self.consumer, "A member.")
        yield row("GET", f"{member}/assignments", self.assignments, "What a member reads.")
        place = "{topic_name}/partitions/{partition_id}"
        yield row("GET", f"{member}/assignments/{place}", self.assignment, "A partition that a member reads.")
        yield row("GET", f"{GROUP}/lag-summary", self.lag_summary, "How far a group is behind.")
        yield row("GET", f"{GROUP}/lags", self.lags, "How far it is behind in each partition.")
        yield row("GET", f"{GROUP}/lags/{place}", self.lag, "How far it is behind in a partition.")

    # Groups

    async def groups(self, call: Call) -> Answer:
        here = await self.cluster_id(call)

        def ask(admin: Admin) -> list[tuple[GroupListing, GroupDescription | None]]:
            groups = Groups(admin)
            listed = [one for one in groups.listings() if one.is_consumer_group]
            return [(one, groups.describe(one.group_id)) for one in listed]

        found = await self.proxy.cluster.ask(ask)
        data = [self._group(call, here, one, listing) for listing, one in found if one is not None]
        return self.listing(call, "KafkaConsumerGroupList", (here, "consumer-groups"), data)

    async def group(self, call: Call) -> Answer:
        here, found = await self.cluster_id(call), await self._describe(call)
        return Answer(self._group(call, here, found, None))

    async def _describe(self, call: Call) -> GroupDescription:
        group_id = call.parts["consumer_group_id"]
        found = None
        if group_id:
            found = await self.proxy.cluster.ask(lambda admin: Groups(admin).describe(group_id))
        if found is None or found.state.upper() == "DEAD":
            raise RestError(GROUP_NOT_FOUND, f"Consumer group {group_id} cannot be found.")
        return found

    def _group(self, call: Call, here: str, one: GroupDescription, listing: GroupListing | None) -> dict[str, Any]:
        path = (here, "consumer-groups", one.group_id)
        is_consumer = one.epoch is not None
        fields = {
            "cluster_id": here,
            "consumer_group_id": one.group_id,
            "is_simple": not one.members and not (listing.protocol if listing else one.assignor),
            "partition_assignor": one.assignor or "",
            "state": _WORD_START.sub("_", one.state).upper() or "UNKNOWN",
            "type": "CONSUMER" if is_consumer else "CLASSIC",
            "is_mixed_consumer_group": is_consumer and any(member.is_upgraded is False for member in one.members),
            "coordinator": self.related(call, (here, "brokers", one.coordinator.id)),
            "consumers": self.related(call, (*path, "consumers")),
            "lag_summary": self.related(call, (*path, "lag-summary")),
        }
        return self.entity(call, "KafkaConsumerGroup", path, {"kafka": here, "consumer-group": one.group_id}, fields)

    # Members

    async def consumers(self, call: Call) -> Answer:
        here, group = await self.cluster_id(call), await self._describe(call)
        data = [self._consumer(call, here, group.group_id, member) for member in group.members]
        return self.listing(call, "KafkaConsumerList", (here, "consumer-groups", group.group_id, "consumers"), data)

    async def consumer(self, call: Call) -> Answer:
        here = await self.cluster_id(call)
        group, member = await self._member(call)
        return Answer(self._consumer(call, here, group.group_id, member))

    async def _member(self, call: Call) -> tuple[GroupDescription, GroupMember]:
        group = await self._describe(call)
        for member in group.members:
            if member.member_id == call.parts["consumer_id"]:
                return group, member
        raise titled(404, f"Consumer {call.parts['consumer_id']} cannot be found.")

    def _consumer(self, call: Call, here: str, group_id: str, member: GroupMember) -> dict[str, Any]:
        path = (here, "consumer-groups", group_id, "consumers", member.member_id)
        fields = {
            "cluster_id": here,
            "consumer_group_id": group_id,
            "consumer_id": member.member_id,
            "instance_id": member.instance_id or None,
            "client_id": member.client_id,
            "assignments": self.related(call, (*path, "assignments")),
        }
        names = {"kafka": here, "consumer-group": group_id, "consumer": member.member_id}
        return self.entity(call, "KafkaConsumer", path, names, fields)

    async def assignments(self, call: Call) -> Answer:
        here = await self.cluster_id(call)
        group, member = await self._member(call)
        data = [self._assignment(call, here, group.group_id, member, at) for at in sorted(member.assignment)]
        path = (here, "consumer-groups", group.group_id, "consumers", member.member_id, "assignments")
        return self.listing(call, "KafkaConsumerAssignmentList", path, data)

    async def assignment(self, call: Call) -> Answer:
        here = await self.cluster_id(call)
        group, member = await self._member(call)
        for at in member.assignment:
            if at.topic == call.parts["topic_name"] and str(at.partition) == call.parts["partition_id"]:
                return Answer(self._assignment(call, here, group.group_id, member, at))
        raise titled(404, f"Consumer {member.member_id} does not read that partition.")

    def _assignment(
        self, call: Call, here: str, group_id: str, member: GroupMember, at: TopicPartition
    ) -> dict[str, Any]:
        group = (here, "consumer-groups", group_id)
        fields = {
            "cluster_id": here,
            "consumer_group_id": group_id,
            "consumer_id": member.member_id,
            "topic_name": at.topic,
            "partition_id": at.partition,
            "partition": self.related(call, (here, "topics", at.topic, "partitions", at.partition)),
            "lag": self.related(call, (*group, "lags", at.topic, "partitions", at.partition)),
        }
        path = (*group, "consumers", member.member_id, "assignments", at.topic, "partitions", at.partition)
        names = {"kafka": here, "consumer-group": group_id, "consumer": member.member_id, "assignment": at.topic}
        return self.entity(call, "KafkaConsumerAssignment", path, {**names, "partition": at.partition}, fields)

    # Lags

    async def _lags(self, call: Call) -> tuple[GroupDescription, list[Lag]]:
        group = await self._describe(call)
        readers = {at: member for member in group.members for at in member.assignment}

        def ask(admin: Admin) -> list[Lag]:
            committed = Groups(admin).committed(group.group_id)
            ends = admin.try_list_offsets(dict.fromkeys(committed, LATEST))
            return [
                Lag(at, offset.offset, end, readers.get(at))
                for at, offset in sorted(committed.items())
                if not isinstance(end := ends[at], ClientError)
            ]

        return group, await self.proxy.cluster.ask(ask)

    async def lags(self, call: Call) -> Answer:
        here = await self.cluster_id(call)
        group, lags = await self._lags(call)
        data = [self._lag(call, here, group.group_id, one) for one in lags]
        return self.listing(call, "KafkaConsumerLagList", (here, "consumer-groups", group.group_id, "lags"), data)

    async def lag(self, call: Call) -> Answer:
        here = await self.cluster_id(call)
        group, lags = await self._lags(call)
        for one in lags:
            if one.at.topic == call.parts["topic_name"] and str(one.at.partition) == call.parts["partition_id"]:
                return Answer(self._lag(call, here, group.group_id, one))
        raise titled(404, f"Group {group.group_id} has no committed offset for that partition.")

    def _lag(self, call: Call, here: str, group_id: str, one: Lag) -> dict[str, Any]:
        fields = {
            "cluster_id": here,
            "consumer_group_id": group_id,
            "topic_name": one.at.topic,
            "partition_id": one.at.partition,
            **one.member_fields,
            "current_offset": one.current,
            "log_end_offset": one.end,
            "lag": one.lag,
        }
        path = (here, "consumer-groups", group_id, "lags", one.at.topic, "partitions", one.at.partition)
        names = {"kafka": here, "consumer-group": group_id, "lag": one.at.topic, "partition": one.at.partition}
        return self.entity(call, "KafkaConsumerLag", path, names, fields)

    async def lag_summary(self, call: Call) -> Answer:
        here = await self.cluster_id(call)
        group, lags = await self._lags(call)
        if not lags:
            raise titled(404, f"Consumer group {group.group_id} has no committed offsets.")
        largest = max(lags, key=lambda one: one.lag)
        member = largest.member_fields
        path = (here, "consumer-groups", group.group_id)
        fields = {
            "cluster_id": here,
            "consumer_group_id": group.group_id,
            "max_lag_consumer_id": member["consumer_id"],
            "max_lag_instance_id": member["instance_id"],
            "max_lag_client_id": member["client_id"],
            "max_lag_topic_name": largest.at.topic,
            "max_lag_partition_id": largest.at.partition,
            "max_lag": largest.lag,
            "total_lag": sum(one.lag for one in lags),
            "max_lag_consumer": self.related(call, (*path, "consumers", member["consumer_id"])),
            "max_lag_partition": self.related(
                call, (here, "topics", largest.at.topic, "partitions", largest.at.partition)
            ),
        }
        names = {"kafka": here, "consumer-group": group.group_id}
        return Answer(self.entity(call, "KafkaConsumerGroupLagSummary", (*path, "lag-summary"), names, fields))
