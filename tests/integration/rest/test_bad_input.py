"""What clients send wrong in versions 1 and 2: the contract's codes, and nothing produced by halves."""

from __future__ import annotations

from typing import Any

import pytest
from tests.integration.rest.talk import V2, Talk, b64, embedded

AVRO_SCHEMA = '{"type": "record", "name": "Payment", "fields": [{"name": "amount", "type": "int"}]}'


@pytest.mark.parametrize(
    ("kind", "body", "status", "code"),
    [
        ("json", {"records": []}, 422, 422),
        ("json", {}, 422, 422),
        ("json", [], 400, 400),
        ("json", "{", 400, 400),
        ("json", "", 422, 422),
        ("json", {"records": {}}, 400, 400),
        ("json", {"records": [3]}, 400, 400),
        ("json", {"records": [{"value": 1, "partition": "0"}]}, 400, 400),
        ("json", {"records": [{"value": 1, "partition": -1}]}, 422, 422),
        ("json", {"records": [{"value": 1, "headers": []}]}, 422, 422),
        ("binary", {"records": [{"value": b64("good")}, {"value": "!"}]}, 422, 422),
        ("binary", {"records": [{"value": "YQ"}]}, 422, 422),
        ("binary", {"records": [{"value": 1}]}, 422, 422),
        ("avro", {"records": [{"value": {"amount": 1}}]}, 422, 42202),
        ("avro", {"value_schema": AVRO_SCHEMA, "records": [{"key": "k", "value": {"amount": 1}}]}, 422, 42201),
        ("avro", {"value_schema": AVRO_SCHEMA, "records": [{"value": {"amount": 1}}, {"value": 3}]}, 422, 42203),
        ("avro", {"value_schema": "{", "records": [{"value": 1}]}, 422, 42205),
        ("avro", {"value_schema_id": 999_999, "records": [{"value": 1}]}, 422, 42207),
        ("avro", {"value_schema_id": "1", "records": [{"value": 1}]}, 400, 400),
        ("avro", {"value_schema": {"type": "string"}, "records": [{"value": "x"}]}, 400, 400),
        ("jsonschema", {"records": [{"value": 1}]}, 422, 42202),
        ("protobuf", {"value_schema": "message", "records": [{"value": {}}]}, 422, 42205),
    ],
)
def test_a_bad_request_produces_nothing(talk: Talk, kind: str, body: Any, status: int, code: int) -> None:
    topic = talk.new_topic()
    answer = talk("POST", f"/topics/{topic}", body, content=embedded(kind))
    assert (answer.status, answer.code) == (status, code), answer.document
    assert answer.document["message"]
    assert talk("GET", f"/topics/{topic}/partitions/0/offsets").document["end_offset"] == 0


def test_a_schema_of_another_type_is_refused(talk: Talk) -> None:
    topic = talk.new_topic()
    body = {"value_schema": AVRO_SCHEMA, "records": [{"value": {"amount": 1}}]}
    number = talk("POST", f"/topics/{topic}", body, content=embedded("avro")).document["value_schema_id"]
    refused = talk(
        "POST",
        f"/topics/{topic}",
        {"value_schema_id": number, "records": [{"value": {}}]},
        content=embedded("protobuf"),
    )
    assert (refused.status, refused.code) == (422, 42203)


def test_each_record_has_its_own_outcome(talk: Talk) -> None:
    topic = talk.new_topic(partitions=2)
    records = [{"value": 1, "partition": 0}, {"value": 2, "partition": 7}, {"value": 3, "partition": 1}]
    answer = talk("POST", f"/topics/{topic}", {"records": records}, content=embedded("json"))
    first, second, third = answer.document["offsets"]
    assert answer.status == 200
    assert (first["partition"], first["offset"], first["error_code"]) == (0, 0, None)
    assert (second["offset"], second["error_code"]) == (None, 50002)
    assert second["error"]
    assert (third["partition"], third["offset"]) == (1, 0)


def test_a_record_that_is_too_large_fails_alone(talk: Talk) -> None:
    topic = talk.new_topic()
    answer = talk.produce(topic, "x" * 2_000_000, "small")
    large, small = answer.document["offsets"]
    assert (large["offset"], large["error_code"]) == (None, 50002)
    assert (small["offset"], small["error_code"]) == (0, None)


def test_content_types_that_nobody_reads(talk: Talk) -> None:
    topic = talk.new_topic()
    for content in ("text/plain", "application/vnd.kafka.xml.v2+json", V2):
        answer = talk("POST", f"/topics/{topic}", {"records": [{"value": 1}]}, content=content)
        assert (answer.status, answer.code) == (415, 415)
        assert answer.document["message"] == "HTTP 415 Unsupported Media Type"
    refused = talk("GET", "/topics", accept="text/html")
    assert (refused.status, refused.document["message"]) == (406, "HTTP 406 Not Acceptable")
    assert talk("GET", "/nothing/here").code == 404
    assert talk("PATCH", "/topics").status == 405


def test_an_oversized_body_is_refused(talk: Talk) -> None:
    body = b'{"records": [{"value": "' + b"x" * (64 * 1024 * 1024 + 1)
    answer = talk("POST", f"/topics/{talk.new_topic()}", body, content=embedded("json"))
    assert (answer.status, answer.code) == (413, 413)
