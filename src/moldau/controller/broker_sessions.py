"""The life of brokers, as the active controller sees it: registration, heartbeats, fencing, controlled shutdown.

What must survive (registrations, fences) is in the image and changes by records; when a broker was last heard of is
soft, and a new active controller gives every broker a whole session first. No I/O and no clock.
Start at `BrokerSessions.heartbeat`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from moldau.controller.decisions.brokers import BrokerRegistration, registration
from moldau.controller.decisions.elections import leave, return_to
from moldau.controller.image import MetadataImage
from moldau.controller.replay import replay_records
from moldau.core.errors import ErrorCode
from moldau.protocol.metadata_records import BrokerRegistrationChangeRecord, MetadataRecord

__all__ = ["BrokerSessions", "Heartbeat", "HeartbeatAnswer"]

FENCED, UNFENCED = 1, -1
STOPPING = 1
NO_PARTITION: Final[frozenset[int]] = frozenset()


class Heartbeat(NamedTuple):
    node_id: int
    broker_epoch: int
    metadata_offset: int
    """The last record of metadata that the broker has applied."""
    want_fence: bool
    want_shut_down: bool


class HeartbeatAnswer(NamedTuple):
    error: ErrorCode
    is_caught_up: bool = False
    is_fenced: bool = True
    should_shut_down: bool = False


class BrokerSessions:
    """The sessions of all brokers, on the active controller."""

    def __init__(self, *, session_timeout_ms: int, may_lose_data: Callable[[str], bool]) -> None:
        self._timeout_ms = session_timeout_ms
        self._may_lose_data = may_lose_data
        self._heard_ms: dict[int, int] = {}
        self._offsets: dict[int, int] = {}
        self._stopping_at: dict[int, int] = {}
        """Brokers in controlled shutdown, with the offset that the others must have applied before they may stop."""

    def begin(self, image: MetadataImage, now_ms: int) -> None:
        """This node has become the active controller."""
        self._heard_ms = {one.node_id: now_ms for one in image.brokers.values() if not one.is_fenced}
        self._offsets.clear()
        self._stopping_at.clear()

    def has_session(self, node_id: int, now_ms: int) -> bool:
        return now_ms - self._heard_ms.get(node_id, -(2**62)) < self._timeout_ms

    def next_expiry_ms(self) -> int | None:
        return min(self._heard_ms.values()) + self._timeout_ms if self._heard_ms else None

    # --- registration -----------------------------------------------------------------------------------

    def register(
        self, image: MetadataImage, broker: BrokerRegistration, epoch: int, now_ms: int
    ) -> tuple[list[MetadataRecord], ErrorCode]:
        """Register a broker, fenced, with `epoch`. Whatever it led as another process goes to others."""
        if not broker.log_dirs or len(set(broker.log_dirs)) != len(broker.log_dirs) or not broker.endpoints:
            return [], ErrorCode.INVALID_REGISTRATION
        known = image.brokers.get(broker.node_id)
        is_other = known is not None and known.incarnation_id != broker.incarnation_id
        if is_other and known is not None and not known.is_fenced and self.has_session(broker.node_id, now_ms):
            return [], ErrorCode.DUPLICATE_BROKER_REGISTRATION
        others = [one for one in image.brokers.values() if one.node_id != broker.node_id]
        if any(set(broker.log_dirs) & set(one.log_dirs) for one in others):
            return [], ErrorCode.INVALID_REGISTRATION
        records: list[MetadataRecord] = [registration(broker, epoch)]
        if known is not None:
            gone = replay_records(image, records, offset=epoch, epoch=image.epoch).image
            is_orderly = known.epoch == broker.previous_epoch
            records += leave(gone, broker.node_id, self._may_lose_data, is_orderly=is_orderly)
        return records, ErrorCode.NONE

    def registered(self, node_id: int, now_ms: int) -> None:
        """The registration is committed: its session begins."""
        self._heard_ms[node_id] = now_ms
        self._offsets.pop(node_id, None)
        self._stopping_at.pop(node_id, None)

    # --- heartbeats -------------------------------------------------------------------------------------

    def heartbeat(
        self, image: MetadataImage, beat: Heartbeat, now_ms: int
    ) -> tuple[list[MetadataRecord], HeartbeatAnswer]:
        """The records that a heartbeat asks for, and the answer once they are committed."""
        broker = image.brokers.get(beat.node_id)
        if broker is None or broker.epoch != beat.broker_epoch:
            return [], HeartbeatAnswer(ErrorCode.STALE_BROKER_EPOCH)
        self._heard_ms[beat.node_id] = now_ms
        self._offsets[beat.node_id] = max(beat.metadata_offset, self._offsets.get(beat.node_id, -1))
        is_caught_up = beat.metadata_offset >= broker.epoch
        if beat.want_shut_down:
            return self._shut_down(image, beat.node_id, is_caught_up=is_caught_up)
        if broker.is_fenced and not beat.want_fence and is_caught_up:
            return self._unfence(image, beat.node_id), HeartbeatAnswer(ErrorCode.NONE, True, is_fenced=False)
        if beat.want_fence and not broker.is_fenced:
            return self.fence(image, beat.node_id), HeartbeatAnswer(ErrorCode.NONE, is_caught_up)
        return [], HeartbeatAnswer(ErrorCode.NONE, is_caught_up, broker.is_fenced)

    def _unfence(self, image: MetadataImage, node_id: int) -> list[MetadataRecord]:
        epoch = image.brokers[node_id].epoch
        records: list[MetadataRecord] = [
            BrokerRegistrationChangeRecord(broker_id=node_id, broker_epoch=epoch, fenced=UNFENCED)
        ]
        back = replay_records(image, records, offset=image.offset, epoch=image.epoch).image
        return [*records, *return_to(back, node_id, self._may_lose_data)]

    def fence(self, image: MetadataImage, node_id: int) -> list[MetadataRecord]:
        """Fence a broker: it leads nothing any more and is in no ISR, unless it is the last."""
        epoch = image.brokers[node_id].epoch
        records: list[MetadataRecord] = [
            BrokerRegistrationChangeRecord(broker_id=node_id, broker_epoch=epoch, fenced=FENCED)
        ]
        gone = replay_records(image, records, offset=image.offset, epoch=image.epoch).image
        return [*records, *leave(gone, node_id, self._may_lose_data)]

    # --- controlled shutdown ----------------------------------------------------------------------------

    def _shut_down(
        self, image: MetadataImage, node_id: int, *, is_caught_up: bool
    ) -> tuple[list[MetadataRecord], HeartbeatAnswer]:
        """Move leaderships away; the broker may stop once it has none left that another broker could have."""
        broker = image.brokers[node_id]
        if broker.is_fenced:
            return [], HeartbeatAnswer(ErrorCode.NONE, is_caught_up, should_shut_down=True)
        if not broker.is_in_controlled_shutdown:
            records: list[MetadataRecord] = [
                BrokerRegistrationChangeRecord(
                    broker_id=node_id, broker_epoch=broker.epoch, in_controlled_shutdown=STOPPING
                )
            ]
            leaving = replay_records(image, records, offset=image.offset, epoch=image.epoch).image
            return [*records, *leave(leaving, node_id)], HeartbeatAnswer(ErrorCode.NONE, is_caught_up, is_fenced=False)
        waited_for = self._stopping_at.setdefault(node_id, image.offset)
        others = [one.node_id for one in image.brokers.values() if one.is_active]
        if any(self._offsets.get(one, -1) < waited_for for one in others):
            return [], HeartbeatAnswer(ErrorCode.NONE, is_caught_up, is_fenced=False)
        self._stopping_at.pop(node_id)
        return self.fence(image, node_id), HeartbeatAnswer(ErrorCode.NONE, is_caught_up, should_shut_down=True)

    # --- silence ----------------------------------------------------------------------------------------

    def expired(self, image: MetadataImage, now_ms: int) -> list[int]:
        """The brokers that were silent for too long and are to be fenced."""
        silent = [node_id for node_id in self._heard_ms if not self.has_session(node_id, now_ms)]
        gone = [one for one in silent if one not in image.brokers or image.brokers[one].is_fenced]
        for node_id in gone:
            del self._heard_ms[node_id]
        return [node_id for node_id in silent if node_id not in gone]
