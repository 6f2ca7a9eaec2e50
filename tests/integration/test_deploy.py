"""Dashboards and alert rules name only metrics that are exported, with labels that they have."""

from __future__ import annotations

import json
import re
import urllib.request
from pathlib import Path

import pytest
import yaml
from confluent_kafka import Consumer, Producer
from tests.free_ports import free_port

from moldau.server.platform.services import METRICS_PORT, SERVICES
from moldau.testing import Broker

DEPLOY = Path(__file__).parents[2] / "deploy"
METRIC = re.compile(r"\b((?:kafka|moldau|process)_\w+)(?:\{([^}]*)\})?")
BY_PROMETHEUS = {"job", "instance"}
"""Labels that Prometheus adds to every series."""


def alert_expressions() -> list[str]:
    rules = yaml.safe_load((DEPLOY / "monitoring" / "alerts.yml").read_text())
    return [rule["expr"] for group in rules["groups"] for rule in group["rules"]]


def dashboard_expressions() -> list[str]:
    panels = json.loads((DEPLOY / "monitoring" / "grafana-dashboard.json").read_text())["panels"]
    return [target["expr"] for panel in panels for target in panel.get("targets", ())]


@pytest.fixture(scope="module")
def exported() -> dict[str, set[str]]:
    """The labels of every metric of a broker that has served a producer and a group."""
    with Broker({"metrics.http.port": str(free_port())}) as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        producer.produce("seen", b"x")
        assert producer.flush(60) == 0
        group = {"group.id": "readers", "auto.offset.reset": "earliest", "enable.auto.commit": False}
        consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, **group})
        consumer.subscribe(["seen"])
        assert len(consumer.consume(1, timeout=60)) == 1
        consumer.commit(asynchronous=False)
        with urllib.request.urlopen(f"{broker.metrics_url}/metrics", timeout=60) as answer:
            text = answer.read().decode()
        consumer.close()
    found: dict[str, set[str]] = {name: set() for name in re.findall(r"^# TYPE (\S+)", text, re.MULTILINE)}
    for name, labels in re.findall(r"^(\w+)\{([^}]*)\}", text, re.MULTILINE):
        found.setdefault(name, set()).update(re.findall(r'(\w+)="', labels))
    return found


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
