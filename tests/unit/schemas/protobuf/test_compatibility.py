"""Every rule about changes of a Protobuf schema, in both directions."""

from __future__ import annotations

from itertools import pairwise

import pytest

from moldau.schemas.compatibility import CompatibilityLevel, check
from moldau.schemas.schema import parse


def proto3(body: str, head: str = "") -> str:
    return f'syntax = "proto3"; {head} {body}'


def message(fields: str, head: str = "") -> str:
    return proto3(f"message M {{ {fields} }}", head)


def proto2(fields: str) -> str:
    return f'syntax = "proto2"; message M {{ {fields} }}'


SCALAR, KIND, NAMED = "FIELD_SCALAR_KIND_CHANGED", "FIELD_KIND_CHANGED", "FIELD_NAMED_TYPE_CHANGED"
LABEL, REMOVED, ONEOF_REMOVED = "FIELD_NUMERIC_LABEL_CHANGED", "MESSAGE_REMOVED", "ONEOF_FIELD_REMOVED"
MULTIPLE, EXISTING = "MULTIPLE_FIELDS_MOVED_TO_ONEOF", "FIELD_MOVED_TO_EXISTING_ONEOF"
ADDED_REQUIRED, REMOVED_REQUIRED = "REQUIRED_FIELD_ADDED", "REQUIRED_FIELD_REMOVED"

GROUPS = [
    ("int32", "int64", "uint32", "uint64", "bool", "E"),
    ("sint32", "sint64"),
    ("string", "bytes"),
    ("fixed32", "sfixed32"),
    ("fixed64", "sfixed64"),
    ("float",),
    ("double",),
]
ENUM = "enum E { A = 0; } "
A, AB = "string a = 1;", "string a = 1; int32 b = 2;"

ROWS: list[tuple[str, str, str, str | None, str | None]] = [
    ("add field", message(A), message(AB), None, None),
    ("add repeated field", message(A), message(A + "repeated int32 b = 2;"), None, None),
    (
        "add optional field",
        proto2("optional string a = 1;"),
        proto2("optional string a = 1; optional int32 b = 2;"),
        None,
        None,
    ),
    ("add required field", proto2(""), proto2("required int32 b = 2;"), ADDED_REQUIRED, REMOVED_REQUIRED),
    ("rename field", message(A), message("string z = 1;"), None, None),
    ("change tag number", message(A), message("string a = 7;"), None, None),
    *(
        (f"{one} to {other}", message(f"{ENUM}{one} a = 1;"), message(f"{ENUM}{other} a = 1;"), None, None)
        for group in GROUPS
        for one, other in pairwise(group)
    ),
    *(
        (f"{one[0]} to {other[0]}", message(f"{one[0]} a = 1;"), message(f"{other[0]} a = 1;"), SCALAR, SCALAR)
        for one, other in pairwise(GROUPS)
    ),
    ("float to double", message("float a = 1;"), message("double a = 1;"), SCALAR, SCALAR),
    ("scalar to message", message("string a = 1; message N {}"), message("N a = 1; message N {}"), KIND, KIND),
    ("scalar to map", message(A), message("map<string, string> a = 1;"), KIND, KIND),
    ("message to map", message("N a = 1; message N {}"), message("map<string, N> a = 1; message N {}"), KIND, KIND),
    (
        "map's value changed",
        message("map<string, int32> a = 1;"),
        message("map<string, string> a = 1;"),
        SCALAR,
        SCALAR,
    ),
    (
        "map's key changed in its group",
        message("map<int32, string> a = 1;"),
        message("map<int64, string> a = 1;"),
        None,
        None,
    ),
    (
        "message field to another message",
        message("N a = 1; message N {} message O {}"),
        message("O a = 1; message N {} message O {}"),
        NAMED,
        NAMED,
    ),
    ("optional to repeated number", message("optional int32 a = 1;"), message("repeated int32 a = 1;"), LABEL, LABEL),
    (
        "optional to repeated enum",
        message(ENUM + "optional E a = 1;"),
        message(ENUM + "repeated E a = 1;"),
        LABEL,
        LABEL,
    ),
    ("optional to repeated string", message("optional string a = 1;"), message("repeated string a = 1;"), None, None),
    ("optional to repeated message", message("optional M a = 1;"), message("repeated M a = 1;"), None, None),
    ("no label to repeated number", message("int32 a = 1;"), message("repeated int32 a = 1;"), None, None),
    ("add message type", message(A), message(A) + "message N {}", None, REMOVED),
    ("remove message type", message(A) + "message N {}", message(A), REMOVED, None),
    ("remove nested message type", message("message N {}"), message(""), REMOVED, None),
    ("reorder messages", proto3("message M {} message N {}"), proto3("message N {} message M {}"), None, None),
    ("add enum", message(A), message(A) + ENUM, None, None),
    ("add enum constant", message(A) + ENUM, message(A) + "enum E { A = 0; B = 1; }", None, None),
    ("rename enum", message("enum E { X = 0; } E a = 1;"), message("enum F { X = 0; } F a = 1;"), None, None),
    (
        "add field to existing oneof",
        message("oneof o { int32 a = 1; }"),
        message("oneof o { int32 a = 1; int32 b = 2; }"),
        None,
        ONEOF_REMOVED,
    ),
    (
        "remove field from surviving oneof",
        message("oneof o { int32 a = 1; int32 b = 2; }"),
        message("oneof o { int32 a = 1; }"),
        ONEOF_REMOVED,
        None,
    ),
    ("delete a whole oneof", message("oneof o { int32 a = 1; int32 b = 2; }"), message(""), None, None),
    ("add a oneof of new fields", message(A), message(A + "oneof o { int32 b = 2; int32 c = 3; }"), None, None),
    (
        "rename oneof",
        message("oneof o { int32 a = 1; int32 b = 2; }"),
        message("oneof p { int32 a = 1; int32 b = 2; }"),
        None,
        None,
    ),
    ("move one field into a new oneof", message("int32 a = 1;"), message("oneof o { int32 a = 1; }"), None, None),
    (
        "move one field into a new oneof with new fields",
        message("int32 a = 1;"),
        message("oneof o { int32 a = 1; int32 b = 2; }"),
        None,
        None,
    ),
    ("move the only oneof member out", message("oneof o { int32 a = 1; }"), message("int32 a = 1;"), None, None),
    (
        "move a oneof member out, others stay",
        message("oneof o { int32 a = 1; int32 b = 2; }"),
        message("int32 a = 1; oneof o { int32 b = 2; }"),
        None,
        EXISTING,
    ),
    (
        "move two fields into one oneof",
        message("int32 a = 1; int32 b = 2;"),
        message("oneof o { int32 a = 1; int32 b = 2; }"),
        MULTIPLE,
        None,
    ),
    (
        "move a field into an existing oneof",
        message("int32 a = 1; oneof o { int32 b = 2; }"),
        message("oneof o { int32 a = 1; int32 b = 2; }"),
        EXISTING,
        None,
    ),
    (
        "merge two oneofs",
        message("oneof o { int32 a = 1; } oneof p { int32 b = 2; }"),
        message("oneof o { int32 a = 1; int32 b = 2; }"),
        EXISTING,
        None,
    ),
    (
        "change type of a oneof member",
        message("oneof o { int32 a = 1; }"),
        message("oneof o { string a = 1; }"),
        SCALAR,
        SCALAR,
    ),
    ("change package", message(A, "package p;"), message(A, "package q;"), "PACKAGE_CHANGED", "PACKAGE_CHANGED"),
    ("change options and comments", message(A), message("string a = 1 [deprecated = true]; /* old */"), None, None),
    ("nothing", message(AB), message(AB), None, None),
]
"""What changes, the old and the new schema, and the rule that breaks backward and forward, if one does."""


def rules(level: CompatibilityLevel, new: str, old: str) -> set[str]:
    return {finding.error_type for finding in check(level, parse("PROTOBUF", new), [parse("PROTOBUF", old)])}


@pytest.mark.parametrize(("old", "new", "backward", "forward"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_each_change_is_judged_in_both_directions(
    old: str, new: str, backward: str | None, forward: str | None
) -> None:
    assert rules(CompatibilityLevel.BACKWARD, new, old) == {backward} - {None}
    assert rules(CompatibilityLevel.FORWARD, new, old) == {forward} - {None}
    assert rules(CompatibilityLevel.FULL, new, old) == {backward, forward} - {None}
    assert rules(CompatibilityLevel.BACKWARD, old, new) == {forward} - {None}


OTHER = proto3("message N { int32 a = 1; }", "package other;")


def test_moving_a_message_to_an_imported_file_is_a_removal() -> None:
    inline = parse("PROTOBUF", message("int32 a = 1;") + "message N { int32 a = 1; }")
    moved = parse("PROTOBUF", message("int32 a = 1;", 'import "other.proto";'), {"other.proto": OTHER})
    assert [f.error_type for f in check(CompatibilityLevel.BACKWARD, moved, [inline])] == [REMOVED]
    assert check(CompatibilityLevel.FORWARD, moved, [inline]) == []


def test_an_imported_message_is_compared_through_the_field() -> None:
    text = message("other.N n = 1;", 'import "other.proto";')
    old = parse("PROTOBUF", text, {"other.proto": OTHER})
    same = parse("PROTOBUF", text, {"other.proto": OTHER.replace("a = 1", "b = 1")})
    changed = parse("PROTOBUF", text, {"other.proto": OTHER.replace("int32", "string")})
    assert check(CompatibilityLevel.FULL, same, [old]) == []
    found = check(CompatibilityLevel.BACKWARD, changed, [old])
    assert [(finding.error_type, finding.path) for finding in found] == [(SCALAR, "#/N/1"), (NAMED, "#/M/1")]


def test_fields_are_followed_into_what_only_the_imports_see() -> None:
    inner = proto3("message I { int32 a = 1; }", "package inner;")
    middle = proto3("message N { inner.I i = 1; }", 'package other; import "inner.proto";')
    text = message("other.N n = 1;", 'import "other.proto";')
    old = parse("PROTOBUF", text, {"inner.proto": inner, "other.proto": middle})
    new = parse("PROTOBUF", text, {"inner.proto": inner.replace("int32", "string"), "other.proto": middle})
    assert check(CompatibilityLevel.BACKWARD, old, [old]) == []
    assert (SCALAR, "#/I/1") in [(f.error_type, f.path) for f in check(CompatibilityLevel.BACKWARD, new, [old])]


def test_recursive_messages_are_compared_to_the_end() -> None:
    def tree(value: str) -> str:
        return message(f"M left = 1; repeated M right = 2; {value} value = 3; N n = 4; message N {{ M up = 1; }}")

    assert rules(CompatibilityLevel.FULL, tree("int64"), tree("int32")) == set()
    assert SCALAR in rules(CompatibilityLevel.BACKWARD, tree("string"), tree("int32"))


def test_a_message_names_path_rule_and_the_two_schemas() -> None:
    old, new = parse("PROTOBUF", message("string a = 2;")), parse("PROTOBUF", message("int32 a = 2;"))
    [finding] = check(CompatibilityLevel.BACKWARD, new, [old])
    assert finding.message == (
        '{errorType:"FIELD_SCALAR_KIND_CHANGED", description:"The type of the field at path \'#/M/2\' '
        'in the new schema is not read like the one in the old schema"}'
    )
