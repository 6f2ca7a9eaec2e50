"""Placement: chooses the brokers for the replicas of new partitions.

Round-robin over racks, and over the brokers inside a rack, so that replicas spread over racks first and
leaders over all brokers. Fenced brokers are never leaders and are used only if there are too few
others. Pure: the caller passes in the random generator. Start at `place`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest
from random import Random
from typing import NamedTuple

from moldau.core.errors import ErrorCode, MoldauError

__all__ = ["InvalidReplicationFactorError", "UsableBroker", "place"]


class UsableBroker(NamedTuple):
    node_id: int
    rack: str | None = None
    is_fenced: bool = False


class InvalidReplicationFactorError(MoldauError):
    """More replicas were requested than there are brokers for them."""

    code = ErrorCode.INVALID_REPLICATION_FACTOR


def place(
    brokers: Iterable[UsableBroker], *, partitions: int, replication_factor: int, random: Random
) -> list[list[int]]:
    """Return one replica list per partition, whose first entry becomes the leader."""
    brokers = list(brokers)
    _check(brokers, replication_factor)
    racks = _racks(brokers, random)
    start = random.randrange(len(racks))
    return [_replicas(racks, start + index, replication_factor) for index in range(partitions)]


def _check(brokers: Sequence[UsableBroker], replication_factor: int) -> None:
    if replication_factor > len(brokers):
        raise InvalidReplicationFactorError(
            f"Replication factor: {replication_factor} larger than available brokers: {len(brokers)}."
        )
    if all(broker.is_fenced for broker in brokers):
        raise InvalidReplicationFactorError("No broker is available to lead a partition: all are fenced.")


class _Ring:
    """Brokers in round-robin order; each call to `next_order` starts at the next broker."""

    def __init__(self, node_ids: Sequence[int], start: int) -> None:
        self._node_ids = node_ids
        self._next = start

    def next_order(self) -> list[int]:
        if not self._node_ids:
            return []
        first = self._next % len(self._node_ids)
        self._next += 1
        return [*self._node_ids[first:], *self._node_ids[:first]]


class _Rack(NamedTuple):
    unfenced: _Ring
    fenced: _Ring


def _racks(brokers: Sequence[UsableBroker], random: Random) -> list[_Rack]:
    """Group brokers by rack; those without a rack form one rack."""
    racks = []
    for name in sorted({broker.rack or "" for broker in brokers}):
        members = sorted(broker for broker in brokers if (broker.rack or "") == name)
        rings = [
            _Ring(ids, random.randrange(len(ids)) if ids else 0)
            for fenced in (False, True)
            for ids in [[broker.node_id for broker in members if broker.is_fenced is fenced]]
        ]
        racks.append(_Rack(*rings))
    return racks


def _replicas(racks: Sequence[_Rack], start: int, replication_factor: int) -> list[int]:
    """The replicas of one partition: unfenced brokers, rack by rack, then fenced ones in the same way."""
    ordered = [racks[(start + index) % len(racks)] for index in range(len(racks))]
    unfenced = _in_turns([rack.unfenced.next_order() for rack in ordered])
    fenced = _in_turns([rack.fenced.next_order() for rack in ordered])
    return [*unfenced, *fenced][:replication_factor]


def _in_turns(queues: Sequence[Sequence[int]]) -> list[int]:
    """The first of every queue, then the second of every queue, and so on."""
    return [node_id for turn in zip_longest(*queues) for node_id in turn if node_id is not None]
