"""The helpers that feed and read conformance cases, checked on values of every format."""

from __future__ import annotations

from decimal import Decimal

import pytest
from tests.ksql_cases.case_registry import CaseRegistry
from tests.ksql_cases.case_values import decoded, encoded, is_equal

from moldau.formats.columns import Column
from moldau.formats.format import row_format
from moldau.formats.registry.topic_schemas import TopicSchemas
from moldau.formats.types import BIGINT, BYTES, DOUBLE, INTEGER, STRING, ArrayType, DecimalType, Field, StructType

COLUMNS = (
    Column("ID", BIGINT),
    Column("S", STRING),
    Column("D", DOUBLE),
    Column("DEC", DecimalType(6, 4)),
    Column("B", BYTES),
    Column("ST", StructType((Field("F", ArrayType(INTEGER)),))),
)
VALUE = {"ID": 1, "S": "a", "D": Decimal("1.5"), "DEC": Decimal("10.0000"), "B": "AQI=", "ST": {"F": [1, 2]}}


@pytest.mark.parametrize("name", ["JSON", "JSON_SR", "AVRO", "PROTOBUF", "PROTOBUF_NOSR"])
def test_a_value_comes_back(name: str) -> None:
    registry, form = CaseRegistry(), row_format(name)
    TopicSchemas(registry).register_if_absent("t", form, COLUMNS)
    given = {name.lower() if form.format.uses_registry else name: value for name, value in VALUE.items()}
    data = encoded(given, form, COLUMNS, "t", registry)
    assert is_equal(decoded(data, form, COLUMNS, registry), VALUE)


def test_schemas_of_a_case_decide_how_values_are_written() -> None:
    registry = CaseRegistry()
    registry.prepare({"name": "t", "valueSchema": {"type": "map", "values": "int"}, "valueSchemaId": 7})
    form = row_format("AVRO")
    data = encoded({"a": 1}, form, (), "t", registry)
    assert data is not None
    assert data[:5] == b"\0\0\0\0\7"
    assert decoded(data, form, (), registry) == {"a": 1}


@pytest.mark.parametrize(
    ("actual", "expected", "equal"),
    [
        (Decimal("1.0"), Decimal("1.00"), False),
        (1, Decimal("1.0"), True),
        (1.1235, Decimal("1.1234"), False),
        (1.12339997, Decimal("1.1233999729156494"), True),
        (Decimal("10.00"), "10.00", True),
        ({"A": 1}, {"a": 1}, True),
        ({"a": 1}, {"A": 1}, False),
        ({"A": 1, "B": None}, {"A": 1}, False),
        ("NaN", "NaN", True),
        (True, 1, False),
        (None, None, True),
    ],
)
def test_comparison(actual: object, expected: object, equal: bool) -> None:
    assert is_equal(actual, expected) is equal
