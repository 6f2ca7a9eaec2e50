"""The schema ids in the records of a batch, and whether each is registered under the subject its topic requires.

For topics with `confluent.key.schema.validation` or `confluent.value.schema.validation`. Only ids are checked, never
the data after them. Pure: a `SchemaIds`, which `server.schema_ids` provides, looks up what is registered. Start at
`claims_of` and `verdict`.

    0 | schema id, 4 bytes | data        the usual prefix of a key or value
    1 | guid, 16 bytes | data            a schema by its guid, as prefix or in a header of the record
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeAlias
from uuid import UUID

from moldau.broker.data.batch_rules import RefusedBatchError, record_errors
from moldau.core.errors import ErrorCode, MoldauError
from moldau.log.config import LogConfig

if TYPE_CHECKING:
    from moldau.protocol.records import Record

__all__ = [
    "Question",
    "RegisteredSchema",
    "RegistryUnreachableError",
    "SchemaClaims",
    "SchemaId",
    "SchemaIds",
    "SchemaRules",
    "SubjectRule",
    "claims_of",
    "look_up",
    "settle",
    "verdict",
]

SchemaId: TypeAlias = int | str
"""A number, or a guid."""

_HEADERS: Final = {"key": "__key_schema_id", "value": "__value_schema_id"}


class RegistryUnreachableError(MoldauError):
    """The registry cannot be asked whether an id is registered. Producers retry, as they do when a leader moves."""

    code, retriable = ErrorCode.NOT_LEADER_OR_FOLLOWER, True


class RegisteredSchema(NamedTuple):
    """The registry's entry for a schema id; empty for an unknown one."""

    subjects: frozenset[str] = frozenset()
    record_names: frozenset[str] = frozenset()
    """Possible names of its records: an Avro record's full name, a JSON Schema's title, Protobuf's messages."""


UNKNOWN: Final = RegisteredSchema()
Known: TypeAlias = Mapping[SchemaId, RegisteredSchema]


class SubjectRule(NamedTuple):
    """The subject under which the schemas of a topic's keys, or of its values, have to be registered."""

    topic: str
    side: str
    strategy: str
    """The short name of a Confluent strategy class."""

    def subjects(self, schema: RegisteredSchema) -> frozenset[str]:
        """The subjects of which at least one must have the schema."""
        if self.strategy == "RecordNameStrategy":
            return schema.record_names
        if self.strategy == "TopicRecordNameStrategy":
            return frozenset(f"{self.topic}-{name}" for name in schema.record_names)
        return frozenset((f"{self.topic}-{self.side}",))

    def fits(self, schema: RegisteredSchema) -> bool:
        return not schema.subjects.isdisjoint(self.subjects(schema))

    def complaint(self, schema_id: SchemaId | None, schema: RegisteredSchema) -> str:
        if schema_id is None:
            return f"its {self.side} carries no schema id"
        if not schema.subjects:
            return f"schema {schema_id} of its {self.side} is not registered"
        wanted = self.subjects(schema)
        if not wanted:
            return f"schema {schema_id} of its {self.side} has no name, which {self.strategy} needs"
        return f"schema {schema_id} of its {self.side} is not registered under {' or '.join(sorted(wanted))}"


Question: TypeAlias = tuple[SchemaId, SubjectRule]
"""Whether an id is registered as a rule requires."""


class SchemaIds(Protocol):
    """Cached registry answers, and requests to the registry."""

    def current(self, question: Question) -> RegisteredSchema | None:
        """The cached answer if still valid: for longer if it satisfies the rule, for a moment only if not."""
        ...

    def last_known(self, schema_id: SchemaId) -> RegisteredSchema | None:
        """The last answer, however old."""
        ...

    def ask(self, questions: Iterable[Question]) -> Mapping[SchemaId, RegisteredSchema]:
        """Ask the registry, which may take seconds; raises `RegistryUnreachableError`."""
        ...


class SchemaRules(NamedTuple):
    """A topic's requirements on the schema ids in its records."""

    key: SubjectRule | None
    value: SubjectRule | None

    @classmethod
    def of(cls, topic: str, config: LogConfig) -> SchemaRules | None:
        """Return the rules of a topic; `None` if it has none, as nearly all topics."""
        key = value = None
        if config.confluent_key_schema_validation:
            key = SubjectRule(topic, "key", _short(config.confluent_key_subject_name_strategy))
        if config.confluent_value_schema_validation:
            value = SubjectRule(topic, "value", _short(config.confluent_value_subject_name_strategy))
        return cls(key, value) if key or value else None


def _short(strategy: str) -> str:
    return strategy.rpartition(".")[2]


class SchemaClaims(NamedTuple):
    """The schema ids in the keys or in the values of a batch, each with the positions of its records."""

    rule: SubjectRule
    places: Mapping[SchemaId | None, Sequence[int]]
    """`None` for keys or values without an id. Null keys and values are not listed: they need no id."""


def claims_of(records: Sequence[Record], rules: SchemaRules) -> list[SchemaClaims]:
    claims = []
    if rules.key is not None:
        claims.append(SchemaClaims(rules.key, _places([record.key for record in records], records, "key")))
    if rules.value is not None:
        claims.append(SchemaClaims(rules.value, _places([record.value for record in records], records, "value")))
    return claims


def _places(payloads: Sequence[bytes | None], records: Sequence[Record], side: str) -> dict[SchemaId | None, list[int]]:
    places: dict[SchemaId | None, list[int]] = {}
    header = _HEADERS[side]
    for place, payload in enumerate(payloads):
        if payload is None:
            continue
        carried = payload
        if records[place].headers:
            carried = next((value for name, value in records[place].headers if name == header and value), payload)
        places.setdefault(_schema_id(carried), []).append(place)
    return places


def _schema_id(carried: bytes) -> SchemaId | None:
    if len(carried) >= 5 and carried[0] == 0:
        return int.from_bytes(carried[1:5])
    if len(carried) >= 17 and carried[0] == 1:
        return str(UUID(bytes=carried[1:17]))
    return None


def look_up(
    claims: Iterable[SchemaClaims], schema_ids: SchemaIds
) -> tuple[dict[SchemaId, RegisteredSchema], list[Question]]:
    """Return the cached answers for the ids, and the questions for the registry."""
    known: dict[SchemaId, RegisteredSchema] = {}
    questions: list[Question] = []
    for claim in claims:
        for schema_id in claim.places:
            if schema_id is not None:
                schema = schema_ids.current((schema_id, claim.rule))
                if schema is None:
                    questions.append((schema_id, claim.rule))
                else:
                    known[schema_id] = schema
    return known, questions


def settle(claims: Sequence[SchemaClaims], count: int, schema_ids: SchemaIds) -> None:
    """Ask the registry where needed, which may take long, and raise if the batch is refused.

    While the registry is unreachable, its earlier answers are sufficient to accept a batch, and records without an id
    are still rejected. If neither decides, the producer has to retry.
    """
    known, questions = look_up(claims, schema_ids)
    try:
        verdict(claims, count, {**known, **schema_ids.ask(questions)})
    except RegistryUnreachableError:
        said_before = ((schema_id, schema_ids.last_known(schema_id)) for schema_id, _ in questions)
        remembered = {**known, **{schema_id: schema for schema_id, schema in said_before if schema is not None}}
        if _is_acceptable(claims, remembered):
            return
        verdict([_without_id(claim) for claim in claims], count, {})
        raise


def _is_acceptable(claims: Iterable[SchemaClaims], known: Known) -> bool:
    return all(
        schema_id is not None and claim.rule.fits(known.get(schema_id, UNKNOWN))
        for claim in claims
        for schema_id in claim.places
    )


def _without_id(claim: SchemaClaims) -> SchemaClaims:
    return SchemaClaims(claim.rule, {None: claim.places.get(None, ())})


def verdict(claims: Iterable[SchemaClaims], count: int, known: Known) -> None:
    """Raise `RefusedBatchError` if any of `count` records has no id or one not registered as its rule requires."""
    complaints: dict[int, str] = {}
    for claim in claims:
        for schema_id, places in claim.places.items():
            schema = UNKNOWN if schema_id is None else known.get(schema_id, UNKNOWN)
            if schema_id is None or not claim.rule.fits(schema):
                words = claim.rule.complaint(schema_id, schema)
                for place in places:
                    complaints.setdefault(place, words)
    if complaints:
        raise _refusal(complaints, count)


def _refusal(complaints: Mapping[int, str], count: int) -> RefusedBatchError:
    message = f"{len(complaints)} of {count} records refused, the first because {complaints[min(complaints)]}"
    errors = record_errors(complaints)
    return RefusedBatchError(ErrorCode.INVALID_RECORD, message, errors, counter="invalid_schema_records")
