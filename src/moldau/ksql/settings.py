"""The settings of a ksql server: ksqlDB's keys, each with a default and a description. Start at `KsqlSettings.of`.

Keys without an effect here are accepted where files of ksqlDB have them. `ksql.streams.*` are settings of all queries
of the server, which a session may override; `QUERY_PROPERTIES` says which.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from moldau.core.config.key import ConfigKey, ConfigType, at_least, keys_by_name
from moldau.http.tls import Listener

__all__ = ["KSQL_KEYS", "STREAMS_PREFIX", "KsqlSettings", "is_query_property", "plain_property_name"]

BOOLEAN, STRING, INT, LONG, LIST = (
    ConfigType.BOOLEAN,
    ConfigType.STRING,
    ConfigType.INT,
    ConfigType.LONG,
    ConfigType.LIST,
)
DEFAULT_PORT: Final = 8088
STREAMS_PREFIX: Final = "ksql.streams."
_CLIENT_PREFIXES = ("ssl.", "sasl.", "security.")

KSQL_KEYS = keys_by_name(
    [
        ConfigKey(
            "listeners", LIST, [f"http://0.0.0.0:{DEFAULT_PORT}"], "Where requests are taken: http(s)://host:port."
        ),
        ConfigKey("bootstrap.servers", STRING, "localhost:9092", "The brokers that hold the topics."),
        ConfigKey("ksql.service.id", STRING, "default_", "Servers with the same id share their statements."),
        ConfigKey("ksql.advertised.listener", STRING, None, "The URL by which other servers reach this one."),
        ConfigKey("ksql.schema.registry.url", STRING, None, "The schema registry of AVRO, PROTOBUF and JSON_SR."),
        ConfigKey("ksql.connect.url", STRING, "http://localhost:8083", "The Connect worker of CREATE CONNECTOR."),
        ConfigKey("ksql.queries.file", STRING, None, "A file of statements: the server then runs only these."),
        ConfigKey("moldau.engine.dir", STRING, None, "The folder of an engine process that services share."),
        ConfigKey("ksql.extension.dir", STRING, "ext", "The folder of modules with user-defined functions."),
        ConfigKey("ksql.output.topic.name.prefix", STRING, "", "Goes before the names of topics that queries make."),
        ConfigKey("ksql.internal.topic.replicas", INT, 1, "Replicas of the command topic.", at_least(1)),
        ConfigKey("ksql.persistence.default.format.key", STRING, "KAFKA", "The format of keys where none is given."),
        ConfigKey("ksql.persistence.default.format.value", STRING, None, "The format of values where none is given."),
        ConfigKey("ksql.persistence.wrap.single.values", BOOLEAN, True, "Whether a single value column is wrapped."),
        ConfigKey("ksql.variable.substitution.enable", BOOLEAN, True, "Whether ${name} is replaced in statements."),
        ConfigKey("ksql.insert.into.values.enabled", BOOLEAN, True, "Whether INSERT VALUES is allowed."),
        ConfigKey("ksql.query.pull.enable", BOOLEAN, True, "Whether pull queries are allowed."),
        ConfigKey("ksql.query.pull.stream.enabled", BOOLEAN, True, "Whether pull queries may read streams."),
        ConfigKey("ksql.query.pull.limit.clause.enabled", BOOLEAN, True, "Whether pull queries may have a LIMIT."),
        ConfigKey("ksql.query.pull.range.scan.enabled", BOOLEAN, True, "Whether pull queries may scan key ranges."),
        ConfigKey("ksql.query.pull.table.scan.enabled", BOOLEAN, True, "Whether pull queries may scan tables."),
        ConfigKey("ksql.max.push.queries", INT, 100, "Push queries that may run at the same time.", at_least(0)),
        ConfigKey("ksql.timestamp.throw.on.invalid", BOOLEAN, False, "Whether a bad timestamp ends its query."),
        ConfigKey("ksql.fail.on.deserialization.error", BOOLEAN, False, "Whether an unreadable record ends its query."),
        ConfigKey("ksql.functions.collect_list.limit", INT, 2**31 - 1, "The longest result of COLLECT_LIST."),
        ConfigKey("ksql.functions.collect_set.limit", INT, 2**31 - 1, "The longest result of COLLECT_SET."),
        ConfigKey("ksql.logging.processing.topic.auto.create", BOOLEAN, True, "Whether to make the log's topic."),
        ConfigKey("ksql.logging.processing.stream.auto.create", BOOLEAN, True, "Whether to make the log's stream."),
        ConfigKey("ksql.logging.processing.topic.name", STRING, None, "The topic of the processing log."),
        ConfigKey("ksql.logging.processing.stream.name", STRING, "KSQL_PROCESSING_LOG", "The stream of that topic."),
        ConfigKey("ksql.heartbeat.enable", BOOLEAN, False, "Whether /clusterStatus shows the other servers."),
        ConfigKey("ksql.server.command.response.timeout.ms", LONG, 5000, "How long a command may wait.", at_least(1)),
        ConfigKey("authentication.method", STRING, "NONE", "BASIC asks for a name and password."),
        ConfigKey("authentication.realm", STRING, "moldau", "What clients are told that they log in to."),
        ConfigKey("authentication.roles", LIST, ["*"], "Users need one of these roles; * is any."),
        ConfigKey("moldau.users.file", STRING, None, "The users: a line `name: password, role` each."),
        ConfigKey("moldau.init.timeout.ms", INT, 60_000, "How long starting may take.", at_least(1000)),
    ]
)

_SESSION_KEYS = frozenset(
    {
        "ksql.query.pull.limit.clause.enabled",
        "ksql.query.pull.range.scan.enabled",
        "ksql.query.pull.table.scan.enabled",
        "ksql.query.pull.stream.enabled",
        "ksql.persistence.default.format.key",
        "ksql.persistence.default.format.value",
        "ksql.persistence.wrap.single.values",
        "ksql.output.topic.name.prefix",
        "ksql.variable.substitution.enable",
        "ksql.timestamp.throw.on.invalid",
        "ksql.functions.collect_list.limit",
        "ksql.functions.collect_set.limit",
    }
)
"""Keys of the server that a session may override."""

QUERY_PROPERTIES = frozenset(
    {
        "auto.offset.reset",
        "processing.guarantee",
        "commit.interval.ms",
        "cache.max.bytes.buffering",
        "statestore.cache.max.bytes",
        "num.stream.threads",
        "max.poll.records",
        "max.task.idle.ms",
        "default.timestamp.extractor",
        "topology.optimization",
        "moldau.latency",
        "moldau.batch.max.records",
    }
)
"""Settings of queries, without the prefix `ksql.streams.` that they may carry."""


def plain_property_name(name: str) -> str:
    """The name of a property without the prefix that queries' settings may carry."""
    return name.removeprefix(STREAMS_PREFIX)


def is_query_property(name: str) -> bool:
    """Whether a session may SET this property."""
    plain = plain_property_name(name)
    return (
        name in _SESSION_KEYS
        or plain in QUERY_PROPERTIES
        or plain.startswith(("consumer.", "producer.", "spark.", "__"))
        or name.startswith("ksql.functions.")
        or name == "ksql.new.query.planner.enabled"
    )


@dataclass(frozen=True, slots=True)
class KsqlSettings:
    """Validated settings; `values` has the value of every key of the server by name."""

    values: Mapping[str, Any]
    query_defaults: Mapping[str, str] = field(default_factory=dict)
    """Settings of all queries, by their names without prefix."""
    client_properties: Mapping[str, str] = field(default_factory=dict)
    """Security settings of the server's clients, by Java's names."""
    given: Mapping[str, str] = field(default_factory=dict)
    """What the file said, as text."""
    warnings: tuple[str, ...] = ()

    @classmethod
    def of(cls, properties: Mapping[str, str] | None = None) -> KsqlSettings:
        """Settings by ksqlDB's keys; raises `InvalidConfigError`, which names the invalid key."""
        given = dict(properties or {})
        values = {name: key.parse(given[name]) if name in given else key.default for name, key in KSQL_KEYS.items()}
        defaults = {
            plain_property_name(name): text
            for name, text in given.items()
            if name.startswith(STREAMS_PREFIX) or plain_property_name(name) in QUERY_PROPERTIES
        }
        client = {name: text for name, text in given.items() if name.startswith(_CLIENT_PREFIXES)}
        if "SSL" not in given.get("security.protocol", "").upper():  # they are the listener's alone
            client = {name: text for name, text in client.items() if not name.startswith("ssl.")}
        warnings = tuple(
            f"{name} is not a known setting"
            for name in given
            if name not in KSQL_KEYS
            and plain_property_name(name) not in defaults
            and not name.startswith(_CLIENT_PREFIXES)
            and not name.startswith("ksql.")
        )
        settings = cls(values, defaults, client, given, warnings)
        _ = settings.listener
        return settings

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    @property
    def tls(self) -> Mapping[str, str]:
        """Where the `ssl.*` settings of an https listener are."""
        return self.given

    @property
    def listener(self) -> Listener:
        """The first listener."""
        return Listener.parse(self.values["listeners"][0], default_port=DEFAULT_PORT)

    @property
    def statement_settings(self) -> dict[str, object]:
        """The settings that the meaning of statements depends on."""
        return {name: value for name, value in self.values.items() if name.startswith("ksql.") and value is not None}

    @property
    def service_id(self) -> str:
        return str(self.values["ksql.service.id"])

    @property
    def command_topic(self) -> str:
        """The topic that holds the statements of all servers with this service id."""
        return f"_confluent-ksql-{self.service_id}_command_topic"

    @property
    def query_prefix(self) -> str:
        """Goes before the names of queries' groups, transactional ids and internal topics."""
        return f"_confluent-ksql-{self.service_id}query_"

    @property
    def state_folder(self) -> Path:
        """The folder of the queries, which servers with this service id share."""
        default = Path.home() / ".local" / "share" / "moldau" / "ksql"
        return Path(self.query_defaults.get("state.dir") or default).expanduser() / self.service_id

    @property
    def processing_log_topic(self) -> str:
        """The topic of the processing log."""
        return str(self.values["ksql.logging.processing.topic.name"] or f"{self.service_id}ksql_processing_log")

    def host_name_at(self, port: int) -> str:
        """The name of this server in its documents, where it listens on this port."""
        advertised = self.values["ksql.advertised.listener"]
        if advertised:
            return str(urlsplit(advertised).netloc)
        host = self.listener.host
        return f"{socket.gethostname() if host in ('', '0.0.0.0', '::') else host}:{port}"

    @property
    def sharing_group(self) -> str:
        """The group of the servers with this service id."""
        return f"_confluent-ksql-{self.service_id}servers"

    @property
    def server_folder(self) -> Path:
        """The folder of this server alone, within that of its service id, which servers may share."""
        return self.state_folder / f"server-{re.sub(r'[^A-Za-z0-9.-]', '_', self.host_name)}"

    @property
    def extension_folder(self) -> Path:
        """The folder of modules with functions of users."""
        return Path(self.values["ksql.extension.dir"]).expanduser().absolute()

    @property
    def host_name(self) -> str:
        """The name of this server in its documents."""
        return self.host_name_at(self.listener.port)
