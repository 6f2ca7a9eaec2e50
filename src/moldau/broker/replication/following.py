"""What a follower does with its log when its leader's log differs: where to cut, and where to go on.

Pure, as `Leading` is for the other side. Start at `cut_for_divergence`.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

__all__ = ["Restart", "cut_for_divergence", "restart_for_range"]


class EpochEnds(Protocol):
    """The part of a log that this needs."""

    @property
    def log_end_offset(self) -> int: ...

    @property
    def high_watermark(self) -> int: ...

    def end_offset_for_epoch(self, leader_epoch: int) -> tuple[int, int]: ...


def cut_for_divergence(log: EpochEnds, epoch: int, end_offset: int) -> int:
    """Where to truncate, given the leader's largest epoch up to ours, and where it ended there.

    Without such an epoch the leader knows nothing of what we have, and only what is committed is kept.
    """
    if epoch < 0:
        return min(log.high_watermark, log.log_end_offset)
    own_epoch, own_end = log.end_offset_for_epoch(epoch)
    if own_epoch < 0:
        own_end = log.log_end_offset
    return min(end_offset, own_end, log.log_end_offset)


class Restart(NamedTuple):
    """Where to go on after the leader refused our offset."""

    offset: int
    is_whole: bool
    """Whether everything we have is to be thrown away."""


def restart_for_range(log_end_offset: int, *, leader_start: int, leader_end: int) -> Restart:
    """A log that is longer than its leader's was led by a broker that lost records; one that ends before the
    leader's begins has nothing in common with it any more."""
    if leader_end < log_end_offset:
        return Restart(leader_end, is_whole=False)
    if leader_start > log_end_offset:
        return Restart(leader_start, is_whole=True)
    return Restart(log_end_offset, is_whole=False)
