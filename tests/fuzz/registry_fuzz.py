"""Requests made up from the registry's own description, valid and not, aimed at a few subjects so that they meet.

Random words would hardly ever be a schema or name a subject twice, so parts of each case are replaced by some that
are. What must never happen is a status of 500 or above, or an answer that the description does not know.
Start at `fuzz`.
"""

from __future__ import annotations

import argparse
import zlib
from typing import Any
from urllib.parse import quote

import httpx
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis import Case
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from moldau.testing import Broker
from moldau.testing.registry import SchemaRegistry

__all__ = ["fuzz"]

SUBJECTS = ("a", "b", ":.lab:a", ":.lab:", "x/y", "ü", "__GLOBAL", ":.__GLOBAL:", ":*:")
VERSIONS = ("1", "2", "latest", "-1", "0", "99")
SCHEMAS = (
    ("AVRO", '"string"'),
    ("AVRO", '{"type":"record","name":"R","fields":[]}'),
    ("AVRO", '{"type":"record","name":"R","fields":[{"name":"f","type":"int","default":1}]}'),
    ("AVRO", '{"type":"record","name":"R","fields":[{"name":"g","type":"string"}]}'),
    ("AVRO", '{"type":"record","name":"R","fields":[{"name":"r","type":["null","R"]}]}'),
    ("JSON", '{"type":"object","properties":{"a":{"type":"string"}}}'),
    ("JSON", '{"type":"object","properties":{"a":{"$ref":"other.json"}},"additionalProperties":false}'),
    ("JSON", "true"),
    ("PROTOBUF", 'syntax = "proto3"; message A { string name = 1; }'),
    ("PROTOBUF", 'syntax = "proto3"; import "other.proto"; message A { B b = 1; }'),
    ("PROTOBUF", 'syntax = "proto3"; message B { map<string, int32> m = 1; oneof o { int32 x = 2; int32 y = 3; } }'),
)
CHECKS = (not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance)
AS_JSON = (response_schema_conformance,)
MODES = [schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE]


def fuzz(schema: Any, client: httpx.Client, *, examples: int, first_seed: int) -> int:
    """Send `examples` cases to each operation; returns how many were sent. A finding is raised."""
    schema.config.generation.modes = MODES
    sent = 0
    for found in schema.get_all_operations():
        _furnish(client)
        sent += _fuzz_operation(found.ok(), examples=examples, first_seed=first_seed)
    return sent


def _fuzz_operation(operation: Any, *, examples: int, first_seed: int) -> int:
    sent = 0
    # A schema's text as it is has the registry's content type, and is JSON only where the schema is.
    checks = [check for check in CHECKS if not (operation.path.endswith("/schema") and check in AS_JSON)]

    @seed(first_seed)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy())
    def run(case: Case) -> None:
        nonlocal sent
        sent += 1
        _aim(case)
        case.call_and_validate(checks=checks)

    run()
    return sent


def _furnish(client: httpx.Client) -> None:
    """Make sure that there is something to find, whatever the cases before did."""
    client.request("DELETE", "/mode", params={"recursive": "true"})
    client.put("/config", json={"compatibility": "NONE"})
    for number, (kind, text) in enumerate(SCHEMAS):
        subject = quote(SUBJECTS[number % 6], safe="")
        client.post(f"/subjects/{subject}/versions", json={"schemaType": kind, "schema": text})


def _aim(case: Case) -> None:
    """Replace some parts by ones that mean something, chosen by what the rest looks like: repeatable by seed."""
    choice = zlib.crc32(repr((case.path_parameters, case.query, case.body)).encode("utf-8", "replace"))
    parts: Any = case.path_parameters
    if parts and "subject" in parts and choice % 8:
        parts["subject"] = quote(SUBJECTS[choice // 8 % len(SUBJECTS)], safe="")
    if parts and "version" in parts and choice % 4:
        parts["version"] = VERSIONS[choice // 16 % len(VERSIONS)]
    if parts and "id" in parts and choice % 4:
        parts["id"] = choice // 16 % 12
    if parts and "context" in parts and choice % 4:
        parts["context"] = ".lab"
    body = case.body
    if isinstance(body, dict) and ("schema" in body or "schemaType" in body) and choice % 4:
        body["schemaType"], body["schema"] = SCHEMAS[choice // 64 % len(SCHEMAS)]
        body["references"] = [_reference(choice)] if choice % 3 == 0 else []
        if choice % 5:
            for name in ("id", "version", "ruleSet"):
                body.pop(name, None)
    if isinstance(body, dict) and "mode" in body and choice % 2:
        body["mode"] = "READWRITE"


def _reference(choice: int) -> dict[str, Any]:
    name = ("other.proto", "other.json", "R", "B")[choice // 32 % 4]
    return {"name": name, "subject": SUBJECTS[choice // 128 % 4], "version": (1, 2, -1, 0)[choice // 512 % 4]}


def main() -> None:
    """Rounds against a real registry over a real broker, each with another seed."""
    parser = argparse.ArgumentParser(prog="scripts/registry-fuzz", description=main.__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--examples", type=int, default=30, help="cases for each operation in a round")
    parser.add_argument("--seed", type=int, default=1, help="of the first round")
    options = parser.parse_args()
    with (
        Broker() as broker,
        SchemaRegistry(broker.bootstrap_servers) as registry,
        httpx.Client(base_url=registry.url) as client,
    ):
        schema = schemathesis.openapi.from_url(f"{registry.url}/openapi.json")
        for number in range(options.seed, options.seed + options.rounds):
            sent = fuzz(schema, client, examples=options.examples, first_seed=number)
            subjects = len(client.get("/subjects").json())
            print(f"seed {number}: {sent} requests, no server error, {subjects} subjects", flush=True)


if __name__ == "__main__":
    main()
