"""What the leader of a replicated partition knows of its followers: how far they are, and who counts as in sync.

Pure: fetches, the time and the metadata go in; the high watermark and proposals for the ISR come out. The order that
makes it safe: a follower's fetch at an offset acknowledges everything below it, so `on_fetch` is called only after the
epochs of both logs were compared; and while a larger ISR is proposed, the high watermark already waits for its new
members, because the controller may have accepted them before this leader hears of it. Start at `Leading.on_fetch`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, Protocol

__all__ = ["IsrWish", "Leading", "Pulse"]

UNKNOWN: Final = -1


class Pulse(Protocol):
    """A follower's fetch session."""

    @property
    def last_used_ms(self) -> int: ...


class Follower:
    """One other replica, as this leader has seen it since its epoch began."""

    __slots__ = ("_caught_up_ms", "broker_epoch", "end_offset", "fetched_at_end", "fetched_ms", "pulse", "start_offset")

    def __init__(self, caught_up_ms: int) -> None:
        self.end_offset = UNKNOWN
        self.start_offset = UNKNOWN
        self.broker_epoch = UNKNOWN
        self._caught_up_ms = caught_up_ms
        self.fetched_ms = 0
        self.fetched_at_end = 0
        """Where this leader's log ended when it last fetched."""
        self.pulse: Pulse | None = None
        """Its session, while it has everything: then its fetches do not name this partition."""

    @property
    def caught_up_ms(self) -> int:
        """When it last had everything that this leader had at that time."""
        return self._caught_up_ms if self.pulse is None else max(self._caught_up_ms, self.pulse.last_used_ms)

    def has_caught_up(self, at_ms: int) -> None:
        self._caught_up_ms = max(self._caught_up_ms, at_ms)

    def stop_resting(self) -> None:
        if self.pulse is not None:
            self.fetched_ms, self.fetched_at_end = self.pulse.last_used_ms, self.end_offset
            self.has_caught_up(self.fetched_ms)
            self.pulse = None


class IsrWish(NamedTuple):
    """An ISR to be proposed to the controller."""

    isr: tuple[tuple[int, int], ...]
    """Brokers with the epochs under which they fetched; -1 for the leader and for those that have not fetched."""
    partition_epoch: int


NEVER_CAUGHT_UP: Final = -(2**62)

MayJoin = Callable[[int, int], bool]
"""Whether a broker is active, and registered with the epoch under which it fetched."""


class Leading:
    """The state of one partition's leader, from the beginning of its epoch on."""

    __slots__ = ("_followers", "_me", "_proposed", "_resting", "epoch_start", "isr", "partition_epoch", "replicas")

    def __init__(self, me: int, replicas: Iterable[int], isr: Iterable[int], epoch_start: int, now_ms: int) -> None:
        self._me = me
        self.replicas = tuple(replicas)
        self.isr = frozenset(isr)
        self.epoch_start = epoch_start
        self.partition_epoch = -1
        self._proposed: frozenset[int] | None = None
        self._followers = {one: self._new(one, now_ms) for one in self.replicas if one != me}
        self._resting: set[Follower] = set()

    def _new(self, node_id: int, now_ms: int) -> Follower:
        return Follower(now_ms if node_id in self.isr else NEVER_CAUGHT_UP)

    def follow_metadata(self, replicas: Iterable[int], isr: Iterable[int], partition_epoch: int, now_ms: int) -> None:
        """The controller's newest word; it ends a proposal, whether that was accepted or overtaken."""
        self.replicas, self.isr = tuple(replicas), frozenset(isr)
        if partition_epoch > self.partition_epoch:
            self._proposed = None
        self.partition_epoch = partition_epoch
        known = self._followers
        self._followers = {one: known.get(one) or self._new(one, now_ms) for one in self.replicas if one != self._me}

    # --- fetches ----------------------------------------------------------------------------------------

    def is_follower(self, node_id: int) -> bool:
        return node_id in self._followers

    def on_fetch(self, node_id: int, offset: int, broker_epoch: int, *, leader_end: int, now_ms: int) -> None:
        """A follower fetched at `offset`: it has everything below."""
        follower = self._followers[node_id]
        follower.stop_resting()
        if offset >= leader_end:
            follower.has_caught_up(now_ms)
        elif follower.fetched_ms and offset >= follower.fetched_at_end:
            follower.has_caught_up(follower.fetched_ms)
        follower.end_offset = offset
        follower.broker_epoch = broker_epoch
        follower.fetched_ms, follower.fetched_at_end = now_ms, leader_end

    def rest(self, node_id: int, pulse: Pulse) -> None:
        """A follower has everything, so it will not name this partition again before there is more."""
        follower = self._followers.get(node_id)
        if follower is not None and follower.end_offset >= 0:
            follower.pulse = pulse
            self._resting.add(follower)

    def on_append(self) -> None:
        """There is more: whoever had everything had it until its last fetch."""
        if self._resting:
            for follower in self._resting:
                follower.stop_resting()
            self._resting.clear()

    def end_offset_of(self, node_id: int) -> int:
        """How far a follower is; -1 if it has not fetched in this epoch."""
        follower = self._followers.get(node_id)
        return UNKNOWN if follower is None else follower.end_offset

    # --- the high watermark -----------------------------------------------------------------------------

    @property
    def maximal_isr(self) -> frozenset[int]:
        """The replicas that the controller may take for in sync now."""
        return self.isr if self._proposed is None else self.isr | self._proposed

    def high_watermark(self, leader_end: int, now_ms: int, lag_ms: int, may_join: MayJoin) -> int:
        """Up to where the records are on every replica that is in sync or about to be; -1 if that is not known."""
        maximal = self.maximal_isr
        lowest = leader_end
        for node_id, follower in self._followers.items():
            counts = node_id in maximal or (
                follower.end_offset >= self.epoch_start
                and now_ms - follower.caught_up_ms <= lag_ms
                and may_join(node_id, follower.broker_epoch)
            )
            if counts and follower.end_offset < lowest:
                lowest = follower.end_offset
        return lowest

    # --- proposals --------------------------------------------------------------------------------------

    @property
    def is_proposing(self) -> bool:
        return self._proposed is not None

    def wish(self, leader_end: int, high_watermark: int, now_ms: int, lag_ms: int, may_join: MayJoin) -> IsrWish | None:
        """The ISR to propose now, if it should change and no proposal is under way."""
        if self._proposed is not None:
            return None
        joining = {
            node_id
            for node_id, follower in self._followers.items()
            if node_id not in self.isr
            and follower.end_offset >= max(high_watermark, self.epoch_start)
            and may_join(node_id, follower.broker_epoch)
        }
        lagging = {
            node_id
            for node_id, follower in self._followers.items()
            if node_id in self.isr and follower.end_offset != leader_end and now_ms - follower.caught_up_ms > lag_ms
        }
        if not joining and not lagging:
            return None
        # One kind at a time: what is proposed is then either larger or smaller than what is in effect.
        wanted = self.isr | joining if joining else self.isr - lagging
        self._proposed = wanted
        return IsrWish(
            tuple((one, self._epoch_of(one)) for one in self.replicas if one in wanted), self.partition_epoch
        )

    def _epoch_of(self, node_id: int) -> int:
        follower = self._followers.get(node_id)
        return UNKNOWN if follower is None else follower.broker_epoch

    def refused(self) -> None:
        """The controller has certainly not accepted the proposal, nor will it."""
        self._proposed = None
