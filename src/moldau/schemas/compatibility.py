"""Checks whether a schema is compatible with the previous versions, at each of the seven levels.

Pure: the registry chooses the versions to compare with and the level. Start at `check`.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from moldau.schemas.avro import compatibility as avro
from moldau.schemas.avro.schema import AvroSchema
from moldau.schemas.errors import SchemaError
from moldau.schemas.incompatibility import Incompatibility, Sides
from moldau.schemas.json_schema import compatibility as json_schema
from moldau.schemas.json_schema.schema import JsonSchema
from moldau.schemas.pairs import Effort
from moldau.schemas.parsed_schema import ParsedSchema
from moldau.schemas.protobuf import compatibility as protobuf
from moldau.schemas.protobuf.schema import ProtobufSchema

__all__ = [
    "Check",
    "CompatibilityLevel",
    "CompatibilityPolicy",
    "Incompatibility",
    "UnknownCompatibilityLevelError",
    "check",
]


class UnknownCompatibilityLevelError(SchemaError):
    """A compatibility level that does not exist."""

    def __init__(self, name: str) -> None:
        known = ", ".join(level.lower() for level in CompatibilityLevel)
        super().__init__(f"Invalid compatibility level {name!r}. Valid values are {known}")


class CompatibilityLevel(StrEnum):
    """Which of the old schemas a new one is compared with, and in which direction."""

    NONE = "NONE"
    BACKWARD = "BACKWARD"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD = "FORWARD"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL = "FULL"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"

    @classmethod
    def of(cls, name: str) -> CompatibilityLevel:
        """The level with that name, which may be in upper or lower case."""
        try:
            return cls(name.upper())
        except ValueError:
            raise UnknownCompatibilityLevelError(name) from None

    @property
    def is_transitive(self) -> bool:
        """Whether all old versions are checked, not only the latest."""
        return self.value.endswith("_TRANSITIVE")

    @property
    def is_backward(self) -> bool:
        """Whether the new schema must read data of the old."""
        return self.value.startswith(("BACKWARD", "FULL"))

    @property
    def is_forward(self) -> bool:
        """Whether the old schema must read data of the new."""
        return self.value.startswith(("FORWARD", "FULL"))


class CompatibilityPolicy(StrEnum):
    """How open objects of JSON Schema are compared; no effect on Avro and Protobuf.

    LENIENT allows adding a property to an object that did not restrict further properties.
    LOGICAL is accepted and treated as STRICT.
    """

    STRICT = "STRICT"
    LENIENT = "LENIENT"
    LOGICAL = "LOGICAL"


def check(
    level: CompatibilityLevel,
    new: ParsedSchema,
    previous: Sequence[ParsedSchema],
    *,
    policy: CompatibilityPolicy = CompatibilityPolicy.STRICT,
) -> list[Incompatibility]:
    """Return why `new` is incompatible with `previous` (newest first); an empty list means that it is compatible.

    The search ends at the first previous schema that is incompatible; `against` in the findings is its
    index. All comparisons share one effort, so that many versions do not multiply its limit.
    """
    checked = Check(level, new, policy)
    for index, old in enumerate(previous if level.is_transitive else previous[:1]):
        found = checked.against(old)
        if found:
            return [finding.at(index) for finding in found]
    return []


class Check:
    """Compares a new schema with previous ones, one by one."""

    def __init__(self, level: CompatibilityLevel, new: ParsedSchema, policy: CompatibilityPolicy) -> None:
        self._level, self._new, self._policy = level, new, policy
        self._effort = Effort()

    def against(self, old: ParsedSchema) -> list[Incompatibility]:
        """Return why the new schema is incompatible with this one."""
        found = _against(self._level, self._new, old, self._policy, self._effort)
        self._effort.refill()
        return found


def _against(
    level: CompatibilityLevel, new: ParsedSchema, old: ParsedSchema, policy: CompatibilityPolicy, effort: Effort
) -> list[Incompatibility]:
    if level is CompatibilityLevel.NONE:
        return []
    if new.schema_type is not old.schema_type:
        return [Incompatibility(new.schema_type, "", "", "Incompatible because of different schema type")]
    found: list[Incompatibility] = []
    if level.is_backward:
        found += _differences(new, old, Sides("new", "old"), policy, effort)
    if level.is_forward:
        found += _differences(old, new, Sides("old", "new"), policy, effort)
    return found


def _differences(
    reader: ParsedSchema, writer: ParsedSchema, sides: Sides, policy: CompatibilityPolicy, effort: Effort
) -> list[Incompatibility]:
    match reader, writer:
        case AvroSchema(), AvroSchema():
            return avro.differences(reader.type, writer.type, sides, effort)
        case JsonSchema(), JsonSchema():
            is_lenient = policy is CompatibilityPolicy.LENIENT
            return json_schema.differences(reader.root, writer.root, sides, effort, is_lenient=is_lenient)
        case ProtobufSchema(), ProtobufSchema():
            return protobuf.differences(reader, writer, sides, effort)
    raise TypeError(f"no comparison for {type(reader).__name__}")
