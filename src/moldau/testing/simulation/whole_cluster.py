"""A whole simulated cluster: controllers, brokers, a transaction coordinator and clients, on one clock and one network.

Three processes, each a controller and a broker, or three controllers and three brokers apart, as the seed says. The
controllers are the raft core on disks that lose what was not synced; the active one decides as the real one does;
brokers follow its log, replicate two kinds of partitions, and the leader of a third one coordinates transactions.
Processes are killed, lose power, freeze and stop in order; the network is cut; disks are full; controllers write
snapshots. Then all is calm, and everything must work within a minute. Start at `WholeCluster.run`.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Any, Final

from moldau.broker.coordination.transaction_markers import Marker
from moldau.controller.broker_sessions import BrokerSessions
from moldau.controller.decisions.elections import elect_preferred
from moldau.controller.image import MetadataImage
from moldau.coordinator.transaction.transaction import EPOCH_BUMPED_AT_END
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition
from moldau.protocol.metadata_records import MetadataRecord, PartitionChangeRecord, PartitionRecord, TopicRecord
from moldau.raft.settings import QuorumSettings
from moldau.raft.voters import Endpoint, ReplicaKey, Voter, VoterSet
from moldau.testing.simulation.kernel import InvariantError, Kernel
from moldau.testing.simulation.metadata_node import MetadataNode, MetadataRecords, Question
from moldau.testing.simulation.network import Network, NetworkFaults
from moldau.testing.simulation.quorum import SimulatedQuorum
from moldau.testing.simulation.replica_cluster import ACKNOWLEDGED_STAYS, CALM
from moldau.testing.simulation.transactions import CoordinatorReplica, SimulatedCoordinator, TransactionClient, Verdict
from moldau.testing.simulation.whole_broker import BrokerProcess, PartitionRules
from moldau.testing.simulation.whole_partition import (
    DECIDED_ONCE,
    Data,
    PartitionReplica,
    TransactionalReplica,
    fates_of,
)

__all__ = ["TRANSACTIONS_WHOLE", "WholeCluster"]

CLIENT: Final = 0
TROUBLE_MS: Final = 12_000
CALM_MS: Final = 60_000
QUIET_MS: Final = 2_500
"""Longer than a session, and than a message may be under way."""
CLIENTS: Final = (("orders", 0), ("orders", 2), ("payments", 2))
"""Two of one id fence each other, again and again."""
TRANSACTIONS_WHOLE: Final = "a transaction is on all partitions as its producer was told"
PLAIN, STATE = TopicPartition("plain", 0), TopicPartition("state", 0)
PLACES: Final[dict[TopicPartition, type[PartitionReplica]]] = {
    PLAIN: PartitionReplica,
    TopicPartition("t", 0): TransactionalReplica,
    TopicPartition("t", 1): TransactionalReplica,
    STATE: CoordinatorReplica,
}


class WholeCluster:
    transactional_places: Final = (TopicPartition("t", 0), TopicPartition("t", 1))

    def __init__(
        self,
        seed: int,
        *,
        replica: type[PartitionReplica] | None = None,
        metadata: type[MetadataNode] = MetadataNode,
        coordinator: type[SimulatedCoordinator] = SimulatedCoordinator,
    ) -> None:
        """A broken kind of replica, controller or coordinator may take the place of the usual one."""
        kernel = self.kernel = Kernel(seed)
        self.network = Network(kernel, NetworkFaults(loss=0.01, doubling=0.02, slow=0.02, slow_ms=500))
        self.min_isr = kernel.random.choice([1, 2, 2])
        self.quorum = SimulatedQuorum(kernel, self.network)
        self.coordinator = coordinator
        self.is_combined = kernel.chance(0.5)
        self.rules = {place: PartitionRules(self, place) for place in PLACES}
        kinds = {**PLACES, PLAIN: replica or PartitionReplica}
        records = MetadataRecords()
        voters = [self._voter(one) for one in (1, 2, 3)]
        known = VoterSet.of([one._replace(key=ReplicaKey(one.key.id)) for one in voters])
        broker_ids = (1, 2, 3) if self.is_combined else (11, 12, 13)
        self.controllers: list[MetadataNode] = []
        self.brokers: dict[int, BrokerProcess] = {}
        for one in [*voters, *(self._voter(number) for number in broker_ids if number > 3)]:
            node = metadata(self.quorum, one, QuorumSettings("simulated", snapshot_part_bytes=64), known)
            self.quorum.nodes[node.id] = node
            if node.id <= 3:
                self.controllers.append(node)
            if node.id in broker_ids:
                self.brokers[node.id] = BrokerProcess(self, node, kinds)
            node.begin(records, self.brokers[node.id].on_image if node.id in broker_ids else lambda image: None)
        self.clients = [TransactionClient(self, *one) for one in CLIENTS]
        self._next_value = self._producer_id = self._transaction = 0
        self._ended: dict[int, tuple[dict[TopicPartition, int], bool]] = {}
        """Transactions whose end was acknowledged: what they had written, and whether they were committed."""
        self.is_calm = False
        self._power_loss_at: int | None = None
        """When a broker is to lose power. Without a sync for each record, only one fault at a time loses none."""
        self._is_fragile = False
        """Whether a broker has lost records that it had acknowledged, and must refill before the next fault."""

    def _voter(self, node_id: int) -> Voter:
        key = ReplicaKey(node_id, uuid.UUID(int=self.kernel.random.getrandbits(128)))
        return Voter(key, (Endpoint("CONTROLLER", f"node{node_id}", 9093),))

    # --- running ----------------------------------------------------------------------------------------

    def run(self) -> None:
        """Trouble, then calm; raises `InvariantError`."""
        kernel = self.kernel
        for node in self.quorum.nodes.values():
            node.start()
        for broker in self.brokers.values():
            broker.start()
        self._create_topics()
        self._write()
        for client in self.clients:
            client.act()
        self._trouble()
        kernel.run_for(TROUBLE_MS)
        self._end_trouble()
        deadline = kernel.now_ms + CALM_MS
        while not self._is_whole():
            if kernel.now_ms > deadline:
                raise InvariantError(CALM, self.describe())
            kernel.run_for(250)
        self._check()

    def _create_topics(self) -> None:
        members = tuple(self.brokers)
        deadline = self.kernel.now_ms + CALM_MS

        def create(image: MetadataImage, sessions: BrokerSessions, _: int) -> tuple[Sequence[MetadataRecord], None]:
            are_active = all(one in image.brokers and image.brokers[one].is_active for one in members)
            if image.topics or not are_active:
                return [], None
            found: list[MetadataRecord] = []
            for place in PLACES:
                topic_id = uuid.uuid5(uuid.NAMESPACE_DNS, place.topic)
                if place.partition == 0:
                    found.append(TopicRecord(name=place.topic, topic_id=topic_id))
                first = self.kernel.random.randrange(3)
                replicas = members[first:] + members[:first]
                found.append(
                    PartitionRecord(
                        partition_id=place.partition,
                        topic_id=topic_id,
                        replicas=replicas,
                        isr=replicas,
                        leader=replicas[0],
                        leader_epoch=0,
                        partition_epoch=0,
                    )
                )
            return found, None

        while not all(one.raft.image.topics for one in self.brokers.values()):
            if self.kernel.now_ms > deadline:
                raise InvariantError(CALM, "no topics")
            for node in self.controllers:
                node.desk.ask(create, lambda _: None)
            self.kernel.run_for(200)

    def _write(self) -> None:
        """A producer that writes to whoever takes itself for the leader; and now and then a disk syncs."""
        random = self.kernel.random
        self._next_value += 1
        value = self._next_value
        leaders = [one for one in self.brokers.values() if one.is_alive and one.replicas[PLAIN].is_leader]
        if leaders:
            leader = random.choice(leaders).replicas[PLAIN]
            self.kernel.after(1, lambda: leader.run(lambda: leader.produce(value), leader.life))
        if self.kernel.chance(0.3):
            for broker in self.brokers.values():
                if self.kernel.chance(0.3):
                    broker.flush()
        self.kernel.after(random.randrange(1, 60), self._write)

    def _is_whole(self) -> bool:
        if len(self.quorum.leaders()) != 1 or len({node.applied_offset for node in self.quorum.nodes.values()}) != 1:
            return False
        image = self.controllers[0].image
        for place in PLACES:
            partition = image.partition(*place)
            if partition is None or partition.leader < 0 or len(partition.isr) < 3:
                return False
            if not self.brokers[partition.leader].replicas[place].is_leader:
                return False
            if not self.rules[place].has_acknowledged_in(partition.leader_epoch) and place != STATE:
                return False
        return True

    def describe(self) -> str:
        image = self.controllers[0].image
        return "\n".join(
            [
                f"combined {self.is_combined}, controllers {[(one.id, one.claimed_epoch) for one in self.controllers]}",
                *(f"{place}: {image.partition(*place)}" for place in PLACES),
                *(broker.describe() for broker in self.brokers.values()),
            ]
        )

    # --- faults -----------------------------------------------------------------------------------------

    def _trouble(self) -> None:
        if self.is_calm:
            return
        kernel = self.kernel
        if self._is_fragile:
            self._is_fragile = not self._is_refilled()
        elif self._power_loss_at is not None:
            self._lose_power(self._power_loss_at)
        else:
            faults = [self._kill, self._kill, self._cut, self._freeze, self._stop, self._plan_power_loss]
            kernel.random.choice([*faults, self._fill_disk, self._save_snapshot, self._save_snapshot, self._balance])()
        kernel.after(kernel.random.randrange(100, 900), self._trouble)

    def _is_refilled(self) -> bool:
        """Whether every process that runs now is known, and every replica in sync."""
        image = max((one.image for one in self.controllers), key=lambda one: one.offset)
        for broker in self.brokers.values():
            known = image.brokers.get(broker.id)
            if not broker.is_alive or broker.is_frozen or broker.wants_stop:
                return False
            if known is None or known.epoch != broker.epoch or not known.is_active:
                return False
        partitions = [image.partition(*place) for place in PLACES]
        return all(one is not None and len(one.isr) == 3 and one.leader >= 0 for one in partitions)

    def _some_broker(self) -> BrokerProcess | None:
        alive = [one for one in self.brokers.values() if one.is_alive]
        leading = [one for one in alive if any(replica.is_leader for replica in one.replicas.values())]
        chosen = leading if leading and self.kernel.chance(0.6) else alive
        return self.kernel.random.choice(chosen) if chosen else None

    def _back_later(self, action: Callable[[], None]) -> None:
        self.kernel.after(self.kernel.random.randrange(50, 2_500), action)

    def _kill(self) -> None:
        if not self.is_combined and self.kernel.chance(0.4):
            self._kill_controller()
            return
        broker = self._some_broker()
        if broker is not None:
            self.kernel.count("kills")
            broker.kill()
            self._back_later(broker.start_again)

    def _kill_controller(self) -> None:
        node = self.kernel.random.choice(self.quorum.leaders() or self.controllers)
        if node.core is not None:
            node.crash()
            self._back_later(lambda: node.start() if node.core is None else None)

    def _plan_power_loss(self) -> None:
        """Once the consequences of all other faults are over."""
        self.network.heal()
        self._power_loss_at = self.kernel.now_ms + QUIET_MS

    def _lose_power(self, not_before_ms: int) -> None:
        broker = self._some_broker()
        if not self._is_refilled():
            self._power_loss_at = self.kernel.now_ms + QUIET_MS
        elif broker is not None and self.kernel.now_ms >= not_before_ms:
            self.kernel.count("power losses")
            self.kernel.note("broker %d loses power", broker.id)
            self._power_loss_at = None
            self._is_fragile = True
            broker.kill(loses_power=True)
            self._back_later(broker.start_again)

    def _cut(self) -> None:
        self.kernel.count("network cuts")
        ids = [CLIENT, *self.quorum.nodes]
        some = [one for one in ids if self.kernel.chance(0.4)]
        others = [one for one in ids if one not in some]
        self.kernel.note("cut between %s and %s", some, others)
        self.network.cut(some, others, is_one_way=self.kernel.chance(0.3))
        self._back_later(self.network.heal)

    def _freeze(self) -> None:
        broker = self._some_broker()
        if broker is not None and not broker.is_frozen:
            self.kernel.count("pauses")
            broker.freeze()
            life = broker.life
            self._back_later(lambda: broker.thaw() if broker.life == life else None)

    def _stop(self) -> None:
        broker = self._some_broker()
        if broker is not None:
            self.kernel.note("broker %d is asked to stop", broker.id)
            broker.wants_stop = True

    def _fill_disk(self) -> None:
        broker = self._some_broker()
        if broker is not None:
            self.kernel.count("full disks")
            self.kernel.note("the disk of %d is full", broker.id)
            broker.set_full(is_full=True)
            self._back_later(lambda: broker.set_full(is_full=False))

    def _save_snapshot(self) -> None:
        node = self.kernel.random.choice(list(self.quorum.nodes.values()))
        if not node.is_frozen:
            node.save_snapshot(is_trimmed=True)

    def _balance(self) -> None:
        """Give a partition its preferred leader, as an operator or the controller's own round does."""
        place = self.kernel.random.choice(list(PLACES))

        def elect(image: MetadataImage, sessions: BrokerSessions, _: int) -> tuple[Sequence[MetadataRecord], None]:
            decided = elect_preferred(image, image.topics[place.topic], place.partition)
            if not isinstance(decided, PartitionChangeRecord):
                return [], None
            self.kernel.count("preferred elections")
            return [decided], None

        for node in self.quorum.leaders():
            if isinstance(node, MetadataNode) and not node.is_frozen:
                node.desk.ask(elect, lambda _: None)

    def _end_trouble(self) -> None:
        self.kernel.note("calm")
        self.is_calm = True
        self.network.heal()
        self.network.faults = NetworkFaults()
        for broker in self.brokers.values():
            broker.set_full(is_full=False)
            if broker.is_alive:
                broker.thaw()
            else:
                broker.start_again()
        for node in self.controllers:
            if node.core is None:
                node.start()

    # --- the network ------------------------------------------------------------------------------------

    def ask_controller(self, broker: BrokerProcess, question: Question, then: Callable[[Any], None]) -> None:
        """Carry a broker's request to the node that it takes for the active controller, and the answer back."""
        core, life = broker.raft.core, broker.life
        leader_id = -1 if core is None else core.replica.leader_id
        if leader_id not in self.quorum.nodes:
            leader_id = self.kernel.random.choice((1, 2, 3))
        node = self.quorum.nodes[leader_id]
        assert isinstance(node, MetadataNode)

        def answer(found: Any) -> None:
            if found is not None:
                self.network.send(leader_id, broker.id, lambda: broker.run(lambda: then(found), life))

        def arrive() -> None:
            if not node.is_frozen:
                node.desk.ask(question, answer)

        self.network.send(broker.id, leader_id, arrive)

    def leader_of(self, asker: int, place: TopicPartition) -> int:
        """Who leads a partition, by the word of some broker, or by what a broker knows itself."""
        brokers = self.brokers
        broker = brokers[asker] if asker in brokers else self.kernel.random.choice(list(brokers.values()))
        partition = broker.raft.image.partition(*place)
        return -1 if partition is None else partition.leader

    def ask_leader(
        self,
        asker: int,
        place: TopicPartition,
        question: Callable[[PartitionReplica, Callable[[Any], None]], None],
        then: Callable[[Any], None],
        *,
        may_double: bool = True,
    ) -> None:
        """Carry a request to the leader of a partition and the answer back, each of them perhaps never or twice."""
        leader = self.leader_of(asker, place)
        if leader not in self.brokers:
            return
        replica = self.brokers[leader].replicas[place]
        asking = self.brokers.get(asker)
        life = 0 if asking is None else asking.life

        def answer(found: Any) -> None:
            def arrive() -> None:
                if asking is None:
                    then(found)
                else:
                    asking.run(lambda: then(found), life)

            self.network.send(leader, asker, arrive)

        def arrive() -> None:
            replica.run(lambda: question(replica, answer), replica.life)

        self.network.send(asker, leader, arrive, may_double=may_double)

    def ask_coordinator(self, decide: Callable[..., Any], then: Callable[[Any], None]) -> None:
        def question(replica: PartitionReplica, answer: Callable[[Any], None]) -> None:
            coordinator = replica.coordinator if isinstance(replica, CoordinatorReplica) else None
            if coordinator is None:
                answer(ErrorCode.NOT_COORDINATOR)
            else:
                coordinator.ask(decide, answer)

        self.ask_leader(CLIENT, STATE, question, then)

    def write(self, place: TopicPartition, transactional_id: str, data: Data, then: Verdict) -> None:
        """A client's batch: the leader asks the coordinator whether it may go in, unless its transaction is open."""

        def question(replica: PartitionReplica, answer: Callable[[Any], None]) -> None:
            assert isinstance(replica, TransactionalReplica)
            if not replica.is_leader:
                answer(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            elif replica.has_open(data.owner):
                replica.write(data, answer)
            else:
                self._verify(replica, place, transactional_id, data, answer)

        self.ask_leader(CLIENT, place, question, then)

    def _verify(
        self, replica: TransactionalReplica, place: TopicPartition, transactional_id: str, data: Data, answer: Verdict
    ) -> None:
        markers = replica.markers

        def verify(state: PartitionReplica, tell: Callable[[Any], None]) -> None:
            coordinator = state.coordinator if isinstance(state, CoordinatorReplica) else None
            found = ErrorCode.NOT_COORDINATOR
            if coordinator is not None:
                found = coordinator.verify(transactional_id, data.owner, place)
            tell(found)

        def verified(code: ErrorCode) -> None:
            if replica.markers != markers or not replica.is_leader:
                answer(ErrorCode.NOT_ENOUGH_REPLICAS)  # a transaction ended here meanwhile: the client asks again
            elif code is not ErrorCode.NONE:
                answer(code)
            else:
                replica.write(data, answer)

        self.ask_leader(replica.node_id, STATE, verify, verified)

    def write_marker(self, asker: int, place: TopicPartition, marker: Marker, then: Verdict) -> None:
        def question(replica: PartitionReplica, answer: Callable[[Any], None]) -> None:
            assert isinstance(replica, TransactionalReplica)
            if replica.is_leader:
                replica.mark(marker, answer)

        self.ask_leader(asker, place, question, then, may_double=marker.version >= EPOCH_BUMPED_AT_END)

    # --- clients ----------------------------------------------------------------------------------------

    def next_producer_id(self) -> int:
        self._producer_id += 1
        return self._producer_id

    def next_transaction(self) -> int:
        self._transaction += 1
        return self._transaction

    def on_ended(self, transaction: int, written: dict[TopicPartition, int], *, is_commit: bool) -> None:
        self.kernel.count("transactions committed" if is_commit else "transactions aborted")
        self._ended[transaction] = written, is_commit

    # --- the end ----------------------------------------------------------------------------------------

    def _check(self) -> None:
        self.quorum.rules.check_logs()
        for rules in self.rules.values():
            rules.check_logs()
        self._settle_transactions()
        self._check_transactions()

    def _settle_transactions(self) -> None:
        """No more is begun; what is open is aborted when its time is over."""
        deadline = self.kernel.now_ms + CALM_MS
        for client in self.clients:
            client.stop()
        while not self._are_transactions_over():
            if self.kernel.now_ms > deadline:
                raise InvariantError(CALM, f"transactions do not end: {self.describe()}")
            self.kernel.run_for(250)

    def _are_transactions_over(self) -> bool:
        leader = self.leader_of(CLIENT, STATE)
        replica = self.brokers[leader].replicas[STATE]
        coordinator = replica.coordinator if isinstance(replica, CoordinatorReplica) else None
        if coordinator is None or not coordinator.shard.is_active:
            return False
        core = coordinator.shard.core
        return not core.ending and all(one.state.is_over for one in core.transactions.values())

    def _check_transactions(self) -> None:
        found: dict[int, dict[TopicPartition, list[bool | None]]] = {}
        for place in self.transactional_places:
            leader = self.leader_of(CLIENT, place)
            for transaction, fates in fates_of(self.brokers[leader].replicas[place]).items():
                found.setdefault(transaction, {})[place] = fates
        for transaction, by_place in found.items():
            verdicts = {fate for fates in by_place.values() for fate in fates}
            if len(verdicts) != 1:
                raise InvariantError(TRANSACTIONS_WHOLE, f"transaction {transaction} is torn: {by_place}")
            if verdicts == {None}:
                raise InvariantError(DECIDED_ONCE, f"transaction {transaction} hangs: {by_place}")
        for transaction, (written, is_commit) in self._ended.items():
            there = found.get(transaction, {})
            if is_commit and {place: len(fates) for place, fates in there.items()} != written:
                raise InvariantError(ACKNOWLEDGED_STAYS, f"transaction {transaction} wrote {written}, found {there}")
            if any(fate is not is_commit for fates in there.values() for fate in fates):
                raise InvariantError(TRANSACTIONS_WHOLE, f"transaction {transaction}: {is_commit} was told, {there}")
