"""Who votes: replicas, their keys and the set of voters.

A voter of a static quorum (kraft.version 0) is known by its id alone. A dynamic one (kraft.version 1) is known by its
id and the id of the directory that holds its log, so that a node whose disk was replaced is not taken for the voter it
was. All values are immutable. Start at `VoterSet`.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["Endpoint", "ReplicaKey", "Voter", "VoterSet"]


class ReplicaKey(NamedTuple):
    """A replica of the metadata log."""

    id: int
    directory_id: uuid.UUID | None = None
    """`None` if it is unknown."""


class Endpoint(NamedTuple):
    """A controller listener."""

    listener: str
    host: str
    port: int


class Voter(NamedTuple):
    key: ReplicaKey
    endpoints: tuple[Endpoint, ...] = ()
    min_kraft_version: int = 0
    max_kraft_version: int = 1

    def is_replica(self, replica: ReplicaKey) -> bool:
        """Whether `replica` is this voter; a voter without a directory id is known by its id alone."""
        return self.key.id == replica.id and self.key.directory_id in (None, replica.directory_id)


@dataclass(frozen=True, slots=True)
class VoterSet:
    """The voters by their ids."""

    by_id: Mapping[int, Voter]

    @classmethod
    def of(cls, voters: Iterable[Voter]) -> VoterSet:
        return cls({one.key.id: one for one in voters})

    def __len__(self) -> int:
        return len(self.by_id)

    def __iter__(self) -> Iterator[Voter]:
        return iter(self.by_id.values())

    @property
    def majority(self) -> int:
        """The number of voters that decide."""
        return len(self.by_id) // 2 + 1

    def has(self, replica: ReplicaKey) -> bool:
        voter = self.by_id.get(replica.id)
        return voter is not None and voter.is_replica(replica)

    def is_only(self, replica: ReplicaKey) -> bool:
        return len(self.by_id) == 1 and self.has(replica)

    def others(self, replica: ReplicaKey) -> list[Voter]:
        """The voters besides `replica`, by id."""
        return [self.by_id[one] for one in sorted(self.by_id) if not self.by_id[one].is_replica(replica)]

    def with_voter(self, voter: Voter) -> VoterSet:
        """Add a voter, or replace the one with its id."""
        return VoterSet({**self.by_id, voter.key.id: voter})

    def without(self, replica_id: int) -> VoterSet:
        return VoterSet({key: one for key, one in self.by_id.items() if key != replica_id})
