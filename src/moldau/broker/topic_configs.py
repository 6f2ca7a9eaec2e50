"""The log settings of each topic: its own, over the broker's dynamic ones, over the file.

Topics with the same overrides share one `LogConfig`; most have none. Start at `TopicConfigs`.
"""

from __future__ import annotations

from moldau.controller.image import MetadataImage
from moldau.core.config import BrokerConfig
from moldau.log.config import LogConfig

__all__ = ["TopicConfigs"]


class TopicConfigs:
    """Call it with a topic's name. Whoever applies metadata keeps `image` and `config` up to date."""

    def __init__(self, config: BrokerConfig, image: MetadataImage) -> None:
        self.image = image
        self._config = config
        self._made: dict[tuple[tuple[str, str], ...], LogConfig] = {}

    @property
    def config(self) -> BrokerConfig:
        return self._config

    @config.setter
    def config(self, config: BrokerConfig) -> None:
        self._config = config
        self._made.clear()

    def __call__(self, topic: str) -> LogConfig:
        overrides = self.image.topic_config(topic)
        key = tuple(sorted(overrides.items()))
        made = self._made.get(key)
        if made is None:
            made = self._made[key] = LogConfig.of(self._config.topic_values(overrides))
        return made
