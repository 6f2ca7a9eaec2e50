from __future__ import annotations

import pytest
from tests.unit.pipeline.ksql.sql_session import SqlSession

from moldau.pipeline.ksql.catalogue.sources import schema_text
from moldau.pipeline.ksql.errors import KsqlError

LEFT = (
    "CREATE STREAM L (ID INT KEY, A INT, S STRUCT<X INT, Y STRING>)"
    " WITH (KAFKA_TOPIC='l', VALUE_FORMAT='JSON', PARTITIONS=1);"
)
RIGHT = "CREATE STREAM R (ID INT KEY, A INT, B INT) WITH (KAFKA_TOPIC='r', VALUE_FORMAT='JSON', PARTITIONS=1);"
JOIN = "FROM L JOIN R WITHIN 1 DAY ON L.ID = R.ID"


def columns(select: str) -> str:
    """The schema of a result."""
    session = SqlSession(LEFT, RIGHT)
    session.execute(f"CREATE STREAM RESULT AS {select};")
    return schema_text(session.engine.catalogue.sources["RESULT"].schema).replace("`", "")


@pytest.mark.parametrize(
    ("select", "expected"),
    [
        ("SELECT * FROM L", "ID INTEGER KEY, A INTEGER, S STRUCT<X INTEGER, Y STRING>"),
        ("SELECT A, ID FROM L", "ID INTEGER KEY, A INTEGER"),
        ("SELECT ID AS K, A + 1, A, -A FROM L", "K INTEGER KEY, KSQL_COL_0 INTEGER, A INTEGER, KSQL_COL_1 INTEGER"),
        ("SELECT ID, S->X, S->X AS Z FROM L", "ID INTEGER KEY, X INTEGER, Z INTEGER"),
        ("SELECT ID, S->* FROM L", "ID INTEGER KEY, X INTEGER, Y STRING"),
        (f"SELECT L.ID, L.A, B {JOIN}", "L_ID INTEGER KEY, L_A INTEGER, B INTEGER"),
        (f"SELECT R.* {JOIN}", "R_ID INTEGER KEY, R_A INTEGER, R_B INTEGER"),
        (f"SELECT R.ID, L.ID, B {JOIN}", "L_ID INTEGER KEY, R_ID INTEGER, B INTEGER"),
        ("SELECT * FROM R PARTITION BY B", "B INTEGER KEY, A INTEGER, ID INTEGER"),
        ("SELECT * FROM R PARTITION BY A + B", "KSQL_COL_0 INTEGER KEY, A INTEGER, B INTEGER, ID INTEGER"),
        ("SELECT * FROM R PARTITION BY NULL", "A INTEGER, B INTEGER, ID INTEGER"),
        ("SELECT ID, ROWTIME AS T FROM R", "ID INTEGER KEY, T BIGINT"),
    ],
)
def test_columns_get_their_names_and_places(select: str, expected: str) -> None:
    assert columns(select) == expected


@pytest.mark.parametrize(
    ("select", "message"),
    [
        (f"SELECT ID, B {JOIN}", "Column 'ID' is ambiguous. Could be L.ID or R.ID."),
        ("SELECT ID, X.A FROM L", "'X' is not a valid stream/table name or alias."),
        ("SELECT ID, A AS ROWOFFSET FROM L", "`ROWOFFSET` is a reserved column name."),
        ("SELECT ID, A, B AS A FROM R", "Duplicate value columns found in schema: `A` INTEGER"),
        ("SELECT ID, NULL AS N FROM L", "Can't infer a type of null."),
        ("SELECT ID, A FROM L WHERE NOPE > 1", "WHERE column 'NOPE' cannot be resolved."),
        ("SELECT ID, A FROM L JOIN L WITHIN 1 DAY ON L.ID = L.ID", "self joins are not yet supported"),
    ],
)
def test_columns_that_cannot_be_are_refused(select: str, message: str) -> None:
    with pytest.raises(KsqlError) as refusal:
        columns(select)
    assert message in str(refusal.value)
