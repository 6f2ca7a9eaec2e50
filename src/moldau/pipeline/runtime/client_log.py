"""Where an application's Kafka clients report what they log: few lines, which `client.connection_log` has chosen."""

from __future__ import annotations

from moldau.client.given_properties import log_report

__all__ = ["report_client_log"]

_TOLD_BY_THE_APPLICATION = "Static consumer fenced by other consumer"
"""Another instance has taken the application's place in its group, which ends this one with a sentence of its own."""


def report_client_log(level: str, text: str) -> None:
    """Log a client's line, unless the application says the same."""
    if _TOLD_BY_THE_APPLICATION not in text:
        log_report(level, text)
