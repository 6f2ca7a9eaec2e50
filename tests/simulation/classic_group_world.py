"""A classic group in a seeded world: members that join, stall, vanish and come back, a disk that sometimes refuses,
and a coordinator that is restarted from its records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from moldau.coordinator.group.classic.group import ClassicGroup, ClassicState
from moldau.coordinator.group.classic.requests import (
    HeartbeatRequest,
    JoinReply,
    JoinRequest,
    LeaveReply,
    LeavingMember,
    MemberProtocol,
    SyncReply,
    SyncRequest,
)
from moldau.coordinator.group.group_core import CommitRequest, GroupCore
from moldau.coordinator.group.offsets import OffsetToCommit
from moldau.coordinator.group.settings import GroupSettings
from moldau.coordinator.runtime.outcome import CoordinatorRecord, Producer
from moldau.coordinator.runtime.shard import Shard
from moldau.core.errors import ErrorCode, MoldauError
from moldau.log.errors import StorageError
from moldau.testing.simulation.kernel import Kernel

GROUP = "g"
PARTITIONS = 6
SETTINGS = GroupSettings(group_initial_rebalance_delay_ms=500, group_max_size=5)
SUBSCRIPTION = b"\x00\x01\x00\x00\x00\x01\x00\x01t\x00\x00\x00\x00"


class Disk:
    """Keeps what was appended; commits when told to."""

    def __init__(self, records: list[CoordinatorRecord]) -> None:
        self.records = records
        self.is_full = False
        self._waiting: list[Callable[[], None]] = []
        self.is_lazy = False

    def append(
        self,
        records: Sequence[CoordinatorRecord],
        producer: Producer | None,
        then: Callable[[MoldauError | None], None],
    ) -> None:
        if self.is_full:
            then(StorageError("no space left"))
            return
        self.records.extend(records)
        then(None)

    def when_committed(self, then: Callable[[], None]) -> None:
        if self.is_lazy or self._waiting:
            self._waiting.append(then)
        else:
            then()

    def commit(self) -> None:
        waiting, self._waiting = self._waiting, []
        for then in waiting:
            then()


@dataclass
class Client:
    """A consumer as far as the coordinator can tell."""

    name: str
    instance_id: str | None = None
    member_id: str = ""
    generation_id: int = -1
    is_leader: bool = False
    is_alive: bool = True
    owned: frozenset[int] | None = None
    members: tuple[str, ...] = ()
    waiting_since_ms: int | None = None
    protocols: tuple[str, ...] = ("range", "roundrobin")
    incarnation: int = 0

    def forget(self) -> None:
        self.member_id, self.generation_id, self.is_leader, self.owned = "", -1, False, None


@dataclass
class World:
    seed: int
    seen: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.kernel = Kernel(self.seed)
        self.random = self.kernel.random
        self.records: list[CoordinatorRecord] = []
        self.ids = 0
        self.clients = [Client(f"c{n}", instance_id=f"i{n}" if self.random.random() < 0.3 else None) for n in range(6)]
        self.assigned: dict[tuple[int, int], dict[int, str]] = {}
        """By restart count and generation: who owns which partition."""
        self.restarts = 0
        self.newest_assigned_generation = -1
        self.start()

    # --- the coordinator --------------------------------------------------------------------------------

    def start(self) -> None:
        self.disk = Disk(self.records)
        core = GroupCore(lambda: SETTINGS, self.new_id)
        self.shard = Shard(core, self.disk, on_deadline=lambda deadline_ms: None, clock=lambda: self.now_ms)
        for key, value in self.records:
            core.replay(key, value)
        self.shard.activate(self.now_ms)

    def restart(self) -> None:
        """Everybody who waits loses the connection; what was appended is found again."""
        self.restarts += 1
        for client in self.clients:
            client.waiting_since_ms = None
            client.incarnation += 1
        self.start()

    def new_id(self) -> str:
        self.ids += 1
        return f"{self.ids:04d}"

    def group(self) -> ClassicGroup | None:
        group = self.shard.core.groups.get(GROUP)
        assert group is None or isinstance(group, ClassicGroup)
        return group

    # --- what clients do --------------------------------------------------------------------------------

    def ask(self, client: Client, decide: Callable[..., Any], then: Callable[[Any], None]) -> None:
        incarnation = client.incarnation
        client.waiting_since_ms = self.now_ms

        def answer(reply: Any) -> None:
            if client.incarnation == incarnation:
                client.waiting_since_ms = None
                error = reply if isinstance(reply, ErrorCode) else getattr(reply, "error", ErrorCode.NONE)
                self.seen.add(error.name)
                then(reply)

        self.shard.ask(decide, answer, self.now_ms)

    def join(self, client: Client) -> None:
        request = JoinRequest(
            group_id=GROUP,
            member_id=client.member_id,
            group_instance_id=client.instance_id,
            client_id=client.name,
            client_host="/h",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=20_000,
            protocol_type="consumer",
            protocols=tuple(MemberProtocol(name, SUBSCRIPTION) for name in client.protocols),
            requires_known_member_id=self.random.random() < 0.8,
        )
        client.owned = None
        self.ask(
            client,
            lambda core, ticket, now: core.join(request, ticket, now),
            lambda reply: self.on_joined(client, reply),
        )

    def on_joined(self, client: Client, reply: JoinReply | ErrorCode) -> None:
        if isinstance(reply, ErrorCode):
            return
        if reply.error is ErrorCode.MEMBER_ID_REQUIRED:
            client.member_id = reply.member_id
        elif reply.error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            client.forget()
        elif reply.error is ErrorCode.NONE:
            assert reply.generation_id >= client.generation_id or client.member_id != reply.member_id
            client.member_id, client.generation_id = reply.member_id, reply.generation_id
            client.is_leader = reply.leader == reply.member_id and not reply.skip_assignment
            client.members = tuple(one.member_id for one in reply.members)
            if client.is_leader:
                assert client.member_id in client.members

    def sync(self, client: Client) -> None:
        shares: dict[str, list[int]] = {member_id: [] for member_id in client.members}
        if client.is_leader:
            for number in range(PARTITIONS):
                shares[client.members[number % len(client.members)]].append(number)
        request = SyncRequest(
            GROUP,
            client.generation_id,
            client.member_id,
            client.instance_id,
            "consumer",
            None,
            tuple((member_id, bytes(share)) for member_id, share in shares.items()) if client.is_leader else (),
        )
        self.ask(
            client,
            lambda core, ticket, now: core.sync(request, ticket, now),
            lambda reply: self.on_synced(client, reply),
        )

    def on_synced(self, client: Client, reply: SyncReply | ErrorCode) -> None:
        error = reply if isinstance(reply, ErrorCode) else reply.error
        if error is ErrorCode.NONE:
            assert isinstance(reply, SyncReply)
            client.owned = frozenset(reply.assignment)
            owners = self.assigned.setdefault((0, client.generation_id), {})
            for number in client.owned:
                holder = owners.setdefault(number, client.name)
                assert holder == client.name, f"{holder} and {client.name} own {number} in {client.generation_id}"
            assert client.generation_id >= self.newest_assigned_generation or not client.owned
            self.newest_assigned_generation = max(self.newest_assigned_generation, client.generation_id)
        else:
            self.on_error(client, error)

    def on_error(self, client: Client, error: ErrorCode) -> None:
        if error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            client.forget()
        elif error in (ErrorCode.ILLEGAL_GENERATION, ErrorCode.REBALANCE_IN_PROGRESS):
            client.generation_id, client.owned = -1, None

    def heartbeat(self, client: Client) -> None:
        request = HeartbeatRequest(GROUP, client.generation_id, client.member_id, client.instance_id)
        self.ask(
            client,
            lambda core, ticket, now: core.heartbeat(request, ticket, now),
            lambda error: self.on_error(client, error),
        )

    def commit(self, client: Client) -> None:
        number = self.random.randrange(PARTITIONS)
        offsets = (OffsetToCommit("t", number, self.random.randrange(1000)),)
        request = CommitRequest(GROUP, client.member_id, client.instance_id, client.generation_id, offsets, 9)

        def on_reply(reply: Any) -> None:
            if isinstance(reply, ErrorCode):
                self.on_error(client, reply)

        self.ask(client, lambda core, ticket, now: core.commit(request, ticket, now), on_reply)

    def leave(self, client: Client) -> None:
        leaving = [LeavingMember(client.member_id, client.instance_id)]

        def on_reply(reply: LeaveReply | ErrorCode) -> None:
            client.forget()

        self.ask(client, lambda core, ticket, now: core.leave(GROUP, leaving, ticket, now), on_reply)

    # --- steps ------------------------------------------------------------------------------------------

    def step(self) -> None:
        dice = self.random.random()
        self.disk.is_full = self.random.random() < 0.02
        self.disk.is_lazy = self.random.random() < 0.2
        if dice < 0.25:
            self.pass_time(self.random.choice((10, 400, 3000, 9000)))
        elif dice < 0.26:
            self.restart()
        else:
            self.act(self.random.choice(self.clients))
        self.disk.is_full = False
        if self.random.random() < 0.6:
            self.disk.commit()

    def act(self, client: Client) -> None:
        dice = self.random.random()
        if not client.is_alive:
            if dice < 0.2:  # started anew, a static one under its old name
                client.is_alive = True
                client.forget()
            return
        if dice < 0.03:
            client.is_alive = False
            client.incarnation += 1
            client.waiting_since_ms = None
        elif dice < 0.06:
            client.protocols = self.random.choice((("range", "roundrobin"), ("roundrobin",), ("roundrobin", "range")))
        elif dice < 0.10 and client.waiting_since_ms is None and client.member_id:
            self.leave(client)
        elif dice < 0.13:
            client.incarnation += 1  # the connection broke, the reply is lost
            client.waiting_since_ms = None
        else:
            self.behave(client)

    def behave(self, client: Client) -> None:
        """What a good client does next."""
        if not client.is_alive or client.waiting_since_ms is not None:
            return
        if client.generation_id < 0 or not client.member_id:
            self.join(client)
        elif client.owned is None:
            self.sync(client)
        elif self.random.random() < 0.3:
            self.commit(client)
        else:
            self.heartbeat(client)

    @property
    def now_ms(self) -> int:
        return self.kernel.now_ms

    def pass_time(self, milliseconds: int) -> None:
        end_ms = self.now_ms + milliseconds
        while (deadline_ms := self.shard.core.next_deadline_ms()) is not None and deadline_ms <= end_ms:
            self.kernel.run_until(max(self.now_ms, deadline_ms))
            self.shard.on_time(self.now_ms)
        self.kernel.run_until(end_ms)

    # --- what must hold ---------------------------------------------------------------------------------

    def check(self) -> None:
        group = self.group()
        if group is None:
            return
        assert group.state is not ClassicState.STABLE or group.members
        assert group.leader is None or group.leader in group.members
        assert set(group.static_members.values()) <= group.members.keys()
        assert group.pending_sync <= group.members.keys()
        # Static members that are away keep their place, and others may come meanwhile.
        dynamic = [one for one in group.members.values() if one.group_instance_id is None]
        assert len(dynamic) <= SETTINGS.group_max_size or group.state is ClassicState.PREPARING
        for client in self.clients:
            if client.waiting_since_ms is not None and not self.disk._waiting:
                assert self.now_ms - client.waiting_since_ms <= 5 * 60_000, f"{client.name} waits forever"

    def check_replay(self) -> None:
        """Recovery finds what the running coordinator knows to last."""
        again = GroupCore(lambda: SETTINGS, self.new_id)
        for key, value in self.records:
            again.replay(key, value)
        assert again.offsets.of(GROUP).keys() == self.shard.core.offsets.of(GROUP).keys()
        for place, committed in again.offsets.of(GROUP).items():
            assert committed.offset == self.shard.core.offsets.of(GROUP)[place].offset
        live, restored = self.group(), again.groups.get(GROUP)
        if live is None or live.state not in (ClassicState.STABLE, ClassicState.EMPTY) or live.state_changed_ms < 0:
            return
        assert isinstance(restored, ClassicGroup)
        assert (restored.state, restored.generation_id, restored.protocol_name) == (
            live.state,
            live.generation_id,
            live.protocol_name,
        )
        assert {one.member_id: one.assignment for one in restored.members.values()} == {
            one.member_id: one.assignment for one in live.members.values()
        }

    def settle(self) -> None:
        """No more trouble: everybody behaves, and time passes."""
        self.disk.is_lazy = False
        self.disk.commit()
        for client in self.clients[:-2]:
            client.protocols = ("range", "roundrobin")
            client.is_alive = True
        for client in self.clients[-2:]:
            client.is_alive = False
            client.incarnation += 1
        for _ in range(60):
            for client in self.clients:
                self.behave(client)
            self.pass_time(2000)
            self.disk.commit()

    def check_settled(self) -> None:
        group = self.group()
        assert group is not None
        assert group.state is ClassicState.STABLE, group.state
        alive = [client for client in self.clients if client.is_alive]
        assert {client.member_id for client in alive} == set(group.members)
        owned = sorted(number for client in alive for number in client.owned or ())
        assert owned == list(range(PARTITIONS)), owned
        assert {client.generation_id for client in alive} == {group.generation_id}
