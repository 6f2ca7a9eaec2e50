"""The cluster's administration, as plain calls that answer with values or raise.

Over librdkafka's admin client, whose futures are waited for here so that its log lines come out and
Ctrl-C works meanwhile. What it cannot ask is in `client.wire`. Start at `Admin`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from moldau.client.connection import Report, build, normalize_servers
from moldau.client.errors import ClientError, UnreachableError, client_error
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

__all__ = [
    "Admin",
    "ClusterDescription",
    "ConfigEntry",
    "ConfigSynonym",
    "Node",
    "PartitionDescription",
    "TopicDescription",
]

DEFAULT_TIMEOUT_MS = 60_000
POLL_S = 0.05
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Node:
    id: int
    host: str
    port: int
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    cluster_id: str
    controller_id: int | None
    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class PartitionDescription:
    partition: int
    leader: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TopicDescription:
    name: str
    topic_id: str
    is_internal: bool
    partitions: tuple[PartitionDescription, ...]

    @property
    def replication_factor(self) -> int:
        return len(self.partitions[0].replicas) if self.partitions else 0


@dataclass(frozen=True, slots=True)
class ConfigSynonym:
    name: str
    value: str | None
    source: str


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    name: str
    value: str | None
    source: str
    """Kafka's name of the level that decides, such as `DYNAMIC_TOPIC_CONFIG`."""
    is_sensitive: bool
    is_read_only: bool
    synonyms: tuple[ConfigSynonym, ...] = field(default=())


class Admin:
    """One connection to a cluster. `report` receives the client's own log lines."""

    def __init__(
        self,
        servers: str,
        properties: Mapping[str, str] | None = None,
        *,
        report: Report = lambda level, text: None,
        timeout_ms: int | None = None,
    ) -> None:
        from confluent_kafka.admin import AdminClient

        settings = {"client.id": "adminclient-1", **(properties or {})}
        self.servers = normalize_servers(servers)
        self.properties = dict(properties or {})
        settings["bootstrap.servers"] = self.servers
        title = f"AdminClient clientId={settings['client.id']}"
        self._client: AdminClient
        self._client, translated = build(AdminClient, "admin", settings, report=report, title=title)
        wanted_ms = timeout_ms or int(translated.own.get("default.api.timeout.ms", DEFAULT_TIMEOUT_MS))
        self.timeout_s = wanted_ms / 1000

    # Topics

    def topic_names(self) -> list[str]:
        """Every topic's name, sorted."""
        return sorted(self._metadata().topics)

    def partition_counts(self) -> dict[str, int]:
        return {name: len(topic.partitions) for name, topic in self._metadata().topics.items()}

    def describe_topics(self, names: Sequence[str]) -> list[TopicDescription]:
        """Descriptions in the order of `names`; raises for a topic that does not exist."""
        from confluent_kafka import TopicCollection

        if not names:
            return []
        futures = self._client.describe_topics(TopicCollection(list(names)), request_timeout=self.timeout_s)
        found = self._all(futures, about=lambda name: f"Topic '{name}'")
        return [_topic(found[name]) for name in names]

    def create_topic(
        self,
        name: str,
        *,
        partitions: int | None = None,
        replication_factor: int | None = None,
        replica_assignment: Sequence[Sequence[int]] | None = None,
        configs: Mapping[str, str] | None = None,
    ) -> None:
        from confluent_kafka.admin import NewTopic

        if replica_assignment is not None:
            topic = NewTopic(
                name,
                num_partitions=len(replica_assignment),
                replica_assignment=[list(replicas) for replicas in replica_assignment],
                config=dict(configs or {}),
            )
        else:
            topic = NewTopic(
                name,
                num_partitions=-1 if partitions is None else partitions,
                replication_factor=-1 if replication_factor is None else replication_factor,
                config=dict(configs or {}),
            )
        self._all(self._call(self._client.create_topics, [topic]))

    def delete_topics(self, names: Sequence[str]) -> None:
        self._all(self._call(self._client.delete_topics, list(names)))

    def create_partitions(
        self, name: str, total: int, replica_assignment: Sequence[Sequence[int]] | None = None
    ) -> None:
        """Grow a topic to `total` partitions; the assignment is that of the new ones only."""
        from confluent_kafka.admin import NewPartitions

        if replica_assignment is None:
            grown = NewPartitions(name, total)
        else:
            grown = NewPartitions(name, total, replica_assignment=[list(replicas) for replicas in replica_assignment])
        self._all(self._call(self._client.create_partitions, [grown]))

    # Configs

    def describe_configs(self, kind: str, names: Sequence[str]) -> dict[str, list[ConfigEntry]]:
        """Entries by resource name, in the broker's order; `kind` is `topic`, `broker` or `group`.

        One request each, all at once: librdkafka takes a single broker per request.
        """
        from confluent_kafka.admin import ConfigResource

        resources = [ConfigResource(_resource_type(kind), name) for name in names]
        futures: dict[ConfigResource, Future[Any]] = {}
        for group in [[r] for r in resources] if kind == "broker" else [resources]:
            futures.update(self._call(self._client.describe_configs, group))
        found = self._all(futures)
        return {resource.name: [_config_entry(entry) for entry in found[resource].values()] for resource in resources}

    def alter_configs(
        self, kind: str, name: str, *, add: Mapping[str, str] | None = None, delete: Sequence[str] = ()
    ) -> None:
        """Set and unset single keys, leaving the others as they are."""
        from confluent_kafka.admin import AlterConfigOpType, ConfigResource
        from confluent_kafka.admin import ConfigEntry as Change

        changes = [
            Change(key, value, incremental_operation=AlterConfigOpType.SET) for key, value in (add or {}).items()
        ]
        changes += [Change(key, None, incremental_operation=AlterConfigOpType.DELETE) for key in delete]
        resource = ConfigResource(_resource_type(kind), name, incremental_configs=changes)
        self._all(self._call(self._client.incremental_alter_configs, [resource]))

    # Records

    def list_offsets(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """The offset for a timestamp or one of Kafka's special values (-1 latest, -2 earliest, ...) per partition.

        -1 means that no record is that young. Partitions that fail raise a `ClientError`.
        """
        return {partition: _must(answer) for partition, answer in self.try_list_offsets(wanted).items()}

    def try_list_offsets(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | ClientError]:
        """As `list_offsets`, with each partition's error in its place."""
        import confluent_kafka as kafka
        from confluent_kafka.admin import OffsetSpec

        request = {
            kafka.TopicPartition(partition.topic, partition.partition): OffsetSpec.for_timestamp(timestamp)
            for partition, timestamp in wanted.items()
        }
        if not request:
            return {}
        answers: dict[TopicPartition, int | ClientError] = {}
        for key, future in self._call(self._client.list_offsets, request).items():
            partition = TopicPartition(key.topic, key.partition)
            try:
                answers[partition] = self._wait(future).offset
            except ClientError as error:
                answers[partition] = error
        return answers

    def delete_records(self, before: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | ClientError]:
        """Drop records below the given offsets (-1: all); each partition's new start, or its error."""
        import confluent_kafka as kafka

        request = [kafka.TopicPartition(p.topic, p.partition, offset) for p, offset in before.items()]
        answers: dict[TopicPartition, int | ClientError] = {}
        for key, future in self._call(self._client.delete_records, request).items():
            partition = TopicPartition(key.topic, key.partition)
            try:
                answers[partition] = self._wait(future).low_watermark
            except ClientError as error:
                answers[partition] = error
        return answers

    # Cluster

    def describe_cluster(self) -> ClusterDescription:
        future = self._client.describe_cluster(request_timeout=self.timeout_s)
        found = self._wait(future)
        nodes = tuple(sorted((_node(node) for node in found.nodes), key=lambda node: node.id))
        controller_id = found.controller.id if found.controller is not None else None
        return ClusterDescription(found.cluster_id or "", controller_id, nodes)

    # Waiting

    def _metadata(self) -> Any:
        """librdkafka's metadata call blocks; asked in slices it lets log lines and Ctrl-C through."""
        from confluent_kafka import KafkaException

        deadline = time.monotonic() + self.timeout_s
        while True:
            left = deadline - time.monotonic()
            try:
                return self._client.list_topics(timeout=max(0.1, min(left, 1.0)))
            except KafkaException as error:
                self._client.poll(0)
                failure = client_error(error.args[0])
                if not isinstance(failure, UnreachableError):
                    raise failure from None
                if left <= 1.0:
                    raise UnreachableError(_unreachable(self.servers)) from None

    def _call(self, request: Callable[..., Any], argument: Any) -> Any:
        from confluent_kafka import KafkaException

        try:
            return request(argument, request_timeout=self.timeout_s)
        except KafkaException as error:
            raise client_error(error.args[0]) from None
        except (TypeError, ValueError) as error:
            raise ClientError(str(error), ErrorCode.INVALID_REQUEST) from None

    def _all(
        self, futures: Mapping[Any, Future[Any]], *, about: Callable[[Any], str] = lambda key: ""
    ) -> dict[Any, Any]:
        """Wait for all; the first failure in order is raised."""
        return {key: self._wait(future, about=about(key)) for key, future in futures.items()}

    def _wait(self, future: Future[Answer], *, about: str = "") -> Answer:
        from confluent_kafka import KafkaException

        while True:
            try:
                return future.result(timeout=POLL_S)
            except FutureTimeoutError:
                self._client.poll(0)
            except KafkaException as error:
                failure = client_error(error.args[0], about=about)
                if isinstance(failure, UnreachableError):
                    failure = UnreachableError(_unreachable(self.servers))
                raise failure from None


def _must(answer: int | ClientError) -> int:
    if isinstance(answer, ClientError):
        raise answer
    return answer


def _unreachable(servers: str) -> str:
    return f"Timed out waiting for a node assignment: no broker answered at {servers}"


def _resource_type(kind: str) -> Any:
    from confluent_kafka.admin import ResourceType

    return ResourceType[kind.upper()]


def _node(node: Any) -> Node:
    return Node(node.id, node.host, node.port, node.rack)


_URL_SAFE = str.maketrans("+/", "-_")


def _topic(found: Any) -> TopicDescription:
    partitions = tuple(
        PartitionDescription(
            partition.id,
            partition.leader.id if partition.leader is not None and partition.leader.id >= 0 else None,
            tuple(node.id for node in partition.replicas),
            tuple(node.id for node in partition.isr),
        )
        for partition in sorted(found.partitions, key=lambda partition: partition.id)
    )
    # librdkafka prints ids in plain base64, Kafka in the url-safe alphabet without padding.
    topic_id = str(found.topic_id).translate(_URL_SAFE).rstrip("=")
    return TopicDescription(found.name, topic_id, found.is_internal, partitions)


_SOURCES = {
    1: "DYNAMIC_TOPIC_CONFIG",
    2: "DYNAMIC_BROKER_CONFIG",
    3: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    4: "STATIC_BROKER_CONFIG",
    5: "DEFAULT_CONFIG",
    6: "DYNAMIC_BROKER_LOGGER_CONFIG",
    7: "CLIENT_METRICS_CONFIG",
    8: "GROUP_CONFIG",
}


def _config_entry(found: Any) -> ConfigEntry:
    synonyms = tuple(
        ConfigSynonym(synonym.name, synonym.value, _source(synonym.source)) for synonym in found.synonyms.values()
    )
    return ConfigEntry(
        found.name, found.value, _source(found.source), bool(found.is_sensitive), bool(found.is_read_only), synonyms
    )


def _source(source: Any) -> str:
    return _SOURCES.get(getattr(source, "value", source), "UNKNOWN")
