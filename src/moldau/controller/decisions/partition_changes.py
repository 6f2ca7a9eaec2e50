"""What becomes of one partition: whoever changes its replicas or their state gets the whole consequence as one record.

A change may end a reassignment, moves replicas between the ISR and the eligible leader replicas (KIP-966), and elects a
leader where the present one cannot go on. Pure. Start at `PartitionDraft`.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Final

from moldau.controller.decisions.eligible_leaders import has_eligible_leaders, min_isr_of
from moldau.controller.image import NO_LEADER, BrokerImage, MetadataImage, PartitionImage, TopicImage
from moldau.protocol.metadata_records import PartitionChangeRecord

__all__ = ["LOST", "RECOVERED", "RECOVERING", "PartitionDraft", "directory_of", "is_electable", "is_reserved"]

RECOVERED: Final = 0
RECOVERING: Final = 1
"""The state of a leader elected without regard to lost records, until it has said that it goes on."""

UNCHANGED_STATE: Final = -1
LOST: Final = uuid.UUID(int=1)
"""The directory of a replica that its broker cannot use."""
_RESERVED: Final = 100
"""Directory ids below it have meanings of their own, such as "not assigned yet"."""


def is_reserved(directory: uuid.UUID | None) -> bool:
    """Whether this is no directory, but says something about one."""
    return directory is None or directory.int < _RESERVED


def directory_of(broker: BrokerImage | None) -> uuid.UUID | None:
    """The broker's log directory if it has only one; a broker with several chooses by itself."""
    return broker.log_dirs[0] if broker is not None and len(broker.log_dirs) == 1 else None


def is_electable(image: MetadataImage, partition: PartitionImage, node_id: int) -> bool:
    """Whether a broker is active and still has the log directory that the partition was placed in.

    A broker that comes back with an empty disk has a new directory: it may follow, and not lead until it is in sync.
    """
    broker = image.brokers.get(node_id)
    if broker is None or not broker.is_active:
        return False
    if node_id not in partition.replicas or len(partition.directories) != len(partition.replicas):
        return True
    directory = partition.directories[partition.replicas.index(node_id)]
    return directory != LOST and (is_reserved(directory) or directory in broker.log_dirs)


class PartitionDraft:
    """A partition as it is to be; set what changes, then take `record`."""

    def __init__(self, image: MetadataImage, topic: TopicImage, number: int) -> None:
        self._image = image
        self._topic = topic
        self._number = number
        self.now = now = topic.partitions[number]
        self.replicas, self.adding, self.removing = now.replicas, now.adding_replicas, now.removing_replicas
        self.isr = now.isr
        self.leader = now.leader
        self.recovery_state = now.leader_recovery_state
        self.lost: frozenset[int] = frozenset()
        """Replicas whose broker ended without order: they may lack the end of their logs."""
        self.placed: tuple[int, uuid.UUID | None] | None = None
        """A replica, and the directory that it is in from now on."""
        self.prefers_first = False
        """Whether the first replica of the assignment is to lead, if it can."""
        self.may_lose_data = False
        """Whether a replica that is not in sync may lead, if no other can."""
        self._eligible = now.eligible_leader_replicas
        self._last_known = now.last_known_elr
        self._has_eligible = has_eligible_leaders(image)

    def record(self) -> PartitionChangeRecord | None:
        """The record of the change with its consequences; `None` if nothing changes."""
        self._end_reassignment()
        self.isr = tuple(one for one in self.replicas if one in self.isr)
        if not self.isr and not self._has_eligible:
            # The last in sync stay so: they have what no other replica has.
            self.isr = tuple(one for one in self.now.isr if one in self.replicas) or self.now.isr
        self._keep_eligible()
        self._elect()
        self._note_last_leader()
        return self._difference()

    # --- reassignment -----------------------------------------------------------------------------------

    def _end_reassignment(self) -> None:
        """Complete it if all replicas that are added are in sync."""
        if not self.adding and not self.removing:
            return
        staying = tuple(one for one in self.isr if one not in self.removing)
        if staying and set(self.adding) <= set(staying):
            self.replicas = tuple(one for one in self.replicas if one not in self.removing)
            self.adding = self.removing = ()
            self.isr = staying

    # --- eligible leaders -------------------------------------------------------------------------------

    def _keep_eligible(self) -> None:
        """Below `min.insync.replicas` nothing more is committed: who leaves the ISR now keeps all that is."""
        if not self._has_eligible:
            return
        if len(self.isr) >= min(min_isr_of(self._image, self._topic.name), len(self.replicas)):
            self._eligible = self._last_known = ()
            return
        whole = {*self._eligible, *self.now.isr} - set(self.isr) - self.lost
        self._eligible = tuple(one for one in self.replicas if one in whole)

    def _note_last_leader(self) -> None:
        """Without a leader and an eligible replica, the last one that led is remembered."""
        if not self._has_eligible:
            return
        if self.leader != NO_LEADER:
            self._last_known = ()
        elif not self.isr and not self._last_known:
            # A partition may have lost its leader before the cluster kept eligible ones.
            self._last_known = (self.now.leader,) if self.now.leader != NO_LEADER else self.now.isr[:1]

    # --- election ---------------------------------------------------------------------------------------

    def _elect(self) -> None:
        if self.prefers_first and self._may_lead(self.replicas[0]):
            self._lead_with(self.replicas[0])
        elif self._may_lead(self.leader):
            return
        else:
            clean = next((one for one in self.replicas if self._may_lead(one)), NO_LEADER)
            if clean != NO_LEADER:
                self._lead_with(clean)
            else:
                self._lead_uncleanly()

    def _may_lead(self, node_id: int) -> bool:
        if node_id not in self.replicas or not self._is_electable(node_id):
            return False
        return node_id in self.isr or (self._has_eligible and not self.isr and node_id in self._eligible)

    def _is_electable(self, node_id: int) -> bool:
        if self.placed is not None and node_id == self.placed[0]:
            broker, directory = self._image.brokers.get(node_id), self.placed[1]
            return broker is not None and broker.is_active and directory in broker.log_dirs
        return is_electable(self._image, self.now, node_id)

    def _lead_with(self, node_id: int) -> None:
        self.leader = node_id
        if node_id not in self.isr:
            self.isr = (node_id,)
            self._keep_eligible()

    def _lead_uncleanly(self) -> None:
        """Elect one that may lack records: the last leader, or any if the topic allows it; else nobody leads."""
        forgotten = self._has_eligible and not self.isr and not self._eligible
        last = [one for one in self._last_known if forgotten and one in self.replicas]
        anyone = self.replicas if self.may_lose_data else ()
        chosen = next((one for one in (*last, *anyone) if self._is_electable(one)), NO_LEADER)
        self.leader = chosen
        if chosen != NO_LEADER:
            self.isr = (chosen,)
            self._eligible = ()
            self.recovery_state = RECOVERING

    # --- the record -------------------------------------------------------------------------------------

    def _difference(self) -> PartitionChangeRecord | None:
        now = self.now
        loses_replicas = not set(now.replicas) <= set(self.replicas)
        is_led_anew = self.leader != now.leader or (loses_replicas and self.leader != NO_LEADER)
        has_moved = self.replicas != now.replicas
        record = PartitionChangeRecord(
            partition_id=self._number,
            topic_id=self._topic.topic_id,
            leader=self.leader if is_led_anew else PartitionChangeRecord.LEADER_UNCHANGED,
            isr=_if_other(self.isr, now.isr),
            replicas=_if_other(self.replicas, now.replicas),
            adding_replicas=_if_other(self.adding, now.adding_replicas),
            removing_replicas=_if_other(self.removing, now.removing_replicas),
            leader_recovery_state=UNCHANGED_STATE
            if self.recovery_state == now.leader_recovery_state
            else self.recovery_state,
            directories=self._directories() if has_moved or self._has_new_directory() else None,
            eligible_leader_replicas=_if_other(self._eligible, now.eligible_leader_replicas),
            last_known_elr=_if_other(self._last_known, now.last_known_elr),
        )
        return None if record == _nothing(self._number, self._topic) else record

    def _directories(self) -> tuple[uuid.UUID | None, ...]:
        return tuple(self._directory(one) for one in self.replicas)

    def _directory(self, node_id: int) -> uuid.UUID | None:
        now = self.now
        if self.placed is not None and node_id == self.placed[0]:
            return self.placed[1]
        is_known = node_id in now.replicas and len(now.directories) == len(now.replicas)
        if not is_known or self._has_refilled(node_id):
            return directory_of(self._image.brokers.get(node_id))
        return now.directories[now.replicas.index(node_id)]

    def _has_refilled(self, node_id: int) -> bool:
        """Whether a replica joins the ISR from another directory than it had before: that of a new disk."""
        return node_id in self.isr and node_id not in self.now.isr and not self._is_electable(node_id)

    def _has_new_directory(self) -> bool:
        return self.placed is not None or any(self._has_refilled(one) for one in self.isr)


def _if_other(wanted: tuple[int, ...], present: Sequence[int]) -> tuple[int, ...] | None:
    return None if wanted == tuple(present) else wanted


def _nothing(number: int, topic: TopicImage) -> PartitionChangeRecord:
    return PartitionChangeRecord(partition_id=number, topic_id=topic.topic_id)
