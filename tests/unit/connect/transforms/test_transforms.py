"""Each built-in transform once with a schema and once without, and the chain around them."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from moldau.connect.api import ConfigError, DataError, Header, Plugins, SinkRecord, SourceRecord
from moldau.connect.api.schemas import (
    DATE,
    FLOAT64,
    INT8,
    INT32,
    INT64,
    STRING,
    TIMESTAMP,
    DataSchema,
    array,
    decimal,
    optional,
    struct,
    with_default,
)
from moldau.connect.transforms.chain import Failure, TransformationChain
from moldau.connect.transforms.date_patterns import DatePattern

PLUGINS = Plugins()
SCHEMA = struct({"id": INT32, "name": optional(STRING), "at": TIMESTAMP}, name="row")
VALUE = {"id": 7, "name": "x", "at": 1_700_000_000_000}


def run(name: str, value: Any, schema: DataSchema | None = None, **config: str) -> Any:
    transform = PLUGINS.create(name, "transformation")
    transform.configure({key.replace("_", "."): text for key, text in config.items()})
    record = SinkRecord(topic="t", partition=2, offset=5, value=value, value_schema=schema, timestamp=1_700_000_000_000)
    return transform.apply(record)


def names(schema: DataSchema | None) -> list[str]:
    assert schema is not None
    return [field.name for field in schema.fields]


def test_insert_field() -> None:
    made = run("InsertField$Value", VALUE, SCHEMA, topic_field="t!", offset_field="o", timestamp_field="ts")
    assert made.value == {**VALUE, "t": "t", "o": 5, "ts": 1_700_000_000_000}
    assert names(made.value_schema) == ["id", "name", "at", "t", "o", "ts"]
    assert [field.schema.is_optional for field in made.value_schema.fields[3:]] == [False, True, True]
    assert run("InsertField$Value", {"a": 1}, static_field="s", static_value="v").value == {"a": 1, "s": "v"}
    assert run("InsertField$Value", None, static_field="s", static_value="v").value is None
    with pytest.raises(ConfigError, match=r"static\.value"):
        run("InsertField$Value", {}, static_field="s")


def test_replace_field() -> None:
    made = run("ReplaceField$Value", VALUE, SCHEMA, exclude="at", renames="id:number")
    assert made.value == {"number": 7, "name": "x"}
    assert names(made.value_schema) == ["number", "name"]
    assert run("ReplaceField$Value", {"a": 1, "b": 2}, whitelist="b").value == {"b": 2}


def test_mask_field() -> None:
    made = run("MaskField$Value", VALUE, SCHEMA, fields="id,name,at")
    assert made.value == {"id": 0, "name": "", "at": 0}
    assert run("MaskField$Value", {"a": 5, "b": "s"}, fields="a,b", replacement="9").value == {"a": 9, "b": "9"}
    with pytest.raises(DataError):
        run("MaskField$Value", {"a": b"x"}, fields="a")


def test_value_to_key_hoist_and_extract() -> None:
    made = run("ValueToKey", VALUE, SCHEMA, fields="id")
    assert (made.key, names(made.key_schema)) == ({"id": 7}, ["id"])
    with pytest.raises(DataError, match="does not exist"):
        run("ValueToKey", VALUE, SCHEMA, fields="none")
    assert run("ValueToKey", {"a": 1}, fields="a,b").key == {"a": 1, "b": None}
    assert run("HoistField$Value", 5, INT32, field="n").value == {"n": 5}
    assert run("ExtractField$Value", VALUE, SCHEMA, field="id").value == 7
    nested = {"a": {"b.c": {"d": 1}}}
    assert run("ExtractField$Value", nested, field="a.`b.c`.d", field_syntax_version="V2").value == 1
    assert run("ExtractField$Value", nested, field="x").value is None
    with pytest.raises(DataError, match="Unknown field"):
        run("ExtractField$Value", VALUE, SCHEMA, field="x")


def test_cast() -> None:
    made = run("Cast$Value", VALUE, SCHEMA, spec="id:string,at:int64")
    assert made.value == {"id": "7", "name": "x", "at": 1_700_000_000_000}
    assert made.value_schema.fields[2].schema == INT64
    assert run("Cast$Value", 300, INT32, spec="int8").value == 44
    assert run("Cast$Value", 1e20, FLOAT64, spec="int32").value == 2**31 - 1
    assert run("Cast$Value", "TRUE", spec="boolean").value is True
    assert run("Cast$Value", b"\x00\xff", spec="string").value == "AP8="
    with pytest.raises(DataError, match="out of range"):
        run("Cast$Value", "300", spec="int8")
    with pytest.raises(ConfigError, match="spec"):
        run("Cast$Value", 1, spec="a:what")


def test_flatten() -> None:
    inner = optional(struct({"b": INT32, "c": array(STRING)}))
    made = run("Flatten$Value", {"a": {"b": 1, "c": ["x"]}, "d": 2}, struct({"a": inner, "d": INT8}), delimiter="_")
    assert made.value == {"a_b": 1, "a_c": ["x"], "d": 2}
    assert [field.schema.is_optional for field in made.value_schema.fields] == [True, True, False]
    assert run("Flatten$Value", {"a": {"b": {"c": 1}}, "l": [{}]}).value == {"a.b.c": 1, "l": [{}]}
    nothing = run("Flatten$Value", None, optional(struct({"a": inner})))
    assert (nothing.value, nothing.value_schema) == (None, optional(struct({"a": inner})))


def test_timestamp_converter() -> None:
    made = run(
        "TimestampConverter$Value", VALUE, SCHEMA, field="at", target_type="string", format="yyyy-MM-dd HH:mm:ss"
    )
    assert made.value["at"] == "2023-11-14 22:13:20"
    back = run(
        "TimestampConverter$Value", "2023-11-14 22:13:20", STRING, target_type="unix", format="yyyy-MM-dd HH:mm:ss"
    )
    assert (back.value, back.value_schema) == (1_700_000_000_000, INT64)
    day = run("TimestampConverter$Value", 1_700_000_000_000, target_type="Date")
    assert day.value == datetime(2023, 11, 14, tzinfo=UTC)
    assert (
        run("TimestampConverter$Value", 1_700_000_000, INT64, target_type="Date", unix_precision="seconds").value_schema
        == DATE
    )
    with pytest.raises(DataError, match="does not match"):
        run("TimestampConverter$Value", "yesterday", STRING, target_type="unix", format="yyyy")


def test_routers() -> None:
    assert run("TimestampRouter", 1).topic == "t-20231114"
    assert run("RegexRouter", 1, regex="(t)", replacement="$1-x").topic == "t-x"
    assert run("RegexRouter", 1, regex="other", replacement="x").topic == "t"
    assert run("Filter", 1) is None


def test_metadata_and_headers() -> None:
    made = run("SetSchemaMetadata$Value", VALUE, SCHEMA, schema_name="other", schema_version="4")
    assert (made.value_schema.name, made.value_schema.version) == ("other", 4)
    moved = run("HeaderFrom$Value", VALUE, SCHEMA, fields="id", headers="h", operation="move")
    assert (moved.value, moved.headers) == ({"name": "x", "at": VALUE["at"]}, (Header("h", 7, INT32),))
    assert run("InsertHeader", 1, header="n", value_literal="12").headers == (Header("n", 12, INT8),)
    assert run("DropHeaders", 1, headers="n").headers == ()


def test_a_default_stands_for_a_null() -> None:
    schema = struct({"a": with_default(optional(INT32), 5), "d": decimal(1)})
    value = {"a": None, "d": Decimal("1.5")}
    assert run("ReplaceField$Value", value, schema, exclude="d").value == {"a": 5}
    assert run("ReplaceField$Value", value, schema, exclude="d", replace_null_with_default="false").value == {"a": None}


CHAIN = {
    "transforms": "route,drop,cast",
    "transforms.route.type": "org.apache.kafka.connect.transforms.RegexRouter",
    "transforms.route.regex": "(.*)",
    "transforms.route.replacement": "new-$1",
    "transforms.drop.type": "Filter",
    "transforms.drop.predicate": "gone",
    "transforms.cast.type": "Cast$Value",
    "transforms.cast.spec": "int32",
    "transforms.cast.predicate": "gone",
    "transforms.cast.negate": "true",
    "predicates": "gone",
    "predicates.gone.type": "RecordIsTombstone",
}


def test_a_chain_keeps_the_origin_of_records_and_fails_them_alone() -> None:
    chain = TransformationChain.of(CHAIN, PLUGINS)
    records = [
        SinkRecord(topic="t", partition=0, offset=n, value=value) for n, value in enumerate(["1", None, "x", "4"])
    ]
    first, dropped, failed, last = chain.apply(records)
    assert isinstance(first, SinkRecord)
    assert (first.topic, first.value, str(first.topic_partition)) == ("new-t", 1, "t-0")
    assert dropped is None
    assert isinstance(failed, Failure)
    assert (failed.record, failed.transform) == (records[2], "cast")
    assert isinstance(last, SinkRecord)
    assert records[0].topic == "t"


def test_a_chain_names_everything_that_is_wrong() -> None:
    wrong = {
        "transforms": "a,b,c",
        "transforms.a.type": "NoSuch",
        "transforms.b.type": "MaskField$Value",
        "transforms.b.predicate": "p",
        "transforms.c.negate": "maybe",
    }
    with pytest.raises(ConfigError) as caught:
        TransformationChain.of(wrong, PLUGINS)
    for key in ("transforms.a.type", "transforms.b: ", "transforms.b.predicate", "transforms.c.type", "c.negate"):
        assert key in str(caught.value)


def test_source_records_pass_a_chain() -> None:
    chain = TransformationChain.of(
        {"transforms": "h", "transforms.h.type": "HoistField$Value", "transforms.h.field": "f"}, PLUGINS
    )
    (made,) = chain.apply([SourceRecord(topic="t", value=1, source_partition={"p": 1}, source_offset={"o": 2})])
    assert isinstance(made, SourceRecord)
    assert (made.value, made.source_offset) == ({"f": 1}, {"o": 2})


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("yyyy-MM-dd'T'HH:mm:ss.SSSX", "2023-11-14T22:13:20.123Z"),
        ("EEE, d MMM yyyy hh:mm:ss a", "Tue, 14 Nov 2023 10:13:20 PM"),
        ("yyyyMMddHHmmss", "20231114221320"),
        ("MM/dd/yy HH:mm:ss Z", "11/14/23 22:13:20 +0000"),
    ],
)
def test_date_patterns_write_what_they_read(pattern: str, text: str) -> None:
    found = DatePattern(pattern)
    assert found.format_ms(found.parse_ms(text)) == text
    assert found.parse_ms(text) // 1000 == 1_700_000_000
