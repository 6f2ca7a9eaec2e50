"""A simulated node of the metadata quorum that knows what the records mean: it has an image, and may be the controller.

`MetadataNode` replays what is committed, as every node does. `ControllerDesk` is the work of the active controller, the
shell that `controller.active_controller` is for real processes: one decision at a time, each answered when it is
committed, all of them given up when another node leads. Start at `ControllerDesk.ask`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from moldau.controller.broker_sessions import BrokerSessions
from moldau.controller.image import MetadataImage
from moldau.controller.replay import replay_records
from moldau.protocol.metadata_records import MetadataRecord
from moldau.raft.core import NotLeaderError
from moldau.raft.effects import Claim, Effect, Renounce
from moldau.raft.log_history import SnapshotId
from moldau.testing.simulation.raft_node import RaftNode

__all__ = ["ControllerDesk", "MetadataNode", "MetadataRecords", "Question"]

SESSION_MS: Final = 1_200
WATCH_MS: Final = 150

Question = Callable[[MetadataImage, BrokerSessions, int], tuple[Sequence[MetadataRecord], Any]]
"""`(image, sessions, offset of the next record)`: the records to commit, and the answer once they are."""
NOBODY: Final = MetadataImage()


class MetadataRecords:
    """What the payloads in the quorum's logs stand for, and the images that replaying them gives."""

    def __init__(self) -> None:
        self._records: list[tuple[Sequence[MetadataRecord], int]] = []
        self._images: dict[tuple[int, bytes], MetadataImage] = {}

    def add(self, records: Sequence[MetadataRecord]) -> bytes:
        self._records.append((records, -1))
        return len(self._records).to_bytes(4, "big")

    def is_at(self, payload: bytes, last_offset: int) -> None:
        number = int.from_bytes(payload, "big") - 1
        self._records[number] = (self._records[number][0], last_offset)

    def replay(self, image: MetadataImage, payload: bytes) -> MetadataImage:
        known = self._images.get((id(image), payload))
        if known is None:
            records, offset = self._records[int.from_bytes(payload, "big") - 1]
            known = replay_records(image, records, offset=offset, epoch=1).image
            self._images[id(image), payload] = known
        return known


class MetadataNode(RaftNode):
    records: MetadataRecords
    on_image: Callable[[MetadataImage], None]

    def begin(self, records: MetadataRecords, on_image: Callable[[MetadataImage], None]) -> None:
        """Once, before the first `start`."""
        self.records, self.on_image = records, on_image
        self.image = NOBODY
        self.desk = ControllerDesk(self)

    def start(self) -> None:
        self.image = NOBODY
        super().start()

    def apply(self, high_watermark: int) -> None:
        known = len(self.applied)
        super().apply(high_watermark)
        self._replay(known)
        self.desk.on_applied()

    def _restore(self, snapshot: SnapshotId) -> None:
        super()._restore(snapshot)
        self.image = NOBODY
        self._replay(0)

    def _replay(self, first: int) -> None:
        before = self.image
        for payload in self.applied[first:]:
            self.image = self.records.replay(self.image, payload)
        if self.image is not before:
            self.on_image(self.image)

    def _act(self, effect: Effect) -> None:
        super()._act(effect)
        if isinstance(effect, Claim):
            self.desk.begin_term()
        elif isinstance(effect, Renounce):
            self.desk.give_up()

    def _forget(self) -> None:
        super()._forget()
        self.claimed_epoch = -1
        self.desk.give_up()

    def _on_failed_append(self, end_offset: int, epoch: int) -> None:
        super()._on_failed_append(end_offset, epoch)
        self.desk.on_lost(end_offset)


class _Asked(NamedTuple):
    question: Question
    then: Callable[[Any], None]


class _Pending(NamedTuple):
    offset: int
    then: Callable[[], None]


class ControllerDesk:
    """A request is answered with `None` by a node that is not the active controller."""

    def __init__(self, node: MetadataNode) -> None:
        self._node = node
        self._line: deque[_Asked] = deque()
        self._pending: _Pending | None = None
        self._sessions = BrokerSessions(session_timeout_ms=SESSION_MS, may_lose_data=lambda topic: False)

    @property
    def is_open(self) -> bool:
        return self._node.core is not None and self._node.claimed_epoch >= 0

    def begin_term(self) -> None:
        self._sessions.begin(self._node.image, self._node.kernel.now_ms)
        epoch = self._node.claimed_epoch

        def watch() -> None:
            node = self._node
            if node.claimed_epoch != epoch or node.core is None:
                return
            if not node.is_frozen:
                self._fence_silent()
            node.kernel.after(WATCH_MS, watch)

        watch()

    def _fence_silent(self) -> None:
        node = self._node
        for silent in self._sessions.expired(node.image, node.kernel.now_ms):
            self.ask(partial(self._fence, silent), lambda _: None)

    def _fence(
        self, silent: int, image: MetadataImage, sessions: BrokerSessions, _: int
    ) -> tuple[Sequence[MetadataRecord], None]:
        broker = image.brokers.get(silent)
        if broker is None or broker.is_fenced or sessions.has_session(silent, self._node.kernel.now_ms):
            return [], None
        self._node.kernel.count("brokers fenced")
        return sessions.fence(image, silent), None

    def ask(self, question: Question, then: Callable[[Any], None]) -> None:
        if not self.is_open:
            then(None)
            return
        self._line.append(_Asked(question, then))
        self._go_on()

    def _go_on(self) -> None:
        node = self._node
        while self._line and self._pending is None and self.is_open and node.core is not None:
            asked = self._line.popleft()
            records, answer = asked.question(node.image, self._sessions, node.core.replica.log.end_offset)
            if records:
                self._commit(records, answer, asked.then)
            else:
                asked.then(answer)

    def _commit(self, records: Sequence[MetadataRecord], answer: Any, then: Callable[[Any], None]) -> None:
        node, core = self._node, self._node.core
        assert core is not None
        payload = node.records.add(records)
        try:
            offset, effects = core.append(payload, len(records), node.claimed_epoch, node.kernel.now_ms)
        except NotLeaderError:
            then(None)
            return
        node.records.is_at(payload, offset)
        node.cluster.rules.expect(node, payload, offset)
        self._pending = _Pending(offset, lambda: then(answer))
        node.tell(lambda _: effects)

    def on_applied(self) -> None:
        pending = self._pending
        if pending is not None and self._node.applied_offset > pending.offset:
            self._pending = None
            pending.then()
            # The core is in the middle of an event: the next decision is another one.
            self._node.kernel.after(0, self._go_on)

    def on_lost(self, end_offset: int) -> None:
        """The disk was full: the record is not there."""
        if self._pending is not None and self._pending.offset >= end_offset:
            self._pending = None
            self._node.kernel.after(0, self._go_on)

    def give_up(self) -> None:
        self._pending = None
        self._line.clear()
