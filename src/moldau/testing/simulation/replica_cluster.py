"""A simulated cluster of brokers with one replicated partition: crashes, cuts, pauses, lost power, orderly stops.

The controller is the real decisions (`controller.broker_sessions`, `controller.decisions.elections`) over the real
image; it is one process that does not fail, because the quorum is simulated apart (`raft_cluster`). What it says
travels on the same lossy network. A broker loses power only while all replicas are in sync, and no other fault happens
until they are again: without a sync for each record no more can be promised. Start at `ReplicaCluster.run`.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Final

from moldau.broker.replication.leading import IsrWish
from moldau.controller.broker_sessions import BrokerSessions, Heartbeat
from moldau.controller.decisions import elections
from moldau.controller.decisions.brokers import BrokerRegistration
from moldau.controller.decisions.elections import IsrProposal
from moldau.controller.decisions.eligible_leaders import enabling
from moldau.controller.decisions.partition_changes import RECOVERING
from moldau.controller.features import ELIGIBLE_LEADER_REPLICAS
from moldau.controller.image import Endpoint, MetadataImage, PartitionImage
from moldau.controller.replay import replay_records
from moldau.core.errors import ErrorCode
from moldau.protocol.metadata_records import FeatureLevelRecord, MetadataRecord, PartitionRecord, TopicRecord
from moldau.testing.simulation.kernel import InvariantError, Kernel
from moldau.testing.simulation.network import Network, NetworkFaults
from moldau.testing.simulation.replica_node import Entry, Fetch, FetchAnswer, ReplicaNode

__all__ = [
    "ACKNOWLEDGED_STAYS",
    "CALM",
    "ONE_CONTENT",
    "ONE_LEADER",
    "REPLICAS_AGREE",
    "ReplicaCluster",
]

CONTROLLER: Final = 0
SESSION_MS: Final = 700
TROUBLE_MS: Final = 9_000
CALM_MS: Final = 60_000
TOPIC_ID: Final = uuid.UUID(int=777)

ACKNOWLEDGED_STAYS: Final = "what was acknowledged is in the log of every later leader"
ONE_CONTENT: Final = "an offset below a high watermark has one content, everywhere and for ever"
ONE_LEADER: Final = "an epoch has one leader"
REPLICAS_AGREE: Final = "replicas agree"
CALM: Final = "calm brings a leader, full ISRs and answers"


class ReplicaCluster:
    def __init__(self, seed: int, *, count: int = 3, node: type[ReplicaNode] = ReplicaNode) -> None:
        kernel = self.kernel = Kernel(seed)
        self.network = Network(kernel, NetworkFaults(loss=0.02, doubling=0.02, slow=0.03, slow_ms=600))
        self.min_isr = kernel.random.choice([1, 2, 2])
        self.has_eligible_leaders = bool(seed % 2)
        self.image = MetadataImage()
        self.sessions = BrokerSessions(session_timeout_ms=SESSION_MS, may_lose_data=lambda topic: False)
        self.nodes = {number: node(self, number) for number in range(1, count + 1)}
        self.acknowledged: dict[int, Entry] = {}
        self._committed: dict[int, Entry] = {}
        self._leaders: dict[int, int] = {}
        self._next_value = 0
        self._is_calm = False
        self._is_fragile = False
        """Whether a broker has lost records that it had acknowledged, and must refill before the next fault."""

    # --- running ----------------------------------------------------------------------------------------

    def run(self) -> None:
        """Trouble, then calm; raises `InvariantError`."""
        kernel = self.kernel
        for one in self.nodes.values():
            one.start()
        self._watch_sessions()
        kernel.run_for(500)
        self._create_topic()
        self._write()
        self._trouble()
        kernel.run_for(TROUBLE_MS)
        self._end_trouble()
        deadline = kernel.now_ms + CALM_MS
        while not self._is_whole():
            if kernel.now_ms > deadline:
                raise InvariantError(CALM, self.describe())
            kernel.run_for(250)
        self._check_logs()

    def _create_topic(self) -> None:
        members = tuple(self.nodes)
        active = tuple(one for one in members if one in self.image.brokers and self.image.brokers[one].is_active)
        if len(active) < len(members):
            self.kernel.run_for(200)
            self._create_topic()
            return
        if self.has_eligible_leaders:
            self._commit(
                [
                    FeatureLevelRecord(name=ELIGIBLE_LEADER_REPLICAS, feature_level=1),
                    *enabling(self.image, self.min_isr),
                ]
            )
        record = PartitionRecord(
            partition_id=0,
            topic_id=TOPIC_ID,
            replicas=members,
            isr=members,
            leader=members[0],
            leader_epoch=0,
            partition_epoch=0,
        )
        self._commit([TopicRecord(name="t", topic_id=TOPIC_ID), record])

    def _write(self) -> None:
        """A producer that writes to whoever takes itself for the leader."""
        self._next_value += 1
        leaders = [one for one in self.nodes.values() if one.is_alive and one.is_leader]
        if leaders:
            leader, value = self.kernel.random.choice(leaders), self._next_value
            self.kernel.after(1, lambda: leader.run(lambda: leader.produce(value), leader.life))
        if self.kernel.chance(0.3):
            for one in self.nodes.values():
                if self.kernel.chance(0.3):
                    one.log.flush()
        self.kernel.after(self.kernel.random.randrange(1, 40), self._write)

    def _is_whole(self) -> bool:
        partition = self.image.partition("t", 0)
        if partition is None or partition.leader < 0 or len(partition.isr) < len(self.nodes):
            return False
        leader = self.nodes[partition.leader]
        return leader.is_leader and any(
            one.epoch == partition.leader_epoch for one in list(self.acknowledged.values())[-3:]
        )

    def describe(self) -> str:
        logs = [(one.node_id, one.is_alive, one.high_watermark, one.log.entries[-4:]) for one in self.nodes.values()]
        return f"{self.image.partition('t', 0)} {logs}"

    # --- faults -----------------------------------------------------------------------------------------

    def _trouble(self) -> None:
        if self._is_calm:
            return
        kernel = self.kernel
        if self._is_fragile:
            self._is_fragile = not self._is_refilled()
        else:
            faults = [self._crash, self._crash, self._cut, self._pause, self._stop, self._lose_power]
            kernel.random.choice(faults)()
        kernel.after(kernel.random.randrange(100, 900), self._trouble)

    def _is_refilled(self) -> bool:
        partition = self.image.partition("t", 0)
        return (
            all(one.is_alive for one in self.nodes.values())
            and partition is not None
            and len(partition.isr) == len(self.nodes)
        )

    def _some_node(self) -> ReplicaNode | None:
        alive = [one for one in self.nodes.values() if one.is_alive]
        partition = self.image.partition("t", 0)
        leading = [one for one in alive if partition is not None and one.node_id == partition.leader]
        if leading and self.kernel.chance(0.6):
            return leading[0]
        return self.kernel.random.choice(alive) if alive else None

    def _back_later(self, node: ReplicaNode) -> None:
        def back() -> None:
            if not node.is_alive:
                node.start()

        self.kernel.after(self.kernel.random.randrange(50, 2500), back)

    def _crash(self) -> None:
        node = self._some_node()
        if node is not None:
            self.kernel.count("crashes")
            self.kernel.note("node %d crashes", node.node_id)
            node.stop()
            self._back_later(node)

    def _lose_power(self) -> None:
        if not self._is_refilled() or any(one._frozen is not None for one in self.nodes.values()):
            return
        node = self._some_node()
        if node is not None:
            self.kernel.count("power losses")
            self.kernel.note("node %d loses power", node.node_id)
            self._is_fragile = True
            self.network.heal()
            node.stop(loses_power=True)
            self._back_later(node)

    def _cut(self) -> None:
        self.kernel.count("network cuts")
        some = [one for one in (CONTROLLER, *self.nodes) if self.kernel.chance(0.4)]
        others = [one for one in (CONTROLLER, *self.nodes) if one not in some]
        self.kernel.note("cut between %s and %s", some, others)
        self.network.cut(some, others, is_one_way=self.kernel.chance(0.3))
        self.kernel.after(self.kernel.random.randrange(100, 2500), self.network.heal)

    def _pause(self) -> None:
        node = self._some_node()
        if node is not None and node._frozen is None:
            self.kernel.count("pauses")
            self.kernel.note("node %d is paused", node.node_id)
            life = node.life
            node.freeze()
            self.kernel.after(
                self.kernel.random.randrange(100, 2500), lambda: node.thaw() if node.life == life else None
            )

    def _stop(self) -> None:
        node = self._some_node()
        if node is not None:
            self.kernel.note("node %d is asked to stop", node.node_id)
            node.wants_stop = True

    def _end_trouble(self) -> None:
        self._is_calm = True
        self.network.heal()
        self.network.faults = NetworkFaults()
        for one in self.nodes.values():
            if one.is_alive:
                one.thaw()
            else:
                one.start()

    # --- the controller ---------------------------------------------------------------------------------

    def _commit(self, records: Sequence[MetadataRecord]) -> None:
        if records:
            offset = self.image.offset + len(records)
            before = self.image.partition("t", 0)
            self.image = replay_records(self.image, records, offset=offset, epoch=1).image
            after = self.image.partition("t", 0)
            if before is not None and after is not None and not before.isr and after.isr:
                self.kernel.count("eligible leaders elected")

    def _ask_controller(self, node: ReplicaNode, question: Callable[[], Callable[[], None] | None]) -> None:
        """Carry a request to the controller, and its answer back."""
        life = node.life

        def arrive() -> None:
            answer = question()
            if answer is not None:
                self.network.send(CONTROLLER, node.node_id, lambda: node.run(answer, life))

        self.network.send(node.node_id, CONTROLLER, arrive)

    def ask_for_metadata(self, node: ReplicaNode) -> None:
        def question() -> Callable[[], None]:
            image = self.image
            return lambda: node.on_image(image)

        self._ask_controller(node, question)

    def beat(self, node: ReplicaNode) -> None:
        if node.broker_epoch < 0 or node.is_stale:
            self._ask_controller(node, lambda: self._register(node, node.incarnation_id))
            return
        beat = Heartbeat(node.node_id, node.broker_epoch, node.image.offset, False, node.wants_stop)

        def question() -> Callable[[], None]:
            records, answer = self.sessions.heartbeat(self.image, beat, self.kernel.now_ms)
            self._commit(records)

            def on_answer() -> None:
                if answer.error is ErrorCode.STALE_BROKER_EPOCH:
                    node.is_stale = True
                elif answer.should_shut_down and node.wants_stop:
                    self.kernel.count("orderly stops")
                    epoch = node.broker_epoch
                    node.stop()
                    node.log.flush()
                    node.orderly_epoch = epoch
                    self._back_later(node)

            return on_answer

        self._ask_controller(node, question)

    def _register(self, node: ReplicaNode, incarnation: uuid.UUID) -> Callable[[], None] | None:
        directory = uuid.UUID(int=1000 + node.node_id)
        broker = BrokerRegistration(
            node.node_id,
            incarnation,
            (Endpoint("PLAINTEXT", "localhost", 9092),),
            None,
            (directory,),
            node.orderly_epoch if node.broker_epoch < 0 else node.broker_epoch,
        )
        epoch = self.image.offset + 1
        records, error = self.sessions.register(self.image, broker, epoch, self.kernel.now_ms)
        if error is not ErrorCode.NONE:
            return None
        self._commit(records)
        self.sessions.registered(node.node_id, self.kernel.now_ms)

        def on_registered() -> None:
            node.broker_epoch, node.is_stale = max(node.broker_epoch, epoch), False

        return on_registered

    def _watch_sessions(self) -> None:
        for node_id in self.sessions.expired(self.image, self.kernel.now_ms):
            self.kernel.count("brokers fenced")
            self._commit(self.sessions.fence(self.image, node_id))
        self.kernel.after(100, self._watch_sessions)

    def propose(self, node: ReplicaNode, leader_epoch: int, wish: IsrWish) -> None:
        own_epoch = node.broker_epoch
        members = tuple((one, own_epoch if one == node.node_id else epoch) for one, epoch in wish.isr)
        proposal = IsrProposal(node.node_id, leader_epoch, wish.partition_epoch, members)

        def question() -> Callable[[], None] | None:
            topic = self.image.topics["t"]
            decided = elections.decide_isr(self.image, topic, 0, proposal)
            if isinstance(decided, ErrorCode):
                is_certain = decided in (ErrorCode.INELIGIBLE_REPLICA, ErrorCode.INVALID_REQUEST)
                return (lambda: node.on_refused(leader_epoch)) if is_certain else None
            grows = len(proposal.isr) > len(topic.partitions[0].isr)
            self.kernel.count("ISRs expanded" if grows else "ISRs shrunk")
            self._commit([decided])
            return None

        self._ask_controller(node, question)

    # --- fetches ----------------------------------------------------------------------------------------

    def fetch(self, follower: ReplicaNode, leader_id: int, asked: Fetch, number: int) -> None:
        leader = self.nodes[leader_id]
        life = follower.life

        def at_leader() -> None:
            answer: FetchAnswer = leader.on_fetch(asked)
            self.network.send(
                leader_id,
                follower.node_id,
                lambda: follower.run(lambda: follower.on_answer(number, asked, answer), life),
            )

        self.network.send(follower.node_id, leader_id, lambda: leader.run(at_leader, leader.life))

    # --- rules ------------------------------------------------------------------------------------------

    def on_leader(self, node: ReplicaNode, partition: PartitionImage) -> None:
        self.kernel.count("elections")
        if partition.leader_recovery_state == RECOVERING:
            self.kernel.count("last leaders elected")
        self.kernel.note("node %d leads in epoch %d", node.node_id, partition.leader_epoch)
        if self._leaders.setdefault(partition.leader_epoch, node.node_id) != node.node_id:
            raise InvariantError(ONE_LEADER, f"epoch {partition.leader_epoch}: node {node.node_id} and another")
        current = self.image.partition("t", 0)
        if current is None or current.leader_epoch != partition.leader_epoch:
            return  # it does not know yet that it was replaced: nothing it appends can be acknowledged
        held = {one.base_offset: one for one in node.log.entries}
        for offset, entry in self.acknowledged.items():
            if held.get(offset) != entry:
                raise InvariantError(
                    ACKNOWLEDGED_STAYS, f"node {node.node_id} leads with {held.get(offset)} in place of {entry}"
                )

    def on_acknowledged(self, node: ReplicaNode, entry: Entry) -> None:
        self.kernel.count("records acknowledged")
        known = self.acknowledged.setdefault(entry.base_offset, entry)
        if known != entry:
            raise InvariantError(ACKNOWLEDGED_STAYS, f"{known} and {entry} were both acknowledged")

    def on_committed(self, node: ReplicaNode, entry: Entry) -> None:
        known = self._committed.setdefault(entry.base_offset, entry)
        if known != entry:
            raise InvariantError(ONE_CONTENT, f"node {node.node_id} commits {entry}, {known} was read before")

    def _check_logs(self) -> None:
        for offset, entry in self.acknowledged.items():
            for one in self.nodes.values():
                found = one.log.read(offset, 1)
                if offset < one.high_watermark and (not found or found[0] != entry):
                    raise InvariantError(REPLICAS_AGREE, f"node {one.node_id} has {found} in place of {entry}")
