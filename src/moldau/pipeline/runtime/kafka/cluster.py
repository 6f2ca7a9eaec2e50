"""Checks a pipeline's topics before it starts, and creates those that it writes.

Start at `Cluster.prepare`.
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
from moldau.pipeline.runtime.errors import ClusterUnreachableError, MissingTopicError, StreamsError
from moldau.pipeline.runtime.kafka.clients import KafkaClients
from moldau.pipeline.runtime.kafka.progress_topic import TOPIC_CONFIGS

__all__ = ["Cluster"]

logger = logging.getLogger("moldau.streams")

LEADERS_S = 30.0
LEADERS_PAUSE_S = 0.02
EARLIEST = -2


class Cluster:
    """The brokers of one pipeline, through an admin client: a `pipeline.runtime.run.Environment`.

    written: topics to create if they are missing.
    changelogs: the same with their settings, for stores that are followed in real-time mode.
    progress_topic: that of an exactly-once sink, else None.
    provided: partition counts of inputs that are not in the cluster, such as those of a `FrameSource`.
    """

    def __init__(
        self,
        clients: KafkaClients,
        topology: Topology,
        *,
        written: Iterable[str] = (),
        changelogs: Mapping[str, Mapping[str, str]] | None = None,
        progress_topic: str | None = None,
        replication_factor: int = -1,
        provided: Mapping[str, int] | None = None,
    ) -> None:
        self._clients = clients
        self._topology = topology
        self._written = list(dict.fromkeys(written))
        self._changelogs = dict(changelogs or {})
        self._progress_topic = progress_topic
        self._replication_factor = replication_factor
        self._provided = dict(provided or {})
        self._admin: Admin | None = None

    @property
    def admin(self) -> Admin:
        if self._admin is None:
            self._admin = self._clients.new_admin()
        return self._admin

    def prepare(self) -> dict[str, int]:
        """Check that all input topics exist, create missing output topics, and return every topic's partition count.

        Raises `MissingTopicError`, `CopartitioningError` if topics that are joined have different counts, or
        `StreamsError` if the cluster does not answer or denies access.
        """
        counts = self.partition_counts()
        _check_sources((*self._topology.sources, *self._topology.global_tables), counts)
        # Spark's plan finds this too, but seconds later.
        sub_topologies = self._topology.subtopologies
        partition_counts(
            tuple(dict.fromkeys(node for sub_topology in sub_topologies for node in sub_topology.nodes)), counts
        )
        created = [topic for topic in self._written if topic not in counts]
        for topic in created:
            self._create(topic, {})
        for topic, configs in self._changelogs.items():
            if topic not in counts:
                self._create(topic, configs)
                created.append(topic)
        if self._progress_topic is not None and self._progress_topic not in counts:
            self._create(self._progress_topic, TOPIC_CONFIGS, partitions=1)
            created.append(self._progress_topic)
        return self._wait_for_leaders(created) if created else counts

    def close(self) -> None:
        """Close the connection; the next call opens another."""
        self._admin = None

    def outage(self) -> str | None:
        """Why a shutdown is waiting, if that is known."""
        return self._clients.outage

    def partition_counts(self) -> dict[str, int]:
        try:
            return {**self.admin.partition_counts(), **self._provided}
        except UnreachableError:
            raise ClusterUnreachableError(
                f"no broker answers at {self._clients.bootstrap_servers}; start one (`moldau server`), "
                "or correct bootstrap.servers"
            ) from None

    def answers(self) -> bool:
        """Whether a broker can be reached now; takes seconds if none can."""
        try:
            self.admin.partition_counts()
        except ClientError as error:
            return not isinstance(error, UnreachableError)
        return True

    def _create(self, topic: str, configs: Mapping[str, str], partitions: int | None = None) -> None:
        try:
            self.admin.create_topic(
                topic,
                partitions=partitions,
                replication_factor=self._replication_factor,
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

    def _wait_for_leaders(self, topics: Iterable[str]) -> dict[str, int]:
        """Wait until new topics have leaders, and return the new partition counts."""
        deadline = time.monotonic() + LEADERS_S
        while True:
            counts = self.partition_counts()
            places = [TopicPartition(topic, number) for topic in topics for number in range(counts.get(topic, 0))]
            answers = self.admin.try_list_offsets(dict.fromkeys(places, EARLIEST))
            are_known = all(topic in counts for topic in topics)
            if are_known and not any(isinstance(answer, ClientError) for answer in answers.values()):
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
        raise StreamsError(f"{pattern!r} is not a valid topic pattern ({source.origin}): {error}") from None
