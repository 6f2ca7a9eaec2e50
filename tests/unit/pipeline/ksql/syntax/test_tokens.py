"""A text is cut into the tokens of the language; each knows its place."""

from __future__ import annotations

import pytest

from moldau.pipeline.ksql.syntax.expressions import Location
from moldau.pipeline.ksql.syntax.tokens import tokenize, unquote


def kinds(text: str) -> list[str]:
    return tokenize(text).kinds[:-1]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("select", "SELECT"),
        ("colour", "IDENTIFIER"),
        ("_a@1", "IDENTIFIER"),
        ("1R", "DIGIT_IDENTIFIER"),
        ("1e", "DIGIT_IDENTIFIER"),
        ("1e5x", "DIGIT_IDENTIFIER"),
        ("`a``b`", "BACKQUOTED_IDENTIFIER"),
        ('"a""b"', "QUOTED_IDENTIFIER"),
        ("'it''s'", "TEXT"),
        ("12", "INTEGER_VALUE"),
        ("12.", "DECIMAL_VALUE"),
        (".5", "DECIMAL_VALUE"),
        ("1e5", "FLOATING_POINT_VALUE"),
        ("1.5E-3", "FLOATING_POINT_VALUE"),
        (".5e+3", "FLOATING_POINT_VALUE"),
        ("${limit}", "VARIABLE"),
        ("!=", "<>"),
        ("→", "->"),
        ("?", "UNRECOGNIZED"),
        ("'open", "UNTERMINATED"),
        ("/* open", "UNTERMINATED"),
    ],
)
def test_each_form_has_its_kind(text: str, kind: str) -> None:
    assert kinds(text) == [kind]


def test_comments_and_spaces_are_left_out() -> None:
    assert kinds("a -- to the end\n/* over\nlines */ b --@directive\n--\nc") == ["IDENTIFIER"] * 3


def test_a_backslash_is_left_out_only_at_the_end_of_a_line() -> None:
    assert kinds("a \\\nb \\  \nc \\") == ["IDENTIFIER"] * 3
    assert kinds("a \\ b") == ["IDENTIFIER", "UNRECOGNIZED", "IDENTIFIER"]


def test_a_token_knows_its_line_and_column() -> None:
    tokens = tokenize("select\n  one,\n\ttwo")

    assert [tokens.location(index) for index in range(5)] == [
        Location(1, 1),
        Location(2, 3),
        Location(2, 6),
        Location(3, 2),
        Location(3, 5),
    ]


def test_quotes_are_taken_off_and_doubled_ones_made_single() -> None:
    assert unquote("'it''s'") == "it's"
    assert unquote("`a``b`") == "a`b"
