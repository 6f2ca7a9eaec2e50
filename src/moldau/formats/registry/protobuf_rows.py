"""Rows as Protobuf messages of any schema: of the one derived from the columns, or of one that others registered.

Start at `framed_message_reader` and `framed_message_writer` (with the positions of the message before it, as registry
data have it) and at `plain_messages` (bare messages of a schema that only the columns know).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any, Final, NoReturn

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, EncodeError
from google.protobuf.message_factory import GetMessageClass

from moldau.formats.columns import Column
from moldau.formats.errors import RowError
from moldau.formats.format import NullableRepresentation
from moldau.formats.registry.data_schema import DataSchema
from moldau.formats.registry.inference import value_reader
from moldau.formats.registry.protobuf_schemas import (
    DATE_NAME,
    DECIMAL_NAME,
    TIME_NAME,
    TIMESTAMP_NAME,
    WRAPPERS,
    is_map,
    message_descriptor,
    oneofs_of,
    plain_fields_of,
    proto_text_of,
    protobuf_data_schema,
)
from moldau.formats.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIME,
    TIMESTAMP,
    ArrayType,
    DecimalType,
    MapType,
    SqlType,
    StructType,
)
from moldau.formats.values import decimal_from_bytes, decimal_to_bytes
from moldau.schemas.errors import SchemaError
from moldau.schemas.protobuf.codec import decode_indexes, encode_indexes
from moldau.schemas.protobuf.schema import ProtobufSchema, parse_protobuf

__all__ = [
    "fill_date",
    "fill_decimal",
    "fill_time",
    "fill_timestamp",
    "framed_message_reader",
    "framed_message_writer",
    "plain_messages",
    "plain_reader",
]

Message = Any
Descriptor = Any
Fields = list[tuple[str, SqlType]]
Read = Callable[[Message], Any]
Write = Callable[[Message, Any], None]
EPOCH_ORDINAL: Final = date(1970, 1, 1).toordinal()


def framed_message_reader(schema: ProtobufSchema, columns: tuple[Column, ...]) -> Callable[[bytes], Any]:
    """A function from positions and message to rows; any message of the schema may come."""
    readers: dict[str, Callable[[bytes], Any]] = {}

    def read(body: bytes) -> Any:
        indexes, start = decode_indexes(body)
        name = schema.message_name(indexes)
        found = readers.get(name)
        if found is None:
            found = readers[name] = _reader(schema, name, columns)
        return found(body[start:])

    return read


def framed_message_writer(
    schema: ProtobufSchema, columns: tuple[Column, ...], full_name: str | None
) -> Callable[[Any], bytes]:
    """A function from rows to positions and message; the first message of the schema unless another is named."""
    name = full_name if full_name is not None and _has_message(schema, full_name) else schema.message_name([0])
    prefix = encode_indexes(schema.message_indexes(name))
    write = _writer(schema, name, columns)
    return lambda row: prefix + write(row)


def plain_messages(
    columns: tuple[Column, ...], nullable: NullableRepresentation | None, *, is_bare: bool
) -> tuple[Callable[[Any], bytes | None], Callable[[bytes], Any]]:
    """Writer and reader of messages without anything before them.

    A bare struct is the message itself; any other bare value is the first field of a message, as Google's wrappers are.
    """
    only = columns[0].type if columns else None
    is_struct = is_bare and isinstance(only, StructType)
    if isinstance(only, StructType) and is_struct:
        columns = tuple(Column(field.name, field.type) for field in only.fields)
    elif is_bare:
        columns = (Column("value", columns[0].type),)
    schema = parse_protobuf(proto_text_of(columns, full_name=None, nullable=nullable))
    write, read = _writer(schema, None, columns), _reader(schema, None, columns)
    if not is_bare:
        return write, read
    if is_struct:
        return (lambda row: None if row[0] is None else write(row[0])), (lambda data: (read(data),))
    return (lambda row: None if row[0] is None else write(row)), read


def _has_message(schema: ProtobufSchema, name: str) -> bool:
    try:
        schema.message_indexes(name)
    except SchemaError:
        return False
    return True


# Reading


def _reader(schema: ProtobufSchema, name: str | None, columns: tuple[Column, ...]) -> Callable[[bytes], Any]:
    descriptor = message_descriptor(schema, name)
    data_schema = protobuf_data_schema(schema, name)
    message_class = GetMessageClass(descriptor)
    read = _message_reader(descriptor, data_schema, [(column.name, column.type) for column in columns], "")

    def decode(data: bytes) -> Any:
        try:
            return read(message_class.FromString(data))
        except (DecodeError, ValueError, OverflowError) as error:
            raise RowError(f"the data are not a {descriptor.full_name} message: {error}") from None

    return decode


def _message_reader(descriptor: Descriptor, schema: DataSchema, fields: Fields, path: str) -> Read:
    """A function from messages to tuples of the fields; fields that the message type lacks are null."""
    schemas = {field.name.upper(): field.schema for field in schema.fields}
    plain = {field.name.upper(): field for field in plain_fields_of(descriptor)}
    oneofs = {f"{name}_{index}".upper(): (name, members) for index, (name, members) in enumerate(oneofs_of(descriptor))}
    reads: list[Read] = []
    for name, sql_type in fields:
        upper, at = name.upper(), f"{path}->{name}"
        if upper in plain:
            reads.append(_field_reader(plain[upper], schemas[upper], sql_type, at))
        elif upper in oneofs:
            reads.append(_oneof_reader(*oneofs[upper], schemas[upper], sql_type, at))
        else:
            reads.append(_null)
    return lambda message: tuple([read(message) for read in reads])


def _null(message: Message) -> None:
    return None


def _misfit(schema: DataSchema, sql_type: SqlType, path: str) -> NoReturn:
    raise RowError(f"Cannot deserialize type {schema.kind.value} as type {sql_type} for path: {path}")


def _oneof_reader(oneof: str, members: list[FieldDescriptor], schema: DataSchema, sql_type: SqlType, path: str) -> Read:
    if not isinstance(sql_type, StructType):
        _misfit(schema, sql_type, path)
    by_name = {field.name.upper(): field for field in members}
    schemas = {field.name.upper(): field.schema for field in schema.fields}
    reads: list[Read] = []
    for field in sql_type.fields:
        found = by_name.get(field.name.upper())
        if found is None:
            reads.append(_null)
        else:
            reads.append(_field_reader(found, schemas[field.name.upper()], field.type, f"{path}->{field.name}"))

    def read(message: Message) -> Any:
        return None if message.WhichOneof(oneof) is None else tuple([one(message) for one in reads])

    return read


def _field_reader(field: FieldDescriptor, schema: DataSchema, sql_type: SqlType, path: str) -> Read:
    name = field.name
    if is_map(field):
        if not isinstance(sql_type, MapType):
            _misfit(schema, sql_type, path)
        entry: Descriptor = field.message_type
        key = value_reader(schema.key, STRING, path) if schema.key is not None else None
        one = _item_reader(entry.fields_by_name["value"], schema.element, sql_type.value, f"{path}->MAP_VAL")
        text: Read = (lambda item: item) if key is None else key
        return lambda message: {text(item): one(found) for item, found in getattr(message, name).items()}
    if field.is_repeated:
        if not isinstance(sql_type, ArrayType):
            _misfit(schema, sql_type, path)
        one = _item_reader(field, schema.element, sql_type.element, f"{path}->ARRAY")
        return lambda message: [one(item) for item in getattr(message, name)]
    one = _item_reader(field, schema, sql_type, path)
    if field.has_presence:
        return lambda message: one(getattr(message, name)) if message.HasField(name) else None
    return lambda message: one(getattr(message, name))


def _item_reader(field: FieldDescriptor, schema: DataSchema, sql_type: SqlType, path: str) -> Read:
    """A function from one value of a field, an element or a map's value, to a value of the type."""
    descriptor: Descriptor = field.message_type
    if descriptor is not None and isinstance(sql_type, StructType) and schema.fields:
        return _message_reader(descriptor, schema, [(one.name, one.type) for one in sql_type.fields], path)
    convert = value_reader(schema, sql_type, path)
    plain = plain_reader(field)
    if plain is None:
        return (lambda value: value) if convert is None else convert
    return plain if convert is None else lambda value: convert(plain(value))


def plain_reader(field: FieldDescriptor) -> Read | None:
    """A function from a value of a field that is no struct to Connect's; None if they are the same."""
    if field.enum_type is not None:
        names = {number: value.name for number, value in field.enum_type.values_by_number.items()}
        return lambda number: names.get(number, str(number))
    if field.message_type is None:
        # Unsigned numbers beyond Java's longs are negative there.
        return _to_signed if field.type in (field.TYPE_UINT64, field.TYPE_FIXED64) else None
    name = str(field.message_type.full_name)
    if name in WRAPPERS:
        return (lambda value: _to_signed(value.value)) if name.endswith("UInt64Value") else lambda value: value.value
    return _WELL_KNOWN_READERS.get(name)


def _to_signed(number: int) -> int:
    return number - (1 << 64) if number >= 1 << 63 else number


def _date_days(value: Message) -> int | None:
    if not (value.year or value.month or value.day):
        # An element of an array cannot be absent, only empty.
        return None
    return date(value.year, value.month, value.day).toordinal() - EPOCH_ORDINAL


def _time_ms(value: Message) -> int:
    seconds = (value.hours * 60 + value.minutes) * 60 + value.seconds
    return int(seconds * 1000 + value.nanos // 1_000_000)


_WELL_KNOWN_READERS: Final[dict[str, Read]] = {
    DECIMAL_NAME: lambda value: decimal_from_bytes(value.value, value.scale),
    TIMESTAMP_NAME: lambda value: value.seconds * 1000 + value.nanos // 1_000_000,
    DATE_NAME: _date_days,
    TIME_NAME: _time_ms,
}


# Writing


def _writer(schema: ProtobufSchema, name: str | None, columns: tuple[Column, ...]) -> Callable[[Any], bytes]:
    descriptor = message_descriptor(schema, name)
    message_class = GetMessageClass(descriptor)
    fill = _message_writer(descriptor, [(column.name, column.type) for column in columns], "")

    def encode(row: Any) -> bytes:
        message = message_class()
        try:
            fill(message, row)
            return message.SerializeToString(deterministic=True)
        except (EncodeError, ValueError, TypeError, OverflowError) as error:
            raise RowError(f"the row cannot be written as {descriptor.full_name}: {error}") from None

    return encode


def _message_writer(descriptor: Descriptor, fields: Fields, path: str) -> Write:
    by_name = {field.name: field for field in descriptor.fields}
    upper = {field.name.upper(): field for field in descriptor.fields}
    oneofs = {f"{name}_{index}".upper(): members for index, (name, members) in enumerate(oneofs_of(descriptor))}
    writes: list[tuple[int, Write]] = []
    for index, (name, sql_type) in enumerate(fields):
        field = by_name.get(name) or upper.get(name.upper())
        at = f"{path}->{name}" if path else name
        if field is not None:
            writes.append((index, _field_writer(field, sql_type, at)))
        elif name.upper() in oneofs and isinstance(sql_type, StructType):
            writes.append((index, _oneof_writer(oneofs[name.upper()], sql_type, at)))

    def fill(message: Message, row: Any) -> None:
        for index, write in writes:
            value = row[index]
            if value is not None:
                write(message, value)

    return fill


def _oneof_writer(members: list[FieldDescriptor], sql_type: StructType, path: str) -> Write:
    upper = {field.name.upper(): field for field in members}
    writes = [
        (index, _field_writer(upper[field.name.upper()], field.type, f"{path}->{field.name}"))
        for index, field in enumerate(sql_type.fields)
        if field.name.upper() in upper
    ]

    def write(message: Message, value: Any) -> None:
        for index, one in writes:
            if value[index] is not None:
                one(message, value[index])

    return write


def _field_writer(field: FieldDescriptor, sql_type: SqlType, path: str) -> Write:
    name = field.name
    if is_map(field):
        if not isinstance(sql_type, MapType):
            _refuse(field, sql_type, path)
        entry: Descriptor = field.message_type
        return _map_writer(name, entry.fields_by_name["value"], sql_type.value, path)
    if field.is_repeated:
        if not isinstance(sql_type, ArrayType):
            _refuse(field, sql_type, path)
        return _list_writer(field, sql_type.element, path)
    fill = _submessage_writer(field, sql_type, path)
    if fill is not None:

        def write_message(message: Message, value: Any) -> None:
            inner = getattr(message, name)
            inner.SetInParent()
            fill(inner, value)

        return write_message
    convert = _scalar_writer(field, sql_type, path)
    return lambda message, value: setattr(message, name, value if convert is None else convert(value))


def _list_writer(field: FieldDescriptor, element: SqlType, path: str) -> Write:
    name = field.name
    fill = _submessage_writer(field, element, path)
    if fill is not None:

        def write_messages(message: Message, items: Any) -> None:
            target = getattr(message, name)
            for item in items:
                inner = target.add()
                if item is not None:
                    fill(inner, item)

        return write_messages
    convert = _scalar_writer(field, element, path)
    default = field.default_value if field.enum_type is None else 0
    empty = _EMPTY.get(element, default)

    def write_scalars(message: Message, items: Any) -> None:
        getattr(message, name).extend(
            [empty if item is None else item if convert is None else convert(item) for item in items]
        )

    return write_scalars


def _map_writer(field_name: str, value_field: FieldDescriptor, value_type: SqlType, path: str) -> Write:
    fill = _submessage_writer(value_field, value_type, path)
    convert = None if fill is not None else _scalar_writer(value_field, value_type, path)
    empty = _EMPTY.get(value_type)

    def write(message: Message, entries: Any) -> None:
        target = getattr(message, field_name)
        for key, value in entries.items():
            name = "" if key is None else key
            if fill is None:
                target[name] = empty if value is None else value if convert is None else convert(value)
            else:
                target[name].SetInParent()
                if value is not None:
                    fill(target[name], value)

    return write


_EMPTY: Final[dict[SqlType, Any]] = {BOOLEAN: False, INTEGER: 0, BIGINT: 0, DOUBLE: 0.0, STRING: "", BYTES: b""}
_TARGETS: Final[dict[SqlType, frozenset[int]]] = {
    BOOLEAN: frozenset({FieldDescriptor.CPPTYPE_BOOL}),
    INTEGER: frozenset({FieldDescriptor.CPPTYPE_INT32, FieldDescriptor.CPPTYPE_INT64, FieldDescriptor.CPPTYPE_UINT32}),
    BIGINT: frozenset({FieldDescriptor.CPPTYPE_INT64, FieldDescriptor.CPPTYPE_UINT32, FieldDescriptor.CPPTYPE_UINT64}),
    DOUBLE: frozenset({FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT}),
    STRING: frozenset({FieldDescriptor.CPPTYPE_STRING, FieldDescriptor.CPPTYPE_ENUM}),
    BYTES: frozenset({FieldDescriptor.CPPTYPE_STRING}),
    DATE: frozenset({FieldDescriptor.CPPTYPE_INT32}),
    TIME: frozenset({FieldDescriptor.CPPTYPE_INT32}),
    TIMESTAMP: frozenset({FieldDescriptor.CPPTYPE_INT64}),
}


def _refuse(field: FieldDescriptor, sql_type: SqlType, path: str) -> NoReturn:
    raise RowError(f"{path} is {sql_type}, which cannot be written as the Protobuf field {field.name}")


def _scalar_writer(field: FieldDescriptor, sql_type: SqlType, path: str) -> Callable[[Any], Any] | None:
    if field.message_type is not None or field.cpp_type not in _TARGETS.get(sql_type, ()):
        _refuse(field, sql_type, path)
    if field.enum_type is not None:
        numbers = {name: value.number for name, value in field.enum_type.values_by_name.items()}

        def number_of(name: str) -> int:
            if name not in numbers:
                raise RowError(f"{name!r:.80} is not a constant of {path}: use one of {', '.join(numbers)}")
            return numbers[name]

        return number_of
    if field.type in (field.TYPE_UINT64, field.TYPE_FIXED64):
        return lambda number: number & ((1 << 64) - 1)
    return None


def _submessage_writer(field: FieldDescriptor, sql_type: SqlType, path: str) -> Write | None:
    """A function that fills a message with a value; `None` for scalar fields."""
    if field.message_type is None:
        return None
    name = str(field.message_type.full_name)
    if name in WRAPPERS:
        value_field = field.message_type.fields_by_name["value"]
        convert = _scalar_writer(value_field, sql_type, path)
        return lambda message, value: setattr(message, "value", value if convert is None else convert(value))
    match sql_type:
        case StructType(fields):
            return _message_writer(field.message_type, [(one.name, one.type) for one in fields], path)
        case DecimalType(precision) if name == DECIMAL_NAME:
            return lambda message, value: fill_decimal(message, value, precision)
    known = {TIMESTAMP_NAME: (TIMESTAMP, fill_timestamp), DATE_NAME: (DATE, fill_date), TIME_NAME: (TIME, fill_time)}
    wanted, fill = known.get(name, (None, None))
    if fill is None or wanted != sql_type:
        _refuse(field, sql_type, path)
    return fill


def fill_decimal(message: Message, value: Any, precision: int) -> None:
    """A decimal into `confluent.type.Decimal`."""
    message.value, message.precision, message.scale = decimal_to_bytes(value), precision, -value.as_tuple().exponent


def fill_timestamp(message: Message, value: int) -> None:
    """Milliseconds since the epoch into a timestamp."""
    message.seconds, message.nanos = value // 1000, value % 1000 * 1_000_000


def fill_date(message: Message, value: int) -> None:
    """Days since the epoch into a date."""
    day = date.fromordinal(value + EPOCH_ORDINAL)
    message.year, message.month, message.day = day.year, day.month, day.day


def fill_time(message: Message, value: int) -> None:
    """Milliseconds of the day into a time."""
    seconds, ms = divmod(value, 1000)
    message.hours, message.minutes, message.seconds = seconds // 3600, seconds // 60 % 60, seconds % 60
    message.nanos = ms * 1_000_000
