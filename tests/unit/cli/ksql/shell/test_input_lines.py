"""Lines become statements at their `;`, and commands by themselves."""

from __future__ import annotations

from moldau.cli.ksql.shell.commands import Command, help_lines, parse_command
from moldau.cli.ksql.shell.input_lines import InputBuffer, split_input


def test_a_statement_ends_with_its_semicolon() -> None:
    buffer = InputBuffer()

    assert buffer.feed("SELECT ';' -- ;") is None
    assert buffer.feed("FROM s;") == "SELECT ';' -- ;\nFROM s;"
    assert buffer.is_empty


def test_a_semicolon_in_an_open_quote_is_no_end() -> None:
    buffer = InputBuffer()

    assert buffer.feed("SELECT 'a;") is None
    assert buffer.feed("b' FROM s;") == "SELECT 'a;\nb' FROM s;"


def test_comments_and_blank_lines_before_a_statement_are_ignored() -> None:
    buffer = InputBuffer()

    assert [buffer.feed("-- one"), buffer.feed(""), buffer.feed(";")] == [None, None, None]
    assert buffer.is_empty


def test_an_empty_line_ends_a_statement_that_lacks_only_its_semicolon() -> None:
    buffer = InputBuffer()

    assert buffer.feed("SHOW", is_last=True) is None
    assert buffer.feed("", is_last=True) is None
    assert buffer.feed("STREAMS", is_last=True) is None
    assert buffer.feed("", is_last=False) is None
    assert buffer.feed("", is_last=True) == "SHOW\n\nSTREAMS"


def test_commands_are_read_in_any_case_with_or_without_semicolon() -> None:
    assert parse_command("  help ") == Command("HELP")
    assert parse_command("Output json;") == Command("OUTPUT", "json")
    assert parse_command("run  script 'a b''c.sql' ;") == Command("RUN SCRIPT", "a b'c.sql")
    assert parse_command("set cli column-width 12") == Command("SET CLI COLUMN-WIDTH", "12")
    assert parse_command("quit") == Command("EXIT")
    assert parse_command("SET 'cli' = 'x';") is None
    assert parse_command("helpless;") is None


def test_a_command_inside_a_statement_is_none() -> None:
    buffer = InputBuffer()
    buffer.feed("SELECT")

    assert buffer.feed("version") is None
    assert buffer.take() == "SELECT\nversion"


def test_a_text_is_split_at_its_commands() -> None:
    text = "-- script\nSHOW STREAMS;\nSHOW\nTABLES;\noutput json\nSHOW TOPICS"

    assert list(split_input(text)) == ["SHOW STREAMS;\nSHOW\nTABLES;", Command("OUTPUT", "json"), "SHOW TOPICS"]


def test_help_fits_a_narrow_terminal() -> None:
    assert max(map(len, help_lines())) <= 80
