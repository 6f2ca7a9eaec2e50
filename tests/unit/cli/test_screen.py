"""Tables in pipes, and JSON."""

from __future__ import annotations

import json

import pytest

from moldau.cli.screen import Screen, render_size


def test_a_table_in_a_pipe_is_aligned_columns(capsys: pytest.CaptureFixture[str]) -> None:
    Screen().table(("Topic", "In sync"), [("orders", (1, 2)), ("x", None)])
    assert capsys.readouterr().out == "TOPIC   IN SYNC\norders  1,2\nx       -\n"


def test_json_has_the_columns_as_names(capsys: pytest.CaptureFixture[str]) -> None:
    Screen("json").table(("Topic", "In sync"), [("orders", (1, 2))])
    assert json.loads(capsys.readouterr().out) == [{"topic": "orders", "in_sync": [1, 2]}]


def test_done_is_a_line_or_facts(capsys: pytest.CaptureFixture[str]) -> None:
    Screen().done("Created t", topic="t")
    Screen("json").done("Created t", topic="t")
    assert capsys.readouterr().out == 'Created t\n{"topic": "t"}\n'


@pytest.mark.parametrize(("size", "text"), [(0, "0 B"), (1536, "1.5 KiB"), (3 * 1024**4, "3.0 TiB")])
def test_sizes_have_units(size: int, text: str) -> None:
    assert render_size(size) == text
