"""The formats of files: Avro, Parquet, ORC, JSON lines, text. Start at `file_format`.

A writer is given records of one schema and a file; Parquet and ORC need all records at once, and get them when the file
is closed.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import IO, Any, Final, Protocol

from moldau.connect.api.errors import ConnectError, DataError
from moldau.connect.api.records import SinkRecord
from moldau.connect.api.schemas import DATE_NAME, DECIMAL_NAME, TIME_NAME, TIMESTAMP_NAME, DataSchema, Kind
from moldau.connect.converters.avro import to_avro_value
from moldau.connect.converters.avro_texts import avro_text
from moldau.connect.converters.java_text import to_java_string
from moldau.connect.converters.json import JsonConverter
from moldau.formats.registry.data_schema import NO_DEFAULT

__all__ = ["FORMATS", "FileFormat", "file_format"]

ROW_GROUP: Final = 50_000


class Writer(Protocol):
    """Writes the records of one file."""

    def write(self, record: SinkRecord, value: Any) -> None: ...

    def close(self) -> None:
        """Write what is missing and close the file."""
        ...


class FileFormat:
    """A format with its file extension."""

    def __init__(
        self, extension: str, writer: Callable[[IO[bytes], DataSchema | None, str], Writer], *, needs_schema: bool
    ) -> None:
        self.extension = extension
        self.writer = writer
        self.needs_schema = needs_schema


def file_format(name: str) -> FileFormat:
    """The format by the name of its class; raises `ConnectError`."""
    simple = name.rpartition(".")[2].removesuffix("Format").lower()
    if simple not in FORMATS:
        raise ConnectError(f"format.class={name} is not known; known are {', '.join(FORMATS)}")
    return FORMATS[simple]


class _JsonWriter:
    def __init__(self, file: IO[bytes], schema: DataSchema | None, codec: str) -> None:
        self._file = file
        self._converter = JsonConverter()
        self._converter.configure({"schemas.enable": "false"}, is_key=False)

    def write(self, record: SinkRecord, value: Any) -> None:
        self._file.write((self._converter.from_connect(record.topic, record.value_schema, value) or b"null") + b"\n")

    def close(self) -> None:
        self._file.close()


class _TextWriter:
    def __init__(self, file: IO[bytes], schema: DataSchema | None, codec: str) -> None:
        self._file = file

    def write(self, record: SinkRecord, value: Any) -> None:
        self._file.write(to_java_string(record.value_schema, value).encode() + b"\n")

    def close(self) -> None:
        self._file.close()


class _AvroWriter:
    def __init__(self, file: IO[bytes], schema: DataSchema | None, codec: str) -> None:
        import fastavro.write

        assert schema is not None
        self._file = file
        self._convert = to_avro_value(schema)
        try:
            self._writer = fastavro.write.Writer(file, json.loads(avro_text(schema)), codec=codec)
        except ValueError as error:
            raise ConnectError(f"avro.codec={codec} cannot be used: {error}") from error

    def write(self, record: SinkRecord, value: Any) -> None:
        self._writer.write(self._convert(value))

    def close(self) -> None:
        self._writer.flush()
        self._file.close()


class _ArrowWriter:
    """Collects rows and hands them to pyarrow as a table."""

    def __init__(self, file: IO[bytes], schema: DataSchema | None) -> None:
        import pyarrow

        assert schema is not None
        if schema.kind is not Kind.STRUCT:
            raise DataError(f"files of columns hold structs, and the values are {schema.kind.value}; use HoistField")
        self._arrow = pyarrow
        self._file = file
        self._fields = schema.fields
        self._schema = pyarrow.schema(
            [pyarrow.field(one.name, arrow_type(one.schema), nullable=one.schema.is_optional) for one in schema.fields]
        )
        self._rows: list[Any] = []
        self._convert = arrow_value(schema)

    def write(self, record: SinkRecord, value: Any) -> None:
        self._rows.append(self._convert(value))
        if len(self._rows) >= ROW_GROUP:
            self._flush()

    def _flush(self) -> None:
        columns = [
            self._arrow.array([row.get(field.name) for row in self._rows], type=field.type) for field in self._schema
        ]
        self._rows = []
        self._store(self._arrow.Table.from_arrays(columns, schema=self._schema))

    def _store(self, table: Any) -> None:
        raise NotImplementedError


class _ParquetWriter(_ArrowWriter):
    def __init__(self, file: IO[bytes], schema: DataSchema | None, codec: str) -> None:
        from pyarrow import parquet

        super().__init__(file, schema)
        self._writer = parquet.ParquetWriter(file, self._schema, compression=codec)

    def _store(self, table: Any) -> None:
        self._writer.write_table(table)

    def close(self) -> None:
        self._flush()
        self._writer.close()
        self._file.close()


class _OrcWriter(_ArrowWriter):
    def __init__(self, file: IO[bytes], schema: DataSchema | None, codec: str) -> None:
        from pyarrow import orc

        super().__init__(file, schema)
        self._writer = orc.ORCWriter(file)

    def _store(self, table: Any) -> None:
        self._writer.write(table)

    def close(self) -> None:
        self._flush()
        self._writer.close()
        self._file.close()


def arrow_type(schema: DataSchema) -> Any:
    """The Arrow type of a schema."""
    import pyarrow as pa

    match schema.name:
        case n if n == DECIMAL_NAME:
            precision = int(schema.parameters.get("connect.decimal.precision", "38"))
            return (pa.decimal128 if precision <= 38 else pa.decimal256)(precision, int(schema.parameters["scale"]))
        case n if n == DATE_NAME:
            return pa.date32()
        case n if n == TIME_NAME:
            return pa.time32("ms")
        case n if n == TIMESTAMP_NAME:
            return pa.timestamp("ms", tz="UTC")
    match schema.kind:
        case Kind.ARRAY:
            return pa.list_(arrow_type(schema.element))
        case Kind.MAP:
            assert schema.key is not None
            return pa.map_(arrow_type(schema.key), arrow_type(schema.element))
        case Kind.STRUCT:
            return pa.struct(
                [pa.field(one.name, arrow_type(one.schema), nullable=one.schema.is_optional) for one in schema.fields]
            )
    return {
        Kind.INT8: pa.int8,
        Kind.INT16: pa.int16,
        Kind.INT32: pa.int32,
        Kind.INT64: pa.int64,
        Kind.FLOAT32: pa.float32,
        Kind.FLOAT64: pa.float64,
        Kind.BOOLEAN: pa.bool_,
        Kind.STRING: pa.string,
        Kind.BYTES: pa.binary,
    }[schema.kind]()


def arrow_value(schema: DataSchema) -> Callable[[Any], Any]:
    """A function from values to what Arrow takes: null checks and defaults as Avro has them, maps as pairs."""
    checked = to_avro_value(schema)

    def convert(value: Any) -> Any:
        return _with_pairs(schema, checked(value))

    if schema.kind is not Kind.STRUCT or not all(_is_plain(field.schema) for field in schema.fields):
        return convert
    required = [field.name for field in schema.fields if not field.schema.is_optional]

    def plain(value: Any) -> Any:
        """Values of such fields stay as they are; Arrow checks their types."""
        if not isinstance(value, dict) or None in map(value.get, required):
            return convert(value)  # says what is missing
        return value

    return plain


def _is_plain(schema: DataSchema) -> bool:
    has_default = schema.default is not NO_DEFAULT and schema.default is not None
    return schema.kind not in (Kind.STRUCT, Kind.ARRAY, Kind.MAP) and schema.name != DECIMAL_NAME and not has_default


def _with_pairs(schema: DataSchema, value: Any) -> Any:
    if value is None:
        return None
    match schema.kind:
        case Kind.STRUCT:
            return {one.name: _with_pairs(one.schema, value[one.name]) for one in schema.fields}
        case Kind.ARRAY:
            return [_with_pairs(schema.element, one) for one in value]
        case Kind.MAP:
            pairs = value.items() if isinstance(value, dict) else ((one["key"], one["value"]) for one in value)
            return [(key, _with_pairs(schema.element, one)) for key, one in pairs]
    return value


FORMATS: Final = {
    "avro": FileFormat("avro", _AvroWriter, needs_schema=True),
    "parquet": FileFormat("parquet", _ParquetWriter, needs_schema=True),
    "orc": FileFormat("orc", _OrcWriter, needs_schema=True),
    "json": FileFormat("json", _JsonWriter, needs_schema=False),
    "string": FileFormat("txt", _TextWriter, needs_schema=False),
}
