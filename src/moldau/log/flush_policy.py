"""When a partition's log has to be put on disk without being asked: `flush.messages` and `flush.ms`.

Pure; the flusher thread asks and `PartitionLog.flush` does it. Start at `is_flush_due`.
"""

from __future__ import annotations

from moldau.log.config import LogConfig

__all__ = ["is_flush_due"]


def is_flush_due(config: LogConfig, *, unflushed_messages: int, ms_since_flush: int) -> bool:
    """Whether enough messages or enough time have gathered; nothing unflushed is never due."""
    if unflushed_messages <= 0:
        return False
    return unflushed_messages >= config.flush_messages or ms_since_flush >= config.flush_ms
