"""What DESCRIBE … EXTENDED tells of the queries around a source: what they read and wrote, and how far they are.

Start at `offset_summary` for positions, `statistics_text` for counts.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from typing import Any

from moldau.client.errors import ClientError
from moldau.client.groups import Groups
from moldau.core.ids import TopicPartition
from moldau.ksql.api.documents import Document
from moldau.ksql.cluster import KafkaCluster

__all__ = ["offset_summary", "statistics_documents", "statistics_text"]

_logger = logging.getLogger("moldau.ksql")
EARLIEST, LATEST = -2, -1
SHOWN = ("records-in-total", "records-out-total", "records-lag", "state-records", "batch-time-ms", "restarts")
"""The engine's numbers of a query that are shown, in this order."""


def offset_summary(cluster: KafkaCluster, group_id: str, topics: Iterable[str]) -> Document:
    """Where the group of a query is in the topics that it reads, as far as brokers tell. Blocks."""
    try:
        summaries = _topic_summaries(cluster, group_id, topics)
    except ClientError as error:
        _logger.warning("the offsets of group %s are not known: %s", group_id, error)
        summaries = {}
    return {
        "groupId": group_id,
        "topicSummaries": [{"kafkaTopic": topic, "offsets": offsets} for topic, offsets in summaries.items()],
    }


def _topic_summaries(cluster: KafkaCluster, group_id: str, topics: Iterable[str]) -> dict[str, list[Document]]:
    counts = cluster.admin.partition_counts()
    places = [TopicPartition(topic, number) for topic in topics for number in range(counts.get(topic, 0))]
    starts = cluster.admin.list_offsets(dict.fromkeys(places, EARLIEST))
    ends = cluster.admin.list_offsets(dict.fromkeys(places, LATEST))
    committed = Groups(cluster.admin).committed(group_id)
    summaries: dict[str, list[Document]] = {}
    for place in places:
        offsets = summaries.setdefault(place.topic, [])
        if place in committed:
            offsets.append(
                {
                    "partition": place.partition,
                    "logStartOffset": starts[place],
                    "logEndOffset": ends[place],
                    "consumerOffset": committed[place].offset,
                }
            )
    return summaries


def statistics_text(numbers: Mapping[str, Mapping[str, Any]]) -> str:
    """A line for each query that the engine knows something of."""
    lines = []
    for query_id, known in numbers.items():
        shown = [f"{name}: {known[name]:.0f}" for name in SHOWN if known.get(name) is not None]
        if shown:
            lines.append(f"{query_id:<20} {'   '.join(shown)}")
    return "\n".join(lines)


def statistics_documents(numbers: Mapping[str, Mapping[str, Any]], host: str) -> list[Document]:
    """The same numbers one by one, as clients read them."""
    now_ms = time.time_ns() // 1_000_000
    return [
        {"host": host, "name": f"{query_id}.{name}", "value": known[name], "timestamp": now_ms}
        for query_id, known in numbers.items()
        for name in SHOWN
        if known.get(name) is not None
    ]
