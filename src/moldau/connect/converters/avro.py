"""Connect's Avro converter: data with schemas to and from Avro, through the registry. Start at `AvroConverter`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, ClassVar, Final

from moldau.connect.api.config_def import ConfigDef, ConfigType, Setting
from moldau.connect.api.errors import DataError
from moldau.connect.api.schemas import BOOLEAN, BYTES, DECIMAL_NAME, FLOAT64, INT64, STRING, optional
from moldau.connect.converters.avro_texts import avro_text
from moldau.connect.converters.registry import LOW, REGISTRY_SETTINGS, Read, RegistryConverter, Write
from moldau.formats.registry.avro_schemas import avro_data_schema
from moldau.formats.registry.data_schema import NO_DEFAULT, DataSchema, Kind
from moldau.formats.types import DecimalType
from moldau.formats.values import fit_decimal
from moldau.schemas.avro.codec import AvroCodec
from moldau.schemas.avro.schema import AvroSchema
from moldau.schemas.parsed_schema import ParsedSchema
from moldau.serdes.schema_source import SchemaText

__all__ = ["AvroConverter", "from_avro_value", "to_avro_value"]

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
EPOCH_DAY: Final = date(1970, 1, 1)
Convert = Callable[[Any], Any]


def _flag(name: str, doc: str, default: bool) -> Setting:
    return Setting(name, ConfigType.BOOLEAN, doc, default, importance=LOW)


class AvroConverter(RegistryConverter):
    """`io.confluent.connect.avro.AvroConverter`."""

    schema_type = "AVRO"
    config_def: ClassVar[ConfigDef] = REGISTRY_SETTINGS + ConfigDef(
        _flag("enhanced.avro.schema.support", "Accepted; names and packages are always kept.", False),
        _flag("connect.meta.data", "Whether Connect's own properties are written into schemas.", True),
        _flag("scrub.invalid.names", "Replace characters that Avro's names may not have.", False),
        _flag("flatten.singleton.unions", "Accepted; unions of one type are always flattened.", True),
        _flag("discard.type.doc.default", "Leave docs and defaults out of schemas.", False),
    )

    def schema_text(self, schema: DataSchema) -> SchemaText:
        text = avro_text(
            schema,
            has_metadata=self.values["connect.meta.data"],
            scrubs=self.values["scrub.invalid.names"],
            has_docs=not self.values["discard.type.doc.default"],
        )
        return SchemaText("AVRO", text)

    def writer(self, schema: DataSchema, parsed: ParsedSchema) -> Write:
        assert isinstance(parsed, AvroSchema)
        encode, convert = AvroCodec(parsed).encode, to_avro_value(schema)
        return lambda value: encode(convert(value))

    def reader(self, parsed: ParsedSchema) -> tuple[DataSchema | None, Read]:
        assert isinstance(parsed, AvroSchema)
        schema = avro_data_schema(parsed.type)
        decode, convert = AvroCodec(parsed).decode, from_avro_value(schema)
        return schema, lambda body: convert(decode(body))

    def inferred(self, value: Any) -> DataSchema:
        match value:
            case bool():
                return _INFERRED[bool]
            case int() | float() | str() | bytes():
                return _INFERRED[type(value)]
        return super().inferred(value)


_INFERRED: Final = {
    bool: optional(BOOLEAN),
    int: optional(INT64),
    float: optional(FLOAT64),
    str: optional(STRING),
    bytes: optional(BYTES),
}
"""One object for each type, since writers are kept by the schema's identity."""


def to_avro_value(schema: DataSchema) -> Convert:
    """A function from values of a schema to what fastavro writes."""
    convert = _to_avro(schema)
    default = None if schema.default is NO_DEFAULT else schema.default

    def nullable(value: Any) -> Any:
        if value is not None:
            return convert(value)
        if default is not None:
            return convert(default)
        if schema.is_optional:
            return None
        raise DataError(f"null found for a required {schema.kind.value} without default")

    return nullable


def _to_avro(schema: DataSchema) -> Convert:
    if schema.name == DECIMAL_NAME:
        scale = int(schema.parameters.get("scale", "0"))
        wanted = DecimalType(int(schema.parameters.get("connect.decimal.precision", "64")), scale)
        return lambda value: fit_decimal(value, wanted)
    match schema.kind:
        case Kind.ARRAY:
            element = to_avro_value(schema.element)
            return lambda value: [element(one) for one in value]
        case Kind.MAP:
            assert schema.key is not None
            write_key, write = to_avro_value(schema.key), to_avro_value(schema.element)
            if schema.key.kind is Kind.STRING and not schema.key.is_optional:
                return lambda value: {key: write(one) for key, one in value.items()}
            return lambda value: [{"key": write_key(key), "value": write(one)} for key, one in value.items()]
        case Kind.STRUCT:
            fields = [(field.name, to_avro_value(field.schema)) for field in schema.fields]
            return lambda value: {name: write(value.get(name)) for name, write in fields}
    return lambda value: value


def from_avro_value(schema: DataSchema) -> Convert:
    """A function from what fastavro read to values of a schema."""
    convert = _from_avro(schema)
    return convert if convert is _same else (lambda value: None if value is None else convert(value))


def _same(value: Any) -> Any:
    return value


def _from_avro(schema: DataSchema) -> Convert:
    match schema.kind:
        case Kind.ARRAY:
            element = from_avro_value(schema.element)
            return _same if element is _same else (lambda value: [element(one) for one in value])
        case Kind.MAP:
            assert schema.key is not None
            read_key, read = from_avro_value(schema.key), from_avro_value(schema.element)

            def read_map(value: Any) -> Any:
                pairs = value.items() if isinstance(value, dict) else ((one["key"], one["value"]) for one in value)
                return {read_key(key): read(one) for key, one in pairs}

            return read_map
        case Kind.STRUCT:
            fields = [
                (field.name, read) for field in schema.fields if (read := from_avro_value(field.schema)) is not _same
            ]

            def read_struct(value: Any) -> Any:
                made = dict(value)
                for name, read in fields:
                    made[name] = read(made.get(name))
                return made

            return read_struct
        case Kind.INT32 | Kind.INT64 if schema.name is not None:
            return _moment
    return _same


def _moment(value: Any) -> Any:
    """fastavro gives objects for logical types; here they are numbers."""
    match value:
        case datetime():
            return (value - EPOCH) // timedelta(milliseconds=1)
        case date():
            return (value - EPOCH_DAY).days
        case time():
            return ((value.hour * 60 + value.minute) * 60 + value.second) * 1000 + value.microsecond // 1000
    return value
