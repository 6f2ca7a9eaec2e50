"""The registry's settings: Confluent's keys, each with a default and a description. Start at `RegistrySettings.of`."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from moldau.core.config.key import ConfigKey, ConfigType, at_least, keys_by_name, one_of
from moldau.core.errors import InvalidConfigError
from moldau.http.tls import Listener, is_tls_key
from moldau.registry.scopes import LEVELS

__all__ = ["REGISTRY_KEYS", "Dialect", "RegistrySettings"]

BOOLEAN, STRING, INT, LIST = ConfigType.BOOLEAN, ConfigType.STRING, ConfigType.INT, ConfigType.LIST
DEFAULT_PORT = 8081


class Dialect(StrEnum):
    """The format of responses: that of Confluent's registry up to 7.9, or since 8.0."""

    V7 = "7.x"
    V8 = "8.x"


REGISTRY_KEYS = keys_by_name(
    [
        ConfigKey(
            "listeners",
            LIST,
            ["http://0.0.0.0:8081"],
            "Where requests are taken: http://host:port or https://host:port.",
        ),
        ConfigKey("host.name", STRING, None, "The name by which other registries reach this one."),
        ConfigKey("kafkastore.bootstrap.servers", STRING, "localhost:9092", "The brokers that hold the schemas."),
        ConfigKey("kafkastore.topic", STRING, "_schemas", "The compacted topic that holds them."),
        ConfigKey(
            "kafkastore.topic.replication.factor", INT, 3, "Its replicas; fewer where fewer brokers are.", at_least(1)
        ),
        ConfigKey("kafkastore.timeout.ms", INT, 5000, "How long one write or read-back may take.", at_least(100)),
        ConfigKey("kafkastore.init.timeout.ms", INT, 60_000, "How long starting may take.", at_least(1000)),
        ConfigKey(
            "kafkastore.write.max.retries",
            INT,
            5,
            "Kept for existing files: the client retries by itself.",
            at_least(0),
        ),
        ConfigKey(
            "schema.registry.group.id", STRING, "schema-registry", "The group in which registries elect a leader."
        ),
        ConfigKey(
            "kafkagroup.session.timeout.ms", INT, 10_000, "Silence after which a leader is replaced.", at_least(100)
        ),
        ConfigKey("kafkagroup.heartbeat.interval.ms", INT, 3000, "How often members report.", at_least(10)),
        ConfigKey("leader.eligibility", BOOLEAN, True, "Whether this instance may become the leader."),
        ConfigKey("leader.connect.timeout.ms", INT, 10_000, "How long connecting to the leader may take.", at_least(1)),
        ConfigKey("leader.read.timeout.ms", INT, 10_000, "How long the leader may take to answer.", at_least(1)),
        ConfigKey("inter.instance.protocol", STRING, "http", "Kept: the listener says it.", one_of("http", "https")),
        ConfigKey("inter.instance.headers.whitelist", LIST, [], "Headers that are handed on to the leader."),
        ConfigKey("schema.compatibility.level", STRING, "backward", "The level where none is configured."),
        ConfigKey("mode.mutability", BOOLEAN, True, "Whether modes may be changed."),
        ConfigKey("schema.validate.fields", BOOLEAN, False, "Whether field names are checked by default."),
        ConfigKey("schema.validate.new.schemas", BOOLEAN, True, "Whether defaults of new schemas are checked."),
        ConfigKey("schema.reject.empty.subject", BOOLEAN, False, "Whether a subject without a name is refused."),
        ConfigKey(
            "schema.search.default.limit", INT, 1000, "Schemas listed at once unless asked otherwise.", at_least(1)
        ),
        ConfigKey("schema.search.max.limit", INT, 1000, "The most schemas listed at once.", at_least(1)),
        ConfigKey("schema.cache.size", INT, 2000, "Parsed schemas that are kept.", at_least(1)),
        ConfigKey(
            "size.limit.filter.max.request.body.size", INT, 33_554_432, "The largest body in bytes.", at_least(1)
        ),
        ConfigKey("moldau.registry.dialect", STRING, "8.x", "How answers look.", one_of("7.x", "8.x")),
    ]
)
_OLD_NAMES = {
    "avro.compatibility.level": "schema.compatibility.level",
    "master.eligibility": "leader.eligibility",
    "schema.registry.inter.instance.protocol": "inter.instance.protocol",
}
_STORE_PREFIX = "kafkastore."
_CLIENT_PREFIXES = ("ssl.", "sasl.", "security.")


@dataclass(frozen=True, slots=True)
class RegistrySettings:
    """Validated settings; `values` has the value of every key by name."""

    values: Mapping[str, Any]
    client_properties: Mapping[str, str] = field(default_factory=dict)
    """Properties of the registry's own producer and consumer, by their Java names."""
    tls: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The `ssl.*` settings of an https listener."""
    warnings: tuple[str, ...] = ()

    @classmethod
    def of(cls, properties: Mapping[str, str] | None = None) -> RegistrySettings:
        """Settings from Confluent's keys; raises `InvalidConfigError`, which names the invalid key."""
        given = {_OLD_NAMES.get(name, name): text for name, text in (properties or {}).items()}
        values = {name: key.parse(given[name]) if name in given else key.default for name, key in REGISTRY_KEYS.items()}
        client = {
            name.removeprefix(_STORE_PREFIX): text
            for name, text in given.items()
            if name.removeprefix(_STORE_PREFIX).startswith(_CLIENT_PREFIXES) and name.startswith(_STORE_PREFIX)
        }
        tls = {name: text for name, text in given.items() if is_tls_key(name)}
        known = REGISTRY_KEYS.keys() | {f"{_STORE_PREFIX}{name}" for name in client} | tls.keys()
        warnings = tuple(f"{name} is not a known setting" for name in given if name not in known)
        settings = cls(values, client, tls, warnings)
        settings._check()
        return settings

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    @property
    def listener(self) -> Listener:
        return Listener.choose(self["listeners"], default_port=DEFAULT_PORT)

    @property
    def host_name(self) -> str:
        """The host name other instances connect to; never a wildcard address, which would be their own machine."""
        host = self["host.name"] or self.listener.host
        return socket.gethostname() if host in ("", "0.0.0.0", "::") else host

    @property
    def default_level(self) -> str:
        level: str = self["schema.compatibility.level"].upper()
        return level

    @property
    def config_defaults(self) -> Mapping[str, Any]:
        """The config that applies where none is set."""
        validated = {"validateFields": True} if self["schema.validate.fields"] else {}
        return {"compatibilityLevel": self.default_level, **validated}

    @property
    def dialect(self) -> Dialect:
        return Dialect(self["moldau.registry.dialect"])

    def _check(self) -> None:
        if self.default_level not in LEVELS:
            allowed = ", ".join(level.lower() for level in LEVELS)
            text = self["schema.compatibility.level"]
            raise InvalidConfigError(f"schema.compatibility.level={text}: use one of {allowed}")
        session, heartbeat = self["kafkagroup.session.timeout.ms"], self["kafkagroup.heartbeat.interval.ms"]
        if heartbeat >= session:
            raise InvalidConfigError(
                f"kafkagroup.heartbeat.interval.ms={heartbeat} must be below kafkagroup.session.timeout.ms={session}"
            )
        _ = self.listener
