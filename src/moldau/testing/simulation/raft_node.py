"""A simulated controller: a `raft.core` with a disk, timers and a state machine, and the shell that drives it.

It does what a real shell must do: it carries out effects in order, waits for the disk where the order asks for it, and
takes nothing in while a snapshot replaces its log. `SimulatedDisk` is what survives a crash. Start at
`RaftNode._carry_out`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from moldau.core.errors import ErrorCode
from moldau.raft.core import QuorumCore
from moldau.raft.effects import (
    Answer,
    AppendBatches,
    Claim,
    Commit,
    Effect,
    ElectionState,
    FinishSnapshot,
    Flush,
    Renounce,
    SaveElection,
    Send,
    TruncateLog,
    WriteSnapshot,
)
from moldau.raft.log_history import UNKNOWN_EPOCH, LogHistory, SnapshotId
from moldau.raft.messages import FetchReply, FetchSnapshotReply, FetchSnapshotRequest, Reply, Request
from moldau.raft.outreach import NEVER
from moldau.raft.records import Batch
from moldau.raft.settings import QuorumSettings
from moldau.raft.voter_history import BEFORE_THE_LOG, VoterHistory, VoterState
from moldau.raft.voters import Voter, VoterSet
from moldau.testing.simulation.memory_log import DiskFullError, MemoryLog

if TYPE_CHECKING:
    from moldau.testing.simulation.quorum import SimulatedQuorum

__all__ = ["RaftNode", "SavedSnapshot", "SimulatedDisk", "Ticket"]

BATCHES_PER_FETCH = 8
RESTART_MS = 300
"""The pause before a node whose disk has failed it tries again."""


class SavedSnapshot(NamedTuple):
    """The state at an offset: all payloads committed below it, and the voters if the quorum is dynamic."""

    data: bytes
    voters: VoterState | None


class SimulatedDisk:
    """What a crash leaves."""

    def __init__(self) -> None:
        self.log: MemoryLog[Batch] = MemoryLog()
        self.election = ElectionState()
        self.snapshots: dict[SnapshotId, SavedSnapshot] = {}

    @property
    def newest_snapshot(self) -> SnapshotId | None:
        return max(self.snapshots, default=None)


class Ticket(NamedTuple):
    """Who waits for an answer."""

    request: Request
    reply_to: Callable[[Reply], None]


class RaftNode:
    def __init__(
        self,
        cluster: SimulatedQuorum,
        me: Voter,
        settings: QuorumSettings,
        configured: VoterSet,
        kraft_version: int = 0,
    ) -> None:
        self.cluster = cluster
        self.kernel = cluster.kernel
        self.me = me
        self.id = me.key.id
        self.settings = settings
        self.disk = SimulatedDisk()
        self.core: QuorumCore | None = None
        self.incarnation = 0
        self.applied: list[bytes] = []
        """The state machine: the payloads committed so far."""
        self.applied_offset = 0
        self.claimed_epoch = -1
        self._configured = configured
        self._formatted_version = kraft_version
        self._effects: deque[Effect] = deque()
        self._held: deque[Callable[[QuorumCore], list[Effect]]] = deque()
        self._is_waiting_for_disk = False
        self._is_installing = False
        self.is_frozen = False
        self._timer_ms = NEVER
        self._parts: dict[SnapshotId, bytes] = {}

    # --- life -------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Load what the disk has, as a process does."""
        disk, log = self.disk, self.disk.log
        snapshot = disk.newest_snapshot
        if snapshot is not None and snapshot.end_offset > log.end_offset:
            log.start_at(snapshot.end_offset)
        self.make_durable()
        voters = VoterHistory(self._configured, self._formatted_version)
        self.applied, self.applied_offset, self.claimed_epoch = [], 0, -1
        start_epoch = 0
        if snapshot is not None:
            if log.start_offset > 0:
                start_epoch = snapshot.epoch if snapshot.end_offset == log.start_offset else UNKNOWN_EPOCH
            self._restore(snapshot)
            saved = disk.snapshots[snapshot].voters
            if saved is not None:
                voters.start_at(snapshot.end_offset, saved.kraft_version, saved.voters)
        history = LogHistory(
            start_offset=log.start_offset,
            start_epoch=start_epoch,
            end_offset=log.end_offset,
            epochs=log.epochs,
            snapshot=snapshot,
        )
        for batch in log.entries:
            if batch.base_offset >= self.applied_offset:
                voters.append(batch)
        self.core = QuorumCore(
            self.me, self.settings, log=history, voters=voters, election=disk.election, random=self.kernel.random
        )
        text = "node %d starts: epoch %d, log %d to %d"
        self.kernel.note(text, self.id, disk.election.epoch, log.start_offset, log.end_offset)
        self.tell(lambda core: core.start(self.kernel.now_ms))

    def make_durable(self) -> None:
        """What a killed process left unsynced is vouched for by this node's first fetch."""
        self.disk.log.flush()

    def crash(self, *, loses_power: bool = True) -> None:
        """Memory is gone and, with the power, what was not synced."""
        if self.core is None:
            self.incarnation += 1  # it does not come back by itself either
            return
        self.kernel.note("node %d crashes", self.id)
        self.kernel.count("crashes")
        self._forget()
        if loses_power:
            self.disk.log.lose_power(self.kernel.random)

    def freeze(self) -> None:
        """Do nothing for now, and answer nobody."""
        self.is_frozen = True

    def thaw(self) -> None:
        self.is_frozen = False
        self._go_on()

    def _forget(self) -> None:
        """Drop the core and whatever it wanted to be done."""
        self.core = None
        self.incarnation += 1
        self._effects.clear()
        self._held.clear()
        self._parts.clear()
        self._is_waiting_for_disk = self._is_installing = self.is_frozen = False
        self._timer_ms = NEVER

    def shut_down(self) -> None:
        """End in order: say goodbye, then go."""
        core = self.core
        if core is None:
            return
        self.kernel.count("orderly ends")
        self.tell(lambda core: core.close(self.kernel.now_ms))
        incarnation = self.incarnation
        self.kernel.after(20, lambda: self.crash() if self.incarnation == incarnation else None)

    # --- driving the core -------------------------------------------------------------------------------

    def tell(self, event: Callable[[QuorumCore], list[Effect]]) -> None:
        """Pass an event to the core and carry out what it decides."""
        if self.core is None:
            return
        if self._is_installing or self.is_frozen:
            self._held.append(event)
            return
        effects = event(self.core)
        self.cluster.check_role(self)
        for effect in effects:
            if type(effect) is FinishSnapshot:
                self._is_installing = True
            elif type(effect) is Commit:
                self.cluster.rules.check_decision(self, effect.high_watermark)
        self._effects.extend(effects)
        self._carry_out()
        self._set_timer()

    def _set_timer(self) -> None:
        if self.core is None:
            return
        due_ms = self.core.next_deadline_ms()
        if due_ms < self._timer_ms:
            self._timer_ms = due_ms
            incarnation = self.incarnation
            self.kernel.after(due_ms - self.kernel.now_ms, lambda: self._on_timer(due_ms, incarnation))

    def _on_timer(self, due_ms: int, incarnation: int) -> None:
        if self.incarnation != incarnation or self._timer_ms != due_ms or self.core is None:
            return
        self._timer_ms = NEVER
        if self._is_installing or self.is_frozen:
            self._held.append(lambda core: core.on_time(self.kernel.now_ms))
        elif self.core.next_deadline_ms() <= self.kernel.now_ms:
            self.tell(lambda core: core.on_time(self.kernel.now_ms))
        else:
            self._set_timer()

    def _carry_out(self) -> None:
        """Carry out effects in order, up to one that has to wait for the disk."""
        while self._effects and not self._is_waiting_for_disk and self.core is not None:
            effect = self._effects.popleft()
            if isinstance(effect, SaveElection | Flush) and self.kernel.chance(0.3):
                self._wait_for_disk(effect)
            else:
                self._act(effect)

    def _wait_for_disk(self, effect: Effect) -> None:
        self._is_waiting_for_disk = True
        incarnation = self.incarnation

        def done() -> None:
            if self.incarnation == incarnation and self.is_frozen:
                self.kernel.after(20, done)
            elif self.incarnation == incarnation:
                self._is_waiting_for_disk = False
                self._act(effect)
                self._carry_out()
                self._set_timer()

        self.kernel.after(self.kernel.random.choice((1, 2, 10, 60)), done)

    def _act(self, effect: Effect) -> None:
        """Carry out one effect."""
        match effect:
            case Send():
                self.cluster.send(self, effect)
            case Answer():
                self._answer(effect)
            case SaveElection(state):
                if self.disk.log.is_full:
                    self.kernel.count("failed saves")
                    self._start_anew()
                else:
                    self.disk.election = state
            case AppendBatches(batches):
                self._append(batches)
            case Flush():
                self._flush(effect)
            case TruncateLog(end_offset):
                self.kernel.note("node %d cuts its log to %d", self.id, end_offset)
                self.kernel.count("truncations")
                self.disk.log.truncate_to(end_offset)
            case WriteSnapshot(snapshot, position, data):
                self._parts[snapshot] = self._parts.get(snapshot, b"")[:position] + data
            case FinishSnapshot(snapshot):
                self._install(snapshot)
            case Commit(high_watermark):
                self.cluster.check_commit(self, high_watermark)
                self.apply(high_watermark)
            case Claim(epoch):
                self.claimed_epoch = epoch
                self.kernel.count("claims")
            case Renounce():
                self.claimed_epoch = -1

    # --- the log ----------------------------------------------------------------------------------------

    def _append(self, batches: tuple[Batch, ...]) -> None:
        log = self.disk.log
        for batch in batches:
            if batch.base_offset != log.end_offset:
                break  # an append before it has failed
            try:
                log.append(batch)
            except DiskFullError:
                self.kernel.count("failed appends")
                self._on_failed_append(log.end_offset, batch.epoch)
                return

    def _on_failed_append(self, end_offset: int, epoch: int) -> None:
        core = self.core
        assert core is not None
        effects = None if self._is_installing else core.append_failed(end_offset, epoch, self.kernel.now_ms)
        if effects is not None:
            self.cluster.rules.forget(self, epoch, end_offset)
            self.tell(lambda _: effects)
        else:
            self._start_anew()

    def _start_anew(self) -> None:
        """The core is ahead of a disk that has failed it: another one begins with what is there."""
        self.kernel.count("cores started anew")
        self._forget()
        incarnation = self.incarnation
        self.kernel.after(RESTART_MS, lambda: self.start() if self._is_down(incarnation) else None)

    def _is_down(self, incarnation: int) -> bool:
        return self.core is None and self.incarnation == incarnation

    def _flush(self, effect: Flush) -> None:
        self.disk.log.flush()
        end_offset = min(effect.end_offset, self.disk.log.end_offset)
        self.tell(lambda core: core.flushed(end_offset, effect.epoch, self.kernel.now_ms))

    def apply(self, high_watermark: int) -> None:
        """Give committed records to the state machine."""
        while self.applied_offset < high_watermark:
            batches = self.disk.log.read(self.applied_offset, BATCHES_PER_FETCH)
            if not batches or batches[0].base_offset >= high_watermark:
                return
            for batch in batches:
                if batch.last_offset >= high_watermark:
                    return
                if batch.payload:
                    self.applied.append(batch.payload)
                self.applied_offset = batch.last_offset + 1

    # --- snapshots --------------------------------------------------------------------------------------

    def save_snapshot(self, *, is_trimmed: bool) -> None:
        """Write a snapshot of all that is applied, and perhaps begin the log behind it."""
        core = self.core
        if core is None or self._is_installing or self.applied_offset <= self.disk.log.start_offset:
            return
        if self.applied_offset > core.high_watermark or self.applied_offset > core.replica.log.end_offset:
            return
        snapshot = SnapshotId(self.applied_offset, core.replica.log.epoch_before(self.applied_offset))
        state = core.voters_at(snapshot.end_offset)
        voters = state._replace(offset=BEFORE_THE_LOG) if state.kraft_version else None
        self.disk.snapshots[snapshot] = SavedSnapshot(b"".join(self.applied), voters)
        self.cluster.check_snapshot(self, snapshot)
        core.snapshot_saved(snapshot)
        self.kernel.count("snapshots")
        if is_trimmed:
            self.kernel.note("node %d trims its log to %d", self.id, snapshot.end_offset)
            self.disk.log.trim(snapshot.end_offset)
            core.log_trimmed(snapshot.end_offset)
            for old in sorted(self.disk.snapshots)[:-1]:
                del self.disk.snapshots[old]

    def _install(self, snapshot: SnapshotId) -> None:
        self.kernel.note("node %d installs the snapshot up to %d", self.id, snapshot.end_offset)
        self.kernel.count("snapshots installed")
        voters = self.cluster.snapshots[snapshot].voters
        self.disk.snapshots[snapshot] = SavedSnapshot(self._parts.pop(snapshot, b""), voters)
        self.cluster.check_snapshot(self, snapshot)
        self.disk.log.start_at(snapshot.end_offset)
        self._restore(snapshot)
        self._is_installing = False
        self._held.appendleft(lambda core: core.snapshot_installed(snapshot, voters, self.kernel.now_ms))
        self._go_on()

    def _go_on(self) -> None:
        """Take in what was held back."""
        held, self._held = self._held, deque()
        for event in held:
            self.tell(event)

    def _restore(self, snapshot: SnapshotId) -> None:
        data = self.disk.snapshots[snapshot].data
        size = self.cluster.payload_bytes
        self.applied = [data[at : at + size] for at in range(0, len(data), size)]
        self.applied_offset = snapshot.end_offset

    # --- answers ----------------------------------------------------------------------------------------

    def _answer(self, effect: Answer) -> None:
        ticket, reply = effect.ticket, effect.reply
        assert isinstance(ticket, Ticket), ticket
        if effect.read_from is not None:
            if isinstance(reply, FetchReply):
                reply = reply._replace(batches=tuple(self.disk.log.read(effect.read_from, BATCHES_PER_FETCH)))
            elif isinstance(reply, FetchSnapshotReply):
                reply = self._read_snapshot(ticket.request, reply)
        ticket.reply_to(reply)

    def _read_snapshot(self, request: Request, reply: FetchSnapshotReply) -> FetchSnapshotReply:
        assert isinstance(request, FetchSnapshotRequest), request
        saved = self.disk.snapshots.get(request.snapshot)
        if saved is None:
            return reply._replace(error=ErrorCode.SNAPSHOT_NOT_FOUND)
        if request.position > len(saved.data):
            return reply._replace(error=ErrorCode.POSITION_OUT_OF_RANGE)
        part = saved.data[request.position : request.position + request.max_bytes]
        return reply._replace(size=len(saved.data), data=part)
