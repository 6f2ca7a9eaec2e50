"""Rows as a serde: what pipelines, sources and sinks are given, and what is shipped to other processes.

A `RowSerde` is a description: the format with its options, and the columns. It compares by value, pickles, and makes
its codec on first use in each process and for each topic. Start at `RowSerde`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from moldau.core.errors import InvalidConfigError
from moldau.formats.codec import RowCodec, codec
from moldau.formats.columns import Column
from moldau.formats.format import RowFormat
from moldau.formats.types import Row
from moldau.serdes.schema_source import ConnectSchemas, SchemaSource
from moldau.serdes.serde import Headers, Part

__all__ = ["RegistryAddress", "RowSerde"]


@dataclass(frozen=True, slots=True)
class RegistryAddress:
    """Where the schemas of registry formats are, and how to get there from any process."""

    connect: ConnectSchemas
    url: str
    user_info: str | None = None

    def source(self) -> SchemaSource:
        return self.connect(self.url, self.user_info)


@dataclass(frozen=True, slots=True)
class RowSerde:
    """Rows of some columns as the keys or the values of topics."""

    uses_headers: ClassVar[bool] = False

    row_format: RowFormat
    columns: tuple[Column, ...]
    registry: RegistryAddress | None = None
    _codecs: dict[str, RowCodec] = field(default_factory=dict, init=False, repr=False, compare=False, hash=False)

    def codec(self, topic: str = "") -> RowCodec:
        """The codec for a topic; formats without a registry have the same one for all topics."""
        name = topic if self.row_format.format.uses_registry else ""
        found = self._codecs.get(name)
        if found is None:
            found = self._codecs[name] = codec(self.row_format, self.columns, topic=name, schemas=self._schemas)
        return found

    @property
    def encode(self) -> Callable[[Any], Any] | None:
        """The fast path of pipelines, for formats that need no topic."""
        return None if self.row_format.format.uses_registry else self.codec().encode

    @property
    def decode(self) -> Callable[[Any], Any] | None:
        return None if self.row_format.format.uses_registry else self.codec().decode

    def serialize(self, topic: str, value: Row, headers: Headers | None = None) -> bytes:
        """The row's bytes. A single null column that is stored bare has none: the result is `None`, a null record."""
        return self.codec(topic).encode(value)  # type: ignore[return-value]

    def deserialize(self, topic: str, data: bytes, headers: Headers | None = None) -> Row | None:
        return self.codec(topic).decode(data)

    def with_schema_source(self, connect: ConnectSchemas) -> RowSerde:
        """A copy that gets schemas from the source that `connect` returns."""
        registry = self.registry
        made = RegistryAddress(connect, "") if registry is None else replace(registry, connect=connect)
        return replace(self, registry=made)

    def configured(self, settings: Mapping[str, Any], part: Part) -> RowSerde:
        """A copy with the registry of an application's settings, unless it has one of its own."""
        registry = self.registry
        if registry is None or registry.url or not self.row_format.format.uses_registry:
            return self
        url = settings.get("schema.registry.url")
        if not url:
            raise InvalidConfigError(
                f"schema.registry.url is missing: format {self.row_format.format.name} needs a registry, such as "
                "http://localhost:8081"
            )
        user_info = settings.get("basic.auth.user.info")
        return replace(self, registry=replace(registry, url=str(url), user_info=user_info))

    @property
    def _schemas(self) -> SchemaSource | None:
        if self.registry is None or not self.row_format.format.uses_registry:
            return None
        return self.registry.source()

    def __reduce__(self) -> tuple[Any, ...]:
        if self.registry is not None and self.registry.url.startswith("mock://"):
            raise InvalidConfigError(
                f"{self.registry.url} is a registry inside one process, and rows are to be read in others: use a "
                "registry that is reached over HTTP"
            )
        return (RowSerde, (self.row_format, self.columns, self.registry))
