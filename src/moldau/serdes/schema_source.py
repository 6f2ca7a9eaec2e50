"""Interface from which serdes get their schemas; the client implements it with a schema registry.

A serde that needs schemas has a method `with_schema_source`. It keeps the function that connects, not the connection,
so it can be pickled; another process then opens its own connection. Start at `SchemaSource`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol

from moldau.core.errors import InvalidConfigError, ServiceError
from moldau.serdes.serde import SerdeError

if TYPE_CHECKING:
    # Every command imports the errors below, but most commands need no schemas.
    from moldau.schemas.identity import SchemaReference
    from moldau.schemas.parsed_schema import ParsedSchema

__all__ = [
    "ConnectSchemas",
    "RegisteredSchema",
    "SchemaSource",
    "SchemaSourceError",
    "SchemaText",
    "UnfitValueError",
    "subject_name",
]


class SchemaSourceError(ServiceError):
    """Schemas are unavailable, or one was rejected. Not caused by a record, so no record may be skipped for it."""


class UnfitValueError(SerdeError):
    """A value that does not fit its schema, or bytes that were not written with a known schema."""


class SchemaText(NamedTuple):
    """A schema in the form in which it is registered."""

    schema_type: str
    text: str
    references: tuple[SchemaReference, ...] = ()
    message: str | None = None
    """Name of the Protobuf message type, if it is not the first one of the schema."""


class RegisteredSchema(NamedTuple):
    """A schema with its id, which is part of the data written with it."""

    id: int
    parsed: ParsedSchema
    references: tuple[SchemaReference, ...] = ()


class SchemaSource(Protocol):
    """Source of schemas by id and by subject. Thread-safe; results are expected to be cached after the first call.

    Every method raises `SchemaSourceError` if the source is unavailable or returns an error.
    """

    def schema(self, name: int | str) -> RegisteredSchema:
        """The schema with an id or a guid; raises `UnfitValueError` if there is none."""
        ...

    def latest(self, subject: str) -> RegisteredSchema | None:
        """The latest version of a subject, or None if it has none."""
        ...

    def registered(self, subject: str, schema: SchemaText, *, may_register: bool) -> RegisteredSchema:
        """A schema with its id under a subject; if missing, it is registered there, provided `may_register` is true."""
        ...

    def parsed_name(self, schema: SchemaText) -> str | None:
        """The record name of a schema, for the subject name strategies that use it."""
        ...


ConnectSchemas = Callable[[str, str | None], SchemaSource]
"""Returns the source for `schema.registry.url` and `basic.auth.user.info`. A module-level function, so it pickles."""


def subject_name(strategy: str, topic: str, record_name: str | None, *, is_key: bool) -> str:
    """The subject by a subject name strategy; raises `InvalidConfigError` if the required record name is missing."""
    simple = strategy.rsplit(".", 1)[-1]
    if simple == "TopicNameStrategy":
        return f"{topic}-{'key' if is_key else 'value'}"
    if simple not in ("RecordNameStrategy", "TopicRecordNameStrategy"):
        raise InvalidConfigError(
            f"{strategy} is not a subject name strategy: use TopicNameStrategy, RecordNameStrategy or "
            "TopicRecordNameStrategy"
        )
    if not record_name:
        raise InvalidConfigError(f"{simple} needs a schema with a name, and this one has none")
    return record_name if simple == "RecordNameStrategy" else f"{topic}-{record_name}"
