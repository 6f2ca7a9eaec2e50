"""The nodes of a simulated metadata quorum and what lies between them: messages, rules, snapshots.

What happens to them is another matter: `raft_cluster` torments a quorum alone, `whole_cluster` one with its brokers.
Start at `SimulatedQuorum.send`.
"""

from __future__ import annotations

from moldau.raft.effects import Send
from moldau.raft.log_history import SnapshotId
from moldau.raft.messages import Reply
from moldau.raft.replica import FIRST_BOOTSTRAP_SERVER
from moldau.testing.simulation.kernel import Kernel
from moldau.testing.simulation.network import Network
from moldau.testing.simulation.raft_node import RaftNode, SavedSnapshot, Ticket
from moldau.testing.simulation.raft_rules import RaftRules

__all__ = ["SimulatedQuorum"]


class SimulatedQuorum:
    payload_bytes = 4

    def __init__(self, kernel: Kernel, network: Network) -> None:
        self.kernel = kernel
        self.network = network
        self.nodes: dict[int, RaftNode] = {}
        self.first_voters: list[int] = []
        """The voters behind the addresses that a dynamic quorum is configured with."""
        self.rules = RaftRules(self)
        self.snapshots: dict[SnapshotId, SavedSnapshot] = {}
        """Every snapshot that was ever written: those of one offset must be the same."""

    def leaders(self) -> list[RaftNode]:
        """The nodes that take themselves for the active controller."""
        return [one for one in self.nodes.values() if one.core is not None and one.claimed_epoch >= 0]

    # --- messages ---------------------------------------------------------------------------------------

    def send(self, source: RaftNode, effect: Send) -> None:
        """Carry a request over the network, and its reply back to the same process, if that still runs."""
        target_id = effect.to
        if target_id <= FIRST_BOOTSTRAP_SERVER:
            target_id = self.first_voters[FIRST_BOOTSTRAP_SERVER - target_id]
        target = self.nodes.get(target_id)
        if target is None:
            return
        self.kernel.note("%d to %d: %s", source.id, target_id, effect.request)
        incarnation = source.incarnation

        def receive_reply(reply: Reply) -> None:
            if source.incarnation == incarnation:
                source.tell(lambda core: core.on_reply(effect.to, effect.number, reply, self.kernel.now_ms))

        def reply_to(reply: Reply) -> None:
            self.kernel.note("%d answers %d: %s", target_id, source.id, reply)
            self.network.send(target_id, source.id, lambda: receive_reply(reply))

        def receive() -> None:
            if target.core is not None:
                ticket = Ticket(effect.request, reply_to)
                target.tell(lambda core: core.on_request(ticket, effect.request, self.kernel.now_ms))
            elif source.incarnation == incarnation:
                source.tell(lambda core: core.on_failure(effect.to, effect.number, self.kernel.now_ms))

        self.network.send(source.id, target_id, receive)

    # --- rules ------------------------------------------------------------------------------------------

    def check_role(self, node: RaftNode) -> None:
        self.rules.check_role(node)

    def check_commit(self, node: RaftNode, high_watermark: int) -> None:
        self.rules.check_commit(node, high_watermark)

    def check_snapshot(self, node: RaftNode, snapshot: SnapshotId) -> None:
        self.rules.check_snapshot(node, snapshot)
