"""The WITH clause: which properties there are, and what their values mean. Start at `WithProperties.of`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from moldau.formats.errors import FormatError
from moldau.formats.format import (
    DELIMITER,
    FULL_NAME,
    NULLABLE,
    SCHEMA_ID,
    NullableRepresentation,
    RowFormat,
    parse_delimiter,
    row_format,
)
from moldau.pipeline.cores.sql.failures import ExpressionError
from moldau.pipeline.cores.sql.time.patterns import read_pattern
from moldau.pipeline.ksql.catalogue.sources import KeyWindow, TimestampColumn, WindowKind
from moldau.pipeline.ksql.errors import KsqlError
from moldau.pipeline.ksql.syntax.errors import KsqlParseError
from moldau.pipeline.ksql.syntax.expressions import (
    BooleanLiteral,
    IntegerLiteral,
    LongLiteral,
    NullLiteral,
    StringLiteral,
)
from moldau.pipeline.ksql.syntax.statements import Literal, Property, TimeUnit

__all__ = ["WithProperties", "folded_name"]

COMMON: Final = (
    "KAFKA_TOPIC",
    "FORMAT",
    "KEY_FORMAT",
    "VALUE_FORMAT",
    "PARTITIONS",
    "REPLICAS",
    "RETENTION_MS",
    "CLEANUP_POLICY",
    "TIMESTAMP",
    "TIMESTAMP_FORMAT",
    "WRAP_SINGLE_VALUE",
    "KEY_DELIMITER",
    "VALUE_DELIMITER",
    "KEY_SCHEMA_ID",
    "VALUE_SCHEMA_ID",
    "KEY_SCHEMA_FULL_NAME",
    "VALUE_SCHEMA_FULL_NAME",
    "VALUE_AVRO_SCHEMA_FULL_NAME",
    "KEY_PROTOBUF_NULLABLE_REPRESENTATION",
    "VALUE_PROTOBUF_NULLABLE_REPRESENTATION",
    "SOURCED_BY_CONNECTOR",
)
CREATE: Final = frozenset({*COMMON, "WINDOW_TYPE", "WINDOW_SIZE"})
CREATE_AS: Final = frozenset({*COMMON, "QUERY_ID"})
INSERT: Final = frozenset({"QUERY_ID"})

_DURATION = re.compile(r"\s*(\d+)\s+([A-Za-z]+)\s*")


@dataclass(frozen=True, slots=True)
class WithProperties:
    """The properties of one statement, by name in upper case."""

    values: Mapping[str, Literal]

    @classmethod
    def of(cls, properties: Sequence[Property], allowed: frozenset[str]) -> WithProperties:
        """Read a WITH clause; raises for names that are not allowed there."""
        values = {one.name.upper(): one.value for one in properties}
        unknown = sorted(name for name in values if name not in allowed)
        if unknown:
            raise KsqlError(f"Invalid config variable(s) in the WITH clause: {','.join(unknown)}")
        made = cls(values)
        made.check()
        return made

    def check(self) -> None:
        """Raise for values that no statement can have."""
        for part in ("KEY", "VALUE"):
            if f"{part}_FORMAT" in self.values and "FORMAT" in self.values:
                raise KsqlError(
                    f"Cannot supply both '{part}_FORMAT' and 'FORMAT' properties, as 'FORMAT' sets both key and value "
                    f"formats. Either use just 'FORMAT', or use 'KEY_FORMAT' and 'VALUE_FORMAT'."
                )
            if f"{part}_DELIMITER" in self.values:
                self.delimiter(part)
        if "CLEANUP_POLICY" in self.values:
            raise KsqlError(
                "Invalid config variable in the WITH clause: CLEANUP_POLICY.\nThe CLEANUP_POLICY config is "
                "automatically inferred based on the type of source (STREAM or TABLE).\nUsers can't set the "
                "CLEANUP_POLICY config manually."
            )
        self.window()
        self._check_time_pattern()

    def _check_time_pattern(self) -> None:
        pattern = self.text("TIMESTAMP_FORMAT")
        if pattern is None:
            return
        try:
            read_pattern(pattern)
        except ExpressionError as error:
            raise KsqlError(f"Invalid datetime format for config:TIMESTAMP_FORMAT, reason:{error}") from None

    # --- values by type

    def text(self, name: str) -> str | None:
        """The value of a property as text."""
        value = self.values.get(name)
        if value is None or isinstance(value, NullLiteral):
            return None
        return value.value if isinstance(value, StringLiteral) else str(_plain(value))

    def number(self, name: str) -> int | None:
        """The value of a property as a whole number."""
        value = self.values.get(name)
        if value is None:
            return None
        if isinstance(value, IntegerLiteral | LongLiteral):
            return value.value
        if isinstance(value, StringLiteral) and re.fullmatch(r"\s*-?\d+\s*", value.value):
            return int(value.value)
        raise KsqlError(f"Invalid value {_plain(value)} for configuration {name}: Not a number of type INT")

    def flag(self, name: str) -> bool | None:
        """The value of a property as a truth value."""
        value = self.values.get(name)
        if value is None:
            return None
        if isinstance(value, BooleanLiteral):
            return value.value
        if isinstance(value, StringLiteral) and value.value.lower() in ("true", "false"):
            return value.value.lower() == "true"
        raise KsqlError(
            f"Invalid value {_plain(value)} for configuration {name}: Expected value to be either true or false"
        )

    # --- what they mean

    def format_name(self, part: str) -> str | None:
        """The name of the format of `KEY` or `VALUE`, if the statement gives one."""
        return self.text(f"{part}_FORMAT") or self.text("FORMAT")

    def delimiter(self, part: str) -> str:
        """The delimiter that is given for `KEY` or `VALUE`."""
        try:
            return parse_delimiter(self.text(f"{part}_DELIMITER") or "")
        except FormatError as error:
            raise KsqlError(
                f"Failed to prepare statement: Configuration {part}_DELIMITER is invalid: {error}"
            ) from None

    def format_options(self, part: str) -> dict[str, str]:
        """The options of the format of `KEY` or `VALUE`, by the names that `formats` uses."""
        options: dict[str, str] = {}
        full_name = self.text(f"{part}_SCHEMA_FULL_NAME")
        if part == "VALUE":
            full_name = full_name or self.text("VALUE_AVRO_SCHEMA_FULL_NAME")
        if full_name is not None:
            options[FULL_NAME] = full_name
        schema_id = self.number(f"{part}_SCHEMA_ID")
        if schema_id is not None:
            options[SCHEMA_ID] = str(schema_id)
        nullable = self.text(f"{part}_PROTOBUF_NULLABLE_REPRESENTATION")
        if nullable is not None:
            if nullable.upper() not in NullableRepresentation.__members__:
                raise KsqlError(
                    f"Invalid value {nullable} for configuration {part}_PROTOBUF_NULLABLE_REPRESENTATION: String must "
                    f"be one of: {', '.join(NullableRepresentation.__members__)}, null"
                )
            options[NULLABLE] = nullable
        if f"{part}_DELIMITER" in self.values:
            options[DELIMITER] = self.delimiter(part)
        return options

    def format(self, part: str, name: str) -> RowFormat:
        """The format of that name with the options that the statement gives for `KEY` or `VALUE`."""
        return row_format(name, self.format_options(part), is_key=part == "KEY")

    def timestamp(self) -> TimestampColumn | None:
        """The column that gives the time of records; its name folds as names do."""
        name = self.text("TIMESTAMP")
        if name is None:
            return None
        return TimestampColumn(folded_name(name), self.text("TIMESTAMP_FORMAT"))

    def window(self) -> KeyWindow | None:
        """The window of the topic's keys."""
        kind, size = self.text("WINDOW_TYPE"), self.text("WINDOW_SIZE")
        if kind is None:
            if size is not None:
                raise KsqlParseError("'WINDOW_SIZE' requires 'WINDOW_TYPE' to be set.")
            return None
        if kind.upper() not in WindowKind.__members__:
            raise KsqlError(
                f"Invalid value {kind} for configuration WINDOW_TYPE: String must be one of: "
                f"{', '.join(sorted(WindowKind.__members__))}, null"
            )
        chosen = WindowKind[kind.upper()]
        if chosen is WindowKind.SESSION:
            if size is not None:
                raise KsqlParseError("'WINDOW_SIZE' should not be set for SESSION windows.")
            return KeyWindow(chosen)
        if size is None:
            raise KsqlParseError(
                f"{chosen.name} windows require 'WINDOW_SIZE' to be provided in the WITH clause. For example: "
                "'WINDOW_SIZE'='10 SECONDS'"
            )
        return KeyWindow(chosen, _duration_ms(size))


def _plain(value: Literal) -> object:
    return "null" if isinstance(value, NullLiteral) else value.value


def _duration_ms(text: str) -> int:
    match = _DURATION.fullmatch(text)
    unit = "" if match is None else match[2].upper().removesuffix("S") + "S"
    if match is None or unit not in TimeUnit.__members__:
        raise KsqlError(
            f"Configuration WINDOW_SIZE is invalid: Invalid duration: '{text}'. Expected a number followed by a unit, "
            "e.g. '10 SECONDS'"
        )
    size = int(match[1]) * TimeUnit[unit].value
    if size <= 0:
        raise KsqlError(f"Configuration WINDOW_SIZE is invalid: The size must be positive, but is '{text}'")
    return size


def folded_name(name: str) -> str:
    """A name given as a text: upper case unless it is quoted inside the text."""
    if len(name) > 1 and name[0] == name[-1] and name[0] in '`"':
        return name[1:-1].replace(name[0] * 2, name[0])
    return name.upper()
