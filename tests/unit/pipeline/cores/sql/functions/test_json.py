from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from tests.unit.pipeline.cores.sql.evaluating import evaluate

from moldau.pipeline.cores.sql.processing_log import ListLog


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("""EXTRACTJSONFIELD('{"a": {"b": [1, "x"]}}', '$.a.b[1]')""", "x"),
        ("""EXTRACTJSONFIELD('{"a": {"b": [1.50]}}', '$.a')""", '{"b":[1.50]}'),
        ("""EXTRACTJSONFIELD('{"a": 1.50}', '$.a')""", "1.50"),
        ("""EXTRACTJSONFIELD('{"@t": true}', '$.@t')""", "true"),
        ("""EXTRACTJSONFIELD('{"a": null}', '$.a')""", None),
        ("""EXTRACTJSONFIELD('{"a": [1]}', '$.a[-1]')""", None),
        ("""EXTRACTJSONFIELD('{"a": 1}', '$.b')""", None),
        ("EXTRACTJSONFIELD('nonsense', '$.b')", None),
        ("IS_JSON_STRING('[1, 2]')", True),
        ("IS_JSON_STRING('abc')", False),
        ("IS_JSON_STRING(CAST(NULL AS STRING))", False),
        ("JSON_ARRAY_CONTAINS('[1, 2]', 2)", True),
        ("JSON_ARRAY_CONTAINS('[1.0]', 1)", False),
        ("""JSON_ARRAY_CONTAINS('["a", null]', 'a')""", True),
        ("JSON_ARRAY_CONTAINS('[null]', CAST(NULL AS STRING))", True),
        ("JSON_ARRAY_CONTAINS('{}', 'a')", False),
        ("JSON_ARRAY_LENGTH('[1, 2, 3]')", 3),
        ("JSON_ARRAY_LENGTH('{}')", None),
        ("""JSON_CONCAT('{"a": 1}', '{"b": 2, "a": 3}')""", '{"a":3,"b":2}'),
        ("JSON_CONCAT('[1]', '2')", "[1,2]"),
        ("JSON_CONCAT('[1]', NULL)", None),
        ("""JSON_ITEMS('[{"a": 1}, "x", 2]')""", ['{"a":1}', '"x"', "2"]),
        ("""JSON_KEYS('{"b": 1, "a": 2}')""", ["b", "a"]),
        ("""JSON_RECORDS('{"b": "x", "a": [1]}')""", {"b": "x", "a": "[1]"}),
        ("JSON_RECORDS('[1]')", None),
    ],
)
def test_json_in_texts(expression: str, expected: Any) -> None:
    assert evaluate(expression) == expected


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("INT", 5, "5"),
        ("INT", None, "null"),
        ("STRING", 'a"b', '"a\\"b"'),
        ("DOUBLE", 1e10, "1.0E10"),
        ("DECIMAL(5,2)", Decimal("1.50"), "1.50"),
        ("BYTES", b"!", '"IQ=="'),
        ("BOOLEAN", True, "true"),
        ("DATE", 18262, '"2020-01-01"'),
        ("TIME", 36_930_000, '"10:15:30"'),
        ("TIMESTAMP", 1577836800001, '"2020-01-01T00:00:00.001"'),
        ("ARRAY<INT>", [1, None], "[1,null]"),
        ("MAP<STRING, INT>", {"b": 1, "a": 2}, '{"a":2,"b":1}'),
        ("STRUCT<Z INT, A STRING>", (1, "x"), '{"A":"x","Z":1}'),
    ],
)
def test_values_as_json(kind: str, value: Any, expected: str) -> None:
    assert evaluate("TO_JSON_STRING(V)", V=(kind, value)) == expected


def test_json_nested_deeper_than_can_be_read_is_a_failed_row() -> None:
    log = ListLog()
    assert evaluate("JSON_ARRAY_LENGTH(V)", log, V=("STRING", "[" * 200_000)) is None
    assert len(log.entries) == 1


URL = "https://user@example.com:8443/a%20b/c?one=1&two=x%26y&flag#frag%20ment"


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("URL_EXTRACT_PROTOCOL(U)", "https"),
        ("URL_EXTRACT_HOST(U)", "example.com"),
        ("URL_EXTRACT_PORT(U)", 8443),
        ("URL_EXTRACT_PATH(U)", "/a b/c"),
        ("URL_EXTRACT_QUERY(U)", "one=1&two=x&y&flag"),
        ("URL_EXTRACT_FRAGMENT(U)", "frag ment"),
        ("URL_EXTRACT_PARAMETER(U, 'one')", "1"),
        ("URL_EXTRACT_PARAMETER(U, 'three')", None),
        ("URL_EXTRACT_PORT('http://example.com')", None),
        ("URL_EXTRACT_HOST('not a url')", None),
        ("URL_ENCODE_PARAM('a b&c~*')", "a+b%26c%7E*"),
        ("URL_DECODE_PARAM('a+b%26c')", "a b&c"),
        ("URL_DECODE_PARAM('%zz')", None),
    ],
)
def test_urls(expression: str, expected: Any) -> None:
    assert evaluate(expression, U=("STRING", URL)) == expected
