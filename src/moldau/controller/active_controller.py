"""The active controller of a cluster: what brokers and their clients ask of the one controller that leads the quorum.

Decisions are those of a single node's controller, and those about several brokers (`controller.decisions.elections`,
`controller.broker_sessions`). Each is committed before the next one is made. While another node leads, every request is
refused with NOT_CONTROLLER. Start at `ActiveController.register`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple

from moldau.controller.broker_sessions import BrokerSessions, Heartbeat, HeartbeatAnswer
from moldau.controller.controller import Answer, Controller
from moldau.controller.decisions.brokers import BrokerRegistration, unregistration
from moldau.controller.decisions.configs import ConfigResult, ResourceChange
from moldau.controller.decisions.elections import IsrProposal, decide_isr, elect, elect_preferred, unbalanced
from moldau.controller.decisions.partition_changes import RECOVERING
from moldau.controller.decisions.replica_places import ReplicaPlace, decide_place
from moldau.controller.errors import RefusedError
from moldau.controller.image import NO_LEADER, MetadataImage, PartitionImage, TopicImage
from moldau.controller.quorum.replicated import ReplicatedQuorum
from moldau.controller.replay import apply_partition_change
from moldau.core.clock import Clock
from moldau.core.config import BrokerConfig
from moldau.core.config.sections import ClusterSettings
from moldau.core.errors import ErrorCode, MoldauError
from moldau.protocol.metadata_records import MetadataRecord, PartitionChangeRecord
from moldau.raft.core import NotLeaderError

__all__ = ["ActiveController", "ElectionResult", "IsrAnswer", "NotControllerError"]

log = logging.getLogger(__name__)

LONGEST_TICK_S = 0.5
UNCLEAN_ELECTION = "unclean.leader.election.enable"


class NotControllerError(MoldauError):
    """Another node is the active controller, or none is at the moment."""

    code = ErrorCode.NOT_CONTROLLER


class IsrAnswer(NamedTuple):
    error: ErrorCode
    partition: PartitionImage | None = None


class ElectionResult(NamedTuple):
    topic: str
    partition: int
    error: ErrorCode


class ActiveController(Controller):
    """Used on the loop of its controller. `on_claim` and `start` begin its work, `close` ends it."""

    def __init__(
        self,
        quorum: ReplicatedQuorum,
        config: Callable[[], BrokerConfig],
        clock: Clock,
        *,
        random: Random | None = None,
        has_heard_nobody: bool = False,
    ) -> None:
        """`has_heard_nobody`: the brokers that its first term begins with are gone, and none has a session."""
        super().__init__(quorum, quorum.image, config, random=random)
        self._replicated = quorum
        self._clock = clock
        settings = config().section(ClusterSettings)
        self._settings = settings
        self._sessions = BrokerSessions(
            session_timeout_ms=settings.session_timeout_ms,
            may_lose_data=lambda topic: self._may_lose_data(quorum.image, topic),
        )
        self._watch: asyncio.Task[None] | None = None
        self._claimed_epoch = -1
        self._has_heard_nobody = has_heard_nobody
        self.elections = 0
        self.unclean_elections = 0
        self.silent_brokers = 0
        self._balanced_ms = clock.monotonic_ms()

    # --- life -------------------------------------------------------------------------------------------

    def start(self) -> None:
        self._watch = asyncio.ensure_future(self._keep_watch())

    def close(self) -> None:
        if self._watch is not None:
            self._watch.cancel()

    async def _keep_watch(self) -> None:
        """Fence brokers that fell silent, and hand partitions back to their preferred leaders."""
        looked_ms = self._clock.monotonic_ms()
        while True:
            await asyncio.sleep(min(LONGEST_TICK_S, self._settings.session_timeout_ms / 10_000))
            now_ms = self._clock.monotonic_ms()
            # A process that was stopped has heard nobody meanwhile: that silence is its own.
            was_away = now_ms - looked_ms > self._settings.session_timeout_ms / 2
            looked_ms = now_ms
            if not self._replicated.is_active:
                continue
            if was_away or self._claimed_epoch != self._replicated.epoch:
                self._begin_term(now_ms)
            try:
                await self._fence_silent(now_ms)
                await self._balance(now_ms)
            except (MoldauError, OSError) as error:
                log.warning("checking the brokers' sessions failed, will retry: %s", error)

    def _begin_term(self, now_ms: int) -> None:
        self._claimed_epoch = self._replicated.epoch
        silence_ms = self._settings.session_timeout_ms if self._has_heard_nobody else 0
        self._has_heard_nobody = False
        self._sessions.begin(self._replicated.image, now_ms - silence_ms)
        self._balanced_ms = now_ms

    async def _fence_silent(self, now_ms: int) -> None:
        for node_id in self._sessions.expired(self._replicated.image, now_ms):
            silence_ms = self._settings.session_timeout_ms
            log.warning("broker %d has sent no heartbeat for %d ms and is fenced", node_id, silence_ms)
            await self._change(lambda image, node_id=node_id: (self._fence(image, node_id), None))  # type: ignore[misc]
            self.silent_brokers += 1

    def _fence(self, image: MetadataImage, node_id: int) -> list[MetadataRecord]:
        """Fence a broker that was not heard of in the meantime."""
        broker = image.brokers.get(node_id)
        if broker is None or broker.is_fenced or self._sessions.has_session(node_id, self._clock.monotonic_ms()):
            return []
        return self._sessions.fence(image, node_id)

    async def _balance(self, now_ms: int) -> None:
        if not self._settings.is_rebalancing or now_ms - self._balanced_ms < self._settings.rebalance_interval_s * 1000:
            return
        self._balanced_ms = now_ms
        await self._change(lambda image: (list(unbalanced(image)), None))

    # --- committing -------------------------------------------------------------------------------------

    async def _decide_and_commit(
        self, decide: Callable[[MetadataImage], tuple[list[MetadataRecord], Answer]], validate_only: bool
    ) -> Answer:
        """As a single node does, but the image follows the quorum, on this node as on all others."""
        async with self._lock:
            if not self._replicated.is_active:
                raise NotControllerError("this node is not the active controller")
            if self._claimed_epoch != self._replicated.epoch:
                self._begin_term(self._clock.monotonic_ms())
            records, answer = decide(self._replicated.image)
            if records and not validate_only:
                try:
                    await self._replicated.append(records)
                except NotLeaderError as error:
                    raise NotControllerError(str(error)) from error
                self._count(records)
            self.image = self._replicated.image
            return answer

    def _count(self, records: Sequence[MetadataRecord]) -> None:
        for one in records:
            if isinstance(one, PartitionChangeRecord) and one.leader >= 0:
                self.elections += 1
                self.unclean_elections += one.leader_recovery_state == RECOVERING

    # --- brokers ----------------------------------------------------------------------------------------

    async def register(self, broker: BrokerRegistration) -> int:
        """Register a broker; returns its epoch, raises `RefusedError`."""

        def decide(image: MetadataImage) -> tuple[list[MetadataRecord], int]:
            epoch = self._replicated.append_offset
            records, error = self._sessions.register(image, broker, epoch, self._clock.monotonic_ms())
            if error is not ErrorCode.NONE:
                raise RefusedError(error, f"broker {broker.node_id} cannot be registered: {error.name}")
            return records, epoch

        epoch = await self._change(decide)
        self._sessions.registered(broker.node_id, self._clock.monotonic_ms())
        log.info("broker %d is registered with epoch %d", broker.node_id, epoch)
        return epoch

    async def heartbeat(self, beat: Heartbeat) -> HeartbeatAnswer:
        return await self._change(lambda image: self._sessions.heartbeat(image, beat, self._clock.monotonic_ms()))

    async def alter_partitions(
        self, node_id: int, broker_epoch: int, proposals: Sequence[tuple[TopicImage, int, IsrProposal]]
    ) -> list[IsrAnswer]:
        """Commit the in-sync replicas that a leader proposes; one answer for each, in order."""

        def decide(image: MetadataImage) -> tuple[list[MetadataRecord], list[IsrAnswer]]:
            broker = image.brokers.get(node_id)
            if broker is None or broker.epoch != broker_epoch:
                raise RefusedError(ErrorCode.STALE_BROKER_EPOCH, f"broker {node_id} is registered with another epoch")
            records: list[MetadataRecord] = []
            answers = []
            for asked, number, proposal in proposals:
                topic = image.topic_by_id(asked.topic_id)
                if topic is None or number not in topic.partitions:
                    answers.append(IsrAnswer(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
                    continue
                decided = decide_isr(image, topic, number, proposal)
                if isinstance(decided, ErrorCode):
                    answers.append(IsrAnswer(decided))
                    continue
                records.append(decided)
                after = apply_partition_change(topic.partitions[number], decided)
                # The end of a reassignment may have made another replica the leader.
                is_led_anew = after.leader_epoch != topic.partitions[number].leader_epoch
                answers.append(IsrAnswer(ErrorCode.NEW_LEADER_ELECTED if is_led_anew else ErrorCode.NONE, after))
            return records, answers

        return await self._change(decide)

    async def alter_configs(
        self, changes: Callable[[MetadataImage], Sequence[ResourceChange]], *, validate_only: bool = False
    ) -> list[ConfigResult]:
        """As for a node alone; where data may be lost from now on, partitions without a leader get one at once."""
        names: set[str] = set()

        def noted(image: MetadataImage) -> Sequence[ResourceChange]:
            wanted = changes(image)
            names.update(op.name for change in wanted for op in change.ops)
            return wanted

        results = await super().alter_configs(noted, validate_only=validate_only)
        if UNCLEAN_ELECTION in names and not validate_only:
            await self._change(self._led_uncleanly)
        return results

    def _led_uncleanly(self, image: MetadataImage) -> tuple[list[MetadataRecord], None]:
        leaderless = [
            (topic, number)
            for topic in image.topics.values()
            if self._may_lose_data(image, topic.name)
            for number, partition in topic.partitions.items()
            if partition.leader == NO_LEADER
        ]
        elected = [elect(image, topic, number, may_lose=True) for topic, number in leaderless]
        return [one for one in elected if isinstance(one, PartitionChangeRecord)], None

    async def place_replicas(self, node_id: int, broker_epoch: int, places: Sequence[ReplicaPlace]) -> list[ErrorCode]:
        """Note in which directories a broker has replicas, or that it cannot use them; one code for each, in order."""

        def decide(image: MetadataImage) -> tuple[list[MetadataRecord], list[ErrorCode]]:
            broker = image.brokers.get(node_id)
            if broker is None:
                raise RefusedError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"broker {node_id} is not registered")
            if broker.epoch != broker_epoch:
                raise RefusedError(ErrorCode.STALE_BROKER_EPOCH, f"broker {node_id} is registered with another epoch")
            records: list[MetadataRecord] = []
            codes = []
            for place in places:
                decided = decide_place(image, node_id, place)
                codes.append(decided if isinstance(decided, ErrorCode) else ErrorCode.NONE)
                records += [] if isinstance(decided, ErrorCode) else decided
            return records, codes

        return await self._change(decide)

    def _unregistration(self, image: MetadataImage, node_id: int) -> list[MetadataRecord]:
        """A broker that is alive hands over what it leads first; it registers anew when it notices."""
        handed_over = self._sessions.fence(image, node_id) if image.is_alive(node_id) else []
        return [*handed_over, unregistration(image, node_id)]

    def _kraft_version(self) -> int:
        return self._replicated.kraft_version()

    # --- elections on request ---------------------------------------------------------------------------

    async def elect_leaders(self, wanted: Sequence[tuple[str, int]] | None, *, may_lose: bool) -> list[ElectionResult]:
        """Preferred or, if records may be lost, unclean elections; `None` means every partition that needs one."""

        def decide(image: MetadataImage) -> tuple[list[MetadataRecord], list[ElectionResult]]:
            records: list[MetadataRecord] = []
            results = []
            everything = [(one.topic, one.partition) for one, _ in image.partitions()]
            for name, number in everything if wanted is None else wanted:
                topic = image.topics.get(name)
                if topic is None or number not in topic.partitions:
                    results.append(ElectionResult(name, number, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
                    continue
                decided = (
                    elect(image, topic, number, may_lose=True) if may_lose else elect_preferred(image, topic, number)
                )
                if isinstance(decided, PartitionChangeRecord):
                    records.append(decided)
                    decided = ErrorCode.NONE
                if wanted is not None or decided is not ErrorCode.ELECTION_NOT_NEEDED:
                    results.append(ElectionResult(name, number, decided))
            return records, results

        return await self._change(decide)

    @property
    def quorum_is_active(self) -> bool:
        return self._replicated.is_active
