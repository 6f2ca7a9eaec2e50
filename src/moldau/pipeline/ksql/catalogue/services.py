"""What the catalogue needs of the world: topics and a schema registry. Their owner provides them. Start at `Topics`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from moldau.formats.columns import Column
from moldau.formats.format import RowFormat

__all__ = ["Schemas", "Topics"]


class Topics(Protocol):
    """The topics of the cluster."""

    def partitions(self, topic: str) -> int | None:
        """The number of partitions of a topic; None if there is no such topic."""

    def create(self, topic: str, partitions: int, replicas: int, settings: Mapping[str, str]) -> None:
        """Create a topic with these settings."""

    def delete(self, topic: str) -> None:
        """Delete a topic."""


class Schemas(Protocol):
    """The schemas of topics in a registry; formats without a registry are left alone."""

    def inferred(self, topic: str, row_format: RowFormat) -> tuple[Column, ...]:
        """The columns that the registered schema of a topic's keys or values has."""

    def check(self, topic: str, row_format: RowFormat, columns: tuple[Column, ...]) -> None:
        """Raise if the schema that a statement names by its id cannot hold these columns."""

    def register_if_absent(self, topic: str, row_format: RowFormat, columns: tuple[Column, ...]) -> None:
        """Register the schema of these columns unless the topic has one."""

    def register(self, topic: str, row_format: RowFormat, columns: tuple[Column, ...]) -> None:
        """Register the schema of these columns, or the one that the statement names, as the newest of the topic."""
