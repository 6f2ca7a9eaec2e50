"""What has to be done for one input, decided before any of it is sent. Start at `plan_steps`.

Statements in a row go to the server in one request. Queries are requests of their own, and what belongs to the session
(properties and variables) is handled here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from moldau.pipeline.ksql.syntax import statements as syntax
from moldau.pipeline.ksql.syntax.parser import parse
from moldau.pipeline.ksql.syntax.splitting import split_statements
from moldau.pipeline.ksql.syntax.variables import substitute

__all__ = ["LocalStep", "QueryStep", "RequestStep", "Step", "plan_steps"]


@dataclass(frozen=True, slots=True)
class LocalStep:
    """A statement about the session."""

    statement: syntax.Statement


@dataclass(frozen=True, slots=True)
class RequestStep:
    """Statements for one request."""

    text: str


@dataclass(frozen=True, slots=True)
class QueryStep:
    """SELECT, or PRINT, whose answer is text."""

    text: str
    is_print: bool
    is_pull: bool = False


Step = LocalStep | RequestStep | QueryStep


def plan_steps(text: str, variables: Mapping[str, str] | None) -> list[Step]:
    """The steps of an input; raises `KsqlParseError` if any of its statements cannot be read.

    Variables are put in, among them those that the input itself defines; None leaves `${…}` as it is.
    """
    values = None if variables is None else {name.upper(): value for name, value in variables.items()}
    steps: list[Step] = []
    for statement in _statements(text, values):
        if isinstance(statement, (syntax.Query, syntax.PrintTopic)):
            is_pull = isinstance(statement, syntax.Query) and statement.is_pull
            steps.append(QueryStep(_text(statement), isinstance(statement, syntax.PrintTopic), is_pull))
        elif _is_local(statement):
            steps.append(LocalStep(statement))
        elif steps and isinstance(steps[-1], RequestStep):
            steps[-1] = RequestStep(f"{steps[-1].text}\n{_text(statement)}")
        else:
            steps.append(RequestStep(_text(statement)))
    return steps


def _statements(text: str, variables: dict[str, str] | None) -> list[syntax.Statement]:
    if variables is None or "${" not in text:
        return parse(text, allow_missing_semicolon=True)
    found: list[syntax.Statement] = []
    split = split_statements(text)
    for part in (*split.statements, *(() if split.rest is None else (split.rest,))):
        for statement in parse(substitute(part.text, variables), allow_missing_semicolon=True):
            found.append(statement)
            if isinstance(statement, syntax.DefineVariable):
                variables[statement.name.upper()] = statement.value
            elif isinstance(statement, syntax.UndefineVariable):
                variables.pop(statement.name.upper(), None)
    return found


def _is_local(statement: syntax.Statement) -> bool:
    if isinstance(statement, syntax.Show):
        return statement.listing is syntax.Listing.VARIABLES
    return isinstance(
        statement, (syntax.SetProperty, syntax.UnsetProperty, syntax.DefineVariable, syntax.UndefineVariable)
    )


def _text(statement: syntax.Statement) -> str:
    return statement.text.rstrip().removesuffix(";") + ";"
