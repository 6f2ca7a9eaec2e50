"""A cluster of simulated controllers, with clients and misfortune, and the rules that must hold all the time.

From one seed: one to five voters and some observers, static or dynamic, whose network loses and reorders, whose nodes
crash, whose disks are full; clients append, operators add and remove voters, nodes write snapshots. After the
misfortune everything must come right within a minute. Start at `RaftCluster.run`; the rules are `raft_rules`.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable

from moldau.core.errors import ErrorCode
from moldau.raft.core import NotLeaderError
from moldau.raft.messages import AddVoterRequest, RemoveVoterRequest, Reply, Request, VoterReply
from moldau.raft.settings import QuorumSettings
from moldau.raft.voters import Endpoint, ReplicaKey, Voter, VoterSet
from moldau.testing.simulation.kernel import InvariantError, Kernel
from moldau.testing.simulation.network import Network, NetworkFaults
from moldau.testing.simulation.quorum import SimulatedQuorum
from moldau.testing.simulation.raft_node import RaftNode, Ticket

__all__ = ["RaftCluster"]

CLUSTER_ID = "simulated"
TROUBLE_MS = 16_000
STEP_MS = 120
RECOVERY_MS = 60_000

NodeFactory = Callable[["RaftCluster", Voter, QuorumSettings, VoterSet, int], RaftNode]


class RaftCluster(SimulatedQuorum):
    def __init__(self, seed: int, *, node_factory: NodeFactory = RaftNode) -> None:
        kernel = Kernel(seed)
        random = kernel.random
        faults = NetworkFaults(random.choice((0, 0.01, 0.1)), random.choice((0, 0.05)), 0.01)
        super().__init__(kernel, Network(kernel, faults))
        self.is_dynamic = random.random() < 0.5
        self._node_factory = node_factory
        self._next_payload = 0
        voters = [self._voter(one) for one in range(1, random.choice((1, 2, 3, 3, 3, 4, 5)) + 1)]
        self._settings = QuorumSettings(
            CLUSTER_ID, snapshot_part_bytes=64, bootstrap_servers=len(voters) if self.is_dynamic else 0
        )
        self.first_voters = [one.key.id for one in voters]
        known = voters if self.is_dynamic else [one._replace(key=ReplicaKey(one.key.id)) for one in voters]
        for voter in voters:
            self._add_node(voter, VoterSet.of(known))
        for _ in range(random.choice((0, 1, 2))):
            self.add_observer(VoterSet.of(known))
        for node in self.nodes.values():
            node.start()

    def _voter(self, node_id: int) -> Voter:
        key = ReplicaKey(node_id, uuid.UUID(int=self.kernel.random.getrandbits(128)))
        return Voter(key, (Endpoint("CONTROLLER", f"node{node_id}", 9093),))

    def _add_node(self, me: Voter, configured: VoterSet) -> RaftNode:
        node = self._node_factory(self, me, self._settings, configured, int(self.is_dynamic))
        self.nodes[me.key.id] = node
        return node

    def add_observer(self, configured: VoterSet) -> RaftNode:
        """A node that is no voter. In a dynamic quorum it knows nothing but where to ask."""
        known = VoterSet({}) if self.is_dynamic else configured
        node = self._node_factory(self, self._voter(max(self.nodes) + 1), self._settings, known, 0)
        self.nodes[node.id] = node
        return node

    # --- what happens -----------------------------------------------------------------------------------

    def run(self) -> None:
        """Trouble, then calm; raises `InvariantError` if a rule is broken or the calm brings no recovery."""
        end_ms = self.kernel.now_ms + TROUBLE_MS
        while self.kernel.now_ms < end_ms:
            self.kernel.run_for(self.kernel.random.randrange(STEP_MS) + 1)
            self._something_happens()
        self.rules.check_logs()
        self.recover()

    def _something_happens(self) -> None:
        dice = self.kernel.random.random()
        if dice < 0.60:
            self.append_something()
        elif dice < 0.66:
            self._crash_somebody()
        elif dice < 0.78:
            self._start_somebody()
        elif dice < 0.83:
            self._cut_network()
        elif dice < 0.90:
            self.network.heal()
        elif dice < 0.93:
            node = self._anybody()
            node.save_snapshot(is_trimmed=self.kernel.chance(0.7))
        elif dice < 0.95:
            self._fill_disk(self._anybody())
        else:
            self._change_voters()

    def _anybody(self) -> RaftNode:
        return self.kernel.random.choice(list(self.nodes.values()))

    def append_something(self) -> bool:
        """A client appends through a node that says it leads; whether it really does, the quorum decides."""
        leaders = self.leaders()
        if not leaders:
            return False
        node = self.kernel.random.choice(leaders)
        for _ in range(self.kernel.random.choice((1, 1, 3))):
            core = node.core
            if core is None:
                break
            self._next_payload += 1
            payload = self._next_payload.to_bytes(self.payload_bytes, "big")
            try:
                offset, effects = core.append(payload, 1, node.claimed_epoch, self.kernel.now_ms)
            except NotLeaderError:
                return False
            self.rules.expect(node, payload, offset)
            node.tell(lambda core, effects=effects: effects)  # type: ignore[misc]
        return True

    def _crash_somebody(self) -> None:
        node = self._anybody()
        if self.kernel.chance(0.3):
            node.shut_down()
        else:
            node.crash()
        if self.kernel.chance(0.05):
            for other in list(self.nodes.values()):
                other.crash()

    def _start_somebody(self) -> None:
        down = [one for one in self.nodes.values() if one.core is None]
        if down:
            self.kernel.random.choice(down).start()

    def _fill_disk(self, node: RaftNode) -> None:
        def empty() -> None:
            node.disk.log.is_full = False

        node.disk.log.is_full = True
        self.kernel.count("full disks")
        self.kernel.after(self.kernel.random.randrange(1500), empty)

    def _cut_network(self) -> None:
        ids = list(self.nodes)
        self.kernel.random.shuffle(ids)
        some = ids[: self.kernel.random.randint(1, max(1, len(ids) // 2))]
        leader_ids = [one.id for one in self.leaders()]
        if leader_ids and self.kernel.chance(0.5):
            some = leader_ids[:1]
        self.kernel.note("the network is cut around %s", some)
        self.kernel.count("network cuts")
        self.network.cut(some, set(ids) - set(some), is_one_way=self.kernel.chance(0.3))

    # --- voters -----------------------------------------------------------------------------------------

    def _change_voters(self) -> None:
        leaders = self.leaders()
        if not leaders:
            return
        node = self.kernel.random.choice(leaders)
        core = node.core
        assert core is not None
        replica = core.replica
        if replica.voters.latest.kraft_version == 0:
            ticket = Ticket(AddVoterRequest(CLUSTER_ID, node.me.key, ()), self._on_voter_reply("upgrades"))
            node.tell(lambda core: core.upgrade(ticket, 1, 5_000, self.kernel.now_ms))
            return
        voters = replica.voter_set
        outsiders = [one for one in self.nodes.values() if not voters.has(one.me.key) and one.core is not None]
        if outsiders and len(voters) < 5 and self.kernel.chance(0.6):
            other = self.kernel.random.choice(outsiders)
            request: Request = AddVoterRequest(CLUSTER_ID, other.me.key, other.me.endpoints, 5_000)
            self.ask(node, request, self._on_voter_reply("voters added"))
        elif len(voters) > 1:
            victim = self.kernel.random.choice(list(voters))
            request = RemoveVoterRequest(CLUSTER_ID, victim.key, 5_000)
            self.ask(node, request, self._on_voter_reply("voters removed"))
        elif len(self.nodes) < 7:
            self.add_observer(voters).start()

    def ask(self, node: RaftNode, request: Request, then: Callable[[Reply], None]) -> None:
        """A request of an operator."""
        ticket = Ticket(request, then)
        node.tell(lambda core: core.on_request(ticket, request, self.kernel.now_ms))

    def _on_voter_reply(self, what: str) -> Callable[[Reply], None]:
        def reply_to(reply: Reply) -> None:
            assert isinstance(reply, VoterReply), reply
            if reply.error is ErrorCode.NONE:
                self.kernel.note("%s", what)
                self.kernel.count(what)

        return reply_to

    # --- recovery ---------------------------------------------------------------------------------------

    def recover(self) -> None:
        """Heal everything; the quorum must work again within a minute, with all that was committed."""
        self.kernel.note("calm")
        self.network.heal()
        self.network.faults = NetworkFaults()
        for node in self.nodes.values():
            node.disk.log.is_full = False
        end_ms = self.kernel.now_ms + RECOVERY_MS
        is_appended = False
        while self.kernel.now_ms < end_ms:
            for node in self.nodes.values():
                if node.core is None:
                    node.start()
            self.kernel.run_for(250)
            leaders = self.leaders()
            if not is_appended:
                is_appended = len(leaders) == 1 and self.append_something()
            elif self._is_settled():
                break
        else:
            raise InvariantError("liveness", f"no working quorum after {RECOVERY_MS} ms of calm: {self.describe()}")
        self.rules.check_logs()
        self.rules.check_settled()

    def _is_settled(self) -> bool:
        leaders = self.leaders()
        if len(leaders) != 1:
            return False
        leader = leaders[0]
        ends = {node.disk.log.end_offset for node in self.nodes.values()}
        applied = {node.applied_offset for node in self.nodes.values()}
        epochs = {node.core.replica.epoch for node in self.nodes.values() if node.core is not None}
        return ends == applied == {leader.disk.log.end_offset} and len(epochs) == 1

    def describe(self) -> str:
        lines = []
        for node in self.nodes.values():
            core = node.core
            if core is None:
                lines.append(f"node {node.id} is down")
                continue
            replica = core.replica
            lines.append(
                f"node {node.id}: {type(replica.role).__name__} in epoch {replica.epoch}, leader {replica.leader_id}, "
                f"log {replica.log.start_offset} to {replica.log.end_offset}, committed {replica.high_watermark}, "
                f"voters {sorted(replica.voter_set.by_id)}"
            )
        return "; ".join(lines)
