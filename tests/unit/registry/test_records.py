from __future__ import annotations

import pytest

from moldau.registry.entities import SchemaReference, SchemaVersion
from moldau.registry.records import (
    ClearSubjectKey,
    ConfigKey,
    ContextKey,
    DeleteSubjectKey,
    Key,
    ModeKey,
    NoopKey,
    Record,
    SchemaKey,
    decode,
    encode_key,
    encode_value,
)

SCHEMA = SchemaVersion("s", 1, 7, "AVRO", '"string"')


@pytest.mark.parametrize(
    ("key", "content"),
    [
        (SchemaKey("s", 1), b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}'),
        (ConfigKey("s"), b'{"keytype":"CONFIG","subject":"s","magic":0}'),
        (ConfigKey(None), b'{"keytype":"CONFIG","magic":0}'),
        (ModeKey("s"), b'{"keytype":"MODE","subject":"s","magic":0}'),
        (ModeKey(None), b'{"keytype":"MODE","magic":0}'),
        (DeleteSubjectKey("s"), b'{"keytype":"DELETE_SUBJECT","subject":"s","magic":0}'),
        (ClearSubjectKey("s"), b'{"keytype":"CLEAR_SUBJECT","subject":"s","magic":0}'),
        (ContextKey(".ctx"), b'{"keytype":"CONTEXT","tenant":"default","context":".ctx","magic":0}'),
        (NoopKey(), b'{"keytype":"NOOP","magic":0}'),
    ],
)
def test_keys_have_exactly_the_bytes_that_compaction_compares(key: Key, content: bytes) -> None:
    assert encode_key(key) == content
    assert decode(content, None) == Record(key)


@pytest.mark.parametrize(
    ("record", "content"),
    [
        (
            Record(SchemaKey("s", 1), SCHEMA),
            b'{"subject":"s","version":1,"id":7,"schemaType":"AVRO","schema":"\\"string\\"","deleted":false}',
        ),
        (Record(ConfigKey("s"), {"compatibilityLevel": "FULL"}), b'{"subject":"s","compatibilityLevel":"FULL"}'),
        (Record(ConfigKey(None), {"compatibilityLevel": "NONE"}), b'{"compatibilityLevel":"NONE"}'),
        (Record(ModeKey("s"), "READONLY"), b'{"subject":"s","mode":"READONLY"}'),
        (Record(DeleteSubjectKey("s"), 3), b'{"subject":"s","version":3}'),
        (Record(ClearSubjectKey("s"), "s"), b'{"subject":"s"}'),
        (Record(ContextKey(".ctx"), ".ctx"), b'{"tenant":"default","context":".ctx"}'),
        (Record(SchemaKey("s", 1)), None),
        (Record(NoopKey()), None),
    ],
)
def test_values_are_written_as_confluent_writes_them_and_read_back(record: Record, content: bytes | None) -> None:
    assert encode_value(record) == content
    assert decode(encode_key(record.key), content) == record


def test_registries_before_8_leave_avro_unsaid() -> None:
    content = encode_value(Record(SchemaKey("s", 1), SCHEMA), names_avro=False)
    assert content == b'{"subject":"s","version":1,"id":7,"schema":"\\"string\\"","deleted":false}'
    assert decode(encode_key(SchemaKey("s", 1)), content) == Record(SchemaKey("s", 1), SCHEMA)


def test_all_parts_of_a_schema_survive() -> None:
    schema = SchemaVersion(
        "s",
        2,
        9,
        "PROTOBUF",
        'syntax = "proto3";\nmessage Ü {}\n',
        references=(SchemaReference("other.proto", "other", 1),),
        metadata={"properties": {"owner": "me"}},
        rule_set={
            "domainRules": [{"name": "r", "kind": "CONDITION", "mode": "WRITE", "type": "CEL", "disabled": False}]
        },
        is_deleted=True,
    )
    record = Record(SchemaKey("s", 2), schema)
    content = encode_value(record)
    assert content is not None
    assert "Ü" in content.decode()
    assert decode(encode_key(record.key), content) == record


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        (
            b'{"magic":0,"keytype":"SCHEMA","version":1,"subject":"s"}',
            b'{"subject":"s","version":1,"id":7,"md5":"AA==","schema":"\\"string\\"","deleted":false,"offset":4,"ts":5}',
            Record(SchemaKey("s", 1), SCHEMA),
        ),
        (
            b'{"keytype":"CONFIG","subject":null,"magic":0}',
            b'{"compatibilityLevel":"FULL","later":"unknown"}',
            Record(ConfigKey(None), {"compatibilityLevel": "FULL"}),
        ),
    ],
)
def test_other_writers_records_are_read_with_patience(key: bytes, value: bytes, expected: Record) -> None:
    assert decode(key, value) == expected


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, None),
        (b"", b"{}"),
        (b"not json", b"{}"),
        (b"[]", b"{}"),
        (b'"SCHEMA"', b"{}"),
        (b'{"keytype":"ASSOC","magic":0}', b"{}"),
        (b'{"keytype":"SCHEMA","subject":"s","magic":1}', b"{}"),
        (b'{"keytype":"SCHEMA","subject":"s","version":"1","magic":1}', None),
        (b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}', b"{}"),
        (b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}', b"[1"),
        (b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}', b'{"id":1,"schema":5}'),
        (b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}', b'{"id":1,"schema":"x","references":[1]}'),
        (b'{"keytype":"MODE","subject":7,"magic":0}', b'{"mode":"READONLY"}'),
        (b"\xff\xfe", b"\xff"),
        (b"[" * 100_000, None),
    ],
)
def test_what_makes_no_sense_is_none_and_never_an_exception(key: bytes | None, value: bytes | None) -> None:
    assert decode(key, value) is None


def test_the_guid_is_the_md5_of_text_references_metadata_and_rules() -> None:
    assert SCHEMA.guid == "095d71cf-1255-6b9d-5e33-0ad575b3df5d"
    refers = SchemaVersion("s", 1, 7, "AVRO", '"string"', (SchemaReference("n", "o", 1),))
    assert refers.guid == "071a8d93-f38e-6fb8-b040-3482025b5956"
    described = SchemaVersion("s", 1, 7, "AVRO", '"string"', metadata={"properties": {"a": "b"}})
    assert described.guid == "8e0562da-2332-4679-d6fe-700f88a350ad"
