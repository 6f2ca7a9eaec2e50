"""Short words for what tests do with a worker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx
from tests.integration.server_process import wait_until

COUNTER = "tests.integration.connect.connectors.Counter"
SINK = "tests.integration.connect.connectors.DatabaseSink"


def make(connect: httpx.Client, name: str, config: Mapping[str, str]) -> dict[str, Any]:
    """Make a connector."""
    answer = connect.post("/connectors", json={"name": name, "config": dict(config)})
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def states(connect: httpx.Client, name: str) -> tuple[str, list[str]]:
    """The states of a connector and its tasks; empty before there is a status."""
    answer = connect.get(f"/connectors/{name}/status")
    if answer.status_code != 200:
        return "", []
    status = answer.json()
    return status["connector"]["state"], [one["state"] for one in status["tasks"]]


def await_states(connect: httpx.Client, name: str, connector: str, *tasks: str) -> None:
    """Wait until a connector and its tasks are in these states."""
    wait_until(
        lambda: states(connect, name) == (connector, list(tasks)),
        what=f"{name} {connector} {tasks}, it was {states(connect, name)}",
    )


def delete(connect: httpx.Client, name: str) -> None:
    answer = connect.delete(f"/connectors/{name}")
    assert answer.status_code == 204, answer.text
