"""The commands of docs/rest.md, sent as they are written."""

from __future__ import annotations

import re
import shlex
import time
from pathlib import Path

import httpx
import pytest

from moldau.rest.settings import REST_KEYS
from moldau.testing import Broker
from moldau.testing.registry import SchemaRegistry
from moldau.testing.rest import RestProxy

TEXT = (Path(__file__).resolve().parents[3] / "docs" / "rest.md").read_text()
COMMANDS = [line for block in re.findall(r"```bash\n(.*?)```", TEXT, re.DOTALL) for line in block.splitlines()]


def sent(client: httpx.Client, command: str) -> httpx.Response:
    """What curl would do with these words."""
    program, *words = shlex.split(command)
    assert program == "curl"
    method, headers, data, url = "GET", {}, None, ""
    while words:
        word = words.pop(0)
        if word == "-X":
            method = words.pop(0)
        elif word == "-H":
            name, _, text = words.pop(0).partition(": ")
            headers[name] = text
        elif word == "--data":
            data = words.pop(0)
        else:
            url = word.replace("localhost:8082", "")
    return client.request(method, url, headers=headers, content=data)


def test_the_commands_run(platform: tuple[Broker, SchemaRegistry, RestProxy]) -> None:
    with httpx.Client(base_url=platform[2].url, timeout=60) as client:
        cluster = client.get("/v3/clusters").json()["data"][0]["cluster_id"]
        for command in COMMANDS:
            answer = sent(client, command.replace("CLUSTER", cluster))
            deadline = time.monotonic() + 60
            while "instances" in command and answer.text == "[]" and "-H 'Accept" in command:
                assert time.monotonic() < deadline, command
                answer = sent(client, command)
            assert answer.status_code < 300, (command, answer.text)
            assert '"error_code":4' not in answer.text, (command, answer.text)


@pytest.mark.parametrize("key", re.findall(r"^\| `([a-z0-9.]+)`", TEXT, re.MULTILINE))
def test_the_settings_exist(key: str) -> None:
    assert key in REST_KEYS
