from __future__ import annotations

import math
import pickle
from decimal import Decimal

import pytest

from moldau.formats.columns import Column
from moldau.formats.errors import FormatError, RowError
from moldau.formats.internal_rows import InternalRowSerde
from moldau.formats.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DOUBLE,
    INTEGER,
    STRING,
    TIMESTAMP,
    ArrayType,
    DecimalType,
    Field,
    MapType,
    SqlType,
    StructType,
)


def rows_of(*types: SqlType) -> InternalRowSerde:
    return InternalRowSerde(tuple(Column(f"C{index}", one) for index, one in enumerate(types)))


def test_rows_of_all_types_come_back() -> None:
    struct = StructType((Field("A", DecimalType(5, 2)), Field("B", BYTES)))
    rows = rows_of(
        BOOLEAN, BIGINT, DOUBLE, STRING, BYTES, TIMESTAMP, ArrayType(struct), MapType(STRING, DOUBLE),
        MapType(INTEGER, struct),
    )  # fmt: skip
    row = (
        True, -(2**63), 1.1, "é", b"\0", 5, [(Decimal("1.50"), b""), None, (None, None)], {"a": 1.0, "b": None},
        {1: (Decimal("-0.01"), b"x"), 2: None},
    )  # fmt: skip
    assert rows.decode(rows.encode(row)) == row
    assert str(rows.decode(rows.encode(row))[6][0][0]) == "1.50"
    assert rows.decode(rows.encode((None,) * 9)) == (None,) * 9
    assert rows.encode(None) is None
    assert rows.decode(None) is None


def test_doubles_that_json_lacks_come_back() -> None:
    rows = rows_of(DOUBLE, DOUBLE, DOUBLE)
    nan, infinity, zero = rows.decode(rows.encode((math.nan, -math.inf, -0.0)))
    assert math.isnan(nan)
    assert infinity == -math.inf
    assert math.copysign(1, zero) == -1


def test_a_row_of_fewer_columns_is_padded_and_one_of_more_is_cut() -> None:
    old, new = rows_of(INTEGER, DecimalType(3, 1)), rows_of(INTEGER, DecimalType(3, 1), BYTES)
    assert new.decode(old.encode((1, Decimal("2.0")))) == (1, Decimal("2.0"), None)
    assert old.decode(new.encode((1, Decimal("2.0"), b"x"))) == (1, Decimal("2.0"))


def test_half_a_surrogate_pair_is_kept_as_a_question_mark() -> None:
    rows = rows_of(STRING)
    assert rows.decode(rows.encode(("a\ud800",))) == ("a?",)


def test_maps_may_have_null_keys() -> None:
    rows = rows_of(MapType(STRING, INTEGER))
    assert rows.decode(rows.encode(({None: 1, "a": 2},))) == ({None: 1, "a": 2},)


@pytest.mark.parametrize("data", [b"", b"{}", b"[1", b'["x"]', b"[[1]]", b"\xff"])
def test_other_bytes_are_no_row(data: bytes) -> None:
    with pytest.raises(RowError):
        rows_of(DecimalType(3, 1)).decode(data)


def test_types_nested_too_deep_are_refused() -> None:
    sql_type: SqlType = INTEGER
    for _ in range(500):
        sql_type = ArrayType(sql_type)
    with pytest.raises(FormatError):
        rows_of(sql_type)


def test_a_serde_is_shipped_as_its_description() -> None:
    rows = rows_of(INTEGER)
    assert pickle.loads(pickle.dumps(rows)) == rows
    assert rows.deserialize("t", rows.serialize("t", (1,))) == (1,)


def test_rows_are_kept_as_they_are_only_if_nobody_can_change_them() -> None:
    assert rows_of(STRING, StructType((Field("A", INTEGER),))).is_plain
    assert not rows_of(ArrayType(STRING)).is_plain
