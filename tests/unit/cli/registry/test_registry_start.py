"""Where a registry listens that is told nothing, or little."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.cli.registry import start
from moldau.registry.instance import RegistryInstance
from moldau.registry.settings import RegistrySettings


@pytest.mark.parametrize(
    ("words", "listeners"),
    [
        ([], "http://127.0.0.1:8081"),
        (["--port", "0"], "http://127.0.0.1:0"),
        (["--host", "0.0.0.0"], "http://0.0.0.0:8081"),
        (["--host", "::1", "--port", "1"], "http://[::1]:1"),
        (["--override", "listeners=http://me:2"], "http://me:2"),
        (["FILE"], None),
        (["FILE", "--port", "3"], "http://0.0.0.0:3"),
    ],
)
def test_without_a_file_only_this_machine_can_connect(words: list[str], listeners: str | None, tmp_path: Path) -> None:
    file = tmp_path / "schema-registry.properties"
    file.write_text("kafkastore.topic=_schemas\n")
    options = start.parser().parse_args([str(file) if word == "FILE" else word for word in words])
    assert start.COMMAND.settings_from(options)["listeners"] == [listeners or "http://0.0.0.0:8081"]


@pytest.mark.parametrize(
    ("host", "said"),
    [
        ("0.0.0.0", "listens on every interface"),
        ("127.0.0.1", "this machine only; --host 0.0.0.0 or listeners opens it to others"),
        ("10.1.2.3", "listens on 10.1.2.3"),
    ],
)
def test_the_log_says_who_can_connect(host: str, said: str) -> None:
    assert RegistryInstance(RegistrySettings.of({"listeners": f"http://{host}:8081"})).reach == said
