"""What holds for any schema: one text for one meaning, verdicts that data confirm, decoders that never trip."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from google.protobuf.descriptor import Descriptor
from google.protobuf.message_factory import GetMessageClass
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests.property.avro_schemas import changed, schemas, values
from tests.property.json_schemas import changed_json, json_schemas, json_values
from tests.property.proto_schemas import changed_proto, proto_files

from moldau.schemas.avro.codec import AvroCodec
from moldau.schemas.avro.json_encoding import from_binary, to_binary
from moldau.schemas.avro.schema import AvroSchema, parse_avro
from moldau.schemas.compatibility import CompatibilityLevel, check
from moldau.schemas.errors import InvalidSchemaError, InvalidValueError
from moldau.schemas.framing import parse_frame
from moldau.schemas.protobuf.printer import canonical_text
from moldau.schemas.protobuf.schema import ProtobufSchema, parse_protobuf
from moldau.schemas.schema import ParsedSchema, SchemaType, parse
from moldau.schemas.values import codec_of


def tries(count: int) -> settings:
    """So many examples, however slow the machine is and however many of them turn out to be beside the point."""
    return settings(max_examples=count, deadline=None, suppress_health_check=list(HealthCheck))


@st.composite
def avro_versions(draw: st.DrawFn) -> tuple[AvroSchema, AvroSchema]:
    old = draw(schemas())
    new = draw(changed(old))
    try:
        return parse_avro(json.dumps(old)), parse_avro(json.dumps(new))
    except InvalidSchemaError:
        assume(False)
        raise


texts = st.one_of(
    st.tuples(st.just("AVRO"), schemas().map(json.dumps)),
    st.tuples(st.just("JSON"), json_schemas().map(json.dumps)),
    st.tuples(st.just("PROTOBUF"), proto_files().map(canonical_text)),
)


@tries(250)
@given(avro_versions(), st.data())
def test_what_is_called_backward_compatible_fastavro_can_resolve(
    versions: tuple[AvroSchema, AvroSchema], data: st.DataObject
) -> None:
    old, new = versions
    assume(not check(CompatibilityLevel.BACKWARD, new, [old]))
    written = to_binary(data.draw(values(old.type)), old.type)
    seen = AvroCodec(old, reader=new).decode(written)
    AvroCodec(new).encode(seen)


@tries(150)
@given(json_schemas(), st.data())
def test_what_is_called_backward_compatible_accepts_what_was_accepted(old: Any, data: st.DataObject) -> None:
    new = data.draw(changed_json(old))
    before, now = parse("JSON", json.dumps(old)), parse("JSON", json.dumps(new))
    assume(not check(CompatibilityLevel.BACKWARD, now, [before]))
    for value in data.draw(st.lists(json_values, max_size=12)):
        try:
            codec_of(before).encode(value)
        except InvalidValueError:
            continue
        codec_of(now).encode(value)


@tries(60)
@given(proto_files(), st.data())
def test_what_is_called_backward_compatible_protobuf_reads(file: Any, data: st.DataObject) -> None:
    old = parse_protobuf(canonical_text(file))
    new = parse_protobuf(canonical_text(data.draw(changed_proto(file))))
    assume(not check(CompatibilityLevel.BACKWARD, new, [old]))
    name = old.message_name([0])
    message = GetMessageClass(old.compiled.message(name))()
    _fill(message, old.compiled.message(name), data, depth=2)
    codec_of(new).decode(codec_of(old).encode(message))


def _fill(message: Any, descriptor: Descriptor, data: st.DataObject, depth: int) -> None:
    """Set some of the plain fields; bytes that may become a string are text."""
    for field in descriptor.fields:
        if field.is_repeated or not data.draw(st.booleans()):
            continue
        if field.message_type is not None:
            if depth:
                _fill(getattr(message, field.name), field.message_type, data, depth - 1)
        elif field.type == field.TYPE_STRING:
            setattr(message, field.name, "text")
        elif field.type == field.TYPE_BYTES:
            setattr(message, field.name, b"bytes")
        else:
            setattr(message, field.name, data.draw(st.integers(0, 1)))


@tries(150)
@given(texts)
def test_the_canonical_text_means_the_same_schema(text: tuple[str, str]) -> None:
    schema = parse(*text)
    again = parse(schema.schema_type, schema.canonical)
    assert again == schema
    assert again.canonical == schema.canonical
    assert schema.normalized().normalized() == schema.normalized()
    assert again.normalized().canonical == schema.normalized().canonical


@tries(100)
@given(texts)
def test_a_schema_may_follow_itself_and_its_normal_form(text: tuple[str, str]) -> None:
    schema, copy = parse(*text), parse(*text)
    for level in CompatibilityLevel:
        assert check(level, schema, [copy]) == []
    assert check(CompatibilityLevel.FULL, schema.normalized(), [schema]) == []


@tries(60)
@given(proto_files())
def test_the_compiled_form_means_the_same_schema(file: Any) -> None:
    schema = parse_protobuf(canonical_text(file))
    compiled = parse_protobuf(schema.render("serialized"))
    assert isinstance(compiled, ProtobufSchema)
    assert compiled.normalized().canonical == schema.normalized().canonical


@tries(60)
@given(schemas(), st.data())
def test_values_survive_avros_json_encoding(schema: Any, data: st.DataObject) -> None:
    try:
        parsed = parse_avro(json.dumps(schema))
    except InvalidSchemaError:
        assume(False)
    value = data.draw(values(parsed.type))
    written = to_binary(value, parsed.type)
    assert to_binary(from_binary(written, parsed.type), parsed.type) == written
    codec = AvroCodec(parsed)
    codec.decode(written)
    if parsed.canonical != '"bytes"':
        assert codec.encode_text(codec.decode_text(written)) == written


LINKED = '{"type":"record","name":"L","fields":[{"name":"next","type":["null","L"]},{"name":"n","type":"long"}]}'
RICH = json.dumps(
    {
        "type": "record",
        "name": "R",
        "fields": [
            {"name": "a", "type": {"type": "array", "items": ["null", "string", {"type": "map", "values": "double"}]}},
            {"name": "b", "type": {"type": "enum", "name": "E", "symbols": ["A", "B"]}},
            {"name": "c", "type": {"type": "fixed", "name": "F", "size": 3}},
            {"name": "d", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {"name": "e", "type": {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}},
            {"name": "f", "type": {"type": "array", "items": "null"}},
            {"name": "g", "type": {"type": "string", "logicalType": "uuid"}},
        ],
    }
)
PROTO = """syntax = "proto2"; import "google/protobuf/any.proto"; import "google/protobuf/timestamp.proto";
message A { required string s = 1; optional A a = 2; repeated int32 p = 3 [packed = true]; map<string, A> m = 4;
  optional google.protobuf.Any any = 5; optional google.protobuf.Timestamp t = 6;
  optional group G = 7 { optional int32 x = 1; } }
message B { optional bytes b = 1; }"""
DECODED: list[ParsedSchema] = [
    parse("AVRO", LINKED),
    parse("AVRO", RICH),
    parse("AVRO", '["null","int",{"type":"array","items":"bytes"}]'),
    parse("JSON", '{"type":"object"}'),
    parse("PROTOBUF", PROTO),
]


@pytest.mark.parametrize("schema", DECODED, ids=["linked", "rich", "union", "json", "protobuf"])
@tries(150)
@given(st.one_of(st.binary(max_size=60), st.lists(st.sampled_from([0, 1, 2, 4, 6, 10, 255]), max_size=200).map(bytes)))
def test_decoders_answer_noise_with_our_errors_only(schema: ParsedSchema, noise: bytes) -> None:
    codec = codec_of(schema)
    for decode in (codec.decode, codec.decode_text, parse_frame):
        with suppress(InvalidValueError):
            decode(noise)


@tries(150)
@given(texts, st.data())
def test_parsers_answer_damaged_texts_with_our_errors_only(text: tuple[str, str], data: st.DataObject) -> None:
    schema_type, source = text
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(source)))
        cut = data.draw(st.integers(0, 8))
        patch = data.draw(
            st.text(max_size=3) | st.sampled_from(['"', "{", "}", "[", "]", "null", "1", "=", ";", "message", "$ref"])
        )
        source = source[:at] + patch + source[at + cut :]
    with suppress(InvalidSchemaError):
        schema = parse(schema_type, source)
        assert schema.normalized().canonical
        assert check(CompatibilityLevel.FULL, schema, [schema]) == []


@pytest.mark.parametrize("schema_type", list(SchemaType))
@tries(100)
@given(st.text(max_size=40))
def test_parsers_answer_noise_with_our_errors_only(schema_type: SchemaType, noise: str) -> None:
    with suppress(InvalidSchemaError):
        parse(schema_type, noise)
