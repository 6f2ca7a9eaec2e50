"""Conversions without a registry: it is asked for nothing here."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.http.errors import HttpError
from moldau.rest.errors import RestError
from moldau.rest.media_types import embedded_format
from moldau.rest.records.embedded import converted_request, read_part
from moldau.rest.records.moments import parse_timestamp_ms, render_timestamp
from moldau.rest.records.schemas import Schemas
from moldau.rest.records.typed import converted_record, described

NO_SCHEMAS = Schemas({"schema.registry.url": "http://127.0.0.1:1"})
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(JSON_VALUES)
def test_json_comes_back_as_it_went(value: Any) -> None:
    request = converted_request({"records": [{"value": value}]}, "json", "t", NO_SCHEMAS, has_partition=False)
    assert read_part(request.records[0].value, "json", NO_SCHEMAS, "value") == value


@given(st.binary())
def test_bytes_come_back_as_they_were(content: bytes) -> None:
    text = read_part(content, "binary", NO_SCHEMAS, "value")
    request = converted_request({"records": [{"value": text}]}, "binary", "t", NO_SCHEMAS, has_partition=False)
    assert request.records[0].value == content


@given(JSON_VALUES)
def test_what_cannot_be_converted_is_refused_and_nothing_else_is_raised(document: Any) -> None:
    for embedded in ("binary", "json"):
        with suppress(RestError):
            converted_request(document, embedded, "t", NO_SCHEMAS, has_partition=False)
    data = [{"type": kind, "data": document} for kind in ("BINARY", "JSON", "STRING")]
    for record in (*({"key": one, "value": one} for one in data), {"headers": document}, {"partition_id": document}):
        with suppress(RestError):
            converted_record(record, "t", NO_SCHEMAS)


@given(st.binary())
def test_any_bytes_have_a_type_and_fit_into_json(content: bytes) -> None:
    found = described(content, None)
    assert found is not None
    assert found["type"] in ("JSON", "STRING", "BINARY")
    json.dumps(found, ensure_ascii=False).encode()


@pytest.mark.parametrize("content", [b"\xff", b"{", b"NaN", b'"\\ud800"'])
def test_what_is_not_json_is_told(content: bytes) -> None:
    with pytest.raises(RestError) as refusal:
        read_part(content, "json", NO_SCHEMAS, "value of t-0@3")
    assert refusal.value.error_code == 40801
    assert "t-0@3" in str(refusal.value)
    assert not isinstance(refusal.value, HttpError)


def test_a_registry_that_is_away_is_told() -> None:
    for embedded in ("avro", "jsonschema", "protobuf"):
        body = {"value_schema_id": 3, "records": [{"value": 1}]}
        with pytest.raises(RestError, match="registry") as refusal:
            converted_request(body, embedded, "t", NO_SCHEMAS, has_partition=False)
        assert refusal.value.error_code == 42207


def test_times() -> None:
    assert parse_timestamp_ms("2021-02-05T19:14:42Z") == 1_612_552_482_000
    assert parse_timestamp_ms("2021-02-05T20:14:42.5+01:00") == 1_612_552_482_500
    assert render_timestamp(1_612_552_482_000) == "2021-02-05T19:14:42Z"
    assert render_timestamp(1_612_552_482_500) == "2021-02-05T19:14:42.500Z"
    assert render_timestamp(-1) is None
    for wrong in ("yesterday", None, 3, "1969-01-01T00:00:00Z", "99999-01-01"):
        with pytest.raises(RestError):
            parse_timestamp_ms(wrong)


def test_content_types_name_formats() -> None:
    assert embedded_format("application/vnd.kafka.avro.v2+json; charset=utf-8") == "avro"
    assert embedded_format("application/vnd.kafka.binary+json") == "binary"
    for other in ("application/vnd.kafka.v2+json", "application/json", None, "application/vnd.kafka.xml.v2+json"):
        assert embedded_format(other) is None
