"""A .proto text becomes a schema, the schema one canonical text, and both a descriptor that Google's library takes."""

from __future__ import annotations

import base64

import pytest
from google.protobuf import descriptor_pb2, struct_pb2, type_pb2
from google.protobuf.message_factory import GetMessageClass

from moldau.schemas.errors import InvalidSchemaError
from moldau.schemas.protobuf.schema import ProtobufSchema, parse_protobuf
from moldau.schemas.schema import parse

SOURCE = """
// A club's members.
syntax = "proto3"; package club.v1;
import "google/protobuf/timestamp.proto";
import public 'address.proto';
option java_package = "club"; option (meta).doc = "x";
message Member {
  reserved 9, 20 to 29, 100 to max; reserved "old";
  string name = 1; /* the first */ repeated int32 scores = 2 [packed=true, deprecated = false];
  map<string, Address> homes = 3;
  optional Kind kind = 5;
  oneof contact { string mail = 7; bytes phone = 6; }
  google.protobuf.Timestamp since = 8;
  enum Kind { option allow_alias = true; NONE = 0; FULL = 1; WHOLE = 1; }
  message Note { string text = 1 [json_name = "Text\\n"]; }
}
enum Level { LOW = 0; }
message Other {}
service Club {
  rpc Join (stream Member) returns (.club.v1.Member) { option deprecated = true; }
  rpc Leave(Member) returns (stream Other);
}
"""
ADDRESS = 'syntax = "proto3"; package club.v1; message Address { string street = 1; }'
CANONICAL = """syntax = "proto3";
package club.v1;

import "google/protobuf/timestamp.proto";
import public "address.proto";

option java_package = "club";
option (meta).doc = "x";

message Member {
  reserved 9, 20 to 29, 100 to max;
  reserved "old";

  string name = 1;
  repeated int32 scores = 2 [
    packed = true,
    deprecated = false
  ];
  map<string, Address> homes = 3;
  optional Kind kind = 5;
  google.protobuf.Timestamp since = 8;

  oneof contact {
    string mail = 7;
    bytes phone = 6;
  }

  message Note {
    string text = 1 [json_name = "Text\\n"];
  }
  enum Kind {
    option allow_alias = true;
    NONE = 0;
    FULL = 1;
    WHOLE = 1;
  }
}
message Other {}
enum Level {
  LOW = 0;
}

service Club {
  rpc Join (stream Member) returns (.club.v1.Member) {
    option deprecated = true;
  };
  rpc Leave (Member) returns (stream Other);
}
""".replace("\n\n  string", "\n  \n  string")


def person(text: str = SOURCE) -> ProtobufSchema:
    return parse_protobuf(text, {"address.proto": ADDRESS})


def blank_lines_kept(text: str) -> str:
    """Empty lines inside a body carry its indentation, as in texts that other registries stored."""
    lines, depth = [], 0
    for line in text.splitlines():
        lines.append("  " * depth if not line.strip() else line)
        depth += line.endswith(("{", "[")) - line.lstrip().startswith(("}", "]"))
    return "".join(f"{line}\n" for line in lines)


def test_canonical_text_has_one_order_of_statements_and_no_comments() -> None:
    assert person().canonical == blank_lines_kept(CANONICAL)
    assert person(person().canonical) == person()


def test_normalized_text_orders_fields_and_spells_names_out() -> None:
    text = person().normalized().canonical
    statements = [
        line.strip() for line in text.partition("message Member")[2].partition("message Note")[0].splitlines()
    ]
    assert [statement for statement in statements if statement][1:] == [
        "reserved 9;",
        "reserved 20 to 29;",
        "reserved 100 to max;",
        'reserved "old";',
        "string name = 1;",
        "repeated int32 scores = 2 [",
        "deprecated = false,",
        "packed = true",
        "];",
        "map<string, .club.v1.Address> homes = 3;",
        "optional .club.v1.Member.Kind kind = 5;",
        ".google.protobuf.Timestamp since = 8;",
        "oneof contact {",
        "bytes phone = 6;",
        "string mail = 7;",
        "}",
    ]
    assert person(text).normalized().canonical == text


def test_normalized_texts_agree_where_order_has_no_meaning() -> None:
    one = 'syntax = "proto2"; message M { optional N b = 2; optional int32 a = 1; reserved 9, 7 to 8; message N {} }'
    other = "message M { reserved 7 to 8; reserved 9; optional int32 a = 1; optional M.N b = 2; message N {} }"
    assert parse("PROTOBUF", one).normalized() == parse("PROTOBUF", other).normalized()


def test_the_name_of_a_schema_is_its_first_message() -> None:
    assert person().name == "club.v1.Member"
    assert parse("PROTOBUF", "enum E { A = 0; }").name == "E"
    assert parse("PROTOBUF", 'syntax = "proto3";').name is None


def test_messages_have_positions() -> None:
    schema = person()
    assert schema.message_indexes("club.v1.Member") == [0]
    assert schema.message_indexes("club.v1.Member.Note") == [0, 0]
    assert schema.message_indexes("Other") == [1]
    assert schema.message_name([0, 0]) == "club.v1.Member.Note"
    assert schema.message_name([1]) == "club.v1.Other"
    for wrong in ([2], [0, 1], [-1]):
        with pytest.raises(InvalidSchemaError):
            schema.message_name(wrong)
    with pytest.raises(InvalidSchemaError):
        schema.message_indexes("club.v1.Nobody")


def test_the_compiled_form_is_read_back() -> None:
    schema = person()
    compiled = schema.render("serialized")
    descriptor = descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(compiled))
    assert descriptor.package == "club.v1"
    assert [message.name for message in descriptor.message_type] == ["Member", "Other"]
    again = person(compiled)
    assert again.normalized().canonical == schema.normalized().canonical.replace('option (meta).doc = "x";\n', "")
    assert person(again.render("serialized")) == again


@pytest.mark.parametrize("module", [struct_pb2, type_pb2, descriptor_pb2])
def test_googles_own_files_survive_the_way_to_text_and_back(module: object) -> None:
    data = module.DESCRIPTOR.serialized_pb  # type: ignore[attr-defined]
    schema = parse_protobuf(base64.b64encode(data).decode())
    again = parse_protobuf(schema.canonical)
    assert again == schema
    given = descriptor_pb2.FileDescriptorProto.FromString(data)
    made = descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(again.render("serialized")))
    assert [message.name for message in made.message_type] == [message.name for message in given.message_type]
    for mine, theirs in zip(made.message_type, given.message_type, strict=True):
        numbers = {field.number: (field.name, field.type, field.label, field.type_name) for field in mine.field}
        assert numbers == {
            field.number: (field.name, field.type, field.label, field.type_name) for field in theirs.field
        }


def test_values_go_through_the_descriptor() -> None:
    message = GetMessageClass(person().compiled.message("club.v1.Member"))()
    message.name, message.phone = "Ada", b"1"
    message.homes["a"].street = "s"
    message.since.seconds = 5
    copy = type(message).FromString(message.SerializeToString())
    assert (copy.name, copy.WhichOneof("contact"), copy.homes["a"].street) == ("Ada", "phone", "s")
    assert not copy.HasField("kind")


def test_custom_options_reach_the_compiled_form_when_their_extension_is_in_sight() -> None:
    text = """syntax = "proto3";
    import "google/protobuf/descriptor.proto"; import "confluent/meta.proto";
    extend google.protobuf.FieldOptions { string mine = 50000; }
    message M {
      string a = 1 [(mine) = "x", (confluent.field_meta).tags = "PII"];
      string b = 2 [(confluent.field_meta) = { tags: ["A", "B"] params: { key: "k" value: "v" } }];
    }"""
    schema = parse_protobuf(text)
    again = parse_protobuf(schema.render("serialized"))
    assert '(mine) = "x"' in again.canonical
    assert 'tags: "PII"' in again.canonical
    assert 'tags: "B"' in again.canonical
    assert 'value: "v"' in again.canonical
    assert parse_protobuf(again.canonical).render("serialized") == again.render("serialized")
    bare = schema.render("ignore_extensions")
    assert "extend" not in bare
    assert "mine" not in bare
    assert "confluent.field_meta" in bare


def test_groups_and_extensions_of_proto2_are_kept() -> None:
    text = """syntax = "proto2";
    message A {
      optional group G = 1 { required int32 x = 1 [default = 5]; }
      extensions 100 to 199, 500 to max;
      oneof o { group H = 5 { optional string s = 1 [default = "a\\"b"]; } int32 i = 6; }
      optional bytes raw = 7 [default = "\\001z"];
    }
    extend A { optional string more = 100; }"""
    schema = parse_protobuf(text)
    assert parse_protobuf(schema.canonical) == schema
    message = GetMessageClass(schema.compiled.message("A"))()
    message.g.x = 1
    assert message.h.s == 'a"b'
    assert message.raw == b"\x01z"
    assert parse_protobuf(schema.render("serialized")).normalized() == schema.normalized()


def test_an_edition_is_kept() -> None:
    text = (
        'edition = "2023"; option features.field_presence = IMPLICIT; message M { string a = 1; repeated int32 b = 2; }'
    )
    schema = parse_protobuf(text)
    assert schema.canonical.startswith('edition = "2023";\n\noption features.field_presence = IMPLICIT;\n')
    assert "string a = 1;" in parse_protobuf(schema.render("serialized")).canonical


def test_names_are_looked_up_from_the_inside_out() -> None:
    text = """syntax = "proto3"; package a.b;
    message C { message D {} D own = 1; b.C outer = 2; .a.b.C root = 3; E e = 4; }
    message D {} enum E { X = 0; }"""
    fields = parse_protobuf(text).compiled.descriptor.message_type[0].field
    assert [field.type_name for field in fields] == [".a.b.C.D", ".a.b.C", ".a.b.C", ".a.b.E"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "empty"),
        ("// nothing", "empty"),
        ('syntax = "proto4";', "proto4"),
        ("message", "the name of a message"),
        ("message M {", "expected"),
        ("message M { string a = 1 }", "expected ';'"),
        ("message M { string a = x; }", "whole number"),
        ("message M { string a = 1; string b = 1; }", "number 1 of field 'a'"),
        ("message M { string a = 1; string a = 2; }", "defined twice"),
        ("message M { string a = 0; }", "has the number 0"),
        ("message M { string a = 19000; }", "has the number 19000"),
        ("message M { string a = 536870912; }", "has the number"),
        ("message M { Nothing a = 1; }", "'Nothing', which neither"),
        ("message M { reserved 1 to 5; string a = 3; }", "reserved number 3"),
        ('message M { reserved "a"; string a = 3; }', "reserved name"),
        ("message M { map<float, string> a = 1; }", "keys of type float"),
        ("message M { repeated map<string, string> a = 1; oneof o { repeated string b = 2; } }", "no label"),
        ("message M { oneof o {} }", "no fields"),
        ("enum E {}", "no constants"),
        ('syntax = "proto3"; enum E { A = 1; }', "begin with the number 0"),
        ("enum E { A = 0; B = 0; }", "allow_alias"),
        ("enum E { A = 3000000000; }", "32 bits"),
        ('syntax = "proto3"; message M { required string a = 1; }', "proto3 does not have"),
        ('syntax = "proto3"; message M { string a = 1 [default = "x"]; }', "proto3 does not have"),
        ('import "nowhere.proto"; message M {}', "neither a reference of the schema nor"),
        ("message M {} message M {}", "defined twice"),
        ("service S { rpc R (Nothing) returns (Nothing); }", "'Nothing'"),
        ("message M { string a = 1; } /* never", "never ends"),
        ('message M { string a = 1 [json_name = "x]; }', "makes no sense"),
        ("message M { string é = 1; }", "makes no sense"),
        ("package a; package b; message M {}", "package already"),
        ("hello world", "expected message"),
        ('message M { string a = 1 [(x) = "\\uD800"]; }', "stands for no character"),
    ],
)
def test_what_is_no_protobuf_schema_is_refused_with_a_reason(text: str, complaint: str) -> None:
    with pytest.raises(InvalidSchemaError, match=complaint):
        parse("PROTOBUF", text)


def test_a_refusal_names_the_line() -> None:
    with pytest.raises(InvalidSchemaError, match="in line 3"):
        parse("PROTOBUF", "message M {\n  string a = 1;\n  string = 2;\n}")


def test_references_may_build_on_one_another_but_not_in_circles() -> None:
    a = 'syntax = "proto3"; import "b.proto"; message A { B b = 1; }'
    b = 'syntax = "proto3"; message B {}'
    main = 'syntax = "proto3"; import "a.proto"; message M { A a = 1; }'
    assert parse("PROTOBUF", main, {"a.proto": a, "b.proto": b})
    assert parse("PROTOBUF", main, {"a.proto": parse("PROTOBUF", a, {"b.proto": b})})
    with pytest.raises(InvalidSchemaError, match="form a cycle"):
        parse("PROTOBUF", main, {"a.proto": a, "b.proto": 'import "a.proto"; message B {}'})
    with pytest.raises(InvalidSchemaError, match=r"reference 'a\.proto'"):
        parse("PROTOBUF", main, {"a.proto": a})
    with pytest.raises(InvalidSchemaError, match="of type AVRO"):
        parse("PROTOBUF", main, {"a.proto": parse("AVRO", '"int"')})


def test_what_an_import_imports_is_in_sight_only_if_public() -> None:
    b = 'syntax = "proto3"; message B {}'
    main = 'syntax = "proto3"; import "a.proto"; message M { B b = 1; }'
    assert parse("PROTOBUF", main, {"a.proto": 'import public "b.proto";', "b.proto": b})
    with pytest.raises(InvalidSchemaError, match="'B', which neither"):
        parse("PROTOBUF", main, {"a.proto": 'import "b.proto";', "b.proto": b})


def test_well_known_files_need_no_reference() -> None:
    imports = [
        "google/protobuf/any.proto",
        "google/protobuf/struct.proto",
        "google/type/money.proto",
        "google/type/datetime.proto",
        "confluent/meta.proto",
        "confluent/types/decimal.proto",
    ]
    text = "".join(f'import "{path}"; ' for path in imports) + (
        "message M { optional google.protobuf.Struct s = 1; optional google.type.DateTime d = 2; "
        "optional confluent.type.Decimal n = 3; }"
    )
    assert parse_protobuf(text).compiled.message("M")


def test_keywords_may_be_names() -> None:
    text = """syntax = "proto3";
    message message { .message message = 1; string option = 2; repeated string reserved = 3; string oneof = 4;
      repeated .optional.X x = 5; string to = 6; string max = 7; string stream = 8; string map = 9; }
    message optional { message X {} }
    enum enum { option = 0; reserved = 1; }
    service service { rpc rpc (stream .message) returns (message); }
    """
    schema = parse_protobuf(text)
    assert parse_protobuf(schema.canonical) == schema
