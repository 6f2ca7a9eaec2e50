"""The statements of ksqlDB's conformance cases: good ones are read, and printed so that they are read again; those
that ksqlDB refuses to read are refused with its text."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moldau.pipeline.ksql.syntax.errors import KsqlParseError
from moldau.pipeline.ksql.syntax.parser import parse
from moldau.pipeline.ksql.syntax.statement_printer import render_statement
from moldau.pipeline.ksql.syntax.statements import Statement

FOLDER = Path(__file__).resolve().parents[6] / "shared" / "qtt"
FILES = sorted(FOLDER.glob("*cases/*.json"))

pytestmark = pytest.mark.skipif(not FILES, reason="the conformance cases are not beside the project")

FOUND_BY_PROPERTIES = "'WINDOW_SIZE' should not be set for SESSION windows."
"""ksqlDB checks properties while it prepares a statement; here that is the catalogue's."""


@dataclasses.dataclass(frozen=True)
class Case:
    """What a case sends at once, and what its error says if there is one."""

    requests: list[str]
    error: str | None
    is_unreadable: bool


def cases(file: Path) -> Iterator[Case]:
    """The cases of a file; engine cases are one text, REST cases come statement by statement."""
    for case in json.loads(file.read_text())["tests"]:
        error: dict[str, Any] = case.get("expectedException") or case.get("expectedError") or {}
        texts: list[str] = case["statements"]
        message = error.get("message", "") if error else None
        is_unreadable = error.get("type", "").endswith("ParseFailedException") and message != FOUND_BY_PROPERTIES
        yield Case(texts if "expectedError" in case else ["\n".join(texts)], message, is_unreadable)


def read(case: Case) -> tuple[list[Statement], str | None]:
    """The statements of a case, or the text of the error."""
    try:
        return [statement for request in case.requests for statement in parse(request)], None
    except KsqlParseError as error:
        return [], str(error)


def with_sorted_properties(statement: Statement) -> Statement:
    properties = getattr(statement, "properties", None)
    if properties is None:
        return statement
    return dataclasses.replace(statement, properties=tuple(sorted(properties, key=lambda entry: entry.name)))


@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_statements_of_the_cases(file: Path) -> None:
    for case in cases(file):
        statements, error = read(case)
        if error is not None:
            assert case.error is not None, error
            assert case.error in error
        assert error is not None or not case.is_unreadable
        for statement in statements:
            again = parse(render_statement(statement), allow_missing_semicolon=True)
            assert again == [with_sorted_properties(statement)]
