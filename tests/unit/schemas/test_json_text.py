"""JSON is read with limits and written as Java's libraries write it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from moldau.schemas.errors import InvalidSchemaError, InvalidValueError
from moldau.schemas.json_text import MAX_NESTING, load, nesting, render, sorted_keys


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (0.1, "0.1"),
        (100.0, "100.0"),
        (0.001, "0.001"),
        (9.99e-4, "9.99E-4"),
        (1.23e-05, "1.23E-5"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (123456789.0, "1.23456789E8"),
        (1.5e300, "1.5E300"),
        (-1e21, "-1.0E21"),
        (5e-324, "4.9E-324"),
        (1, "1"),
        (10**30, "1" + "0" * 30),
        (True, "true"),
        (None, "null"),
        ('é\n"\\\x01', '"é\\n\\"\\\\\\u0001"'),
        ([], "[]"),
        ({}, "{}"),
        ({"b": [1, {"a": None}], "a": ""}, '{"b":[1,{"a":null}],"a":""}'),
    ],
)
def test_values_are_written_compactly_with_javas_numbers(value: Any, text: str) -> None:
    assert render(value) == text
    assert json.loads(text) == value
    assert load(text) == value


def test_what_json_cannot_say_is_not_written() -> None:
    for value in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match="not a JSON number"):
            render(value)


def test_nesting_is_counted_and_limited() -> None:
    assert [nesting(value) for value in (1, [], [[]], {"a": [{}]}, [1, [2, [3]]])] == [0, 1, 2, 3, 3]
    assert load("[" * MAX_NESTING + "]" * MAX_NESTING)
    with pytest.raises(InvalidSchemaError, match="levels deep"):
        load("[" * (MAX_NESTING + 1) + "]" * (MAX_NESTING + 1))


@pytest.mark.parametrize(
    "text", ["", "{", "[1,]", "NaN", "1e999", "01", '"\\ud800"', "\ud800", "{} {}", "'a'", "1" * 5_000]
)
def test_what_is_no_json_is_refused_in_words(text: str) -> None:
    with pytest.raises(InvalidValueError, match="the record"):
        load(text, "record", InvalidValueError)


def test_keys_can_be_put_in_order() -> None:
    assert render(sorted_keys({"b": [{"d": 1, "c": 2}], "a": 3})) == '{"a":3,"b":[{"c":2,"d":1}]}'
