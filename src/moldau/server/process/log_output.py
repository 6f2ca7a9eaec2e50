"""Log formats: Kafka's text layout for people and scripts, or one JSON object per line for machines."""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import TextIO

__all__ = ["configure_logging"]

_LEVEL_NAMES = {"WARNING": "WARN", "CRITICAL": "FATAL"}


class KafkaTextFormatter(logging.Formatter):
    """Kafka's layout, as log scrapers expect it: `[2026-01-31 10:00:00,000] INFO message (moldau.log)`."""

    def format(self, record: logging.LogRecord) -> str:
        stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(record.created))
        level = _LEVEL_NAMES.get(record.levelname, record.levelname)
        line = f"[{stamp},{int(record.msecs):03d}] {level} {_on_one_line(record.getMessage())} ({record.name})"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def _on_one_line(message: str) -> str:
    """Escape unprintable characters: names chosen by clients must not forge a log line or move a terminal's cursor."""
    if message.isprintable():
        return message
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in message)


class JsonFormatter(logging.Formatter):
    """One JSON object per line. Fields passed as `extra={"fields": {...}}` are added beside the message."""

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, object] = {
            "timestamp_ms": int(record.created * 1000),
            "level": _LEVEL_NAMES.get(record.levelname, record.levelname),
            "logger": record.name,
            "message": record.getMessage(),
        }
        entry |= getattr(record, "fields", {})
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry, default=str)


def configure_logging(log_format: str = "text", level: str = "INFO", stream: TextIO | None = None) -> None:
    """Send everything under `moldau` to `stream` (default: standard output), replacing the previous configuration."""
    handler = logging.StreamHandler(stream or sys.stdout)
    handler.setFormatter(JsonFormatter() if log_format == "json" else KafkaTextFormatter())
    logger = logging.getLogger("moldau")
    logger.handlers[:] = [handler]
    logger.setLevel(level)
    logger.propagate = False
