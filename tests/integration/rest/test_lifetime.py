"""How long things live: instances that nobody uses, a proxy without brokers, the process and its files."""

from __future__ import annotations

import re
import time
from pathlib import Path

import httpx
import pytest
from tests.integration.killable import KillableBroker
from tests.integration.rest.talk import V2, Talk, embedded
from tests.integration.server_process import ServerProcess, wait_until

from moldau.testing import Broker
from moldau.testing.registry import SchemaRegistry
from moldau.testing.rest import RestProxy

_STARTED = re.compile(r"REST proxy started: (http://\S+)")
ENDED_S = 9.0
"""Far above what is promised, 3 s, and far below what an end took that waited for the broker."""
RECORD, AS_BINARY = '{"records": [{"value": "aGk="}]}', {"content-type": embedded("binary")}


def gauge(talk: Talk, name: str) -> float:
    text = talk.http.get("/metrics").text
    return float(next(line.split()[1] for line in text.splitlines() if line.startswith(f"{name} ")))


def test_instances_that_nobody_uses_are_removed(platform: tuple[Broker, SchemaRegistry, RestProxy]) -> None:
    settings = {"consumer.instance.timeout.ms": "3000", "consumer.request.timeout.ms": "100"}
    with RestProxy(platform[0].bootstrap_servers, settings) as rest, Talk(rest.url) as talk:
        topic, group = talk.new_topic(), talk.new_name("group")
        talk.produce(topic, 1)
        uris = [
            talk("POST", f"/consumers/{group}", {"format": "json"}, content=V2).document["base_uri"] for _ in range(20)
        ]
        for uri in uris[:3]:
            talk("POST", f"{uri}/assignments", {"partitions": [{"topic": topic, "partition": 0}]}, content=V2)
            talk("POST", f"{uri}/positions/beginning", {"partitions": [{"topic": topic, "partition": 0}]}, content=V2)
        assert gauge(talk, "moldau_rest_consumer_clients") <= 3
        kept = uris[-1]
        deadline = time.monotonic() + 90
        while gauge(talk, "moldau_rest_consumer_instances") > 1:
            assert time.monotonic() < deadline
            assert talk("GET", f"{kept}/subscription").status == 200  # each call renews
            time.sleep(0.05)
        assert talk("GET", f"{uris[0]}/records").code == 40403
        assert gauge(talk, "moldau_rest_consumer_clients") == 0
        assert gauge(talk, "moldau_rest_consumer_instances_expired_total") >= 19


def test_a_proxy_without_brokers_says_so() -> None:
    settings = {"moldau.request.timeout.ms": "500", "producer.delivery.timeout.ms": "1000"}
    with RestProxy("127.0.0.1:1", settings) as rest, Talk(rest.url) as talk:
        assert talk("GET", "/healthz").document["healthy"] is True
        for path in ("/readyz", "/topics", "/brokers", "/v3/clusters"):
            answer = talk("GET", path)
            assert (answer.status, answer.code) == (503, 50302), path


def test_metrics_health_and_openapi(talk: Talk) -> None:
    talk("GET", "/topics/not-there")
    text = talk.http.get("/metrics").text
    for name in (
        "kafka_rest_jersey_metrics_request_total",
        'kafka_rest_jersey_metrics_request_error_total{http_status_code="4xx"}',
        "kafka_rest_jersey_metrics_request_latency_avg",
        "moldau_rest_records_produced_total",
        "moldau_rest_consumer_instances",
        "process_resident_memory_bytes",
    ):
        assert f"\n{name} " in text, name
    assert talk("GET", "/readyz").document["brokers"] == 1
    described = talk("GET", "/openapi.json").document["paths"]
    assert "/v3/clusters/{cluster_id}/topics/{topic_name}/records" in described
    assert "application/vnd.kafka.avro.v2+json" in described["/topics/{topic}"]["post"]["requestBody"]["content"]


class RestProcess(ServerProcess):
    """`kafka-rest-start` in a process of its own."""

    def __init__(self, *arguments: str) -> None:
        super().__init__(list(arguments), program=("-m", "moldau.cli.rest.start"))

    @property
    def url(self) -> str:
        wait_until(lambda: _STARTED.search(self.output) or self.has_ended, what="the proxy's start")
        found = _STARTED.search(self.output)
        assert found, self.output
        return found.group(1)


def test_a_proxy_whose_brokers_are_gone_ends_within_moments(tmp_path: Path) -> None:
    """With a consumer that has joined its group, and a record that waits for a broker."""
    broker = KillableBroker(tmp_path, {"num.partitions": "1", "group.initial.rebalance.delay.ms": "0"})
    overrides = [f"bootstrap.servers={broker.bootstrap_servers}", "listeners=http://127.0.0.1:0"]
    try:
        broker.start()
        with RestProcess(*(word for one in overrides for word in ("--override", one))) as process:
            with Talk(process.url) as talk:
                topic = talk.new_topic()
                talk.produce(topic, 1)
                uri = talk("POST", "/consumers/g", {"auto.offset.reset": "earliest"}, content=V2).document["base_uri"]
                talk("POST", f"{uri}/subscription", {"topics": [topic]}, content=V2)
                wait_until(lambda: talk("GET", f"{uri}/records", accept=embedded("binary")).document, what="the record")
            broker.kill()
            with pytest.raises(httpx.ReadTimeout):
                httpx.post(f"{process.url}/topics/{topic}", content=RECORD, headers=AS_BINARY, timeout=5)
            began = time.monotonic()
            assert process.terminate() == 0, process.output
            assert time.monotonic() - began < ENDED_S, process.output
            assert "1 records were not sent" in process.output
    finally:
        broker.close()


@pytest.fixture
def properties(tmp_path: Path, servers: str) -> Path:
    file = tmp_path / "kafka-rest.properties"
    file.write_text(
        f"id=kafka-rest-test\nzookeeper.connect=localhost:2181\nbootstrap.servers=PLAINTEXT://{servers}\n"
        "listeners=http://127.0.0.1:0\nhost.name=proxy.example\nschema.registry.url=http://localhost:1\n"
    )
    return file


def test_the_command_reads_an_old_properties_file(properties: Path) -> None:
    with RestProcess(str(properties)) as process, Talk(process.url) as talk:
        topic = talk.new_topic()
        assert talk.produce(topic, 1).document["offsets"][0]["offset"] == 0
        created = talk("POST", "/consumers/g", {"format": "json"}, content=V2).document
        assert created["instance_id"].startswith("rest-consumer-kafka-rest-test-")
        assert created["base_uri"].startswith("http://proxy.example:")
        body = {"value_schema": '"int"', "records": [{"value": 1}]}
        refused = talk("POST", f"/topics/{topic}", body, content="application/vnd.kafka.avro.v2+json")
        assert (refused.status, refused.code) == (422, 42207)
        assert process.terminate() == 0, process.output
        assert "is not a known setting" not in process.output


def test_a_port_that_is_taken_is_one_line(talk: Talk) -> None:
    port = talk.url.rpartition(":")[2]
    with RestProcess("--override", f"listeners=http://127.0.0.1:{port}") as process:
        assert process.wait() == 1
        assert f"cannot listen on 127.0.0.1:{port}" in process.output
        assert "Traceback" not in process.output
