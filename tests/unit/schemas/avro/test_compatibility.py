"""Every rule of Avro's schema resolution, in both directions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from moldau.schemas.compatibility import CompatibilityLevel, check
from moldau.schemas.errors import InvalidSchemaError
from moldau.schemas.pairs import Effort
from moldau.schemas.schema import ParsedSchema, parse


def record(*fields: dict[str, Any], name: str = "R", **more: Any) -> str:
    return json.dumps({"type": "record", "name": name, "fields": list(fields), **more})


def holding(type: Any) -> str:
    """A record with one field of that type."""
    return record(_field("a", type))


def _field(name: str, type: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": type, **more}


def _enum(*symbols: str, **more: Any) -> dict[str, Any]:
    return {"type": "enum", "name": "E", "symbols": list(symbols), **more}


A, B = _field("a", "int"), _field("b", "int")
A_DEFAULT, B_DEFAULT = _field("a", "int", default=0), _field("b", "int", default=0)
INTS, INT_MAP = {"type": "array", "items": "int"}, {"type": "map", "values": "int"}
FIXED = {"type": "fixed", "name": "F", "size": 4}

NO_DEFAULT, TYPE, BRANCH = "READER_FIELD_MISSING_DEFAULT_VALUE", "TYPE_MISMATCH", "MISSING_UNION_BRANCH"
SYMBOLS, NAME, SIZE = "MISSING_ENUM_SYMBOLS", "NAME_MISMATCH", "FIXED_SIZE_MISMATCH"

ROWS = [
    ("add field with default", record(A), record(A, B_DEFAULT), None, None),
    ("add field without default", record(A), record(A, B), NO_DEFAULT, None),
    ("remove field that had a default", record(A, B_DEFAULT), record(A), None, None),
    ("remove field without default", record(A, B), record(A), None, NO_DEFAULT),
    ("rename field without alias", record(A), record(B), NO_DEFAULT, NO_DEFAULT),
    ("rename field with alias", record(A), record({**B, "aliases": ["a"]}), None, NO_DEFAULT),
    ("rename field with alias, old has a default", record(A_DEFAULT), record({**B, "aliases": ["a"]}), None, None),
    ("reorder fields", record(A, B), record(B, A), None, None),
    ("change doc", record(A, doc="x"), record({**A, "doc": "y"}, doc="z"), None, None),
    ("change order", record(A), record({**A, "order": "descending"}), None, None),
    ("change custom properties", record(A, x=1), record(A, y=2), None, None),
    ("change logicalType", holding("long"), holding({"type": "long", "logicalType": "timestamp-millis"}), None, None),
    ("change default value", record(A, B_DEFAULT), record(A, {**B, "default": 7}), None, None),
    ("int to long", holding("int"), holding("long"), None, TYPE),
    ("int to float", holding("int"), holding("float"), None, TYPE),
    ("int to double", holding("int"), holding("double"), None, TYPE),
    ("long to float", holding("long"), holding("float"), None, TYPE),
    ("long to double", holding("long"), holding("double"), None, TYPE),
    ("float to double", holding("float"), holding("double"), None, TYPE),
    ("string to bytes", holding("string"), holding("bytes"), None, None),
    ("bytes to string", holding("bytes"), holding("string"), None, None),
    ("int to string", holding("int"), holding("string"), TYPE, TYPE),
    ("boolean to int", holding("boolean"), holding("int"), TYPE, TYPE),
    ("null to string", holding("null"), holding("string"), TYPE, TYPE),
    ("string to record", holding("string"), holding({"type": "record", "name": "S", "fields": []}), TYPE, TYPE),
    ("array to map", holding(INTS), holding(INT_MAP), TYPE, TYPE),
    ("type to union with it", holding("string"), holding(["null", "string"]), None, TYPE),
    ("type to union with a wider one", holding("int"), holding(["null", "long"]), None, TYPE),
    ("type to union without it", holding("string"), holding(["null", "int"]), BRANCH, TYPE),
    ("add union branch", holding(["null", "string"]), holding(["null", "string", "int"]), None, BRANCH),
    ("remove union branch", holding(["null", "string", "int"]), holding(["null", "string"]), BRANCH, None),
    ("reorder union branches", holding(["null", "string"]), holding(["string", "null"]), None, None),
    ("add enum symbol", holding(_enum("A")), holding(_enum("A", "B")), None, SYMBOLS),
    ("add enum symbol, old has a default", holding(_enum("A", default="A")), holding(_enum("A", "B")), None, None),
    ("remove enum symbol", holding(_enum("A", "B")), holding(_enum("A")), SYMBOLS, None),
    ("remove enum symbol, new has a default", holding(_enum("A", "B")), holding(_enum("A", default="A")), None, None),
    ("reorder enum symbols", holding(_enum("A", "B")), holding(_enum("B", "A")), None, None),
    ("rename record", record(A), record(A, name="S"), NAME, NAME),
    ("rename record with alias", record(A), record(A, name="S", aliases=["R"]), None, NAME),
    ("rename enum", holding(_enum("A")), holding({**_enum("A"), "name": "F"}), NAME, NAME),
    ("rename fixed", holding(FIXED), holding({**FIXED, "name": "G"}), NAME, NAME),
    ("change namespace only", record(A), record(A, namespace="elsewhere"), None, None),
    ("change fixed size", holding(FIXED), holding({**FIXED, "size": 8}), SIZE, SIZE),
    ("widen array items", holding(INTS), holding({"type": "array", "items": "long"}), None, TYPE),
    ("widen map values", holding(INT_MAP), holding({"type": "map", "values": "long"}), None, TYPE),
    ("change array items", holding(INTS), holding({"type": "array", "items": "string"}), TYPE, TYPE),
    ("nothing", record(A), record(A), None, None),
    ("primitive schema widened", '"int"', '"long"', None, TYPE),
]  # fmt: skip
"""What changes, the old and the new schema, and the rule that breaks backward and forward, if one does."""


@pytest.mark.parametrize(("old", "new", "backward", "forward"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_each_change_is_judged_in_both_directions(
    old: str, new: str, backward: str | None, forward: str | None
) -> None:
    expected = {
        CompatibilityLevel.BACKWARD: {backward},
        CompatibilityLevel.FORWARD: {forward},
        CompatibilityLevel.FULL: {backward, forward},
        CompatibilityLevel.NONE: set(),
    }
    for level, rules in expected.items():
        found = check(level, parse("AVRO", new), [parse("AVRO", old)])
        assert {finding.error_type for finding in found} == rules - {None}, level
        reverse = {CompatibilityLevel.BACKWARD: CompatibilityLevel.FORWARD}.get(level)
        if reverse:
            swapped = check(reverse, parse("AVRO", old), [parse("AVRO", new)])
            assert [finding.error_type for finding in swapped] == [finding.error_type for finding in found]


def test_a_message_names_field_path_rule_and_the_two_schemas() -> None:
    old, new = parse("AVRO", record(A)), parse("AVRO", record(A, B))
    [backward] = check(CompatibilityLevel.BACKWARD, new, [old])
    assert backward.message == (
        "{errorType:'READER_FIELD_MISSING_DEFAULT_VALUE', description:'The field 'b' at path '/fields/1' of record 'R' "
        "in the new schema has no default value and is missing in the old schema', additionalInfo:'b'}"
    )
    [forward] = check(CompatibilityLevel.FORWARD, old, [new])
    assert "in the old schema has no default value and is missing in the new schema" in forward.message


def test_recursive_types_are_compared_to_the_end() -> None:
    def linked(value: str) -> str:
        next_field = {"name": "next", "type": ["null", "L"]}
        return json.dumps({"type": "record", "name": "L", "fields": [next_field, {"name": "v", "type": value}]})

    assert not check(CompatibilityLevel.BACKWARD, parse("AVRO", linked("long")), [parse("AVRO", linked("int"))])
    [finding] = check(CompatibilityLevel.BACKWARD, parse("AVRO", linked("int")), [parse("AVRO", linked("long"))])
    assert (finding.error_type, finding.path) == ("TYPE_MISMATCH", "/fields/1/type")


def test_a_guess_about_a_recursive_type_is_taken_back_when_it_fails() -> None:
    """The first reader branch (A, by name) fails on `v`; `X`'s comparison rested on it and must not be believed."""

    def tree(value: str, namespace: str) -> dict[str, Any]:
        inner = {"type": "record", "name": "X", "fields": [{"name": "up", "type": f"{namespace}.A"}]}
        fields = [{"name": "x", "type": inner}, {"name": "v", "type": value}]
        return {"type": "record", "name": "A", "namespace": namespace, "fields": fields}

    writer = json.dumps(
        {"type": "record", "name": "R", "fields": [_field("a", tree("string", "w")), _field("b", "w.X")]}
    )
    reader = json.dumps({
        "type": "record", "name": "R",
        "fields": [_field("a", [tree("int", "r"), tree("string", "s")]), _field("b", "r.X")],
    })  # fmt: skip
    found = check(CompatibilityLevel.BACKWARD, parse("AVRO", reader), [parse("AVRO", writer)])
    assert [finding.error_type for finding in found] == ["TYPE_MISMATCH"]


def test_a_wide_union_is_compared_branch_by_branch_not_each_with_each() -> None:
    wide = [{"type": "fixed", "name": f"F{number}", "size": 1} for number in range(3_000)]
    schema, fewer = parse("AVRO", json.dumps(wide)), parse("AVRO", json.dumps(wide[1:]))
    assert check(CompatibilityLevel.FULL, schema, [schema]) == []
    assert [finding.path for finding in check(CompatibilityLevel.BACKWARD, fewer, [schema])] == ["/0"]


def test_a_union_branch_is_found_by_alias_and_by_promotion() -> None:
    reader = [{"type": "fixed", "name": "New", "size": 1, "aliases": ["old.Old"]}, "double", "string"]
    for writer in ({"type": "fixed", "name": "old.Old", "size": 1}, "int", "long", "float", "bytes"):
        assert not check(
            CompatibilityLevel.BACKWARD, parse("AVRO", json.dumps(reader)), [parse("AVRO", json.dumps(writer))]
        )


def test_types_entangled_without_end_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def many(type: str) -> ParsedSchema:
        records = [{"type": "record", "name": f"n{n}.X", "fields": [_field("a", type)]} for n in range(60)]
        return parse("AVRO", json.dumps(records))

    assert len(check(CompatibilityLevel.BACKWARD, many("int"), [many("string")])) == 60
    monkeypatch.setattr("moldau.schemas.compatibility.Effort", lambda: Effort(3_000))
    with pytest.raises(InvalidSchemaError, match="too large or too complex"):
        check(CompatibilityLevel.BACKWARD, many("int"), [many("string")])
