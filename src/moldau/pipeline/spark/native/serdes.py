"""Keys and values as Spark columns: which serdes Spark can read and write natively, and how.

A serde without a native form needs Python. Bytes that the serde cannot read stop the pipeline, or are skipped,
depending on its settings. Start at `decoded_column`, `encoded_column` and `is_readable`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.pipeline.ir.types import Array, DataType, Map, Primitive, Struct
from moldau.pipeline.spark.native.expressions import NotNativeError, spark_type
from moldau.serdes.plain import BytesSerde, IntegerSerde, JsonSerde, LongSerde, ShortSerde, StringSerde
from moldau.serdes.serde import Serde

if TYPE_CHECKING:
    from pyspark.sql import Column

__all__ = ["READABLE", "decoded_column", "encoded_column", "is_readable"]

READABLE = (BytesSerde, StringSerde, LongSerde, IntegerSerde, ShortSerde, JsonSerde)
"""The serdes whose bytes Spark can read."""

_SIZES = {LongSerde: 8, IntegerSerde: 4, ShortSerde: 2}


def is_readable(serde: Serde, data: Column) -> Column | None:
    """Whether the serde can read the bytes or they are null; None if it can read all bytes."""
    from pyspark.sql import functions as f

    match serde:
        case BytesSerde():
            return None
        case StringSerde(encoding="utf-8"):
            return data.isNull() | f.is_valid_utf8(data.cast("string"))
        case LongSerde() | IntegerSerde() | ShortSerde():
            return data.isNull() | (f.octet_length(data) == _SIZES[type(serde)])
        case JsonSerde():
            # `from_json` returns a struct of nulls for invalid JSON; only this function detects it. Unlike Python it
            # accepts text after a complete document.
            return data.isNull() | f.try_parse_json(data.cast("string")).isNotNull()
        case _:
            raise NotNativeError(f"{type(serde).__name__} has no native form")


def decoded_column(serde: Serde, data: Column) -> Column:
    """The value of serialized bytes."""
    from pyspark.sql import functions as f

    match serde:
        case BytesSerde():
            return data
        case StringSerde(encoding="utf-8"):
            return data.cast("string")
        case LongSerde() | IntegerSerde() | ShortSerde():
            return _number(serde, data)
        case JsonSerde():
            if not isinstance(serde.data_type, Struct | Array | Map):
                raise NotNativeError("JSON without a data_type can be read by Python only")
            return f.from_json(data.cast("string"), spark_type(serde.data_type))
        case _:
            raise NotNativeError(f"{type(serde).__name__} has no native form")


def _number(serde: Serde, data: Column) -> Column:
    from pyspark.sql import functions as f

    size = _SIZES[type(serde)]  # type: ignore[index]
    # A negative target base makes 64 bits a signed number; for fewer bits the sign is set below.
    number = f.conv(f.hex(f.when(f.octet_length(data) == size, data)), 16, -10).cast("bigint")
    if isinstance(serde, LongSerde):
        return number
    return f.when(number >= 2 ** (8 * size - 1), number - 2 ** (8 * size)).otherwise(number).cast("int")


def encoded_column(serde: Serde, value: Column, data_type: DataType | None) -> Column:
    """The bytes of a value of this type."""
    from pyspark.sql import functions as f

    match serde:
        case BytesSerde() if data_type is Primitive.BYTES:
            return value
        case StringSerde(encoding="utf-8") if data_type is Primitive.STRING:
            return value.cast("binary")
        case LongSerde() if data_type in (Primitive.BIGINT, Primitive.INTEGER):
            return f.unhex(f.lpad(f.hex(value.cast("bigint")), 16, "0"))
        case IntegerSerde() if data_type is Primitive.INTEGER:
            return f.unhex(f.right(f.lpad(f.hex(value.cast("bigint")), 16, "0"), f.lit(8)))
        case JsonSerde() if isinstance(data_type, Struct | Array | Map):
            return f.to_json(value, {"ignoreNullFields": "false"}).cast("binary")
        case JsonSerde() if data_type in (Primitive.BIGINT, Primitive.INTEGER, Primitive.BOOLEAN):
            return value.cast("string").cast("binary")
        case _:
            raise NotNativeError(f"{type(serde).__name__} cannot write {data_type} by itself")
