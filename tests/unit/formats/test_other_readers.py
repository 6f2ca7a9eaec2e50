"""What is written as rows is read by codecs that know the schema and nothing of rows."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

from tests.ksql_cases.case_registry import CaseRegistry

from moldau.formats.codec import codec
from moldau.formats.columns import Column
from moldau.formats.format import row_format
from moldau.formats.types import (
    BYTES,
    DATE,
    STRING,
    TIME,
    TIMESTAMP,
    ArrayType,
    DecimalType,
    Field,
    MapType,
    StructType,
)
from moldau.schemas.values import codec_of

COLUMNS = (
    Column("DEC", DecimalType(9, 2)),
    Column("D", DATE),
    Column("T", TIME),
    Column("TS", TIMESTAMP),
    Column("M", MapType(STRING, BYTES)),
    Column("S", StructType((Field("F", ArrayType(DecimalType(3, 1))),))),
)
MS = 1_600_000_000_123
ROW = (Decimal("-1234567.80"), 18_518, 3_723_004, MS, {"a": b"\x01"}, ([Decimal("-0.1"), Decimal("12.8")],))


def written(name: str) -> tuple[Any, bytes]:
    """The schema's own codec, and the data of the row without its id."""
    registry = CaseRegistry()
    data = codec(row_format(name), COLUMNS, topic="t", schemas=registry).encode(ROW)
    assert data is not None
    registered = registry.latest("t-value")
    assert registered is not None
    return codec_of(registered.parsed), data[5:]


def test_avro_data_are_read_with_their_logical_types() -> None:
    reader, body = written("AVRO")
    assert reader.decode(body) == {
        "DEC": Decimal("-1234567.80"),
        "D": date(2020, 9, 13),
        "T": time(1, 2, 3, 4000),
        "TS": datetime.fromtimestamp(MS / 1000, UTC),
        "M": [{"key": "a", "value": b"\x01"}],
        "S": {"F": [Decimal("-0.1"), Decimal("12.8")]},
    }


def test_protobuf_data_are_read_with_well_known_types() -> None:
    reader, body = written("PROTOBUF")
    found = json.loads(reader.decode_text(body))
    assert found["D"] == {"year": 2020, "month": 9, "day": 13}
    assert found["T"] == {"hours": 1, "minutes": 2, "seconds": 3, "nanos": 4_000_000}
    assert found["TS"] == "2020-09-13T12:26:40.123Z"
    assert found["M"] == {"a": "AQ=="}
    # -123456780 as a signed integer, in base64.
    assert found["DEC"] == {"value": "+KQy9A==", "precision": 9, "scale": 2}


def test_json_data_fit_the_schema_that_they_are_registered_with() -> None:
    reader, body = written("JSON_SR")
    reader.check(json.loads(body))
