"""Dashboards and alert rules name only metrics that are exported, with labels that they have."""

from __future__ import annotations

import json
import re
from contextlib import ExitStack, closing
from pathlib import Path

import httpx
import pytest
import yaml
from confluent_kafka import Consumer, Producer
from tests.free_ports import free_port
from tests.integration.ksql.talk import run, stream
from tests.integration.server_process import wait_until
from tests.ksql_cases.rest_runner import RestServer, RestWorld

from moldau.server.platform.services import METRICS_PORT, SERVICES
from moldau.testing import Broker
from moldau.testing.connect import ConnectWorker
from moldau.testing.registry import SchemaRegistry
from moldau.testing.rest import RestProxy

DEPLOY = Path(__file__).parents[2] / "deploy"
METRIC = re.compile(r"\b((?:kafka|ksql|moldau|process)_\w+)(?:\{([^}]*)\})?")
STRINGS = "org.apache.kafka.connect.storage.StringConverter"
BY_PROMETHEUS = {"job", "instance"}
"""Labels that Prometheus adds to every series."""


def alert_expressions() -> list[str]:
    rules = yaml.safe_load((DEPLOY / "monitoring" / "alerts.yml").read_text())
    return [rule["expr"] for group in rules["groups"] for rule in group["rules"]]


def dashboard_expressions() -> list[str]:
    panels = json.loads((DEPLOY / "monitoring" / "grafana-dashboard.json").read_text())["panels"]
    return [target["expr"] for panel in panels for target in panel.get("targets", ())]


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """The labels of every metric of every service, each after it has had something to do."""
    folder = tmp_path_factory.mktemp("services")
    settings = {"metrics.http.port": str(free_port()), "group.initial.rebalance.delay.ms": "0"}
    found: dict[str, set[str]] = {}
    with ExitStack() as stack:
        broker = stack.enter_context(Broker(settings))
        servers = broker.bootstrap_servers
        _use_broker(servers)
        registry = stack.enter_context(SchemaRegistry(servers))
        rest = stack.enter_context(RestProxy(servers))
        assert httpx.post(f"{rest.url}/topics/seen", json={}).status_code >= 400
        assert httpx.get(f"{rest.url}/v3/clusters/another").status_code == 404
        connect = stack.enter_context(ConnectWorker(servers, {"value.converter": STRINGS}))
        _run_connector(connect.url, folder)
        world = stack.enter_context(closing(RestWorld(servers, folder / "world")))
        ksql = stack.enter_context(closing(RestServer(servers, folder / "ksql", world.send)))
        _run_query(ksql.url)
        for url in (broker.metrics_url, registry.url, rest.url, connect.url, ksql.url):
            text = httpx.get(f"{url}/metrics", timeout=60).text
            assert "process_resident_memory_bytes" in text, f"{url} does not tell about its process"
            _add_labels(found, text)
    return found


def _use_broker(servers: str) -> None:
    producer = Producer({"bootstrap.servers": servers})
    producer.produce("seen", b"x")
    assert producer.flush(60) == 0
    group = {"group.id": "readers", "auto.offset.reset": "earliest", "enable.auto.commit": False}
    consumer = Consumer({"bootstrap.servers": servers, **group})
    consumer.subscribe(["seen"])
    assert len(consumer.consume(1, timeout=60)) == 1
    consumer.commit(asynchronous=False)
    consumer.close()


def _run_connector(url: str, folder: Path) -> None:
    (folder / "lines.txt").write_text("one\n")
    config = {"connector.class": "FileStreamSource", "file": str(folder / "lines.txt"), "topic": "lines"}
    made = httpx.post(f"{url}/connectors", json={"name": "lines", "config": config}, timeout=60)
    assert made.status_code == 201, made.text
    wait_until(lambda: "source_record_write_total" in httpx.get(f"{url}/metrics", timeout=60).text)


def _run_query(url: str) -> None:
    with httpx.Client(base_url=url, timeout=60) as client:
        run(client, f"CREATE STREAM copies AS SELECT * FROM {stream(client)};")
        # The numbers of queries are asked for after a scrape.
        wait_until(lambda: "moldau_ksql_query_lag{" in client.get("/metrics").text)


def _add_labels(found: dict[str, set[str]], text: str) -> None:
    for name in re.findall(r"^# TYPE (\S+)", text, re.MULTILINE):
        found.setdefault(name, set())
    for name, labels in re.findall(r"^(\w+)\{([^}]*)\}", text, re.MULTILINE):
        found.setdefault(name, set()).update(re.findall(r'(\w+)="', labels))


@pytest.mark.parametrize("expression", [*alert_expressions(), *dashboard_expressions()])
def test_an_expression_names_what_is_exported(expression: str, exported: dict[str, set[str]]) -> None:
    metrics = METRIC.findall(expression)
    assert metrics or expression.startswith("up{")
    for name, selectors in metrics:
        assert name in exported
        assert set(re.findall(r"(\w+)=", selectors)) <= exported[name] | BY_PROMETHEUS
        for label in re.findall(r"by \((\w+)\)", expression):
            assert label in exported[name] | BY_PROMETHEUS


def test_every_service_is_scraped_at_its_port() -> None:
    jobs = yaml.safe_load((DEPLOY / "monitoring" / "prometheus.yml").read_text())["scrape_configs"]
    targets = {job["job_name"]: job["static_configs"][0]["targets"] for job in jobs}
    ports = {name: METRICS_PORT if name == "broker" else service.port for name, service in SERVICES.items()}
    assert targets == {f"moldau-{name}": [f"localhost:{port}"] for name, port in ports.items()}


def test_the_container_offers_every_port() -> None:
    exposed = re.search(r"^EXPOSE (.*)$", (DEPLOY / "Containerfile").read_text(), re.MULTILINE)
    assert exposed is not None
    assert {str(service.port) for service in SERVICES.values()} <= set(exposed[1].split())
