"""kafka-storage info: shows the state of a node's log directories. Start at `describe`."""

from __future__ import annotations

import os
from collections.abc import Sequence

from moldau.core.config import BrokerConfig
from moldau.core.errors import MoldauError
from moldau.core.ids import render_uuid
from moldau.log.directories.meta_properties import MetaProperties, load_meta_properties
from moldau.log.files import Files
from moldau.server.directories import all_directories

__all__ = ["describe"]


def describe(config: BrokerConfig) -> tuple[list[str], bool]:
    """The lines to print, and whether they include a problem."""
    present: list[str] = []
    found: dict[str, MetaProperties] = {}
    problems: list[str] = []
    for path in sorted(all_directories(config)):
        if not os.path.exists(path):
            problems.append(f"{path} does not exist")
        elif not os.path.isdir(path):
            problems.append(f"{path} is not a directory")
        else:
            present.append(path)
            problems += _look_into(path, found)
    lines = _list_entries("Found log director", ("y", "ies"), present)
    if found:
        lines += [f"Found metadata: {_text(next(iter(found.values())))}", ""]
    lines += _list_entries("Found problem", ("", "s"), problems)
    return lines, bool(problems)


def _look_into(path: str, found: dict[str, MetaProperties]) -> list[str]:
    """Add a directory's identity to `found`; returns the problems of the directory."""
    try:
        meta = load_meta_properties(Files(), path)
    except MoldauError as error:
        return [str(error)]
    if meta is None:
        return [f"{path} is not formatted."]
    first = next(iter(found.values()), meta)
    found[path] = meta
    if (meta.cluster_id, meta.node_id) != (first.cluster_id, first.node_id):
        return [f"Metadata for {path} was {_text(meta)}, but other directories featured {_text(first)}"]
    return []


def _text(meta: MetaProperties) -> str:
    directory = "" if meta.directory_id is None else f"directory.id={render_uuid(meta.directory_id)}, "
    return f"{{cluster.id={meta.cluster_id}, {directory}node.id={meta.node_id}, version=1}}"


def _list_entries(title: str, endings: tuple[str, str], entries: Sequence[str]) -> list[str]:
    if not entries:
        return []
    return [f"{title}{endings[len(entries) > 1]}:", *(f"  {entry}" for entry in entries), ""]
