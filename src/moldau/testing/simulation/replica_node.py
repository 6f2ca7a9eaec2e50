"""A simulated broker with one replica: the shell around the pure cores of replication, with a log in memory.

It does what `broker.partition`, `broker.data.fetch` and `broker.replication.fetchers` do with a disk and sockets, with
the same cores (`broker.replication.leading`, `broker.replication.following`). Start at `ReplicaNode.on_fetch`.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol

from moldau.broker.replication import following
from moldau.broker.replication.leading import IsrWish, Leading
from moldau.controller.image import MetadataImage, PartitionImage
from moldau.log.leader_epochs import LeaderEpochs
from moldau.testing.simulation.memory_log import DiskFullError, MemoryLog

if TYPE_CHECKING:
    from moldau.testing.simulation.kernel import Kernel

__all__ = ["Entry", "Fetch", "FetchAnswer", "ReplicaHost", "ReplicaNode"]

LAG_MS = 1500
FETCH_MS = 15
FETCH_TIMEOUT_MS = 400
BEAT_MS = 150
LOOK_MS = 200
BATCHES = 5


class Entry(NamedTuple):
    base_offset: int
    last_offset: int
    epoch: int
    value: object


class Fetch(NamedTuple):
    node_id: int
    broker_epoch: int
    leader_epoch: int
    offset: int
    last_epoch: int


class FetchAnswer(NamedTuple):
    is_refused: bool = False
    diverging: tuple[int, int] | None = None
    entries: tuple[Entry, ...] = ()
    high_watermark: int = -1


class ReplicaHost(Protocol):
    """The cluster around a replica: its network, its controller, its clients and those who judge."""

    @property
    def kernel(self) -> Kernel: ...
    @property
    def min_isr(self) -> int: ...
    def beat(self, node: ReplicaNode) -> None: ...
    def ask_for_metadata(self, node: ReplicaNode) -> None: ...
    def propose(self, node: ReplicaNode, leader_epoch: int, wish: IsrWish) -> None: ...
    def fetch(self, follower: ReplicaNode, leader_id: int, asked: Fetch, number: int) -> None: ...
    def on_leader(self, node: ReplicaNode, partition: PartitionImage) -> None: ...
    def on_acknowledged(self, node: ReplicaNode, entry: Entry) -> None: ...
    def on_committed(self, node: ReplicaNode, entry: Entry) -> None: ...


class ReplicaNode:
    """Its log outlives it; everything else is gone when it is started again."""

    def __init__(self, cluster: ReplicaHost, node_id: int, topic: str = "t", number: int = 0) -> None:
        self.cluster = cluster
        self.node_id = node_id
        self.topic, self.number = topic, number
        self.log: MemoryLog[Entry] = MemoryLog()
        self.saved_watermark = 0
        self.orderly_epoch = -1
        """The broker epoch under which it last stopped in order: what a clean-shutdown file tells."""
        self.is_alive = False
        self.life = 0
        self._frozen: list[Callable[[], None]] | None = None
        self._reset()

    def _reset(self) -> None:
        self.image = MetadataImage()
        self.partition: PartitionImage | None = None
        self.is_leader = False
        self.leading: Leading | None = None
        self.epochs = LeaderEpochs(self.log.epochs)
        self.high_watermark = min(self.saved_watermark, self.log.end_offset)
        self.broker_epoch = -1
        self.is_stale = False
        """Whether the controller knows this broker under another epoch."""
        self.incarnation_id = uuid.UUID(int=self.cluster.kernel.random.getrandbits(127) + 1000)
        self.wants_stop = False
        self.waits: list[Entry] = []
        self._fetch_number = 0
        self._wish: IsrWish | None = None

    # --- life -------------------------------------------------------------------------------------------

    def start(self) -> None:
        self.is_alive, self._frozen = True, None
        self.life += 1
        self._reset()
        for interval_ms, action in self._habits():
            self._every(interval_ms, action)
        self._fetch_again(self._fetch_number)

    def _habits(self) -> list[tuple[int, Callable[[], None]]]:
        return [(BEAT_MS, self._beat), (LOOK_MS, self._look), (FETCH_MS, self._ask_for_metadata)]

    def stop(self, *, loses_power: bool = False) -> None:
        self.is_alive, self._frozen = False, None
        self.saved_watermark = min(self.saved_watermark, self.log.end_offset)
        if loses_power:
            self.log.lose_power(self.cluster.kernel.random)
            self.saved_watermark = min(self.saved_watermark, self.log.end_offset)

    def freeze(self) -> None:
        self._frozen = []

    def thaw(self) -> None:
        held, self._frozen = self._frozen or [], None
        for action in held:
            action()

    def later(self, delay_ms: int, action: Callable[[], None]) -> None:
        life = self.life
        self.cluster.kernel.after(delay_ms, lambda: self.run(action, life))

    def run(self, action: Callable[[], None], life: int) -> None:
        """Act, unless this process is gone; a frozen one acts when it is thawed."""
        if not self.is_alive or life != self.life:
            return
        if self._frozen is not None:
            self._frozen.append(action)
        else:
            action()

    def _every(self, interval_ms: int, action: Callable[[], None]) -> None:
        def act() -> None:
            action()
            self.later(interval_ms, act)

        self.later(self.cluster.kernel.random.randrange(interval_ms), act)

    # --- metadata ---------------------------------------------------------------------------------------

    def _beat(self) -> None:
        self.saved_watermark = self.high_watermark
        self.cluster.beat(self)

    def _ask_for_metadata(self) -> None:
        self.cluster.ask_for_metadata(self)

    def on_image(self, image: MetadataImage) -> None:
        """As `Partition.lead_or_follow`, once the metadata includes this process's registration."""
        if image.offset <= self.image.offset or not self.is_registered_in(image):
            return
        self.image = image
        now = image.partition(self.topic, self.number)
        known = self.partition
        if now is None or (known is not None and now.partition_epoch < known.partition_epoch):
            return
        begins = now.leader == self.node_id and (known is None or now.leader_epoch > known.leader_epoch)
        was_leader, self.is_leader = self.is_leader, now.leader == self.node_id
        has_moved = known is None or now.leader_epoch != known.leader_epoch
        self.partition = now
        if was_leader and not self.is_leader:
            self.epochs.truncate_end(self.log.end_offset)
            self.waits.clear()
        if begins:
            self.epochs.assign(now.leader_epoch, self.log.end_offset)
            self.cluster.on_leader(self, now)
        if not self.is_leader:
            self.leading = None
            if has_moved:
                self._fetch_number += 1
                self._fetch_again(self._fetch_number)
            return
        now_ms = self.cluster.kernel.now_ms
        if self.leading is None or begins:
            self.leading = Leading(self.node_id, now.replicas, now.isr, self.log.end_offset, now_ms)
            self._wish = None
        self.leading.follow_metadata(now.replicas, now.isr, now.partition_epoch, now_ms)
        self._advance()

    def is_registered_in(self, image: MetadataImage) -> bool:
        """Metadata from before may say that this broker leads: its former process did."""
        return 0 <= self.broker_epoch <= image.offset

    # --- leading ----------------------------------------------------------------------------------------

    @property
    def has_enough(self) -> bool:
        return self.partition is not None and len(self.partition.isr) >= self.cluster.min_isr

    def produce(self, value: object) -> None:
        """Append with acks=all."""
        if self.has_enough:
            self.append(value)

    def append(self, value: object) -> bool:
        """Append as the leader; whether that succeeded."""
        if not self.is_leader or self.partition is None:
            return False
        offset = self.log.end_offset
        entry = Entry(offset, offset, self.partition.leader_epoch, value)
        try:
            self.log.append(entry)
        except DiskFullError:
            self.cluster.kernel.count("failed appends")
            return False
        self.waits.append(entry)
        self._advance()
        return True

    def on_fetch(self, fetch: Fetch) -> FetchAnswer:
        """As `note_follower` and `Reader`."""
        if not self.is_leader or self.partition is None or fetch.leader_epoch != self.partition.leader_epoch:
            return FetchAnswer(is_refused=True)
        end = self.log.end_offset
        if not 0 <= fetch.offset <= end:
            return FetchAnswer(diverging=(fetch.leader_epoch, end))
        diverging = self._diverging(fetch)
        if diverging is not None:
            return FetchAnswer(diverging=diverging)
        registered = self.image.brokers.get(fetch.node_id)
        is_known = registered is not None and fetch.broker_epoch >= registered.epoch
        if is_known and self.leading is not None and self.leading.is_follower(fetch.node_id):
            self.leading.on_fetch(
                fetch.node_id,
                fetch.offset,
                fetch.broker_epoch,
                leader_end=end,
                now_ms=self.cluster.kernel.now_ms,
            )
            self._advance()
            if fetch.node_id not in self.partition.isr:
                self._look()
        return FetchAnswer(entries=tuple(self.log.read(fetch.offset, BATCHES)), high_watermark=self.high_watermark)

    def _diverging(self, fetch: Fetch) -> tuple[int, int] | None:
        if fetch.last_epoch < 0:
            return None
        epoch, end_offset = self.epochs.end_offset_of(fetch.last_epoch, self.log.end_offset)
        return (epoch, end_offset) if epoch < fetch.last_epoch or end_offset < fetch.offset else None

    def may_join(self, node_id: int, broker_epoch: int) -> bool:
        broker = self.image.brokers.get(node_id)
        return broker is not None and broker.is_active and broker.epoch == broker_epoch

    def _advance(self) -> None:
        if self.leading is None or not self.has_enough:
            return
        reached = self.leading.high_watermark(self.log.end_offset, self.cluster.kernel.now_ms, LAG_MS, self.may_join)
        if reached > self.high_watermark:
            self._move_watermark(reached)
        acknowledged = [one for one in self.waits if one.last_offset < self.high_watermark]
        for entry in acknowledged:
            self.waits.remove(entry)
            self.cluster.on_acknowledged(self, entry)

    def _move_watermark(self, offset: int) -> None:
        for entry in self.log.read(self.high_watermark, offset - self.high_watermark):
            if entry.base_offset < offset:
                self.cluster.on_committed(self, entry)
        self.high_watermark = offset

    def _look(self) -> None:
        """As `IsrChanges`: propose, and propose again until the metadata or a refusal ends it."""
        leading, partition = self.leading, self.partition
        if leading is None or partition is None:
            return
        wish = leading.wish(self.log.end_offset, self.high_watermark, self.cluster.kernel.now_ms, LAG_MS, self.may_join)
        if wish is not None:
            self._wish = wish
        elif not leading.is_proposing:
            self._wish = None
        if self._wish is not None:
            self.cluster.propose(self, partition.leader_epoch, self._wish)

    def on_refused(self, leader_epoch: int) -> None:
        if self.leading is not None and self.partition is not None and self.partition.leader_epoch == leader_epoch:
            self.leading.refused()
            self._wish = None

    # --- following --------------------------------------------------------------------------------------

    @property
    def log_end_offset(self) -> int:
        return self.log.end_offset

    def end_offset_for_epoch(self, leader_epoch: int) -> tuple[int, int]:
        return self.epochs.end_offset_of(leader_epoch, self.log.end_offset)

    @property
    def last_epoch(self) -> int:
        return self.epochs.epoch_of(self.log.end_offset - 1) if self.log.end_offset else -1

    def _fetch_again(self, number: int) -> None:
        self.later(1 + self.cluster.kernel.random.randrange(FETCH_MS), lambda: self._fetch(number))

    def _fetch(self, number: int) -> None:
        partition = self.partition
        if number != self._fetch_number:
            return
        if partition is None or self.is_leader or partition.leader < 0:
            self._fetch_again(number)
            return
        self._fetch_number = number = number + 1
        asked = Fetch(self.node_id, self.broker_epoch, partition.leader_epoch, self.log.end_offset, self.last_epoch)
        self.cluster.fetch(self, partition.leader, asked, number)

        def give_up() -> None:
            if number == self._fetch_number:
                self._fetch_number += 1
                self._fetch_again(self._fetch_number)

        self.later(FETCH_TIMEOUT_MS, give_up)

    def on_answer(self, number: int, asked: Fetch, answer: FetchAnswer) -> None:
        """As `LeaderFetcher`: nothing counts that was asked in another epoch."""
        partition = self.partition
        if number != self._fetch_number or partition is None or self.is_leader:
            return
        self._fetch_number += 1
        self._fetch_again(self._fetch_number)
        if partition.leader_epoch != asked.leader_epoch or answer.is_refused:
            return
        if answer.diverging is not None:
            self._cut(*answer.diverging)
            return
        for entry in answer.entries:
            if entry.base_offset == self.log.end_offset and not self.log.is_full:
                self.log.append(entry)
                self.epochs.assign(entry.epoch, entry.base_offset)
        reached = min(answer.high_watermark, self.log.end_offset)
        if reached > self.high_watermark:
            self._move_watermark(reached)

    def _cut(self, epoch: int, end_offset: int) -> None:
        offset = following.cut_for_divergence(self, epoch, end_offset)
        if offset < self.log.end_offset:
            self.cluster.kernel.count("divergent truncations")
            self.cluster.kernel.note("node %d cuts %d to %d", self.node_id, self.log.end_offset, offset)
            self.log.truncate_to(offset)
            self.epochs.truncate_end(offset)
            self.high_watermark = min(self.high_watermark, offset)
