"""How lines become records."""

from __future__ import annotations

import pytest

from moldau.cli.console.line_reader import Line, LineReader
from moldau.cli.tool import ToolError


def reader(**properties: str) -> LineReader:
    return LineReader({key.replace("_", "."): value for key, value in properties.items()}, "t")


def test_without_properties_a_line_is_a_value() -> None:
    assert reader().is_plain
    assert reader().parse(b"a\tb", 1) == Line(None, b"a\tb", [])


def test_a_key_ends_at_the_first_separator() -> None:
    assert reader(parse_key="true").parse(b"k\tv\tw", 1) == Line(b"k", b"v\tw", [])
    assert reader(parse_key="true", key_separator=",").parse(b"A,1000", 1) == Line(b"A", b"1000", [])
    assert reader(parse_key="true", key_separator="::").parse(b"::x", 1) == Line(b"", b"x", [])


def test_a_missing_separator_names_the_line() -> None:
    with pytest.raises(ToolError, match=r"^No key separator found on line number 2: 'abc'$"):
        reader(parse_key="true").parse(b"abc", 2)


def test_errors_can_be_ignored() -> None:
    assert reader(parse_key="true", ignore_error="true").parse(b"abc", 2) == Line(None, b"abc", [])


def test_headers_come_first() -> None:
    line = reader(parse_key="true", parse_headers="true").parse(b"a:1,b:2\tk\tv", 1)
    assert line == Line(b"k", b"v", [("a", b"1"), ("b", b"2")])
    assert reader(parse_headers="true").parse(b"\tv", 1) == Line(None, b"v", [])


def test_a_header_needs_its_separator() -> None:
    with pytest.raises(ToolError, match="No header key separator found in pair 'a' on line number 3"):
        reader(parse_headers="true").parse(b"a\tv", 3)
    assert reader(parse_headers="true", ignore_error="true").parse(b"a\tv", 3).headers == [("a", None)]


def test_a_marker_stands_for_null() -> None:
    marked = reader(parse_key="true", parse_headers="true", null_marker="NULL")
    assert marked.parse(b"h:NULL\tNULL\tNULL", 1) == Line(None, None, [("h", None)])


@pytest.mark.parametrize(
    "properties",
    [
        {"parse_headers": "true", "headers_separator": "\t"},
        {"parse_headers": "true", "headers_key_separator": ","},
        {"parse_key": "true", "null_marker": "\t"},
        {"parse_key": "true", "key_separator": ""},
    ],
)
def test_separators_must_differ_and_not_be_empty(properties: dict[str, str]) -> None:
    with pytest.raises(ToolError):
        reader(**properties)
