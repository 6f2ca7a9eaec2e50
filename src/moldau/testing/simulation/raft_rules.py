"""The rules that a cluster of controllers must keep at every moment, whatever happens.

Each has a name, which `InvariantError` carries: a mutant of the core must be caught by the rule that forbids it.
Start at `RaftRules`.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Final

from moldau.raft.log_history import SnapshotId
from moldau.raft.records import Batch
from moldau.raft.roles import Candidate, Leader, Prospective
from moldau.testing.simulation.kernel import InvariantError
from moldau.testing.simulation.raft_node import RaftNode

if TYPE_CHECKING:
    from moldau.testing.simulation.quorum import SimulatedQuorum

__all__ = [
    "COMMITTED_IS_ON_DISK",
    "COMMITTED_STAYS",
    "COMPLETE_LEADER",
    "HIGH_WATERMARK",
    "LINEAR",
    "LOG_MATCHING",
    "ONE_LEADER",
    "OWN_EPOCH",
    "SNAPSHOTS",
    "RaftRules",
]

ONE_LEADER: Final = "one leader per epoch"
COMPLETE_LEADER: Final = "a leader has everything committed"
COMMITTED_STAYS: Final = "committed records never change"
COMMITTED_IS_ON_DISK: Final = "committed means synced by a majority"
OWN_EPOCH: Final = "a leader commits by a record of its own epoch"
HIGH_WATERMARK: Final = "the high watermark only rises, within the log"
LOG_MATCHING: Final = "logs with the same record are the same up to it"
LINEAR: Final = "acknowledged records keep their order"
SNAPSHOTS: Final = "a snapshot has exactly what is committed"


class RaftRules:
    def __init__(self, cluster: SimulatedQuorum) -> None:
        self.cluster = cluster
        self.kernel = cluster.kernel
        self.leader_of: dict[int, int] = {}
        self.committed: list[Batch] = []
        """Everything that any node ever took for committed, in order, without gaps."""
        self.acknowledged: dict[bytes, int] = {}
        self._expected: dict[tuple[int, int], list[tuple[int, bytes, int]]] = {}
        """By node and epoch: offset, payload and how much was acknowledged when it was sent."""
        self._high_watermarks: dict[tuple[int, int], int] = {}
        self._epochs: dict[int, int] = {}
        self._roles: dict[int, type] = {}
        self._newest_acknowledged = -1

    # --- elections --------------------------------------------------------------------------------------

    def check_role(self, node: RaftNode) -> None:
        core = node.core
        if core is None:
            return
        replica, role = core.replica, core.replica.role
        kind = type(role)
        if self._roles.get(node.id) is not kind:
            self._roles[node.id] = kind
            if kind is Prospective:
                self.kernel.count("pre-votes")
            elif kind is Candidate:
                self.kernel.count("candidates")
            elif kind is not Leader and node.claimed_epoch >= 0:
                self.kernel.count("leaders that stepped down")
        if isinstance(role, Leader) and self.leader_of.get(role.epoch) != node.id:
            if role.epoch in self.leader_of:
                raise InvariantError(ONE_LEADER, f"{self.leader_of[role.epoch]} and {node.id} lead in {role.epoch}")
            self.leader_of[role.epoch] = node.id
            self.kernel.note("node %d leads in epoch %d", node.id, role.epoch)
            self.kernel.count("elections")
            self._check_complete(node, replica.log.end_offset)

    def _check_complete(self, node: RaftNode, end_offset: int) -> None:
        """Everything committed before the election is in the new leader's log."""
        entries = node.disk.log.entries
        for batch in reversed(self.committed):
            if batch.last_offset < node.disk.log.start_offset:
                break
            index = bisect_left(entries, batch.last_offset, key=lambda one: one.last_offset)
            if index == len(entries) or entries[index] != batch:
                raise InvariantError(COMPLETE_LEADER, f"{node.id} leads without {batch}")

    # --- commits ----------------------------------------------------------------------------------------

    def check_commit(self, node: RaftNode, high_watermark: int) -> None:
        key = (node.id, node.incarnation)
        log = node.disk.log
        if high_watermark <= self._high_watermarks.get(key, -1) or high_watermark > log.end_offset:
            details = f"{node.id} goes to {high_watermark}, its log ends at {log.end_offset}"
            raise InvariantError(HIGH_WATERMARK, details)
        self._high_watermarks[key] = high_watermark
        self._check_batches(node, high_watermark)

    def check_decision(self, node: RaftNode, high_watermark: int) -> None:
        """What a leader decides to be committed. Followers hear of it, and it is carried out, later."""
        core = node.core
        if core is not None and isinstance(core.replica.role, Leader):
            self._check_leader_commit(node, core.replica.role, high_watermark)
            self._acknowledge(node, core.replica.role.epoch, high_watermark)

    def _check_batches(self, node: RaftNode, high_watermark: int) -> None:
        """What a node takes for committed is what all others did."""
        known_end = self.committed[-1].last_offset + 1 if self.committed else 0
        first = max(node.applied_offset, node.disk.log.start_offset)
        for batch in node.disk.log.read(first, len(node.disk.log.entries)):
            if batch.base_offset >= high_watermark:
                break
            if batch.last_offset < known_end:
                index = bisect_left(self.committed, batch.last_offset, key=lambda one: one.last_offset)
                if self.committed[index] != batch:
                    raise InvariantError(COMMITTED_STAYS, f"{node.id} has {batch}, others {self.committed[index]}")
            elif batch.base_offset != known_end:
                raise InvariantError(COMMITTED_STAYS, f"{node.id} commits {batch}, but the others are at {known_end}")
            else:
                self.committed.append(batch)
                known_end = batch.last_offset + 1

    def _check_leader_commit(self, node: RaftNode, role: Leader, high_watermark: int) -> None:
        log, core = node.disk.log, node.core
        assert core is not None
        last = next((one for one in reversed(log.entries) if one.last_offset < high_watermark), None)
        if last is None:
            return
        if last.epoch != role.epoch:
            raise InvariantError(OWN_EPOCH, f"{node.id} commits {last} as the leader of {role.epoch}")
        voters = core.replica.voter_set
        holders = [
            voter.key.id
            for voter in voters
            if voter.key.id in self.cluster.nodes and self.cluster.nodes[voter.key.id].disk.log.has_synced(last)
        ]
        if 2 * len(holders) <= len(voters):
            raise InvariantError(COMMITTED_IS_ON_DISK, f"{last} is on the disks of {holders} of {sorted(voters.by_id)}")

    # --- clients ----------------------------------------------------------------------------------------

    def expect(self, node: RaftNode, payload: bytes, offset: int) -> None:
        """A client waits for its record to be committed by this leader."""
        waiting = self._expected.setdefault((node.id, node.claimed_epoch), [])
        waiting.append((offset, payload, self._newest_acknowledged))

    def forget(self, node: RaftNode, epoch: int, end_offset: int) -> None:
        """The clients of these records were told that they were not appended."""
        key = (node.id, epoch)
        self._expected[key] = [one for one in self._expected.get(key, []) if one[0] < end_offset]

    def _acknowledge(self, node: RaftNode, epoch: int, high_watermark: int) -> None:
        waiting = self._expected.get((node.id, epoch), [])
        while waiting and waiting[0][0] < high_watermark:
            offset, payload, before = waiting.pop(0)
            if offset <= before:
                raise InvariantError(LINEAR, f"{payload!r} was sent after {before} was known, and is at {offset}")
            self.acknowledged[payload] = offset
            self._newest_acknowledged = max(self._newest_acknowledged, offset)
            self.kernel.count("records acknowledged")

    # --- logs and snapshots -----------------------------------------------------------------------------

    def check_snapshot(self, node: RaftNode, snapshot: SnapshotId) -> None:
        """A snapshot is the same whoever wrote it, and is what the committed records say."""
        saved = node.disk.snapshots[snapshot]
        known = self.cluster.snapshots.setdefault(snapshot, saved)
        below = [one for one in self.committed if one.last_offset < snapshot.end_offset]
        expected = b"".join(one.payload for one in below)
        is_whole = (
            bool(below) and below[-1].last_offset + 1 == snapshot.end_offset and below[-1].epoch == snapshot.epoch
        )
        if not is_whole or saved.data != expected or known != saved:
            raise InvariantError(SNAPSHOTS, f"{node.id} has a wrong snapshot {snapshot}")

    def check_logs(self) -> None:
        """Where two logs have the same epoch at the same offset, they are equal up to it."""
        logs = [(node.id, node.disk.log) for node in self.cluster.nodes.values()]
        for number, (first_id, first) in enumerate(logs):
            for other_id, other in logs[number + 1 :]:
                batches = {one.last_offset: one for one in first.entries}
                is_same = False
                for batch in reversed(other.entries):
                    mine = batches.get(batch.last_offset)
                    if mine is None:
                        if is_same and first.start_offset <= batch.base_offset:
                            raise InvariantError(LOG_MATCHING, f"{first_id} has nothing where {other_id} has {batch}")
                        continue
                    if mine.epoch == batch.epoch:
                        is_same = True
                    if is_same and mine != batch:
                        raise InvariantError(LOG_MATCHING, f"{first_id} has {mine}, {other_id} has {batch}")

    def check_settled(self) -> None:
        """In the end every node has everything that was acknowledged, at its offset, once and in order."""
        payloads = [one.payload for one in self.committed if one.payload]
        if len(set(payloads)) != len(payloads):
            raise InvariantError(LINEAR, "a record is committed twice")
        offsets = {one.payload: one.last_offset for one in self.committed if one.payload}
        for payload, offset in self.acknowledged.items():
            if offsets.get(payload) != offset:
                raise InvariantError(COMMITTED_STAYS, f"{payload!r} was acknowledged at {offset} and is lost")
        for node in self.cluster.nodes.values():
            if node.applied != payloads:
                raise InvariantError(COMMITTED_STAYS, f"{node.id} has another history than the others")
