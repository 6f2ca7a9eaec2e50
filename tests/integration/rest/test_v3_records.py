"""Producing in version 3: single records, streams, batches, and the live tail."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.integration.rest.talk import Talk, b64
from tests.integration.server_process import wait_until

from moldau.testing import Broker
from moldau.testing.registry import SchemaRegistry
from moldau.testing.rest import RestProxy

JSON = "application/json"
AVRO_SCHEMA = '{"type": "record", "name": "Payment", "fields": [{"name": "amount", "type": "int"}]}'


def documents(text: str) -> list[Any]:
    """The JSON documents of a stream."""
    decoder, found, position = json.JSONDecoder(), [], 0
    while text[position:].strip():
        document, position = decoder.raw_decode(text, position + len(text[position:]) - len(text[position:].lstrip()))
        found.append(document)
    return found


def send(talk: Talk, topic: str, *records: Any) -> list[Any]:
    """The reports of a stream of records."""
    body = "\n".join(record if isinstance(record, str) else json.dumps(record) for record in records)
    answer = talk.http.post(f"{talk.cluster}/topics/{topic}/records", content=body, headers={"content-type": JSON})
    assert answer.status_code == 200, answer.text
    return documents(answer.text)


def binary(text: str) -> dict[str, Any]:
    return {"value": {"type": "BINARY", "data": b64(text)}}


def test_a_record_with_everything(talk: Talk) -> None:
    topic = talk.new_topic(partitions=2)
    record = {
        "partition_id": 1,
        "timestamp": "2021-02-05T19:14:42Z",
        "headers": [{"name": "h", "value": b64("x")}, {"name": "none", "value": None}],
        "key": {"type": "STRING", "data": "k"},
        "value": {"type": "JSON", "data": {"a": 1}},
    }
    assert send(talk, topic, record) == [
        {
            "error_code": 200,
            "cluster_id": talk.cluster.rpartition("/")[2],
            "topic_name": topic,
            "partition_id": 1,
            "offset": 0,
            "timestamp": "2021-02-05T19:14:42Z",
            "key": {"type": "STRING", "size": 1},
            "value": {"type": "JSON", "size": 7},
        }
    ]


def test_an_empty_body_is_a_payload_error(talk: Talk) -> None:
    answer = talk("POST", f"{talk.cluster}/topics/t/records", "", content=JSON)
    assert (answer.status, answer.code) == (422, 42206)


def test_a_bad_record_fails_alone_and_in_order(talk: Talk) -> None:
    """The contract's ninth scenario."""
    topic = talk.new_topic()
    reports = send(talk, topic, binary("a"), {"value": {"type": "BINARY", "data": "1"}}, binary("c"))
    assert [report["error_code"] for report in reports] == [200, 400, 200]
    assert reports[1]["message"] == "Bad Request: data=1 is not a base64 string."
    assert [reports[0]["offset"], reports[2]["offset"]] == [0, 1]


@pytest.mark.parametrize(
    ("record", "code"),
    [
        ({"value": {"type": "XML", "data": 1}}, 400),
        ({"value": {"type": "STRING", "data": 1}}, 400),
        ({"value": {"type": "BINARY", "data": "YQ==", "schema_id": 1}}, 400),
        ({"value": {"type": "AVRO", "data": 1}}, 400),
        ({"value": {"schema": '"int"', "data": 1}}, 400),
        ({"value": {"schema_id": 1, "schema_version": 1, "data": 1}}, 400),
        ({"value": {"subject": "s", "subject_name_strategy": "TOPIC_NAME", "data": 1}}, 400),
        ({"value": {"subject_name_strategy": "RECORD_NAME", "data": 1}}, 400),
        ({"value": {"type": "AVRO", "schema": "{", "data": 1}}, 42205),
        ({"value": {"type": "AVRO", "schema": '"int"', "data": "x"}}, 400),
        ({"value": {"schema_id": 999_999, "data": 1}}, 42207),
        ({"value": {"data": 1}}, 42207),
        ({"value": 3}, 400),
        ({"partition_id": -1}, 40402),
        ({"partition_id": 99}, 40403),
        ({"timestamp": "now"}, 400),
        ({"headers": [{"value": "YQ=="}]}, 400),
        ({"what": 1}, 400),
    ],
)
def test_records_that_cannot_be_produced(talk: Talk, record: Any, code: int) -> None:
    topic = talk.new_topic()
    assert [report["error_code"] for report in send(talk, topic, record)] == [code]


def test_malformed_json_ends_the_stream_after_one_report(talk: Talk) -> None:
    topic = talk.new_topic()
    for bad in ('{"value": nothing}', "]", '{"value":'):
        reports = send(talk, topic, binary("a"), bad, *([binary("c")] if bad != '{"value":' else []))
        assert [report["error_code"] for report in reports] == [200, 400], bad
    large = {"value": {"type": "STRING", "data": "x" * 1_100_000}}
    assert [report["error_code"] for report in send(talk, topic, binary("a"), large, binary("b"))] == [200, 413]


def test_schemas_by_text_by_id_by_version_and_the_latest(talk: Talk) -> None:
    topic = talk.new_topic()
    by_text = {"type": "AVRO", "schema": AVRO_SCHEMA, "data": {"amount": 1}}
    first = send(talk, topic, {"value": by_text})[0]["value"]
    number = first["schema_id"]
    assert first == {
        "type": "AVRO",
        "size": 6,
        "subject": f"{topic}-value",
        "schema_id": number,
        "schema_version": 1,
    }
    for part in (
        {"schema_id": number},
        {"schema_version": 1},
        {},
        {"subject": f"{topic}-value"},
        {"type": "AVRO", "schema": AVRO_SCHEMA},
    ):
        assert send(talk, topic, {"value": {**part, "data": {"amount": 2}}})[0]["value"] == first, part
    by_name = {**by_text, "subject_name_strategy": "TOPIC_RECORD_NAME"}
    assert send(talk, topic, {"value": by_name})[0]["value"]["subject"] == f"{topic}-Payment"
    assert talk("GET", f"{talk.cluster}/topics/{topic}/partitions/0/offset").document["latest_offset"] == 7


def test_reports_arrive_while_the_stream_is_open(talk: Talk) -> None:
    topic = talk.new_topic()
    url = httpx.URL(talk.url)
    path = f"{talk.cluster}/topics/{topic}/records"
    head = f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: {JSON}\r\ntransfer-encoding: chunked\r\n\r\n"
    with socket.create_connection((url.host, url.port or 80), timeout=60) as connection:
        connection.sendall(head.encode())
        received = b""
        for number in range(3):
            record = json.dumps(binary(str(number))).encode()
            for cut in (record[:9], record[9:]):
                connection.sendall(b"%x\r\n%s\r\n" % (len(cut), cut))
            while received.count(b'"offset"') <= number:
                received += connection.recv(65536)
        connection.sendall(b"0\r\n\r\n")
        while not received.endswith(b"0\r\n\r\n"):
            received += connection.recv(65536)
    assert [report["offset"] for report in documents(_unchunked(received))] == [0, 1, 2]


def _unchunked(received: bytes) -> str:
    text, rest = "", received.partition(b"\r\n\r\n")[2]
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        text, rest = text + rest[: int(size, 16)].decode(), rest[int(size, 16) + 2 :]
    return text


def test_many_records_keep_their_order(talk: Talk) -> None:
    topic = talk.new_topic()
    reports = send(talk, topic, *(binary(str(number)) for number in range(5000)))
    assert [report["offset"] for report in reports] == list(range(5000))


def test_a_batch_reports_each_entry(talk: Talk) -> None:
    topic = talk.new_topic()
    entries = [{"id": "1", **binary("a")}, {"id": "b-2", "value": {"type": "BINARY", "data": "!"}}, {"id": "3"}]
    answer = talk("POST", f"{talk.cluster}/topics/{topic}/records:batch", {"entries": entries}, content=JSON)
    assert answer.status == 207
    assert [(one["id"], one["offset"]) for one in answer.document["successes"]] == [("1", 0), ("3", 1)]
    assert [(one["id"], one["error_code"]) for one in answer.document["failures"]] == [("b-2", 400)]


@pytest.mark.parametrize(
    "body",
    [
        "",
        {},
        {"entries": []},
        {"entries": [{"id": str(number)} for number in range(11)]},
        {"entries": [{"id": "a"}, {"id": "a"}]},
        {"entries": [{"id": 1}]},
        {"entries": [{"id": "a b"}]},
        {"entries": [3]},
    ],
)
def test_batches_that_are_refused(talk: Talk, body: Any) -> None:
    topic = talk.new_topic()
    answer = talk("POST", f"{talk.cluster}/topics/{topic}/records:batch", body, content=JSON)
    assert (answer.status, answer.code) == (422, 42208)
    assert talk("GET", f"{talk.cluster}/topics/{topic}/partitions/0/offset").document["latest_offset"] == 0


def test_a_stream_that_is_open_too_long_is_told_so(platform: tuple[Broker, SchemaRegistry, RestProxy]) -> None:
    settings = {
        "streaming.connection.max.duration.ms": "1",
        "streaming.connection.max.duration.grace.period.ms": "60000",
    }
    with RestProxy(platform[0].bootstrap_servers, settings) as rest, Talk(rest.url) as talk:
        topic = talk.new_topic()

        def records() -> Iterator[bytes]:
            for _ in range(3):
                time.sleep(0.05)  # longer than the stream may last
                yield json.dumps(binary("x")).encode()

        path = f"{talk.cluster}/topics/{topic}/records"
        answer = talk.http.post(path, content=records(), headers={"content-type": JSON})
        codes = [report["error_code"] for report in documents(answer.text)]
        assert codes[-1] == 408
        assert len(codes) == 3
    with Talk(platform[2].url) as talk:
        stored = talk("GET", f"{talk.cluster}/topics/{topic}/partitions/0/offset").document["latest_offset"]
    assert stored == codes.count(200)


def test_a_stream_that_stays_open_is_closed_after_its_grace_period(servers: str) -> None:
    settings = {"streaming.connection.max.duration.ms": "1", "streaming.connection.max.duration.grace.period.ms": "1"}
    with RestProxy(servers, settings) as rest, Talk(rest.url) as talk:
        url = httpx.URL(talk.url)
        path = f"{talk.cluster}/topics/{talk.new_topic()}/records"
        head = f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: {JSON}\r\ntransfer-encoding: chunked\r\n\r\n"
        record = json.dumps(binary("x")).encode()
        with socket.create_connection((url.host, url.port or 80), timeout=60) as connection:
            connection.sendall(head.encode() + b"%x\r\n%s\r\n" % (len(record), record))
            received = b""
            while not received.endswith(b"0\r\n\r\n"):  # the answer's end, though the request has none
                received += connection.recv(65536)


def test_a_client_that_leaves_a_stream_ends_it(talk: Talk, platform: tuple[Broker, SchemaRegistry, RestProxy]) -> None:
    topic, url = talk.new_topic(), httpx.URL(talk.url)
    path = f"{talk.cluster}/topics/{topic}/records"
    head = f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: {JSON}\r\ntransfer-encoding: chunked\r\n\r\n"
    records = json.dumps(binary("x")).encode() * 20_000
    with socket.create_connection((url.host, url.port or 80), timeout=60) as connection:
        connection.sendall(head.encode() + b"%x\r\n%s" % (len(records), records[:1_000_000]))
        connection.recv(1000)
    instance = platform[2].instance
    assert instance is not None
    proxy = instance.proxy
    assert proxy is not None
    wait_until(lambda: proxy.open_streams == 0, what="the end of the stream")


def test_the_tail_of_a_topic(talk: Talk) -> None:
    topic = talk.new_topic(partitions=2)
    path = f"{talk.cluster}/topics/{topic}/records:tail"
    send(talk, topic, {**binary("before"), "partition_id": 0})
    with talk.http.stream("GET", path) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        events = _events(answer.iter_lines())
        send(
            talk,
            topic,
            {"partition_id": 1, "key": {"type": "STRING", "data": "k"}, "value": {"type": "JSON", "data": 7}},
        )
        place, event = next(events)
        assert (event["partition_id"], event["offset"]) == (1, 0)
        assert (event["key"], event["value"]) == ({"type": "STRING", "data": "k"}, {"type": "JSON", "data": 7})
        assert place == "1:1"
    send(talk, topic, {**binary("\udc80".encode("utf-8", "surrogateescape").decode("latin-1")), "partition_id": 1})
    with talk.http.stream("GET", path, headers={"last-event-id": place}) as answer:
        place, event = next(_events(answer.iter_lines()))
        assert (event["partition_id"], event["offset"]) == (1, 1)
    with talk.http.stream("GET", f"{path}?partition=0&offset=earliest") as answer:
        assert next(_events(answer.iter_lines()))[1]["value"] == {"type": "STRING", "data": "before"}
    assert talk("GET", f"{path}?partition=9").code == 40402
    assert talk("GET", f"{path}?offset=somewhere").code == 400
    assert talk("GET", f"{talk.cluster}/topics/not-there/records:tail").code == 40403


def _events(lines: Iterator[str]) -> Iterator[tuple[str, Any]]:
    place = ""
    for line in lines:
        name, _, text = line.partition(": ")
        if name == "id":
            place = text
        elif name == "data":
            yield place, json.loads(text)
