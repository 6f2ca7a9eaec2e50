"""What the schema consoles and the doctor say when a registry or a broker is away: clear lines, and a soon end."""

from __future__ import annotations

import shlex

import pytest
from tests.free_ports import free_port
from tests.integration.cli_commands import run_line

from moldau.testing import Broker, SchemaRegistry

SCHEMAS = {
    "avro": ('"string"', '"x"'),
    "json-schema": ('{"type":"string"}', '"x"'),
    "protobuf": ('syntax = "proto3"; message M { string f = 1; }', '{"f":"x"}'),
}
FORMATS = pytest.mark.parametrize("kind", SCHEMAS)
IMPATIENT = "--producer-property delivery.timeout.ms=1500 --producer-property request.timeout.ms=1000"


@pytest.fixture
def nowhere() -> str:
    """An address where nobody listens."""
    return f"127.0.0.1:{free_port()}"


def produce(kind: str, servers: str, registry: str) -> str:
    schema = shlex.quote(f"value.schema={SCHEMAS[kind][0]}")
    return (
        f"kafka-{kind}-console-producer --bootstrap-server {servers} --topic {kind} --property {schema} "
        f"--property schema.registry.url={registry} {IMPATIENT}"
    )


def consume(kind: str, servers: str, registry: str, *, timeout_ms: int) -> str:
    return (
        f"kafka-{kind}-console-consumer --bootstrap-server {servers} --topic {kind} --from-beginning "
        f"--timeout-ms {timeout_ms} --max-messages 1 --property schema.registry.url={registry}"
    )


@FORMATS
def test_a_registry_that_is_away_is_named(broker: Broker, registry: SchemaRegistry, nowhere: str, kind: str) -> None:
    away, line = f"http://{nowhere}", SCHEMAS[kind][1]
    refused = run_line(produce(kind, broker.bootstrap_servers, away), stdin=f"{line}\n")
    assert refused.returncode == 1
    assert f"the schema registry cannot be reached at {away}" in refused.stderr.splitlines()[-1]

    sent = run_line(produce(kind, broker.bootstrap_servers, registry.url), stdin=f"{line}\n")
    assert (sent.returncode, sent.stderr) == (0, "")
    unread = run_line(consume(kind, broker.bootstrap_servers, away, timeout_ms=30_000))
    assert unread.stdout == ""
    assert f"the schema registry cannot be reached at {away}" in unread.stderr


@FORMATS
def test_a_broker_that_is_away_is_named(registry: SchemaRegistry, nowhere: str, kind: str) -> None:
    lost = run_line(produce(kind, nowhere, registry.url), stdin=f"{SCHEMAS[kind][1]}\n")
    assert f"Broker {nowhere} is not available: Connection refused" in lost.stderr
    assert f"to topic {kind}" in lost.stderr.splitlines()[-1]

    unread = run_line(consume(kind, nowhere, registry.url, timeout_ms=500))
    assert f"Broker {nowhere} is not available: Connection refused" in unread.stderr
    assert unread.stderr.endswith("Processed a total of 0 messages\n")


def test_the_doctor_needs_no_broker() -> None:
    done = run_line("moldau doctor -o json")
    assert done.stdout.startswith("[")
    assert done.stderr == ""
