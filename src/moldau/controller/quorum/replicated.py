"""A quorum of several controllers: drives `raft.core` with a disk, a network and a clock.

What the core decides is carried out in order by one task: the disk in a thread, everything else on the loop. Committed
records become the image, on every controller; only the leader appends. Start at `ReplicatedQuorum.start` and
`ReplicatedQuorum._work`.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from random import Random

from moldau.controller.image import MetadataImage
from moldau.controller.metadata_log import MetadataLog
from moldau.controller.quorum.log import QuorumLog, merged
from moldau.controller.quorum.peers import QuorumPeers
from moldau.controller.quorum.quorum import Committed
from moldau.controller.quorum.records import voters_in, voters_records
from moldau.core.activity import Activity
from moldau.core.clock import Clock
from moldau.core.errors import ErrorCode, MoldauError
from moldau.log.errors import FatalDiskError, StorageError
from moldau.protocol.metadata_records import MetadataRecord
from moldau.raft.core import NotLeaderError, QuorumCore, QuorumView
from moldau.raft.effects import (
    Answer,
    AppendBatches,
    Claim,
    Commit,
    Effect,
    FinishSnapshot,
    Flush,
    Renounce,
    SaveElection,
    Send,
    TruncateLog,
    WriteSnapshot,
)
from moldau.raft.log_history import SnapshotId
from moldau.raft.messages import FetchReply, FetchSnapshotReply, FetchSnapshotRequest, Reply, Request
from moldau.raft.outreach import NEVER
from moldau.raft.replica import FIRST_BOOTSTRAP_SERVER, QuorumBrokenError
from moldau.raft.settings import QuorumSettings
from moldau.raft.voter_history import VoterState
from moldau.raft.voters import Voter, VoterSet

__all__ = ["ReplicatedQuorum", "WireReply"]

log = logging.getLogger(__name__)

RESTART_S = 0.5
"""The pause before a core is started again after the disk has failed it."""
FETCH_BYTES = 1024 * 1024

Event = Callable[[QuorumCore, int], list[Effect]]
WireReply = tuple[Reply, bytes]
"""A reply, and the records of a fetch."""


class ReplicatedQuorum:
    """Used on one loop. `on_claim` is called when this node becomes the active controller."""

    def __init__(
        self,
        metadata_log: MetadataLog,
        me: Voter,
        settings: QuorumSettings,
        voters: VoterSet,
        *,
        clock: Clock,
        on_fatal: Callable[[BaseException], None],
        on_claim: Callable[[int], None],
        bootstrap_servers: Sequence[tuple[str, int]] = (),
        on_image: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_image` is called when `image` was replaced."""
        self.log = metadata_log
        self.me = me
        self.image = MetadataImage()
        """What is committed, as far as this node knows."""
        self._disk = QuorumLog(metadata_log)
        self._settings = settings
        self._voters = voters
        self._clock = clock
        self._on_fatal = on_fatal
        self._on_claim = on_claim
        self.on_image = on_image
        self._servers = bootstrap_servers
        self._peers = QuorumPeers(me.key.id, request_timeout_s=settings.request_timeout_ms / 1000)
        self._loop = asyncio.get_running_loop()
        self._core: QuorumCore | None = None
        self._claimed_epoch = -1
        self._effects: deque[Effect] = deque()
        self._held: deque[Event] = deque()
        self._is_installing = False
        self._worker: asyncio.Task[None] | None = None
        self._sends: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = NEVER
        self._appends: deque[tuple[int, asyncio.Future[Committed]]] = deque()
        self._waiting: dict[asyncio.Future[WireReply], Request] = {}
        self._part: tuple[SnapshotId, bytearray] | None = None
        self._is_closed = False
        self.activity = Activity("a metadata write", patience_s=0.5)

    # --- facts ------------------------------------------------------------------------------------------

    @property
    def epoch(self) -> int:
        return self._claimed_epoch

    @property
    def next_offset(self) -> int:
        return self.log.end_offset

    @property
    def append_offset(self) -> int:
        """The offset that the first record of the next append gets: the core is ahead of the disk."""
        return self.log.end_offset if self._core is None else self._core.replica.log.end_offset

    @property
    def leader(self) -> tuple[int, tuple[str, int] | None]:
        """The leader of the quorum as far as it is known, -1 if it is not, and where it is reached."""
        if self._core is None:
            return -1, None
        hint = self._core.replica.hint()
        return hint.leader_id, (hint.endpoints[0].host, hint.endpoints[0].port) if hint.endpoints else None

    @property
    def is_active(self) -> bool:
        """Whether this node is the active controller."""
        return self._claimed_epoch >= 0

    @property
    def state(self) -> str:
        """What this node is to the quorum, by the names of Kafka's metrics."""
        if self._core is None:
            return "unattached"
        replica = self._core.replica
        role = type(replica.role).__name__.lower()
        if role == "unattached" and replica.election.voted is not None:
            return "voted"
        return "observer" if not replica.may_stand and role in ("follower", "unattached") else role

    def view(self) -> QuorumView:
        assert self._core is not None, "not started"
        return self._core.view()

    def voters(self) -> VoterSet:
        return self._voters if self._core is None else self._core.replica.voter_set

    def kraft_version(self) -> int:
        return 0 if self._core is None else self._core.replica.voters.latest.kraft_version

    # --- life -------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Load the newest snapshot, and take part in the quorum; records after it are applied once committed."""
        self.image = self.log.load_snapshot()
        self._disk.make_durable()
        self._core = QuorumCore(
            self.me,
            self._settings,
            log=self._disk.history(),
            voters=self._disk.voters(self._voters, self._saved_voters()),
            election=self._disk.election(),
            random=Random(),
        )
        self._tell(lambda core, now_ms: core.start(now_ms))

    def _saved_voters(self) -> VoterState | None:
        snapshot = self.log.last_snapshot
        data = None if snapshot is None else self.log.read_snapshot(snapshot)
        return None if data is None else voters_in(data)

    async def close(self) -> None:
        """Resign, if this node leads, and close the log."""
        if self._core is not None:
            self._tell(lambda core, now_ms: core.close(now_ms))
            while self._worker is not None and not self._worker.done():
                await asyncio.wait([self._worker], timeout=1.0)
            # The last requests tell the others that this leader is gone.
            if self._sends:
                await asyncio.wait(self._sends, timeout=0.5)
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        self._peers.close()
        for task in list(self._sends):
            task.cancel()
        self._fail_waiting()
        await self._loop.run_in_executor(None, self.log.partition.close)

    # --- requests ---------------------------------------------------------------------------------------

    async def handle(self, request: Request) -> WireReply:
        """Answer a request of another node, or of a client, about the quorum itself."""
        if self._core is None or self._is_closed:
            raise NotLeaderError("this controller is not running")
        ticket: asyncio.Future[WireReply] = self._loop.create_future()
        self._waiting[ticket] = request
        ticket.add_done_callback(lambda _: self._waiting.pop(ticket, None))
        self._tell(lambda core, now_ms: core.on_request(ticket, request, now_ms))
        return await ticket

    async def append(self, records: Sequence[MetadataRecord]) -> Committed:
        """Append as the active controller; returns when a majority has the records on disk.

        Raises `NotLeaderError` if another node takes over before: the records may or may not be committed then.
        """
        core, epoch = self._core, self._claimed_epoch
        if core is None or epoch < 0:
            raise NotLeaderError(f"node {self.me.key.id} is not the active controller")
        offset, effects = core.append(self.log.encoded(records), len(records), epoch, self._now_ms())
        committed: asyncio.Future[Committed] = self._loop.create_future()
        self._appends.append((offset, committed))
        self._tell(lambda core, now_ms: effects)
        return await committed

    # --- driving the core -------------------------------------------------------------------------------

    def _now_ms(self) -> int:
        return self._clock.monotonic_ms()

    def _tell(self, event: Event) -> None:
        """Pass an event to the core; what it decides is carried out by the worker."""
        core = self._core
        if core is None or self._is_closed:
            return
        if self._is_installing:
            self._held.append(event)
            return
        try:
            effects = merged(event(core, self._now_ms()))
        except NotLeaderError:
            raise
        except QuorumBrokenError as error:
            self._on_fatal(error)
            return
        self._is_installing = any(isinstance(one, FinishSnapshot) for one in effects)
        self._effects.extend(effects)
        if self._effects and (self._worker is None or self._worker.done()):
            self._worker = asyncio.ensure_future(self._work())
        self._set_timer()

    def _set_timer(self) -> None:
        if self._core is None or self._is_installing:
            return
        due_ms = self._core.next_deadline_ms()
        if due_ms == self._timer_ms and self._timer is not None:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._timer_ms = due_ms
        if due_ms < NEVER:
            delay_s = max(0, due_ms - self._now_ms()) / 1000
            self._timer = self._loop.call_later(delay_s, self._on_timer)

    def _on_timer(self) -> None:
        self._timer, self._timer_ms = None, NEVER
        self._tell(lambda core, now_ms: core.on_time(now_ms))

    async def _work(self) -> None:
        """Carry out effects in order; the disk is waited for."""
        try:
            while self._effects and not self._is_closed:
                await self._act(self._effects.popleft())
        except (FatalDiskError, QuorumBrokenError) as error:
            self._on_fatal(error)
        except Exception as error:
            log.exception("the quorum cannot go on")
            self._on_fatal(error)

    async def _act(self, effect: Effect) -> None:
        match effect:
            case SaveElection() | AppendBatches() | Flush() | TruncateLog():
                await self._write(effect)
            case Send():
                self._send(effect)
            case Answer():
                await self._answer(effect)
            case Commit(high_watermark):
                await self._apply(high_watermark)
            case WriteSnapshot(snapshot, position, data):
                self._collect(snapshot, position, data)
            case FinishSnapshot(snapshot):
                await self._install(snapshot)
            case Claim(epoch):
                log.info("node %d is the active controller in epoch %d", self.me.key.id, epoch)
                self._claimed_epoch = epoch
                self._on_claim(epoch)
            case Renounce(epoch):
                log.info("node %d is no longer the leader of epoch %d", self.me.key.id, epoch)
                self._claimed_epoch = -1
                self._fail_appends()

    # --- the disk ---------------------------------------------------------------------------------------

    async def _write(self, effect: Effect) -> None:
        core = self._core
        try:
            await self._loop.run_in_executor(None, self._carry_out, effect)
        except StorageError as error:
            log.error("the metadata log cannot be written: %s", error)
            self._on_failed_write(effect)
            return
        if isinstance(effect, Flush) and core is self._core:
            end_offset, epoch = min(effect.end_offset, self.log.end_offset), effect.epoch
            self._tell(lambda core, now_ms: core.flushed(end_offset, epoch, now_ms))

    def _carry_out(self, effect: Effect) -> None:
        with self.activity:
            self._disk.carry_out(effect)

    def _on_failed_write(self, effect: Effect) -> None:
        """Go on if the core can; else start another one from the disk, after a pause."""
        core = self._core
        if self.log.partition.offline_error is not None:
            self._on_fatal(self.log.partition.offline_error)
            return
        effects: list[Effect] | None = None
        if isinstance(effect, AppendBatches) and core is not None and not self._is_installing:
            effects = core.append_failed(self.log.end_offset, effect.batches[0].epoch, self._now_ms())
        if effects is not None:
            decided = effects
            while self._appends and self._appends[-1][0] >= self.log.end_offset:
                _, failed = self._appends.pop()
                if not failed.done():
                    failed.set_exception(StorageError("the metadata log cannot be written"))
            self._tell(lambda core, now_ms: decided)
            return
        self._core = None
        self._claimed_epoch = -1
        self._effects.clear()
        self._held.clear()
        self._is_installing = False
        self._fail_appends()
        self._fail_waiting()
        if not self._is_closed:
            self._loop.call_later(RESTART_S, self._start_again)

    def _start_again(self) -> None:
        if self._is_closed or self._core is not None:
            return
        try:
            self.start()
        except StorageError as error:
            log.error("the metadata log cannot be used yet, will retry: %s", error)
            self._loop.call_later(RESTART_S, self._start_again)
        except FatalDiskError as error:
            self._on_fatal(error)

    async def _apply(self, high_watermark: int) -> None:
        """Give committed records to the image, then tell who waits for them."""
        try:
            self.image = await self._loop.run_in_executor(None, self.log.replayed, self.image, high_watermark)
        except (KeyError, AttributeError) as error:
            raise QuorumBrokenError(
                f"the metadata up to offset {high_watermark} does not fit what is before it in {self.log.directory}: "
                "the controllers were begun anew with the same cluster id. Nothing else is changed; restore the "
                f"controllers' folders, or move that folder away ({error!r})"
            ) from error
        self.log.partition.high_watermark = high_watermark
        self.on_image()
        while self._appends and self._appends[0][0] < high_watermark:
            offset, committed = self._appends.popleft()
            if not committed.done():
                committed.set_result(Committed(offset, self._claimed_epoch))
        if self.log.is_snapshot_due(self.image):
            await self._save_snapshot()

    def _fail_appends(self) -> None:
        while self._appends:
            _, committed = self._appends.popleft()
            if not committed.done():
                committed.set_exception(NotLeaderError(f"node {self.me.key.id} is no longer the leader"))

    def _fail_waiting(self) -> None:
        for ticket in list(self._waiting):
            if not ticket.done():
                ticket.set_exception(NotLeaderError(f"node {self.me.key.id} no longer answers"))

    # --- snapshots --------------------------------------------------------------------------------------

    async def _save_snapshot(self) -> None:
        """Write a snapshot of what is committed, and forget the records that it makes superfluous."""
        core = self._core
        if core is None:
            return
        try:
            quorum = voters_records(core.voters_at(self.image.offset + 1))
            snapshot = await self._loop.run_in_executor(None, self.log.save_snapshot, self.image, quorum)
            await self._loop.run_in_executor(None, self.log.trim)
        except (OSError, StorageError) as error:
            log.error("cannot write a snapshot of the metadata, will retry: %s", error)
            return
        if self._core is not None:
            self._core.snapshot_saved(SnapshotId(*snapshot))
            self._core.log_trimmed(self.log.partition.log_start_offset)

    def _collect(self, snapshot: SnapshotId, position: int, data: bytes) -> None:
        if self._part is None or self._part[0] != snapshot or position == 0:
            self._part = (snapshot, bytearray())
        del self._part[1][position:]
        self._part[1].extend(data)

    async def _install(self, snapshot: SnapshotId) -> None:
        """Put a fetched snapshot in the place of the log. Events that came meanwhile are told afterwards."""
        data = b"" if self._part is None else bytes(self._part[1])
        self._part = None
        image = await self._loop.run_in_executor(None, self.log.install_snapshot, snapshot, data)
        self._is_installing = False
        held, self._held = self._held, deque()
        if image is None:
            self._tell(lambda core, now_ms: core.snapshot_failed(now_ms))
        else:
            self.image = image
            self.on_image()
            voters = voters_in(data)
            self._tell(lambda core, now_ms: core.snapshot_installed(snapshot, voters, now_ms))
        for event in held:
            self._tell(event)

    # --- messages ---------------------------------------------------------------------------------------

    def _send(self, effect: Send) -> None:
        task = asyncio.ensure_future(self._exchange(effect, self._core))
        self._sends.add(task)
        task.add_done_callback(self._sends.discard)

    async def _exchange(self, effect: Send, core: QuorumCore | None) -> None:
        address = self._address_of(effect.to)
        reply = None if address is None else await self._peers.ask(address, effect.request)
        if self._core is not core:
            return  # the reply is to a core that was dropped
        if reply is None:
            self._tell(lambda core, now_ms: core.on_failure(effect.to, effect.number, now_ms))
        else:
            self._tell(lambda core, now_ms: core.on_reply(effect.to, effect.number, reply, now_ms))

    def _address_of(self, node_id: int) -> tuple[str, int] | None:
        if node_id <= FIRST_BOOTSTRAP_SERVER:
            return self._servers[FIRST_BOOTSTRAP_SERVER - node_id]
        endpoints = () if self._core is None else self._core.replica.endpoints_of(node_id)
        return (endpoints[0].host, endpoints[0].port) if endpoints else None

    async def _answer(self, effect: Answer) -> None:
        ticket, reply, records = effect.ticket, effect.reply, b""
        if not isinstance(ticket, asyncio.Future) or ticket.done():
            return
        if effect.read_from is not None and isinstance(reply, FetchReply):
            try:
                records = await self._loop.run_in_executor(None, self.log.read, effect.read_from, FETCH_BYTES)
            except MoldauError as error:  # trimmed since, or unreadable: the follower asks again
                reply = reply._replace(error=error.code)
        elif effect.read_from is not None and isinstance(reply, FetchSnapshotReply):
            reply = self._snapshot_part(self._waiting.get(ticket), reply)
        if not ticket.done():
            ticket.set_result((reply, records))

    def _snapshot_part(self, request: Request | None, reply: FetchSnapshotReply) -> FetchSnapshotReply:
        assert isinstance(request, FetchSnapshotRequest), request
        data = self.log.read_snapshot(request.snapshot)
        if data is None:
            return reply._replace(error=ErrorCode.SNAPSHOT_NOT_FOUND)
        if request.position >= len(data):
            return reply._replace(error=ErrorCode.POSITION_OUT_OF_RANGE)
        limit = min(max(1, request.max_bytes), FETCH_BYTES)
        return reply._replace(size=len(data), data=data[request.position : request.position + limit])
