"""The settings of an application that change what a task does. Keys are Kafka Streams'. Start at `TaskSettings`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from moldau.core.errors import InvalidConfigError
from moldau.pipeline.cores.handlers import (
    ExceptionHandler,
    deserialization_handler,
    log_and_fail,
    processing_handler,
)
from moldau.pipeline.cores.timestamps import Extractor, extractor_named

__all__ = ["TaskSettings"]

CACHE_KEYS = ("statestore.cache.max.bytes", "cache.max.bytes.buffering")
DEFAULT_CACHE_BYTES = 10 * 1024 * 1024
DESERIALIZATION_KEYS = ("deserialization.exception.handler", "default.deserialization.exception.handler")


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSettings:
    """The part of an application's configuration that a task needs."""

    application_id: str = "moldau"
    cache_max_bytes: int = DEFAULT_CACHE_BYTES
    """0 turns caching off: every change of a table is forwarded."""
    deserialization_handler: ExceptionHandler = log_and_fail
    processing_handler: ExceptionHandler = log_and_fail
    dead_letter_topic: str | None = None
    processing_log_topic: str | None = None
    """The topic for what single rows failed on; without one that is only counted."""
    timestamps: Extractor | None = None
    """The timestamp extractor of sources without their own; None takes the record's timestamp, which must be valid."""

    @property
    def is_caching(self) -> bool:
        """Whether stores may hold changes back until the next commit."""
        return self.cache_max_bytes > 0

    def internal_topic(self, name: str) -> str:
        """The full name of a topic that belongs to the application."""
        return f"{self.application_id}-{name}"

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> TaskSettings:
        """Read the settings from an application's configuration; other keys are ignored."""
        return cls(
            application_id=str(config.get("application.id", "moldau")),
            cache_max_bytes=_bytes(config),
            deserialization_handler=deserialization_handler(_first(config, DESERIALIZATION_KEYS, "fail")),
            processing_handler=processing_handler(config.get("processing.exception.handler", "fail")),
            dead_letter_topic=config.get("errors.dead.letter.queue.topic.name") or None,
            processing_log_topic=config.get("ksql.logging.processing.topic.name") or None,
            timestamps=extractor_named(config.get("default.timestamp.extractor")),
        )


def _first(config: Mapping[str, Any], keys: tuple[str, ...], default: Any) -> Any:
    return next((config[key] for key in keys if key in config), default)


def _bytes(config: Mapping[str, Any]) -> int:
    given = _first(config, CACHE_KEYS, DEFAULT_CACHE_BYTES)
    try:
        return int(given)
    except (TypeError, ValueError):
        raise InvalidConfigError(f"{CACHE_KEYS[0]}: {given!r} is not a number of bytes") from None
