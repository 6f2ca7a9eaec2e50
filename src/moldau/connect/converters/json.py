"""Connect's JSON converter, with the schema in an envelope or without any schema.

A schema's reader and writer are put together once and kept, so that a record costs one pass over its value. Numbers
that do not fit their type are errors here, where Kafka's converter cuts them off silently. Start at `JsonConverter`.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, ClassVar, Final

import orjson

from moldau.connect.api.config_def import ConfigDef, ConfigType, Importance, Setting, at_least, one_of_ignoring_case
from moldau.connect.api.errors import ConfigError, DataError
from moldau.connect.api.plugin_kinds import Converter, SchemaAndValue
from moldau.connect.api.schemas import DECIMAL_NAME
from moldau.connect.converters.java_text import float32_text
from moldau.connect.converters.json_schema_texts import schema_from_json, schema_to_json
from moldau.formats.registry.data_schema import NO_DEFAULT, DataSchema, Kind
from moldau.formats.values import decimal_from_bytes, decimal_to_bytes

__all__ = ["JsonConverter"]

BITS: Final = {Kind.INT8: 8, Kind.INT16: 16, Kind.INT32: 32, Kind.INT64: 64}
Convert = Callable[[Any], Any]

CONFIG: Final = ConfigDef(
    Setting("schemas.enable", ConfigType.BOOLEAN, "Whether schemas are in an envelope.", True),
    Setting(
        "schemas.cache.size", ConfigType.INT, "Most schemas to keep.", 1000, at_least(0), importance=Importance.LOW
    ),
    Setting(
        "decimal.format",
        ConfigType.STRING,
        "How decimals are written: BASE64 or NUMERIC.",
        "BASE64",
        one_of_ignoring_case("BASE64", "NUMERIC"),
        Importance.LOW,
    ),
    Setting(
        "replace.null.with.default",
        ConfigType.BOOLEAN,
        "Whether a null stands for the default of its field.",
        True,
        importance=Importance.LOW,
    ),
    Setting(
        "schema.content",
        ConfigType.STRING,
        "A schema for all messages, which then come without an envelope.",
        None,
        importance=Importance.HIGH,
    ),
)


class JsonConverter(Converter):
    """`org.apache.kafka.connect.json.JsonConverter`."""

    config_def: ClassVar[ConfigDef] = CONFIG

    def __init__(self) -> None:
        self.configure({}, is_key=False)

    def configure(self, settings: Mapping[str, str], *, is_key: bool) -> None:
        values = CONFIG.parse(settings)
        self._has_schemas: bool = values["schemas.enable"]
        self._cache_size: int = values["schemas.cache.size"]
        self._is_numeric = values["decimal.format"].upper() == "NUMERIC"
        self._uses_defaults: bool = values["replace.null.with.default"]
        self._writers: dict[int, tuple[DataSchema, bytes, Convert]] = {}
        self._readers: dict[bytes, tuple[DataSchema | None, Convert]] = {}
        self._fixed: DataSchema | None = None
        self._read_fixed: Convert = lambda value: value
        if values["schema.content"]:
            try:
                self._fixed = schema_from_json(orjson.loads(values["schema.content"]), self.read_value)
            except (orjson.JSONDecodeError, DataError) as error:
                raise ConfigError([f"Invalid value for configuration schema.content: {error}"]) from None
            if self._fixed is not None:
                self._read_fixed = self._reader(self._fixed)

    # Writing

    def from_connect(self, topic: str, schema: DataSchema | None, value: Any) -> bytes | None:
        if schema is None:
            if value is None:
                return None
            payload = _dumps(_without_schema(value))
            return b'{"schema":null,"payload":%s}' % payload if self._has_schemas else payload
        found = self._writers.get(id(schema))
        if found is None:
            found = self._new_writer(schema)
        _, prefix, write = found
        payload = _dumps(write(value))
        return prefix + payload + b"}" if self._has_schemas else payload

    def _new_writer(self, schema: DataSchema) -> tuple[DataSchema, bytes, Convert]:
        described = schema_to_json(schema, lambda inner, value: self._writer(inner)(value))
        prefix = b'{"schema":%s,"payload":' % _dumps(described)
        if len(self._writers) >= max(1, self._cache_size):
            self._writers.clear()
        # The schema is kept, too: its identity is the key only as long as it lives.
        made = self._writers[id(schema)] = (schema, prefix, self._writer(schema))
        return made

    def _writer(self, schema: DataSchema) -> Convert:
        write = self._value_writer(schema)
        default, is_optional = schema.default, schema.is_optional
        if default is NO_DEFAULT or default is None or not self._uses_defaults:
            default = None

        def nullable(value: Any) -> Any:
            if value is not None:
                return write(value)
            if default is not None:
                return write(default)
            if is_optional:
                return None
            raise DataError("Conversion error: null value for field that is required and has no default value")

        return nullable

    def _value_writer(self, schema: DataSchema) -> Convert:
        if schema.name == DECIMAL_NAME:
            return self._decimal_writer(schema)
        match schema.kind:
            case Kind.ARRAY:
                element = self._writer(schema.element)
                return lambda value: [element(one) for one in value]
            case Kind.MAP:
                return self._map_writer(schema)
            case Kind.STRUCT:
                return self._struct_writer(schema)
        return _PLAIN_WRITERS[schema.kind]

    def _decimal_writer(self, schema: DataSchema) -> Convert:
        scale = int(schema.parameters.get("scale", "0"))
        is_numeric = self._is_numeric

        def write(value: Any) -> Any:
            if not isinstance(value, Decimal) or -value.as_tuple().exponent != scale:  # type: ignore[operator]
                raise DataError(f"a Decimal of scale {scale} cannot hold {value!r}: its scale differs")
            return value if is_numeric else base64.b64encode(decimal_to_bytes(value)).decode()

        return write

    def _map_writer(self, schema: DataSchema) -> Convert:
        assert schema.key is not None
        write_key, write = self._writer(schema.key), self._writer(schema.element)
        if schema.key.kind is Kind.STRING:
            return lambda value: {write_key(key): write(one) for key, one in value.items()}
        return lambda value: [[write_key(key), write(one)] for key, one in value.items()]

    def _struct_writer(self, schema: DataSchema) -> Convert:
        fields = [(field.name, self._writer(field.schema)) for field in schema.fields]

        def write(value: Any) -> Any:
            if not isinstance(value, Mapping):
                raise DataError(f"a struct is a dict by field name, not {type(value).__name__}")
            get = value.get
            made = {}
            for name, write_field in fields:
                try:
                    made[name] = write_field(get(name))
                except DataError as error:
                    raise DataError(f"field {name}: {error}") from None
            return made

        return _quick(schema, write)

    # Reading

    def to_connect(self, topic: str, data: bytes | None) -> SchemaAndValue:
        if data is None:
            return None, None
        if not data and not self._has_schemas:
            # What Kafka's deserializer makes of no bytes at all: JSON's "missing", which is read as null.
            return None, None
        given = _loads(data, topic) if data else None
        if self._fixed is not None:
            return self._fixed, self._read_fixed(given)
        if not self._has_schemas:
            return None, given
        if not isinstance(given, dict) or len(given) != 2 or "schema" not in given or "payload" not in given:
            raise DataError(
                'JsonConverter with schemas.enable requires "schema" and "payload" fields and may not contain '
                "additional fields. If you are trying to deserialize plain JSON data, set schemas.enable=false in "
                "your converter configuration."
            )
        if given["schema"] is None:
            return None, given["payload"]
        key = orjson.dumps(given["schema"])
        found = self._readers.get(key)
        if found is None:
            found = self._new_reader(key, given["schema"])
        schema, read = found
        return schema, read(given["payload"])

    def _new_reader(self, key: bytes, described: Any) -> tuple[DataSchema | None, Convert]:
        schema = schema_from_json(described, self.read_value)
        assert schema is not None
        if len(self._readers) >= max(1, self._cache_size):
            self._readers.clear()
        made = self._readers[key] = (schema, self._reader(schema))
        return made

    def read_value(self, schema: DataSchema, value: Any) -> Any:
        """The value that parsed JSON stands for; raises `DataError`."""
        return self._reader(schema)(value)

    def _reader(self, schema: DataSchema) -> Convert:
        read = self._value_reader(schema)
        default, is_optional = schema.default, schema.is_optional
        if default is NO_DEFAULT or not self._uses_defaults:
            default = None

        def nullable(value: Any) -> Any:
            if value is not None:
                return read(value)
            if default is not None or is_optional:
                return default
            raise DataError(f"Invalid null value for required {schema.kind.value.upper()} field")

        return nullable

    def _value_reader(self, schema: DataSchema) -> Convert:
        if schema.name == DECIMAL_NAME:
            scale = int(schema.parameters.get("scale", "0"))
            return lambda value: _decimal(value, scale)
        match schema.kind:
            case Kind.ARRAY:
                element = self._reader(schema.element)
                return lambda value: [element(one) for one in _expect(value, list, "an array")]
            case Kind.MAP:
                return self._map_reader(schema)
            case Kind.STRUCT:
                return self._struct_reader(schema)
        return _PLAIN_READERS[schema.kind]

    def _map_reader(self, schema: DataSchema) -> Convert:
        assert schema.key is not None
        read_key, read = self._reader(schema.key), self._reader(schema.element)
        if schema.key.kind is Kind.STRING:
            return lambda value: {key: read(one) for key, one in _expect(value, dict, "an object").items()}

        def read_pairs(value: Any) -> Any:
            pairs = _expect(value, list, "an array of pairs")
            if not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
                raise DataError(
                    "Found invalid map entry, expected length 2: "
                    "a map whose keys are not strings is an array of [key, value] pairs"
                )
            return {read_key(key): read(one) for key, one in pairs}

        return read_pairs

    def _struct_reader(self, schema: DataSchema) -> Convert:
        fields = [(field.name, self._reader(field.schema)) for field in schema.fields]

        def read(value: Any) -> Any:
            get = _expect(value, dict, "an object").get
            made = {}
            for name, read_field in fields:
                try:
                    made[name] = read_field(get(name))
                except DataError as error:
                    raise DataError(f"field {name}: {error}") from None
            return made

        return _quick(schema, read)


_QUICK_KINDS: Final = {*BITS, Kind.FLOAT64, Kind.BOOLEAN, Kind.STRING}
_MOST_SHAPES: Final = 64


def _quick(schema: DataSchema, convert: Convert) -> Convert:
    """`convert` for structs, without going through the fields of those that it would leave as they are.

    These have the schema's fields in order, with values of types that `convert` has left as they were before, and
    numbers within bounds. Everything else goes to `convert`, which also says what is wrong.
    """
    if not all(field.schema.kind in _QUICK_KINDS and field.schema.name != DECIMAL_NAME for field in schema.fields):
        return convert
    names = tuple(field.name for field in schema.fields)
    bounds = [
        (place, -(1 << (BITS[field.schema.kind] - 1)), (1 << (BITS[field.schema.kind] - 1)) - 1)
        for place, field in enumerate(schema.fields)
        if field.schema.kind in BITS
    ]
    floats = [place for place, field in enumerate(schema.fields) if field.schema.kind is Kind.FLOAT64]
    known: set[tuple[type, ...]] = set()

    def quick(value: Any) -> Any:
        if type(value) is not dict or tuple(value) != names:
            return convert(value)
        values = tuple(value.values())
        shape = tuple(map(type, values))
        if shape not in known:
            made = convert(value)
            if len(known) < _MOST_SHAPES and tuple(map(type, made.values())) == shape and made == value:
                known.add(shape)
            return made
        for place, low, high in bounds:
            number = values[place]
            if number is not None and not low <= number <= high:
                return convert(value)
        for place in floats:
            number = values[place]
            if number is not None and not math.isfinite(number):
                return convert(value)
        return value

    return quick


def _loads(data: bytes, topic: str) -> Any:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        pass
    try:
        # Numbers beyond 64 bits and bytes that are no UTF-8 end here; the first are read, the second are errors.
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise DataError(f"Converting byte[] to Kafka Connect data failed due to serialization error: {error}") from None


def _dumps(value: Any) -> bytes:
    try:
        return orjson.dumps(value, default=_exact)
    except (TypeError, orjson.JSONEncodeError):
        pass
    try:
        return json.dumps(_plain(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise DataError(f"Converting Kafka Connect data to byte[] failed due to serialization error: {error}") from None


def _exact(value: Any) -> Any:
    if isinstance(value, Decimal):
        return orjson.Fragment(str(value))
    raise TypeError(f"{type(value).__name__} has no JSON form")


def _plain(value: Any) -> Any:
    """For the standard library: big integers as they are; decimals have to be floats there."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list) else value


def _without_schema(value: Any) -> Any:
    match value:
        case None | bool() | str() | int():
            return value
        case float():
            return _float64(value)
        case bytes() | bytearray() | memoryview():
            return base64.b64encode(bytes(value)).decode()
        case Mapping():
            if all(isinstance(key, str) for key in value):
                return {key: _without_schema(one) for key, one in value.items()}
            return [[_without_schema(key), _without_schema(one)] for key, one in value.items()]
        case list() | tuple():
            return [_without_schema(one) for one in value]
    raise DataError(f"a {type(value).__name__} without a schema has no JSON form; cast it, or give it a schema")


def _float64(value: Any) -> Any:
    # Neither infinities nor NaN are JSON; Kafka's converter writes them as texts, too.
    number = _expect(value, (float, int), "a number")
    if math.isfinite(number):
        return float(number)
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"


def _float32(value: Any) -> Any:
    number = _expect(value, (float, int), "a number")
    return float(float32_text(number)) if math.isfinite(number) else _float64(number)


def _integer(bits: int) -> Convert:
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1

    def check(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise DataError(f"Invalid type for INT{bits}: {type(value).__name__}")
        if not low <= value <= high:
            raise DataError(f"{value} does not fit into INT{bits}")
        return value

    return check


def _expect(value: Any, kind: Any, words: str) -> Any:
    if isinstance(value, kind) and not (isinstance(value, bool) and kind is not bool):
        return value
    raise DataError(f"expected {words}, and found {type(value).__name__}")


def _bytes_text(value: Any) -> str:
    return base64.b64encode(bytes(_expect(value, (bytes, bytearray, memoryview), "bytes"))).decode()


def _base64(value: Any) -> bytes:
    try:
        return base64.b64decode(_expect(value, str, "base64 text"), validate=True)
    except (binascii.Error, ValueError):
        raise DataError("Invalid bytes field: it is not base64") from None


def _decimal(value: Any, scale: int) -> Decimal:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        number = Decimal(repr(value))
        # JSON drops zeros at the end; with them the number is one that can be written again.
        padded = Decimal((0, (1,), -scale))
        return number.quantize(padded) if -number.as_tuple().exponent < scale else number  # type: ignore[operator]
    try:
        return decimal_from_bytes(_base64(value), scale)
    except ValueError as error:
        raise DataError(f"Invalid bytes for Decimal field: {error}") from None


def _read_float(value: Any) -> float:
    if value in ("NaN", "Infinity", "-Infinity"):
        return float(value.replace("Infinity", "inf"))
    return float(_expect(value, (float, int), "a number"))


_PLAIN_WRITERS: Final[Mapping[Kind, Convert]] = {
    **{kind: _integer(bits) for kind, bits in BITS.items()},
    Kind.FLOAT32: _float32,
    Kind.FLOAT64: _float64,
    Kind.BOOLEAN: lambda value: _expect(value, bool, "a boolean"),
    Kind.STRING: lambda value: _expect(value, str, "a string"),
    Kind.BYTES: _bytes_text,
}
_PLAIN_READERS: Final[Mapping[Kind, Convert]] = {
    **{kind: _integer(bits) for kind, bits in BITS.items()},
    Kind.FLOAT32: _read_float,
    Kind.FLOAT64: _read_float,
    Kind.BOOLEAN: lambda value: _expect(value, bool, "a boolean"),
    Kind.STRING: lambda value: _expect(value, str, "a string"),
    Kind.BYTES: _base64,
}
