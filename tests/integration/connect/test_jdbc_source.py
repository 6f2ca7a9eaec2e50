"""The JDBC source on SQLite, PostgreSQL and MariaDB: modes, offsets, types, tables that come and go."""

from __future__ import annotations

import time
from decimal import Decimal
from typing import Any

import pytest
from tests.integration.connect.databases import Server

from moldau.connect.api import ConfigError, ConnectError, Limits, NotAllowedError, SourceRecord
from moldau.connect.testing import SourceRunner

pytestmark = pytest.mark.xdist_group("databases")

SERIAL = {
    "sqlite": "INTEGER PRIMARY KEY AUTOINCREMENT",
    "postgresql": "SERIAL PRIMARY KEY",
    "mariadb": "INT AUTO_INCREMENT PRIMARY KEY",
}


def source(database: Server, mode: str, **more: str) -> SourceRunner:
    settings = {**database.settings, "mode": mode, "topic.prefix": "db-", "poll.interval.ms": "10"}
    settings.update({key.replace("_", "."): value for key, value in more.items()})
    return SourceRunner("JdbcSource", settings, max_tasks=2)


def values(records: list[SourceRecord], field: str) -> list[Any]:
    return [record.value[field] for record in records]


@pytest.fixture
def drivers(database: Server) -> str:
    database.run(
        "DROP TABLE IF EXISTS driver",
        f"CREATE TABLE driver (id {SERIAL[database.kind]}, name VARCHAR(40) NOT NULL, "
        "changed TIMESTAMP NOT NULL, note TEXT)",
        "INSERT INTO driver (name, changed) VALUES ('ann', '2024-01-01 10:00:00'), ('bob', '2024-01-01 10:00:01')",
    )
    return "driver"


def test_bulk_reads_everything_each_time(database: Server, drivers: str) -> None:
    with source(database, "bulk", table_whitelist=drivers) as runner:
        records = runner.poll_until(4)
        assert values(records, "name") == ["ann", "bob", "ann", "bob"]
        assert records[0].topic == "db-driver"
        assert records[0].source_offset is None
        assert records[0].key is None


def test_incrementing_finds_its_column_and_goes_on_after_a_crash(database: Server, drivers: str) -> None:
    with source(database, "incrementing", table_whitelist=drivers) as runner:
        records = runner.poll_until(2)
        assert [record.source_offset for record in records] == [{"incrementing": 1}, {"incrementing": 2}]
        assert records[0].source_partition["protocol"] == "1"
        assert str(records[0].source_partition["table"]).endswith("driver")
        runner.commit()
        database.run("INSERT INTO driver (name, changed) VALUES ('cid', '2024-01-01 10:00:02')")
        assert values(runner.poll_until(1), "name") == ["cid"]
        runner.restart()
        assert values(runner.poll_until(1), "name") == ["cid"]


def test_timestamp_and_incrementing_sees_inserts_and_updates(database: Server, drivers: str) -> None:
    with source(database, "timestamp+incrementing", table_whitelist=drivers, timestamp_column_name="changed") as runner:
        records = runner.poll_until(2)
        assert records[1].source_offset == {"incrementing": 2, "timestamp": 1704103201000, "timestamp_nanos": 0}
        runner.commit()
        database.run("UPDATE driver SET name = 'anna', changed = '2024-01-01 10:00:05' WHERE id = 1")
        database.run("INSERT INTO driver (name, changed) VALUES ('cid', '2024-01-01 10:00:05')")
        assert values(runner.poll_until(2), "name") == ["anna", "cid"]
        runner.commit()
        runner.restart()
        assert runner.poll() == []
        assert runner.poll() == []


def test_timestamp_mode_advances_only_past_moments_that_are_over(database: Server, drivers: str) -> None:
    database.run(
        "INSERT INTO driver (name, changed) VALUES ('cid', '2024-01-01 10:00:01'), ('dan', '2024-01-01 10:00:02')"
    )
    with source(database, "timestamp", table_whitelist=drivers, timestamp_column_name="changed") as runner:
        records = runner.poll_until(4)
        moments = [record.source_offset and record.source_offset["timestamp"] for record in records]
        # Two rows share the second moment: it counts once the second of them is there.
        assert moments == [1704103200000, 1704103200000, 1704103201000, 1704103202000]


def test_rows_of_the_future_and_younger_than_the_delay_wait(database: Server, drivers: str) -> None:
    database.run("INSERT INTO driver (name, changed) VALUES ('late', '2037-01-01 00:00:00')")
    with source(database, "timestamp", table_whitelist=drivers, timestamp_column_name="changed") as runner:
        assert values(runner.poll_until(2), "name") == ["ann", "bob"]
        assert runner.poll() == []


def test_a_query_with_its_own_condition_in_a_sub_select(database: Server, drivers: str) -> None:
    query = "SELECT * FROM (SELECT id, name FROM driver WHERE name LIKE '%b%') AS chosen"
    with source(database, "incrementing", query=query, incrementing_column_name="id", query_suffix="LIMIT 5") as runner:
        records = runner.poll_until(1)
        assert values(records, "name") == ["bob"]
        assert records[0].topic == "db-"
        assert records[0].source_partition == {"query": "query"}
        database.run("INSERT INTO driver (name, changed) VALUES ('rob', '2024-01-01 10:00:02')")
        assert values(runner.poll_until(1), "name") == ["rob"]


def test_types_become_connect_types(database: Server) -> None:
    blob = {"sqlite": "BLOB", "postgresql": "BYTEA", "mariadb": "VARBINARY(10)"}[database.kind]
    hexadecimal = "decode('00ff', 'hex')" if database.kind == "postgresql" else "X'00ff'"
    database.run(
        "DROP TABLE IF EXISTS kinds",
        f"CREATE TABLE kinds (id {SERIAL[database.kind]}, small SMALLINT, big BIGINT NOT NULL, "
        f"real_number DOUBLE PRECISION, price NUMERIC(10, 2), day DATE, clock TIME, "
        f"moment TIMESTAMP NULL, data {blob}, words VARCHAR(20))",
        "INSERT INTO kinds (small, big, real_number, price, day, clock, moment, data, words) VALUES "
        f"(7, 1234567890123, 0.5, 12.30, '2024-02-29', '10:11:12', '2024-02-29 10:11:12', {hexadecimal}, 'žluťoučký')",
        "INSERT INTO kinds (big) VALUES (2)",
    )
    with source(database, "incrementing", table_whitelist="kinds") as runner:
        full, empty = runner.poll_until(2)
    schema = {field.name: field.schema for field in full.value_schema.fields} if full.value_schema else {}
    assert full.value_schema is not None
    assert full.value_schema.name == "kinds"
    assert schema["small"].kind.value == "int16"
    assert schema["small"].is_optional
    assert not schema["big"].is_optional
    assert schema["price"].parameters["scale"] == "2"
    assert full.value["price"] == Decimal("12.30")
    assert full.value["day"] == 19782
    assert full.value["clock"] == 36672000
    assert full.value["moment"] == 1709201472000
    assert (full.value["data"], full.value["words"]) == (b"\x00\xff", "žluťoučký")
    assert (full.value["small"], full.value["big"], full.value["real_number"]) == (7, 1234567890123, 0.5)
    assert empty.value["big"] == 2
    assert empty.value["price"] is None


def test_numeric_mapping(database: Server) -> None:
    kind = "NUMERIC" if database.kind != "mariadb" else "DECIMAL"
    database.run(
        "DROP TABLE IF EXISTS numbers",
        f"CREATE TABLE numbers (id {SERIAL[database.kind]}, tiny {kind}(2, 0), wide {kind}(18, 0), part {kind}(9, 3))",
        "INSERT INTO numbers (tiny, wide, part) VALUES (42, 123456789012345678, 1.125)",
    )
    expected = {
        "none": ("bytes", "bytes", "bytes"),
        "precision_only": ("int8", "int64", "bytes"),
        "best_fit": ("int8", "int64", "float64"),
    }
    for mapping, kinds in expected.items():
        with source(database, "incrementing", table_whitelist="numbers", numeric_mapping=mapping) as runner:
            (record,) = runner.poll_until(1)
        assert record.value_schema is not None
        found = {field.name: field.schema.kind.value for field in record.value_schema.fields}
        # MariaDB has DECIMAL only, which the setting does not cover.
        wanted = expected["none"] if database.kind == "mariadb" else kinds
        assert (found["tiny"], found["wide"], found["part"]) == wanted
        assert record.value["wide"] == 123456789012345678
        assert float(record.value["part"]) == 1.125


def test_nullable_columns_are_refused_unless_allowed(database: Server) -> None:
    database.run(
        "DROP TABLE IF EXISTS loose",
        "CREATE TABLE loose (number INT, moment TIMESTAMP NULL)",
        "INSERT INTO loose VALUES (1, '2024-01-01 00:00:00')",
    )
    named = {"table_whitelist": "loose", "incrementing_column_name": "number"}
    with source(database, "incrementing", **named) as runner, pytest.raises(ConnectError, match="nullable"):
        runner.poll_until(1)
    with source(database, "incrementing", validate_non_null="false", **named) as runner:
        assert values(runner.poll_until(1), "number") == [1]
    wrong = source(database, "timestamp", table_whitelist="loose", timestamp_column_name="gone")
    with wrong as runner, pytest.raises(ConnectError, match="no column gone"):
        runner.poll_until(1)


def test_new_and_dropped_tables_make_new_tasks(database: Server, drivers: str) -> None:
    database.run("DROP TABLE IF EXISTS driver_two")
    with source(database, "incrementing", table_include_list=r"(.*\.)?driver.*", table_poll_interval_ms="20") as runner:
        assert len(runner.tasks) == 1
        database.run(
            f"CREATE TABLE driver_two (id {SERIAL[database.kind]}, name VARCHAR(9))",
            "INSERT INTO driver_two (name) VALUES ('new')",
        )
        _until(lambda: runner.connector_context.reconfigurations >= 1)
        runner.stop_tasks()
        runner.start_tasks()
        assert len(runner.tasks) == 2
        assert sorted(values(runner.poll_until(3), "name")) == ["ann", "bob", "new"]
        runner.stop_tasks()
        before = runner.connector_context.reconfigurations
        database.run("DROP TABLE driver_two")
        _until(lambda: runner.connector_context.reconfigurations > before)
        runner.start_tasks()
        assert len(runner.tasks) == 1


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        ({"table_whitelist": "pick_one,pick_two"}, ["db-pick_one", "db-pick_two"]),
        ({"table_blacklist": "pick_two,driver,driver_two,loose,types,numbers"}, ["db-pick_one"]),
        ({"table_include_list": r"(.*\.)?pick_.*", "table_exclude_list": r"(.*\.)?.*_one"}, ["db-pick_two"]),
        (
            {"table_include_list": r"(.*\.)?pick_.*", "table_types": "TABLE,VIEW"},
            ["db-pick_one", "db-pick_two", "db-pick_view"],
        ),
    ],
)
def test_tables_are_chosen_by_lists_and_patterns(
    database: Server, selection: dict[str, str], expected: list[str]
) -> None:
    database.run("DROP VIEW IF EXISTS pick_view")
    for name in ("pick_one", "pick_two"):
        database.run(
            f"DROP TABLE IF EXISTS {name}",
            f"CREATE TABLE {name} (id {SERIAL[database.kind]}, name VARCHAR(9))",
            f"INSERT INTO {name} (name) VALUES ('{name[-3:]}')",
        )
    database.run("CREATE VIEW pick_view AS SELECT * FROM pick_one")
    with source(database, "bulk", **selection) as runner:
        seen: set[str] = set()
        _until(lambda: seen.update(record.topic for record in runner.poll_until(1)) or seen >= set(expected))
    assert sorted(topic for topic in seen if "pick" in topic) == expected
    database.run("DROP VIEW pick_view", "DROP TABLE pick_one", "DROP TABLE pick_two")


def _until(condition: Any) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_settings_are_checked_together() -> None:
    runner = SourceRunner(
        "io.confluent.connect.jdbc.JdbcSourceConnector",
        {
            "mode": "timestamp",
            "table.whitelist": "a",
            "table.blacklist": "b",
            "query": "SELECT 1",
            "batch.max.rows": "x",
        },
    )
    with pytest.raises(ConfigError) as caught:
        runner.start()
    text = str(caught.value)
    for key in (
        "connection.url",
        "topic.prefix",
        "batch.max.rows",
        "timestamp.column.name",
        "table.whitelist",
        "query",
    ):
        assert key in text


def test_hosts_and_files_outside_the_limits_are_refused(tmp_path: Any) -> None:
    limits = Limits.of([str(tmp_path)], ["db.example.org"])
    common = {"mode": "bulk", "topic.prefix": "x"}
    for url in ("jdbc:postgresql://elsewhere/db", "jdbc:sqlite:/etc/other.db"):
        runner = SourceRunner("JdbcSource", {**common, "connection.url": url}, limits=limits)
        with pytest.raises(NotAllowedError):
            runner.start()
