from __future__ import annotations

import json
from typing import Any

import pytest

from moldau.schemas.parsed_schema import SchemaType
from moldau.schemas.record_names import record_names

RECORD = {"type": "record", "name": "Order", "namespace": "shop", "fields": []}


@pytest.mark.parametrize(
    ("schema", "names"),
    [
        (RECORD, {"shop.Order"}),
        ({**RECORD, "name": "other.Order"}, {"other.Order"}),
        ({"type": "record", "name": "Order", "fields": []}, {"Order"}),
        ({"type": {"type": "enum", "name": "Colour", "symbols": ["RED"]}}, {"Colour"}),
        (["null", RECORD, "shop.Item"], {"shop.Order", "shop.Item"}),
        ("string", set()),
        ({"type": "string"}, set()),
        ({"type": "array", "items": RECORD}, set()),
        (7, set()),
    ],
)
def test_avro_types_are_called_by_their_full_names(schema: Any, names: set[str]) -> None:
    assert record_names(SchemaType.AVRO, json.dumps(schema)) == names


@pytest.mark.parametrize(
    ("schema", "names"), [({"title": "shop.Order"}, {"shop.Order"}), ({"title": 1}, set()), (True, set())]
)
def test_a_json_schema_is_called_by_its_title(schema: Any, names: set[str]) -> None:
    assert record_names(SchemaType.JSON, json.dumps(schema)) == names


def test_every_message_of_a_file_has_its_name() -> None:
    text = """
        syntax = "proto3"; package shop; import "elsewhere.proto";
        message Order { message Item { other.Price price = 1; } repeated Item items = 1; enum State { NEW = 0; } }
        message Refund {}
    """
    assert record_names(SchemaType.PROTOBUF, text) == {"shop.Order", "shop.Order.Item", "shop.Refund"}
    assert record_names(SchemaType.PROTOBUF, 'syntax = "proto3"; message Order {}') == {"Order"}


@pytest.mark.parametrize("schema_type", list(SchemaType))
def test_a_text_that_cannot_be_read_has_no_names(schema_type: SchemaType) -> None:
    assert record_names(schema_type, "{ nonsense") == frozenset()
    assert record_names(schema_type, "[" * 100_000) == frozenset()
