"""Consumers of both protocols around a group that changes protocol under them: they come, go, stall, lose replies."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from tests.simulation.classic_group_world import Disk
from tests.simulation.consumer_group_world import GROUP, Client, FakeTopics

from moldau.coordinator.group.classic.consumer_protocol import decode_assignment, decode_subscription, encode_assignment
from moldau.coordinator.group.classic.group import ClassicGroup, ClassicState
from moldau.coordinator.group.classic.requests import (
    HeartbeatRequest,
    JoinReply,
    JoinRequest,
    LeavingMember,
    MemberProtocol,
    SyncReply,
    SyncRequest,
)
from moldau.coordinator.group.consumer.group import ConsumerGroup, ConsumerGroupState
from moldau.coordinator.group.consumer.membership import ConsumerFacts
from moldau.coordinator.group.consumer.requests import ConsumerHeartbeat, ConsumerHeartbeatReply
from moldau.coordinator.group.consumer.topics import TopicFacts
from moldau.coordinator.group.group_core import GroupCore
from moldau.coordinator.group.settings import GroupSettings
from moldau.coordinator.runtime.outcome import CoordinatorRecord
from moldau.coordinator.runtime.shard import Shard
from moldau.core.errors import ErrorCode
from moldau.testing.simulation.kernel import Kernel

TOPIC, PARTITIONS = "t", 7
TOPICS = FakeTopics({TOPIC: TopicFacts(UUID(int=7), PARTITIONS)})
SETTINGS = GroupSettings(group_initial_rebalance_delay_ms=500)


def subscription(owned: frozenset[int], generation_id: int) -> bytes:
    name = TOPIC.encode()
    topics = struct.pack(">hih", 2, 1, len(name)) + name + struct.pack(">i", -1)
    numbers = sorted(owned)
    held = struct.pack(">ih", 1, len(name)) + name + struct.pack(f">i{len(numbers)}i", len(numbers), *numbers)
    return topics + held + struct.pack(">i", generation_id)


def partitions_in(assigned: Any) -> frozenset[int]:
    return frozenset(number for _, numbers in assigned or () for number in numbers)


@dataclass
class ClassicClient:
    name: str
    is_cooperative: bool
    member_id: str = ""
    generation_id: int = -1
    owned: frozenset[int] = frozenset()
    phase: str = "join"
    """What it sends next: `join`, `sync` or `heartbeat`."""
    is_waiting: bool = False
    incarnation: int = 0
    assignments: tuple[tuple[str, bytes], ...] = ()

    def lose_connection(self) -> None:
        self.incarnation += 1
        self.is_waiting = False
        self.phase = "join"

    def hear_join(self, reply: JoinReply) -> None:
        if reply.error is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = reply.member_id
        elif reply.error is ErrorCode.UNKNOWN_MEMBER_ID:
            self.drop(keep_id=False)
        elif reply.error is ErrorCode.NONE:
            self.member_id, self.generation_id, self.phase = reply.member_id, reply.generation_id, "sync"
            self.assignments = self.assign(reply) if reply.leader == self.member_id else ()

    def assign(self, reply: JoinReply) -> tuple[tuple[str, bytes], ...]:
        """As a leader: deal partitions out; a cooperative one gives none away that somebody still uses."""
        order = sorted(member.member_id for member in reply.members)
        users: dict[int, str] = {}
        for member in reply.members:
            told = decode_subscription(member.metadata)
            assert told is not None
            users |= dict.fromkeys(partitions_in(told.owned), member.member_id)
        shares: dict[str, list[int]] = {member_id: [] for member_id in order}
        for number in range(PARTITIONS):
            taker = order[number % len(order)]
            if users.get(number, taker) == taker:
                shares[taker].append(number)
        return tuple((member_id, encode_assignment(2, [(TOPIC, numbers)])) for member_id, numbers in shares.items())

    def hear_sync(self, reply: SyncReply) -> None:
        if reply.error is ErrorCode.NONE:
            before, self.owned = self.owned, partitions_in(decode_assignment(reply.assignment))
            # Whoever lets go of something joins again, so that others can be given it.
            self.phase = "join" if self.is_cooperative and before - self.owned else "heartbeat"
        else:
            self.hear_error(reply.error)

    def hear_error(self, error: ErrorCode) -> None:
        if error is ErrorCode.REBALANCE_IN_PROGRESS:
            self.phase = "join"
        elif error is ErrorCode.UNKNOWN_MEMBER_ID:
            self.drop(keep_id=False)
        elif error is ErrorCode.ILLEGAL_GENERATION:
            self.drop(keep_id=True)

    def drop(self, *, keep_id: bool) -> None:
        self.owned, self.generation_id, self.phase = frozenset(), -1, "join"
        self.member_id = self.member_id if keep_id else ""


@dataclass
class MixedWorld:
    seed: int
    records: list[CoordinatorRecord] = field(default_factory=list)
    classic: list[ClassicClient] = field(default_factory=list)
    new: list[Client] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    """The kinds the group has been of, one after the other."""
    ids: int = 0

    def __post_init__(self) -> None:
        self.kernel = Kernel(self.seed)
        self.random = self.kernel.random
        self.is_cooperative = self.random.random() < 0.5
        self.loses = 0.1
        self.start()

    def start(self) -> None:
        self.disk = Disk(self.records)
        core = GroupCore(lambda: SETTINGS, self.new_id, ConsumerFacts(lambda: TOPICS))
        self.shard = Shard(core, self.disk, on_deadline=lambda deadline_ms: None, clock=lambda: self.now_ms)
        for key, value in self.records:
            core.replay(key, value)
        self.shard.activate(self.now_ms)

    def restart(self) -> None:
        for client in self.classic:
            client.lose_connection()
        self.start()

    def new_id(self) -> str:
        self.ids += 1
        return f"{self.ids:04d}"

    def group(self) -> ClassicGroup | ConsumerGroup | None:
        group = self.shard.core.groups.get(GROUP)
        assert group is None or isinstance(group, (ClassicGroup, ConsumerGroup))
        return group

    @property
    def now_ms(self) -> int:
        return self.kernel.now_ms

    def pass_ms(self, elapsed_ms: int) -> None:
        self.kernel.run_for(elapsed_ms)
        self.shard.on_time(self.now_ms)

    # --- clients ------------------------------------------------------------------------------------

    def ask(self, client: ClassicClient, decide: Callable[..., Any], hear: Callable[[Any], None]) -> None:
        incarnation = client.incarnation
        client.is_waiting = True

        def answer(reply: Any) -> None:
            if client.incarnation != incarnation:
                return
            client.is_waiting = False
            if self.random.random() < self.loses:
                client.lose_connection()
            elif isinstance(reply, (JoinReply, SyncReply)) or hear == client.hear_error:
                hear(reply)
            else:
                client.phase = "join"  # the coordinator had no answer

        self.shard.ask(decide, answer, self.now_ms)

    def act(self, client: ClassicClient) -> None:
        if client.is_waiting:
            return
        if client.phase == "join":
            self.join(client)
        elif client.phase == "sync":
            sync = SyncRequest(GROUP, client.generation_id, client.member_id, assignments=client.assignments)
            self.ask(client, lambda core, ticket, now: core.sync(sync, ticket, now), client.hear_sync)
        else:
            beat = HeartbeatRequest(GROUP, client.generation_id, client.member_id)
            self.ask(client, lambda core, ticket, now: core.heartbeat(beat, ticket, now), client.hear_error)

    def join(self, client: ClassicClient) -> None:
        if not client.is_cooperative:
            client.owned = frozenset()
        name = "cooperative" if client.is_cooperative else "eager"
        request = JoinRequest(
            group_id=GROUP,
            member_id=client.member_id,
            group_instance_id=None,
            client_id=client.name,
            client_host="/h",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=20_000,
            protocol_type="consumer",
            protocols=(MemberProtocol(name, subscription(client.owned, client.generation_id)),),
        )
        self.ask(client, lambda core, ticket, now: core.join(request, ticket, now), client.hear_join)

    def beat(self, client: Client) -> None:
        request = client.request()
        if self.random.random() < self.loses:
            client.must_say_all = True
            return
        reply = self.ask_new(request)
        if reply is None or self.random.random() < self.loses:
            client.must_say_all = True
        else:
            client.hear(reply, request)

    def ask_new(self, request: ConsumerHeartbeat) -> ConsumerHeartbeatReply | None:
        replies: list[Any] = []
        self.shard.ask(
            lambda core, ticket, now: core.consumer_heartbeat(request, ticket, now), replies.append, self.now_ms
        )
        return replies[0] if isinstance(replies[0], ConsumerHeartbeatReply) else None

    def stop(self, client: ClassicClient | Client) -> None:
        leaves = self.random.random() < 0.5
        if isinstance(client, ClassicClient):
            self.classic.remove(client)
            client.incarnation += 1
            leaving = [LeavingMember(client.member_id)]
            if leaves and client.member_id:
                self.shard.ask(
                    lambda core, ticket, now: core.leave(GROUP, leaving, ticket, now), lambda reply: None, self.now_ms
                )
        else:
            self.new.remove(client)
            if leaves:
                self.ask_new(ConsumerHeartbeat(GROUP, client.member_id, -1))

    def step(self) -> None:
        roll = self.random.random()
        self.disk.is_full = self.random.random() < self.loses / 4
        if roll < 0.05 and len(self.classic) < 4:
            self.classic.append(ClassicClient(f"classic{self.new_id()}", self.is_cooperative))
        elif roll < 0.08 and len(self.new) < 3:
            self.new.append(Client(f"new{self.new_id()}", None, (TOPIC,), None))
        elif roll < 0.13 and (everybody := [*self.classic, *self.new]):
            self.stop(self.random.choice(everybody))
        elif roll < 0.50 and self.classic:
            self.act(self.random.choice(self.classic))
        elif roll < 0.75 and self.new:
            client = self.random.choice(self.new)
            if self.random.random() < 0.8:
                client.take_up()
            self.beat(client)
        elif roll < 0.94:
            self.pass_ms(self.random.choice((50, 500, 2000)))
        elif roll < 0.96:
            self.pass_ms(self.random.choice((12_000, 46_000)))
        elif roll < 0.97:
            self.restart()
        elif self.classic:
            self.random.choice(self.classic).lose_connection()
        self.disk.is_full = False

    # --- what must hold -----------------------------------------------------------------------------

    def owned_by(self, client: ClassicClient | Client) -> frozenset[int]:
        if isinstance(client, ClassicClient):
            return client.owned
        return frozenset(number for numbers in client.owned.values() for number in numbers)

    def check(self) -> None:
        group = self.group()
        kind = "none" if group is None else group.kind
        if not self.kinds or self.kinds[-1] != kind:
            self.kinds.append(kind)
        if group is None:
            return
        users: dict[int, str] = {}
        for client in (*self.classic, *self.new):
            if client.member_id in group.members:
                for number in self.owned_by(client):
                    assert number not in users, f"{number} is used by {users[number]} and {client.member_id}"
                    users[number] = client.member_id

    def check_replay(self) -> None:
        group = self.group()
        if isinstance(group, ConsumerGroup):
            core = GroupCore(lambda: SETTINGS, self.new_id, ConsumerFacts(lambda: TOPICS))
            for key, value in self.records:
                core.replay(key, value)
            assert core.groups[GROUP] == group, "replayed and live state differ"

    def settle(self) -> None:
        self.loses = 0.0
        for round_number in range(200):
            self.pass_ms(1000)
            for client in list(self.classic):
                self.act(client)
            if round_number % 5 == 0:
                for newcomer in list(self.new):
                    newcomer.take_up()
                    self.beat(newcomer)
            self.check()
            if round_number % 20 == 19 and self.is_settled():
                return

    def is_settled(self) -> bool:
        try:
            self.check_settled()
        except AssertionError:
            return False
        return True

    def check_settled(self) -> None:
        group = self.group()
        everybody = [*self.classic, *self.new]
        if not everybody:
            assert group is None or group.is_empty
            return
        assert isinstance(group, ConsumerGroup if self.new else ClassicGroup), "the group is of the wrong kind"
        assert group.state in (ConsumerGroupState.STABLE, ClassicState.STABLE), group.state
        assert {client.member_id for client in everybody} == set(group.members), "somebody is missing or forgotten"
        owned = sorted(number for client in everybody for number in self.owned_by(client))
        assert owned == list(range(PARTITIONS)), f"{owned} are used"
