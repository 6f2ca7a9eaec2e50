"""Configuration keys, by Kafka's names, and their effective values. Start at `BrokerConfig`."""

from __future__ import annotations

from moldau.core.config.broker_config import BrokerConfig, parse_topic_overrides
from moldau.core.config.broker_keys import BROKER_KEYS
from moldau.core.config.key import ConfigKey, ConfigType, Dynamic, TopicConfigKey
from moldau.core.config.listeners import Listener
from moldau.core.config.topic_keys import TOPIC_KEYS

__all__ = [
    "BROKER_KEYS",
    "TOPIC_KEYS",
    "BrokerConfig",
    "ConfigKey",
    "ConfigType",
    "Dynamic",
    "Listener",
    "TopicConfigKey",
    "parse_topic_overrides",
]
