"""An empty group id is refused in words by every tool that joins a group."""

from __future__ import annotations

import pytest

from moldau.cli.tools import tool_main


@pytest.mark.parametrize(
    ("tool", "options"),
    [
        ("kafka-console-consumer", ["--group", ""]),
        ("kafka-verifiable-consumer", ["--group-id", ""]),
    ],
)
def test_an_empty_group_id_is_refused(tool: str, options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert tool_main(tool)(["--bootstrap-server", "localhost:1", "--topic", "t", *options]) == 1
    assert "group.id must not be empty" in capsys.readouterr().err
