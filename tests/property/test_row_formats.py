"""Whatever the columns: a row that is written and read is the same row, in every format."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.ksql_cases.case_registry import CaseRegistry
from tests.property.row_schemas import TEXT, Limits, columns_and_row, values

from moldau.formats.codec import codec
from moldau.formats.columns import Column
from moldau.formats.errors import RowError
from moldau.formats.format import row_format
from moldau.formats.internal_rows import InternalRowSerde
from moldau.formats.registry.inference import columns_of
from moldau.formats.registry.schema_texts import data_schema_of, derived_schema
from moldau.formats.types import BIGINT, BYTES, DOUBLE, INTEGER, STRING, Row
from moldau.schemas.schema import parse

ANY_NAMES = Limits(names=TEXT.filter(bool))
FLAT = Limits(has_nested=False)
PROTO = Limits(
    names=st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,8}", fullmatch=True),
    has_null_scalars=False,
    has_null_collections=False,
    has_nested_collections=False,
    has_null_elements=False,
)
ANY_TIME = settings(deadline=None, max_examples=60)
"""Building a codec takes far longer than using it, and differs by the size of the columns."""

Case = tuple[tuple[Column, ...], Row]


def exact(value: Any) -> Any:
    """A value with its types and scales: True is not 1, and 1.0 not 1.00."""
    if isinstance(value, list | tuple):
        return type(value), [exact(item) for item in value]
    if isinstance(value, dict):
        return {key: exact(item) for key, item in value.items()}
    return type(value), str(value)


def check(name: str, case: Case, **options: str) -> None:
    columns, row = case
    rows = codec(row_format(name, options), columns, topic="t", schemas=CaseRegistry())
    assert exact(rows.decode(rows.encode(row))) == exact(row)


@ANY_TIME
@given(columns_and_row(ANY_NAMES))
def test_json(case: Case) -> None:
    check("JSON", case)


@ANY_TIME
@given(columns_and_row(ANY_NAMES))
def test_json_sr(case: Case) -> None:
    check("JSON_SR", case)


@ANY_TIME
@given(columns_and_row(Limits()))
def test_avro(case: Case) -> None:
    check("AVRO", case)


@ANY_TIME
@given(columns_and_row(PROTO))
def test_protobuf(case: Case) -> None:
    check("PROTOBUF", case)


@ANY_TIME
@given(columns_and_row(PROTO))
def test_protobuf_without_registry(case: Case) -> None:
    check("PROTOBUF_NOSR", case)


@ANY_TIME
@given(columns_and_row(replace(PROTO, has_null_scalars=True)), st.sampled_from(["OPTIONAL", "WRAPPER"]))
def test_protobuf_with_nulls(case: Case, nullable: str) -> None:
    check("PROTOBUF", case, nullableRepresentation=nullable)
    check("PROTOBUF_NOSR", case, nullableRepresentation=nullable)


@ANY_TIME
@given(columns_and_row(replace(FLAT, names=ANY_NAMES.names)), st.sampled_from(",;|\t 0-é"))
def test_delimited(case: Case, delimiter: str) -> None:
    columns, row = case
    rows = codec(row_format("DELIMITED", {"delimiter": delimiter}), columns)
    wanted = tuple(None if value in ("", b"") else value for value in row)
    if len(columns) == 1 and row[0] is None:
        return
    assert exact(rows.decode(rows.encode(row))) == exact(wanted)


@ANY_TIME
@given(
    st.sampled_from([INTEGER, BIGINT, DOUBLE, STRING, BYTES]).flatmap(
        lambda one: st.tuples(st.just(one), values(one, FLAT))
    )
)
def test_kafka(typed: tuple[Any, Any]) -> None:
    sql_type, value = typed
    rows = codec(row_format("KAFKA"), (Column("V", sql_type),))
    assert rows.decode(rows.encode((value,))) == (None if value is None else (value,))


@ANY_TIME
@given(columns_and_row(Limits(map_keys=(STRING, INTEGER, BIGINT))))
def test_internal_form(case: Case) -> None:
    columns, row = case
    rows = InternalRowSerde(columns)
    assert exact(rows.decode(rows.encode(row))) == exact(row)


@ANY_TIME
@given(columns_and_row(Limits(), max_columns=1), st.sampled_from(["JSON", "JSON_SR", "AVRO"]))
def test_bare_values(case: Case, name: str) -> None:
    columns, row = case
    rows = codec(row_format(name).for_value(columns, wrap=False), columns, topic="t", schemas=CaseRegistry())
    data = rows.encode(row)
    assert (data is None) == (row[0] is None)
    assert data is None or exact(rows.decode(data)) == exact(row)


@ANY_TIME
@given(columns_and_row(replace(PROTO, has_nested_collections=False)), st.sampled_from(["AVRO", "JSON_SR", "PROTOBUF"]))
def test_columns_are_inferred_from_the_schema_that_was_derived_from_them(case: Case, name: str) -> None:
    columns, _ = case
    form = row_format(name)
    schema = derived_schema(form, columns)
    found = columns_of(data_schema_of(parse(schema.schema_type, schema.text)), is_key=False, keep_case=True)
    assert found == columns


@ANY_TIME
@given(
    columns_and_row(Limits()), st.binary(max_size=40), st.sampled_from(["JSON", "DELIMITED", "AVRO", "PROTOBUF_NOSR"])
)
def test_noise_is_a_row_or_an_error_of_that_record(case: Case, noise: bytes, name: str) -> None:
    columns = case[0] if name in ("JSON", "AVRO") else tuple(one for one in case[0] if "<" not in str(one.type))
    if not columns:
        return
    registry = CaseRegistry()
    rows = codec(row_format(name), columns, topic="t", schemas=registry)
    if name == "AVRO":
        rows.encode((None,) * len(columns))
        noise = b"\0\0\0\0\1" + noise
    try:
        row = rows.decode(noise)
    except RowError:
        return
    assert row is None or len(row) == len(columns)
