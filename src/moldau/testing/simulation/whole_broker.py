"""A broker of a whole simulated cluster: a process with a node of the metadata quorum and a replica of each partition.

Start at `BrokerProcess`; `PartitionRules` carries what replicas of one partition say to each other, and judges them.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from moldau.broker.replication.leading import IsrWish
from moldau.controller.broker_sessions import BrokerSessions, Heartbeat, HeartbeatAnswer
from moldau.controller.decisions import elections
from moldau.controller.decisions.brokers import BrokerRegistration
from moldau.controller.decisions.elections import IsrProposal
from moldau.controller.image import Endpoint, MetadataImage, PartitionImage
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition
from moldau.protocol.metadata_records import MetadataRecord
from moldau.testing.simulation.kernel import InvariantError, Kernel
from moldau.testing.simulation.metadata_node import MetadataNode, Question
from moldau.testing.simulation.replica_cluster import ACKNOWLEDGED_STAYS, ONE_CONTENT, ONE_LEADER, REPLICAS_AGREE
from moldau.testing.simulation.replica_node import Entry, Fetch, FetchAnswer, ReplicaNode
from moldau.testing.simulation.transactions import CoordinatorReplica
from moldau.testing.simulation.whole_partition import PartitionReplica

if TYPE_CHECKING:
    from moldau.testing.simulation.whole_cluster import WholeCluster

__all__ = ["BrokerProcess", "PartitionRules"]

BEAT_MS = 200


class BrokerProcess:
    """Its disks outlive it; everything else is gone when it is started again."""

    def __init__(
        self, cluster: WholeCluster, raft: MetadataNode, kinds: Mapping[TopicPartition, type[PartitionReplica]]
    ) -> None:
        self.cluster = cluster
        self.id = raft.id
        self.raft = raft
        self.replicas = {
            place: kind(cluster.rules[place], raft.id, place.topic, place.partition) for place, kind in kinds.items()
        }
        self.is_alive = False
        self.life = 0
        self.wants_stop = False
        self._held: list[Callable[[], None]] = []
        self._epoch = -1
        self._is_stale = False
        self._incarnation = uuid.UUID(int=0)

    @property
    def is_frozen(self) -> bool:
        return self.raft.is_frozen

    # --- life -------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start what belongs to the broker; its node of the quorum has started."""
        self.is_alive = True
        self.life += 1
        self.wants_stop, self._epoch, self._is_stale = False, -1, False
        self._incarnation = uuid.UUID(int=self.cluster.kernel.random.getrandbits(127) + 1000)
        self._held = []
        for replica in self.replicas.values():
            replica.start()
        self._beat_on()

    def start_again(self) -> None:
        if not self.is_alive:
            self.raft.start()
            self.start()

    def kill(self, *, loses_power: bool = False) -> None:
        self.cluster.kernel.note("broker %d is killed", self.id)
        self.is_alive = False
        self.raft.crash(loses_power=loses_power)
        for replica in self.replicas.values():
            replica.stop(loses_power=loses_power)

    def freeze(self) -> None:
        self.cluster.kernel.note("broker %d is frozen", self.id)
        self.raft.freeze()
        for replica in self.replicas.values():
            replica.freeze()

    def thaw(self) -> None:
        if not self.is_frozen:
            return
        self.cluster.kernel.note("broker %d goes on", self.id)
        self.raft.thaw()
        held, self._held = self._held, []
        for action in held:
            action()
        for replica in self.replicas.values():
            replica.thaw()

    def run(self, action: Callable[[], None], life: int) -> None:
        if self.is_alive and life == self.life:
            if self.is_frozen:
                self._held.append(action)
            else:
                action()

    def set_full(self, *, is_full: bool) -> None:
        self.raft.disk.log.is_full = is_full
        for replica in self.replicas.values():
            replica.log.is_full = is_full

    def flush(self) -> None:
        for replica in self.replicas.values():
            replica.log.flush()

    def describe(self) -> str:
        logs = {
            str(place): (one.is_leader, one.high_watermark, one.log.end_offset) for place, one in self.replicas.items()
        }
        return f"broker {self.id}: alive {self.is_alive}, epoch {self._epoch}, image {self.raft.image.offset}, {logs}"

    # --- the controller ---------------------------------------------------------------------------------

    def _beat_on(self) -> None:
        life = self.life
        self._beat()
        self.cluster.kernel.after(BEAT_MS, lambda: self.run(self._beat_on, life))

    def _beat(self) -> None:
        kernel = self.cluster.kernel
        if self._epoch < 0 or self._is_stale:
            self.cluster.ask_controller(self, self._registration(self._incarnation), self._on_registered)
            return
        beat = Heartbeat(self.id, self._epoch, self.raft.image.offset, False, self.wants_stop)

        def question(
            image: MetadataImage, sessions: BrokerSessions, _: int
        ) -> tuple[Sequence[MetadataRecord], HeartbeatAnswer]:
            return sessions.heartbeat(image, beat, kernel.now_ms)

        self.cluster.ask_controller(self, question, self._on_beat)

    def _on_beat(self, answer: HeartbeatAnswer) -> None:
        if answer.error is ErrorCode.STALE_BROKER_EPOCH:
            self._is_stale = True
        elif answer.should_shut_down and self.wants_stop:
            self.cluster.kernel.count("orderly stops")
            self.kill()
            self.cluster.kernel.after(self.cluster.kernel.random.randrange(50, 2_000), self.start_again)

    def _registration(self, incarnation: uuid.UUID) -> Question:
        directory = uuid.UUID(int=1000 + self.id)
        endpoint = Endpoint("PLAINTEXT", "localhost", 9092)
        broker = BrokerRegistration(self.id, incarnation, (endpoint,), None, (directory,))

        def question(
            image: MetadataImage, sessions: BrokerSessions, offset: int
        ) -> tuple[Sequence[MetadataRecord], int | None]:
            now_ms = self.cluster.kernel.now_ms
            records, error = sessions.register(image, broker, offset, now_ms)
            if error is not ErrorCode.NONE:
                return [], None
            sessions.registered(self.id, now_ms)
            return records, offset

        return question

    def _on_registered(self, epoch: int) -> None:
        self._epoch, self._is_stale = max(self._epoch, epoch), False
        for replica in self.replicas.values():
            replica.broker_epoch = self._epoch
        self.on_image(self.raft.image)

    def on_image(self, image: MetadataImage) -> None:
        """What the quorum committed; nothing from before this process was registered counts."""
        if not self.is_alive:
            return
        for replica in self.replicas.values():
            replica.on_image(image)
            if isinstance(replica, CoordinatorReplica):
                replica.follow_leadership(self.cluster)

    @property
    def epoch(self) -> int:
        return self._epoch


class PartitionRules:
    """What is around the replicas of one partition."""

    def __init__(self, cluster: WholeCluster, place: TopicPartition) -> None:
        self._cluster = cluster
        self._place = place
        self._acknowledged: dict[int, Entry] = {}
        self._committed: dict[int, Entry] = {}
        self._leaders: dict[int, int] = {}

    @property
    def kernel(self) -> Kernel:
        return self._cluster.kernel

    @property
    def min_isr(self) -> int:
        return self._cluster.min_isr

    def beat(self, node: ReplicaNode) -> None:
        """The process has the heartbeats."""

    def ask_for_metadata(self, node: ReplicaNode) -> None:
        """The process follows the quorum."""

    def propose(self, node: ReplicaNode, leader_epoch: int, wish: IsrWish) -> None:
        broker = self._cluster.brokers[node.node_id]
        members = tuple((one, broker.epoch if one == node.node_id else epoch) for one, epoch in wish.isr)
        proposal = IsrProposal(node.node_id, leader_epoch, wish.partition_epoch, members)

        def question(
            image: MetadataImage, sessions: BrokerSessions, _: int
        ) -> tuple[Sequence[MetadataRecord], ErrorCode]:
            topic = image.topics.get(self._place.topic)
            if topic is None:
                return [], ErrorCode.UNKNOWN_TOPIC_ID
            decided = elections.decide_isr(image, topic, self._place.partition, proposal)
            if isinstance(decided, ErrorCode):
                return [], decided
            grows = len(members) > len(topic.partitions[self._place.partition].isr)
            self.kernel.count("ISRs expanded" if grows else "ISRs shrunk")
            return [decided], ErrorCode.NONE

        def answered(code: ErrorCode) -> None:
            if code in (ErrorCode.INELIGIBLE_REPLICA, ErrorCode.INVALID_REQUEST):
                node.on_refused(leader_epoch)

        self._cluster.ask_controller(broker, question, answered)

    def fetch(self, follower: ReplicaNode, leader_id: int, asked: Fetch, number: int) -> None:
        network, life = self._cluster.network, follower.life
        leader = self._cluster.brokers[leader_id].replicas[self._place]

        def at_leader() -> None:
            answer: FetchAnswer = leader.on_fetch(asked)
            network.send(
                leader_id,
                follower.node_id,
                lambda: follower.run(lambda: follower.on_answer(number, asked, answer), life),
            )

        network.send(follower.node_id, leader_id, lambda: leader.run(at_leader, leader.life))

    # --- rules ------------------------------------------------------------------------------------------

    def on_leader(self, node: ReplicaNode, partition: PartitionImage) -> None:
        self.kernel.count("leaders of partitions")
        self.kernel.note("%d leads %s in epoch %d", node.node_id, self._place, partition.leader_epoch)
        if self._leaders.setdefault(partition.leader_epoch, node.node_id) != node.node_id:
            raise InvariantError(ONE_LEADER, f"{self._place} epoch {partition.leader_epoch}: {node.node_id}, another")
        newest = max((one.image for one in self._cluster.controllers), key=lambda one: one.offset)
        current = newest.partition(*self._place)
        if current is None or current.leader_epoch != partition.leader_epoch:
            return  # it does not know yet that it was replaced: nothing it appends can be acknowledged
        held = {one.base_offset: one for one in node.log.entries}
        for offset, entry in self._acknowledged.items():
            if held.get(offset) != entry:
                raise InvariantError(
                    ACKNOWLEDGED_STAYS, f"{node.node_id} leads {self._place} with {held.get(offset)} for {entry}"
                )

    def on_acknowledged(self, node: ReplicaNode, entry: Entry) -> None:
        self.kernel.count("records acknowledged")
        known = self._acknowledged.setdefault(entry.base_offset, entry)
        if known != entry:
            raise InvariantError(ACKNOWLEDGED_STAYS, f"{self._place}: {known} and {entry} were both acknowledged")

    def on_committed(self, node: ReplicaNode, entry: Entry) -> None:
        known = self._committed.setdefault(entry.base_offset, entry)
        if known != entry:
            raise InvariantError(ONE_CONTENT, f"{self._place}: {node.node_id} commits {entry}, {known} was read before")

    def has_acknowledged_in(self, epoch: int) -> bool:
        return any(one.epoch == epoch for one in list(self._acknowledged.values())[-3:])

    def check_logs(self) -> None:
        for broker in self._cluster.brokers.values():
            replica = broker.replicas[self._place]
            for offset, entry in self._acknowledged.items():
                found = replica.log.read(offset, 1)
                if offset < replica.high_watermark and (not found or found[0] != entry):
                    raise InvariantError(REPLICAS_AGREE, f"{self._place}: {broker.id} has {found} in place of {entry}")
