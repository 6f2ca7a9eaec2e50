"""Rows of topics as Spark columns: JSON, DELIMITED and KAFKA, read and written as `moldau.formats` does.

What Spark reads differently, such as a number in quotes or a name in another case, is not read here: such a row is
marked as `odd`, and Python reads it. `format_reason` is pure and tells which rows have a native form. Start at
`reader` and `writer`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from moldau.formats.columns import Column as RowColumn
from moldau.formats.row_serde import RowSerde
from moldau.formats.types import BIGINT, BOOLEAN, DOUBLE, INTEGER, STRING, TIME, DecimalType, SqlType
from moldau.formats.values import DAY_MS
from moldau.pipeline.spark.native.sql.checks import PLAIN_SCALE
from moldau.pipeline.spark.native.sql.expressions import any_of, double_text
from moldau.pipeline.spark.native.sql.types import is_native, spark_name
from moldau.serdes.serde import Serde

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["ReadRow", "format_reason", "reader", "writer"]

_KAFKA_SIZES: dict[SqlType, int] = {INTEGER: 4, BIGINT: 8}


def format_reason(serde: Serde, *, is_key: bool) -> str | None:
    """Why rows of a serde need Python; None if they have a native form."""
    if not isinstance(serde, RowSerde):
        return f"{type(serde).__name__} is read and written by Python"
    name, columns = serde.row_format.format.name, serde.columns
    if not columns:
        return None if is_key else "a value without columns is read by Python"
    if name == "KAFKA":
        known = columns[0].type in (STRING, *_KAFKA_SIZES)
        return None if known else f"{columns[0].type} in KAFKA is read and written by Python"
    if name not in ("JSON", "DELIMITED"):
        return f"{name} is read and written by Python"
    if name == "JSON" and (is_key or serde.row_format.is_bare(columns)):
        return "JSON that is no object is read and written by Python"
    if is_key:
        return f"{name} keys are read and written by Python"
    return _columns_reason(name, columns)


def _columns_reason(name: str, columns: Sequence[RowColumn]) -> str | None:
    for column in columns:
        if not is_native(column.type):
            return f"column {column.name} of type {column.type} has no native form"
        if isinstance(column.type, DecimalType) and column.type.scale > PLAIN_SCALE:
            return f"column {column.name} of type {column.type} is written by Python"
    if name == "JSON" and len({column.name.upper() for column in columns}) < len(columns):
        return "columns that differ by case only are told apart by Python"
    if name == "DELIMITED" and len(columns) < 2:
        return "a single DELIMITED column is read and written by Python"
    return None


# --- reading ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ReadRow:
    """The columns of a row that was read, and whether Python has to read it; null data gives null columns."""

    columns: tuple[Column, ...]
    odd: Column | None


def reader(rows: DataFrame, serde: RowSerde, part: str, prefix: str) -> tuple[DataFrame, ReadRow]:
    """The rows with what is needed to read a part of them under names with a prefix, and the columns of that part."""
    from pyspark.sql import functions as f

    columns, data = serde.columns, f.col(part)
    name = serde.row_format.format.name
    if not columns:
        return rows, ReadRow((), None)
    if name == "KAFKA":
        return rows, _kafka_row(columns[0].type, data)
    text = f"{prefix}text"
    rows = rows.withColumn(text, data.cast("string"))
    if name == "DELIMITED":
        rows = rows.withColumn(f"{prefix}fields", f.split(f.col(text), re.escape(serde.row_format.delimiter), -1))
        return rows, _delimited_row(columns, f.col(text), f.col(f"{prefix}fields"), serde.row_format.delimiter)
    document = f"{prefix}document"
    # Spark tells names in one case from names in another when it reads JSON, but not when a column is named.
    parsed = f.from_json(f.col(text), _document_schema(columns), _JSON_OPTIONS)
    rows = rows.withColumn(document, parsed.cast(_numbered_struct(columns)))
    return rows, _json_row(columns, f.col(text), f.col(document))


def _kafka_row(sql_type: SqlType, data: Column) -> ReadRow:
    from pyspark.sql import functions as f

    if sql_type == STRING:
        text = data.cast("string")
        return ReadRow((text,), f.coalesce(~f.is_valid_utf8(text), f.lit(False)))
    size = _KAFKA_SIZES[sql_type]
    fits = f.octet_length(data) == size
    number = f.conv(f.hex(f.when(fits, data)), 16, -10).cast("bigint")
    if sql_type == INTEGER:
        number = f.shiftright(f.shiftleft(number, 32), 32).cast("int")
    return ReadRow((number,), f.coalesce(~fits, f.lit(False)))


_CORRUPT = "corrupt record"

_JSON_OPTIONS = {
    "mode": "PERMISSIVE",
    "columnNameOfCorruptRecord": _CORRUPT,
    "allowSingleQuotes": "false",
    "allowNonNumericNumbers": "false",
}


def _read_type(sql_type: SqlType) -> str:
    """The type as which Spark reads a member: numbers whose digits matter are read as they are written."""
    return "string" if isinstance(sql_type, DecimalType) else spark_name(sql_type)


def _document_schema(columns: Sequence[RowColumn]) -> str:
    """The members to read, as Spark's DDL."""
    named = [(name, _read_type(column.type)) for column in columns for name in _spellings(column.name)]
    quoted = [(name.replace("`", "``"), kind) for name, kind in [*named, (_CORRUPT, "string")]]
    return ", ".join(f"`{name}` {kind}" for name, kind in quoted)


def _numbered_struct(columns: Sequence[RowColumn]) -> str:
    members = [_read_type(column.type) for column in columns for _ in _spellings(column.name)]
    fields = (f"m{number}:{kind}" for number, kind in enumerate([*members, "string"]))
    return f"struct<{','.join(fields)}>"


def _members(columns: Sequence[RowColumn], document: Column) -> tuple[list[list[Column]], Column]:
    """The member of each column in each of its spellings, and the whole text if it could not be read."""
    members, number = [], 0
    for column in columns:
        count = len(_spellings(column.name))
        members.append([document[f"m{place}"] for place in range(number, number + count)])
        number += count
    return members, document[f"m{number}"]


def _spellings(name: str) -> list[str]:
    """How a column's member may be spelled: exactly, or in any case if the column is in upper case."""
    lowered = name.lower()
    return [name, lowered] if name.upper() == name and lowered != name else [name]


def _looks_upper() -> str:
    """The characters beyond ASCII that become ASCII ones in upper case, for a regular expression."""
    found = [chr(code) for code in range(0x80, sys.maxunicode + 1) if chr(code).upper().isascii()]
    return "".join(found)


_NEARLY_ASCII = _looks_upper()

_FRACTION = r"^-?[0-9]+\.[0-9]+([eE][+-]?[0-9]+)?\z"
"""What Spark makes of a number with a fraction or an exponent that stands where a text should be."""


def _json_row(columns: Sequence[RowColumn], text: Column, document: Column) -> ReadRow:
    from pyspark.sql import functions as f

    members, corrupt = _members(columns, document)
    odd: list[Column | None] = [
        document.isNull(),
        corrupt.isNotNull(),
        ~f.startswith(text, f.lit("{")),
        ~f.is_valid_utf8(text),
        # Half of a surrogate pair is a character in Python and none in Spark.
        f.contains(text, f.lit("\\ud")),
        f.contains(text, f.lit("\\uD")),
    ]
    found: list[Column] = []
    for column, (value, *others) in zip(columns, members, strict=True):
        for other in others:
            odd.append(value.isNull() & other.isNotNull() & f.contains(text, f.lit(f'"{column.name}"')))
            value = f.coalesce(value, other)
        found.append(value)
    odd.append(_has_other_spellings(columns, text, members))
    made = [_json_value(column.type, value) for column, value in zip(columns, found, strict=True)]
    odd += [is_odd for _, is_odd in made]
    is_odd = any_of(odd)
    assert is_odd is not None
    return ReadRow(
        tuple(value for value, _ in made),
        f.when(text.isNull(), f.lit(False)).otherwise(f.coalesce(is_odd, f.lit(True))),
    )


def _has_other_spellings(columns: Sequence[RowColumn], text: Column, members: list[list[Column]]) -> Column | None:
    """Whether a member that was not found might be there in another spelling."""
    from pyspark.sql import functions as f

    names = [column.name for column in columns if len(_spellings(column.name)) > 1]
    if not names:
        return None
    known = "|".join(re.escape(spelling) for name in names for spelling in _spellings(name))
    any_case = "|".join(re.escape(name) for name in names)
    other_letters = f'"[^"]*(?:\\\\u|[{_NEARLY_ASCII}])[^"]*"\\s*:'
    foreign = f'"(?!(?:{known})")(?i:{any_case})"|{other_letters}'
    missing = any_of(spelled[0].isNull() for spelled in members if len(spelled) > 1)
    assert missing is not None
    return f.when(missing, text.rlike(foreign)).otherwise(f.lit(False))


def _json_value(sql_type: SqlType, value: Column) -> tuple[Column, Column | None]:
    from pyspark.sql import functions as f

    if sql_type == STRING:
        first = f.substring(value, 1, 1)
        other = first.isin("{", "[", '"') | (first.between("-", "9") & value.rlike(_FRACTION))
        return value, f.coalesce(other, f.lit(False))
    if isinstance(sql_type, DecimalType):
        return _decimal(sql_type, value)
    if sql_type == TIME:
        return value, f.coalesce((value < 0) | (value > DAY_MS), f.lit(False))
    return value, None


def _decimal(sql_type: DecimalType, text: Column) -> tuple[Column, Column]:
    """A decimal whose digits all fit; any other text is left to Python."""
    from pyspark.sql import functions as f

    whole, scale = max(sql_type.precision - sql_type.scale, 1), sql_type.scale
    fraction = rf"(\.[0-9]{{1,{scale}}})?" if scale else ""
    fits = text.rlike(rf"^-?[0-9]{{1,{whole}}}{fraction}\z")
    made = f.when(fits, text).try_cast(spark_name(sql_type))
    return made, f.coalesce(text.isNotNull() & made.isNull(), f.lit(True))


def _delimited_row(columns: Sequence[RowColumn], text: Column, fields: Column, delimiter: str) -> ReadRow:
    from pyspark.sql import functions as f

    fits = f.size(fields) == len(columns)
    odd: list[Column | None] = [~fits, ~f.is_valid_utf8(text), text.rlike('["\r\n]')]
    values = []
    for place, column in enumerate(columns):
        field = f.get(fields, f.lit(place))
        value, is_odd = _delimited_value(column.type, f.when(field != "", field))
        values.append(value)
        odd.append(is_odd)
    is_odd = any_of(odd)
    assert is_odd is not None
    return ReadRow(tuple(values), f.when(text.isNull(), f.lit(False)).otherwise(f.coalesce(is_odd, f.lit(True))))


def _delimited_value(sql_type: SqlType, field: Column) -> tuple[Column, Column | None]:
    from pyspark.sql import functions as f

    if sql_type == STRING:
        return field, None
    if sql_type == BOOLEAN:
        return f.lower(field) == "true", f.coalesce(f.octet_length(field) != f.length(field), f.lit(False))
    if isinstance(sql_type, DecimalType):
        return _decimal(sql_type, field)
    pattern = r"^-?[0-9]{1,18}(\.[0-9]{1,15})?\z" if sql_type == DOUBLE else r"^-?[0-9]{1,19}\z"
    value = f.when(field.rlike(pattern), field).try_cast(spark_name(sql_type))
    odd = field.isNotNull() & value.isNull()
    if sql_type == TIME:
        odd = odd | f.coalesce((value < 0) | (value > DAY_MS), f.lit(False))
    return value, odd


# --- writing ---------------------------------------------------------------------------------------------------


def writer(serde: RowSerde, values: Sequence[Column]) -> tuple[Column, Column | None]:
    """The bytes of a row that is not null, and whether Python has to write it."""
    from pyspark.sql import functions as f

    name, columns = serde.row_format.format.name, serde.columns
    if not columns:
        return f.lit(None).cast("binary"), None
    if name == "KAFKA":
        return _kafka_bytes(columns[0].type, values[0]), None
    if name == "DELIMITED":
        return _delimited_bytes(columns, values, serde.row_format.delimiter)
    fields = [value.alias(column.name) for column, value in zip(columns, values, strict=True)]
    text = f.to_json(f.struct(*fields), {"ignoreNullFields": "false"})
    doubles = [double_text(value)[1] for column, value in zip(columns, values, strict=True) if column.type == DOUBLE]
    # Control characters have other escapes.
    return text.cast("binary"), any_of([*doubles, f.contains(text, f.lit("\\u00"))])


def _kafka_bytes(sql_type: SqlType, value: Column) -> Column:
    from pyspark.sql import functions as f

    if sql_type == STRING:
        return value.cast("binary")
    digits = f.lpad(f.hex(value.cast("bigint")), 16, "0")
    return f.unhex(digits if sql_type == BIGINT else f.right(digits, f.lit(8)))


def _delimited_bytes(columns: Sequence[RowColumn], values: Sequence[Column], delimiter: str) -> tuple[Column, Column]:
    """Fields that need no quotes; a row with any other is written by Python."""
    from pyspark.sql import functions as f

    odd: list[Column | None] = []
    texts = []
    for place, (column, value) in enumerate(zip(columns, values, strict=True)):
        if column.type == DOUBLE:
            text, is_unsure = double_text(value)
            odd.append(is_unsure)
        else:
            text = value.cast("string")
        if column.type == STRING or place == 0:
            plain = rf"^[A-Za-z0-9]([^\u0000-\u0020\"{re.escape(delimiter)}]*)\z"
            odd.append(f.coalesce(~text.rlike(plain), f.lit(False)))
        elif re.match(r"[-+.0-9A-Za-z]", delimiter):
            odd.append(f.contains(text, f.lit(delimiter)))
        texts.append(f.coalesce(text, f.lit("")))
    is_odd = any_of(odd)
    assert is_odd is not None
    return f.concat_ws(delimiter, *texts).cast("binary"), f.coalesce(is_odd, f.lit(False))
