"""The SQL of docs/ksql.md is read by the parser, and the error that it shows is the parser's."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from moldau.pipeline.ksql.syntax.errors import KsqlParseError
from moldau.pipeline.ksql.syntax.parser import parse

TEXT = (Path(__file__).resolve().parents[3] / "docs" / "ksql.md").read_text()


@pytest.mark.parametrize("block", re.findall(r"```sql\n(.*?)```", TEXT, re.DOTALL))
def test_the_examples_are_read(block: str) -> None:
    assert parse(block)


def test_the_error_is_what_the_parser_says() -> None:
    with pytest.raises(KsqlParseError) as refusal:
        parse("SELECT a FROM where;")

    assert str(refusal.value) in TEXT
