from __future__ import annotations

import pickle

import pytest
from tests.unit.pipeline.ksql.sql_session import SqlSession

from moldau.pipeline.ir import nodes as ir
from moldau.pipeline.ksql.errors import KsqlError

LEFT = "CREATE STREAM L (ID STRING KEY, A INT) WITH (KAFKA_TOPIC='l', VALUE_FORMAT='JSON', PARTITIONS=1);"
RIGHT = "CREATE STREAM R (ID STRING KEY, B INT) WITH (KAFKA_TOPIC='r', VALUE_FORMAT='JSON', PARTITIONS=1);"
TABLE = "CREATE TABLE T (ID STRING PRIMARY KEY, C STRING) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON', PARTITIONS=1);"
OTHER = "CREATE TABLE U (ID STRING PRIMARY KEY, D STRING) WITH (KAFKA_TOPIC='u', VALUE_FORMAT='JSON', PARTITIONS=1);"


def test_a_filter_drops_rows_and_a_projection_names_columns() -> None:
    session = SqlSession(LEFT)
    query = session.start("CREATE STREAM S AS SELECT ID, A * 2 AS DOUBLED, ROWTIME AS T FROM L WHERE A > 1;")
    assert session.results(query, ("l", "a", {"A": 1}, 5), ("l", "b", {"A": 2}, 6)) == [
        ("b", {"DOUBLED": 4, "T": 6}, 6)
    ]


def test_an_item_that_fails_is_null_and_its_row_survives() -> None:
    session = SqlSession(LEFT)
    query = session.start("CREATE STREAM S AS SELECT ID, 1 / A AS X, A FROM L;")
    assert session.results(query, ("l", "a", {"A": 0}, 5)) == [("a", {"X": None, "A": 0}, 5)]


def test_groups_of_another_column_are_repartitioned_and_of_the_key_are_not() -> None:
    session = SqlSession(LEFT)
    by_key = session.start("CREATE TABLE K AS SELECT ID, COUNT(*) AS N FROM L GROUP BY ID;")
    by_value = session.start("CREATE TABLE V AS SELECT A, COUNT(*) AS N FROM L GROUP BY A;")

    def has_repartition(topology: object) -> bool:
        return any(isinstance(node, ir.Repartition) for node in topology.nodes)  # type: ignore[attr-defined]

    assert not has_repartition(by_key.topology)
    assert has_repartition(by_value.topology)


def test_several_aggregates_are_one_node_and_every_change_is_emitted() -> None:
    session = SqlSession(LEFT)
    query = session.start("CREATE TABLE T AS SELECT ID, COUNT(*) AS N, SUM(A) AS S, MAX(A) AS M FROM L GROUP BY ID;")
    assert sum(isinstance(node, ir.Aggregate) for node in query.topology.nodes) == 1
    assert session.results(query, ("l", "a", {"A": 3}, 1), ("l", "a", {"A": 2}, 9), ("l", "a", None, 10)) == [
        ("a", {"N": 1, "S": 3, "M": 3}, 1),
        ("a", {"N": 2, "S": 5, "M": 3}, 9),
    ]


def test_a_changed_row_of_a_table_is_taken_out_of_its_old_group_first() -> None:
    session = SqlSession(TABLE)
    query = session.start("CREATE TABLE G AS SELECT C, COUNT(*) AS N FROM T GROUP BY C;")
    records = (("t", "1", {"C": "x"}, 1), ("t", "1", {"C": "y"}, 2), ("t", "1", None, 3))
    assert session.results(query, *records) == [
        ("x", {"N": 1}, 1),
        ("x", {"N": 0}, 2),
        ("y", {"N": 1}, 2),
        ("y", {"N": 0}, 3),
    ]


def test_windows_are_part_of_the_key_and_of_the_row() -> None:
    session = SqlSession(LEFT)
    query = session.start(
        "CREATE TABLE W AS SELECT ID, WINDOWSTART AS S, WINDOWEND AS E, COUNT(*) AS N FROM L"
        " WINDOW TUMBLING (SIZE 10 MILLISECONDS) GROUP BY ID;"
    )
    assert session.results(query, ("l", "a", {"A": 3}, 15)) == [
        ("a" + (10).to_bytes(8).decode("latin-1"), {"S": 10, "E": 20, "N": 1}, 15)
    ]


def test_a_left_join_without_grace_emits_at_once() -> None:
    session = SqlSession(LEFT, RIGHT)
    query = session.start(
        "CREATE STREAM J AS SELECT L.ID, A, B FROM L LEFT JOIN R WITHIN 10 MILLISECONDS ON L.ID = R.ID;"
    )
    assert session.results(query, ("l", "a", {"A": 1}, 1), ("r", "a", {"B": 2}, 3)) == [
        ("a", {"A": 1, "B": None}, 1),
        ("a", {"A": 1, "B": 2}, 3),
    ]


def test_a_right_join_is_a_left_join_with_the_sides_swapped() -> None:
    session = SqlSession(LEFT, RIGHT)
    query = session.start(
        "CREATE STREAM J AS SELECT R.ID, A, B FROM L RIGHT JOIN R WITHIN 10 MILLISECONDS ON L.ID = R.ID;"
    )
    assert session.results(query, ("r", "a", {"B": 2}, 3), ("l", "a", {"A": 1}, 1)) == [
        ("a", {"A": None, "B": 2}, 3),
        ("a", {"A": 1, "B": 2}, 3),
    ]


def test_a_foreign_key_join_keeps_the_left_key() -> None:
    session = SqlSession(TABLE, OTHER)
    query = session.start("CREATE TABLE F AS SELECT T.ID, C, D FROM T JOIN U ON T.C = U.ID;")
    records = (("t", "1", {"C": "x"}, 1), ("u", "x", {"D": "found"}, 2), ("u", "x", None, 3))
    assert session.results(query, *records) == [("1", {"C": "x", "D": "found"}, 2), ("1", None, 3)]


def test_table_functions_are_zipped() -> None:
    session = SqlSession(
        "CREATE STREAM S (K STRING KEY, A ARRAY<INT>, B ARRAY<INT>)"
        " WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON', PARTITIONS=1);"
    )
    query = session.start("CREATE STREAM E AS SELECT K, EXPLODE(A) AS X, EXPLODE(B) AS Y FROM S;")
    assert session.results(query, ("s", "k", {"A": [1, 2], "B": [3]}, 0), ("s", "k", {"A": [], "B": None}, 0)) == [
        ("k", {"X": 1, "Y": 3}, 0),
        ("k", {"X": 2, "Y": None}, 0),
    ]


def test_plans_are_plain_data() -> None:
    session = SqlSession(LEFT, RIGHT, TABLE)
    query = session.start(
        "CREATE TABLE P AS SELECT L.A, COUNT(*) AS N, COLLECT_LIST(UCASE(C)) AS NAMES FROM L"
        " JOIN R WITHIN 1 DAY ON L.ID = R.ID JOIN T ON L.ID = T.ID WHERE B > 1 GROUP BY L.A HAVING COUNT(*) > 1;"
    )
    again = pickle.loads(pickle.dumps(query.topology))
    assert [type(node) for node in again.nodes] == [type(node) for node in query.topology.nodes]


@pytest.mark.parametrize(
    ("select", "message"),
    [
        ("SELECT A FROM L", "must include the key column ID in its projection (eg, SELECT ID...)"),
        ("SELECT ID FROM L", "The projection contains no value columns."),
        ("SELECT ID, ID AS I2, A FROM L", "The projection contains a key column more than once: `ID` and `I2`."),
        (
            "SELECT A, B FROM L JOIN R WITHIN 1 DAY ON L.ID = R.ID",
            "the join expressions L.ID or R.ID in its projection",
        ),
        ("SELECT A, C FROM L FULL JOIN T ON L.ID = T.ID", "full-outer join not supported for stream-table join"),
        ("SELECT L.ID, A, B FROM L JOIN R ON L.ID = R.ID", "must have a WITHIN clause"),
        ("SELECT L.ID, A, C FROM L JOIN T ON L.A = T.ID", "types don't match. Got L.A{INTEGER} = T.ID{STRING}"),
        ("SELECT ID, ROWTIME FROM L", "Reserved column name in select: `ROWTIME`."),
        ("SELECT COUNT(*) AS N FROM L", "For example: SELECT ID, COUNT(*) FROM L GROUP BY ID"),
        ("SELECT A, COUNT(*) FROM L GROUP BY A PARTITION BY A", "Only one of PARTITION BY and GROUP BY"),
        ("SELECT C, COUNT(*) FROM T WINDOW TUMBLING (SIZE 1 DAY) GROUP BY C", "only supported on streams"),
        ("SELECT ID, CASE WHEN A > 1 THEN EXPLODE(ARRAY[1]) ELSE 1 END FROM L", "cannot be used in CASE: EXPLODE"),
    ],
)
def test_queries_that_cannot_be_planned_say_why(select: str, message: str) -> None:
    session = SqlSession(LEFT, RIGHT, TABLE)
    with pytest.raises(KsqlError) as refusal:
        session.execute(f"CREATE STREAM S AS {select};")
    assert message in str(refusal.value)
