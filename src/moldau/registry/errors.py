"""What the registry refuses, each with the number that clients look at.

The first three digits of a code are the HTTP status. Nothing here knows HTTP: `registry.app` turns these into
answers. Start at `RegistryError`.
"""

from __future__ import annotations

from typing import ClassVar

from moldau.core.errors import MoldauError

__all__ = [
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
    "UnknownLeaderError",
    "UnreadableRequestError",
    "VersionNotFoundError",
    "VersionNotSoftDeletedError",
    "VersionSoftDeletedError",
]


class RegistryError(MoldauError):
    """Base of all refusals."""

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
        super().__init__(f"Subject '{subject}' was soft deleted. Set permanent=true to remove it for good")


class SubjectNotSoftDeletedError(RegistryError):
    error_code = 40405

    def __init__(self, subject: str) -> None:
        super().__init__(f"Subject '{subject}' was not deleted yet: a soft delete must come before a permanent one")


class VersionSoftDeletedError(RegistryError):
    error_code = 40406

    def __init__(self, subject: str, version: int) -> None:
        super().__init__(
            f"Subject '{subject}' Version {version} was soft deleted. Set permanent=true to remove it for good"
        )


class VersionNotSoftDeletedError(RegistryError):
    error_code = 40407

    def __init__(self, subject: str, version: int) -> None:
        super().__init__(
            f"Subject '{subject}' Version {version} was not deleted yet: a soft delete must come before a permanent one"
        )


class ConfigNotSetError(RegistryError):
    error_code = 40408

    def __init__(self, subject: str) -> None:
        super().__init__(f"Subject '{subject}' has no subject-level compatibility configured")


class ModeNotSetError(RegistryError):
    error_code = 40409

    def __init__(self, subject: str) -> None:
        super().__init__(f"Subject '{subject}' has no subject-level mode configured")


class IncompatibleSchemaError(RegistryError):
    """Old clients look for 409, new ones for 40901; the dialect decides which one is sent."""

    error_code = 40901

    def __init__(self, subject: str, messages: tuple[str, ...]) -> None:
        details = ", ".join(messages)
        super().__init__(
            f'Schema being registered is incompatible with an earlier one of subject "{subject}", details: [{details}]'
        )


class InvalidSchemaTextError(RegistryError):
    error_code = 42201


class InvalidVersionError(RegistryError):
    error_code = 42202

    def __init__(self, version: str) -> None:
        super().__init__(
            f"The version '{version}' is not valid: it must be a number from 1 to 2147483647, or \"latest\" (or -1)"
        )


class InvalidLevelError(RegistryError):
    error_code = 42203

    def __init__(self, level: object) -> None:
        super().__init__(
            f"'{level}' is not a compatibility level: use none, backward, forward, full, backward_transitive, "
            "forward_transitive or full_transitive"
        )


class InvalidModeError(RegistryError):
    error_code = 42204


class NotPermittedError(RegistryError):
    error_code = 42205


class ReferenceExistsError(RegistryError):
    error_code = 42206

    def __init__(self, subject: str, version: int) -> None:
        super().__init__(f"{{magic=1,keytype=SCHEMA,subject={subject},version={version}}}")


class IdMismatchError(RegistryError):
    error_code = 42207

    def __init__(self, given: int, stored: int) -> None:
        super().__init__(f"The id {given} was asked for, but this schema has the id {stored} already")


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
        super().__init__(f"The context '{context}' still has subjects; delete them permanently first")


class UnreadableRequestError(RegistryError):
    """The body is JSON, but not the document that was asked for."""

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
