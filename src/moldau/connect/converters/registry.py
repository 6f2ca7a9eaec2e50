"""What the registry converters share: settings, subjects, schemas by id, caches. Start at `RegistryConverter`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final

from moldau.client.serialization import connect_schemas
from moldau.connect.api.config_def import ConfigDef, ConfigType, Importance, Setting, at_least, not_empty
from moldau.connect.api.errors import DataError, RetriableError
from moldau.connect.api.plugin_kinds import Converter, SchemaAndValue
from moldau.core.errors import MoldauError
from moldau.formats.errors import FormatError
from moldau.formats.registry.data_schema import DataSchema
from moldau.schemas.errors import SchemaError
from moldau.schemas.framing import frame_value, parse_frame
from moldau.schemas.schema import ParsedSchema
from moldau.serdes.schema_source import (
    RegisteredSchema,
    SchemaSource,
    SchemaSourceError,
    SchemaText,
    UnfitValueError,
    subject_name,
)

__all__ = ["REGISTRY_SETTINGS", "RegistryConverter"]

LOW: Final = Importance.LOW
PREFIX_BYTES: Final = 5
Write = Callable[[Any], bytes]
Read = Callable[[bytes], Any]

REGISTRY_SETTINGS: Final = ConfigDef(
    Setting("schema.registry.url", ConfigType.STRING, "Where the schema registry is.", valid=not_empty),
    Setting("basic.auth.user.info", ConfigType.PASSWORD, "user:password for the registry.", None, importance=LOW),
    Setting("auto.register.schemas", ConfigType.BOOLEAN, "Whether new schemas are registered.", True),
    Setting("use.latest.version", ConfigType.BOOLEAN, "Write with the subject's latest schema.", False, importance=LOW),
    Setting("key.subject.name.strategy", ConfigType.CLASS, "How subjects of keys are named.", "TopicNameStrategy"),
    Setting("value.subject.name.strategy", ConfigType.CLASS, "How subjects of values are named.", "TopicNameStrategy"),
    Setting(
        "schemas.cache.config",
        ConfigType.INT,
        "Most schemas to keep.",
        1000,
        at_least(1),
        LOW,
        synonyms=("schemas.cache.size",),
    ),
)


class RegistryConverter(Converter):
    """Writes a schema's id before the data and reads data by the id before them."""

    schema_type: ClassVar[str]
    config_def: ClassVar[ConfigDef] = REGISTRY_SETTINGS

    def configure(self, settings: Mapping[str, str], *, is_key: bool) -> None:
        self.values = self.config_def.parse(settings)
        self._is_key = is_key
        part = "key" if is_key else "value"
        self._strategy: str = self.values[f"{part}.subject.name.strategy"]
        self._most: int = self.values["schemas.cache.config"]
        self._schemas: SchemaSource | None = None
        self._writers: dict[tuple[str, int], tuple[DataSchema | None, Write]] = {}
        self._readers: dict[bytes, tuple[DataSchema | None, Read]] = {}

    @property
    def source(self) -> SchemaSource:
        if self._schemas is None:
            self._schemas = connect_schemas(self.values["schema.registry.url"], self.values["basic.auth.user.info"])
        return self._schemas

    # For each format

    @abstractmethod
    def schema_text(self, schema: DataSchema) -> SchemaText:
        """The schema to register; raises `DataError`."""

    @abstractmethod
    def writer(self, schema: DataSchema, parsed: ParsedSchema) -> Write:
        """A function from values to data, without the id."""

    @abstractmethod
    def reader(self, parsed: ParsedSchema) -> tuple[DataSchema | None, Read]:
        """The schema of data, and a function from them, without the id, to values."""

    def inferred(self, value: Any) -> DataSchema:
        """The schema of a value that has none; raises `DataError`."""
        raise DataError(
            f"{type(self).__name__} writes data with schemas, and this record has none; use a converter with schemas "
            "at the source, or JsonConverter with schemas.enable=false"
        )

    # Converter

    def from_connect(self, topic: str, schema: DataSchema | None, value: Any) -> bytes | None:
        if value is None and (schema is None or schema.is_optional):
            return None
        if schema is None:
            schema = self.inferred(value)
        found = self._writers.get((topic, id(schema)))
        try:
            if found is None:
                found = self._new_writer(topic, schema)
            return found[1](value)
        except SchemaSourceError as error:
            raise RetriableError(f"Failed to serialize data of topic {topic}: {error}") from error
        except (SchemaError, UnfitValueError, FormatError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise DataError(f"Converting Kafka Connect data to byte[] failed for topic {topic}: {error}") from error

    def _new_writer(self, topic: str, schema: DataSchema) -> tuple[DataSchema | None, Write]:
        registered = self._registered(topic, self.schema_text(schema))
        prefix, write = frame_value(registered.id, b""), self.writer(schema, registered.parsed)
        if len(self._writers) >= self._most:
            self._writers.clear()
        made = self._writers[topic, id(schema)] = (schema, lambda value: prefix + write(value))
        return made

    def _registered(self, topic: str, text: SchemaText) -> RegisteredSchema:
        name = None if self._strategy.endswith("TopicNameStrategy") else self.source.parsed_name(text)
        subject = subject_name(self._strategy, topic, name, is_key=self._is_key)
        if self.values["use.latest.version"]:
            latest = self.source.latest(subject)
            if latest is not None:
                return latest
        return self.source.registered(subject, text, may_register=self.values["auto.register.schemas"])

    def to_connect(self, topic: str, data: bytes | None) -> SchemaAndValue:
        if data is None:
            return None, None
        found = self._readers.get(data[:PREFIX_BYTES])
        try:
            if found is not None:
                return found[0], found[1](data[PREFIX_BYTES:])
            frame = parse_frame(data)
            name: int | str = frame.guid or "" if frame.schema_id is None else frame.schema_id
            found = self._new_reader(data[:PREFIX_BYTES], name, is_kept=frame.schema_id is not None)
            return found[0], found[1](frame.body)
        except SchemaSourceError as error:
            raise RetriableError(f"Failed to deserialize data for topic {topic}: {error}") from error
        except (MoldauError, ValueError, TypeError, KeyError) as error:
            raise DataError(f"Failed to deserialize data for topic {topic} to {self.schema_type}: {error}") from error

    def _new_reader(self, prefix: bytes, name: int | str, *, is_kept: bool) -> tuple[DataSchema | None, Read]:
        parsed = self.source.schema(name).parsed
        if str(parsed.schema_type) != self.schema_type:
            raise DataError(f"the data were written with a schema of type {parsed.schema_type}")
        made = self.reader(parsed)
        if is_kept:
            if len(self._readers) >= self._most:
                self._readers.clear()
            self._readers[prefix] = made
        return made
