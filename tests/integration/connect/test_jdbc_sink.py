"""The JDBC sink on SQLite, PostgreSQL and MariaDB: modes, tables made and evolved, deletes, bad records."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from tests.integration.connect.databases import Server

from moldau.connect.api import ConfigError, ConnectError, SinkRecord, TopicPartition
from moldau.connect.api.schemas import (
    BOOLEAN,
    BYTES,
    DATE,
    FLOAT64,
    INT32,
    INT64,
    STRING,
    TIMESTAMP,
    array,
    decimal,
    optional,
    struct,
    with_default,
)
from moldau.connect.testing import SinkRunner, SourceRunner

pytestmark = pytest.mark.xdist_group("databases")

KEY = struct({"id": INT32})
VALUE = struct({"name": STRING, "price": optional(decimal(2, 10))}, name="item")


def sink(database: Server, **more: str) -> SinkRunner:
    settings = {**database.settings, **{key.replace("_", "."): value for key, value in more.items()}}
    return SinkRunner("JdbcSink", settings, has_reporter=False)


def item(offset: int, number: int, name: str | None, price: str | None = None) -> SinkRecord:
    return SinkRecord(
        topic="items",
        partition=0,
        offset=offset,
        key={"id": number},
        key_schema=KEY,
        value=None if name is None else {"name": name, "price": None if price is None else Decimal(price)},
        value_schema=None if name is None else VALUE,
    )


@pytest.fixture(autouse=True)
def clean(database: Server) -> None:
    database.run("DROP TABLE IF EXISTS items", "DROP TABLE IF EXISTS offsets_of_sinks")


UPSERT = {"insert_mode": "upsert", "pk_mode": "record_key", "auto_create": "true"}


def test_upserts_create_the_table_and_are_idempotent(database: Server) -> None:
    records = [item(0, 1, "a", "1.50"), item(1, 2, "b"), item(2, 1, "c", "2.00")]
    with sink(database, **UPSERT) as runner:
        runner.put(records)
        runner.put(records)
        assert runner.commit() == {("items", 0): 3}
    rows = database.rows("SELECT id, name, price FROM items ORDER BY id")
    assert [(number, name, None if price is None else float(str(price))) for number, name, price in rows] == [
        (1, "c", 2.0),
        (2, "b", None),
    ]


def test_inserts_of_one_key_twice_fail_as_a_whole_or_are_reported(database: Server) -> None:
    plain = {"pk_mode": "record_key", "auto_create": "true", "max_retries": "0"}
    with sink(database, **plain) as runner:
        runner.put([item(0, 1, "a")])
        with pytest.raises(ConnectError, match="cannot be written"):
            runner.put([item(1, 2, "b"), item(2, 1, "again")])
        assert database.rows("SELECT id FROM items") == [(1,)]
    settings = {**database.settings, "pk.mode": "record_key", "max.retries": "0"}
    with SinkRunner("JdbcSink", settings, has_reporter=True) as runner:
        runner.put([item(1, 2, "b"), item(2, 1, "again")])
        assert runner.reporter is not None
        assert [record.offset for record, _ in runner.reporter.reported] == [2]
    assert database.rows("SELECT id FROM items ORDER BY id") == [(1,), (2,)]


def test_large_batches_upsert_the_last_row_of_each_key(database: Server) -> None:
    awkward = "tab\t, back\\slash, line\nend, 'quote', %s, \\N"
    records = [item(number, number % 70, f"{awkward} {number}", "1.25") for number in range(200)]
    records += [item(200 + number, 1000 + number, None if number == 5 else "x") for number in range(10) if number != 5]
    with sink(database, **UPSERT) as runner:
        runner.put(records)
        runner.put([item(300 + number, number, f"again {number}") for number in range(30)])
    found = database.rows("SELECT id, name FROM items ORDER BY id")
    assert len(found) == 70 + 9
    assert found[0] == (0, "again 0")
    assert found[30] == (30, f"{awkward} 170")
    assert database.rows("SELECT count(*) FROM items WHERE price IS NULL") == [(39,)]


def test_large_batches_are_inserted_and_one_bad_row_is_found(database: Server) -> None:
    settings = {**database.settings, "pk.mode": "record_key", "auto.create": "true", "max.retries": "0"}
    with SinkRunner("JdbcSink", settings, has_reporter=True) as runner:
        runner.put([item(number, number, f"name {number}", "0.50") for number in range(100)])
        runner.put([item(100 + number, 150 if number == 40 else 101 + number, "more") for number in range(60)])
        assert runner.reporter is not None
        assert [record.offset for record, _ in runner.reporter.reported] == [149]
    assert database.rows("SELECT count(*) FROM items") == [(100 + 59,)]


def test_large_batches_are_cast_to_the_types_of_the_columns(database: Server) -> None:
    database.run("CREATE TABLE items (id INT PRIMARY KEY, name VARCHAR(40), price INT)")
    floats = struct({"name": STRING, "price": FLOAT64})
    records = [
        item(number, number, "").changed(value_schema=floats, value={"name": str(number), "price": 3.0})
        for number in range(50)
    ]
    with sink(database, insert_mode="upsert", pk_mode="record_key") as runner:
        runner.put(records)
    assert database.rows("SELECT count(*) FROM items WHERE price = 3") == [(50,)]


def test_updates_change_rows_that_are_there(database: Server) -> None:
    with sink(database, **UPSERT) as runner:
        runner.put([item(0, 1, "a")])
    with sink(database, insert_mode="update", pk_mode="record_key") as runner:
        runner.put([item(1, 1, "changed"), item(2, 9, "not there")])
    assert database.rows("SELECT id, name FROM items") == [(1, "changed")]


def test_a_null_value_deletes_and_a_later_insert_brings_back(database: Server) -> None:
    with sink(database, delete_enabled="true", **UPSERT) as runner:
        runner.put([item(0, 1, "a"), item(1, 2, "b"), item(2, 1, None), item(3, 2, None), item(4, 2, "back")])
    assert database.rows("SELECT id, name FROM items") == [(2, "back")]
    with sink(database, **UPSERT) as runner, pytest.raises(ConnectError, match=r"delete\.enabled"):
        runner.put([item(5, 2, None)])


def test_columns_are_added_if_that_is_allowed(database: Server) -> None:
    wider = struct({"name": STRING, "color": optional(STRING), "count": with_default(INT32, 7)})
    record = item(1, 2, "b").changed(value_schema=wider, value={"name": "b", "color": "red", "count": None})
    with sink(database, **UPSERT) as runner:
        runner.put([item(0, 1, "a")])
        with pytest.raises(ConnectError, match=r"auto\.evolve"):
            runner.put([record])
    with sink(database, auto_evolve="true", **UPSERT) as runner:
        runner.put([record])
        needed = struct({"name": STRING, "must": STRING})
        with pytest.raises(ConnectError, match="neither optional"):
            runner.put([item(2, 3, "c").changed(value_schema=needed, value={"name": "c", "must": "x"})])
    quoted = '"count"' if database.kind != "mariadb" else "`count`"
    rows = database.rows(f"SELECT id, name, color, {quoted} FROM items ORDER BY id")
    assert rows == [(1, "a", None, 7), (2, "b", "red", 7)]


def test_a_default_with_quotes_and_backslashes_is_a_text_and_nothing_else(database: Server) -> None:
    default = "it's \\'); DROP TABLE items; -- \\"
    key = struct({"id": with_default(STRING, default)})
    record = SinkRecord(
        topic="items", partition=0, offset=0, key={"id": "a"}, key_schema=key,
        value={"name": "x", "price": None}, value_schema=VALUE,
    )  # fmt: skip
    with sink(database, **UPSERT) as runner:
        runner.put([record])
        runner.commit()
    database.run("INSERT INTO items (name) VALUES ('y')")
    assert database.rows("SELECT id FROM items WHERE name = 'y'") == [(default,)]


def test_a_missing_table_is_an_error_that_names_the_way_out(database: Server) -> None:
    with sink(database, insert_mode="insert") as runner, pytest.raises(ConnectError, match=r"auto\.create=true"):
        runner.put([item(0, 1, "a")])


def test_the_key_may_be_from_kafka_from_the_value_or_a_single_number(database: Server) -> None:
    with sink(database, insert_mode="upsert", pk_mode="kafka", auto_create="true") as runner:
        runner.put([item(0, 1, "a"), item(0, 1, "a")])
    assert database.rows("SELECT __connect_topic, __connect_partition, __connect_offset FROM items") == [
        ("items", 0, 0)
    ]
    database.run("DROP TABLE items")
    with sink(database, insert_mode="upsert", pk_mode="record_value", pk_fields="name", auto_create="true") as runner:
        runner.put([item(0, 1, "a"), item(1, 1, "a", "3.00")])
    assert len(database.rows("SELECT * FROM items")) == 1
    database.run("DROP TABLE items")
    bare: Any = item(0, 1, "a").changed(key=5, key_schema=INT64)
    with sink(database, pk_fields="number", **UPSERT) as runner:
        runner.put([bare])
    assert database.rows("SELECT number, name FROM items") == [(5, "a")]


def test_data_without_a_schema_and_nested_data_are_refused_with_advice(database: Server) -> None:
    with sink(database, **UPSERT) as runner:
        with pytest.raises(ConnectError, match="converter with schemas"):
            runner.put([item(0, 1, "a").changed(value_schema=None)])
        with pytest.raises(ConnectError, match="Flatten"):
            runner.put([item(0, 1, "a").changed(value_schema=struct({"l": array(INT32)}), value={"l": [1]})])


def test_an_offset_table_makes_plain_inserts_exactly_once(database: Server) -> None:
    options = {"auto_create": "true", "moldau_offset_table": "offsets_of_sinks"}
    with sink(database, **options) as runner:
        runner.put([item(0, 1, "a"), item(1, 2, "b")])
        runner.restart()
        runner.open(TopicPartition("items", 0))
        assert runner.rewound() == {TopicPartition("items", 0): 2}
        runner.put([item(0, 1, "a"), item(1, 2, "b"), item(2, 3, "c")])
    assert database.rows("SELECT name FROM items ORDER BY name") == [("a",), ("b",), ("c",)]


def test_what_the_sink_wrote_the_source_reads_again(database: Server) -> None:
    schema = struct(
        {
            "id": INT64,
            "flag": BOOLEAN,
            "number": FLOAT64,
            "day": DATE,
            "moment": TIMESTAMP,
            "data": optional(BYTES),
            "text": optional(STRING),
        }
    )
    value = {
        "id": 1,
        "flag": True,
        "number": 0.1,
        "day": 19782,
        "moment": 1709201472123,
        "data": b"\x00%",
        "text": "100% é",
    }
    with sink(database, pk_mode="record_value", pk_fields="id", auto_create="true") as runner:
        runner.put([SinkRecord(topic="items", partition=0, offset=0, value=value, value_schema=schema)])
    if database.kind == "sqlite":
        # Its columns for logical types are NUMERIC by name: nothing tells a source that they hold dates.
        assert database.rows("SELECT day, moment FROM items") == [("2024-02-29", "2024-02-29 10:11:12.123")]
        return
    settings = {**database.settings, "mode": "bulk", "topic.prefix": "", "table.whitelist": "items"}
    with SourceRunner("JdbcSource", settings) as source:
        (record,) = source.poll_until(1)
    assert {**record.value, "flag": bool(record.value["flag"])} == value


def test_settings_are_checked_together() -> None:
    runner = SinkRunner("JdbcSinkConnector", {"insert.mode": "upsert", "delete.enabled": "true", "batch.size": "0"})
    with pytest.raises(ConfigError) as caught:
        runner.start()
    for key in ("connection.url", "pk.mode", "delete.enabled", "batch.size"):
        assert key in str(caught.value)
