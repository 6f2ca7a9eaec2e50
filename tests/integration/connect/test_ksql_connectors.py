"""ksql's statements about connectors, through a worker."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
from tests.integration.connect.talk import COUNTER, await_states

from moldau.ksql.api.errors import RequestError
from moldau.ksql.statements.connectors import Connectors
from moldau.pipeline.ksql.syntax.parser import parse
from moldau.testing.connect import ConnectWorker


def run(worker: ConnectWorker, text: str) -> dict[str, Any]:
    [statement] = parse(text)
    return asyncio.run(Connectors(worker.url).answer(statement))


def test_connectors_are_made_shown_described_and_dropped(worker: ConnectWorker, connect: httpx.Client) -> None:
    create = f"CREATE SOURCE CONNECTOR {{}} made_by_sql WITH ('connector.class'='{COUNTER}', 'topic'='sql', 'limit'=3);"
    made = run(worker, create.format(""))
    assert made["@type"] == "connector_info"
    name = made["info"]["name"]
    assert made["info"]["config"]["limit"] == "3"
    assert run(worker, create.format("IF NOT EXISTS"))["@type"] == "warning_entity"
    with pytest.raises(RequestError, match="already exists"):
        run(worker, create.format(""))
    await_states(connect, name, "RUNNING", "RUNNING")
    [listed] = run(worker, "SHOW SOURCE CONNECTORS;")["connectors"]
    assert listed == {
        "name": name,
        "type": "source",
        "className": COUNTER,
        "state": "RUNNING (1/1 tasks RUNNING)",
    }
    assert run(worker, "SHOW SINK CONNECTORS;")["connectors"] == []
    plugins = run(worker, "SHOW CONNECTOR PLUGINS;")["connectorsPlugins"]
    assert "org.apache.kafka.connect.file.FileStreamSinkConnector" in [one["className"] for one in plugins]
    described = run(worker, "DESCRIBE CONNECTOR made_by_sql;")
    assert described["connectorClass"] == COUNTER
    assert described["status"]["tasks"][0]["state"] == "RUNNING"
    assert run(worker, "DROP CONNECTOR made_by_sql;")["connectorName"] == name
    assert run(worker, "DROP CONNECTOR IF EXISTS made_by_sql;")["@type"] == "warning_entity"
    with pytest.raises(RequestError, match="not found"):
        run(worker, "DROP CONNECTOR made_by_sql;")
