"""What the clients of a pipeline log, and what its application says itself."""

from __future__ import annotations

import logging

import pytest

from moldau.pipeline.runtime.kafka.clients import report_client_log


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
