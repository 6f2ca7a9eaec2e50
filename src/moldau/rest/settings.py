"""The settings of a REST proxy: the keys of kafka-rest.properties, each with a default. Start at `RestSettings.of`.

`producer.*`, `consumer.*`, `admin.*` and `client.*` are settings of the proxy's own clients.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from moldau.core.config.key import ConfigKey, ConfigType, at_least, between, keys_by_name
from moldau.core.errors import InvalidConfigError
from moldau.http.tls import Listener, is_tls_key

__all__ = ["DEFAULT_PORT", "REST_KEYS", "RestSettings"]

BOOLEAN, STRING, INT, LONG, LIST = (
    ConfigType.BOOLEAN,
    ConfigType.STRING,
    ConfigType.INT,
    ConfigType.LONG,
    ConfigType.LIST,
)
DEFAULT_PORT: Final = 8082
MIB: Final = 1024 * 1024

REST_KEYS = keys_by_name(
    [
        ConfigKey(
            "listeners",
            LIST,
            [f"http://0.0.0.0:{DEFAULT_PORT}"],
            "Where requests are taken: http://host:port or https://host:port.",
        ),
        ConfigKey("port", INT, DEFAULT_PORT, "The port of old files, used where listeners is not set.", at_least(0)),
        ConfigKey("bootstrap.servers", STRING, "localhost:9092", "The brokers that hold the topics."),
        ConfigKey("zookeeper.connect", STRING, None, "Read from old files; brokers are found by bootstrap.servers."),
        ConfigKey("schema.registry.url", STRING, "http://localhost:8081", "The registry of schema formats."),
        ConfigKey("schema.registry.basic.auth.user.info", STRING, None, "user:password for the registry."),
        ConfigKey("id", STRING, "", "Becomes part of generated instance names and of client ids."),
        ConfigKey("host.name", STRING, "", "The host in base_uri; the one that the client asked unless set."),
        ConfigKey("advertised.listeners", LIST, [], "The URL in base_uri; overrides host.name."),
        ConfigKey("consumer.request.timeout.ms", INT, 1000, "How long a read waits for records.", at_least(0)),
        ConfigKey("consumer.request.max.bytes", LONG, 64 * MIB, "Keys and values of one answer.", at_least(1)),
        ConfigKey("consumer.instance.timeout.ms", INT, 300_000, "When an unused instance is removed.", at_least(1)),
        ConfigKey("consumer.threads", INT, 50, "Reads that may wait at the same time.", at_least(1)),
        ConfigKey("fetch.min.bytes", INT, -1, "Bytes that end a read early; -1 never.", between(-1, 10_000_000)),
        ConfigKey("simpleconsumer.pool.size.max", INT, 25, "Reads of .../messages at the same time.", at_least(1)),
        ConfigKey("simpleconsumer.pool.timeout.ms", INT, 1000, "How long such a read waits for its turn.", at_least(0)),
        ConfigKey("api.v2.enable", BOOLEAN, True, "Whether versions 1 and 2 are served."),
        ConfigKey("api.v3.enable", BOOLEAN, True, "Whether version 3 is served."),
        ConfigKey("api.v3.produce.batch.maximum.entries", INT, 10, "Entries of one records:batch.", at_least(1)),
        ConfigKey(
            "streaming.connection.max.duration.ms", LONG, 86_400_000, "How long a produce stream may last.", at_least(1)
        ),
        ConfigKey("streaming.connection.max.duration.grace.period.ms", LONG, 500, "Until it is closed.", at_least(0)),
        ConfigKey("size.limit.filter.max.request.body.size", INT, 64 * MIB, "The largest body in bytes.", at_least(1)),
        ConfigKey("moldau.record.max.bytes", INT, MIB, "The largest JSON object in a produce stream.", at_least(1)),
        ConfigKey(
            "moldau.consumer.join.wait.ms", INT, 10_000, "How long a first read waits for its group.", at_least(0)
        ),
        ConfigKey("moldau.request.timeout.ms", INT, 30_000, "How long the brokers may take to answer.", at_least(100)),
    ]
)
_ACCEPTED = frozenset(
    {"debug", "kafka.rest.resource.extension.class", "response.mediatype.default", "metric.reporters"}
)
"""Keys of old files that have no effect here."""
_CLIENT_PREFIXES = ("client.", "producer.", "consumer.", "admin.", "simpleconsumer.")
_SECURITY = re.compile(r"^(ssl|sasl|security)\.")


@dataclass(frozen=True, slots=True)
class RestSettings:
    """Validated settings; `values` has the value of every key by name."""

    values: Mapping[str, Any]
    given: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @classmethod
    def of(cls, properties: Mapping[str, str] | None = None) -> RestSettings:
        """Settings by Confluent's keys; raises `InvalidConfigError`, which names the invalid key."""
        given = dict(properties or {})
        if "listeners" not in given and "port" in given:
            given["listeners"] = f"http://0.0.0.0:{given['port']}"
        if "bootstrap.servers" not in given and "client.bootstrap.servers" in given:
            given["bootstrap.servers"] = given["client.bootstrap.servers"]
        values = {name: key.parse(given[name]) if name in given else key.default for name, key in REST_KEYS.items()}
        settings = cls(values, given, tuple(_warnings(given)))
        _ = settings.listener, settings.advertised
        return settings

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    @property
    def tls(self) -> Mapping[str, str]:
        """Where the `ssl.*` settings of an https listener are."""
        return self.given

    @property
    def listener(self) -> Listener:
        return Listener.choose(self["listeners"], default_port=DEFAULT_PORT)

    @property
    def advertised(self) -> str | None:
        """The beginning of `base_uri`; `None` for the address that the client asked."""
        for text in self["advertised.listeners"]:
            parts = urlsplit(text)
            if parts.scheme in ("http", "https") and parts.hostname:
                return f"{parts.scheme}://{parts.netloc}"
            raise InvalidConfigError(f"advertised.listeners={text}: write http://host:port")
        return None

    def client_properties(self, kind: str) -> dict[str, str]:
        """Settings of a kind of client: `client.*` and security settings, then those of the kind itself.

        With an https listener `ssl.*` is about the listener, as at Confluent's proxy, and `client.ssl.*` about clients.
        """
        found = {name.removeprefix("client."): text for name, text in self.given.items() if name.startswith("client.")}
        is_https = self.listener.is_tls
        found |= {
            name: text
            for name, text in self.given.items()
            if _SECURITY.match(name) and not (is_https and is_tls_key(name))
        }
        own = f"{kind}."
        found |= {
            name.removeprefix(own): text
            for name, text in self.given.items()
            if name.startswith(own) and name not in REST_KEYS
        }
        found.pop("bootstrap.servers", None)
        return found

    @property
    def client_id(self) -> str:
        return f"rest-{self['id']}" if self["id"] else "rest"


def _warnings(given: Mapping[str, str]) -> list[str]:
    unknown = [
        name
        for name in given
        if name not in REST_KEYS
        and name not in _ACCEPTED
        and not name.startswith((*_CLIENT_PREFIXES, "schema.registry."))
        and not _SECURITY.match(name)
    ]
    return [f"{name} is not a known setting" for name in unknown]
