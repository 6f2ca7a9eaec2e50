"""A broker's configuration: layers of settings, and the effective value of each key.

Layers, strongest first: dynamic for this broker, dynamic for the whole cluster, the file, the built-in
default. Within a layer the finer unit takes precedence (ms before minutes before hours). `server.config` reads files,
environment and overrides; `core.config.describe` reports a value's source for DescribeConfigs. Start at
`BrokerConfig`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, cast

from moldau.core.config.broker_keys import BROKER_KEYS, LISTENER_PREFIX, base_key, default_value, scale_units
from moldau.core.config.checks import check_together
from moldau.core.config.key import ConfigKey
from moldau.core.config.legacy import modernise_settings
from moldau.core.config.listeners import Listener, advertised_hosts_are_real, parse_listeners, parse_security_protocols
from moldau.core.config.sections import Section, read_section
from moldau.core.config.topic_keys import TOPIC_KEYS
from moldau.core.errors import InvalidConfigError

__all__ = ["BrokerConfig", "parse_topic_overrides"]


_NOTHING: Mapping[str, str] = MappingProxyType({})


class BrokerConfig:
    """Immutable: a dynamic change creates a new one with `with_dynamic`."""

    def __init__(
        self,
        static: Mapping[str, str] = _NOTHING,
        *,
        node_id: int | None = None,
        cluster_dynamic: Mapping[str, str] = _NOTHING,
        broker_dynamic: Mapping[str, str] = _NOTHING,
    ) -> None:
        """Check everything once; raises `InvalidConfigError` with one clear line."""
        settings, warnings = modernise_settings(static)
        if node_id is not None:
            settings.setdefault("node.id", str(node_id))
        self.static: Mapping[str, str] = settings
        self.cluster_dynamic = dict(cluster_dynamic)
        self.broker_dynamic = dict(broker_dynamic)
        self.warnings = warnings + [f"{name} is not a known setting" for name in settings if _is_unknown(name)]
        self._values: dict[str, Any] = {}
        self._sections: dict[type, Any] = {}
        for name, text in settings.items():
            key = base_key(name)
            if key is not None:
                key.parse(text)
        check_together(self)

    def with_dynamic(self, cluster: Mapping[str, str], broker: Mapping[str, str]) -> BrokerConfig:
        """The same file with other dynamic settings; the file is not checked again.

        An invalid dynamic value is ignored, since a stored one must never keep a broker from starting;
        `controller.decisions.configs` rejects it before it is stored.
        """
        changed = BrokerConfig.__new__(BrokerConfig)
        changed.static = self.static
        changed.cluster_dynamic = _readable(cluster)
        changed.broker_dynamic = _readable(broker)
        changed.warnings = self.warnings
        changed._values = {}
        changed._sections = {}
        return changed

    def value(self, name: str) -> Any:
        """The effective, typed value of a key; an unknown key is a `KeyError`."""
        try:
            return self._values[name]
        except KeyError:
            value = self._values[name] = self._resolve(BROKER_KEYS[name])
            return value

    def section(self, kind: type[Section]) -> Section:
        """The settings that a section names, typed; see `core.config.sections`."""
        found = self._sections.get(kind)
        if found is None:
            found = self._sections[kind] = read_section(kind, self.value)
        return cast("Section", found)

    def listener_value(self, listener: str, name: str) -> Any:
        """The value for one listener: `listener.name.<listener>.<name>` overrides the plain key."""
        prefixed = f"{LISTENER_PREFIX}{listener.lower()}.{name}"
        for layer in self._layers:
            if prefixed in layer:
                return BROKER_KEYS[name].parse(layer[prefixed])
        return self.value(name)

    def is_set(self, name: str) -> bool:
        """Whether any layer above the built-in defaults sets this key itself."""
        return any(name in layer for layer in self._layers)

    def topic_values(self, overrides: Mapping[str, str] = _NOTHING) -> dict[str, Any]:
        """The effective, typed configuration of a topic with these overrides, by topic key.

        Unknown or invalid overrides are ignored, like stored dynamic values.
        """
        values = {
            name: self.value(key.broker_key) if key.broker_key is not None else key.default
            for name, key in TOPIC_KEYS.items()
        }
        for name, text in overrides.items():
            topic_key = TOPIC_KEYS.get(name)
            if topic_key is not None:
                try:
                    values[name] = topic_key.parse(text)
                except InvalidConfigError:
                    continue
        return values

    @property
    def node_id(self) -> int:
        value: int = self.value("node.id")
        return value

    @property
    def is_in_cluster(self) -> bool:
        """Whether this broker follows a quorum of controllers, instead of being its own."""
        roles, voters = self.value("process.roles"), self.value("controller.quorum.voters")
        return "broker" in roles and ("controller" not in roles or len(voters) > 1)

    @property
    def is_generated_id_allowed(self) -> bool:
        """Whether a node without an id may be assigned one: a broker configured for ZooKeeper."""
        return self.value("process.roles") == ["broker"] and bool(self.value("broker.id.generation.enable"))

    @property
    def listeners(self) -> tuple[Listener, ...]:
        return parse_listeners("listeners", self.value("listeners"), ports_unique=True)

    @property
    def controller_listener_names(self) -> tuple[str, ...]:
        return tuple(name.upper() for name in self.value("controller.listener.names"))

    @property
    def advertised_listeners(self) -> tuple[Listener, ...]:
        """The listeners that clients see; controller listeners are not among them."""
        advertised = self.value("advertised.listeners")
        listeners = parse_listeners("advertised.listeners", advertised) if advertised else self.listeners
        listeners = tuple(one for one in listeners if one.name not in self.controller_listener_names)
        if advertised:
            advertised_hosts_are_real(listeners)
        return listeners

    @property
    def security_protocols(self) -> Mapping[str, str]:
        """Security protocol by listener name; unless the map is set, controller listeners are plaintext."""
        protocols = dict(parse_security_protocols(self.value("listener.security.protocol.map")))
        if not self.is_set("listener.security.protocol.map"):
            for name in self.controller_listener_names:
                protocols.setdefault(name, "PLAINTEXT")
        return protocols

    @property
    def _layers(self) -> tuple[Mapping[str, str], ...]:
        return self.broker_dynamic, self.cluster_dynamic, self.static

    def _resolve(self, key: ConfigKey) -> Any:
        for layer in self._layers:
            if key.name in layer:
                return key.parse(layer[key.name])
            for name, factor, _ in key.synonyms:
                if name in layer:
                    return scale_units(BROKER_KEYS[name].parse(layer[name]), factor)
        return default_value(key.name)


def parse_topic_overrides(overrides: Mapping[str, str | None], base: BrokerConfig) -> dict[str, Any]:
    """Parse a topic's own settings; raises `InvalidConfigError` for the first invalid one."""
    for name, text in overrides.items():
        key = TOPIC_KEYS.get(name)
        if key is None:
            raise InvalidConfigError(f"Unknown topic config name: {name}")
        if text is None:
            raise InvalidConfigError(f"Null value not supported for topic configs: {name}")
        key.parse(text)
    values = base.topic_values({name: text for name, text in overrides.items() if text is not None})
    lags = ("min.compaction.lag.ms", "max.compaction.lag.ms")
    if values[lags[0]] > values[lags[1]] and any(lag in overrides for lag in lags):
        raise InvalidConfigError(
            f"conflict: min.compaction.lag.ms ({values[lags[0]]}) is above max.compaction.lag.ms ({values[lags[1]]})"
        )
    return values


def _readable(settings: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in settings.items() if _can_be_read(name, text)}


def _can_be_read(name: str, text: str) -> bool:
    key = base_key(name)
    if key is None:
        return False
    try:
        key.parse(text)
    except InvalidConfigError:
        return False
    return True


def _is_unknown(name: str) -> bool:
    return base_key(name) is None and not name.startswith(("confluent.", "ksql.", "config.providers.", LISTENER_PREFIX))
