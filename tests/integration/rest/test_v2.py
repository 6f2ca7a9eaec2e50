"""Version 2, call by call."""

from __future__ import annotations

import threading
import time

import pytest
from tests.integration.rest.talk import V2, Reply, Talk, b64, embedded

PROTO = 'syntax = "proto3"; message Payment { string who = 1; int32 amount = 2; }'
JSON_SCHEMA = '{"type": "object", "properties": {"amount": {"type": "integer"}}, "required": ["amount"]}'
AVRO_SCHEMA = '{"type": "record", "name": "Payment", "fields": [{"name": "amount", "type": "int"}]}'


def test_metadata_has_version_2s_type(talk: Talk) -> None:
    topic = talk.new_topic()
    answer = talk("GET", f"/topics/{topic}", accept=V2)
    assert answer.headers["content-type"] == V2
    assert answer.document["partitions"][0]["partition"] == 0


def test_offsets_of_a_partition(talk: Talk) -> None:
    topic = talk.new_topic()
    talk.produce(topic, 1, 2, 3)
    found = talk("GET", f"/topics/{topic}/partitions/0/offsets", accept=V2)
    assert found.document == {"beginning_offset": 0, "end_offset": 3}
    assert talk("GET", f"/topics/{topic}/partitions/3/offsets").code == 40402


@pytest.mark.parametrize(
    ("kind", "key", "value", "schemas"),
    [
        ("binary", b64("k"), b64("v"), {}),
        ("json", {"a": [1, None]}, {"umlaut": "ä", "n": 12345678901234567890}, {}),
        ("avro", "k", {"amount": 3}, {"key_schema": '"string"', "value_schema": AVRO_SCHEMA}),
        ("jsonschema", {"amount": 1}, {"amount": 2}, {"key_schema": JSON_SCHEMA, "value_schema": JSON_SCHEMA}),
        (
            "protobuf",
            {"who": "k", "amount": 0},
            {"who": "a", "amount": 2},
            {"key_schema": PROTO, "value_schema": PROTO},
        ),
    ],
)
def test_formats_come_back_as_they_went(talk: Talk, kind: str, key: object, value: object, schemas: dict) -> None:  # type: ignore[type-arg]
    topic = talk.new_topic()
    body = {**schemas, "records": [{"key": key, "value": value}, {"value": None}]}
    sent = talk("POST", f"/topics/{topic}", body, content=embedded(kind))
    assert [one["offset"] for one in sent.document["offsets"]] == [0, 1], sent
    assert (sent.document["value_schema_id"] is not None) == bool(schemas)
    uri = talk.instance(format=kind)
    assert talk("POST", f"{uri}/subscription", {"topics": [topic]}, content=V2).status == 204
    read = talk.read(uri, 2, accept=embedded(kind))
    assert read == [
        {"topic": topic, "key": key, "value": value, "partition": 0, "offset": 0},
        {"topic": topic, "key": None, "value": None, "partition": 0, "offset": 1},
    ]


def test_a_read_answers_in_the_instances_format(talk: Talk) -> None:
    """The contract's third scenario, and an Accept that names no format."""
    topic = talk.new_topic()
    talk.produce(topic, {"a": 1})
    uri = talk.instance(format="json")
    talk("POST", f"{uri}/subscription", {"topics": [topic]}, content=V2)
    refused = talk("GET", f"{uri}/records", accept=embedded("binary"))
    assert (refused.status, refused.code) == (406, 40601)
    assert talk.read(uri, 1, accept="application/json")[0]["value"] == {"a": 1}
    for accept in (None, "*/*", V2, embedded("json")):
        answer = talk("GET", f"{uri}/records", accept=accept)
        assert (answer.status, answer.headers["content-type"]) == (200, embedded("json"))


def test_reading_without_a_subscription_is_an_illegal_state(talk: Talk) -> None:
    """The contract's fourth scenario."""
    refused = talk("GET", f"{talk.instance()}/records")
    assert (refused.status, refused.code) == (409, 40903)


def test_a_committed_offset_is_the_next_one(talk: Talk) -> None:
    """The contract's fifth scenario."""
    topic = talk.new_topic()
    talk.produce(topic, *range(8))
    uri = talk.instance(format="json")
    places = {"partitions": [{"topic": topic, "partition": 0}]}
    talk("POST", f"{uri}/assignments", places, content=V2)
    body = {"offsets": [{"topic": topic, "partition": 0, "offset": 4}]}
    committed = talk("POST", f"{uri}/offsets", body, content=V2)
    assert (committed.status, committed.document) == (200, [])
    found = talk("GET", f"{uri}/offsets", places, content=V2)
    assert found.document == {"offsets": [{"topic": topic, "partition": 0, "offset": 5, "metadata": ""}]}
    missing = talk("GET", f"{uri}/offsets", content=V2)
    assert (missing.status, missing.code) == (404, 40402)


def test_a_commit_without_a_body_is_of_what_was_read(talk: Talk) -> None:
    topic = talk.new_topic()
    talk.produce(topic, "aaaa", "bbbb", "cccc")
    uri = talk.instance(format="json", auto_commit_enable="false")
    talk("POST", f"{uri}/subscription", {"topics": [topic]}, content=V2)
    assert [one["offset"] for one in talk.read(uri, 1, "/records?max_bytes=7")] == [0]
    assert talk("POST", f"{uri}/offsets", content=V2).document == []
    places = {"partitions": [{"topic": topic, "partition": 0}]}
    assert talk("GET", f"{uri}/offsets", places, content=V2).document["offsets"][0]["offset"] == 1
    # What exceeded the first answer begins the next one.
    assert [one["value"] for one in talk.read(uri, 2)] == ["bbbb", "cccc"]


def test_subscriptions(talk: Talk) -> None:
    topic = talk.new_topic()
    talk.produce(topic, 1)
    uri = talk.instance(format="json")
    path = f"{uri}/subscription"
    assert talk("GET", path).document == {"topics": []}
    assert talk("POST", path, {"topics": [topic]}, content=V2).status == 204
    assert talk("GET", path, accept=V2).document == {"topics": [topic]}
    refused = talk("POST", f"{uri}/assignments", {"partitions": [{"topic": topic, "partition": 0}]}, content=V2)
    assert (refused.status, refused.code) == (409, 40903)
    talk.read(uri, 1)
    assert talk("GET", f"{uri}/assignments").document == {"partitions": [{"topic": topic, "partition": 0}]}
    assert talk("DELETE", path).status == 204
    assert talk("GET", path).document == {"topics": []}
    assert talk("POST", path, {"topics": [topic], "topic_pattern": "t.*"}, content=V2).code == 422
    assert talk("POST", path, {}, content=V2).code == 422
    assert talk("POST", path, {"topics": []}, content=V2).code == 422
    assert talk("POST", path, {"topic_pattern": "("}, content=V2).code == 422


def test_a_pattern_subscribes_to_topics(talk: Talk) -> None:
    topic = talk.new_topic()
    talk.produce(topic, 1)
    uri = talk.instance(format="json")
    assert talk("POST", f"{uri}/subscription", {"topic_pattern": f"{topic}.*"}, content=V2).status == 204
    assert talk.read(uri, 1)[0]["topic"] == topic
    assert talk("GET", f"{uri}/subscription").document == {"topics": [topic]}


def test_positions(talk: Talk) -> None:
    topic = talk.new_topic()
    talk.produce(topic, *"abc")
    uri = talk.instance(format="json")
    place = {"topic": topic, "partition": 0}
    unassigned = talk("POST", f"{uri}/positions/beginning", {"partitions": [place]}, content=V2)
    assert (unassigned.status, unassigned.code) == (409, 40903)
    assert talk("POST", f"{uri}/assignments", {"partitions": [place]}, content=V2).status == 204
    assert talk("POST", f"{uri}/subscription", {"topics": [topic]}, content=V2).code == 40903

    def values(path: str, body: object) -> list[object]:
        moved = talk("POST", f"{uri}/positions{path}", body, content=V2)
        assert moved.status == 204, moved
        return [one["value"] for one in talk.read(uri, 1)]

    assert values("", {"offsets": [{**place, "offset": 1}]}) == ["b", "c"]
    assert values("/beginning", {"partitions": [place]}) == ["a", "b", "c"]
    assert values("", {"timestamps": [{**place, "timestamp": "2024-01-01T00:00:00Z"}]}) == ["a", "b", "c"]
    talk("POST", f"{uri}/positions/end", {"partitions": [place]}, content=V2)
    assert talk("GET", f"{uri}/records").document == []
    talk.produce(topic, "d")
    assert [one["value"] for one in talk.read(uri, 1)] == ["d"]
    other = talk("POST", f"{uri}/positions", {"offsets": [{"topic": topic, "partition": 9, "offset": 0}]}, content=V2)
    assert other.code == 40903
    nowhere = {"topic": "not-there", "partition": 0}
    unassigned = talk("POST", f"{uri}/positions", {"timestamps": [{**nowhere, "timestamp": "2024-01-01"}]}, content=V2)
    assert unassigned.code == 40903
    bad = {"timestamps": [{**place, "timestamp": "yesterday"}]}
    assert talk("POST", f"{uri}/positions", bad, content=V2).status == 400
    assert talk("POST", f"{uri}/assignments", {"partitions": [nowhere]}, content=V2).status == 204
    for path in ("/beginning", "/end"):
        assert talk("POST", f"{uri}/positions{path}", {"partitions": [nowhere]}, content=V2).code == 40403


def test_two_reads_at_once_are_refused(talk: Talk) -> None:
    topic = talk.new_topic()
    uri = talk.instance(format="json", consumer_request_timeout_ms=60_000)
    talk("POST", f"{uri}/assignments", {"partitions": [{"topic": topic, "partition": 0}]}, content=V2)
    answers: list[Reply] = []

    def read() -> None:
        with Talk(talk.url) as another:
            # One of the two waits for a record; `fetch.min.bytes` is what lets it go.
            answers.append(another("GET", f"{uri}/records?timeout=4000"))

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join(60)
    assert sorted(answer.status for answer in answers) == [200, 409]
    assert next(answer.code for answer in answers if answer.status == 409) == 40903


def test_an_enough_of_bytes_ends_a_read(talk: Talk) -> None:
    topic = talk.new_topic()
    uri = talk.instance(format="json", consumer_request_timeout_ms=120_000, fetch_min_bytes=1)
    talk("POST", f"{uri}/assignments", {"partitions": [{"topic": topic, "partition": 0}]}, content=V2)
    talk.produce(topic, "x")
    began = time.monotonic()
    assert talk.read(uri, 1)[0]["value"] == "x"
    assert time.monotonic() - began < 100  # it did not wait for its time to pass
    assert talk("POST", "/consumers/g", {"fetch.min.bytes": 10_000_001}, content=V2).code == 40001
    assert talk("POST", "/consumers/g", {"fetch.min.bytes": "many"}, content=V2).code == 42204


def test_a_record_that_is_not_json_fails_the_read_until_it_is_skipped(talk: Talk) -> None:
    topic = talk.new_topic()
    talk("POST", f"/topics/{topic}", {"records": [{"value": b64("{")}]}, content=embedded("binary"))
    talk.produce(topic, "good")
    uri = talk.instance(format="json")
    place = {"topic": topic, "partition": 0}
    talk("POST", f"{uri}/assignments", {"partitions": [place]}, content=V2)
    deadline = time.monotonic() + 60
    while (failed := talk("GET", f"{uri}/records")).status == 200:
        assert time.monotonic() < deadline
    assert (failed.status, failed.code) == (408, 40801)
    talk("POST", f"{uri}/positions", {"offsets": [{**place, "offset": 1}]}, content=V2)
    assert [one["value"] for one in talk.read(uri, 1)] == ["good"]


def test_unknown_instances(talk: Talk) -> None:
    for method, path in (
        ("GET", "/records"),
        ("GET", "/topics/t"),
        ("POST", "/offsets"),
        ("GET", "/subscription"),
        ("DELETE", "/subscription"),
        ("GET", "/assignments"),
        ("DELETE", ""),
    ):
        answer = talk(method, f"/consumers/g/instances/nobody{path}")
        assert (answer.status, answer.code) == (404, 40403), path
