"""The settings of a Connect worker: Kafka Connect's keys, each with a default and a description.

Keys of clients (`producer.*`, `consumer.*`, `admin.*`) and of converters are passed on. Start at `WorkerSettings.of`.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from moldau.core.config.key import ConfigKey, ConfigType, at_least, keys_by_name, one_of
from moldau.core.errors import InvalidConfigError
from moldau.http.tls import Listener

__all__ = ["DEFAULT_PORT", "WORKER_KEYS", "WorkerSettings"]

BOOLEAN, STRING, INT, LONG, LIST = (
    ConfigType.BOOLEAN,
    ConfigType.STRING,
    ConfigType.INT,
    ConfigType.LONG,
    ConfigType.LIST,
)
DEFAULT_PORT: Final = 8083
JSON_CONVERTER: Final = "org.apache.kafka.connect.json.JsonConverter"
SIMPLE_HEADERS: Final = "org.apache.kafka.connect.storage.SimpleHeaderConverter"
_SECURITY_PREFIXES = ("ssl.", "sasl.", "security.")
_PASSED_ON = ("producer.", "consumer.", "admin.", "key.converter.", "value.converter.", "header.converter.")
_IGNORED_PREFIXES = ("config.providers.", "metrics.", "metric.", "rest.", "listeners.", "spark.", "internal.")

WORKER_KEYS = keys_by_name(
    [
        ConfigKey("bootstrap.servers", STRING, "localhost:9092", "The brokers."),
        ConfigKey(
            "listeners",
            LIST,
            [f"http://127.0.0.1:{DEFAULT_PORT}"],
            "Where REST requests are taken, over http or https.",
        ),
        ConfigKey("rest.port", INT, None, "An old name for the port of the listener."),
        ConfigKey("rest.host.name", STRING, None, "An old name for the host of the listener."),
        ConfigKey("rest.advertised.host.name", STRING, None, "The host by which other workers reach this one."),
        ConfigKey("rest.advertised.port", INT, None, "The port by which other workers reach this one."),
        ConfigKey("key.converter", STRING, JSON_CONVERTER, "Writes and reads the keys of records."),
        ConfigKey("value.converter", STRING, JSON_CONVERTER, "Writes and reads the values of records."),
        ConfigKey("header.converter", STRING, SIMPLE_HEADERS, "Writes and reads the headers of records."),
        ConfigKey("plugin.path", LIST, [], "Folders with connectors in Python."),
        ConfigKey("plugin.discovery", STRING, "hybrid_warn", "Accepted; plug-ins are always found the same way."),
        ConfigKey("config.providers", LIST, [], "Names of config providers; file, env and directory are built in."),
        ConfigKey("offset.flush.interval.ms", LONG, 60_000, "How often offsets are committed.", at_least(1)),
        ConfigKey("offset.flush.timeout.ms", LONG, 5000, "How long a commit of offsets may take.", at_least(1)),
        ConfigKey("task.shutdown.graceful.timeout.ms", LONG, 5000, "How long a task may take to end.", at_least(0)),
        ConfigKey("topic.creation.enable", BOOLEAN, True, "Whether source connectors may create topics."),
        ConfigKey("topic.tracking.enable", BOOLEAN, True, "Whether the topics of connectors are recorded."),
        ConfigKey("topic.tracking.allow.reset", BOOLEAN, True, "Whether the recorded topics may be reset."),
        ConfigKey(
            "connector.client.config.override.policy",
            STRING,
            "All",
            "Whether connectors may set producer.override.* and the like.",
        ),
        ConfigKey("offset.storage.file.filename", STRING, None, "Standalone: the file of source offsets."),
        ConfigKey("group.id", STRING, None, "Distributed: the name of the cluster of workers."),
        ConfigKey("config.storage.topic", STRING, None, "Distributed: the topic of configurations."),
        ConfigKey("offset.storage.topic", STRING, None, "Distributed: the topic of source offsets."),
        ConfigKey("status.storage.topic", STRING, None, "Distributed: the topic of states."),
        ConfigKey("config.storage.replication.factor", INT, 3, "Replicas of the topic of configurations."),
        ConfigKey("offset.storage.replication.factor", INT, 3, "Replicas of the topic of source offsets."),
        ConfigKey("status.storage.replication.factor", INT, 3, "Replicas of the topic of states."),
        ConfigKey("offset.storage.partitions", INT, 25, "Partitions of the topic of source offsets.", at_least(1)),
        ConfigKey("status.storage.partitions", INT, 5, "Partitions of the topic of states.", at_least(1)),
        ConfigKey("session.timeout.ms", INT, 10_000, "After this silence a worker counts as gone.", at_least(1)),
        ConfigKey("heartbeat.interval.ms", INT, 3000, "How often a worker tells the group it is there.", at_least(1)),
        ConfigKey("rebalance.timeout.ms", INT, 60_000, "How long a rebalance may take.", at_least(1)),
        ConfigKey(
            "scheduled.rebalance.max.delay.ms",
            INT,
            300_000,
            "How long the tasks of a lost worker wait for its return.",
            at_least(0),
        ),
        ConfigKey("worker.sync.timeout.ms", INT, 3000, "Accepted; workers always read to the end."),
        ConfigKey("worker.unsync.backoff.ms", INT, 300_000, "Accepted; workers always read to the end."),
        ConfigKey("connect.protocol", STRING, "sessioned", "Accepted; there is one protocol."),
        ConfigKey(
            "exactly.once.source.support",
            STRING,
            "enabled",
            "Accepted; distributed sources are always exactly once.",
            one_of("disabled", "preparing", "enabled"),
        ),
        ConfigKey("access.control.allow.origin", STRING, "", "Accepted."),
        ConfigKey("access.control.allow.methods", STRING, "", "Accepted."),
        ConfigKey("moldau.engine.dir", STRING, None, "The folder of an engine process that services share."),
        ConfigKey("moldau.connect.state.dir", STRING, None, "The folder of the engine process of this worker."),
        ConfigKey(
            "moldau.connect.engine",
            STRING,
            "spark",
            "Where tasks run: spark, or threads of the worker's process.",
            one_of("spark", "threads"),
        ),
        ConfigKey("moldau.connect.tasks.per.carrier", INT, 8, "Tasks that share one Spark task.", at_least(1)),
        ConfigKey(
            "moldau.connect.allowed.paths",
            LIST,
            None,
            "Folders that connectors may touch; * for all. All if only this machine can connect, otherwise none.",
        ),
        ConfigKey(
            "moldau.connect.allowed.hosts",
            LIST,
            None,
            "Hosts that connectors may connect to; * for all. All if only this machine can connect, otherwise none.",
        ),
        ConfigKey("moldau.init.timeout.ms", INT, 60_000, "How long starting may take.", at_least(1000)),
    ]
)

_DISTRIBUTED = ("group.id", "config.storage.topic", "offset.storage.topic", "status.storage.topic")


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """Validated settings; `values` has the value of every key of the worker by name."""

    values: Mapping[str, Any]
    given: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What the file said, as text."""
    is_standalone: bool = False
    warnings: tuple[str, ...] = ()

    @classmethod
    def of(cls, properties: Mapping[str, str], *, standalone: bool) -> WorkerSettings:
        """Settings by Kafka Connect's keys; raises `InvalidConfigError`, which names the keys that are wrong."""
        given = dict(properties)
        values = {name: key.parse(given[name]) if name in given else key.default for name, key in WORKER_KEYS.items()}
        needed = ("offset.storage.file.filename",) if standalone else _DISTRIBUTED
        missing = [name for name in needed if not values[name]]
        if missing:
            kind = "standalone" if standalone else "distributed"
            raise InvalidConfigError(f"a {kind} worker needs {', '.join(missing)}; add them to the worker's file")
        warnings = tuple(
            f"{name} is not a known setting"
            for name in given
            if name not in WORKER_KEYS and not name.startswith((*_PASSED_ON, *_SECURITY_PREFIXES, *_IGNORED_PREFIXES))
        )
        settings = cls(values, given, standalone, warnings)
        _ = settings.listener
        return settings

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    @property
    def listener(self) -> Listener:
        """The listener of the REST API; old files name its host and port apart."""
        found = Listener.choose(self.values["listeners"], default_port=DEFAULT_PORT)
        if "listeners" in self.given:
            return found
        host, port = self.values["rest.host.name"], self.values["rest.port"]
        return Listener("http", host or "127.0.0.1", found.port if port is None else port)

    @property
    def listener_tls(self) -> Mapping[str, str]:
        """The listener's `ssl.*` settings: those behind `listeners.https.` if there are any, as in Kafka Connect."""
        prefix = "listeners.https."
        own = {name.removeprefix(prefix): text for name, text in self.given.items() if name.startswith(prefix)}
        return own or self.given

    @property
    def is_open(self) -> bool:
        """Whether other machines can connect."""
        return self.listener.is_open

    def worker_id(self, port: int) -> str:
        """The name of this worker in statuses: the address by which others reach it."""
        host = self.values["rest.advertised.host.name"] or self.listener.host
        if host in ("", "0.0.0.0", "::"):
            host = socket.gethostname()
        return f"{host}:{self.values['rest.advertised.port'] or port}"

    @property
    def group_id(self) -> str:
        """The name of the cluster; a standalone worker has one of its own."""
        return str(self.values["group.id"] or "connect-standalone")

    @property
    def state_folder(self) -> Path:
        """The folder of this worker's engine; two workers on one machine differ by their ports."""
        default = Path.home() / ".local" / "share" / "moldau" / "connect"
        root = Path(self.values["moldau.connect.state.dir"] or default).expanduser()
        return root / f"{self.group_id}-{self.listener.port}"

    @property
    def security(self) -> Mapping[str, str]:
        """Security settings of the worker's own clients, by Java's names."""
        return {name: text for name, text in self.given.items() if name.startswith(_SECURITY_PREFIXES)}

    @property
    def spark(self) -> Mapping[str, str]:
        """Settings of Spark."""
        return {name: text for name, text in self.given.items() if name.startswith("spark.")}

    def client(self, kind: str) -> dict[str, str]:
        """The properties of the tasks' clients of a kind: producer, consumer or admin."""
        prefix = f"{kind}."
        own = {name.removeprefix(prefix): text for name, text in self.given.items() if name.startswith(prefix)}
        return {**self.security, **own}

    def allowed(self, what: str) -> tuple[str, ...]:
        """The paths or hosts that connectors may touch; `*` for all."""
        given = self.values[f"moldau.connect.allowed.{what}"]
        if given is not None:
            return tuple(given)
        return () if self.is_open else ("*",)
