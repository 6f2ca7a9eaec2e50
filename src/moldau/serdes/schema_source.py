"""Where serdes with a schema get their schemas: an interface, which the client provides with a registry.

A serde declares the need by its method `with_schema_source`. It keeps the function that connects, not the connection:
that way it can travel to another process, which connects for itself. Start at `SchemaSource`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol

from moldau.core.errors import InvalidConfigError, ServiceError
from moldau.serdes.serde import SerdeError

if TYPE_CHECKING:
    # Every command imports the errors below, and most need no schemas.
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
    """Schemas cannot be had, or one is not accepted. No record is to blame, so none may be skipped for it."""


class UnfitValueError(SerdeError):
    """A value that does not fit its schema, or bytes that were not written with a schema that is known."""


class SchemaText(NamedTuple):
    """A schema as it is given to a registry."""

    schema_type: str
    text: str
    references: tuple[SchemaReference, ...] = ()
    message: str | None = None
    """Which of a Protobuf schema's messages, where it is not the first."""


class RegisteredSchema(NamedTuple):
    """A schema with the id that data written with it carry."""

    id: int
    parsed: ParsedSchema
    references: tuple[SchemaReference, ...] = ()


class SchemaSource(Protocol):
    """Schemas by id, ids by subject. Used by any thread; answers are expected to come from memory after the first.

    Every method raises `SchemaSourceError` where the source cannot be asked or refuses.
    """

    def schema(self, name: int | str) -> RegisteredSchema:
        """The schema with an id or a guid; raises `UnfitValueError` where there is none."""
        ...

    def latest(self, subject: str) -> RegisteredSchema | None:
        """The latest version of a subject, or None where it has none."""
        ...

    def registered(self, subject: str, schema: SchemaText, *, may_register: bool) -> RegisteredSchema:
        """A schema with the id it has under a subject, registered there where that is allowed."""
        ...

    def parsed_name(self, schema: SchemaText) -> str | None:
        """What a schema calls its records, for the strategies that name subjects so."""
        ...


ConnectSchemas = Callable[[str, str | None], SchemaSource]
"""From `schema.registry.url` and `basic.auth.user.info` to the source. A function of a module, so that it pickles."""


def subject_name(strategy: str, topic: str, record_name: str | None, *, is_key: bool) -> str:
    """The subject that a strategy class names; raises where it needs a record's name and there is none."""
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
