"""Broken clusters, to show that the rules can fail where parts meet: the quorum's disks, coordinators, markers.

What is wrong with a quorum or a partition alone is in `raft_mutants` and `replica_mutants`. Start at `MUTANTS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from moldau.coordinator.transaction.transaction import Transaction
from moldau.core.ids import TopicPartition
from moldau.raft.effects import Effect, SaveElection
from moldau.testing.simulation.metadata_node import MetadataNode
from moldau.testing.simulation.raft_rules import COMMITTED_IS_ON_DISK, COMPLETE_LEADER, ONE_LEADER
from moldau.testing.simulation.replica_cluster import ACKNOWLEDGED_STAYS, ONE_CONTENT, REPLICAS_AGREE
from moldau.testing.simulation.replica_node import FetchAnswer
from moldau.testing.simulation.transactions import COORDINATOR_KNOWS, SimulatedCoordinator
from moldau.testing.simulation.whole_cluster import TRANSACTIONS_WHOLE, WholeCluster
from moldau.testing.simulation.whole_partition import DECIDED_ONCE, Data, PartitionReplica, TransactionalReplica

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


class ForgetsVotes(MetadataNode):
    def _act(self, effect: Effect) -> None:
        if not isinstance(effect, SaveElection):
            super()._act(effect)


class VouchesForThePageCache(MetadataNode):
    """A node that was killed acknowledges what it finds in its files, synced or not."""

    def make_durable(self) -> None:
        return


class LoadsPastTheWatermark(SimulatedCoordinator):
    def activate_when_committed(self) -> None:
        self.activate()


class AnswersBeforeTheCommit(SimulatedCoordinator):
    def when_committed(self, then: Callable[[], None]) -> None:
        then()


class MarksBeforeTheCommit(SimulatedCoordinator):
    """Its markers are on their way before the end of the transaction is certain."""

    def _end(self, transaction: Transaction) -> None:
        if self._is_ending(transaction):
            self._write_markers(transaction)


class AcknowledgesAtOnce(PartitionReplica):
    """A leader that answers acks=all before the high watermark."""

    def append(self, value: object) -> bool:
        is_appended = super().append(value)
        for entry in self.waits:
            self.cluster.on_acknowledged(self, entry)
        self.waits.clear()
        return is_appended


class NeverTruncates(PartitionReplica):
    def _cut(self, epoch: int, end_offset: int) -> None:
        return

    def on_answer(self, number: int, asked: Any, answer: FetchAnswer) -> None:
        super().on_answer(number, asked, answer._replace(diverging=None) if answer.diverging else answer)

    def _diverging(self, fetch: Any) -> None:
        return None


class Unverified(WholeCluster):
    """Leaders append to transactions that their coordinator may not know of."""

    def _verify(
        self,
        replica: TransactionalReplica,
        place: TopicPartition,
        transactional_id: str,
        data: Data,
        answer: Callable[[Any], None],
    ) -> None:
        replica.write(data, answer)


MUTANTS = (
    Mutant(
        "a vote is not synced",
        frozenset({ONE_LEADER, COMPLETE_LEADER}),
        lambda seed: WholeCluster(seed, metadata=ForgetsVotes),
    ),
    Mutant(
        "a killed controller vouches for what it has not synced",
        frozenset({COMMITTED_IS_ON_DISK, COMPLETE_LEADER}),
        lambda seed: WholeCluster(seed, metadata=VouchesForThePageCache),
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
    Mutant(
        "markers are written before the end is committed",
        frozenset({TRANSACTIONS_WHOLE}),
        lambda seed: WholeCluster(seed, coordinator=MarksBeforeTheCommit),
    ),
    Mutant("a leader acknowledges at once", LOSS, lambda seed: WholeCluster(seed, replica=AcknowledgesAtOnce)),
    Mutant("a follower never truncates", LOSS, lambda seed: WholeCluster(seed, replica=NeverTruncates)),
    Mutant("batches are not verified", frozenset({DECIDED_ONCE, TRANSACTIONS_WHOLE}), Unverified),
)
