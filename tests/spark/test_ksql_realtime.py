"""A query in real-time mode on a server that runs one in micro-batches already: both give results, and pull works."""

from __future__ import annotations

import json
import urllib.error
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tests.integration.server_process import wait_until
from tests.spark.ksql_kill import KsqlProcess

from moldau.testing import Broker

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

PATIENCE_S = 300.0


def test_real_time_beside_micro_batches(broker: Broker, tmp_path: Path) -> None:
    server = KsqlProcess(broker.bootstrap_servers, tmp_path)
    server.start()
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})

    def send(key: str, value: str) -> None:
        producer.produce("orders", value, key)
        assert producer.flush(60) == 0

    def count_of(table: str, key: str) -> int:
        rows = server.rows(f"SELECT N FROM {table} WHERE ID = '{key}';")
        return int(rows[0][0]) if rows else 0

    try:
        server.statements(
            "CREATE STREAM orders (id STRING KEY, price INT) WITH (kafka_topic='orders', partitions=2, "
            "value_format='JSON');"
            "CREATE TABLE slow AS SELECT id, COUNT(*) AS n FROM orders GROUP BY id;"
        )
        for _ in range(3):
            send("a", '{"PRICE": 1}')
        wait_until(lambda: count_of("SLOW", "a") == 3, timeout_s=PATIENCE_S, what="the first query's result")
        server.statements(
            "SET 'moldau.latency'='realtime';"
            "CREATE TABLE fast AS SELECT id, COUNT(*) AS n, SUM(price) AS total FROM orders GROUP BY id;"
        )
        wait_until(lambda: count_of("FAST", "a") == 3, timeout_s=PATIENCE_S, what="the real-time query's result")
        send("a", "no JSON")
        send("a", '{"PRICE": 5}')
        wait_until(lambda: count_of("FAST", "a") == 4, timeout_s=PATIENCE_S, what="the next real-time result")
        wait_until(lambda: count_of("SLOW", "a") == 4, timeout_s=PATIENCE_S, what="the next result in micro-batches")
        assert server.rows("SELECT TOTAL FROM FAST WHERE ID = 'a';") == [[8]]
        with pytest.raises(urllib.error.HTTPError) as refused:
            server.statements(
                "SET 'moldau.latency'='realtime';CREATE STREAM never AS SELECT id, INITCAP(id) AS x FROM orders;"
            )
        assert "INITCAP is evaluated by Python" in json.load(refused.value)["message"]
    finally:
        server.stop()
