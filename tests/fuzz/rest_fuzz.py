"""Requests made up from the REST proxy's own description, valid and not, aimed at a few topics, groups and instances.

What must never happen is a status of 500 or above. Start at `fuzz`.
"""

from __future__ import annotations

import argparse
import zlib
from typing import Any

import httpx
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis import Case
from schemathesis.checks import not_a_server_error

from moldau.testing import Broker
from moldau.testing.registry import SchemaRegistry
from moldau.testing.rest import RestProxy

__all__ = ["BROKER", "PROXY", "fuzz"]

ENDLESS = "/records:tail"
MODES = [schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE]
TOPICS = ("a", "b", "not-there", "a")
BROKER = {"auto.create.topics.enable": "false", "group.initial.rebalance.delay.ms": "0"}
PROXY = {
    "consumer.request.timeout.ms": "5",
    # Thousands of partitions are among the requests, and a busy machine takes its time for them.
    "moldau.request.timeout.ms": "240000",
    "consumer.instance.timeout.ms": "60000",
    "moldau.consumer.join.wait.ms": "200",
    "producer.topic.metadata.propagation.max.ms": "100",
}


def fuzz(url: str, *, examples: int, first_seed: int) -> int:
    """Send `examples` cases to each operation; returns how many were sent. A finding is raised."""
    schema = schemathesis.openapi.from_url(f"{url}/openapi.json")
    schema.config.generation.modes = MODES
    sent = 0
    with httpx.Client(base_url=url, timeout=300) as client:
        for found in schema.get_all_operations():
            operation = found.ok()
            if not operation.path.endswith(ENDLESS):
                sent += _fuzz_operation(operation, _furnish(client), examples=examples, first_seed=first_seed)
    return sent


def _fuzz_operation(operation: Any, cluster_id: str, *, examples: int, first_seed: int) -> int:
    sent = 0

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
        _aim(case, cluster_id)
        case.call_and_validate(checks=[not_a_server_error], timeout=300)

    run()
    return sent


def _furnish(client: httpx.Client) -> str:
    """Make sure that there is something to find, whatever the cases before did; returns the cluster's id."""
    cluster_id: str = client.get("/v3/clusters").json()["data"][0]["cluster_id"]
    for topic in set(TOPICS) - {"not-there"}:
        client.post(f"/v3/clusters/{cluster_id}/topics", json={"topic_name": topic, "partitions_count": 2})
    types = {"content-type": "application/vnd.kafka.v2+json"}
    client.post("/consumers/g", json={"name": "i", "format": "json"}, headers=types)
    return cluster_id


def _aim(case: Case, cluster_id: str) -> None:
    """Replace most parts by ones that mean something, chosen by what the rest looks like: repeatable by seed."""
    choice = zlib.crc32(repr((case.path_parameters, case.query, case.body)).encode("utf-8", "replace"))
    topic = TOPICS[choice // 8 % len(TOPICS)]
    known = {
        "cluster_id": cluster_id,
        "topic": topic,
        "topic_name": topic,
        "partition": choice // 64 % 3,
        "partition_id": choice // 64 % 3,
        "broker_id": choice // 16 % 2,
        "group": "g",
        "instance": "i",
        "consumer_group_id": "g",
        "name": ("retention.ms", "cleanup.policy", "log.retention.ms")[choice // 32 % 3],
    }
    parts: Any = case.path_parameters
    for name in list(parts or ()):
        if name in known and choice % 8:
            parts[name] = known[name]
    body = case.body
    if isinstance(body, dict) and body.get("topics") and choice % 2:
        body.pop("topic_pattern", None)
        body["topics"] = [topic]


def main() -> None:
    """Rounds against a real proxy, registry and broker, each with another seed."""
    parser = argparse.ArgumentParser(prog="scripts/rest-fuzz", description=main.__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--examples", type=int, default=30, help="cases for each operation in a round")
    parser.add_argument("--seed", type=int, default=1, help="of the first round")
    options = parser.parse_args()
    for number in range(options.seed, options.seed + options.rounds):
        with (
            Broker(BROKER) as broker,
            SchemaRegistry(broker.bootstrap_servers) as registry,
            RestProxy(broker.bootstrap_servers, {**PROXY, "schema.registry.url": registry.url}) as rest,
        ):
            sent = fuzz(rest.url, examples=options.examples, first_seed=number)
            print(f"seed {number}: {sent} requests, no server error", flush=True)


if __name__ == "__main__":
    main()
