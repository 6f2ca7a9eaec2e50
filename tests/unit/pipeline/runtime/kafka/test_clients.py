"""What the clients of a pipeline log, and what its application says itself."""

from __future__ import annotations

import logging

import pytest

from moldau.client.connection_log import ConnectionLog
from moldau.pipeline.runtime.kafka.clients import KafkaClients, report_client_log


def test_lines_go_to_the_clients_logger_with_their_level(caplog: pytest.LogCaptureFixture) -> None:
    report_client_log("WARN", "[Producer] Broker b:9092 is not available: Connection refused")
    report_client_log("ERROR", "[Producer] out of luck")
    assert [(record.name, record.levelno) for record in caplog.records] == [
        ("moldau.client", logging.WARNING),
        ("moldau.client", logging.ERROR),
    ]


def test_that_another_instance_took_over_is_said_by_the_application(caplog: pytest.LogCaptureFixture) -> None:
    report_client_log("ERROR", "[Consumer] Fatal error: Static consumer fenced by other consumer with same id")
    assert caplog.records == []


def test_a_cluster_that_is_away_is_told_by_name() -> None:
    clients = KafkaClients(bootstrap_servers="b:9092")
    log = ConnectionLog.to(report_client_log)
    assert clients.outage is None

    refused = "[thrd:b:9092/bootstrap]: b:9092/bootstrap: Connect to ipv4#10.0.0.1:9092 failed: Connection refused"
    log.take("Producer", logging.ERROR, "FAIL", f"{refused} (after 0ms in state CONNECT)", "one")
    assert clients.outage == "no broker answers at b:9092"

    log.take("Producer", logging.DEBUG, "APIVERSION", "b:9092/bootstrap: Broker API support:", "one")
    assert clients.outage is None


def test_each_kind_of_client_gets_its_own_properties() -> None:
    clients = KafkaClients(bootstrap_servers="b:9092", consumer={"max.poll.records": "7"}, producer={"acks": "1"})

    assert clients.connector_properties("consumer") == {"kafka.bootstrap.servers": "b:9092"}
    assert clients.connector_properties("producer") == {"kafka.bootstrap.servers": "b:9092", "kafka.acks": "1"}
