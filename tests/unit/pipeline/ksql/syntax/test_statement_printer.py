"""Statements are printed in ksqlDB's form, and read again as what they were."""

from __future__ import annotations

import pytest

from moldau.pipeline.ksql.syntax import statements
from moldau.pipeline.ksql.syntax.parser import parse
from moldau.pipeline.ksql.syntax.statement_printer import _RULES, render_statement
from moldau.pipeline.ksql.syntax.statements import Statement


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        (
            "create table output as select f2 as key, count(*) total from test group by f2;",
            "CREATE TABLE OUTPUT AS SELECT\n  F2 KEY,\n  COUNT(*) TOTAL\nFROM TEST TEST\nGROUP BY F2\nEMIT CHANGES",
        ),
        (
            "create stream o with (value_format='JSON', kafka_topic='x') as select * from l left join `r` within 10 "
            "seconds grace period 1 day on l.id = `r`.id where l.a > 1;",
            "CREATE STREAM O WITH (KAFKA_TOPIC='x', VALUE_FORMAT='JSON') AS SELECT *\nFROM L L\n"
            "LEFT OUTER JOIN `r` `r` WITHIN 10 SECONDS GRACE PERIOD 1 DAYS ON ((L.ID = `r`.ID))\n"
            "WHERE (L.A > 1)\nEMIT CHANGES",
        ),
        (
            "select a from s window hopping (size 1 hour, advance by 5 minutes, retention 1 day) group by a emit final "
            "limit 3;",
            "SELECT A\nFROM S S\nWINDOW HOPPING ( SIZE 1 HOURS , ADVANCE BY 5 MINUTES , RETENTION 1 DAYS ) \n"
            "GROUP BY A\nEMIT FINAL\nLIMIT 3",
        ),
        (
            "create source table if not exists t (k int primary key, `v` struct<`f` int, g string>, "
            "h bytes header('x')) with (kafka_topic='t');",
            "CREATE SOURCE TABLE IF NOT EXISTS T (K INTEGER PRIMARY KEY, `v` STRUCT<`f` INTEGER, G STRING>, "
            "H BYTES HEADER('x')) WITH (KAFKA_TOPIC='t');",
        ),
        ("insert into s (a) values (1, 'x');", "INSERT INTO S (A) VALUES (1, 'x')"),
        ("drop stream if exists s delete topic;", "DROP STREAM IF EXISTS S DELETE TOPIC"),
    ],
)
def test_the_form(text: str, printed: str) -> None:
    (statement,) = parse(text)

    assert render_statement(statement) == printed


@pytest.mark.parametrize(
    "text",
    [
        "SELECT s.*, x->y->*, a b FROM s WHERE a GROUP BY () PARTITION BY a, b HAVING c LIMIT 1;",
        "SELECT * FROM a x FULL JOIN b WITHIN (1 SECOND, 2 DAYS) ON x.a = b.a WINDOW SESSION (1 DAY);",
        "SELECT * FROM a WINDOW TUMBLING (SIZE 1 DAY, GRACE PERIOD 1 DAY) GROUP BY a EMIT CHANGES;",
        "CREATE OR REPLACE STREAM s (h ARRAY<STRUCT<KEY STRING, VALUE BYTES>> HEADERS);",
        "CREATE OR REPLACE TABLE IF NOT EXISTS t AS SELECT * FROM s;",
        "ALTER TABLE t ADD a INT, ADD `b` address;",
        "CREATE TYPE IF NOT EXISTS t AS MAP<STRING, STRUCT<`a` INT>>;",
        "DROP TYPE IF EXISTS `t`;",
        "CREATE SOURCE CONNECTOR IF NOT EXISTS c WITH (tasks = 1, 'a.b' = 'c');",
        "DROP CONNECTOR IF EXISTS c;",
        "INSERT INTO s WITH (query_id='x') SELECT * FROM t;",
        "INSERT INTO s VALUES ();",
        "TERMINATE `a`;",
        "PAUSE ALL;",
        "EXPLAIN `q`;",
        "EXPLAIN SELECT * FROM s;",
        "SHOW ALL TOPICS EXTENDED;",
        "SHOW SOURCE CONNECTORS;",
        "SHOW CONNECTOR PLUGINS;",
        "DESCRIBE `TABLES` EXTENDED;",
        "DESCRIBE TABLES EXTENDED;",
        "DESCRIBE FUNCTION f;",
        "DESCRIBE CONNECTOR c;",
        "PRINT 'it''s' FROM BEGINNING INTERVAL 2 LIMIT 3;",
        "SET 'a'='it''s';",
        "UNSET 'a';",
        "ALTER SYSTEM 'a'='b';",
        "DEFINE Select = 'x';",
        "UNDEFINE x;",
        "ASSERT NOT EXISTS TOPIC t WITH (partitions=1) TIMEOUT 1 SECOND;",
        "ASSERT SCHEMA SUBJECT s ID 1 TIMEOUT 1 SECOND;",
    ],
)
def test_what_is_printed_is_read_as_the_same_statement(text: str) -> None:
    (statement,) = parse(text)

    assert parse(render_statement(statement), allow_missing_semicolon=True) == [statement]


def test_every_kind_of_statement_is_printed() -> None:
    kinds = {kind for kind in vars(statements).values() if isinstance(kind, type) and issubclass(kind, Statement)}

    assert set(_RULES) == kinds - {Statement}
