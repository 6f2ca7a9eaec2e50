"""Broken clusters, to show that the rules can fail where parts meet: the quorum's disks, coordinators, markers.

What is wrong with a quorum or a partition alone is in `raft_mutants` and `replica_mutants`. Start at `MUTANTS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from moldau.testing.simulation.metadata_node import MetadataNode
from moldau.testing.simulation.raft_rules import COMMITTED_IS_ON_DISK, COMPLETE_LEADER
from moldau.testing.simulation.replica_cluster import ACKNOWLEDGED_STAYS, ONE_CONTENT, REPLICAS_AGREE
from moldau.testing.simulation.transactions import COORDINATOR_KNOWS, SimulatedCoordinator
from moldau.testing.simulation.whole_cluster import TRANSACTIONS_WHOLE, WholeCluster
from moldau.testing.simulation.whole_partition import PartitionReplica

__all__ = ["MUTANTS", "Mutant"]

LOSS = frozenset({ACKNOWLEDGED_STAYS, ONE_CONTENT, REPLICAS_AGREE})


@dataclass(frozen=True)
class Mutant:
    name: str
    rules: frozenset[str]
    """The rules that may catch it."""
    make: Callable[[int], WholeCluster]
    first_seed: int = 0
    """Where to begin to look for a run that shows it: some need a rare order of events."""

    def __str__(self) -> str:
        return self.name


class VouchesForThePageCache(MetadataNode):
    """A node that was killed acknowledges what it finds in its files, synced or not."""

    def make_durable(self) -> None:
        return


class LoadsPastTheWatermark(SimulatedCoordinator):
    """It begins at once, and an answer waits only for what it has appended itself."""

    own_end = 0

    def activate_when_committed(self) -> None:
        self.activate()

    def append(self, records: Any, producer: Any, then: Any) -> None:
        super().append(records, producer, then)
        self.own_end = self.replica.log.end_offset

    def when_committed(self, then: Callable[[], None]) -> None:
        self.replica.when_committed(self.own_end, then)


class AnswersBeforeTheCommit(SimulatedCoordinator):
    def when_committed(self, then: Callable[[], None]) -> None:
        then()


class AcknowledgesAtOnce(PartitionReplica):
    """A leader that answers acks=all before the high watermark."""

    def append(self, value: object) -> bool:
        is_appended = super().append(value)
        for entry in self.waits:
            self.cluster.on_acknowledged(self, entry)
        self.waits.clear()
        return is_appended


class NeverComparesEpochs(PartitionReplica):
    """A leader that takes logs of the same length for the same log, so that nobody truncates."""

    def _diverging(self, fetch: Any) -> None:
        return None


MUTANTS = (
    Mutant(
        "a killed controller vouches for what it has not synced",
        frozenset({COMMITTED_IS_ON_DISK, COMPLETE_LEADER}),
        lambda seed: WholeCluster(seed, metadata=VouchesForThePageCache),
        first_seed=131,
    ),
    Mutant(
        "a coordinator is loaded past the high watermark",
        frozenset({COORDINATOR_KNOWS}),
        lambda seed: WholeCluster(seed, coordinator=LoadsPastTheWatermark),
    ),
    Mutant(
        "a coordinator answers before the commit",
        frozenset({COORDINATOR_KNOWS, TRANSACTIONS_WHOLE, ACKNOWLEDGED_STAYS}),
        lambda seed: WholeCluster(seed, coordinator=AnswersBeforeTheCommit),
    ),
    Mutant("a leader acknowledges at once", LOSS, lambda seed: WholeCluster(seed, replica=AcknowledgesAtOnce)),
    Mutant("epochs are not compared", LOSS, lambda seed: WholeCluster(seed, replica=NeverComparesEpochs)),
)
