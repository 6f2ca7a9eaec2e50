"""The schemas of a topic's keys and values in a registry: inferred as columns, checked, registered.

Formats without a registry are left alone. Start at `TopicSchemas`.
"""

from __future__ import annotations

from moldau.formats.columns import Column
from moldau.formats.errors import FormatError
from moldau.formats.format import Feature, RowFormat
from moldau.formats.registry.schema_texts import derived_schema, inferred_columns
from moldau.serdes.schema_source import (
    RegisteredSchema,
    SchemaSource,
    SchemaText,
    UnfitValueError,
    subject_name,
)

__all__ = ["TopicSchemas"]


class TopicSchemas:
    """Schemas of topics, by the subjects `<topic>-key` and `<topic>-value`."""

    def __init__(self, source: SchemaSource) -> None:
        self.source = source

    def inferred(self, topic: str, row_format: RowFormat) -> tuple[Column, ...]:
        """The columns of a side without declared ones; raises `FormatError` if there is no schema."""
        registered = self._existing(topic, row_format)
        return inferred_columns(
            registered.parsed,
            row_format,
            has_bare_value=not row_format.is_key and row_format.wrapping is Feature.UNWRAP_SINGLES,
            by_id=row_format.schema_id is not None,
        )

    def check(self, topic: str, row_format: RowFormat, columns: tuple[Column, ...]) -> None:
        """Raise `FormatError` if the schema that the statement names by its id cannot hold these columns.

        Its first columns have to be these, in this order; what it has more is filled with defaults.
        """
        if row_format.schema_id is None or not row_format.format.uses_registry:
            return
        found = self.inferred(topic, row_format)
        wrong = [
            column for index, column in enumerate(columns) if index >= len(found) or not _is_alike(column, found[index])
        ]
        if wrong:
            raise FormatError(
                f"The following {row_format.part} columns are changed, missing or reordered: "
                f"[{', '.join(map(str, wrong))}]. Schema from schema registry is [{', '.join(map(str, found))}]"
            )

    def register_if_absent(self, topic: str, row_format: RowFormat, columns: tuple[Column, ...]) -> None:
        """Register the schema of these columns unless the topic has one."""
        if columns and row_format.format.uses_registry and self.source.latest(_subject(topic, row_format)) is None:
            self.register(topic, row_format, columns)

    def register(self, topic: str, row_format: RowFormat, columns: tuple[Column, ...]) -> None:
        """Register the schema of these columns, or the one that the statement names, as the newest of the topic."""
        if not columns or not row_format.format.uses_registry:
            return
        if row_format.schema_id is None:
            schema = derived_schema(row_format, columns)
        else:
            found = self._existing(topic, row_format)
            schema = SchemaText(str(found.parsed.schema_type), found.parsed.canonical, found.references)
        self.source.registered(_subject(topic, row_format), schema, may_register=True)

    def _existing(self, topic: str, row_format: RowFormat) -> RegisteredSchema:
        subject = _subject(topic, row_format)
        try:
            if row_format.schema_id is not None:
                return self.source.schema(row_format.schema_id)
            found = self.source.latest(subject)
        except UnfitValueError:
            found = None
        if found is None:
            by_id = "" if row_format.schema_id is None else f" with schema id '{row_format.schema_id}'"
            raise FormatError(
                f"Schema for message {row_format.part}s on topic '{topic}'{by_id} does not exist in the Schema "
                f"Registry.\nSubject: {subject}\nRegister a schema of type {row_format.format.schema_type} under that "
                f"subject, or declare the {row_format.part} columns in the statement"
            )
        return found


def _subject(topic: str, row_format: RowFormat) -> str:
    return subject_name("TopicNameStrategy", topic, None, is_key=row_format.is_key)


def _is_alike(one: Column, other: Column) -> bool:
    return one.name == other.name and one.type == other.type
