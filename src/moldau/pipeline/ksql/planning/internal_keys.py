"""Keys between the steps of a query: in the format of the source, unless that cannot hold them.

The order of keys in a store is visible in foreign-key joins, and their partition in joins with topics, so keys keep
their format where they can. Start at `internal_key_format` and `internal_key_serde`.
"""

from __future__ import annotations

from moldau.formats.checks import check_columns
from moldau.formats.columns import Column
from moldau.formats.errors import FormatError
from moldau.formats.format import RowFormat, row_format
from moldau.formats.internal_rows import InternalRowSerde
from moldau.formats.row_serde import RowSerde
from moldau.serdes.serde import Serde

__all__ = ["internal_key_format", "internal_key_serde"]


def internal_key_format(key_format: RowFormat, key: tuple[Column, ...]) -> RowFormat:
    """The format for these key columns inside a query; JSON where the source's own cannot hold them."""
    if key_format.format.name != "NONE":
        try:
            check_columns(key_format.for_key(key), key)
        except FormatError as error:
            if "Map keys" in str(error):
                raise
        else:
            return key_format
    return row_format("JSON", is_key=True)


def internal_key_serde(key_format: RowFormat, key: tuple[Column, ...]) -> Serde:
    """The serde of keys in stores and internal topics.

    Schemas of internal topics are nobody's business, so keys of registry formats get a format without schemas.
    """
    if not key or key_format.format.name == "NONE":
        return InternalRowSerde(key)
    if not key_format.format.uses_registry:
        return RowSerde(key_format.for_key(key), key)
    plain = row_format("JSON" if key_format.format.name == "JSON_SR" else "KAFKA", is_key=True)
    return RowSerde(internal_key_format(plain, key).for_key(key), key)
