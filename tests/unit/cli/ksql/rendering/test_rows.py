"""Rows of queries: cells as wide as the terminal allows, long texts wrapped or clipped."""

from __future__ import annotations

from moldau.cli.ksql.rendering.rows import RowTable, column_names


def test_names_are_read_from_the_schema() -> None:
    schema = "`ID` INTEGER KEY, `A,``B` STRUCT<`F` STRING, `G` MAP<STRING, DECIMAL(4, 2)>>, `T` ARRAY<STRING>"

    assert column_names(schema) == ["ID", "A,`B", "T"]


def test_rows_are_as_wide_as_the_terminal() -> None:
    rows = RowTable.fitting(["ID", "NAME"], 20)

    assert rows.header() == ["+--------+--------+", "|ID      |NAME    |", "+--------+--------+"]
    assert rows.row({"columns": ["1", "bob"]}) == ["|1       |bob     |"]


def test_cells_have_a_least_width_and_headers_wrap() -> None:
    rows = RowTable.fitting(["IDENTIFIER"] * 9, 20)

    assert rows.header()[1:3] == ["|IDENT" * 9 + "|", "|IFIER" * 9 + "|"]


def test_long_values_wrap_or_are_clipped() -> None:
    row = {"columns": ["abcdefghij", None]}

    assert RowTable(("A", "B"), 8).row(row) == ["|abcdefgh|null    |", "|ij      |        |"]
    assert RowTable(("A", "B"), 8, is_wrapped=False).row(row) == ["|abcde...|null    |"]


def test_values_print_as_java_does() -> None:
    rows = RowTable(("A",), 30)

    assert rows.row({"columns": [{"A": ["1", True], "B": None}]}) == [f"|{'{A=[1, true], B=null}':<30}|"]


def test_a_tombstone_is_marked_in_its_null_columns() -> None:
    assert RowTable(("K", "V"), 12).row({"columns": ["k", None], "tombstone": True}) == ["|k           |<TOMBSTONE> |"]


def test_characters_that_move_the_cursor_are_made_visible() -> None:
    assert RowTable(("A",), 20).row({"columns": ["a\nb\x1b[2Jc"]}) == [f"|{'a b' + chr(92) + 'x1b[2Jc':<20}|"]


def test_an_empty_row_is_one_line() -> None:
    assert RowTable(("A",), 5).row({"columns": [""]}) == ["|     |"]
