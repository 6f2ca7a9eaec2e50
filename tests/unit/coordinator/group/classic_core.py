"""A group core behind a shard that keeps its records in a list: for telling stories about classic groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from moldau.coordinator.group.classic.group import ClassicGroup
from moldau.coordinator.group.classic.requests import (
    HeartbeatRequest,
    JoinRequest,
    LeavingMember,
    MemberProtocol,
    SyncRequest,
)
from moldau.coordinator.group.group_core import CommitRequest, GroupCore
from moldau.coordinator.group.offsets import OffsetToCommit
from moldau.coordinator.group.settings import GroupSettings
from moldau.coordinator.runtime.outcome import CoordinatorRecord, Producer
from moldau.coordinator.runtime.shard import Shard
from moldau.core.errors import ErrorCode, MoldauError
from moldau.log.errors import StorageError

GROUP = "g"
TOPIC_T = b"\x00\x01\x00\x00\x00\x01\x00\x01t\x00\x00\x00\x00"
"""A consumer's subscription to topic `t`."""


class Pending:
    """No reply yet."""

    def __init__(self) -> None:
        self.reply: Any = None
        self.is_there = False

    def __call__(self, reply: Any) -> None:
        assert not self.is_there, "answered twice"
        self.reply, self.is_there = reply, True


class Records:
    def __init__(self, records: list[CoordinatorRecord]) -> None:
        self.records = records
        self.error: MoldauError | None = None

    def append(
        self,
        records: Sequence[CoordinatorRecord],
        producer: Producer | None,
        then: Callable[[MoldauError | None], None],
    ) -> None:
        if self.error is None:
            self.records.extend(records)
        then(self.error)

    def when_committed(self, then: Callable[[], None]) -> None:
        then()


class Harness:
    def __init__(self, records: list[CoordinatorRecord] | None = None, **settings: int) -> None:
        self.settings = GroupSettings(**{"group_initial_rebalance_delay_ms": 0} | settings)
        self.now_ms = 1_000_000
        self.ids = 0
        self.log = Records(records if records is not None else [])
        self.core = GroupCore(lambda: self.settings, self._new_id)
        self.shard = Shard(self.core, self.log, on_deadline=lambda deadline_ms: None, clock=lambda: self.now_ms)
        for key, value in self.log.records:
            self.core.replay(key, value)
        self.shard.activate(self.now_ms)

    def _new_id(self) -> str:
        self.ids += 1
        return str(self.ids)

    def restarted(self) -> Harness:
        again = Harness(self.log.records)
        again.settings, again.now_ms = self.settings, self.now_ms
        return again

    @property
    def group(self) -> ClassicGroup:
        group = self.core.groups[GROUP]
        assert isinstance(group, ClassicGroup)
        return group

    def break_disk(self) -> None:
        self.log.error = StorageError("no space left")

    def advance(self, milliseconds: int) -> None:
        end_ms = self.now_ms + milliseconds
        while (deadline_ms := self.core.next_deadline_ms()) is not None and deadline_ms <= end_ms:
            self.now_ms = max(self.now_ms, deadline_ms)
            self.shard.on_time(self.now_ms)
        self.now_ms = end_ms

    def ask(self, decide: Callable[..., Any]) -> Pending:
        pending = Pending()
        self.shard.ask(decide, pending, self.now_ms)
        return pending

    def begin_join(self, member_id: str = "", **changed: Any) -> Pending:
        request = JoinRequest(
            group_id=GROUP,
            member_id=member_id,
            group_instance_id=None,
            client_id="client",
            client_host="/127.0.0.1",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=60_000,
            protocol_type="consumer",
            protocols=(MemberProtocol("range", TOPIC_T),),
            requires_known_member_id=False,
        )._replace(**changed)
        return self.ask(lambda core, ticket, now: core.join(request, ticket, now))

    def join(self, member_id: str = "", **changed: Any) -> Any:
        pending = self.begin_join(member_id, **changed)
        assert pending.is_there, "the join waits"
        return pending.reply

    def begin_sync(self, member_id: str, generation_id: int | None = None, **changed: Any) -> Pending:
        generation_id = self.group.generation_id if generation_id is None else generation_id
        request = SyncRequest(GROUP, generation_id, member_id)._replace(**changed)
        return self.ask(lambda core, ticket, now: core.sync(request, ticket, now))

    def sync(self, member_id: str, generation_id: int | None = None, **changed: Any) -> Any:
        pending = self.begin_sync(member_id, generation_id, **changed)
        assert pending.is_there, "the sync waits"
        return pending.reply

    def heartbeat(self, member_id: str, generation_id: int | None = None, instance_id: str | None = None) -> Any:
        generation_id = self.group.generation_id if generation_id is None else generation_id
        request = HeartbeatRequest(GROUP, generation_id, member_id, instance_id)
        return self.ask(lambda core, ticket, now: core.heartbeat(request, ticket, now)).reply

    def leave(self, *members: LeavingMember) -> Any:
        return self.ask(lambda core, ticket, now: core.leave(GROUP, members, ticket, now)).reply

    def commit(self, *offsets: OffsetToCommit, member_id: str = "", epoch: int = -1, **changed: Any) -> Any:
        request = CommitRequest(GROUP, member_id, None, epoch, offsets, 8)._replace(**changed)
        return self.ask(lambda core, ticket, now: core.commit(request, ticket, now)).reply

    def committed(self, *partitions: int, require_stable: bool = False) -> list[int | ErrorCode]:
        places = [("t", number) for number in partitions]
        reply = self.ask(
            lambda core, ticket, now: core.fetch_offsets(GROUP, places, ticket, require_stable=require_stable)
        ).reply
        return [one.error or one.offset for one in reply.offsets]

    def stable(self, count: int = 1) -> list[str]:
        """A group of this many members, each with its own name as assignment; their ids, the leader's first."""
        first = self.join()
        ids = [first.member_id]
        self.sync(ids[0], assignments=((ids[0], ids[0].encode()),))
        while len(ids) < count:
            joins = [self.begin_join()]
            joins += [self.begin_join(member_id) for member_id in ids]
            ids = [*ids, joins[0].reply.member_id]
            leader = joins[0].reply.leader
            syncs = [self.begin_sync(member_id) for member_id in ids if member_id != leader]
            self.sync(leader, assignments=tuple((one, one.encode()) for one in ids))
            assert all(one.reply.error is ErrorCode.NONE for one in syncs)
        return ids
