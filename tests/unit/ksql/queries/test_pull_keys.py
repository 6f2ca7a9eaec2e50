from __future__ import annotations

import pytest

from moldau.formats.columns import Column, RowSchema
from moldau.formats.format import row_format
from moldau.formats.types import INTEGER, STRING, SqlType
from moldau.ksql.queries.pull_keys import MAX_ALTERNATIVES, RANGE_SCAN, TABLE_SCAN, sought_keys
from moldau.ksql.settings import KsqlSettings
from moldau.pipeline.ksql.catalogue.sources import KeyWindow, Source, WindowKind
from moldau.pipeline.ksql.errors import KsqlError
from moldau.pipeline.ksql.syntax.parser import parse
from moldau.pipeline.ksql.syntax.statements import Query, SourceKind

NO_SCAN = {TABLE_SCAN: "false"}


def table(*types: SqlType, window: KeyWindow | None = None) -> Source:
    key = tuple(Column(f"K{number}", one) for number, one in enumerate(types))
    return Source(
        name="T",
        kind=SourceKind.TABLE,
        schema=RowSchema(key, (Column("V", INTEGER),)),
        topic="t",
        key_format=row_format("JSON" if len(types) > 1 else "KAFKA", is_key=True),
        value_format=row_format("JSON"),
        window=window,
    )


def sought(where: str, source: Source, properties: dict[str, object] | None = None) -> list[bytes] | None:
    [query] = parse(f"SELECT * FROM T {where};")
    assert isinstance(query, Query)
    return sought_keys(query, source, properties or {}, KsqlSettings.of())


def test_equalities_and_lists_are_keys() -> None:
    assert sought("WHERE K0 = 'a'", table(STRING)) == [b"a"]
    assert sought("WHERE 'a' = K0 AND V > 1", table(STRING)) == [b"a"]
    assert sought("WHERE K0 IN ('a', 'b', 'a')", table(STRING)) == [b"a", b"b"]
    assert sought("WHERE K0 = 'a' OR K0 = 'b'", table(STRING)) == [b"a", b"b"]
    assert sought("WHERE K0 = 1 + 1", table(INTEGER)) == [b"\0\0\0\2"]


def test_all_columns_of_a_key_must_be_fixed() -> None:
    assert len(sought("WHERE K0 = 'a' AND K1 IN (1, 2)", table(STRING, INTEGER)) or ()) == 2
    assert sought("WHERE K0 = 'a'", table(STRING, INTEGER)) is None
    with pytest.raises(KsqlError, match="Multi-column sources must specify every key"):
        sought("WHERE K0 = 'a'", table(STRING, INTEGER), NO_SCAN)


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("", "Missing WHERE clause"),
        ("WHERE V > 1", r"WHERE clause missing key column for disjunct: \(V > 1\)"),
        ("WHERE K0 > 'a' AND K0 < 'b'", "cannot be combined with other comparisons"),
        ("WHERE K0 BETWEEN 'a' AND 'b'", "cannot be combined with other comparisons"),
        ("WHERE K0 = V", "resolvable expression"),
        ("WHERE K0 LIKE 'a%'", "Like condition must be between strings"),
        ("WHERE K0 <> 'a'", "Bound on 'K0' must currently be '='"),
        ("WHERE NOT (K0 = 'a')", "Bound on 'K0' must currently be '='"),
        ("WHERE K0 IS NOT NULL", "Unsupported expression in WHERE clause"),
        ("WHERE K0 > 'a' OR K0 < 'b'", "Query requires table scan to be enabled"),
    ],
)
def test_what_needs_a_table_scan(where: str, message: str) -> None:
    assert sought(where, table(STRING)) is None
    with pytest.raises(KsqlError, match=message):
        sought(where, table(STRING), NO_SCAN)


def test_one_bound_on_a_text_is_a_range_scan() -> None:
    assert sought("WHERE K0 >= 'a' AND V = 2", table(STRING), NO_SCAN) is None
    for source, properties in ((table(STRING), {**NO_SCAN, RANGE_SCAN: "false"}), (table(INTEGER), NO_SCAN)):
        bound = "'a'" if source.schema.key[0].type == STRING else "5"
        with pytest.raises(KsqlError, match="Query requires table scan"):
            sought(f"WHERE K0 >= {bound}", source, properties)


def test_null_is_no_key() -> None:
    with pytest.raises(KsqlError, match=r"Primary key columns can not be NULL: \(K0 = null\)"):
        sought("WHERE K0 IN (NULL)", table(STRING))


def test_sessions_are_found_by_key_only() -> None:
    source = table(STRING, window=KeyWindow(WindowKind.SESSION))
    assert sought("WHERE K0 = 'a'", source) == [b"a"]
    with pytest.raises(KsqlError, match="session tables"):
        sought("", source)


def test_conditions_that_multiply_are_not_multiplied_out() -> None:
    lists = " AND ".join(f"V IN ({', '.join(map(str, range(100)))})" for _ in range(20))
    assert MAX_ALTERNATIVES < 100**20
    assert sought(f"WHERE K0 = 'a' AND {lists}", table(STRING)) is None
