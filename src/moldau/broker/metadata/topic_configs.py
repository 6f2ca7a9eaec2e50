"""The log settings of each topic: its own, over the broker's dynamic ones, over the file.

Topics with the same overrides share one `LogConfig`; most have none. Start at `TopicConfigs`.

Schema ids are checked by a broker-wide setting only in topics of users. Those whose names begin with an underscore
belong to services, such as the registry's own `_schemas`, and carry no ids unless they say so themselves.
"""

from __future__ import annotations

from moldau.controller.image import MetadataImage
from moldau.core.config import BrokerConfig
from moldau.log.config import LogConfig

__all__ = ["TopicConfigs"]

_UNCHECKED = {"confluent.key.schema.validation": "false", "confluent.value.schema.validation": "false"}


class TopicConfigs:
    """Call it with a topic's name. Whoever applies metadata keeps `image` and `config` up to date."""

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
