"""`moldau up --bootstrap-server`: every service but the broker, on Apache Kafka, over a kill of each."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.integration.running_platform import Platform
from tests.oracle.apache_kafka import ApacheKafka, needs_apache_kafka

TITLES = ("schema registry", "REST proxy", "Connect", "ksql")


@pytest.mark.timeout(600)
def test_all_services_but_the_broker_run_on_apache_kafka(tmp_path: Path) -> None:
    needs_apache_kafka()
    with ApacheKafka(tmp_path / "kafka") as kafka:
        platform = Platform(tmp_path / "platform")
        started = platform.up("--bootstrap-server", kafka.bootstrap)
        assert started.returncode == 0, started.stderr
        try:
            assert tuple(platform.rows()) == TITLES
            assert platform.produce("orders") == 0
            schema_id = platform.register("orders-value")
            platform.run_statements(
                "CREATE STREAM orders (amount INT) WITH (kafka_topic='orders', value_format='json');"
            )
            for title in TITLES:
                platform.kill(title)
            assert platform.produce("orders") == 1
            assert platform.register("orders-value") == schema_id
            (listing,) = platform.run_statements("SHOW STREAMS;")
            assert "ORDERS" in [one["name"] for one in listing["streams"]]
            assert platform.ask("connect", "/connectors") == []
        finally:
            assert platform.moldau("down").returncode == 0
