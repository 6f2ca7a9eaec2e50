"""Errors of formats: `FormatError` for a statement that no record could satisfy, `RowError` for one record."""

from __future__ import annotations

from moldau.core.errors import MoldauError
from moldau.serdes.serde import SerdeError

__all__ = ["FormatError", "RowError"]


class FormatError(MoldauError):
    """A format cannot hold these columns, or does not have this option. Its text is the one ksqlDB users know."""


class RowError(SerdeError):
    """One record's bytes are not a row of the columns, or one row cannot be written; the next may be fine."""
