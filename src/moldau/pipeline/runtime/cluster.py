"""What a pipeline needs of its cluster, looked at before it starts: topics that are there, topics to be made.

Start at `Cluster.prepared`.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterable, Mapping

from moldau.client.admin import Admin
from moldau.client.errors import ClientError, UnreachableError
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition
from moldau.pipeline.ir.copartitioning import partition_counts
from moldau.pipeline.ir.nodes import Source
from moldau.pipeline.ir.topology import Topology
from moldau.pipeline.runtime.client_log import report_client_log
from moldau.pipeline.runtime.errors import ClusterUnreachableError, MissingTopicError, StreamsError
from moldau.pipeline.runtime.progress import TOPIC_CONFIGS, progress_topic
from moldau.pipeline.runtime.settings import StreamsSettings

__all__ = ["Cluster"]

logger = logging.getLogger("moldau.streams")

PATIENCE_MS = 8_000
LEADERS_S = 30.0
LEADERS_PAUSE_S = 0.02
EARLIEST = -2


class Cluster:
    """The brokers of one application, through an admin client."""

    def __init__(self, settings: StreamsSettings) -> None:
        self._settings = settings
        properties = {k: v for k, v in settings.client_properties("admin").items() if k != "bootstrap.servers"}
        self.admin = Admin(settings.bootstrap_servers, properties, report=report_client_log, timeout_ms=PATIENCE_MS)

    def prepared(self, topology: Topology) -> dict[str, int]:
        """Check that what is read exists, make what is written, and return every topic's partition count.

        Raises `MissingTopicError`, `CopartitioningError` where topics that meet have different counts, or
        `StreamsError` where the cluster does not answer or does not allow it.
        """
        counts = self.partition_counts()
        _check_sources((*topology.sources, *topology.global_tables), counts)
        # Spark's plan finds this too, but seconds later.
        partition_counts(tuple(dict.fromkeys(node for piece in topology.subtopologies for node in piece.nodes)), counts)
        fresh = [topic for topic in self._written(topology) if topic not in counts]
        for topic in fresh:
            self._create(topic, {})
        if self._settings.is_exactly_once and (own := progress_topic(self._settings.application_id)) not in counts:
            self._create(own, TOPIC_CONFIGS, partitions=1)
            fresh.append(own)
        if fresh:
            counts = self._with_leaders(fresh)
        return counts

    def partition_counts(self) -> dict[str, int]:
        try:
            return self.admin.partition_counts()
        except UnreachableError:
            raise ClusterUnreachableError(
                f"no broker answers at {self._settings.bootstrap_servers}; start one (`moldau server`), "
                "or correct bootstrap.servers"
            ) from None

    def answers(self) -> bool:
        """Whether a broker can be reached just now; a No takes seconds."""
        try:
            self.admin.partition_counts()
        except ClientError as error:
            return not isinstance(error, UnreachableError)
        return True

    def _written(self, topology: Topology) -> list[str]:
        topics = [sink.topic for sink in topology.sinks if sink.topic is not None]
        if self._settings.dead_letter_topic is not None:
            topics.append(self._settings.dead_letter_topic)
        return list(dict.fromkeys(topics))

    def _create(self, topic: str, configs: Mapping[str, str], partitions: int | None = None) -> None:
        try:
            self.admin.create_topic(
                topic,
                partitions=partitions,
                replication_factor=self._settings.replication_factor,
                configs=configs,
            )
        except ClientError as error:
            if error.error_code is ErrorCode.INVALID_TOPIC_EXCEPTION:
                raise StreamsError(f"{error}; the program writes to that topic and needs another name for it") from None
            if error.error_code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                raise StreamsError(
                    f"topic {topic} does not exist and could not be created: {error}; create it with: "
                    f"moldau topics create {topic}"
                ) from None
        else:
            logger.info("created topic %s", topic)

    def _with_leaders(self, topics: Iterable[str]) -> dict[str, int]:
        """Wait until new topics take records, and count again."""
        deadline = time.monotonic() + LEADERS_S
        while True:
            counts = self.partition_counts()
            places = [TopicPartition(topic, number) for topic in topics for number in range(counts.get(topic, 0))]
            answers = self.admin.try_list_offsets(dict.fromkeys(places, EARLIEST))
            settled = all(topic in counts for topic in topics)
            if settled and not any(isinstance(answer, ClientError) for answer in answers.values()):
                return counts
            if time.monotonic() > deadline:
                raise StreamsError(f"topics {', '.join(topics)} were created and have no leaders after {LEADERS_S:g} s")
            time.sleep(LEADERS_PAUSE_S)


def _check_sources(sources: Iterable[Source], counts: Mapping[str, int]) -> None:
    missing = [(topic, source) for source in sources for topic in source.topics if topic not in counts]
    if missing:
        places = ", ".join(f"{topic} (read at {source.origin})" for topic, source in missing)
        commands = "; ".join(dict.fromkeys(f"moldau topics create {topic}" for topic, _ in missing))
        raise MissingTopicError(f"no such topic: {places}. Create what is missing first: {commands}")
    for source in sources:
        if source.topic_pattern is not None:
            _check_pattern(source.topic_pattern, source)


def _check_pattern(pattern: str, source: Source) -> None:
    try:
        re.compile(pattern)
    except re.error as error:
        raise StreamsError(f"{pattern!r} is no pattern of topics ({source.origin}): {error}") from None
