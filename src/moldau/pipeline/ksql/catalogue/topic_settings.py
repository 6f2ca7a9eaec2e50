"""How the topic of a stream or table is kept, when a statement creates it. Start at `topic_settings`."""

from __future__ import annotations

from moldau.pipeline.ksql.catalogue.with_properties import WithProperties
from moldau.pipeline.ksql.errors import KsqlError

__all__ = ["topic_settings"]

WEEK_MS = 7 * 24 * 3_600_000
"""How long topics keep records where nobody says anything."""


def topic_settings(
    properties: WithProperties, *, is_table: bool, is_windowed: bool, window_retention_ms: int | None = None
) -> dict[str, str]:
    """The settings of a new topic: a stream's records expire, a table's rows stay, windows do both.

    `window_retention_ms` is how long a query's windows are kept, and so its topic at the least. Raises for a retention
    that the topic cannot have.
    """
    given = properties.number("RETENTION_MS")
    if given is not None and is_table and not is_windowed:
        raise KsqlError(
            "Invalid config variable in the WITH clause: RETENTION_MS. Non-windowed tables do not support retention."
        )
    if not is_table:
        return {"cleanup.policy": "delete"} | ({} if given is None else {"retention.ms": str(given)})
    if not is_windowed:
        return {"cleanup.policy": "compact"}
    if window_retention_ms is not None:
        given = max(WEEK_MS if given is None else given, window_retention_ms)
    return {"cleanup.policy": "compact,delete"} | ({} if given is None else {"retention.ms": str(given)})
