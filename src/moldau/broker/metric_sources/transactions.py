"""Metrics of transactions: count, outcomes, and markers that cannot be written yet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from moldau.broker.context import Broker
from moldau.broker.metric_sources.attach import Parts
from moldau.broker.metric_sources.families import gauge, meter, plain, plain_counter
from moldau.broker.metrics import Family, Sample

__all__ = ["families"]

MARKERS = "kafka.coordinator.transaction:TransactionMarkerChannelManager"
STATES = ("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort")


def families(broker: Broker, parts: Parts) -> Iterator[Family]:
    coordinators = broker.coordinators
    shards = list(coordinators.transaction_shards.shards.values())
    # Without a shard there is no coordinator, and reading metrics must not create one.
    transactions = coordinators.transactions if shards else None
    states = Counter(one.state.display_name for one in transactions.all()) if transactions is not None else Counter()
    yield plain(
        "moldau_txn_open",
        [Sample((("state", state),), states[state]) for state in STATES],
        "Transactional ids of this coordinator by the state of their transaction.",
    )
    committed, aborted = (transactions.committed, transactions.aborted) if transactions is not None else (0, 0)
    yield plain_counter("moldau_txn_committed_total", committed, "Transactions committed, markers included.")
    yield plain_counter("moldau_txn_aborted_total", aborted, "Transactions aborted, markers included.")
    timed_out = sum(shard.core.timed_out for shard in shards)
    yield plain_counter("moldau_txn_timed_out_total", timed_out, "Transactions aborted because they took too long.")
    waiting = transactions.waiting_markers if transactions is not None else 0
    yield gauge(MARKERS, "UnknownDestinationQueueSize", 0, "Markers for partitions that nobody leads.")
    yield gauge(MARKERS, "LogAppendRetryQueueSize", waiting, "Markers that could not be written yet.")
    failures = coordinators.transaction_checks.failures if transactions is not None else 0
    yield meter(
        "kafka.server:AddPartitionsToTxnManager",
        "VerificationFailureRate",
        failures,
        "Batches refused because their partition was not part of the transaction.",
    )
