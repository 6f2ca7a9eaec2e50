"""A handful of kafka-python's own integration tests; `scripts/compat kafka-python` runs them all."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.compat.brokers import Endpoint
from tests.compat.kafka_python import suite
from tests.compat.results import Outcome

QUICK = (
    "test_producer_integration.py::test_end_to_end[zstd]",
    "test_producer_integration.py::test_idempotent_producer_max_in_flight[5]",
    "test_consumer_integration.py::test_kafka_consumer_offsets_for_time",
    "test_consumer_integration.py::test_kafka_consumer_max_bytes_simple",
    "test_admin_integration.py::test_create_delete_topics",
    "test_admin_integration.py::test_delete_records",
    "test_admin_integration.py::test_describe_configs_topic_resource_returns_configs",
)


@pytest.fixture(scope="module")
def source() -> Path:
    try:
        return suite.unpacked()
    except subprocess.CalledProcessError:
        pytest.skip("kafka-python's source package could not be fetched")


@pytest.mark.parametrize("name", QUICK)
def test_kafka_pythons_own_test_passes(name: str, source: Path, endpoint: Endpoint, tmp_path: Path) -> None:
    log = tmp_path / "output"

    outcome = suite.run(name, source, endpoint, log, timeout_s=60)

    assert outcome is Outcome.PASS, log.read_text(errors="replace")[-3000:]
