"""Cluster administration through librdkafka's admin client: blocking calls that return values or raise.

While a call waits for its futures, librdkafka's log lines are reported and Ctrl-C works. Requests that librdkafka does
not offer are in `client.wire_admin`. Start at `Admin`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from moldau.client.connection import Report, build, normalize_servers
from moldau.client.errors import ClientError, UnreachableError, client_error
from moldau.client.waiting import BlockingCall, GivenUpError, never, served
from moldau.core.errors import ErrorCode, InvalidConfigError
from moldau.core.ids import TopicPartition

__all__ = [
    "CONFIG_SOURCES",
    "SCRAM_MECHANISMS",
    "Admin",
    "ClusterDescription",
    "ConfigEntry",
    "ConfigSynonym",
    "Node",
    "PartitionDescription",
    "TopicDescription",
    "alter_scram_credentials",
    "describe_scram_credentials",
]

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

    from moldau.client.wire import WireClient


DEFAULT_TIMEOUT_MS = 60_000
POLL_S = 0.05
FIRST_ATTEMPT_S = 3.0
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
    """Kafka's name of the level that the value comes from, such as `DYNAMIC_TOPIC_CONFIG`."""
    is_sensitive: bool
    is_read_only: bool
    synonyms: tuple[ConfigSynonym, ...] = field(default=())


class Admin:
    """One connection to a cluster. `report` receives the client's own log lines.

    Every call blocks until its response, for `timeout_ms` at most; once `is_over()` is true, it raises `GivenUpError`.
    """

    def __init__(
        self,
        servers: str,
        properties: Mapping[str, str] | None = None,
        *,
        report: Report = lambda level, text: None,
        timeout_ms: int | None = None,
        is_over: Callable[[], bool] = never,
    ) -> None:
        from confluent_kafka.admin import AdminClient

        settings = {"client.id": "adminclient-1", **(properties or {})}
        self.servers = normalize_servers(servers)
        self.properties = dict(properties or {})
        settings["bootstrap.servers"] = self.servers
        self._is_over = is_over
        self._nodes: tuple[Node, ...] | None = None
        self._client_id = settings["client.id"]
        title = f"AdminClient clientId={self._client_id}"
        self.client: AdminClient
        self.client, translated = build(AdminClient, "admin", settings, report=report, title=title)
        wanted_ms = timeout_ms or int(translated.own.get("default.api.timeout.ms", DEFAULT_TIMEOUT_MS))
        self.timeout_s = wanted_ms / 1000

    # Topics

    def topic_names(self) -> list[str]:
        """Every topic's name, sorted."""
        return sorted(self._metadata().topics)

    def broker_count(self) -> int:
        return len(self._metadata().brokers)

    def partition_counts(self) -> dict[str, int]:
        return {name: len(topic.partitions) for name, topic in self._metadata().topics.items()}

    def describe_topics(self, names: Sequence[str]) -> list[TopicDescription]:
        """Descriptions in the order of `names`; raises for a topic that does not exist."""
        from confluent_kafka import TopicCollection

        if not names:
            return []

        def ask(timeout_s: float) -> dict[str, Any]:
            futures = self.client.describe_topics(TopicCollection(list(names)), request_timeout=timeout_s)
            return self.wait_for_all(futures, about=lambda name: f"Topic '{name}'")

        found = self._ask_repeatedly(ask)
        return [_topic(found[name]) for name in names]

    def create_topic(
        self,
        name: str,
        *,
        partitions: int | None = None,
        replication_factor: int | None = None,
        replica_assignment: Sequence[Sequence[int]] | None = None,
        configs: Mapping[str, str] | None = None,
        validate_only: bool = False,
    ) -> None:
        """Create a topic, or only have the broker check that it could be."""
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
        request = partial(self.client.create_topics, validate_only=validate_only)
        self.wait_for_all(self._call(request, [topic]))

    def delete_topics(self, names: Sequence[str]) -> None:
        self.wait_for_all(self._call(self.client.delete_topics, list(names)))

    def create_partitions(
        self, name: str, total: int, replica_assignment: Sequence[Sequence[int]] | None = None
    ) -> None:
        """Grow a topic to `total` partitions; the assignment is that of the new ones only."""
        from confluent_kafka.admin import NewPartitions

        if replica_assignment is None:
            grown = NewPartitions(name, total)
        else:
            grown = NewPartitions(name, total, replica_assignment=[list(replicas) for replicas in replica_assignment])
        self.wait_for_all(self._call(self.client.create_partitions, [grown]))

    # Configs

    def describe_configs(self, kind: str, names: Sequence[str]) -> dict[str, list[ConfigEntry]]:
        """Entries by resource name, in the broker's order; `kind` is `topic`, `broker` or `group`.

        One request each, all at once: librdkafka takes a single broker per request.
        """
        from confluent_kafka.admin import ConfigResource

        resources = [ConfigResource(_resource_type(kind), name) for name in names]

        def ask(timeout_s: float) -> dict[ConfigResource, Any]:
            futures: dict[ConfigResource, Future[Any]] = {}
            for group in [[r] for r in resources] if kind == "broker" else [resources]:
                futures.update(self._call(self.client.describe_configs, group, timeout_s))
            return self.wait_for_all(futures)

        found = self._ask_repeatedly(ask)
        return {resource.name: [_config_entry(entry) for entry in found[resource].values()] for resource in resources}

    def alter_configs(
        self,
        kind: str,
        name: str,
        *,
        add: Mapping[str, str] | None = None,
        delete: Sequence[str] = (),
        validate_only: bool = False,
    ) -> None:
        """Set and unset single keys, leaving the others as they are; or only have the broker check that."""
        from confluent_kafka.admin import AlterConfigOpType, ConfigResource
        from confluent_kafka.admin import ConfigEntry as Change

        changes = [
            Change(key, value, incremental_operation=AlterConfigOpType.SET) for key, value in (add or {}).items()
        ]
        changes += [Change(key, None, incremental_operation=AlterConfigOpType.DELETE) for key in delete]
        resource = ConfigResource(_resource_type(kind), name, incremental_configs=changes)
        request = partial(self.client.incremental_alter_configs, validate_only=validate_only)
        self.wait_for_all(self._call(request, [resource]))

    # Records

    def list_offsets(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """The offset for a timestamp or one of Kafka's special values (-1 latest, -2 earliest, ...) per partition.

        -1 means that no record is that new. Partitions that fail raise a `ClientError`.
        """
        return {partition: _must(answer) for partition, answer in self.try_list_offsets(wanted).items()}

    def try_list_offsets(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | ClientError]:
        """As `list_offsets`, with each partition's error in its place."""
        answers = self._listed_offsets(wanted)
        stale = [place for place, answer in answers.items() if _is_of_another_epoch(answer)]
        if stale:
            # A restarted leader has a new epoch, which librdkafka learns from the topic's metadata.
            self._metadata()
            answers |= self._listed_offsets({place: wanted[place] for place in stale})
        return answers

    def _listed_offsets(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | ClientError]:
        import confluent_kafka as kafka
        from confluent_kafka.admin import OffsetSpec

        request = {
            kafka.TopicPartition(partition.topic, partition.partition): OffsetSpec.for_timestamp(timestamp)
            for partition, timestamp in wanted.items()
        }
        if not request:
            return {}
        futures = self._call(self.client.list_offsets, request)
        return self._by_partition(futures, lambda answer: answer.offset)

    def delete_records(self, before: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | ClientError]:
        """Drop records below the given offsets (-1: all); each partition's new start, or its error."""
        import confluent_kafka as kafka

        request = [kafka.TopicPartition(p.topic, p.partition, offset) for p, offset in before.items()]
        futures = self._call(self.client.delete_records, request)
        return self._by_partition(futures, lambda answer: answer.low_watermark)

    # Cluster

    def describe_cluster(self) -> ClusterDescription:
        found = self._ask_repeatedly(
            lambda timeout_s: self.wait_for(self.client.describe_cluster(request_timeout=timeout_s))
        )
        nodes = tuple(sorted((_node(node) for node in found.nodes), key=lambda node: node.id))
        controller_id = found.controller.id if found.controller is not None else None
        return ClusterDescription(found.cluster_id or "", controller_id, nodes)

    # Other requests

    def wire(self, node_id: int | None = None) -> WireClient:
        """A connection for requests that librdkafka does not offer: to the given broker, or to any."""
        from moldau.client.wire import WireClient, wire_security

        if self._nodes is None:
            self._nodes = self.describe_cluster().nodes
        nodes = self._nodes
        if node_id is not None:
            nodes = tuple(node for node in nodes if node.id == node_id)
            if not nodes:
                raise ClientError(f"broker {node_id} is not part of the cluster", ErrorCode.BROKER_NOT_AVAILABLE)
        try:
            tls, mechanism = wire_security(self.properties)
        except InvalidConfigError as error:
            raise ClientError(str(error), ErrorCode.INVALID_CONFIG) from None
        return WireClient(
            nodes[0].host, nodes[0].port, self.timeout_s, client_id=self._client_id, tls=tls, mechanism=mechanism
        )

    # Waiting

    def _metadata(self) -> Any:
        """librdkafka's metadata call blocks, and gives up when a connection breaks: here it is repeated."""
        from confluent_kafka import KafkaException

        deadline = time.monotonic() + self.timeout_s
        while True:
            left = max(0.1, deadline - time.monotonic())
            asking = BlockingCall(partial(self.client.list_topics, timeout=left)).start()
            while not asking.wait(POLL_S):
                self._serve()
            try:
                return asking.answer()
            except KafkaException as error:
                self._serve()
                failure = client_error(error.args[0])
                if not isinstance(failure, UnreachableError):
                    raise failure from None
                if time.monotonic() >= deadline:
                    raise UnreachableError(_unreachable(self.servers)) from None
            time.sleep(POLL_S)

    def _serve(self) -> None:
        """While waiting: poll for log lines, and give up once the program is ending."""
        served(self.client.poll, 0)
        if self._is_over():
            raise GivenUpError("the program ended before a broker answered")

    def _ask_repeatedly(self, ask: Callable[[float], Answer]) -> Answer:
        """Ask until a broker answers: librdkafka gives a request up when its one broker is lost, or waits for that
        broker until the request's time is up. Only for questions, which change nothing."""
        deadline, attempt_s = time.monotonic() + self.timeout_s, FIRST_ATTEMPT_S
        while True:
            left = max(0.1, deadline - time.monotonic())
            try:
                return ask(min(left, attempt_s))
            except UnreachableError:
                if time.monotonic() + POLL_S >= deadline:
                    raise
            attempt_s *= 2
            time.sleep(POLL_S)
            self._metadata()  # says anew which broker to ask

    def _call(self, request: Callable[..., Any], argument: Any, timeout_s: float | None = None) -> Any:
        from confluent_kafka import KafkaException

        try:
            return request(argument, request_timeout=self.timeout_s if timeout_s is None else timeout_s)
        except KafkaException as error:
            raise client_error(error.args[0]) from None
        except (TypeError, ValueError) as error:
            raise ClientError(str(error), ErrorCode.INVALID_REQUEST) from None

    def _by_partition(
        self, futures: Mapping[Any, Future[Any]], read: Callable[[Any], int]
    ) -> dict[TopicPartition, int | ClientError]:
        """Each partition's result, or its error."""
        answers: dict[TopicPartition, int | ClientError] = {}
        for key, future in futures.items():
            partition = TopicPartition(key.topic, key.partition)
            try:
                answers[partition] = read(self.wait_for(future))
            except ClientError as error:
                answers[partition] = error
        return answers

    def wait_for_all(
        self, futures: Mapping[Any, Future[Any]], *, about: Callable[[Any], str] = lambda key: ""
    ) -> dict[Any, Any]:
        """Wait for all; the first failure in order is raised."""
        return {key: self.wait_for(future, about=about(key)) for key, future in futures.items()}

    def wait_for(self, future: Future[Answer], *, about: str = "") -> Answer:
        from confluent_kafka import KafkaException

        while True:
            try:
                return future.result(timeout=POLL_S)
            except FutureTimeoutError:
                self._serve()
            except KafkaException as error:
                failure = client_error(error.args[0], about=about)
                if isinstance(failure, UnreachableError):
                    failure = UnreachableError(_unreachable(self.servers))
                raise failure from None


def _is_of_another_epoch(answer: int | ClientError) -> bool:
    return isinstance(answer, ClientError) and answer.error_code in (
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
    )


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


CONFIG_SOURCES = {
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
    return CONFIG_SOURCES.get(getattr(source, "value", source), "UNKNOWN")


SCRAM_MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")


def describe_scram_credentials(admin: Admin, users: Sequence[str]) -> dict[str, list[tuple[str, int]]]:
    """Mechanism and iterations by user; all users when none are named."""
    futures = admin.client.describe_user_scram_credentials(list(users) or None, request_timeout=admin.timeout_s)
    found = admin.wait_for_all(futures) if isinstance(futures, dict) else admin.wait_for(futures)
    return {
        user: [(info.mechanism.name.replace("_", "-"), info.iterations) for info in description.scram_credential_infos]
        for user, description in found.items()
    }


def alter_scram_credentials(
    admin: Admin, user: str, passwords: Mapping[str, tuple[str, int]], dropped: Sequence[str]
) -> None:
    """Set a password with its iterations per mechanism, and remove mechanisms."""
    from confluent_kafka.admin import (
        ScramCredentialInfo,
        ScramMechanism,
        UserScramCredentialAlteration,
        UserScramCredentialDeletion,
        UserScramCredentialUpsertion,
    )

    changes: list[UserScramCredentialAlteration] = [
        UserScramCredentialUpsertion(
            user, ScramCredentialInfo(ScramMechanism[mechanism.replace("-", "_")], iterations), password.encode()
        )
        for mechanism, (password, iterations) in passwords.items()
    ]
    changes += [UserScramCredentialDeletion(user, ScramMechanism[name.replace("-", "_")]) for name in dropped]
    admin.wait_for_all(admin.client.alter_user_scram_credentials(changes, request_timeout=admin.timeout_s))
