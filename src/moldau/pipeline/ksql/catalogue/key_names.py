"""The names of records in keys, which Avro wants; ksqlDB makes them of the source's name."""

from __future__ import annotations

from dataclasses import replace

from moldau.formats.format import RowFormat
from moldau.formats.registry.avro_schemas import key_full_name

__all__ = ["with_key_name"]


def with_key_name(key_format: RowFormat, source: str) -> RowFormat:
    """The format of a source's keys, with the name that its records are registered under."""
    if key_format.format.name != "AVRO" or key_format.full_name is not None:
        return key_format
    return replace(key_format, full_name=key_full_name(source))
