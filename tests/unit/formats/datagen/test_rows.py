"""Made-up rows fit their schema and its hints."""

from __future__ import annotations

import re
from random import Random
from typing import Any

import pytest

from moldau.formats.datagen.patterns import text_maker
from moldau.formats.datagen.quickstarts import QUICKSTARTS
from moldau.formats.datagen.rows import RowMaker
from moldau.formats.errors import FormatError


def rows(kind: Any, count: int = 50) -> list[Any]:
    schema = {"type": "record", "name": "r", "fields": [{"name": "f", "type": kind}]}
    maker = RowMaker(schema, Random(1))
    return [maker.make()["f"] for _ in range(count)]


@pytest.mark.parametrize("pattern", ["User_[1-9]{0,3}", "[A-Ca\\d_]+x?", "\\d{4}-\\d\\d", "a.b*", "111\\.[2-3]{2}"])
def test_texts_fit_their_pattern(pattern: str) -> None:
    make = text_maker(pattern)

    assert all(re.fullmatch(pattern, make(Random(seed))) for seed in range(50))


@pytest.mark.parametrize("pattern", ["(a|b)", "a{9999999999}", "[", "a{3,1}"])
def test_a_pattern_that_is_too_much_is_refused(pattern: str) -> None:
    with pytest.raises(FormatError, match="pattern"):
        text_maker(pattern)


def test_hints_steer_the_values() -> None:
    def typed(kind: str, **hints: Any) -> dict[str, Any]:
        return {"type": kind, "arg.properties": hints}

    assert set(rows(typed("string", options=["a", "b"]))) == {"a", "b"}
    assert rows(typed("long", iteration={"start": 5, "step": 2, "restart": 10}), 5) == [5, 7, 9, 5, 7]
    assert set(rows(typed("int", range={"min": 3, "max": 5}))) == {3, 4}
    assert all(0.5 <= one <= 1.5 for one in rows(typed("double", range={"min": 0.5, "max": 1.5})))
    assert all(re.fullmatch("<[a-z]{3}>", one) for one in rows(typed("string", length=3, prefix="<", suffix=">")))
    assert set(rows(typed("boolean", odds=1.1))) == {True}
    assert {len(one) for one in rows({"type": "array", "items": "int", "arg.properties": {"length": 2}})} == {2}
    assert None not in rows(["null", "int"])


@pytest.mark.parametrize(
    "kind",
    [
        "uuid",
        {"type": "int", "arg.properties": {"range": {"min": 3, "max": 3}}},
        {"type": "string", "arg.properties": {"length": 10**9}},
        {"type": "string", "arg.properties": {"options": []}},
        {"type": "enum", "name": "e"},
        {"type": "record", "name": "x"},
        {"type": "int", "arg.properties": {"iteration": {"start": "x"}}},
    ],
)
def test_a_schema_that_cannot_be_followed_is_refused(kind: Any) -> None:
    with pytest.raises(FormatError):
        rows(kind)


@pytest.mark.parametrize("name", QUICKSTARTS)
def test_every_quickstart_has_its_key(name: str) -> None:
    made = RowMaker(QUICKSTARTS[name].schema, Random(1)).make()

    assert made[QUICKSTARTS[name].key] is not None
