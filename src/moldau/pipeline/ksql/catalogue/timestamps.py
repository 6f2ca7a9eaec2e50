"""The TIMESTAMP property: which columns can give the time of a record. Start at `check_timestamp`."""

from __future__ import annotations

from moldau.formats.columns import Column, RowSchema
from moldau.formats.types import BIGINT, STRING, TIMESTAMP
from moldau.pipeline.ksql.catalogue.sources import TimestampColumn
from moldau.pipeline.ksql.errors import KsqlError

__all__ = ["check_timestamp"]


def check_timestamp(timestamp: TimestampColumn, schema: RowSchema) -> tuple[Column, bool, int]:
    """The column that gives the time, whether it is in the key, and its position there; raises if it cannot."""
    for columns, is_in_key in ((schema.key, True), (schema.value, False)):
        for position, column in enumerate(columns):
            if column.name == timestamp.name:
                _check_type(column, timestamp)
                return column, is_in_key, position
    raise KsqlError(f"The TIMESTAMP column set in the WITH clause does not exist in the schema: '{timestamp.name}'")


def _check_type(column: Column, timestamp: TimestampColumn) -> None:
    if column.type == STRING and timestamp.pattern is None:
        raise KsqlError("A String timestamp field has been specified without also specifying the timestamp_format")
    if column.type == STRING:
        return
    if timestamp.pattern is not None:
        raise KsqlError(
            "'TIMESTAMP_FORMAT' set, but 'TIMESTAMP' is not a String. Only String columns can have a format."
        )
    if column.type not in (BIGINT, TIMESTAMP):
        raise KsqlError(
            f"Timestamp column, `{column.name}`, should be LONG(INT64), TIMESTAMP, or a String with a "
            "timestamp_format specified"
        )
