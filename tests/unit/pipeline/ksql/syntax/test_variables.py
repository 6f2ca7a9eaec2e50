"""Variables take the place of names and literals, and of nothing else."""

from __future__ import annotations

import pytest

from moldau.pipeline.ksql.syntax.errors import KsqlParseError
from moldau.pipeline.ksql.syntax.expressions import Location
from moldau.pipeline.ksql.syntax.parser import parse
from moldau.pipeline.ksql.syntax.variables import substitute

VARIABLES = {"topic": "orders", "Count": "3", "text": "'it''s'", "odd": "a'b", "name": "my stream", "word": "tables"}


@pytest.mark.parametrize(
    ("text", "replaced"),
    [
        ("SHOW TABLES;", "SHOW TABLES;"),
        ("CREATE STREAM ${topic} (a INT);", "CREATE STREAM orders (a INT);"),
        ("SELECT * FROM ${TOPIC} LIMIT ${count};", "SELECT * FROM orders LIMIT 3;"),
        ("SELECT a FROM s WHERE a = ${text};", "SELECT a FROM s WHERE a = 'it''s';"),
        ("PRINT 'x-${topic}-${count}';", "PRINT 'x-orders-3';"),
        ("SET 'a' = '${odd}';", "SET 'a' = 'a''b';"),
        ("SELECT `${odd}` FROM s;", "SELECT `a'b` FROM s;"),
        ("SET 'a' = '${unknown} $${topic}';", "SET 'a' = '${unknown} ${topic}';"),
        ("-- ${unknown}\nSHOW TABLES;", "-- ${unknown}\nSHOW TABLES;"),
    ],
)
def test_variables_are_replaced(text: str, replaced: str) -> None:
    assert substitute(text, VARIABLES) == replaced


def test_a_value_never_becomes_a_keyword() -> None:
    replaced = substitute("SHOW ${word};", VARIABLES)

    with pytest.raises(KsqlParseError):
        parse(replaced)
    assert substitute("SELECT a AS ${word} FROM s;", VARIABLES) == "SELECT a AS `TABLES` FROM s;"


@pytest.mark.parametrize("name", ["unknown", "name"])
def test_what_is_neither_a_name_nor_a_literal_is_refused(name: str) -> None:
    with pytest.raises(KsqlParseError, match="Illegal argument at Line: 2, Col: 6") as refusal:
        substitute(f"SELECT *\nFROM ${{{name}}};", VARIABLES)

    assert refusal.value.location == Location(2, 6)
