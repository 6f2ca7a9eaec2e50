"""A text is cut into statements at the semicolons that end them."""

from __future__ import annotations

from moldau.pipeline.ksql.syntax.expressions import Location
from moldau.pipeline.ksql.syntax.splitting import SplitText, StatementText, split_statements


def test_semicolons_in_quotes_and_comments_end_nothing() -> None:
    split = split_statements("-- a;\nselect ';' /* ; */ as `;`;\nwrong ! words;; SHOW")

    assert split.statements == (
        StatementText("select ';' /* ; */ as `;`;", "SELECT", Location(2, 1)),
        StatementText("wrong ! words;", "WRONG", Location(3, 1)),
    )
    assert split.rest == StatementText("SHOW", "SHOW", Location(3, 17))
    assert not split.is_open


def test_space_and_comments_after_the_last_statement_are_no_rest() -> None:
    assert split_statements("SHOW TABLES; -- done\n").rest is None
    assert split_statements("\n") == SplitText(())


def test_an_open_quote_or_comment_is_told() -> None:
    assert split_statements("SELECT 'a;\n").is_open
    assert split_statements("SHOW TABLES; /* a;").is_open
    assert not split_statements("SELECT 'a'").is_open
