"""A group core with two topics for tests of the consumer protocol: ask, and look at what it decided."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import Any
from uuid import UUID

from moldau.coordinator.group.consumer.group import ConsumerGroup
from moldau.coordinator.group.consumer.membership import ConsumerFacts
from moldau.coordinator.group.consumer.requests import ConsumerHeartbeat, ConsumerHeartbeatReply
from moldau.coordinator.group.consumer.settings import ConsumerSettings
from moldau.coordinator.group.consumer.topics import TopicFacts
from moldau.coordinator.group.group_core import GroupCore
from moldau.coordinator.group.settings import GroupSettings
from moldau.coordinator.runtime.outcome import CoordinatorRecord, Outcome

ORDERS, PAYMENTS = UUID(int=1), UUID(int=2)


class FakeTopics:
    def __init__(self, by_name: dict[str, TopicFacts]) -> None:
        self.by_name = by_name

    @property
    def moment(self) -> object:
        return self.by_name

    def names(self) -> Iterable[str]:
        return self.by_name

    def facts(self, name: str) -> TopicFacts | None:
        return self.by_name.get(name)

    def name_of(self, topic_id: UUID) -> str | None:
        return next((name for name, facts in self.by_name.items() if facts.topic_id == topic_id), None)


class ConsumerCore:
    def __init__(self, **settings: Any) -> None:
        self.topics = FakeTopics({"orders": TopicFacts(ORDERS, 4), "payments": TopicFacts(PAYMENTS, 2)})
        self.settings = ConsumerSettings(**settings)
        self.own_settings: dict[str, str] = {}
        self.now_ms = 1000
        self.log: list[CoordinatorRecord] = []
        self.replies: dict[int, Any] = {}
        self._tickets = count(1)
        self.core = self.new_core()

    def new_core(self) -> GroupCore:
        ids = count(1)
        facts = ConsumerFacts(lambda: self.topics, lambda: self.settings, lambda group_id: self.own_settings)
        return GroupCore(GroupSettings, lambda: f"id-{next(ids)}", facts)

    def carry_out(self, outcome: Outcome) -> None:
        self.log += outcome.records
        for key, value in outcome.records:
            self.core.replay(key, value)
        if outcome.then is not None:
            outcome.then()
        self.replies.update(outcome.replies)

    def ask(self, method: str, *request: Any) -> Any:
        """Have the core decide a request; its reply, or `None` while it waits."""
        ticket = next(self._tickets)
        self.carry_out(getattr(self.core, method)(*request, ticket, self.now_ms))
        return self.replies.get(ticket)

    def beat(self, member_id: str, epoch: int, **fields: Any) -> ConsumerHeartbeatReply:
        reply = self.ask("consumer_heartbeat", ConsumerHeartbeat("g", member_id, epoch, "client", "/host", **fields))
        assert isinstance(reply, ConsumerHeartbeatReply)
        return reply

    def join(self, member_id: str, *names: str, **fields: Any) -> ConsumerHeartbeatReply:
        told = {"subscribed_topic_names": names, "rebalance_timeout_ms": 30_000, "owned": {}, **fields}
        return self.beat(member_id, 0, **told)

    def pass_ms(self, elapsed_ms: int) -> None:
        self.now_ms += elapsed_ms
        while (deadline_ms := self.core.next_deadline_ms()) is not None and deadline_ms <= self.now_ms:
            self.carry_out(self.core.on_time(self.now_ms))

    @property
    def group(self) -> ConsumerGroup:
        group = self.core.groups["g"]
        assert isinstance(group, ConsumerGroup)
        return group
