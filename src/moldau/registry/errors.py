"""Errors of the registry, each with the error code that clients check.

The first three digits of a code are the HTTP status. Nothing here depends on HTTP: `registry.app` turns these into
responses. Start at `RegistryError`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from moldau.core.errors import MoldauError
from moldau.schemas.identity import SchemaReference

__all__ = [
    "MAX_SHOWN_CHARACTERS",
    "ConfigNotSetError",
    "ContextNotEmptyError",
    "ForwardingError",
    "IdMismatchError",
    "IncompatibleSchemaError",
    "InvalidLevelError",
    "InvalidModeError",
    "InvalidRuleSetError",
    "InvalidSchemaTextError",
    "InvalidSubjectError",
    "InvalidVersionError",
    "ModeNotSetError",
    "NotPermittedError",
    "ReferenceExistsError",
    "RegistryError",
    "SchemaNotFoundError",
    "SchemaTooLargeError",
    "StoreError",
    "StoreTimeoutError",
    "SubjectNotFoundError",
    "SubjectNotSoftDeletedError",
    "SubjectSoftDeletedError",
    "TooBusyError",
    "UnknownLeaderError",
    "UnreadableRequestError",
    "VersionNotFoundError",
    "VersionNotSoftDeletedError",
    "VersionSoftDeletedError",
]


MAX_SHOWN_CHARACTERS = 10 * 1024
"""Maximum length of a schema's text in an error message."""
MAX_REASON_CHARACTERS = 4 * 1024


class RegistryError(MoldauError):
    """Base class of all errors of the registry."""

    error_code: ClassVar[int] = 50001


class SubjectNotFoundError(RegistryError):
    error_code = 40401

    def __init__(self, subject: str) -> None:
        super().__init__(f"Subject '{subject}' not found.")


class VersionNotFoundError(RegistryError):
    error_code = 40402

    def __init__(self, version: int | str) -> None:
        super().__init__(f"Version {version} not found.")


class SchemaNotFoundError(RegistryError):
    error_code = 40403

    def __init__(self, wanted: int | str | None = None) -> None:
        super().__init__("Schema not found" if wanted is None else f"Schema {wanted} not found")


class SubjectSoftDeletedError(RegistryError):
    error_code = 40404

    def __init__(self, subject: str) -> None:
        super().__init__(f"Subject '{subject}' was soft deleted.Set permanent=true to delete permanently")


class SubjectNotSoftDeletedError(RegistryError):
    error_code = 40405

    def __init__(self, subject: str) -> None:
        super().__init__(f"Subject '{subject}' was not deleted first before being permanently deleted")


class VersionSoftDeletedError(RegistryError):
    error_code = 40406

    def __init__(self, subject: str, version: int) -> None:
        super().__init__(
            f"Subject '{subject}' Version {version} was soft deleted.Set permanent=true to delete permanently"
        )


class VersionNotSoftDeletedError(RegistryError):
    error_code = 40407

    def __init__(self, subject: str, version: int) -> None:
        super().__init__(
            f"Subject '{subject}' Version {version} was not deleted first before being permanently deleted"
        )


class ConfigNotSetError(RegistryError):
    error_code = 40408

    def __init__(self, subject: str) -> None:
        super().__init__(f"Subject '{subject}' does not have subject-level compatibility configured")


class ModeNotSetError(RegistryError):
    error_code = 40409

    def __init__(self, subject: str) -> None:
        super().__init__(f"Subject '{subject}' does not have subject-level mode configured")


class IncompatibleSchemaError(RegistryError):
    """A schema is incompatible. Old clients check for 409, new ones for 40901; the dialect decides which is sent."""

    error_code = 40901

    def __init__(self, subject: str, messages: tuple[str, ...]) -> None:
        details = ", ".join(messages)
        super().__init__(
            f'Schema being registered is incompatible with an earlier schema for subject "{subject}", '
            f"details: [{details}]"
        )


class InvalidSchemaTextError(RegistryError):
    error_code = 42201

    @staticmethod
    def of(
        subject: str, schema_type: str, text: str, references: Sequence[SchemaReference], reason: str
    ) -> InvalidSchemaTextError:
        """An error with the schema before the reason, as other registries report it; both are truncated when long."""
        refs = ", ".join(f"{{name='{one.name}', subject='{one.subject}', version={one.version}}}" for one in references)
        shown = (
            f"{{subject={subject},version=0,id=-1,schemaType={schema_type},references=[{refs}],metadata=null,"
            f"ruleSet=null,schema={text[:MAX_SHOWN_CHARACTERS]},schemaTags=null}}"
        )
        return InvalidSchemaTextError(
            f"Invalid schema {shown} with refs [{refs}] of type {schema_type}, "
            f"details: {reason[:MAX_REASON_CHARACTERS]}"
        )


class InvalidVersionError(RegistryError):
    error_code = 42202

    def __init__(self, version: str) -> None:
        super().__init__(
            f"The specified version '{version}' is not a valid version id. "
            'Allowed values are between [1, 2^31-1] and the string "latest"'
        )


class InvalidLevelError(RegistryError):
    error_code = 42203

    def __init__(self) -> None:
        super().__init__(
            "Invalid compatibility level. Valid values are none, backward, forward, full, backward_transitive, "
            "forward_transitive, and full_transitive"
        )


class InvalidModeError(RegistryError):
    error_code = 42204


class NotPermittedError(RegistryError):
    error_code = 42205


class ReferenceExistsError(RegistryError):
    error_code = 42206

    def __init__(self, subject: str, version: int) -> None:
        key = f"{{magic=1,keytype=SCHEMA,subject={subject},version={version}}}"
        super().__init__(f"One or more references exist to the schema {key}.")


class IdMismatchError(RegistryError):
    error_code = 42207

    def __init__(self, given: int, stored: int) -> None:
        super().__init__(f"The id {given} was requested, but this schema already has the id {stored}")


class InvalidSubjectError(RegistryError):
    error_code = 42208

    def __init__(self, subject: str) -> None:
        super().__init__(f"The subject {subject!r} is not valid: control characters and reserved names are not allowed")


class SchemaTooLargeError(RegistryError):
    error_code = 42209


class InvalidRuleSetError(RegistryError):
    error_code = 42210


class ContextNotEmptyError(RegistryError):
    error_code = 42211

    def __init__(self, context: str) -> None:
        super().__init__(f"The specified context '{context}' is not empty. Delete its subjects permanently first")


class TooBusyError(RegistryError):
    """Too many schemas are waiting to be parsed and compared, which would use too much memory; clients should retry."""

    error_code = 429


class UnreadableRequestError(RegistryError):
    """The body is JSON, but not the expected document."""

    error_code = 422


class StoreError(RegistryError):
    """The topic that holds the schemas could not be written or read."""

    error_code = 50001


class StoreTimeoutError(RegistryError):
    error_code = 50002


class ForwardingError(RegistryError):
    error_code = 50003


class UnknownLeaderError(RegistryError):
    error_code = 50004
