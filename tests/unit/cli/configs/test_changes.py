"""What an --alter adds and removes."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.cli.configs.changes import Changes, parse_add_config, parse_changes
from moldau.cli.configs.command import PARSER
from moldau.cli.options import UsageError


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a=1", {"a": "1"}),
        ("a=1,b=2", {"a": "1", "b": "2"}),
        ("cleanup.policy=[compact,delete],b=2", {"cleanup.policy": "compact,delete", "b": "2"}),
        ("a=", {"a": ""}),
        (" a = 1 , b=2", {"a": "1", "b": "2"}),
        ("SCRAM-SHA-256=[iterations=8192,password=x]", {"SCRAM-SHA-256": "iterations=8192,password=x"}),
    ],
)
def test_brackets_hold_values_with_commas(text: str, found: dict[str, str]) -> None:
    assert parse_add_config(text) == found


def test_a_config_without_an_equals_sign_is_refused() -> None:
    with pytest.raises(UsageError, match='must be in the format "key=val"'):
        parse_add_config("a=1,b")


def parse(*words: str) -> Changes:
    return parse_changes(PARSER.parse(words))


def test_adding_and_deleting_go_together(tmp_path: Path) -> None:
    assert parse("--add-config", "a=1", "--delete-config", "b, c") == Changes({"a": "1"}, ("b", "c"))
    file = tmp_path / "configs"
    file.write_text("a=1\nb=2,3\n")
    assert parse("--add-config-file", str(file)).add == {"a": "1", "b": "2,3"}


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--add-config", "a=1", "--delete-config", "a"),
        ("--add-config", "a=1", "--add-config-file", "f"),
    ],
)
def test_nothing_and_contradictions_are_refused(words: tuple[str, ...]) -> None:
    with pytest.raises(UsageError):
        parse(*words)
