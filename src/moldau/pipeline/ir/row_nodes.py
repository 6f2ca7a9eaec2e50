"""Nodes that only typed rows have: columns from the record around a row, and the timestamp as a column.

They are in a file of their own because front ends without rows never see them.
"""

from __future__ import annotations

from moldau.pipeline.ir.nodes import OneInput, node
from moldau.pipeline.ir.row_functions import RowTimestamp

__all__ = ["AddRecordColumns", "SetTimestamp"]


@node
class AddRecordColumns(OneInput):
    """Append to each row what its record has beside the value; a null value stays null.

    In this order: the headers, the timestamp, the partition, the offset, the columns of the key, and the window's start
    and end if the key has one.
    """

    headers: tuple[str | None, ...] = ()
    """The headers to append: the last one of a name, or for None the list of all as (key, value) pairs."""
    key_width: int
    """The number of key columns: so many nulls stand for a null key."""
    has_window: bool = False


@node
class SetTimestamp(OneInput):
    """Replace the timestamp of each record by that of a column; a record without one is dropped."""

    timestamp: RowTimestamp
