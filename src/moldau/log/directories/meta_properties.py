"""`meta.properties`: which cluster, node and directory a log directory belongs to.

Written once when the directory is formatted and checked at every start, so that a broker never mixes
directories of two clusters. Start at `load_meta_properties` and `check_agreement`.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from moldau.core.errors import StartupError
from moldau.core.ids import parse_uuid, random_uuid, render_uuid
from moldau.core.properties import parse_properties
from moldau.log.files import Files

__all__ = ["META_FILE", "MetaProperties", "check_agreement", "load_meta_properties", "save_meta_properties"]

META_FILE: Final = "meta.properties"


@dataclass(frozen=True, slots=True)
class MetaProperties:
    cluster_id: str
    node_id: int
    directory_id: uuid.UUID | None = None

    def render(self) -> str:
        directory_id = "" if self.directory_id is None else f"directory.id={render_uuid(self.directory_id)}\n"
        return f"#\nversion=1\ncluster.id={self.cluster_id}\nnode.id={self.node_id}\n{directory_id}"

    @classmethod
    def parse(cls, text: str) -> MetaProperties:
        """Parse the file's text; raises `ValueError` with the reason."""
        fields = parse_properties(text)
        version = fields.get("version", "0")
        if version != "1":
            advice = "a ZooKeeper-mode broker wrote it; run kafka-storage format" if version == "0" else "it is unknown"
            raise ValueError(f"version {version} cannot be used: {advice}")
        for key in ("cluster.id", "node.id"):
            if not fields.get(key):
                raise ValueError(f"{key} is missing")
        directory_id = fields.get("directory.id")
        return cls(fields["cluster.id"], int(fields["node.id"]), parse_uuid(directory_id) if directory_id else None)


def load_meta_properties(files: Files, directory: str) -> MetaProperties | None:
    """Load a directory's file; `None` if the directory is not formatted, `StartupError` if the file is unusable."""
    path = os.path.join(directory, META_FILE)
    try:
        return MetaProperties.parse(files.read_file(path).decode())
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise StartupError(f"{path}: {error}") from None
    except OSError as error:
        raise StartupError(f"{path}: {error.strerror}") from None


def save_meta_properties(
    files: Files, directory: str, cluster_id: str, node_id: int, directory_id: uuid.UUID | None = None
) -> MetaProperties:
    """Format a directory: create it if needed, and give it an id, by default a new one."""
    properties = MetaProperties(cluster_id, node_id, directory_id or random_uuid())
    files.make_directory(directory)
    files.atomic_write(os.path.join(directory, META_FILE), properties.render().encode())
    return properties


def check_agreement(by_directory: Mapping[str, MetaProperties], node_id: int) -> str:
    """Check that all directories belong to this node and to one cluster; return the cluster id."""
    cluster_ids = {properties.cluster_id: directory for directory, properties in by_directory.items()}
    if len(cluster_ids) > 1:
        facts = ", ".join(f"{directory} belongs to {cluster_id}" for cluster_id, directory in cluster_ids.items())
        raise StartupError(f"the log directories disagree on the cluster id: {facts}")
    for directory, properties in by_directory.items():
        if properties.node_id != node_id:
            path = os.path.join(directory, META_FILE)
            raise StartupError(f"{path}: node.id is {properties.node_id}, but the configuration says {node_id}")
    ids = [properties.directory_id for properties in by_directory.values() if properties.directory_id is not None]
    if len(set(ids)) != len(ids):
        raise StartupError("two log directories carry the same directory.id; one is a copy of the other")
    if not cluster_ids:
        raise StartupError("no log directory is formatted; run kafka-storage format")
    return next(iter(cluster_ids))
