"""Requests to a ksql server, as the tests of its endpoints need them."""

from __future__ import annotations

import itertools
import json
from typing import Any

import httpx

EARLIEST = {"ksql.streams.auto.offset.reset": "earliest"}
_numbers = itertools.count(1)


def name(prefix: str) -> str:
    """A name that no other test has."""
    return f"{prefix}{next(_numbers)}"


def run(client: httpx.Client, text: str, **members: Any) -> list[dict[str, Any]]:
    """The answers to statements that are right."""
    answer = client.post("/ksql", json={"ksql": text, **members})
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()
    return found


def refused(client: httpx.Client, text: str, **members: Any) -> tuple[int, dict[str, Any]]:
    """Status and error of statements that are wrong."""
    answer = client.post("/ksql", json={"ksql": text, **members})
    return answer.status_code, answer.json()


def stream(client: httpx.Client, prefix: str = "S") -> str:
    """A new stream with the columns ID and V."""
    made = name(prefix)
    run(
        client, f"CREATE STREAM {made} (ID INT KEY, V STRING) WITH (kafka_topic='{made}', format='JSON', partitions=1);"
    )
    return made


def filled_stream(client: httpx.Client) -> str:
    """A stream with the rows (1, 'a') and (2, 'b')."""
    made = stream(client)
    run(client, f"INSERT INTO {made} VALUES (1, 'a'); INSERT INTO {made} VALUES (2, 'b');")
    return made


def query(client: httpx.Client, text: str) -> list[dict[str, Any]]:
    """The elements that `/query` answers, from the start of the topics."""
    answer = client.post("/query", json={"ksql": text, "streamsProperties": EARLIEST})
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = json.loads(answer.text)
    return found
