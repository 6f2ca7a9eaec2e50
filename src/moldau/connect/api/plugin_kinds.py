"""Converters, transforms and predicates: the small plug-ins between connectors and topics.

Start at `Converter` and `Transformation`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import moldau
from moldau.connect.api.config_def import ConfigDef
from moldau.connect.api.records import ConnectRecord
from moldau.formats.registry.data_schema import DataSchema

__all__ = ["Converter", "HeaderConverter", "Predicate", "SchemaAndValue", "Transformation"]

SchemaAndValue = tuple[DataSchema | None, Any]


class _Plugin:
    plugin_name: ClassVar[str] = ""
    version: ClassVar[str] = moldau.__version__
    config_def: ClassVar[ConfigDef] = ConfigDef()

    def close(self) -> None:
        """Give back what `configure` took."""
        return


class Converter(_Plugin, ABC):
    """Data with schemas to and from the bytes of a topic's keys or values."""

    def configure(self, settings: Mapping[str, str], *, is_key: bool) -> None:
        """Take the settings, without the prefix `key.converter.` or `value.converter.`; raises `ConfigError`."""
        self.config_def.parse(settings)

    @abstractmethod
    def from_connect(self, topic: str, schema: DataSchema | None, value: Any) -> bytes | None:
        """The bytes of a value; raises `DataError`."""

    @abstractmethod
    def to_connect(self, topic: str, data: bytes | None) -> SchemaAndValue:
        """The value that bytes stand for; raises `DataError`."""


class HeaderConverter(_Plugin, ABC):
    """Headers to and from their bytes."""

    def configure(self, settings: Mapping[str, str]) -> None:
        """Take the settings, without the prefix `header.converter.`; raises `ConfigError`."""
        self.config_def.parse(settings)

    @abstractmethod
    def from_connect_header(self, topic: str, key: str, schema: DataSchema | None, value: Any) -> bytes | None:
        """The bytes of a header's value; raises `DataError`."""

    @abstractmethod
    def to_connect_header(self, topic: str, key: str, data: bytes | None) -> SchemaAndValue:
        """The value that a header's bytes stand for; raises `DataError`."""


class Transformation(_Plugin, ABC):
    """Changes or drops single records. It may keep caches, but has no say over other records."""

    def configure(self, settings: Mapping[str, str]) -> None:
        """Take the settings, without the prefix `transforms.<alias>.`; raises `ConfigError`."""
        self.config_def.parse(settings)

    @abstractmethod
    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        """The changed record, None to drop it; raises `DataError`."""

    def apply_batch(self, records: Sequence[ConnectRecord]) -> list[ConnectRecord | None]:
        """`apply` for several records; override it where a batch is cheaper."""
        apply = self.apply
        return [apply(record) for record in records]


class Predicate(_Plugin, ABC):
    """Decides whether a transform applies to a record."""

    def configure(self, settings: Mapping[str, str]) -> None:
        """Take the settings, without the prefix `predicates.<alias>.`; raises `ConfigError`."""
        self.config_def.parse(settings)

    @abstractmethod
    def test(self, record: ConnectRecord) -> bool:
        """Whether the record satisfies it."""
