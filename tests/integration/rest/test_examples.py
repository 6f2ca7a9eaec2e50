"""The programs of examples/rest, run as their readers would run them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.rest.talk import Talk

from moldau.testing import Broker
from moldau.testing.registry import SchemaRegistry
from moldau.testing.rest import RestProxy

EXAMPLES = Path(__file__).parents[3] / "examples/rest"
PATIENCE_S = 120


@pytest.fixture(scope="module")
def url(platform: tuple[Broker, SchemaRegistry, RestProxy]) -> Iterator[str]:
    """A proxy whose consumers begin at the beginning."""
    broker, registry, _ = platform
    settings = {"schema.registry.url": registry.url, "consumer.auto.offset.reset": "earliest"}
    with RestProxy(broker.bootstrap_servers, settings) as rest:
        with Talk(rest.url) as talk:
            talk.produce(talk.new_topic(), 1)  # its own clients are made when they are needed
        yield rest.url


def lines_of(name: str, url: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py"), url],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_binary_with_a_manual_commit(url: str) -> None:
    assert lines_of("binary_producer", url) == []
    read = ["Creating consumer instance", "Message Key:firstkey", "Message Value:firstvalue", "Committed"]
    assert lines_of("binary_consumer", url) == read
    assert lines_of("binary_consumer", url) == ["Creating consumer instance"]  # all that was there is committed


def test_avro(url: str) -> None:
    assert lines_of("avro_producer", url) == []
    assert lines_of("avro_consumer", url) == ["spades: ace of spades"]


def test_json(url: str) -> None:
    assert lines_of("json_producer", url) == []
    assert lines_of("json_consumer", url) == ["firstkey firstvalue"]
