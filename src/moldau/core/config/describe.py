"""The entries of DescribeConfigs: values with their sources and synonyms, in Kafka's order.

Synonyms are listed by precedence: the topic's own value, then for each layer of the broker every
synonym that is set there. Start at `topic_entries` and `broker_entries`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from itertools import dropwhile
from typing import NamedTuple

from moldau.core.config.broker_config import BrokerConfig
from moldau.core.config.broker_keys import BROKER_KEYS, LISTENER_PREFIX, base_key
from moldau.core.config.group_keys import GROUP_KEYS, group_values
from moldau.core.config.key import ConfigKey, ConfigType, render_value
from moldau.core.config.topic_keys import TOPIC_KEYS

__all__ = [
    "ConfigEntry",
    "ConfigSource",
    "ConfigSynonym",
    "broker_entries",
    "cluster_default_entries",
    "group_entries",
    "topic_entries",
]


class ConfigSource(IntEnum):
    """Who set a value, by the numbers DescribeConfigs sends."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class ConfigSynonym(NamedTuple):
    name: str
    value: str | None
    source: ConfigSource


class ConfigEntry(NamedTuple):
    name: str
    value: str | None
    source: ConfigSource
    is_read_only: bool
    is_sensitive: bool
    type: ConfigType
    doc: str
    synonyms: tuple[ConfigSynonym, ...]

    @property
    def is_default(self) -> bool:
        return self.source is ConfigSource.DEFAULT


def topic_entries(config: BrokerConfig, overrides: Mapping[str, str]) -> list[ConfigEntry]:
    """Every setting of a topic with these overrides, by name."""
    values = config.topic_values(overrides)
    return [_topic_entry(name, values, overrides, config) for name in sorted(TOPIC_KEYS)]


def broker_entries(config: BrokerConfig) -> list[ConfigEntry]:
    """Every setting of this broker, by name, including unknown keys of its file."""
    names = {name for name, key in BROKER_KEYS.items() if not key.is_hidden}
    for layer in (config.static, config.cluster_dynamic, config.broker_dynamic):
        names.update(layer)
    return [_broker_entry(name, config) for name in sorted(names)]


def cluster_default_entries(config: BrokerConfig) -> list[ConfigEntry]:
    """What was set dynamically for all brokers, by name."""
    only = ConfigSource.DYNAMIC_DEFAULT_BROKER
    return [_broker_entry(name, config, only) for name in sorted(config.cluster_dynamic)]


def group_entries(config: BrokerConfig, overrides: Mapping[str, str]) -> list[ConfigEntry]:
    """Every setting of a consumer group with these overrides, by name; the broker's keys are not listed as synonyms."""
    values = group_values(overrides, config)
    return [_group_entry(name, render_value(values[name]), name in overrides) for name in sorted(GROUP_KEYS)]


def _group_entry(name: str, value: str | None, is_own: bool) -> ConfigEntry:
    key = GROUP_KEYS[name]
    source = ConfigSource.GROUP if is_own else ConfigSource.DEFAULT
    synonyms = (ConfigSynonym(name, value, source),) if is_own else ()
    return ConfigEntry(name, value, source, False, False, key.type, key.doc, synonyms)


def _topic_entry(
    name: str, values: Mapping[str, object], overrides: Mapping[str, str], config: BrokerConfig
) -> ConfigEntry:
    key = TOPIC_KEYS[name]
    value = render_value(values[name])
    synonyms = _synonyms(BROKER_KEYS[key.broker_key], config) if key.broker_key is not None else []
    if name in overrides:
        synonyms.insert(0, ConfigSynonym(name, value, ConfigSource.TOPIC))
    source = synonyms[0].source if synonyms else ConfigSource.DEFAULT
    return ConfigEntry(name, value, source, False, False, key.type, key.doc, tuple(synonyms))


def _broker_entry(name: str, config: BrokerConfig, only: ConfigSource | None = None) -> ConfigEntry:
    key = base_key(name)
    if key is None:
        # An unknown key may hold a secret, so its value stays hidden.
        return ConfigEntry(name, None, ConfigSource.STATIC_BROKER, True, True, ConfigType.UNKNOWN, "", ())
    synonyms = [one for one in _synonyms(key, config, name) if only is None or one.source is only]
    source = synonyms[0].source if synonyms else ConfigSource.DEFAULT
    if only is not None:
        value = synonyms[0].value
    else:
        value = synonyms[0].value if synonyms and synonyms[0].name == name else _own_default(key)
    return ConfigEntry(name, value, source, not key.is_dynamic, key.is_sensitive, key.type, key.doc, tuple(synonyms))


def _own_default(key: ConfigKey) -> str | None:
    return None if key.is_sensitive else render_value(key.default)


def _synonyms(key: ConfigKey, config: BrokerConfig, name: str | None = None) -> list[ConfigSynonym]:
    """Every layer's value of `name` or one of its synonyms, from the first layer that sets it."""
    name = name or key.name
    names = [name, *(synonym.name for synonym in key.synonyms if synonym.is_told)]
    if name.startswith(LISTENER_PREFIX):
        names.append(key.name)
    layers = (
        (config.broker_dynamic, ConfigSource.DYNAMIC_BROKER),
        (config.cluster_dynamic, ConfigSource.DYNAMIC_DEFAULT_BROKER),
        (config.static, ConfigSource.STATIC_BROKER),
    )
    found = [
        ConfigSynonym(spelling, None if key.is_sensitive else layer[spelling], source)
        for layer, source in layers
        for spelling in names
        if spelling in layer
    ]
    found += [
        ConfigSynonym(
            spelling, None if key.is_sensitive else render_value(BROKER_KEYS[spelling].default), ConfigSource.DEFAULT
        )
        for spelling in names
        if spelling in BROKER_KEYS and BROKER_KEYS[spelling].default is not None
    ]
    return list(dropwhile(lambda synonym: synonym.name != name, found))
