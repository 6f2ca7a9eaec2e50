"""A seeded world of consumers around one group core: they come, go, stall, crash; replies are lost, the core restarts.

Clients follow one rule of the protocol: they say what they own only when they have taken up what they were told.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field

from moldau.coordinator.group.consumer.assignment import NOTHING, Assignment, is_within, overlaps, union
from moldau.coordinator.group.consumer.group import ConsumerGroup, ConsumerGroupState
from moldau.coordinator.group.consumer.membership import ConsumerFacts
from moldau.coordinator.group.consumer.requests import ConsumerHeartbeat, ConsumerHeartbeatReply
from moldau.coordinator.group.consumer.settings import ConsumerSettings
from moldau.coordinator.group.consumer.topics import TopicFacts, matching
from moldau.coordinator.group.group_core import GroupCore
from moldau.coordinator.group.settings import GroupSettings
from moldau.coordinator.runtime.outcome import CoordinatorRecord, Outcome
from moldau.core.errors import ErrorCode
from moldau.testing.simulation.kernel import Kernel

GROUP = "simulated"
HEARTBEAT_MS = 5000
NAMES = ("apples", "apricots", "bananas", "beans", "cherries")
PATTERNS = ("ap.*", "b.*s", "[a-c].*", "none.*")


@dataclass(frozen=True)
class FakeTopics:
    by_name: dict[str, TopicFacts]

    @property
    def moment(self) -> object:
        return self.by_name

    def names(self) -> Iterable[str]:
        return self.by_name

    def facts(self, name: str) -> TopicFacts | None:
        return self.by_name.get(name)

    def name_of(self, topic_id: uuid.UUID) -> str | None:
        return next((name for name, facts in self.by_name.items() if facts.topic_id == topic_id), None)


@dataclass
class Client:
    member_id: str
    instance_id: str | None
    names: tuple[str, ...]
    regex: str | None
    epoch: int = 0
    owned: Assignment = field(default_factory=lambda: NOTHING)
    told: Assignment | None = None
    """An assignment it has not taken up yet."""
    must_say_all: bool = True
    has_news: bool = False
    assignor: str | None = None

    def take_up(self) -> None:
        if self.told is not None:
            self.has_news |= self.told != self.owned
            self.owned, self.told = self.told, None

    def request(self) -> ConsumerHeartbeat:
        if self.must_say_all:
            self.take_up()
        brief = ConsumerHeartbeat(GROUP, self.member_id, self.epoch, "client", "/host", self.instance_id)
        if not self.must_say_all:
            says_owned = self.has_news and self.told is None
            return brief._replace(owned=self.owned if says_owned else None)
        return brief._replace(
            rebalance_timeout_ms=30_000,
            subscribed_topic_names=self.names,
            subscribed_topic_regex=self.regex or "",
            server_assignor=self.assignor,
            owned=self.owned,
        )

    def hear(self, reply: ConsumerHeartbeatReply, request: ConsumerHeartbeat) -> None:
        if reply.error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.GROUP_ID_NOT_FOUND):
            self.rejoin()
        elif reply.error is ErrorCode.NONE:
            self.must_say_all = False
            self.has_news &= request.owned is None
            assert reply.member_epoch >= self.epoch, "a member's epoch fell"
            self.epoch = reply.member_epoch
            if reply.assignment is not None:
                self.told = reply.assignment
        else:
            self.must_say_all = True

    def rejoin(self) -> None:
        self.epoch, self.owned, self.told, self.must_say_all, self.has_news = 0, NOTHING, None, True, False


@dataclass
class World:
    seed: int
    topics: FakeTopics = field(default_factory=lambda: FakeTopics({}))
    clients: list[Client] = field(default_factory=list)
    away: list[str] = field(default_factory=list)
    """Instance ids that said they would be back."""
    log: list[CoordinatorRecord] = field(default_factory=list)
    last_epoch: int = 0
    seen: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.kernel = Kernel(self.seed)
        self.random = self.kernel.random
        self.settings = ConsumerSettings(group_consumer_regex_refresh_interval_ms=20_000)
        self.core = self.new_core()
        self.loses = 0.15
        for name in NAMES[: self.random.randint(1, 3)]:
            self.set_topic(name)

    # --- the broker ---------------------------------------------------------------------------------

    def new_core(self) -> GroupCore:
        ids = iter(range(1_000_000))
        facts = ConsumerFacts(lambda: self.topics, lambda: self.settings)
        return GroupCore(GroupSettings, lambda: f"id-{next(ids)}", facts)

    def group(self) -> ConsumerGroup | None:
        group = self.core.groups.get(GROUP)
        return group if isinstance(group, ConsumerGroup) else None

    def carry_out(self, outcome: Outcome) -> bool:
        if outcome.records and self.random.random() < self.loses / 5:
            return False  # the disk is full
        self.log += outcome.records
        for key, value in outcome.records:
            self.core.replay(key, value)
        if outcome.then is not None:
            outcome.then()
        return True

    def restart(self) -> None:
        self.core = self.replayed()
        self.core.on_loaded(self.now_ms)

    def replayed(self) -> GroupCore:
        core = self.new_core()
        for key, value in self.log:
            core.replay(key, value)
        return core

    @property
    def now_ms(self) -> int:
        return self.kernel.now_ms

    def pass_time(self, elapsed_ms: int) -> None:
        self.kernel.run_for(elapsed_ms)
        while (deadline_ms := self.core.next_deadline_ms()) is not None and deadline_ms <= self.now_ms:
            self.carry_out(self.core.on_time(self.now_ms))

    def set_topic(self, name: str) -> None:
        present = self.topics.facts(name)
        count = self.random.randint(1, 7)
        facts = TopicFacts(uuid.UUID(int=self.random.getrandbits(128)), count)
        if present is not None:
            facts = TopicFacts(present.topic_id, present.partition_count + count)
        self.topics = FakeTopics({**self.topics.by_name, name: facts})

    def delete_topic(self, name: str) -> None:
        self.topics = FakeTopics({key: facts for key, facts in self.topics.by_name.items() if key != name})

    # --- the clients --------------------------------------------------------------------------------

    def send(self, client: Client) -> None:
        request = client.request()
        reply = self.ask(request)
        if reply is None or self.random.random() < self.loses:
            client.must_say_all = True
            return
        self.seen.add(reply.error.name)
        if reply.error in (ErrorCode.FENCED_INSTANCE_ID, ErrorCode.UNRELEASED_INSTANCE_ID):
            self.clients.remove(client)
            return
        client.hear(reply, request)

    def ask(self, request: ConsumerHeartbeat) -> ConsumerHeartbeatReply | None:
        """The reply, unless the request or the append was lost."""
        if self.random.random() < self.loses:
            return None
        outcome = self.core.consumer_heartbeat(request, 1, self.now_ms)
        if not self.carry_out(outcome):
            return None
        (_, reply), *_ = outcome.replies
        assert isinstance(reply, ConsumerHeartbeatReply)
        return reply

    def start_client(self) -> None:
        instance_id = None
        if self.random.random() < 0.3:
            instance_id = self.random.choice(self.away) if self.away else f"instance-{self.random.randint(0, 3)}"
            if instance_id in self.away:
                self.away.remove(instance_id)
        client = Client(f"member-{self.random.getrandbits(40)}", instance_id, (), None)
        client.assignor = self.random.choice((None, None, "uniform", "range"))
        self.subscribe(client)
        self.clients.append(client)

    def subscribe(self, client: Client) -> None:
        client.names = tuple(self.random.sample(NAMES, self.random.randint(0, 3)))
        client.regex = self.random.choice((None, None, *PATTERNS))
        client.must_say_all = True

    def stop_client(self, client: Client) -> None:
        self.clients.remove(client)
        manner = self.random.choice(("leave", "crash", "leave for a while"))
        request = ConsumerHeartbeat(GROUP, client.member_id, -1, "client", "/host", client.instance_id)
        if manner == "leave":
            self.ask(request)
        elif manner == "leave for a while" and client.instance_id is not None:
            self.ask(request._replace(member_epoch=-2))
            self.away.append(client.instance_id)

    def step(self) -> None:
        roll = self.random.random()
        client = self.random.choice(self.clients) if self.clients else None
        if client is None or (roll < 0.06 and len(self.clients) < 6):
            self.start_client()
        elif roll < 0.60:
            if self.random.random() < 0.8:
                client.take_up()
            self.send(client)
        elif roll < 0.75:
            self.pass_time(self.random.choice((100, 2000, HEARTBEAT_MS)))
        elif roll < 0.82:
            self.subscribe(client)
        elif roll < 0.86:
            self.stop_client(client)
        elif roll < 0.88:
            self.restart()
        elif roll < 0.90:
            self.pass_time(50_000)
        elif roll < 0.92:
            self.delete_topic(self.random.choice(NAMES))
        elif roll < 0.95:
            self.set_topic(self.random.choice(NAMES))
        else:
            client.take_up()

    # --- what must hold -----------------------------------------------------------------------------

    def check(self) -> None:
        group = self.group()
        if group is None:
            return
        assert group.epoch >= self.last_epoch, "the group's epoch fell"
        assert group.assignment_epoch <= group.epoch, "the target is ahead of the group"
        self.last_epoch = group.epoch
        everybody = NOTHING
        for member in group.members.values():
            assert member.member_epoch <= group.assignment_epoch, "a member is ahead of the target"
            assert not overlaps(everybody, member.held), "a partition has two holders"
            everybody = union(everybody, member.held)
        targets = NOTHING
        for target in group.targets.values():
            assert not overlaps(targets, target), "a partition has two targets"
            targets = union(targets, target)
        for client in self.clients:
            member = group.members.get(client.member_id)
            if member is not None:
                assert is_within(client.owned, member.held), "a client owns what it does not hold"

    def check_replay(self) -> None:
        assert self.replayed().groups == self.core.groups, "replayed and live state differ"

    def settle(self) -> None:
        """Everybody is well from now on: the group must come to rest with everything assigned."""
        self.loses = 0.0
        for _ in range(60):
            self.pass_time(HEARTBEAT_MS)
            for client in list(self.clients):
                client.take_up()
                self.send(client)
            self.check()

    def check_settled(self) -> None:
        group = self.group()
        if group is None:
            assert not self.clients
            return
        assert {client.member_id for client in self.clients} == set(group.members)
        assert group.state is (ConsumerGroupState.STABLE if self.clients else ConsumerGroupState.EMPTY), group.state
        subscribed: dict[str, set[uuid.UUID]] = {}
        for client in self.clients:
            names = {*client.names, *(matching(client.regex, self.topics.names()) if client.regex else ())}
            subscribed[client.member_id] = {facts.topic_id for name in names if (facts := self.topics.facts(name))}
            assert client.owned == group.members[client.member_id].assigned, "a client has not what it was given"
            assert set(client.owned) <= subscribed[client.member_id], "somebody has what it did not ask for"
        wanted = set().union(*subscribed.values())
        expected = {
            facts.topic_id: frozenset(range(facts.partition_count))
            for facts in self.topics.by_name.values()
            if facts.topic_id in wanted
        }
        held = NOTHING
        for client in self.clients:
            held = union(held, client.owned)
        assert held == expected, "not every partition is assigned"
        self.check_balance(group, subscribed)

    def check_balance(self, group: ConsumerGroup, subscribed: dict[str, set[uuid.UUID]]) -> None:
        if group.preferred_assignor() == "range":
            return
        loads = {client.member_id: sum(map(len, client.owned.values())) for client in self.clients}
        for giver in self.clients:
            for taker in self.clients:
                shared = set(giver.owned) & subscribed[taker.member_id]
                assert not shared or loads[giver.member_id] - loads[taker.member_id] < 2, "the load is not spread"
