from __future__ import annotations

import pytest
from tests.unit.pipeline.ksql.sql_session import SqlSession

from moldau.formats.columns import Column
from moldau.formats.types import BIGINT, INTEGER, STRING
from moldau.pipeline.ksql.errors import KsqlError

ORDERS = (
    "CREATE STREAM ORDERS (ID STRING KEY, ITEM STRING, UNITS INT)"
    " WITH (KAFKA_TOPIC='orders', VALUE_FORMAT='JSON', PARTITIONS=2);"
)


def test_a_created_stream_is_in_the_catalogue_and_its_topic_exists() -> None:
    session = SqlSession(ORDERS)
    source = session.engine.catalogue.sources["ORDERS"]
    assert source.schema.key == (Column("ID", STRING),)
    assert source.schema.value == (Column("ITEM", STRING), Column("UNITS", INTEGER))
    assert session.topics.partitions("orders") == 2


def test_a_result_inherits_formats_and_partitions() -> None:
    session = SqlSession(ORDERS)
    query = session.start(
        "CREATE TABLE TOTALS AS SELECT ITEM, SUM(UNITS) AS UNITS, COUNT(*) AS N FROM ORDERS GROUP BY ITEM;"
    )
    sink = session.engine.catalogue.sources["TOTALS"]
    assert query.query_id == "CTAS_TOTALS_0"
    assert (query.sources, query.sink_topic) == (("ORDERS",), "TOTALS")
    assert (sink.key_format.format.name, sink.value_format.format.name, sink.partitions) == ("KAFKA", "JSON", 2)
    assert sink.schema.value == (Column("UNITS", INTEGER), Column("N", BIGINT))


def test_a_refused_statement_changes_nothing() -> None:
    session = SqlSession(ORDERS)
    before = session.engine.catalogue.copy()
    with pytest.raises(KsqlError, match="'PRICE' cannot be resolved"):
        session.execute("CREATE STREAM EXPENSIVE AS SELECT ID, PRICE FROM ORDERS;")
    assert session.engine.catalogue == before


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (ORDERS, "Cannot add stream 'ORDERS': A stream with the same name already exists"),
        ("CREATE STREAM S (ID INT) WITH (VALUE_FORMAT='JSON');", 'Missing required property "KAFKA_TOPIC"'),
        (
            "CREATE STREAM S (ID INT) WITH (KAFKA_TOPIC='nowhere', VALUE_FORMAT='JSON');",
            "Topic 'nowhere' does not exist",
        ),
        ("CREATE STREAM S (ID INT) WITH (KAFKA_TOPIC='orders');", "missing the 'VALUE_FORMAT' property"),
        (
            "CREATE STREAM S (ID INT) WITH (KAFKA_TOPIC='orders', VALUE_FORMAT='JSON', COLOUR='red');",
            "Invalid config variable(s) in the WITH clause: COLOUR",
        ),
        (
            "CREATE STREAM S (ID INT) WITH (KAFKA_TOPIC='orders', VALUE_FORMAT='JSON', PARTITIONS=3);",
            "KSQL expects 3 partitions (topic has 2)",
        ),
        ("CREATE STREAM S AS SELECT ITEM, COUNT(*) FROM ORDERS GROUP BY ITEM;", "produces a TABLE"),
        ("CREATE TABLE T AS SELECT * FROM ORDERS;", "produces a STREAM"),
        ("CREATE STREAM S AS SELECT * FROM NOWHERE;", "Source `NOWHERE` does not exist."),
        ("DROP TABLE ORDERS;", "Incompatible data source type is STREAM, but statement was DROP TABLE"),
        ("DROP STREAM NOWHERE;", "Stream NOWHERE does not exist."),
        ("ALTER STREAM ORDERS ADD COLUMN ITEM INT;", "A column with the same name already exists."),
        ("INSERT INTO ORDERS (ID, PRICE) VALUES ('a', 1);", "Column name PRICE does not exist."),
        ("INSERT INTO ORDERS SELECT ID, ITEM FROM ORDERS;", "Incompatible schema between results and sink."),
    ],
)
def test_what_is_refused_says_why(statement: str, message: str) -> None:
    session = SqlSession(ORDERS)
    with pytest.raises(KsqlError) as refusal:
        session.execute(statement)
    assert message in str(refusal.value)


def test_a_source_in_use_cannot_be_dropped() -> None:
    session = SqlSession(ORDERS)
    session.start("CREATE STREAM COPY AS SELECT * FROM ORDERS;")
    with pytest.raises(KsqlError, match="CSAS_COPY_0"):
        session.execute("DROP STREAM ORDERS;")
    assert session.execute("DROP STREAM COPY;").stopped == ("CSAS_COPY_0",)
    session.execute("DROP STREAM ORDERS;")
    assert session.engine.catalogue.sources == {}


def test_a_replaced_query_keeps_its_id_and_may_add_columns_at_the_end() -> None:
    session = SqlSession(ORDERS)
    session.start("CREATE STREAM COPY AS SELECT ID, ITEM FROM ORDERS;")
    outcome = session.execute("CREATE OR REPLACE STREAM COPY AS SELECT ID, ITEM, UNITS FROM ORDERS WHERE UNITS > 1;")
    assert outcome.started is not None
    assert (outcome.started.query_id, outcome.stopped) == ("CSAS_COPY_0", ("CSAS_COPY_0",))
    with pytest.raises(KsqlError, match="changed, missing or reordered"):
        session.execute("CREATE OR REPLACE STREAM COPY AS SELECT ID, UNITS FROM ORDERS;")


def test_a_query_is_not_replaced_by_one_of_another_shape() -> None:
    session = SqlSession(ORDERS)
    session.start("CREATE TABLE N AS SELECT ITEM, COUNT(*) AS N FROM ORDERS GROUP BY ITEM;")
    replacing = "CREATE OR REPLACE TABLE N AS SELECT"
    with pytest.raises(KsqlError, match="WINDOW = none which is not upgradeable to TUMBLING of 1000 ms"):
        session.execute(f"{replacing} ITEM, COUNT(*) AS N FROM ORDERS WINDOW TUMBLING (SIZE 1 SECOND) GROUP BY ITEM;")
    with pytest.raises(KsqlError, match="the new query has other grouping"):
        session.execute(f"{replacing} UCASE(ITEM) AS ITEM, COUNT(*) AS N FROM ORDERS GROUP BY UCASE(ITEM);")
    session.start("CREATE STREAM COPY AS SELECT * FROM ORDERS;")
    session.start("INSERT INTO COPY SELECT * FROM ORDERS;")
    with pytest.raises(KsqlError, match="INSERTQUERY_2"):
        session.execute("CREATE OR REPLACE STREAM COPY AS SELECT * FROM ORDERS WHERE UNITS > 1;")


def test_altered_columns_are_added() -> None:
    session = SqlSession(ORDERS)
    session.execute("ALTER STREAM ORDERS ADD COLUMN PRICE DECIMAL(8, 2);")
    assert session.engine.catalogue.sources["ORDERS"].schema.value[-1].name == "PRICE"


def test_named_types_are_expanded_where_they_are_used() -> None:
    session = SqlSession(
        "CREATE TYPE ADDRESS AS STRUCT<CITY STRING>;",
        "CREATE STREAM S (A ARRAY<ADDRESS>) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON', PARTITIONS=1);",
    )
    assert str(session.engine.catalogue.sources["S"].schema.value[0].type) == "ARRAY<STRUCT<`CITY` STRING>>"
    session.execute("DROP TYPE ADDRESS;")
    with pytest.raises(KsqlError, match="ADDRESS"):
        session.execute("CREATE STREAM S2 (A ADDRESS) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON');")


def test_inserted_values_are_converted_to_their_columns() -> None:
    session = SqlSession(
        "CREATE STREAM S (K STRING KEY, N BIGINT, D DECIMAL(4, 2))"
        " WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON', PARTITIONS=1);"
    )
    record = session.execute("INSERT INTO S (ROWTIME, K, D, N) VALUES (5, 'a', 1.5, 1 + 1);").record
    assert record is not None
    assert (record.key, [str(value) for value in record.value or ()], record.timestamp) == (("a",), ["2", "1.50"], 5)


def test_errors_quote_the_statement_with_all_names_resolved() -> None:
    session = SqlSession(ORDERS)
    with pytest.raises(KsqlError) as refusal:
        session.execute("CREATE STREAM S WITH (KEY_FORMAT='NONE') AS SELECT * FROM ORDERS O;")
    assert refusal.value.detailed_message.endswith(
        "CREATE STREAM S WITH (KEY_FORMAT='NONE') AS SELECT\n  O.ID ID,\n  O.ITEM ITEM,\n  O.UNITS UNITS\n"
        "FROM ORDERS O\n"
        "EMIT CHANGES"
    )


@pytest.mark.parametrize(
    ("window", "message"),
    [
        ("TUMBLING (SIZE 0 SECONDS)", "must be larger than zero"),
        ("HOPPING (SIZE 0 SECONDS, ADVANCE BY 1 SECOND)", "must be larger than zero"),
        ("HOPPING (SIZE 2 SECONDS, ADVANCE BY 0 SECONDS)", "advance interval is: 0 and given window size is: 2000"),
        ("HOPPING (SIZE 1 SECOND, ADVANCE BY 2 SECONDS)", "advance interval is: 2000 and given window size is: 1000"),
        ("SESSION (0 SECONDS)", "cannot be zero or negative"),
        ("TUMBLING (SIZE 10 SECONDS, RETENTION 5 SECONDS)", "must be no smaller than its window size"),
        (
            "TUMBLING (SIZE 10 SECONDS, RETENTION 10 SECONDS, GRACE PERIOD 1 SECOND)",
            r"grace=\[1000\], retention=\[10000\]",
        ),
        ("SESSION (10 SECONDS, RETENTION 5 SECONDS)", "must be no smaller than its window size"),
    ],
)
def test_lengths_that_make_no_window_are_refused(window: str, message: str) -> None:
    session = SqlSession(ORDERS)
    with pytest.raises(KsqlError, match=message):
        session.execute(f"CREATE TABLE T AS SELECT ITEM, COUNT(*) FROM ORDERS WINDOW {window} GROUP BY ITEM;")


@pytest.mark.parametrize(
    ("statement", "settings"),
    [
        (
            "CREATE STREAM S (A INT) WITH (KAFKA_TOPIC='T', VALUE_FORMAT='JSON', PARTITIONS=1);",
            {"cleanup.policy": "delete"},
        ),
        (
            "CREATE STREAM S (A INT) WITH (KAFKA_TOPIC='T', VALUE_FORMAT='JSON', PARTITIONS=1, RETENTION_MS=5000);",
            {"cleanup.policy": "delete", "retention.ms": "5000"},
        ),
        (
            "CREATE TABLE C (A INT PRIMARY KEY, B INT) WITH (KAFKA_TOPIC='T', VALUE_FORMAT='JSON', PARTITIONS=1);",
            {"cleanup.policy": "compact"},
        ),
        ("CREATE TABLE T AS SELECT ITEM, COUNT(*) FROM ORDERS GROUP BY ITEM;", {"cleanup.policy": "compact"}),
        (
            "CREATE STREAM T WITH (RETENTION_MS=7000) AS SELECT * FROM ORDERS;",
            {"cleanup.policy": "delete", "retention.ms": "7000"},
        ),
        (
            "CREATE TABLE T AS SELECT ITEM, COUNT(*) FROM ORDERS WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY ITEM;",
            {"cleanup.policy": "compact,delete", "retention.ms": str(7 * 86_400_000)},
        ),
        (
            "CREATE TABLE T WITH (RETENTION_MS=1) AS SELECT ITEM, COUNT(*) FROM ORDERS "
            "WINDOW SESSION (1 HOUR, RETENTION 30 DAYS) GROUP BY ITEM;",
            {"cleanup.policy": "compact,delete", "retention.ms": str(30 * 86_400_000)},
        ),
    ],
)
def test_a_new_topic_keeps_what_its_source_needs(statement: str, settings: dict[str, str]) -> None:
    session = SqlSession(ORDERS, statement)
    assert session.topics.settings["T"] == settings


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (
            "CREATE STREAM S (A INT) WITH (KAFKA_TOPIC='T', VALUE_FORMAT='JSON', PARTITIONS=1, RETENTION_MS='x');",
            "Not a number",
        ),
        (
            "CREATE TABLE C (A INT PRIMARY KEY) WITH (FORMAT='JSON', KAFKA_TOPIC='T', PARTITIONS=1, RETENTION_MS=1);",
            "Non-windowed tables do not support retention",
        ),
        (
            "CREATE STREAM S (A STRING) WITH (KAFKA_TOPIC='T', VALUE_FORMAT='JSON', PARTITIONS=1, TIMESTAMP='A', "
            "TIMESTAMP_FORMAT='foo');",
            "Invalid datetime format for config:TIMESTAMP_FORMAT, reason:Unknown pattern letter: f",
        ),
        ("INSERT INTO ORDERS (ID, UNITS, UNITS) VALUES ('a', 1, 2);", "Duplicate column names: UNITS"),
        ("CREATE STREAM S AS SELECT ID, ITEM FROM ORDERS WHERE EXPLODE(ARRAY[1]) = 1;", "EXPLODE is a table function"),
    ],
)
def test_properties_and_columns_that_cannot_be_are_refused(statement: str, message: str) -> None:
    with pytest.raises(KsqlError, match=message):
        SqlSession(ORDERS, statement)
