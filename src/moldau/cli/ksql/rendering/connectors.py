"""DESCRIBE CONNECTOR as text. Start at `render_connector`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moldau.cli.ksql.rendering.descriptions import render_source
from moldau.cli.ksql.rendering.tables import first_line, label_line, table

__all__ = ["render_connector"]


def render_connector(document: Mapping[str, Any]) -> list[str]:
    """A connector with its tasks, the sources over its topics, and the topics."""
    status = document["status"]
    connector = status.get("connector") or {}
    lines = [
        label_line("Name", status.get("name")),
        label_line("Class", document["connectorClass"]),
        label_line("Type", status.get("type")),
        label_line("State", connector.get("state")),
        label_line("WorkerId", connector.get("worker_id")),
    ]
    if connector.get("trace"):
        lines.append(label_line("Trace", first_line(connector["trace"])))
    tasks = [[one["id"], one["state"], first_line(one.get("trace") or "")] for one in status.get("tasks") or ()]
    if tasks:
        lines += ["", *table(["Task ID", "State", "Error Trace"], tasks)]
    for source in document.get("sources") or ():
        lines += ["", *render_source(source)]
    topics = [[name] for name in document.get("topics") or ()]
    return lines + (["", *table(["Related Topics"], topics)] if topics else [])
