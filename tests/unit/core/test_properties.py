"""Java's properties format, as Kafka's files use it."""

from __future__ import annotations

import pytest

from moldau.core.properties import parse_properties


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("key=value", {"key": "value"}),
        ("key: value", {"key": "value"}),
        ("key value of words", {"key": "value of words"}),
        ("  key  =  value", {"key": "value"}),
        ("# comment\n! comment\n\nkey=value", {"key": "value"}),
        ("key=one\nkey=two", {"key": "two"}),
        ("key=a,\\\n    b", {"key": "a,b"}),
        ("key", {"key": ""}),
        ("key=", {"key": ""}),
        ("key=\\u00e9", {"key": "é"}),
        ("k\\=ey=v", {"k=ey": "v"}),
        ("path=C\\:\\\\kafka", {"path": "C:\\kafka"}),
        ("url=PLAINTEXT://:9092", {"url": "PLAINTEXT://:9092"}),
        ("a=b \n", {"a": "b"}),
        ("key=ends with backslash\\", {"key": "ends with backslash"}),
        ("a=x\\ty", {"a": "x\ty"}),
    ],
)
def test_lines_are_read_as_java_reads_them(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text) == expected
