"""Serdes with a schema by themselves: what they are given, what they remember, how they travel."""

from __future__ import annotations

import copy
import json
import pickle
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from moldau.client import prepared_serde
from moldau.core.errors import InvalidConfigError
from moldau.registry.mock import mock_registry
from moldau.serdes.schema_serde import AvroSerde, JsonSchemaSerde, ProtobufSerde, SchemaRecord, SchemaSerde
from moldau.serdes.schema_source import SchemaSourceError, UnfitValueError

NOTE = {"type": "record", "name": "Note", "fields": [{"name": "text", "type": "string"}]}
_numbers = count()


@pytest.fixture
def url() -> str:
    return f"mock://client-{next(_numbers)}"


def configured(serde: SchemaSerde, url: str, **settings: Any) -> SchemaSerde:
    return prepared_serde(serde, {"schema.registry.url": url, **settings}, "value")


def test_a_schema_is_given_as_text_dict_or_file(url: str, tmp_path: Path) -> None:
    file = tmp_path / "note.avsc"
    file.write_text(json.dumps(NOTE))
    written = {configured(AvroSerde(one), url).serialize("t", {"text": "a"}) for one in (NOTE, json.dumps(NOTE), file)}
    assert written == {b"\x00\x00\x00\x00\x01\x02a"}


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfigError, match=r"cannot read the schema in .*none\.avsc"):
        AvroSerde(tmp_path / "none.avsc")


def test_what_a_serde_says_itself_beats_the_settings(url: str) -> None:
    serde = AvroSerde(NOTE, registry_url=url, subject_name_strategy="RecordNameStrategy")
    settings = {"value.subject.name.strategy": "TopicRecordNameStrategy"}
    configured(serde, "mock://not-this-one", **settings).serialize("t", {"text": "a"})
    assert mock_registry(url).ask("GET", "/subjects") == ["Note"]


def test_key_and_value_know_their_subjects(url: str) -> None:
    config = {"schema.registry.url": url}
    prepared_serde(AvroSerde(), config, "key").serialize("t", "k")
    prepared_serde(AvroSerde(), config, "value").serialize("t", "v")
    assert mock_registry(url).ask("GET", "/subjects") == ["t-key", "t-value"]


def test_a_serde_travels_as_a_description() -> None:
    serde = configured(AvroSerde(NOTE, user_info="me:secret"), "http://localhost:8081")
    arrived = pickle.loads(pickle.dumps(serde))
    assert (arrived, arrived.options) == (serde, serde.options)
    assert "secret" not in repr(serde.options)


def test_a_serde_with_a_registry_in_this_process_does_not_travel(url: str) -> None:
    with pytest.raises(InvalidConfigError, match="Spark's workers cannot reach"):
        pickle.dumps(configured(AvroSerde(NOTE), url))


def test_a_record_remembers_its_schema_until_it_is_made_anew(url: str) -> None:
    data = configured(AvroSerde(NOTE), url).serialize("t", {"text": "a"})
    read = configured(AvroSerde(), url).deserialize("t", data)
    assert isinstance(copy.deepcopy(read), SchemaRecord)
    assert type({**read}) is type(read.copy()) is dict
    assert json.dumps(read) == '{"text": "a"}'


def test_a_serde_refuses_what_another_format_wrote(url: str) -> None:
    data = configured(AvroSerde(NOTE), url).serialize("t", {"text": "a"})
    with pytest.raises(UnfitValueError, match="schema 1 of type AVRO, not JSON; use the serde of that type"):
        configured(JsonSchemaSerde(), url).deserialize("t", data)
    with pytest.raises(SchemaSourceError, match="subject t-value has a schema of type AVRO, which ProtobufSerde"):
        configured(ProtobufSerde(), url).serialize("t", {"text": "a"})


def test_a_record_of_another_format_is_written_with_the_latest_schema_of_the_subject(url: str) -> None:
    avro = configured(AvroSerde(NOTE), url)
    note = avro.deserialize("t", avro.serialize("t", {"text": "a"}))
    configured(JsonSchemaSerde({"title": "Note", "type": "object"}), url).serialize("other", {"text": "b"})
    assert configured(JsonSchemaSerde(), url).serialize("other", note).endswith(b'{"text":"a"}')


def test_strategies_that_need_a_name_refuse_schemas_without(url: str) -> None:
    serde = configured(
        JsonSchemaSerde({"type": "object"}), url, **{"value.subject.name.strategy": "RecordNameStrategy"}
    )
    with pytest.raises(SchemaSourceError, match=r"needs a schema with a name.*or use TopicNameStrategy"):
        serde.serialize("t", {})


def test_references_are_told_how_they_are_written() -> None:
    with pytest.raises(InvalidConfigError, match="a name, a subject and a version"):
        AvroSerde(NOTE, references=[{"name": "x"}])
