"""The log settings of each topic: topic overrides first, then the broker's dynamic settings, then the file.

Topics with the same overrides share one `LogConfig`; most have none. Start at `TopicConfigs`.

A broker-wide setting for schema id checks applies only to user topics. Topics whose names begin with an underscore
belong to services, such as the registry's own `_schemas`, and are checked only if their own config requires it.
"""

from __future__ import annotations

from moldau.controller.image import MetadataImage
from moldau.core.config import BrokerConfig
from moldau.log.config import LogConfig

__all__ = ["TopicConfigs"]

_UNCHECKED = {"confluent.key.schema.validation": "false", "confluent.value.schema.validation": "false"}


class TopicConfigs:
    """Returns the config of a topic by its name. The code that applies metadata updates `image` and `config`."""

    def __init__(self, config: BrokerConfig, image: MetadataImage) -> None:
        self.image = image
        self._config = config
        self._made: dict[tuple[bool, tuple[tuple[str, str], ...]], LogConfig] = {}

    @property
    def config(self) -> BrokerConfig:
        return self._config

    @config.setter
    def config(self, config: BrokerConfig) -> None:
        self._config = config
        self._made.clear()

    def __call__(self, topic: str) -> LogConfig:
        overrides = self.image.topic_config(topic)
        is_services = topic.startswith("_")
        key = is_services, tuple(sorted(overrides.items()))
        made = self._made.get(key)
        if made is None:
            made = self._made[key] = LogConfig.of(
                self._config.topic_values({**_UNCHECKED, **overrides} if is_services else overrides)
            )
        return made
