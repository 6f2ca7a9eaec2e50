"""Which of librdkafka's consumer errors an application must hear of, and which pass by themselves.

Start at `passes_by_itself`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

__all__ = ["passes_by_itself"]

_PASSING = frozenset(
    {
        "_ALL_BROKERS_DOWN",
        "_TRANSPORT",
        "_RESOLVE",
        "_TIMED_OUT",
        "_PARTITION_EOF",
        # Fallen out of the group; the next poll joins again.
        "_MAX_POLL_EXCEEDED",
        # A subscription is a wish: the topic may come to exist.
        "_UNKNOWN_TOPIC",
        "_UNKNOWN_PARTITION",
        "UNKNOWN_TOPIC_OR_PART",
        "UNKNOWN_TOPIC_ID",
        "LEADER_NOT_AVAILABLE",
        "NOT_LEADER_FOR_PARTITION",
        "COORDINATOR_LOAD_IN_PROGRESS",
        "COORDINATOR_NOT_AVAILABLE",
        "NOT_COORDINATOR",
        "REBALANCE_IN_PROGRESS",
        "ILLEGAL_GENERATION",
        "UNKNOWN_MEMBER_ID",
        "REQUEST_TIMED_OUT",
        "NETWORK_EXCEPTION",
    }
)


def passes_by_itself(error: KafkaError) -> bool:
    """Whether librdkafka goes on trying and will succeed once the cluster is well again."""
    return not error.fatal() and (error.retriable() or error.name() in _PASSING)
