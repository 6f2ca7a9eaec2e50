"""A node's log directories: who they belong to, and formatting those that belong to nobody yet.

Start at `adopt`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from moldau.core.config import BrokerConfig
from moldau.core.errors import StartupError
from moldau.core.ids import random_uuid, render_uuid
from moldau.log.directories.meta_properties import (
    MetaProperties,
    check_agreement,
    load_meta_properties,
    save_meta_properties,
)
from moldau.log.files import Files

__all__ = ["adopt", "log_directories", "metadata_directory", "node_id_for"]


def log_directories(config: BrokerConfig) -> list[str]:
    return [os.path.abspath(path) for path in config.value("log.dirs") or [config.value("log.dir")]]


def metadata_directory(config: BrokerConfig) -> str:
    """Where the metadata log lies: `metadata.log.dir`, or the first log directory."""
    chosen: str | None = config.value("metadata.log.dir")
    return os.path.abspath(chosen) if chosen else log_directories(config)[0]


def node_id_for(config: BrokerConfig, files: Files | None = None) -> int:
    """The number of a node whose file gives none: the one its directories have, or the first above the reserved ones.

    Only files of ZooKeeper's time may leave it out (`broker.id.generation.enable`).
    """
    if not config.is_generated_id_allowed:
        raise StartupError("node.id is missing; each node of a cluster has a number of its own, for example node.id=1")
    for path in log_directories(config):
        known = load_meta_properties(files or Files(), path)
        if known is not None:
            return known.node_id
    first: int = config.value("reserved.broker.max.id") + 1
    return first


def adopt(
    files: Files, directories: Sequence[str], node_id: int, *, may_format: bool, cluster_id: str | None = None
) -> dict[str, MetaProperties]:
    """Load each directory's identity, formatting new ones where allowed; all must be of one node and cluster.

    A node whose directories are all new takes `cluster_id`, or a new one.
    """
    known = {path: load_meta_properties(files, path) for path in directories}
    formatted = {path: meta for path, meta in known.items() if meta is not None}
    missing = [path for path in directories if path not in formatted]
    if missing and not formatted and not may_format:
        raise StartupError(
            f"{missing[0]} is not formatted; run kafka-storage format -t $(kafka-storage random-uuid) -c <file>, "
            "or set moldau.auto.format=true"
        )
    if formatted:
        cluster_id = check_agreement(formatted, node_id)
    cluster_id = cluster_id or render_uuid(random_uuid())
    for path in missing:
        try:
            formatted[path] = save_meta_properties(files, path, cluster_id, node_id)
        except OSError as error:
            raise StartupError(f"cannot format {path}: {error.strerror}") from None
    return formatted
