"""The check of schema ids, with a registry that is a dictionary."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from moldau.broker.data.batch_rules import RefusedBatchError
from moldau.broker.data.schema_rules import (
    Question,
    RegisteredSchema,
    RegistryUnreachableError,
    SchemaId,
    SchemaRules,
    claims_of,
    look_up,
    settle,
    verdict,
)
from moldau.core.errors import ErrorCode
from moldau.log.config import LogConfig
from moldau.protocol.records import Record

GUID = uuid.UUID("0f3e9b1a-6f0e-4f2c-9a5e-3c1d2b4a5f60")


class Registry:
    """Knows everything and remembers what it was asked."""

    def __init__(self, schemas: Mapping[SchemaId, RegisteredSchema], *, remembers: bool = False) -> None:
        self.schemas = schemas
        self.remembered = dict(schemas) if remembers else {}
        self.is_reachable = True
        self.is_settled = True
        self.questions: list[SchemaId] = []

    def current(self, question: Question) -> RegisteredSchema | None:
        return self.remembered.get(question[0]) if self.is_settled else None

    def last_known(self, schema_id: SchemaId) -> RegisteredSchema | None:
        return self.remembered.get(schema_id)

    def ask(self, questions: Iterable[Question]) -> Mapping[SchemaId, RegisteredSchema]:
        asked = list(dict.fromkeys(schema_id for schema_id, _ in questions))
        self.questions += asked
        if not self.is_reachable and asked:
            raise RegistryUnreachableError("gone")
        return {schema_id: self.schemas.get(schema_id, RegisteredSchema()) for schema_id in asked}


def rules(**config: Any) -> SchemaRules:
    found = SchemaRules.of("orders", LogConfig(**config))
    assert found is not None
    return found


VALUES = rules(confluent_value_schema_validation=True)
KEYS = rules(confluent_key_schema_validation=True)
BOTH = rules(confluent_key_schema_validation=True, confluent_value_schema_validation=True)


def schema(*subjects: str, names: Iterable[str] = ()) -> RegisteredSchema:
    return RegisteredSchema(frozenset(subjects), frozenset(names))


def framed(schema_id: int) -> bytes:
    return b"\0" + schema_id.to_bytes(4, "big") + b"body"


def values(*contents: bytes | None) -> list[Record]:
    return [Record(place, 0, b"k", content) for place, content in enumerate(contents)]


def refusal(records: list[Record], wanted: SchemaRules, registry: Registry) -> RefusedBatchError | None:
    try:
        settle(claims_of(records, wanted), len(records), registry)
    except RefusedBatchError as error:
        return error
    return None


def refused_places(error: RefusedBatchError | None) -> list[int]:
    assert error is not None
    assert error.error_code == ErrorCode.INVALID_RECORD
    return [one.batch_index for one in error.record_errors]


def test_topics_that_ask_for_nothing_have_no_rules() -> None:
    assert SchemaRules.of("orders", LogConfig()) is None


def test_an_id_of_the_topics_subject_passes() -> None:
    registry = Registry({7: schema("orders-value", "other-value")})
    assert refusal(values(framed(7), framed(7)), VALUES, registry) is None
    assert registry.questions == [7], "each id is asked about once"


def test_null_keys_and_values_need_no_id() -> None:
    registry = Registry({})
    assert refusal([Record(0, 0, None, None)], BOTH, registry) is None
    assert not registry.questions


@pytest.mark.parametrize("content", [b"", b"plain", b"\0\0\0\1", b"\x02\0\0\0\x07", b"\1" + bytes(15), b"{}"])
def test_a_value_without_an_id_is_refused_and_nobody_is_asked(content: bytes) -> None:
    registry = Registry({7: schema("orders-value")}, remembers=True)
    error = refusal(values(framed(7), content), VALUES, registry)
    assert refused_places(error) == [1]
    assert error is not None
    assert error.record_errors[0].message == "record 1: its value carries no schema id"
    assert str(error) == "1 of 2 records refused, the first because its value carries no schema id"
    assert not registry.questions


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ({}, "schema 7 of its value is not registered"),
        ({7: schema("orders-key")}, "schema 7 of its value is not registered under orders-value"),
        ({7: schema(":.ctx:orders-value")}, "schema 7 of its value is not registered under orders-value"),
    ],
)
def test_an_id_of_nothing_or_of_another_subject_is_refused(found: dict[SchemaId, Any], words: str) -> None:
    error = refusal(values(framed(7)), VALUES, Registry(found))
    assert error is not None
    assert error.record_errors[0].message == f"record 0: {words}"


def test_keys_and_values_are_checked_each_by_its_own_subject() -> None:
    registry = Registry({1: schema("orders-key"), 2: schema("orders-value")})
    records = [Record(0, 0, framed(1), framed(2)), Record(1, 0, framed(2), framed(2)), Record(2, 0, framed(1), b"x")]
    assert refused_places(refusal(records, BOTH, registry)) == [1, 2]
    assert refused_places(refusal(records, KEYS, registry)) == [1]
    assert refused_places(refusal(records, VALUES, registry)) == [2]


@pytest.mark.parametrize("package", ["", "io.confluent.kafka.serializers.subject."])
@pytest.mark.parametrize(
    ("strategy", "subject", "passes"),
    [
        ("TopicNameStrategy", "orders-value", True),
        ("TopicNameStrategy", "shop.Order", False),
        ("RecordNameStrategy", "shop.Order", True),
        ("RecordNameStrategy", "shop.Item", True),
        ("RecordNameStrategy", "orders-value", False),
        ("RecordNameStrategy", "orders-shop.Order", False),
        ("TopicRecordNameStrategy", "orders-shop.Order", True),
        ("TopicRecordNameStrategy", "others-shop.Order", False),
        ("TopicRecordNameStrategy", "orders-value", False),
    ],
)
def test_the_strategy_names_the_subject(package: str, strategy: str, subject: str, passes: bool) -> None:
    wanted = rules(confluent_value_schema_validation=True, confluent_value_subject_name_strategy=f"{package}{strategy}")
    registry = Registry({7: schema(subject, names=("shop.Order", "shop.Item"))})
    assert (refusal(values(framed(7)), wanted, registry) is None) is passes


def test_a_schema_without_a_name_is_no_answer_to_a_strategy_of_names() -> None:
    wanted = rules(confluent_value_schema_validation=True, confluent_value_subject_name_strategy="RecordNameStrategy")
    error = refusal(values(framed(7)), wanted, Registry({7: schema("orders-value")}))
    assert error is not None
    assert "schema 7 of its value has no name, which RecordNameStrategy needs" in str(error)


def test_guids_count_as_prefix_and_in_headers() -> None:
    registry = Registry({str(GUID): schema("orders-value", "orders-key")})
    carried = b"\1" + GUID.bytes
    in_headers = Record(0, 0, b"k", b"v", (("__key_schema_id", carried), ("__value_schema_id", carried + b"\0")))
    assert refusal([in_headers, Record(1, 0, carried, carried + b"body")], BOTH, registry) is None
    assert registry.questions == [str(GUID)]
    other_side = Record(0, 0, carried, b"v", (("__key_schema_id", carried),))
    assert refused_places(refusal([other_side], BOTH, registry)) == [0]


def test_a_header_is_believed_before_the_prefix() -> None:
    registry = Registry({7: schema("orders-value")})
    record = Record(0, 0, b"k", framed(7), (("__value_schema_id", b"\1" + GUID.bytes),))
    assert refused_places(refusal([record], VALUES, registry)) == [0]


def test_only_what_is_not_remembered_is_asked_about() -> None:
    registry = Registry({1: schema("orders-value")}, remembers=True)
    known, questions = look_up(claims_of(values(framed(1), framed(2), None), VALUES), registry)
    assert (known, questions) == ({1: schema("orders-value")}, [(2, VALUES.value)])


def test_a_batch_of_many_ids_names_all_records_that_fail() -> None:
    registry = Registry({number: schema("orders-value") for number in range(0, 300, 2)})
    records = values(*(framed(number) for number in range(300)))
    assert refused_places(refusal(records, VALUES, registry)) == list(range(1, 300, 2))


class TestWithTheRegistryOutOfReach:
    def test_unknown_ids_make_the_producer_come_again(self) -> None:
        registry = Registry({7: schema("orders-value")})
        registry.is_reachable = False
        with pytest.raises(RegistryUnreachableError) as caught:
            settle(claims_of(values(framed(7)), VALUES), 1, registry)
        assert (caught.value.code, caught.value.retriable) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, True)

    def test_what_was_right_before_still_is(self) -> None:
        registry = Registry({7: schema("orders-value")}, remembers=True)
        registry.is_reachable = registry.is_settled = False
        assert refusal(values(framed(7)), VALUES, registry) is None
        assert registry.questions == [7]

    def test_what_was_wrong_before_may_be_right_by_now(self) -> None:
        registry = Registry({7: schema("others-value")}, remembers=True)
        registry.is_reachable = registry.is_settled = False
        with pytest.raises(RegistryUnreachableError):
            settle(claims_of(values(framed(7)), VALUES), 1, registry)

    def test_records_without_an_id_are_refused_for_good(self) -> None:
        registry = Registry({})
        registry.is_reachable = False
        assert refused_places(refusal(values(framed(7), b"plain"), VALUES, registry)) == [1]


def test_a_verdict_needs_no_registry() -> None:
    claims = claims_of(values(framed(1)), VALUES)
    verdict(claims, 1, {1: schema("orders-value")})
    with pytest.raises(RefusedBatchError):
        verdict(claims, 1, {})
